//! Damaged and odd traces: one row a kind of damage. Every other event is intact, with its id and its time;
//! the damage is counted and told; `--strict` refuses it and says where it is.

mod cases;
mod files;

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::Lab;

/// Elements of the traces here, and the one that is damaged.
const ELEMENTS: usize = 6;
const DAMAGED: usize = 3;

const NAME: &str = "run.pt.trace.json";

/// Returns the element at an index: it starts 10 µs after the one before and lasts 5 µs.
fn element(at: usize) -> String {
    timed(at, &(1_000 + 10 * at).to_string(), "5")
}

/// Returns an element with a start and a duration as given.
fn timed(at: usize, ts: &str, dur: &str) -> String {
    format!(
        r#"{{"ph":"X","cat":"cpu_op","name":"op{at}","pid":1,"tid":1,"ts":{ts},"dur":{dur},"args":{{"External id":{at}}}}}"#
    )
}

/// Returns the damaged element with a name as it is to stand in the file.
fn named(raw: &str) -> String {
    element(DAMAGED).replace("op3", raw)
}

/// Returns the damaged element with args as they are to stand in the file.
fn with_args(raw: &str) -> String {
    element(DAMAGED).replace(r#"{"External id":3}"#, raw)
}

const HEAD: &str = r#"{"schemaVersion":1,"traceEvents":["#;

fn trace_of(elements: &[String]) -> String {
    format!("{HEAD}{}]}}", elements.join(",\n"))
}

/// Returns a trace whose elements are intact but one.
fn trace_with(damaged: &str) -> String {
    let elements: Vec<String> = (0..ELEMENTS)
        .map(|at| {
            if at == DAMAGED {
                damaged.to_owned()
            } else {
                element(at)
            }
        })
        .collect();
    trace_of(&elements)
}

fn intact() -> String {
    trace_of(&(0..ELEMENTS).map(element).collect::<Vec<_>>())
}

/// What becomes of the damaged element: its name, start and duration, or `None` if it is passed over.
type Row = Option<(Value, Value, Value)>;

fn whole_row() -> Row {
    Some((json!("op3"), json!(30_000), json!(5_000)))
}

fn row_named(name: &str) -> Row {
    Some((json!(name), json!(30_000), json!(5_000)))
}

/// A damage, and what is to be told of it.
struct Case {
    what: &'static str,
    text: Vec<u8>,
    row: Row,
    /// The findings that are told, each of one element or row.
    findings: &'static [&'static str],
    /// Where `--strict` places the damage: its byte offset, and the element's index. `None` if nothing is
    /// wrong.
    place: Option<(usize, Option<usize>)>,
}

