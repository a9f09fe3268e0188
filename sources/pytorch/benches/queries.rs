//! Questions to an opened trace, each with the opening of its tables; and one to a trace never seen.

#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing to tell")]

use divan::Bencher;
use divan::counter::BytesCount;
use serde_json::{Value, json};
use veloq_core::{Input, PrepOptions, Source};
use veloq_source_pytorch::PyTorch;

mod trace;

use trace::Trace;

fn main() {
    divan::main();
}

fn ask(trace: &Trace, verb: &str, request: Value, force: bool) {
    let options = PrepOptions {
        force,
        ..PrepOptions::default()
    };
    let session = PyTorch.prep(&Input::new(trace.path()), &options).unwrap();
    let verb = PyTorch
        .verbs()
        .iter()
        .find(|known| known.spec().name == verb)
        .unwrap();
    divan::black_box(verb.run_json(&session, request).unwrap());
}

#[divan::bench]
fn cold(bencher: Bencher) {
    let trace = Trace::plain();
    bencher
        .counter(BytesCount::new(trace.text_bytes))
        .bench(|| ask(&trace, "summary", json!({}), true));
}

#[divan::bench(args = [
    ("summary", "{}"),
    ("search", r#"{"name":"*gemm*"}"#),
    ("search", r#"{"sort":"duration_ns:desc"}"#),
    ("stats", "{}"),
    ("stats", r#"{"type":["kernel"],"group_by":["python-context"]}"#),
    ("timeline", r#"{"interval":"1ms"}"#),
    ("slices", "{}"),
    ("collectives", "{}"),
])]
fn warm(bencher: Bencher, (verb, request): (&str, &str)) {
    let trace = Trace::plain();
    let request: Value = serde_json::from_str(request).unwrap();
    ask(&trace, "summary", json!({}), false);
    bencher.bench(|| ask(&trace, verb, request.clone(), false));
}
