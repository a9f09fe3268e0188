use std::io::Write as _;

use proptest::prelude::*;

use super::testing::{read_in, read_text};
use super::*;
use crate::kineto::event::Event;
use crate::kineto::scan::Scanner;

fn trace(elements: &str) -> Vec<u8> {
    format!("{{\"schemaVersion\": 1, \"traceEvents\": [{elements}], \"displayTimeUnit\": \"ms\"}}")
        .into_bytes()
}

fn names(text: &[u8]) -> Vec<(u64, String)> {
    let (seen, _) = read_text(text).unwrap();
    seen.into_iter()
        .map(|(index, _, name, ..)| (index, name))
        .collect()
}

fn issues(text: &[u8]) -> Vec<(Issue, u64)> {
    let (_, document) = read_text(text).unwrap();
    document
        .issues
        .iter()
        .map(|seen| (seen.issue, seen.count))
        .collect()
}

fn op(name: &str) -> String {
    format!(
        "{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"{name}\",\"pid\":1,\"tid\":1,\"ts\":1.5,\"dur\":2}}"
    )
}

fn of(pairs: &[(u64, &str)]) -> Vec<(u64, String)> {
    pairs
        .iter()
        .map(|(index, name)| (*index, (*name).to_owned()))
        .collect()
}

#[test]
fn elements_are_numbered_without_flow_markers() {
    let flow = r#"{"ph":"s","id":1,"name":"flow","ts":1}"#;
    let text = trace(&format!(
        "{},\n {flow},{}, {{\"ph\":\"M\",\"name\":\"m\"}} ,{}",
        op("a"),
        op("b"),
        op("c")
    ));
    assert_eq!(
        names(&text),
        of(&[(0, "a"), (1, "flow"), (1, "b"), (2, "m"), (3, "c")])
    );
    assert_eq!(issues(&text), []);
}

#[test]
fn bare_arrays_and_marks_are_read() {
    let text = format!("\u{feff}[{},{}]\n", op("a"), op("b"));
    let (seen, document) = read_text(text.as_bytes()).unwrap();
    assert_eq!((seen.len(), document.truncated_at), (2, None));
}

#[test]
fn keys_around_the_elements_are_kept() {
    let (_, document) = read_text(&trace(&op("a"))).unwrap();
    let keys: Vec<&str> = document.keys.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["schemaVersion", "displayTimeUnit"]);
}

#[test]
fn brackets_and_keys_inside_strings_mean_nothing() {
    let text = br#"{"traceName":"] \"traceEvents\": [{","traceEvents":[{"ph":"X","name":"]},{ph","ts":1,"args":{"a":[{"name":1},{"name":2}]}},{"ph":"X","name":"b","ts":2}]}"#;
    assert_eq!(names(text), of(&[(0, "]},{ph"), (1, "b")]));
    assert_eq!(issues(text), []);
}

#[test]
fn unescaped_strings_are_repaired() {
    let text = trace(
        &[
            op("a"),
            op("raw \n \u{1} end"),
            op("quo\"te\"d"),
            op("C:\\dir\\x"),
            op("b"),
        ]
        .join(","),
    );
    let expected = [
        (0, "a"),
        (1, "raw \n \u{1} end"),
        (2, "quo\"te\"d"),
        (3, "C:\\dir\\x"),
        (4, "b"),
    ];
    assert_eq!(names(&text), of(&expected));
    assert_eq!(issues(&text), [(Issue::UnescapedString, 3)]);
}

#[test]
fn invalid_utf8_is_replaced() {
    let mut text = trace(&[op("a"), op("b?c"), op("d")].join(","));
    let at = text.windows(3).position(|w| w == b"b?c").unwrap() + 1;
    text[at] = 0xff;
    assert_eq!(names(&text), of(&[(0, "a"), (1, "b\u{fffd}c"), (2, "d")]));
    assert_eq!(issues(&text), [(Issue::InvalidUtf8, 1)]);
}