/// A case of a damaged element.
fn case(what: &'static str, damaged: &str, row: Row, findings: &'static [&'static str]) -> Case {
    let text = trace_with(damaged);
    let offset = HEAD.len() + (0..DAMAGED).map(|at| element(at).len() + 2).sum::<usize>();
    Case {
        what,
        text: text.into_bytes(),
        row,
        findings,
        place: (!findings.is_empty()).then_some((offset, Some(DAMAGED))),
    }
}

/// A case of a text that is damaged around the elements, at an offset.
fn around(what: &'static str, text: &str, finding: &'static [&'static str], offset: usize) -> Case {
    Case {
        what,
        text: text.as_bytes().to_vec(),
        row: whole_row(),
        findings: finding,
        place: Some((offset, None)),
    }
}

/// A case of an odd text in which nothing is wrong.
fn odd(what: &'static str, text: impl Into<Vec<u8>>, row: Row) -> Case {
    Case {
        what,
        text: text.into(),
        row,
        findings: &[],
        place: None,
    }
}

/// Returns what search is to list.
fn expected_rows(row: &Row) -> Vec<Value> {
    let rows = (0..ELEMENTS).filter_map(|at| {
        let id = format!("cpu_op:{at}");
        if at != DAMAGED {
            return Some(json!([id, format!("op{at}"), 10_000 * at, 5_000]));
        }
        let (name, start, duration) = row.as_ref()?;
        Some(json!([id, name, start, duration]))
    });
    rows.collect()
}

/// The codes that tell of damage: those about what the rows mean together do not matter here.
fn is_of_input(finding: &&Value) -> bool {
    let code = finding["code"].as_str().unwrap();
    code.starts_with("input.") || code == "time.invalid_rows"
}

fn check(lab: &Lab, case: &Case) -> Result<(), String> {
    lab.write(NAME, &case.text);
    let summary = lab.run(&["summary", NAME]).answer();
    let search = lab
        .run(&["search", NAME, "--type", "all", "--limit", "0"])
        .answer();
    let rows: Vec<Value> = search["data"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["row_id"], row["name"], row["start_ns"], row["duration_ns"]]))
        .collect();
    let mut faults = String::new();
    let mut expect = |what: &str, found: Value, expected: Value| {
        if found != expected {
            let _ = writeln!(faults, "{}: {what}: {found} instead of {expected}", case.what);
        }
    };
    expect("rows", json!(rows), json!(expected_rows(&case.row)));
    expect(
        "count",
        summary["data"]["rows"][0]["event_count"].clone(),
        json!(rows.len()),
    );
    for answer in [&summary, &search] {
        let trust = &answer["data"]["auxiliary"]["trust"];
        let findings: Vec<&Value> = trust["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(is_of_input)
            .collect();
        let codes: Vec<&Value> = findings.iter().map(|finding| &finding["code"]).collect();
        expect("findings", json!(codes), json!(case.findings));
        for finding in &findings {
            expect("a finding's count", finding["count"].clone(), json!(1));
            let is_of_row = matches!(case.place, Some((_, Some(DAMAGED)))) && case.row.is_some();
            let ids = if is_of_row { json!(["cpu_op:3"]) } else { json!([]) };
            expect("a finding's rows", finding["row_ids"].clone(), ids);
        }
        let is_degraded = !matches!(case.findings, [] | ["input.repaired"]);
        expect(
            "verdict",
            trust["verdict"].clone(),
            json!(if is_degraded { "degraded" } else { "ok" }),
        );
    }
    if case.row.is_some() {
        let inspected = lab.run(&["inspect", NAME, "cpu_op:3"]).answer();
        expect(
            "inspected",
            inspected["data"]["rows"][0]["found"].clone(),
            json!(true),
        );
    }
    let strict = lab.run(&["summary", NAME, "--strict"]);
    let Some((offset, index)) = case.place else {
        expect("strict status", json!(strict.status), json!(0));
        return if faults.is_empty() { Ok(()) } else { Err(faults) };
    };
    let error = strict.json()["error"].clone();
    expect("strict status", json!(strict.status), json!(3));
    expect("strict code", error["code"].clone(), json!("input.damaged"));
    let place = match index {
        Some(index) => format!(" at byte {offset}, element {index}: "),
        None => format!(" at byte {offset}: "),
    };
    let message = error["message"].as_str().unwrap_or_default();
    if !message.contains(&place) {
        let _ = writeln!(faults, "{}: {message}: not{place}", case.what);
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn check_all(cases: &[Case]) {
    let lab = Lab::new();
    let faults: Vec<String> = cases.iter().filter_map(|case| check(&lab, case).err()).collect();
    assert!(faults.is_empty(), "{}", faults.concat());
}

#[test]
fn damaged_strings_are_repaired() {
    check_all(&cases::damaged_strings());
}

#[test]
fn damaged_values_and_times_cost_no_other_event() {
    check_all(&cases::damaged_values());
}

#[test]
fn odd_elements_take_their_place() {
    check_all(&cases::odd_elements());
}

#[test]
fn what_is_around_the_events_costs_none() {
    check_all(&cases::damaged_surroundings());
}
