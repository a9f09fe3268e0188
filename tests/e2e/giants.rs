//! Traces that are large in one way: a string, an event, nesting of names, compressed data that unpacks to far
//! more than any trace. Memory stays bounded, and every other event is intact.
//!
//! The tests take a tenth of the size at which such traces were met; `cargo test --release --test e2e giants --
//! --ignored` takes all of it (4 GB of disk in the temporary folder, and minutes).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Duration;

use serde_json::{Value, json};
use veloq_tracegen::gzip_writer;

use crate::support::Lab;
use crate::support::watch::run_watched;

/// Longer than any of these takes, even where it is not optimised.
const PATIENCE: Duration = Duration::from_secs(900);

/// What an element may take, and a piece of the text.
const MEGABYTE: usize = 1 << 20;

const HEAD: &str = r#"{"schemaVersion":1,"traceEvents":["#;

fn element(at: u64) -> String {
    json!({ "ph": "X", "cat": "cpu_op", "name": format!("op{at}"), "pid": 1, "tid": 1, "ts": 10 * at, "dur": 5 })
        .to_string()
}

/// Writes the first element, what `write` writes in place of the second one, and the third.
fn write_trace(out: impl Write, write: impl FnOnce(&mut dyn Write)) {
    let mut out = BufWriter::with_capacity(MEGABYTE, out);
    write!(out, "{HEAD}{},", element(0)).unwrap();
    write(&mut out);
    write!(out, "{}]}}", element(2)).unwrap();
    out.flush().unwrap();
}

/// Runs a call within a bound of memory, and returns what it answers.
fn ask(lab: &Lab, words: &[&str], most_mb: u64) -> Value {
    let (called, peak_kb) = run_watched(lab, words, PATIENCE).unwrap();
    let answer = called.json();
    assert!(peak_kb < most_mb * 1000, "{}: {peak_kb} kB", called.line);
    answer
}

/// Checks that the elements around a passed over one are found.
fn assert_neighbours(lab: &Lab, name: &str, most_mb: u64, third: &str) {
    let answer = ask(lab, &["search", name, "--type", "all"], most_mb);
    let rows = answer["data"]["rows"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    let found: Vec<&Value> = rows.iter().map(|row| &row["row_id"]).collect();
    assert_eq!(found, ["cpu_op:0", third], "{name}");
    assert_eq!(rows[1]["name"], "op2", "{name}");
    assert_eq!(rows[1]["start_ns"], 20_000, "{name}");
}

/// One string, and one event of many parts.
fn large_elements(megabytes: usize) {
    let lab = Lab::new();
    for name in ["string.pt.trace.json", "event.pt.trace.json"] {
        let (open, part, close) = if name.starts_with("string") {
            (r#"{"ph":"X","name":""#, "n", r#""},"#)
        } else {
            (
                r#"{"ph":"X","name":"x","args":{"x":["#,
                r#"{"a":1,"b":"c"},"#,
                "1]}},",
            )
        };
        let part = part.repeat(MEGABYTE / part.len());
        write_trace(File::create(lab.path().join(name)).unwrap(), |out| {
            write!(out, "{open}").unwrap();
            for _ in 0..=megabytes {
                out.write_all(part.as_bytes()).unwrap();
            }
            write!(out, "{close}").unwrap();
        });
        assert_neighbours(&lab, name, 300, "cpu_op:2");
        let summary = ask(&lab, &["summary", name], 300);
        let finding = &summary["data"]["auxiliary"]["trust"]["findings"][0];
        assert_eq!(finding["code"], "input.skipped_events");
        assert!(
            finding["detail"]
                .as_str()
                .unwrap()
                .contains("larger than any event"),
            "{finding}"
        );
        let place = format!("at byte {}, element 1:", HEAD.len() + element(0).len() + 1);
        let error = ask(&lab, &["summary", name, "--strict"], 300)["error"].clone();
        assert_eq!(error["code"], "input.damaged");
        assert!(error["message"].as_str().unwrap().contains(&place), "{error}");
    }
}

/// Metadata rows: alike, and each naming a thread of its own.
fn many_names(rows: u64) {
    let lab = Lab::new();
    for (name, is_alike) in [("alike.pt.trace.json", true), ("names.pt.trace.json", false)] {
        write_trace(File::create(lab.path().join(name)).unwrap(), |out| {
            for at in 0..rows {
                let thread = if is_alike { 1 } else { at };
                let row = format!(
                    r#"{{"ph":"M","name":"thread_name","pid":1,"tid":{thread},"args":{{"name":"thread {thread}"}}}},"#
                );
                out.write_all(row.as_bytes()).unwrap();
            }
        });
        assert_neighbours(&lab, name, 700, &format!("cpu_op:{}", rows + 1));
        let summary = ask(&lab, &["summary", name], 700);
        assert_eq!(summary["data"]["rows"][0]["event_count"], 2);
    }
}

/// Compressed data that unpacks a thousandfold: blank space, one string, events as small as they get.
fn bombs(gigabytes: usize) {
    let lab = Lab::new();
    for (name, open, part, close, is_refused) in [
        ("blank.pt.trace.json.gz", "", " ", "", gigabytes > 2),
        (
            "string.pt.trace.json.gz",
            r#"{"ph":"X","name":""#,
            "n",
            r#""},"#,
            gigabytes > 2,
        ),
        (
            "events.pt.trace.json.gz",
            "",
            r#"{"ph":"X","ts":1,"dur":1},"#,
            "",
            true,
        ),
    ] {
        let part = part.repeat(MEGABYTE / part.len());
        write_trace(gzip_writer(File::create(lab.path().join(name)).unwrap()), |out| {
            write!(out, "{open}").unwrap();
            for _ in 0..gigabytes * 1024 {
                out.write_all(part.as_bytes()).unwrap();
            }
            write!(out, "{close}").unwrap();
        });
        if is_refused {
            let error = ask(&lab, &["summary", name], 1_000)["error"].clone();
            assert_eq!(error["code"], "limit.unpacked_size", "{name}");
            assert!(error["hint"].is_string(), "{error}");
            let beside = lab.path().join(format!("{name}.veloq"));
            assert!(!beside.exists(), "{name}: what was built is left behind");
        }
    }
}

#[test]
fn large_elements_are_passed_over() {
    large_elements(70);
}

#[test]
#[ignore = "writes files of 1 GB; see the head of this file"]
fn elements_of_a_gigabyte_are_passed_over() {
    large_elements(1024);
}

#[test]
fn many_names_are_bounded() {
    many_names(1_200_000);
}

#[test]
#[ignore = "writes files of 1 GB; see the head of this file"]
fn ten_million_names_are_bounded() {
    many_names(10_000_000);
}

#[test]
#[ignore = "packs and unpacks gigabytes; see the head of this file"]
fn bombs_are_refused() {
    bombs(8);
}
