//! Traces with one extreme property each, for scaling charts and limits.

use std::io::{self, Write};

use super::{Shape, Sink, Size, Spec};
use crate::rng::Rng;

/// Rows built before they are written.
const CHUNK: u64 = 4096;
const THREAD: i64 = 900;
/// Frames around each op in [`Shape::PythonHeavy`]: 19 of 20 rows are 95 %.
const FRAMES: u64 = 19;

pub(super) fn write<W: Write>(spec: &Spec, shape: Shape, sink: &mut Sink<W>) -> io::Result<()> {
    let rows = match spec.size {
        Size::Events(n) => n,
        Size::Steps(n) => u64::from(n) * 1000,
    };
    let mut rng = Rng::new(spec.seed);
    for i in 0..rows {
        row(shape, i, rows, &mut rng, sink);
        if i % CHUNK == CHUNK - 1 {
            sink.flush_rows()?;
        }
    }
    Ok(())
}

fn row<W: Write>(shape: Shape, i: u64, rows: u64, rng: &mut Rng, sink: &mut Sink<W>) {
    let n = i64::try_from(i).unwrap_or(i64::MAX);
    match shape {
        // The generator of training rows never comes here.
        Shape::Training => {}
        Shape::Nested(depth) => {
            let (ts, dur) = nested(i, depth.unwrap_or(rows).max(1));
            sink.emit(|t| t.cpu_op("aten::nested", THREAD, ts, dur).ext(n + 1));
        }
        Shape::GraphFanout if i == 0 => {
            sink.emit(|t| t.launch("cudaGraphLaunch", THREAD, 0, 20_000, 1));
        }
        Shape::GraphFanout => {
            let dur = rng.between(500, 900);
            sink.emit(|t| {
                t.kernel(
                    GRAPH_NAMES[i_mod(i, GRAPH_NAMES.len())],
                    0,
                    7,
                    25_000 + n * 1000,
                    dur,
                    1,
                )
            });
        }
        Shape::DistinctNames => {
            let dur = rng.between(100, 900);
            sink.emit(|t| t.cpu_op(&format!("op_{i:07}"), THREAD, n * 1000, dur).ext(n + 1));
        }
        Shape::ManyStreams => {
            let dur = rng.between(100, 900);
            sink.emit(|t| t.kernel("fill", 0, n, n * 1000, dur, n + 1));
        }
        Shape::PythonHeavy => {
            let (ts, dur) = nested(i, FRAMES + 1);
            let depth = i % (FRAMES + 1);
            if depth == FRAMES {
                sink.emit(|t| t.cpu_op("aten::add", THREAD, ts, dur).ext(n + 1));
            } else {
                let parent = (depth > 0).then_some(n);
                sink.emit(|t| t.python(&format!("model.py({depth}): f"), THREAD, ts, dur, n + 1, parent));
            }
        }
    }
}

const GRAPH_NAMES: [&str; 4] = [
    "gemm_kernel",
    "layer_norm_kernel",
    "softmax_kernel",
    "elementwise_kernel",
];

/// Start and duration, in ns, of row `i` when every `depth` rows nest in each other:
///
/// ```text
/// depth 3:  |=====|          i = 0: start 0, lasts 6
///            |===|           i = 1: start 1, lasts 4
///             |=|            i = 2: start 2, lasts 2
///                   |=====|  i = 3: start 6 (twice the depth per stack)
/// ```
fn nested(i: u64, depth: u64) -> (i64, i64) {
    let (stack, level) = (i / depth, i % depth);
    let clip = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    (clip(stack * 2 * depth + level), clip(2 * (depth - level)))
}

fn i_mod(i: u64, len: usize) -> usize {
    usize::try_from(i % super::as_u64(len)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_rows_enclose_each_other_and_stacks_touch() {
        let at: Vec<_> = (0..4).map(|i| nested(i, 3)).collect();
        assert_eq!(at, [(0, 6), (1, 4), (2, 2), (6, 6)]);
    }
}
