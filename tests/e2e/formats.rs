//! Every answer in every format.

use crate::support::{Called, Lab, called, examples};

const TEXT_FORMATS: [&str; 3] = ["csv", "table", "md"];

fn steers(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_quiet_success(called: &Called) {
    assert_eq!(
        (called.status, called.stderr.as_str()),
        (0, ""),
        "{}\n{}",
        called.line,
        called.stdout
    );
}

#[test]
fn every_example_has_every_format() {
    let lab = Lab::new();
    let trace = lab.training();
    for example in examples() {
        let json = lab.run_example(example, &trace, &["--format", "json"]).answer();
        let rows = json["data"]["rows"].as_array().unwrap().len();
        let [csv, table, md] = TEXT_FORMATS.map(|format| {
            let called = lab.run_example(example, &trace, &["--format", format]);
            is_quiet_success(&called);
            called.stdout
        });
        let mut reader = csv_lines(&csv);
        let header = reader.remove(0);
        assert_eq!(reader.len(), rows, "{}: {csv}", example.command);
        assert!(
            header.iter().any(|name| name == "key" || name == "row_id"),
            "{}: {header:?}",
            example.command
        );
        let closing = format!("of {}", grouped(json["data"]["total_matched"].as_u64().unwrap()));
        assert!(
            table.contains(&closing) && md.contains(&closing),
            "{}: {table}",
            example.command
        );
        for text in [&table, &md] {
            assert!(!text.contains(steers), "{}: {text}", example.command);
        }
        let pretty = lab.run_example(example, &trace, &["--format", "json", "--pretty"]);
        assert!(pretty.stdout.lines().count() > 5, "{}", example.command);
        assert_eq!(pretty.parsed(), json, "{}", example.command);
    }
}

/// Returns the records of a csv text; each has as many fields as the first.
fn csv_lines(text: &str) -> Vec<Vec<String>> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes())
        .records()
        .map(|record| record.unwrap().iter().map(str::to_owned).collect())
        .collect()
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Numbers in csv are those of the json answer, digit by digit.
#[test]
fn csv_repeats_the_numbers_of_json() {
    let lab = Lab::new();
    let trace = lab.training();
    let json = lab.run(&["search", &trace, "--type", "kernel"]).answer();
    let csv = lab.run(&["search", &trace, "--type", "kernel", "--format", "csv"]);
    let mut records = csv_lines(&csv.stdout);
    let header = records.remove(0);
    assert!(!records.is_empty());
    for (record, row) in records.iter().zip(json["data"]["rows"].as_array().unwrap()) {
        for (name, field) in header.iter().zip(record) {
            match &row[name] {
                serde_json::Value::String(text) => assert_eq!(field, text, "{name}"),
                // A yes or no that is left out of json is a no.
                serde_json::Value::Null => assert!(matches!(field.as_str(), "" | "false"), "{name}: {field}"),
                other => assert_eq!(*field, other.to_string(), "{name}"),
            }
        }
    }
}

#[test]
fn the_variable_sets_the_default_and_the_flag_wins() {
    let lab = Lab::new();
    let run = |words: &[&str], format: &str| {
        called(
            lab.command(words.iter().copied()).env("VELOQ_FORMAT", format),
            words,
        )
    };
    assert!(run(&["sources"], "csv").stdout.starts_with("key,name,version"));
    assert!(run(&["sources"], "").stdout.starts_with('{'));
    run(&["sources", "--format", "json"], "csv").answer();
    run(&["--format", "json", "sources"], "csv").answer();
    // The last one counts, as with most tools.
    run(&["sources", "--format", "csv", "--format", "json"], "md").answer();
    let error = run(&["sources"], "tabel").error(2, "usage.invalid_value");
    assert!(error["hint"].as_str().unwrap().contains("`table`"), "{error}");
}

#[test]
fn tables_keep_to_the_width_they_are_given() {
    let lab = Lab::new();
    let trace = lab.training();
    let words = ["search", &trace, "--type", "kernel", "--format", "table"];
    let width = |columns: &str| {
        let called = called(lab.command(words).env("COLUMNS", columns), &words);
        let rows = called
            .stdout
            .lines()
            .take_while(|line| !line.starts_with("showing"));
        rows.map(|line| line.chars().count()).max().unwrap()
    };
    assert!(width("100") <= 100);
    assert!(width("300") > 100, "names are whole when there is room");
}

#[test]
fn help_and_version_are_answers() {
    let lab = Lab::new();
    for words in [
        &[][..],
        &["--help"],
        &["-h"],
        &["help"],
        &["pytorch", "--help"],
        &["clean", "--help"],
    ] {
        let called = lab.run(words);
        is_quiet_success(&called);
        assert!(called.stdout.contains("Usage: veloq"), "{}", called.stdout);
        assert!(
            !called.stdout.contains('\u{1b}'),
            "{}: colour without a terminal",
            called.line
        );
    }
    let overview = lab.run(&[]);
    assert_eq!(overview.stdout, lab.run(&["help", "--format", "table"]).stdout);
    let of_source = lab.run(&["pytorch"]);
    is_quiet_success(&of_source);
    assert!(of_source.stdout.contains("collectives"), "{}", of_source.stdout);
    let of_verb = lab.run(&["help", "pytorch", "search"]);
    assert_eq!(of_verb.stdout, lab.run(&["pytorch", "search", "--help"]).stdout);
    let called = lab.run(&["--version"]);
    is_quiet_success(&called);
    assert!(called.stdout.starts_with("veloq 0."), "{}", called.stdout);
}
