//! Wrong calls: the status, the code, and the words that help.

use crate::support::{Lab, called, pytorch};

#[test]
fn usage_errors_name_what_was_meant() {
    let lab = Lab::new();
    let trace = lab.training();
    for (words, code, hint) in [
        (&["serach", &trace][..], "usage.unknown_verb", "`search`"),
        (&["pytorch", "serach", &trace], "usage.unknown_verb", "`search`"),
        (&["help", "serach"], "usage.unknown_verb", "`search`"),
        (&["help", "pytorch", "serach"], "usage.unknown_verb", "`search`"),
        (&["sorces"], "usage.unknown_verb", "`sources`"),
        (
            &[&trace],
            "usage.unknown_verb",
            "`veloq summary cuda_training.pt.trace.json.gz`",
        ),
        (
            &["pytorch", &trace],
            "usage.unknown_verb",
            "`veloq pytorch summary cuda_training.pt.trace.json.gz`",
        ),
        (&["pytorch", "--quiet"], "usage.missing_verb", "summary"),
        (&["--quiet"], "usage.missing_verb", "sources"),
        (
            &["search", &trace, "--nmae", "x"],
            "usage.unknown_flag",
            "`--name`",
        ),
        (&["--frmat", "csv", "sources"], "usage.unknown_flag", "`--format`"),
        (
            &["search"],
            "usage.missing_argument",
            "`veloq search [OPTIONS] <TRACE>`",
        ),
        (&["pytorch", "search"], "usage.missing_argument", "<TRACE>"),
        (&["search", &trace, "--name"], "usage.missing_argument", "--help"),
        (
            &["sources", "--format", "tabel"],
            "usage.invalid_value",
            "`table`",
        ),
        (&["sources", "--threads", "0"], "usage.invalid_value", ""),
        (&["sources", "more"], "usage.unexpected_argument", "veloq sources"),
        (
            &["prep", &trace, "--status", "--force"],
            "usage.conflicting_flags",
            "",
        ),
        (
            &["pytorch", "schema", "sumary"],
            "usage.unknown_target",
            "`summary`",
        ),
        (
            &["schema", "pytorch.sumary"],
            "usage.unknown_target",
            "`pytorch.summary`",
        ),
        (&["completions", "tcsh"], "usage.invalid_value", "bash"),
    ] {
        let error = lab.run(words).error(2, code);
        assert!(
            error["hint"].as_str().unwrap_or_default().contains(hint),
            "{words:?}: {error}"
        );
        assert!(
            !error["message"].as_str().unwrap().ends_with('.'),
            "{words:?}: {error}"
        );
    }
}

#[test]
fn unclaimed_names_need_the_source() {
    let lab = Lab::new();
    std::fs::rename(lab.path().join(lab.training()), lab.path().join("my run.json.gz")).unwrap();
    let error = lab
        .run(&["search", "my run.json.gz", "--limit", "3"])
        .error(2, "usage.source_needed");
    let hint = error["hint"].as_str().unwrap();
    assert!(
        hint.contains("`veloq pytorch search 'my run.json.gz' --limit 3`"),
        "{hint}"
    );
    lab.run(&["pytorch", "search", "my run.json.gz", "--limit", "3"])
        .answer();
}

#[test]
fn inputs_that_are_no_traces_are_input_errors() {
    let lab = Lab::new();
    lab.write("empty.json", "");
    lab.write("blank.json", " \n");
    lab.write("prose.json", "this is no JSON at all");
    lab.write("number.json", "42");
    lab.write("list.json", "[1, 2, 3]");
    lab.write("object.json", "{\"a\": 1}");
    lab.write("empty.json.gz", "");
    lab.write("not_gzip.json.gz", "plain text under a wrong name");
    lab.write("broken_gzip.json.gz", b"\x1f\x8b\x08\x00");
    lab.write("binary.json", [0_u8, 159, 146, 150].repeat(64));
    for name in [
        "empty.json",
        "blank.json",
        "prose.json",
        "number.json",
        "list.json",
        "object.json",
        "empty.json.gz",
        "not_gzip.json.gz",
        "broken_gzip.json.gz",
        "binary.json",
    ] {
        for verb in pytorch().verbs() {
            let example = verb.examples.first().unwrap();
            let called = lab.run_example(example, name, &["--format", "json"]);
            let error = called.json();
            let code = error["error"]["code"].as_str().unwrap_or("answered");
            assert!(
                called.status == 3 && code.starts_with("input."),
                "{}: {error}",
                called.line
            );
            assert_eq!(error["trace"]["path"], name, "{}", called.line);
        }
    }
    lab.write("trace.txt", "{}");
    lab.run(&["pytorch", "summary", "trace.txt"])
        .error(3, "input.not_accepted");
}

