//! Opening a trace, stage by stage: MB of text, or rows, a second.
//!
//! Each stage contains those before it up to `collect`; `link` and `write` start from collected rows.

#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing to tell")]

use std::path::Path;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use veloq_source_pytorch::stages::{Columns, parse, unpack};

mod trace;

use trace::Trace;

const THREADS: [usize; 2] = [1, 2];

fn main() {
    divan::main();
}

#[divan::bench(args = [false, true])]
fn unpacking(bencher: Bencher, is_compressed: bool) {
    let trace = if is_compressed {
        Trace::gzip()
    } else {
        Trace::plain()
    };
    bencher
        .counter(BytesCount::new(trace.text_bytes))
        .bench(|| unpack(trace.path()).unwrap());
}

#[divan::bench(args = THREADS)]
fn parsing(bencher: Bencher, threads: usize) {
    let trace = Trace::plain();
    bencher
        .counter(BytesCount::new(trace.text_bytes))
        .bench(|| parse(trace.path(), threads).unwrap());
}

fn collected(path: &Path, threads: usize, folder: &Path) -> Columns {
    Columns::collect(path, threads, folder).unwrap()
}

#[divan::bench(args = THREADS)]
fn collecting(bencher: Bencher, threads: usize) {
    let trace = Trace::plain();
    bencher
        .counter(BytesCount::new(trace.text_bytes))
        .bench(|| collected(trace.path(), threads, trace.folder()));
}

#[divan::bench]
fn linking(bencher: Bencher) {
    let trace = Trace::plain();
    let mut columns = collected(trace.path(), 2, trace.folder());
    bencher
        .counter(ItemsCount::new(columns.rows()))
        .bench_local(|| columns.link());
}

#[divan::bench(args = THREADS)]
fn writing(bencher: Bencher, threads: usize) {
    let trace = Trace::plain();
    let mut columns = collected(trace.path(), 2, trace.folder());
    let links = columns.link();
    bencher
        .counter(ItemsCount::new(columns.rows()))
        .bench_local(|| columns.write(&links, threads, trace.folder()).unwrap());
}
