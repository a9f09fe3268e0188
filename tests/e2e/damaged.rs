//! Damaged and odd traces: one row a kind of damage. Every other event is intact, with its id and its time;
//! the damage is counted and told; `--strict` refuses it and says where it is.

use std::fmt::Write as _;

use serde_json::{Value, json};
use veloq_tracegen::{gzip, gzip_cut};

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

const REPAIRED: &[&str] = &["input.repaired"];
const SKIPPED: &[&str] = &["input.skipped_events"];
const UNTIMED: &[&str] = &["time.invalid_rows"];
const REPAIRED_UNTIMED: &[&str] = &["input.repaired", "time.invalid_rows"];

fn no_duration() -> Row {
    Some((json!("op3"), json!(30_000), Value::Null))
}

fn no_start() -> Row {
    Some((json!("op3"), Value::Null, json!(5_000)))
}

fn damaged_strings() -> Vec<Case> {
    let mut bytes = case(
        "bytes that are not UTF-8",
        &named("op?3"),
        row_named("op\u{fffd}3"),
        REPAIRED,
    );
    let at = bytes.text.iter().position(|byte| *byte == b'?').unwrap();
    bytes.text[at] = 0xff;
    vec![
        case("raw newline", &named("op\n3"), row_named("op\n3"), REPAIRED),
        case(
            "raw control bytes",
            &named("op\u{1}\u{1b}\0\t3"),
            row_named("op\u{1}\u{1b}\0\t3"),
            REPAIRED,
        ),
        case(
            "raw quotes",
            &named(r#"op "q" 3"#),
            row_named(r#"op "q" 3"#),
            REPAIRED,
        ),
        case(
            "bad escape",
            &named(r"C:\dir\x"),
            row_named(r"C:\dir\x"),
            REPAIRED,
        ),
        case(
            "cut unicode escape",
            &named(r"op\u12"),
            row_named(r"op\u12"),
            REPAIRED,
        ),
        case(
            "half a surrogate pair",
            &named(r"op\ud800 3"),
            row_named("op\u{fffd} 3"),
            REPAIRED,
        ),
        case(
            "half a pair in args",
            &with_args(r#"{"x":"\udfff"}"#),
            whole_row(),
            REPAIRED,
        ),
        bytes,
        odd(
            "escapes",
            trace_with(&named(r"op\u0041\ud83d\ude00\n\/3")),
            row_named("opA\u{1f600}\n/3"),
        ),
        odd(
            "brackets and keys in a string",
            trace_with(&named(r#"]}, {\"ph\":\"X\"}, \"traceEvents\": ["#)),
            row_named(r#"]}, {"ph":"X"}, "traceEvents": ["#),
        ),
    ]
}

fn damaged_values() -> Vec<Case> {
    let mut cases = Vec::new();
    for value in [
        "NaN",
        "-NaN",
        "Infinity",
        "-Infinity",
        "inf",
        "nan(ind)",
        "-nan(ind)",
        "N/A",
        "",
    ] {
        let args = with_args(&format!(r#"{{"bandwidth":{value},"External id":3}}"#));
        cases.push(case("no JSON in args", &args, whole_row(), REPAIRED));
        let timed = timed(3, "1030", value);
        cases.push(case(
            "no JSON for a duration",
            &timed,
            no_duration(),
            REPAIRED_UNTIMED,
        ));
    }
    let time = |what, ts: &str, dur: &str, row, findings| case(what, &timed(3, ts, dur), row, findings);
    cases.extend([
        time(
            "two minus signs",
            "1030",
            "-1.-500",
            no_duration(),
            REPAIRED_UNTIMED,
        ),
        time("two minus signs", "-1.-500", "5", no_start(), REPAIRED_UNTIMED),
        time("a duration of null", "1030", "null", no_duration(), UNTIMED),
        time("negative duration", "1030", "-5", no_duration(), UNTIMED),
        time("negative duration", "1030", "-0.001", no_duration(), UNTIMED),
        time(
            "a duration of centuries",
            "1030",
            "9000000000000000",
            no_duration(),
            UNTIMED,
        ),
        time(
            "a duration beyond 64 bits",
            "1030",
            "1e300",
            no_duration(),
            UNTIMED,
        ),
        time("a start beyond 64 bits", "1e300", "5", no_start(), UNTIMED),
        time("a start that is no number", r#""soon""#, "5", no_start(), UNTIMED),
        time("no start", "1", "5", no_start(), UNTIMED),
        time("no duration", "1030", "1", no_duration(), UNTIMED),
        time("exponents", "1.03e3", "5E0", whole_row(), &[]),
        time("exponents", "10300e-1", "0.05e+2", whole_row(), &[]),
        time("times as text", r#""1030""#, r#""5.000""#, whole_row(), &[]),
    ]);
    for case in cases.iter_mut().filter(|case| case.what.starts_with("no ")) {
        let text = String::from_utf8(case.text.clone()).unwrap();
        let without = match case.what {
            "no start" => text.replace(r#""ts":1,"#, ""),
            "no duration" => text.replace(r#""dur":1,"#, ""),
            _ => continue,
        };
        case.text = without.into_bytes();
    }
    let late = |at: usize| timed(at, &(1_711_964_646_000_000 + 10 * at).to_string(), "5");
    let mut rows: Vec<String> = (0..ELEMENTS).map(late).collect();
    rows[DAMAGED] = timed(DAMAGED, "0", "5");
    let text = trace_of(&rows);
    let offset = text.find(&rows[DAMAGED]).unwrap();
    cases.push(Case {
        what: "a start of 0 among epoch times",
        text: text.into_bytes(),
        row: no_start(),
        findings: UNTIMED,
        place: Some((offset, Some(DAMAGED))),
    });
    cases
}

fn odd_elements() -> Vec<Case> {
    let without = |key: &str| element(DAMAGED).replace(key, "");
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(5_000), close.repeat(5_000));
    vec![
        case("an empty object", "{}", None, SKIPPED),
        case("null", "null", None, SKIPPED),
        case("a number", "42", None, SKIPPED),
        case("a string", r#""ph""#, None, SKIPPED),
        case("a list", "[{\"ph\":\"X\"}]", None, SKIPPED),
        case("lists thousands deep", &deep("[", "]"), None, SKIPPED),
        case("args thousands deep", &with_args(&deep("[", "]")), None, SKIPPED),
        case(
            "objects thousands deep",
            &with_args(&format!("{}1{}", r#"{"a":"#.repeat(5_000), "}".repeat(5_000))),
            None,
            SKIPPED,
        ),
        odd(
            "no name",
            trace_with(&without(r#""name":"op3","#)),
            Some((Value::Null, json!(30_000), json!(5_000))),
        ),
        odd(
            "no args",
            trace_with(&without(r#","args":{"External id":3}"#)),
            whole_row(),
        ),
        odd("no phase", trace_with(&without(r#""ph":"X","#)), whole_row()),
        odd(
            "args that are a list",
            trace_with(&with_args("[1,2]")),
            whole_row(),
        ),
        odd(
            "args that are text",
            trace_with(&with_args(r#""x""#)),
            whole_row(),
        ),
        odd("args that are null", trace_with(&with_args("null")), whole_row()),
        odd(
            "keys twice: the last counts",
            trace_with(&element(DAMAGED).replace(r#""name":"op3""#, r#""name":"first","ts":1,"name":"op3""#)),
            whole_row(),
        ),
        case(
            "a trailing comma",
            &element(DAMAGED).replace("}}", "},}"),
            whole_row(),
            REPAIRED,
        ),
        case(
            "a trailing comma in args",
            &with_args(r#"{"External id":3,}"#),
            whole_row(),
            REPAIRED,
        ),
        case(
            "a trailing comma in a list",
            &with_args(r#"{"x":[1,2,]}"#),
            whole_row(),
            REPAIRED,
        ),
    ]
}

fn damaged_surroundings() -> Vec<Case> {
    let (text, end) = (intact(), intact().len());
    let at = |needle: &str| text.find(needle).unwrap();
    let fourth = at(&element(DAMAGED));
    // The finding is the fourth element's or the end's, whichever comes behind the comma.
    let comma = |what, text: String, offset, index| Case {
        what,
        text: text.into_bytes(),
        row: whole_row(),
        findings: REPAIRED,
        place: Some((offset, Some(index))),
    };
    let two_commas = text.replacen(&element(DAMAGED), &format!(",{}", element(DAMAGED)), 1);
    let no_comma = format!("{} {}", &text[..fourth - 2], &text[fourth..]);
    let bare = format!("[{}]", (0..ELEMENTS).map(element).collect::<Vec<_>>().join(","));
    let keys = r#"],"schemaVersion":1,"displayTimeUnit":"ms","traceName":"] \"traceEvents\": ["}"#;
    vec![
        comma("two commas", two_commas, fourth, DAMAGED),
        comma("no comma", no_comma, fourth - 1, DAMAGED),
        comma("a comma at the end", text.replace("]}", ",]}"), end - 1, ELEMENTS),
        around("garbage behind", &format!("{text}\n garbage"), SKIPPED, end + 2),
        around(
            "garbage behind a bare array",
            &format!("{bare}x"),
            SKIPPED,
            bare.len(),
        ),
        around(
            "a second trace behind",
            &format!("{text}\n{text}"),
            SKIPPED,
            end + 1,
        ),
        odd("zeros behind", format!("{text}{}", "\0".repeat(600)), whole_row()),
        odd("a byte order mark", format!("\u{feff}{text}"), whole_row()),
        odd("a bare array", bare, whole_row()),
        odd(
            "keys behind the events",
            text.replace(HEAD, r#"{"traceEvents":["#).replace("]}", keys),
            whole_row(),
        ),
        odd(
            "`traceEvents` in a string before the events",
            text.replacen('{', r#"{"note":"] \"traceEvents\": [ {\"ph\":","#, 1),
            whole_row(),
        ),
    ]
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
    check_all(&damaged_strings());
}

#[test]
fn damaged_values_and_times_cost_no_other_event() {
    check_all(&damaged_values());
}

#[test]
fn odd_elements_take_their_place() {
    check_all(&odd_elements());
}

#[test]
fn what_is_around_the_events_costs_none() {
    check_all(&damaged_surroundings());
}

#[test]
fn utf16_is_refused_by_name() {
    let lab = Lab::new();
    let units: Vec<u16> = intact().encode_utf16().collect();
    let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
    for text in [
        [&[0xff, 0xfe], &little[..]].concat(),
        [&[0xfe, 0xff], &big[..]].concat(),
        little,
        big,
    ] {
        lab.write(NAME, &text);
        for flags in [&[][..], &["--strict"]] {
            let error = lab
                .run(&[&["summary", NAME], flags].concat())
                .error(3, "input.utf16");
            assert!(error["hint"].as_str().unwrap().contains("UTF-8"), "{error}");
        }
    }
}

/// A hundred whole events and a half: the same hundred, whether plain, packed, or packed and cut.
#[test]
fn truncated_text_keeps_all_that_is_whole() {
    let lab = Lab::new();
    let elements: Vec<String> = (0..101).map(element).collect();
    let text = trace_of(&elements);
    let last = text.find(&elements[100]).unwrap();
    let half = &text[..last + elements[100].len() / 2];
    let gz = "run.pt.trace.json.gz";
    let answers = [
        (NAME, half.as_bytes().to_vec()),
        (gz, gzip(half.as_bytes()).unwrap()),
        (gz, gzip_cut(half.as_bytes()).unwrap()),
    ]
    .map(|(name, bytes)| {
        lab.write(name, bytes);
        let search = lab.run(&["search", name, "--limit", "0"]).answer();
        let rows = search["data"]["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 100);
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(row["row_id"], format!("cpu_op:{at}"));
            assert_eq!(row["start_ns"], 10_000 * at);
        }
        let finding = &search["data"]["auxiliary"]["trust"]["findings"][0];
        assert_eq!(finding["code"], "input.truncated");
        assert!(
            finding["detail"]
                .as_str()
                .unwrap()
                .contains(&format!("byte {last} ")),
            "{finding}"
        );
        let error = lab.run(&["search", name, "--strict"]).error(3, "input.truncated");
        let place = format!("at byte {last} of its text, element 100");
        assert!(error["message"].as_str().unwrap().contains(&place), "{error}");
        search["data"].clone()
    });
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
}

/// What comes behind packed data, and packed data that does not match its checksum.
#[test]
fn packed_text_is_whole_or_told_not_to_be() {
    let lab = Lab::new();
    let name = "run.pt.trace.json.gz";
    let text = intact();
    let packed = gzip(text.as_bytes()).unwrap();
    let end = packed.len();
    let mut wrong = packed.clone();
    wrong[end - 6] ^= 0x40;
    let padded = [&packed[..], &[0; 512]].concat();
    for (what, bytes, told) in [
        ("whole", packed.clone(), None),
        ("zero padding", padded, None),
        (
            "garbage",
            [&packed[..], b"garbage"].concat(),
            Some("behind the end of the trace"),
        ),
        ("a wrong checksum", wrong, Some("does not match its checksum")),
        (
            "no checksum",
            packed[..end - 8].to_vec(),
            Some("does not match its checksum"),
        ),
    ] {
        lab.write(name, bytes);
        let search = lab.run(&["search", name, "--limit", "0"]).answer();
        assert_eq!(search["data"]["count"], ELEMENTS, "{what}");
        let findings = search["data"]["auxiliary"]["trust"]["findings"].to_string();
        let strict = lab.run(&["search", name, "--strict"]);
        let Some(told) = told else {
            assert_eq!(findings, "[]", "{what}");
            strict.answer();
            continue;
        };
        assert!(
            findings.contains("input.skipped_events") && findings.contains(told),
            "{what}: {findings}"
        );
        let error = strict.error(3, "input.damaged");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("byte {}", text.len())),
            "{what}: {message}"
        );
    }
}

/// Two processes that write to one file: refused, with the cause, whatever the size of their blocks.
#[test]
fn mixed_up_traces_are_refused() {
    let lab = Lab::new();
    let trace = |name: &str| {
        let rows: Vec<String> = (0..300).map(|at| element(at).replace("op", name)).collect();
        trace_of(&rows).into_bytes()
    };
    let (one, other) = (trace("first"), trace("second"));
    for size in [300, 512, 4096, 8192] {
        let parts = one.chunks(size).zip(other.chunks(size));
        let mixed: Vec<u8> = parts.flat_map(|(one, other)| [one, other].concat()).collect();
        lab.write(NAME, &mixed);
        for flags in [&[][..], &["--strict"]] {
            let error = lab
                .run(&[&["search", NAME], flags].concat())
                .error(3, "input.interleaved");
            let message = error["message"].as_str().unwrap();
            assert!(
                message.contains("two traces") && message.contains("byte"),
                "{message}"
            );
            assert!(
                error["hint"].as_str().unwrap().contains("Two processes"),
                "{error}"
            );
        }
    }
}
