//! How far the reading of a trace has come, on standard error, while somebody watches.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use veloq_core::ProgressSink;

use crate::render::units;

/// Nothing is shown before this time: most traces are open by then.
const PATIENCE_MS: u64 = 400;
/// Time between two updates.
const INTERVAL_MS: u64 = 100;

/// A line that is overwritten as bytes are read, and wiped when dropped.
pub(crate) struct Meter {
    begun: Instant,
    /// When the line was last written, in ms since the beginning; 0 for never.
    shown_ms: AtomicU64,
}

impl Meter {
    /// Returns a meter that has shown nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            shown_ms: AtomicU64::new(0),
        }
    }
}

impl ProgressSink for Meter {
    fn advance(&self, read_bytes: u64, total_bytes: u64) {
        let now_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let shown_ms = self.shown_ms.load(Ordering::Relaxed);
        let is_due = now_ms >= PATIENCE_MS && now_ms - shown_ms.min(now_ms) >= INTERVAL_MS;
        // Of several threads that find the update due, one writes it.
        let is_mine = is_due
            && self
                .shown_ms
                .compare_exchange(shown_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_mine {
            let read = u128::from(read_bytes.min(total_bytes));
            let percent = read * 100 / u128::from(total_bytes.max(1));
            let total = units::bytes(i128::from(total_bytes));
            // Progress that cannot be written is not worth an error.
            let _ = write!(std::io::stderr(), "\r\x1b[Kreading {percent} % of {total}");
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.shown_ms.load(Ordering::Relaxed) > 0 {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
