//! The kinds of damage.

use serde_json::{Value, json};

use super::{
    Case, DAMAGED, ELEMENTS, HEAD, Row, around, case, element, intact, named, odd, row_named, timed,
    trace_of, trace_with, whole_row, with_args,
};

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

pub(super) fn damaged_strings() -> Vec<Case> {
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

pub(super) fn damaged_values() -> Vec<Case> {
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

pub(super) fn odd_elements() -> Vec<Case> {
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
        case(
            "no name",
            &without(r#""name":"op3","#),
            Some((Value::Null, json!(30_000), json!(5_000))),
            REPAIRED,
        ),
        odd(
            "no args",
            trace_with(&without(r#","args":{"External id":3}"#)),
            whole_row(),
        ),
        odd("no phase", trace_with(&without(r#""ph":"X","#)), whole_row()),
        case("args that are a list", &with_args("[1,2]"), whole_row(), REPAIRED),
        case("args that are text", &with_args(r#""x""#), whole_row(), REPAIRED),
        odd("args that are null", trace_with(&with_args("null")), whole_row()),
        case(
            "keys twice: the last counts",
            &element(DAMAGED).replace(r#""name":"op3""#, r#""name":"first","ts":1,"name":"op3""#),
            whole_row(),
            REPAIRED,
        ),
        case(
            "a key of the args twice",
            &with_args(r#"{"External id":1,"External id":3}"#),
            whole_row(),
            REPAIRED,
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

pub(super) fn damaged_surroundings() -> Vec<Case> {
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
