//! Signals that would end the process without an answer or an error.

use veloq_core::Interrupt;

/// Makes a write beyond the file size limit (`ulimit -f`) fail like one to a full disk, instead of ending the
/// process by `SIGXFSZ`: the tables then go elsewhere, or the error says why not.
pub fn survive_file_size_limits() {
    #[cfg(unix)]
    {
        // With any handler the write itself fails, with `EFBIG`. Without one nothing is worse than before.
        let noticed = std::sync::Arc::default();
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noticed);
    }
}

/// Makes Ctrl-C, and a request to end, clear away what is half-made first; the second one ends the process on
/// the spot, and so does the first when there is nothing to clear away.
///
/// Elsewhere than on Unix the process always ends on the spot, and what was half-made is cleared away by the
/// next call.
pub fn stop_when_asked(interrupt: &Interrupt) {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use signal_hook::flag::{register, register_conditional_shutdown};
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Where a handler cannot be set, the signal ends the process as it always did. They act in this
            // order: whoever asks twice finds the second flag set.
            let _ = register_conditional_shutdown(signal, status_of(signal), interrupt.may_exit())
                .and_then(|_| register(signal, interrupt.requested()))
                .and_then(|_| register(signal, interrupt.may_exit()));
        }
    }
    #[cfg(not(unix))]
    let _ = interrupt;
}

/// The exit status of a process that was interrupted: that of `SIGINT` in a shell.
pub(crate) const INTERRUPTED: u8 = 130;

/// Returns the status that a shell gives a process ended by a signal.
#[cfg(unix)]
fn status_of(signal: i32) -> i32 {
    128 + signal
}
