//! Signals that would end the process without an answer or an error.

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
