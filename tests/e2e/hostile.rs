//! What a trace may hold and must not do.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use veloq_tracegen::gzip;

use crate::support::{Lab, examples, shell_words};

fn trace_with_name(name: &str) -> String {
    let row = |category: &str, ts: u64| {
        json!({
            "ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 2,
            "args": { "correlation": 7, "stream": 7, "device": 0, "External id": 1, "note": name }
        })
    };
    json!({ "traceEvents": [row("cpu_op", 1), row("cuda_runtime", 2), row("kernel", 5), row("user_annotation", 8)] })
        .to_string()
}

#[test]
fn names_steer_no_terminal_and_break_no_table() {
    let lab = Lab::new();
    let name = "a\u{1b}[2J\u{1b}]0;title\u{7}|b\r\n\u{202e}c\u{9b}31m\u{2066}";
    lab.write("evil.pt.trace.json", trace_with_name(name));
    for example in examples() {
        for format in ["table", "md", "json"] {
            let called = lab.run_example(example, "evil.pt.trace.json", &["--format", format]);
            let text = called.stdout + &called.stderr;
            let steers = |c: char| {
                (c.is_control() && c != '\n')
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            };
            assert!(
                !text.contains(steers),
                "{} as {format}: {text:?}",
                example.command
            );
        }
    }
    let answer = lab.run(&["search", "evil.pt.trace.json"]).answer();
    assert_eq!(
        answer["data"]["rows"][0]["name"], name,
        "the exact name for programs"
    );
    let md = lab
        .run(&["search", "evil.pt.trace.json", "--format", "md"])
        .stdout;
    assert!(md.contains(r"\|b"), "{md}");
}