#[test]
fn missing_files_name_their_neighbours() {
    let lab = Lab::new();
    lab.training();
    for words in [
        &["search", "cuda_trainin.pt.trace.json.gz"][..],
        &["pytorch", "search", "cuda_trainin.pt.trace.json.gz"],
        &["info", "cuda_trainin.pt.trace.json.gz"],
    ] {
        let error = lab.run(words).error(3, "input.not_found");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains("`cuda_training.pt.trace.json.gz`"), "{hint}");
    }
    let error = lab
        .run(&["search", "no/such/folder/x.pt.trace.json"])
        .error(3, "input.not_found");
    assert!(error["hint"].is_null());
}

#[test]
fn directories_name_the_traces_in_them() {
    let lab = Lab::new();
    let inside = lab.path().join("runs");
    std::fs::create_dir(&inside).unwrap();
    for words in [&["search", "runs"][..], &["pytorch", "search", "runs"]] {
        let error = lab.run(words).error(3, "input.directory");
        assert!(
            error["hint"].as_str().unwrap().contains("No trace was found"),
            "{error}"
        );
    }
    let trace = lab.training();
    std::fs::copy(lab.path().join(&trace), inside.join(&trace)).unwrap();
    std::fs::write(inside.join("notes.json"), "{}").unwrap();
    let error = lab.run(&["search", "runs"]).error(3, "input.directory");
    let hint = error["hint"].as_str().unwrap();
    assert!(
        hint.contains("cuda_training.pt.trace.json.gz") && !hint.contains("notes"),
        "{hint}"
    );
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_never_opened() {
    let lab = Lab::new();
    let path = lab.path().join("pipe.pt.trace.json");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    lab.run(&["search", "pipe.pt.trace.json"])
        .error(3, "input.not_a_file");
}

#[test]
fn text_formats_put_errors_on_stderr() {
    let lab = Lab::new();
    for format in ["csv", "table", "md"] {
        let called = lab.run(&["serach", "x", "--format", format]);
        assert_eq!((called.status, called.stdout.as_str()), (2, ""), "{format}");
        assert!(
            called.stderr.starts_with("error: ") && called.stderr.contains("[usage.unknown_verb]"),
            "{}",
            called.stderr
        );
        assert!(called.stderr.contains("hint: "), "{}", called.stderr);
    }
    let words = ["serach"];
    let called = called(lab.command(words).env("VELOQ_FORMAT", "table"), &words);
    assert_eq!((called.status, called.stdout.as_str()), (2, ""));
}

#[test]
fn errors_steer_no_terminal() {
    let lab = Lab::new();
    let called = lab.run(&["summary", "\u{1b}[2Jx\u{202e}.pt.trace.json", "--format", "table"]);
    assert_eq!(called.status, 3);
    assert!(
        called.stderr.contains(r"\x1b[2Jx\u{202e}.pt.trace.json"),
        "{}",
        called.stderr
    );
    let json = lab.run(&["summary", "\u{9b}2Jx.pt.trace.json"]);
    assert!(!json.stdout.contains('\u{9b}'), "{}", json.stdout);
    json.error(3, "input.not_found");
}

/// Row ids that do not exist are answers, not errors.
#[test]
fn row_ids_that_are_not_there_are_answered() {
    let lab = Lab::new();
    let trace = lab.training();
    for verb in ["inspect", "correlate"] {
        if pytorch().verbs().iter().all(|spec| spec.name != verb) {
            continue;
        }
        let answer = lab.run(&[verb, &trace, "kernel:999999"]).answer();
        assert_eq!(answer["data"]["count"], 1, "{verb}");
        assert!(
            answer["data"]["rows"][0]["reason"].is_string(),
            "{verb}: {answer}"
        );
        let error = lab.run(&[verb, &trace, "kernal:5"]).json();
        let text = error.to_string();
        assert!(text.contains("kernel:5"), "{verb}: {text}");
        lab.run(&[verb, &trace]).error(2, "usage.missing_argument");
    }
}
