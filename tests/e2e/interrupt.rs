//! Ctrl-C while a trace is opened: the call ends soon, says nothing, and leaves nothing.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use veloq_tracegen::{Size, Spec, generate};

use crate::support::Lab;

#[test]
fn an_interrupted_call_leaves_nothing_and_says_nothing() {
    let lab = Lab::new();
    let name = "large.pt.trace.json";
    let spec = Spec {
        size: Size::Events(300_000),
        ..Spec::default()
    };
    let mut file = BufWriter::new(File::create(lab.path().join(name)).unwrap());
    generate(&spec, &mut file).unwrap();
    file.flush().unwrap();
    let folder = lab.path().join(format!("{name}.veloq"));
    for signal in ["-INT", "-TERM"] {
        let call = lab
            .command(vec!["summary", name])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        // The folder appears when the building begins.
        while !folder.exists() && begun.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(20));
        let killed = Command::new("kill")
            .args([signal, &call.id().to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
        let asked = Instant::now();
        let output = call.wait_with_output().unwrap();
        assert!(asked.elapsed() < Duration::from_secs(20), "{signal}");
        assert_eq!(output.status.code(), Some(130), "{signal}");
        let said = [output.stdout, output.stderr].concat();
        assert_eq!(String::from_utf8_lossy(&said), "", "{signal}");
        assert!(!folder.exists(), "{signal}: something was left behind");
    }
    let called = lab.run(&["summary", name]);
    let count = called.answer()["data"]["rows"][0]["event_count"].as_u64();
    assert!(count > Some(100_000), "{count:?}");
}
