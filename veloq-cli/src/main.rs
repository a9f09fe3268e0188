//! The `veloq` binary: everything it does lives in the library.

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    veloq_cli::silence_panics();
    veloq_cli::survive_file_size_limits();
    let surroundings = veloq_cli::Surroundings::of_process();
    veloq_cli::stop_when_asked(&surroundings.interrupt);
    // Standard error stays unlocked: log lines of other threads go there too.
    let status = veloq_cli::run(
        std::env::args_os(),
        &surroundings,
        &mut io::stdout().lock(),
        &mut io::stderr(),
    );
    ExitCode::from(status)
}