/// Returns a trace with the same text in every place that holds text, beside rows of all kinds.
fn trace_full_of(text: &str) -> String {
    let row = |category: &str, name: &str, ts: u64, args: Value| json!({ "ph": "X", "cat": category, "name": name, "pid": text, "tid": text, "ts": ts, "dur": 4, "args": args });
    let named = |what: &str, key: &str| json!({ "ph": "M", "name": what, "pid": text, "tid": text, "args": { key: text } });
    let launched =
        json!({ "correlation": 7, "stream": 7, "device": 0, "External id": 1, "kind": text, text: text });
    let collective = json!({
        "correlation": 8, "stream": 9, "device": 0, "External id": 2, "Collective name": text, "dtype": text,
        "Process Group Name": text, "Process Group Description": text, "Process Group Ranks": text,
        "In msg nelems": text, "Out msg nelems": 1, "Group size": 2, "Rank": 0
    });
    let frame = format!("/{text}/module.py(1): {text}");
    let events = json!([
        named("process_name", "name"),
        named("process_labels", "labels"),
        named("thread_name", "name"),
        row("user_annotation", "ProfilerStep#1", 1, json!({ "External id": 9 })),
        row("python_function", &frame, 1, json!({ "Python id": 1, "Python parent id": text })),
        row("python_function", &format!("nn.Module: {text}"), 1, json!({ "Python module id": text })),
        row("cpu_op", text, 2, json!({ "External id": 1, "Input Dims": [[text]], "Input type": [text], "Concrete Inputs": [text] })),
        row("cuda_runtime", "cudaLaunchKernel", 3, json!({ "correlation": 7, "External id": 1 })),
        row("kernel", text, 12, launched),
        row("user_annotation", &format!("nccl:{text}"), 20, collective.clone()),
        row("cuda_runtime", "cudaLaunchKernel", 21, json!({ "correlation": 8, "External id": 2 })),
        row("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 25, collective),
        row(text, text, 30, json!({ "file": text, "path": "/etc/passwd", "url": "file:///etc/passwd" })),
        { "ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": text, "tid": text, "ts": 31,
          "args": { "Bytes": 8, "Addr": text, "Device Type": text } },
        { "ph": text, "cat": "cpu_op", "name": text, "pid": 1, "tid": 1, "ts": 32, "dur": 1, "args": text },
        { "ph": "C", "cat": text, "name": text, "pid": 1, "tid": 1, "ts": 33, "args": { text: text } },
    ]);
    json!({
        "schemaVersion": 1, "traceName": text, "displayTimeUnit": text, "cuda_version": text, text: text,
        "deviceProperties": [{ "id": 0, "name": text, "computeMajor": text }],
        "distributedInfo": { "backend": text, "rank": 0, "world_size": 2, "nccl_version": text,
            "pg_config": [{ "pg_name": text, "pg_desc": text, "backend_config": text, "pg_size": 2, "ranks": [0, 1] }] },
        "traceEvents": events
    })
    .to_string()
}

/// Returns calls that show all kinds of text there are.
fn calls(trace: &str) -> Vec<Vec<String>> {
    let line = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut calls: Vec<Vec<String>> = examples()
        .iter()
        .map(|example| shell_words(example.command))
        .map(|words| {
            words
                .into_iter()
                .map(|word| if word == "TRACE" { trace.to_owned() } else { word })
                .collect()
        })
        .collect();
    for axis in [
        "name",
        "type",
        "category",
        "step",
        "rank",
        "device",
        "stream",
        "thread",
        "shape",
        "comm-kind",
        "python-context",
        "python-path",
        "module",
        "launched-by",
    ] {
        calls.push(line(&["veloq", "stats", trace, "--group-by", axis]));
    }
    for words in [
        &["veloq", "summary", trace][..],
        &["veloq", "search", trace, "--type", "all", "--limit", "0"],
        &["veloq", "slices", trace, "--aggregate", "--group-by", "path"],
        &[
            "veloq",
            "inspect",
            trace,
            "cpu_op:6",
            "kernel:8",
            "kernel:11",
            "other:12",
            "memory:13",
            "python:4",
        ],
        &["veloq", "correlate", trace, "kernel:8", "kernel:11", "cpu_op:6"],
        &["veloq", "info", trace],
        &["veloq", "prep", trace],
    ] {
        calls.push(line(words));
    }
    calls
}

const EVIL: &str = "a\u{1b}[2J\u{1b}]0;title\u{7}|b\r\n\u{202e}c\u{9b}31m\u{2066}\u{200f}\u{85}\0";

fn steers(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Names of processes, threads, devices, groups, categories, frames, keys: no text steers a terminal.
#[test]
fn no_text_of_a_trace_steers_a_terminal() {
    let lab = Lab::new();
    let name = "evil.pt.trace.json";
    lab.write(name, trace_full_of(EVIL));
    let mut shown = String::new();
    for call in calls(name) {
        let words: Vec<&str> = call[1..].iter().map(String::as_str).collect();
        for format in ["table", "md", "json"] {
            let called = lab.run(&[&words[..], &["--format", format]].concat());
            let text = called.stdout + &called.stderr;
            assert!(!text.contains(steers), "{} as {format}: {text:?}", called.line);
            assert!(
                matches!(called.status, 0 | 4),
                "{} as {format}: {text}",
                called.line
            );
            if format == "md" {
                shown += &text;
            }
        }
    }
    // The text is shown, and not left out.
    let times = shown.matches("x1b").count();
    assert!(times > 20, "shown {times} times: {shown}");
}

/// What callers type comes back in errors: row ids, globs, flags' values, formats, names of files.
#[test]
fn no_word_of_a_call_steers_a_terminal() {
    let lab = Lab::new();
    let trace = lab.training();
    let evil = EVIL.replace('\0', "");
    let id = format!("kernel:{evil}");
    let other = format!("{evil}.pt.trace.json");
    for words in [
        &["inspect", &trace, &id][..],
        &["inspect", &trace, &evil],
        &["correlate", &trace, &id],
        &["search", &trace, "--name", &evil],
        &["search", &trace, "--name-regex", &format!("({evil}")],
        &["search", &trace, "--type", &evil],
        &["search", &trace, "--sort", &evil],
        &["search", &trace, "--from", &evil],
        &["search", &trace, "--duration", &evil],
        &["search", &trace, &evil],
        &["search", &trace, &format!("--{evil}")],
        &["stats", &trace, "--group-by", &evil],
        &["schema", &evil],
        &["help", &evil],
        &[&evil, &trace],
        &["summary", &other],
        &["clean", &other],
        &["info", &other],
    ] {
        for format in ["table", "md", "json", "csv"] {
            let called = lab.run(&[words, &["--format", format]].concat());
            let text = called.stdout + &called.stderr;
            assert!(!text.contains(steers), "{words:?} as {format}: {text:?}");
            assert!(
                matches!(called.status, 0 | 2 | 3),
                "{words:?} as {format}: {text}"
            );
        }
    }
}

/// In csv no text is a formula, and an apostrophe taken off gives the exact text.
#[test]
fn no_text_is_a_formula_in_csv() {
    let lab = Lab::new();
    let name = "evil.pt.trace.json";
    for first in ["=", "+", "-", "@", "\t=", "\r=", "\n=", "\u{ff1d}", "'"] {
        let text = format!("{first}HYPERLINK(\"http://x\",\"y\")");
        lab.write(name, trace_full_of(&text));
        let mut exact = 0;
        for call in calls(name) {
            let words: Vec<&str> = call[1..].iter().map(String::as_str).collect();
            let called = lab.run(&[&words[..], &["--format", "csv"]].concat());
            let records = csv::Reader::from_reader(called.stdout.as_bytes())
                .into_records()
                .collect::<Result<Vec<_>, _>>()
                .unwrap();
            for cell in records.iter().flat_map(csv::StringRecord::iter) {
                let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}']);
                assert!(
                    !is_formula || cell.parse::<f64>().is_ok(),
                    "{}: {cell:?}",
                    called.line
                );
                exact += usize::from(cell.strip_prefix('\'') == Some(text.as_str()));
            }
        }
        assert!(exact >= 10, "{text:?} stands in {exact} cells");
    }
}

/// Patterns that take backtracking matchers forever, on a name that is a megabyte long.
#[test]
fn patterns_take_linear_time() {
    let lab = Lab::new();
    let name = "long.pt.trace.json";
    lab.write(name, trace_with_name(&"a".repeat(1 << 20)));
    lab.run(&["prep", name]).answer();
    let globs = "*a".repeat(40) + "*b";
    for (flag, pattern, is_refused) in [
        ("--name-regex", "(a+)+$", false),
        ("--name-regex", "(a|a)*b", false),
        ("--name-regex", "(a*)*(a*)*(a*)*c", false),
        ("--name-regex", "a{1000}{1000}{1000}", true),
        ("--name", globs.as_str(), false),
    ] {
        let start = Instant::now();
        let called = lab.run(&["search", name, flag, pattern, "--limit", "1"]);
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{pattern}: {:?}",
            start.elapsed()
        );
        if is_refused {
            called.error(2, "usage.invalid_value");
        } else {
            called.answer();
        }
    }
}

