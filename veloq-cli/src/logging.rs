//! Log lines, on standard error.

use tracing::level_filters::LevelFilter;

/// Turns log lines on: warnings, or with `-v` what is done, with `-vv` in detail, with `--quiet` none.
///
/// The first call of a process decides.
pub(crate) fn start(is_quiet: bool, verbosity: u8) {
    let level = match (is_quiet, verbosity) {
        (true, _) => LevelFilter::OFF,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, _) => LevelFilter::DEBUG,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(verbosity > 1)
        .without_time()
        .with_writer(std::io::stderr)
        .finish();
    // An error says that one is set already: that of an earlier call in this process.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
