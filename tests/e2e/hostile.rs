//! What a trace may hold and must not do.

use serde_json::json;
use veloq_tracegen::gzip;

use crate::support::{Lab, examples};

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

#[test]
fn names_are_no_formulas_in_csv() {
    let lab = Lab::new();
    lab.write(
        "evil.pt.trace.json",
        trace_with_name("=HYPERLINK(\"http://x\",\"y\")"),
    );
    let csv = lab
        .run(&["search", "evil.pt.trace.json", "--format", "csv"])
        .stdout;
    let records: Vec<csv::StringRecord> = csv::Reader::from_reader(csv.as_bytes())
        .records()
        .map(|record| record.unwrap())
        .collect();
    assert!(!records.is_empty());
    for record in &records {
        assert!(record.iter().all(|field| !field.starts_with('=')), "{record:?}");
        assert!(
            record
                .iter()
                .any(|field| field == "'=HYPERLINK(\"http://x\",\"y\")"),
            "{record:?}"
        );
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
