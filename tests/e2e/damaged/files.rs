//! Files that are damaged as a whole: in another encoding, cut, packed and damaged, written by two.

use std::io::Write as _;

use flate2::write::GzDecoder;
use veloq_tracegen::{gzip, gzip_cut};

use super::{ELEMENTS, NAME, element, intact, trace_of};
use crate::support::Lab;

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

/// Cut before its first event there is nothing to answer from, and it is the cut that is told.
#[test]
fn text_that_is_cut_before_its_events_is_refused() {
    let lab = Lab::new();
    let head = r#"{"schemaVersion":1,"deviceProperties":[{"id":0}],"traceEvents":"#;
    for length in 1..=head.len() {
        lab.write(NAME, &head[..length]);
        lab.run(&["summary", NAME]).error(3, "input.truncated");
    }
    lab.write(NAME, format!("{head}["));
    let answer = lab.run(&["summary", NAME]).answer();
    assert_eq!(answer["data"]["rows"][0]["event_count"], 0);
    let findings = answer["data"]["auxiliary"]["trust"]["findings"].to_string();
    assert!(findings.contains("input.truncated"), "{findings}");
}

/// Packed data that is cut anywhere: what can be unpacked of it is answered, to the last whole event.
#[test]
fn packed_text_that_is_cut_is_answered_as_far_as_it_goes() {
    let lab = Lab::new();
    let text = trace_of(&(0..3_000).map(element).collect::<Vec<_>>());
    let packed = gzip(text.as_bytes()).unwrap();
    for eighth in 1..8 {
        let cut = &packed[..packed.len() * eighth / 8];
        let mut decoder = GzDecoder::new(Vec::new());
        decoder.write_all(cut).unwrap();
        decoder.flush().unwrap();
        let unpacked = std::mem::take(decoder.get_mut());
        let answers = [(NAME, unpacked.as_slice()), ("run.pt.trace.json.gz", cut)].map(|(name, bytes)| {
            lab.write(name, bytes);
            lab.run(&["search", name, "--limit", "0"]).answer()["data"].clone()
        });
        assert!(
            answers[0] == answers[1],
            "{eighth}: {}, {}",
            answers[0]["count"],
            answers[1]["count"]
        );
        let whole = unpacked.windows(2).filter(|pair| pair == b"},").count();
        assert!(
            answers[0]["count"].as_u64().unwrap() >= whole as u64,
            "{eighth}: {whole}"
        );
    }
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
