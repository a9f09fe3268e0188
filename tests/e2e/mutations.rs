//! Damaged traces: whatever is done to one, it is answered or refused, in time and in bounds.
//!
//! `VELOQ_MUTATIONS` tells how many mutants are made of the fixtures, and how many of the real traces;
//! `VELOQ_MUTATION_SEED` makes others. A mutant that something was wrong with is kept in the build folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::write::MultiGzDecoder;
use serde_json::Value;
use veloq_tracegen::{Rng, gzip};

use crate::support::damage::{Kind, Text, below, damaged_bytes};
use crate::support::watch::run_watched;
use crate::support::{Lab, fixtures, is_lookalike, real_traces};

/// Mutants of the fixtures, and of the real traces, in a normal run of the tests.
const MUTANTS: u64 = 60;

/// A call that takes longer hangs: these traces take a hundredth of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// No call may take more memory; only Linux tells.
const PEAK_LIMIT_KB: u64 = 500 * 1000;

/// Larger traces are represented by slices, so that each mutant is quick to ask.
const WHOLE_BYTES: usize = 1_500_000;

/// Slices of a larger trace.
const SLICES: usize = 4;

/// Text in each of the stretches of a slice: rows of the host and of devices are often far apart.
const STRETCH_BYTES: usize = 100_000;

/// What was seen of all mutants.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    mutants: BTreeMap<String, u64>,
    outcomes: BTreeMap<String, u64>,
    /// The slowest call, and the one that took most memory, in kilobytes.
    slowest: (Duration, String),
    largest: (u64, String),
}

#[test]
fn damaged_fixtures_are_answered_or_refused() {
    ask_mutants("fixtures", &fixtures("pytorch"));
}

#[test]
fn damaged_real_traces_are_answered_or_refused() {
    let traces = real_traces();
    if !traces.is_empty() {
        ask_mutants("real traces", &traces);
    }
}

fn ask_mutants(what: &str, traces: &[PathBuf]) {
    let rounds = number("VELOQ_MUTATIONS").unwrap_or(MUTANTS);
    let seed = number("VELOQ_MUTATION_SEED").unwrap_or(1);
    let texts: Vec<Text> = traces.iter().flat_map(|trace| texts_of(trace)).collect();
    let mut tally = Tally::default();
    let mut faults = Vec::new();
    for round in 0..rounds {
        let mut rng = Rng::new(seed.wrapping_mul(1 << 32).wrapping_add(round));
        let lab = Lab::new();
        let name = write_mutant(&lab, &texts, &mut rng, &mut tally);
        if let Err(fault) = ask(&lab, name, &mut rng, &mut tally) {
            let kept = format!("mutant-{seed}-{round}-{name}");
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(kept);
            fs::copy(lab.path().join(name), &kept).unwrap();
            faults.push(format!("{}: {fault}", kept.display()));
        }
    }
    // Unlike the print macros, this is shown when the test passes, too.
    let _ = writeln!(
        std::io::stderr(),
        "{rounds} mutants of {what}, seed {seed}: {tally:#?}"
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|fault| panic!("{variable}={text}: {fault}")))
}

/// Returns the text of a trace, or slices of it when it is long.
fn texts_of(trace: &Path) -> Vec<Text> {
    let bytes = fs::read(trace).unwrap();
    let text = Text::new(unpacked(&bytes).unwrap_or(bytes));
    assert!(
        is_lookalike(trace) || !text.elements.is_empty(),
        "{}",
        trace.display()
    );
    if text.bytes.len() <= WHOLE_BYTES {
        return vec![text];
    }
    let count = text.elements.len();
    let length = (STRETCH_BYTES * count / text.bytes.len()).max(1);
    let stretch = |tenth: usize| {
        let start = (count - length) * tenth / 10;
        start..start + length
    };
    (0..SLICES)
        .map(|slice| text.slice(&[stretch(slice), stretch(4 + slice), stretch(10 - slice)]))
        .collect()
}

/// Returns what gzip data holds, as far as it is intact; nothing of other data.
fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut decoder = MultiGzDecoder::new(Vec::new());
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return None;
    }
    // A fixture is cut: what came before the end is what is wanted.
    let _ = decoder.write_all(bytes).and_then(|()| decoder.flush());
    Some(decoder.get_ref().clone())
}