/// Paths in a trace are text: a pipe they name is not opened, which would wait forever, and nothing is
/// written but the tables beside the trace and the pictures that are asked for.
#[cfg(unix)]
#[test]
fn no_path_in_a_trace_is_opened_or_written() {
    let lab = Lab::new();
    let pipe = lab.path().join("pipe.json");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let pipe_path = pipe.to_str().unwrap();
    for (name, text) in [
        ("one.pt.trace.json", pipe_path.to_owned()),
        ("two.pt.trace.json", format!("file://{pipe_path}")),
        ("three.pt.trace.json", "pipe.json".to_owned()),
        (
            "four.pt.trace.json",
            format!("{}/written.json", lab.path().display()),
        ),
        ("five.pt.trace.json", "../written.json".to_owned()),
        ("six.pt.trace.json", "written/\0/x".to_owned()),
    ] {
        lab.write(name, trace_full_of(&text));
        for call in calls(name) {
            let words: Vec<&str> = call[1..].iter().map(String::as_str).collect();
            let mut child = lab
                .command(words.iter().copied())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let start = Instant::now();
            while child.try_wait().unwrap().is_none() {
                if start.elapsed() > Duration::from_secs(30) {
                    child.kill().unwrap();
                    panic!("{call:?} waits for a pipe");
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        // Pictures go where the command line says.
        let is_picture = |file: &String| calls(name).iter().flatten().any(|word| word == file);
        let mut left: Vec<String> = std::fs::read_dir(lab.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|file| file == name || !is_picture(file))
            .collect();
        left.sort();
        let mut expected = [name.to_owned(), format!("{name}.veloq"), "pipe.json".to_owned()];
        expected.sort();
        assert_eq!(left, expected);
        lab.run(&["clean", name]).answer();
        std::fs::remove_file(lab.path().join(name)).unwrap();
    }
}

/// Nothing in the name of a file is read as an address or a pattern.
#[cfg(unix)]
#[test]
fn names_of_files_are_no_patterns() {
    let lab = Lab::new();
    lab.write("x.pt.trace.json", trace_with_name("another"));
    for stem in [
        "*",
        "?",
        "[x]",
        "a b",
        "a#b",
        "a%2fb",
        "%2e%2e",
        "file:x",
        "s3:..",
        "a\nb",
        "a;b",
        "$HOME",
        "\u{202e}x",
        "-x",
        "a'b\"c",
    ] {
        let name = format!("{stem}.pt.trace.json");
        lab.write(&name, trace_with_name("right"));
        let path = format!("./{name}");
        let answer = lab.run(&["search", &path]).answer();
        assert_eq!(answer["data"]["count"], 4, "{stem}");
        assert_eq!(answer["data"]["rows"][0]["name"], "right", "{stem}");
        assert!(
            lab.path().join(format!("{name}.veloq/pytorch")).is_dir(),
            "{stem}"
        );
        lab.run(&["clean", &path]).answer();
        assert!(!lab.path().join(format!("{name}.veloq")).exists(), "{stem}");
        std::fs::remove_file(lab.path().join(&name)).unwrap();
    }
}

/// Nesting and length are hostile too: an answer or an error, never a crash.
#[test]
fn depth_and_size_are_survived() {
    let lab = Lab::new();
    let deep = format!(
        r#"{{"traceEvents":[{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":2,"args":{{"x":{}{}}}}}]}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    lab.write("deep.pt.trace.json", deep);
    lab.write("long.pt.trace.json", trace_with_name(&"n".repeat(1 << 20)));
    lab.write(
        "numbers.pt.trace.json",
        r#"{"traceEvents":[
            {"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1e999,"dur":-5},
            {"ph":"X","cat":"cpu_op","name":"b","pid":-1,"tid":99999999999999999999,"ts":-1,"dur":1},
            {"ph":"X","cat":"cpu_op","name":"c","pid":1.5,"tid":null,"ts":9223372036854775807,"dur":9223372036854775807},
            {"ph":"X","cat":"kernel","name":"d","pid":1,"tid":1,"ts":"5","dur":"x"},
            {"ph":"X","cat":"cpu_op","name":"e","pid":1,"tid":1,"ts":10.0005,"dur":1}
        ]}"#,
    );
    for trace in [
        "deep.pt.trace.json",
        "long.pt.trace.json",
        "numbers.pt.trace.json",
    ] {
        for example in examples() {
            let called = lab.run_example(example, trace, &["--format", "json"]);
            let answer = called.json();
            assert!(
                matches!(called.status, 0 | 3 | 4),
                "{}: {} {answer}",
                called.line,
                called.status
            );
        }
    }
}

/// Half a trace is answered, with a finding; `--strict` refuses it.
#[test]
fn truncated_traces_are_answered_in_part_unless_strict() {
    let lab = Lab::new();
    let row =
        |at: u64| json!({ "ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": at, "dur": 1 });
    let rows: Vec<_> = (0..2_000).map(row).collect();
    let whole = json!({ "schemaVersion": 1, "traceEvents": rows }).to_string();
    lab.write("cut.pt.trace.json", &whole[..whole.len() / 2]);
    let packed = gzip(whole.as_bytes()).unwrap();
    lab.write("cut.pt.trace.json.gz", &packed[..packed.len() / 2]);
    for name in ["cut.pt.trace.json", "cut.pt.trace.json.gz"] {
        let answer = lab.run(&["summary", name]).answer();
        let trust = &answer["data"]["auxiliary"]["trust"];
        assert_eq!(trust["verdict"], "degraded", "{name}: {trust}");
        assert!(trust.to_string().contains("input.truncated"), "{name}: {trust}");
        let count = answer["data"]["rows"][0]["event_count"].as_u64().unwrap();
        assert!((1..2_000).contains(&count), "{name}: {count}");
        lab.run(&["summary", name, "--strict"])
            .error(3, "input.truncated");
        lab.run(&["clean", name]).answer();
        lab.run(&["summary", name, "--strict"])
            .error(3, "input.truncated");
    }
}

/// Gzip files may be several members behind each other; parallel packers write them so.
#[test]
fn members_of_gzip_are_one_text() {
    let lab = Lab::new();
    let whole = trace_with_name("op");
    let (front, back) = whole.as_bytes().split_at(whole.len() / 2);
    lab.write(
        "members.pt.trace.json.gz",
        [gzip(front).unwrap(), gzip(back).unwrap()].concat(),
    );
    lab.write("plain.pt.trace.json", &whole);
    let rows = |name: &str| lab.run(&["search", name]).answer()["data"].clone();
    assert_eq!(rows("members.pt.trace.json.gz"), rows("plain.pt.trace.json"));
    // The first bytes tell what is packed, not the name.
    lab.write("packed.pt.trace.json", gzip(whole.as_bytes()).unwrap());
    assert_eq!(rows("packed.pt.trace.json"), rows("plain.pt.trace.json"));
}
