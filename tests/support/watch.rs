//! Calls whose time and memory are looked at while they run.

use std::fs::{self, File};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Called, Lab};

/// How often a call is looked at. Memory that is taken and given back between two looks goes unseen: in this
/// time, that is a few megabytes.
const LOOK: Duration = Duration::from_millis(2);

/// Runs a call and returns what it printed, and its peak of memory in kilobytes; zero where nobody tells.
///
/// A call that takes longer than `patience` is ended, and is a fault.
pub(crate) fn run_watched(lab: &Lab, words: &[&str], patience: Duration) -> Result<(Called, u64), String> {
    let line = format!("veloq {}", words.join(" "));
    // Files take any amount of output without anyone reading it meanwhile.
    let [stdout, stderr] = ["stdout", "stderr"].map(|name| lab.path().join(name));
    let mut child = lab
        .command(words.iter().copied())
        .stdout(File::create(&stdout).unwrap())
        .stderr(File::create(&stderr).unwrap())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let mut peak_kb = 0;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        // Not at once: for an instant, a new process shows the memory of the one that started it.
        sleep(LOOK);
        peak_kb = peak_kb.max(peak_of(child.id()));
        if start.elapsed() > patience {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err(format!("{line}: no end after {patience:?}"));
        }
    };
    let read = |path: &Path| {
        String::from_utf8(fs::read(path).unwrap()).map_err(|_| format!("{line}: not UTF-8 is printed"))
    };
    let called = Called {
        status: status.code().unwrap_or(-1),
        stdout: read(&stdout)?,
        stderr: read(&stderr)?,
        line,
    };
    Ok((called, peak_kb))
}

/// Returns the most memory that a process has had resident so far, in kilobytes.
fn peak_of(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmHWM:")?
                .strip_suffix("kB")?
                .trim()
                .parse()
                .ok()
        })
        .unwrap_or(0)
}