/// Writes a mutant of one of the texts and returns its name.
fn write_mutant(lab: &Lab, texts: &[Text], rng: &mut Rng, tally: &mut Tally) -> &'static str {
    let (text, other) = (&texts[below(texts.len(), rng)], &texts[below(texts.len(), rng)]);
    let (name, what, bytes) = match below(5, rng) {
        0 => {
            let kind = Kind::OF_BYTES[below(Kind::OF_BYTES.len(), rng)];
            let packed = |text: &Text| gzip(&text.bytes).unwrap();
            let damaged = damaged_bytes(&packed(text), kind, &packed(other), rng);
            (
                "mutant.pt.trace.json.gz",
                format!("{kind:?} after packing"),
                damaged,
            )
        }
        form => {
            let kind = Kind::OF_TEXT[below(Kind::OF_TEXT.len(), rng)];
            let mut damaged = text.damaged(kind, other, rng);
            // Damage seldom comes alone.
            for _ in 0..below(3, rng) {
                let kind = Kind::OF_TEXT[below(Kind::OF_TEXT.len(), rng)];
                damaged = Text::new(damaged).damaged(kind, other, rng);
            }
            if form == 1 {
                let packed = gzip(&damaged).unwrap();
                (
                    "mutant.pt.trace.json.gz",
                    format!("{kind:?} before packing"),
                    packed,
                )
            } else {
                ("mutant.pt.trace.json", format!("{kind:?}"), damaged)
            }
        }
    };
    tally.count += 1;
    *tally.mutants.entry(what).or_default() += 1;
    lab.write(name, bytes)
}

/// Asks a mutant, and returns what is wrong with an answer.
fn ask(lab: &Lab, trace: &str, rng: &mut Rng, tally: &mut Tally) -> Result<(), String> {
    let mut pick = |choices: &[&'static str]| choices[below(choices.len(), rng)];
    let threads = pick(&["1", "2", "4"]);
    let sort = pick(&["index", "start_ns", "duration_ns:desc", "name", "bytes:desc"]);
    let axis = pick(&[
        "name",
        "type",
        "category",
        "step",
        "device,stream",
        "thread",
        "shape",
        "comm-kind",
        "python-context",
        "module",
        "launched-by",
    ]);
    let mut ask = |words: &[&str]| {
        let words = [words, &["--threads", threads, "--format", "json"]].concat();
        checked_answer(lab, &words, tally)
    };
    ask(&["summary", trace])?;
    let found = ask(&["search", trace, "--sort", sort, "--limit", "40"])?;
    ask(&["stats", trace, "--group-by", axis])?;
    let rows = found["data"]["rows"].as_array().into_iter().flatten();
    let mut ids: Vec<&str> = rows.filter_map(|row| row["row_id"].as_str()).take(8).collect();
    if ids.is_empty() {
        ids.push("kernel:0");
    }
    ask(&[&["correlate", trace], ids.as_slice()].concat())?;
    Ok(())
}

/// Runs a call, counts what became of it and returns its answer, be it an error, or what is wrong.
fn checked_answer(lab: &Lab, words: &[&str], tally: &mut Tally) -> Result<Value, String> {
    let start = Instant::now();
    let (called, peak_kb) = run_watched(lab, words, PATIENCE)?;
    let (time, line) = (start.elapsed(), || {
        format!("mutant {}: {}", tally.count, called.line)
    });
    if time > tally.slowest.0 {
        tally.slowest = (time, line());
    }
    if peak_kb > tally.largest.0 {
        tally.largest = (peak_kb, line());
    }
    let wrong = |what: String| {
        Err(format!(
            "{}: {what}\n{}{}",
            called.line, called.stdout, called.stderr
        ))
    };
    if peak_kb > PEAK_LIMIT_KB {
        return wrong(format!("{peak_kb} kB of memory"));
    }
    let answer = match called.checked() {
        Ok(answer) => answer,
        Err(fault) => return wrong(fault),
    };
    let outcome = match (called.status, answer["error"]["code"].as_str()) {
        (0, None) => match answer["data"]["auxiliary"]["trust"]["verdict"].as_str() {
            Some(verdict) => verdict.to_owned(),
            None => return wrong("nothing tells whether it is to be trusted".to_owned()),
        },
        // A trace that cannot be read, or a question that it cannot answer.
        (3 | 4, Some(code)) => code.to_owned(),
        (status, _) => return wrong(format!("exit status {status}")),
    };
    let verb = words.first().copied().unwrap_or_default();
    *tally.outcomes.entry(format!("{verb}: {outcome}")).or_default() += 1;
    Ok(answer)
}