#[test]
fn values_that_are_no_json_become_text() {
    let element =
        r#"{"ph":"X","name":"k","ts":1,"dur":NaN,"args":{"bw":inf,"n":N/A,"x":-nan(ind),"ok":1e5}}"#;
    let text = trace(&[op("a"), element.to_owned(), op("b")].join(",\n"));
    let (seen, _) = read_text(&text).unwrap();
    assert_eq!(
        seen[1].4.as_deref(),
        Some(r#"{"bw":"inf","n":"N/A","x":"-nan(ind)","ok":1e5}"#)
    );
    assert_eq!(issues(&text), [(Issue::InvalidValue, 1)]);
}

#[test]
fn commas_too_many_or_too_few_lose_nothing() {
    let many = trace(&format!("{},,{},", op("a"), op("b")));
    assert_eq!(names(&many), of(&[(0, "a"), (1, "b")]));
    assert_eq!(issues(&many), [(Issue::Comma, 2)]);
    let few = trace(&format!("{} {}", op("a"), op("b")));
    assert_eq!(names(&few), of(&[(0, "a"), (1, "b")]));
    let inner = trace(
        &[
            op("a"),
            r#"{"ph":"X","name":"t","ts":1,"args":{"a":1,},}"#.to_owned(),
            op("b"),
        ]
        .join(","),
    );
    assert_eq!(names(&inner), of(&[(0, "a"), (1, "t"), (2, "b")]));
    assert_eq!(issues(&inner), [(Issue::Comma, 1)]);
}

#[test]
fn what_is_no_event_takes_its_place() {
    let text = trace(&format!("{}, {{}}, 17, \"x\", null, [1], {}", op("a"), op("b")));
    assert_eq!(names(&text), of(&[(0, "a"), (6, "b")]));
    assert_eq!(issues(&text), [(Issue::NoEvent, 5)]);
}

#[test]
fn what_cannot_be_made_out_is_passed_over_and_takes_its_place() {
    let text = trace(
        &[
            op("a"),
            r#"{"ph":"X" garbage here "ts":: }"#.to_owned(),
            op("b"),
            op("c"),
        ]
        .join(",\n"),
    );
    assert_eq!(names(&text), of(&[(0, "a"), (2, "b"), (3, "c")]));
    assert_eq!(issues(&text), [(Issue::Unreadable, 1)]);
}

#[test]
fn a_text_cut_in_an_element_keeps_all_before() {
    let whole = trace(&vec![op("a"); 101].join(",\n"));
    let last = whole.windows(4).rposition(|w| w == b"{\"ph").unwrap();
    let cut = &whole[..last + 30];
    let (seen, document) = read_text(cut).unwrap();
    let place = Place {
        offset: last as u64,
        index: Some(100),
    };
    assert_eq!((seen.len(), document.truncated_at), (100, Some(place)));
    let (seen, document) = read_text(&whole[..last]).unwrap();
    assert_eq!((seen.len(), document.truncated_at), (100, Some(place)));
}

#[test]
fn duplicated_keys_count_once_and_the_last_wins() {
    assert_eq!(
        names(&trace(r#"{"ph":"X","name":"a","name":"b","ts":1}"#)),
        of(&[(0, "b")])
    );
}

#[test]
fn args_given_twice_are_the_last_ones_alone() {
    let text = r#"{"args":{"correlation":1,"stream":7},"name":"a","args":{"stream":8}}"#;
    let event = Scanner::new(text, 0).event().unwrap();
    assert_eq!((event.correlation, event.stream), (None, Some(8)));
    assert_eq!((event.args, event.repeats_key), (Some(r#"{"stream":8}"#), true));
    assert_eq!(event.name.as_deref(), Some("a"));
}

#[test]
fn deep_nesting_is_damage_not_a_crash() {
    let deep = format!(
        r#"{{"ph":"X","name":"deep","ts":1,"args":{}1{}}}"#,
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    let text = trace(&[op("a"), deep, op("b")].join(","));
    let (seen, document) = read_in(&text, 1 << 20, 2).unwrap();
    assert_eq!(
        seen.iter().map(|seen| seen.2.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(
        document
            .issues
            .iter()
            .map(|seen| (seen.issue, seen.count))
            .collect::<Vec<_>>(),
        [(Issue::TooDeep, 1)]
    );
}

/// Nested lists are no objects: there is no brace at which the element seems to end.
#[test]
fn deep_lists_swallow_no_neighbour() {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let text = trace(&[op("a"), deep, op("b"), op("c")].join(","));
    assert_eq!(names(&text), of(&[(0, "a"), (2, "b"), (3, "c")]));
    assert_eq!(issues(&text), [(Issue::TooDeep, 1)]);
    let open = trace(&[op("a"), "[".repeat(300), op("b"), op("c"), op("d")].join(","));
    let kept = names(&open);
    assert!(kept.ends_with(&of(&[(2, "c"), (3, "d")])), "{kept:?}");
}

#[test]
fn half_a_surrogate_pair_is_replaced_and_told() {
    let text = trace(&[op("a"), op("b\\ud800c"), op("\\ud83d\\ude00")].join(","));
    assert_eq!(names(&text), of(&[(0, "a"), (1, "b\u{fffd}c"), (2, "\u{1f600}")]));
    assert_eq!(issues(&text), [(Issue::InvalidUtf8, 1)]);
}

#[test]
fn what_follows_the_end_is_told_and_padding_is_not() {
    let whole = trace(&[op("a"), op("b")].join(","));
    let bare = format!("[{},{}]", op("a"), op("b")).into_bytes();
    for text in [&whole, &bare] {
        for (behind, expected) in [(&b" \n"[..], None), (b"\0\0\0", None), (b"\n garbage", Some(2))] {
            let (seen, document) = read_text(&[text, behind].concat()).unwrap();
            assert_eq!((seen.len(), document.truncated_at), (2, None));
            let place = document.issues.place_of(Issue::Foreign).map(|place| place.offset);
            assert_eq!(place, expected.map(|blank| text.len() as u64 + blank));
        }
        let twice = [&text[..], &text[..]].concat();
        assert_eq!(issues(&twice), [(Issue::Foreign, 1)]);
    }
}

#[test]
fn two_traces_in_one_are_refused() {
    let first = trace(
        &(0..40)
            .map(|at| op(&format!("first{at}")))
            .collect::<Vec<_>>()
            .join(","),
    );
    let second = trace(
        &(0..40)
            .map(|at| op(&format!("second{at}")))
            .collect::<Vec<_>>()
            .join(","),
    );
    for size in [90, 200, 512, 1000] {
        let mut mixed = Vec::new();
        let mut parts = (first.chunks(size), second.chunks(size));
        while let (Some(one), other) = (parts.0.next(), parts.1.next()) {
            mixed.extend_from_slice(one);
            mixed.extend_from_slice(other.unwrap_or_default());
        }
        let message = read_in(&mixed, 1 << 20, 2).unwrap_err();
        assert!(message.contains("two traces are mixed up"), "{size}: {message}");
    }
    // A writer that was killed, and another one that wrote on.
    let message = read_text(&[&first[..first.len() / 2], &second].concat()).unwrap_err();
    assert!(message.contains("two traces are mixed up"), "{message}");
}

#[test]
fn oversized_elements_are_passed_over() {
    let huge = format!(
        r#"{{"ph":"X","name":"{}","ts":1}}"#,
        "x".repeat(MAX_ELEMENT_BYTES + (8 << 20))
    );
    let text = trace(&[op("a"), huge, op("b"), op("c")].join(","));
    let (seen, document) = read_in(&text, 1 << 20, 2).unwrap();
    let kept: Vec<_> = seen.iter().map(|seen| (seen.0, seen.2.as_str())).collect();
    assert_eq!(kept, [(0, "a"), (2, "b"), (3, "c")]);
    assert_eq!(
        document.issues.iter().map(|seen| seen.issue).collect::<Vec<_>>(),
        [Issue::Oversized]
    );
}

#[test]
fn files_that_are_no_traces_are_named() {
    for (text, what) in [
        (&b"hello"[..], "not JSON"),
        (b"\xff\xfe{\0", "UTF-16"),
        (b"{\"schema\":\"1\",\"nodes\":[]}", "execution trace"),
        (b"[[1,\"create\",5,0]]", "memory timeline"),
        (b"[{\"a\":1},{\"a\":2}]", "none has a `ph`"),
        (b"", "is empty"),
        (b"\x1f\x8b\x08", "nothing of its compressed data"),
    ] {
        let message = read_in(text, 1 << 20, 1).unwrap_err();
        assert!(message.contains(what), "{message}");
    }
}

#[test]
fn a_trace_without_events_is_one() {
    let (seen, document) = read_text(&trace("")).unwrap();
    assert_eq!((seen.len(), document.truncated_at), (0, None));
}

/// Pieces that damage is made of.
fn debris() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(
        prop_oneof![
            Just(b"{".to_vec()),
            Just(b"}".to_vec()),
            Just(b"\"".to_vec()),
            Just(b",".to_vec()),
            Just(b"]".to_vec()),
            Just(b"},{\"ph\":".to_vec()),
            Just(b"},\n {\"name\"".to_vec()),
            Just(b"\\".to_vec()),
            Just(b"\n".to_vec()),
            Just(vec![0xff]),
            Just(vec![0xe2, 0x82]),
            Just(b"NaN".to_vec()),
            Just(op("x").into_bytes()),
        ],
        0..4,
    )
    .prop_map(|pieces| pieces.concat())
}

/// Takes up nothing: every block is one too many.
struct Full;

impl BlockSink for Full {
    fn event(&mut self, _: u64, _: u64, _: &Event<'_>) {}
}

impl Collector for Full {
    type Block = Self;

    fn block() -> Self {
        Self
    }

    fn rows(&self) -> u64 {
        0
    }

    fn absorb(&mut self, _: Self, _: First) -> Result<(), ReadError> {
        Err(ReadError::TooManyElements)
    }
}

#[test]
fn a_collector_that_gives_up_ends_the_reading() {
    // Far more pieces than can wait between the threads.
    let text = trace(&vec![op("a"); 2_000].join(","));
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&text).unwrap();
    for workers in [1, 2, 4] {
        let options = ReadOptions {
            workers,
            block_bytes: 64,
            ..ReadOptions::default()
        };
        let read = read(file.path(), options, &mut Full);
        assert!(matches!(read, Err(ReadError::TooManyElements)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_size_of_blocks_never_matters(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..5, debris()), 0..4)
    ) {
        let element = r#"{"ph":"X","cat":"kernel","name":"g\u00fcn \"q\"","ts":12.5,"args":{"a":[{"name":1},{"name":2}],"s":"x},{y"}}"#;
        let flow = r#"{"ph":"s","id":3,"ts":1.0,"cat":"ac2g"}"#;
        let mut text = trace(&[&op("a"), element, flow, &op("b"), element, &op("c")].map(|s| s as &str).join(",\n  "));
        for (at, removed, debris) in edits {
            let at = at.index(text.len());
            let end = (at + removed).min(text.len());
            text.splice(at..end, debris);
        }
        let _ = read_text(&text);
    }
}
