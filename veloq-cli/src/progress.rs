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
            // Progress that cannot be written is not worth an error.
            let _ = write!(
                std::io::stderr(),
                "\r\x1b[K{}",
                line(read_bytes, total_bytes, now_ms)
            );
        }
    }
}

/// Returns how far the reading has come: `reading 42 % of 994 MB, 480 MB/s, 1.20 s left`.
fn line(read_bytes: u64, total_bytes: u64, elapsed_ms: u64) -> String {
    let (total, elapsed) = (i128::from(total_bytes), i128::from(elapsed_ms.max(1)));
    let read = i128::from(read_bytes.min(total_bytes)).max(1);
    let percent = read * 100 / total.max(1);
    let rate = units::bytes(read * 1000 / elapsed);
    let left_ns = (total - read).max(0) * elapsed * 1_000_000 / read;
    let total = units::bytes(total);
    let left = units::duration(left_ns);
    format!("reading {percent} % of {total}, {rate}/s, {left} left")
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.shown_ms.load(Ordering::Relaxed) > 0 {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_share_rate_and_time_left() {
        assert_eq!(
            line(250_000_000, 1_000_000_000, 500),
            "reading 25 % of 1.00 GB, 500 MB/s, 1.50 s left"
        );
        assert_eq!(line(0, 0, 0), "reading 100 % of 0 B, 1.00 kB/s, 0 ns left");
    }
}
