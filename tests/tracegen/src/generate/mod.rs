//! [`generate`]: traces of any size, streamed, equal for equal [`Spec`]s.
//!
//! Rows are built with [`Trace`], a training step (or a few thousand rows of a shape) at a time, written and
//! forgotten, so memory does not grow with the file.

mod shapes;
mod training;
mod worker;

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::dialect::{Backend, Era, Merge};
use crate::trace::Trace;

/// How long a trace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Exactly so many elements in `traceEvents`: whole steps, then `aten::empty` rows for the remainder.
    Events(u64),
    /// So many training steps.
    Steps(u32),
}

/// What a generated trace looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// A training run: data loading, forward, backward on its own thread, all-reduces, optimizer.
    #[default]
    Training,
    /// `cpu_op` rows on one thread, each nested in the one before it, in stacks of this depth (`None`: one
    /// stack, as deep as there are rows).
    Nested(Option<u64>),
    /// One graph launch; every other row is a kernel of it.
    GraphFanout,
    /// `cpu_op` rows that all have different names.
    DistinctNames,
    /// One kernel per row, each on a stream of its own.
    ManyStreams,
    /// 95 % `python_function` rows, in stacks of 19 frames around an op.
    PythonHeavy,
}

/// The recipe of a generated trace; [`Spec::default`] is a small CUDA training run of one rank.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Length of the trace; shapes other than training read [`Size::Steps`] as thousands of rows.
    pub size: Size,
    /// Seed of every duration in the trace.
    pub seed: u64,
    /// What the rows look like.
    pub shape: Shape,
    /// Backend of the device rows.
    pub backend: Backend,
    /// Writer era.
    pub era: Era,
    /// Ranks in the file (training only). More than one needs a `merge` dialect.
    pub ranks: u32,
    /// How the ranks share the file.
    pub merge: Merge,
    /// Size of the job; collectives span all of it. Below 2 there are none.
    pub world_size: u32,
    /// Devices per rank; the layers are spread over them.
    pub devices: u32,
    /// Compute streams per device; the layers take turns.
    pub streams: u32,
    /// Layers of the model: about 50 elements each per step.
    pub layers: u32,
    /// Number of the first step.
    pub first_step: u32,
    /// Python frames and `nn.Module` rows.
    pub python: bool,
    /// `[memory]` rows.
    pub memory: bool,
    /// Shape arguments of ops.
    pub shapes: bool,
    /// When set, each step replays one CUDA graph of so many kernels after the forward pass.
    pub graph_kernels: Option<u32>,
    /// When set, data loading of this step takes so many nanoseconds longer.
    pub loader_stall: Option<(u32, i64)>,
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            size: Size::Steps(3),
            seed: 1,
            shape: Shape::Training,
            backend: Backend::Cuda,
            era: Era::E8,
            ranks: 1,
            merge: Merge::None,
            world_size: 8,
            devices: 1,
            streams: 1,
            layers: 6,
            first_step: 1,
            python: true,
            memory: true,
            shapes: true,
            graph_kernels: None,
            loader_stall: None,
        }
    }
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Elements of `traceEvents`.
    pub events: u64,
    /// Training steps per rank.
    pub steps: u32,
    /// Elements by category; metadata and window marks, which have none, under the empty string.
    pub by_category: BTreeMap<String, u64>,
}

/// Writes the trace that `spec` describes to `out`, as plain JSON.
///
/// # Errors
/// What `out` reports; `InvalidInput` when `spec` asks for several ranks without a merge dialect.
pub fn generate<W: Write>(spec: &Spec, out: W) -> io::Result<Counts> {
    if spec.ranks > 1 && spec.merge == Merge::None {
        let message = "several ranks in one file need a merge dialect";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut sink = Sink {
        out,
        trace: training::header(spec),
        first: true,
        counts: Counts::default(),
    };
    sink.out.write_all(sink.trace.head().as_bytes())?;
    match spec.shape {
        Shape::Training => training::write(spec, &mut sink)?,
        shape => shapes::write(spec, shape, &mut sink)?,
    }
    sink.flush_rows()?;
    sink.out.write_all(sink.trace.tail().as_bytes())?;
    sink.out.flush()?;
    Ok(sink.counts)
}

/// The file being written and the rows not written yet.
struct Sink<W> {
    out: W,
    trace: Trace,
    first: bool,
    counts: Counts,
}

impl<W: Write> Sink<W> {
    /// Appends rows to the trace; see [`Trace`] for the methods.
    fn emit(&mut self, f: impl FnOnce(Trace) -> Trace) {
        self.trace = f(std::mem::take(&mut self.trace));
    }

    /// Elements written and waiting.
    fn events(&self) -> u64 {
        self.counts.events + as_u64(self.trace.element_count())
    }

    fn flush_rows(&mut self) -> io::Result<()> {
        self.trace.count_categories(&mut self.counts.by_category);
        let written = self.trace.drain_rows(&mut self.out, self.first)?;
        self.counts.events += as_u64(written);
        self.first = self.first && written == 0;
        Ok(())
    }
}

/// Counts fit: no platform has a `usize` above 64 bits.
fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
