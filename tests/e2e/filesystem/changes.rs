//! Tables and traces that change: damaged, replaced, of another time, still growing.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{Guarded, QUESTIONS, skipped, tree, undisturbed, without_place, words};
use crate::support::Lab;

/// Tables cut, emptied, lengthened, flipped or gone: built anew.
#[test]
fn damaged_tables_are_built_anew() {
    let guarded = Guarded::new();
    guarded.assert_right("first");
    let names: Vec<PathBuf> = tree(&guarded.tables()).into_keys().collect();
    assert!(names.len() >= 6, "{names:?}");
    for (number, name) in names.iter().enumerate() {
        let path = guarded.tables().join(name);
        let whole = fs::read(&path).unwrap();
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            bytes
        };
        let mut cases = vec![
            ("emptied", Vec::new()),
            ("cut", whole[..whole.len() / 2].to_vec()),
            ("cut by one", whole[..whole.len() - 1].to_vec()),
            ("lengthened", [&whole[..], b"\0"].concat()),
        ];
        let places = [
            0,
            5,
            whole.len() / 3,
            whole.len() / 2,
            whole.len() - 9,
            whole.len() - 1,
        ];
        cases.extend(places.map(|at| ("flipped", flipped(at))));
        for (case, bytes) in cases {
            let what = format!("{} {case}", name.display());
            fs::write(&path, bytes).unwrap();
            let at = number % QUESTIONS.len();
            guarded.assert_answered(at, &guarded.run(QUESTIONS[at]), &what);
        }
        fs::remove_file(&path).unwrap();
        guarded.assert_right(&format!("{} removed", name.display()));
    }
    guarded.assert_tidy("after all");
}

/// Returns a trace of a fixed size whose rows have a given name.
fn trace_of(name: &str) -> Vec<u8> {
    let row = |at: u32| json!({ "ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10 * at, "dur": 5 });
    let rows: Vec<Value> = (0..200).map(row).collect();
    json!({ "schemaVersion": 1, "traceEvents": rows })
        .to_string()
        .into_bytes()
}

#[test]
fn a_trace_replaced_under_its_name_size_and_times_is_another() {
    let lab = Lab::new();
    let (name, before, after) = ("run.pt.trace.json", trace_of("aten::old"), trace_of("aten::new"));
    assert_eq!(before.len(), after.len());
    let path = lab.path().join(name);
    let answers = undisturbed(name, &after);
    for how in ["written over", "renamed over"] {
        lab.write(name, &before);
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(
            lab.run(&["search", name]).answer()["data"]["rows"][0]["name"],
            "aten::old"
        );
        if how == "written over" {
            fs::write(&path, &after).unwrap();
        } else {
            fs::write(lab.path().join("other"), &after).unwrap();
            fs::rename(lab.path().join("other"), &path).unwrap();
        }
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(modified)
            .unwrap();
        for (question, expected) in QUESTIONS.iter().zip(&answers) {
            let called = lab.run(&words(question, name));
            assert_eq!(without_place(&called.stdout), *expected, "{how}");
        }
        assert!(fs::read(&path).unwrap() == after, "{how}");
    }
}

/// Clocks that go wrong: files from the future, from long ago, and from before the epoch.
#[test]
fn no_clock_is_trusted() {
    let guarded = Guarded::new();
    guarded.assert_right("first");
    let (now, year) = (SystemTime::now(), Duration::from_secs(365 * 86_400));
    let times = [now + 50 * year, now - 50 * year, SystemTime::UNIX_EPOCH - year];
    let set = |path: &Path, time| {
        File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(time)
    };
    for time in times {
        if set(&guarded.input(), time).is_err() {
            skipped("the file system takes no such time");
            continue;
        }
        guarded.assert_right("the trace's time");
        for file in tree(&guarded.tables()).into_keys() {
            set(&guarded.tables().join(file), time).unwrap();
        }
        guarded.assert_right("the tables' times");
        guarded.run(&["clean"]).answer();
        guarded.assert_right("built then");
    }
    guarded.assert_tidy("after all");
}

/// A trace that is still being written: an answer about a part of it or an error, and nothing of it is kept.
#[test]
fn a_trace_that_grows_is_never_taken_for_whole() {
    let lab = Lab::new();
    let name = "growing.pt.trace.json";
    let path = lab.path().join(name);
    let rows: Vec<String> = (0..40_000)
        .map(|at| {
            json!({ "ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 10 * at, "dur": 5 })
                .to_string()
        })
        .collect();
    let whole = format!("{{\"schemaVersion\":1,\"traceEvents\":[{}]}}", rows.join(","));
    let answers = undisturbed(name, whole.as_bytes());
    let start = whole.len() / 4;
    fs::write(&path, &whole[..start]).unwrap();
    let (ask, asked) = std::sync::mpsc::channel();
    let writer = thread::spawn({
        let (path, rest) = (path.clone(), whole.as_bytes()[start..].to_vec());
        move || {
            let mut file = File::options().append(true).open(path).unwrap();
            for part in rest.chunks(rest.len() / 100) {
                file.write_all(part).unwrap();
                ask.send(()).unwrap();
                thread::sleep(Duration::from_millis(20));
            }
        }
    });
    let mut last = 0;
    while asked.recv().is_ok() {
        let called = lab.run(&["summary", name]);
        let answer = called.parsed();
        if called.status == 0 {
            let count = answer["data"]["rows"][0]["event_count"].as_u64().unwrap();
            let findings = answer["data"]["auxiliary"]["trust"]["findings"].to_string();
            assert!(count >= last, "{count} after {last}");
            assert!(
                count == 40_000 || findings.contains("input.truncated"),
                "{count}: {findings}"
            );
            last = count;
        } else {
            assert_eq!(
                (called.status, answer["error"]["code"].as_str()),
                (3, Some("input.changed"))
            );
        }
        while asked.try_recv().is_ok() {}
    }
    writer.join().unwrap();
    for (question, expected) in QUESTIONS.iter().zip(&answers) {
        assert_eq!(without_place(&lab.run(&words(question, name)).stdout), *expected);
    }
    assert!(fs::read(&path).unwrap() == whole.as_bytes());
}
