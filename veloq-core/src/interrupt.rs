//! Being asked to stop: Ctrl-C, or a polite request to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop, shared by whoever receives it and whoever works.
///
/// Most work leaves nothing behind and may be ended on the spot. Who would leave something half-made takes a
/// [`Hold`], looks for requests now and then, and clears away before giving up.
#[derive(Debug, Clone)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    may_exit: Arc<AtomicBool>,
}

impl Default for Interrupt {
    /// Not requested, and held by nobody.
    fn default() -> Self {
        Self {
            requested: Arc::new(AtomicBool::new(false)),
            may_exit: Arc::new(AtomicBool::new(true)),
        }
    }
}

impl PartialEq for Interrupt {
    /// Whether both are one request.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.requested, &other.requested)
    }
}

impl Eq for Interrupt {}

impl Interrupt {
    /// Returns whether somebody asked to stop.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Keeps the process from being ended on the spot while the returned value lives.
    pub fn hold(&self) -> Hold<'_> {
        self.may_exit.store(false, Ordering::Relaxed);
        Hold(self)
    }

    /// Returns the flag to set when asked to stop.
    pub fn requested(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.requested)
    }

    /// Returns the flag that tells whether the process may be ended on the spot.
    pub fn may_exit(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.may_exit)
    }
}

/// Somebody has something to clear away; see [`Interrupt::hold`].
#[derive(Debug)]
pub struct Hold<'a>(&'a Interrupt);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.may_exit.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_keeps_the_process_going_until_it_is_dropped() {
        let interrupt = Interrupt::default();
        let may_exit = interrupt.may_exit();
        assert!(may_exit.load(Ordering::Relaxed));
        let hold = interrupt.hold();
        assert!(!may_exit.load(Ordering::Relaxed));
        drop(hold);
        assert!(may_exit.load(Ordering::Relaxed));
        interrupt.requested().store(true, Ordering::Relaxed);
        assert!(interrupt.is_requested());
    }
}
