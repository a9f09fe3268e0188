//! One rank of a training run: its clocks, its ids, and the row idioms every phase of a step uses.

use std::collections::BTreeMap;

use super::Spec;
use crate::collective::Collective;
use crate::dialect::Backend;
use crate::modify::Input;
use crate::rng::Rng;
use crate::trace::Trace;

/// A CPU thread of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thread {
    Main,
    Backward,
}

/// The comm stream, apart from the compute streams that start at [`FIRST_STREAM`].
pub(super) const COMM_STREAM: i64 = 20;
/// CUPTI's number for the default stream.
pub(super) const FIRST_STREAM: i64 = 7;
/// Rate at which all-reduces move data on the bus, in bytes per ns (= GB/s).
const BUS_BYTES_PER_NS: i64 = 200;

/// An operator about to be opened.
pub(super) struct Op<'a> {
    name: &'a str,
    inputs: &'a [Input],
    seq: Option<(i64, i64)>,
    collective: Option<&'a Collective>,
}

impl<'a> Op<'a> {
    pub(super) fn new(name: &'a str) -> Self {
        Op {
            name,
            inputs: &[],
            seq: None,
            collective: None,
        }
    }

    pub(super) fn inputs(mut self, inputs: &'a [Input]) -> Self {
        self.inputs = inputs;
        self
    }

    /// Sequence number and forward thread number.
    pub(super) fn seq(mut self, seq: i64, forward_thread: i64) -> Self {
        self.seq = Some((seq, forward_thread));
        self
    }

    pub(super) fn collective(mut self, collective: &'a Collective) -> Self {
        self.collective = Some(collective);
        self
    }
}

/// Work for a device.
pub(super) struct Kernel<'a> {
    pub(super) name: &'a str,
    pub(super) api: &'a str,
    pub(super) device: i64,
    pub(super) stream: i64,
    pub(super) dur: i64,
    pub(super) grid: [i64; 3],
    pub(super) block: [i64; 3],
}

/// An annotation not closed yet, and what ran under it per (device, stream).
struct OpenAnnotation {
    name: String,
    ext: i64,
    spans: BTreeMap<(i64, i64), (i64, i64)>,
}

/// The state of one thread.
struct Lane {
    tid: i64,
    now: i64,
    ops: Vec<i64>,
    annotations: Vec<OpenAnnotation>,
}

pub(super) struct Worker {
    pub(super) rank: i64,
    pub(super) spec: Spec,
    pub(super) rng: Rng,
    trace: Trace,
    pid: i64,
    lanes: [Lane; 2],
    /// When each (device, stream) has finished the work given to it so far.
    free_at: BTreeMap<(i64, i64), i64>,
    frames: Vec<i64>,
    correlation: i64,
    ext: i64,
    python_id: i64,
    address: i64,
    pub(super) seq: i64,
    /// Forward ops not yet met by the backward pass: sequence number and start.
    pub(super) forwards: Vec<(i64, i64)>,
    /// The same for the loss.
    pub(super) losses: Vec<(i64, i64)>,
    /// Addresses of activations not yet freed.
    pub(super) activations: Vec<i64>,
    pub(super) flow_id: i64,
    pub(super) collective_seq: i64,
}

impl Worker {
    pub(super) fn new(spec: &Spec, rank: i64, start: i64) -> Self {
        let pid = 251 + rank;
        let lane = |tid| Lane {
            tid,
            now: start,
            ops: Vec::new(),
            annotations: Vec::new(),
        };
        Worker {
            rank,
            spec: spec.clone(),
            rng: Rng::new(spec.seed ^ rank.unsigned_abs().wrapping_mul(0x9e37_79b9)),
            trace: Trace::new(),
            pid,
            lanes: [lane(pid), lane(pid + 4000)],
            free_at: BTreeMap::new(),
            frames: Vec::new(),
            correlation: 1000,
            ext: 0,
            python_id: 0,
            address: 140_000_000_000_000,
            seq: 0,
            forwards: Vec::new(),
            losses: Vec::new(),
            activations: Vec::new(),
            flow_id: 0,
            collective_seq: 0,
        }
    }

    /// Lends the file's trace to this rank for the length of `f`.
    pub(super) fn with_trace(&mut self, trace: Trace, f: impl FnOnce(&mut Self)) -> Trace {
        self.trace = trace.rank(self.rank).pid(self.pid);
        f(self);
        std::mem::take(&mut self.trace)
    }

    pub(super) fn emit(&mut self, f: impl FnOnce(Trace) -> Trace) {
        self.trace = f(std::mem::take(&mut self.trace));
    }

    fn lane(&mut self, thread: Thread) -> &mut Lane {
        &mut self.lanes[match thread {
            Thread::Main => 0,
            Thread::Backward => 1,
        }]
    }

    pub(super) fn tid(&mut self, thread: Thread) -> i64 {
        self.lane(thread).tid
    }

    pub(super) fn now(&mut self, thread: Thread) -> i64 {
        self.lane(thread).now
    }

    /// Lets a thread idle until `at`; never moves it back.
    pub(super) fn wait_until(&mut self, thread: Thread, at: i64) {
        let lane = self.lane(thread);
        lane.now = lane.now.max(at);
    }

    /// Lets a thread spend between `low` and `high` ns.
    pub(super) fn spend(&mut self, thread: Thread, low: i64, high: i64) {
        let ns = self.rng.between(low, high);
        self.lane(thread).now += ns;
    }

    /// Closes the range that was appended as element `position` at `start`.
    fn close(&mut self, thread: Thread, position: usize, start: i64) -> i64 {
        let end = self.now(thread);
        if let Some(row) = self.trace.row_at(position) {
            row.dur = Some((end - start).into());
        }
        end
    }

    /// An operator around `body`. Returns its start.
    pub(super) fn op(&mut self, thread: Thread, op: &Op<'_>, body: impl FnOnce(&mut Self)) -> i64 {
        let (start, tid, position) = (self.now(thread), self.tid(thread), self.trace.element_count());
        self.ext += 1;
        let (ext, shapes) = (self.ext, self.spec.shapes);
        self.emit(|t| {
            let mut t = t.cpu_op(op.name, tid, start, 0).ext(ext);
            if let Some((seq, forward_thread)) = op.seq {
                t = t.seq(seq, forward_thread);
            }
            if shapes && !op.inputs.is_empty() {
                t = t.inputs(op.inputs);
            }
            match op.collective {
                Some(collective) => t.collective(collective),
                None => t,
            }
        });
        self.lane(thread).ops.push(ext);
        self.spend(thread, 600, 2200);
        body(self);
        self.spend(thread, 200, 700);
        self.lane(thread).ops.pop();
        self.close(thread, position, start);
        start
    }

    /// An annotation around `body`, and its projections on the streams that worked under it.
    pub(super) fn annotation(&mut self, thread: Thread, name: &str, body: impl FnOnce(&mut Self)) {
        let (start, tid, position) = (self.now(thread), self.tid(thread), self.trace.element_count());
        self.ext += 1;
        let ext = self.ext;
        self.emit(|t| t.annotation(name, tid, start, 0).ext(ext));
        let open = OpenAnnotation {
            name: name.to_owned(),
            ext,
            spans: BTreeMap::new(),
        };
        self.lane(thread).annotations.push(open);
        self.spend(thread, 800, 1600);
        body(self);
        self.spend(thread, 500, 1500);
        self.close(thread, position, start);
        let Some(closed) = self.lane(thread).annotations.pop() else {
            return;
        };
        for ((device, stream), (first, last)) in closed.spans {
            // The writer widens projections by 1 ns on both sides.
            self.emit(|t| {
                t.gpu_annotation(&closed.name, device, stream, first - 1, last - first + 2)
                    .ext(closed.ext)
            });
        }
    }

    /// A Python frame on the main thread around `body`; just `body` when frames are off.
    pub(super) fn python(&mut self, name: &str, body: impl FnOnce(&mut Self)) {
        self.frame(
            |t, tid, start, id, parent| t.python(name, tid, start, 0, id, parent),
            body,
        );
    }

    /// An `nn.Module` call on the main thread around `body`.
    pub(super) fn module(&mut self, class: &str, number: i64, body: impl FnOnce(&mut Self)) {
        self.frame(
            |t, tid, start, id, parent| t.module(class, number, tid, start, 0, id, parent),
            body,
        );
    }

    fn frame(
        &mut self,
        row: impl FnOnce(Trace, i64, i64, i64, Option<i64>) -> Trace,
        body: impl FnOnce(&mut Self),
    ) {
        if !self.spec.python {
            body(self);
            return;
        }
        let thread = Thread::Main;
        let (start, tid, position) = (self.now(thread), self.tid(thread), self.trace.element_count());
        self.python_id += 1;
        let (id, parent) = (self.python_id, self.frames.last().copied());
        self.emit(|t| row(t, tid, start, id, parent));
        self.frames.push(id);
        self.spend(thread, 300, 900);
        body(self);
        self.spend(thread, 150, 500);
        self.frames.pop();
        self.close(thread, position, start);
    }

    /// An API call that launches nothing. Returns its end.
    pub(super) fn call(&mut self, thread: Thread, name: &str, dur: i64) -> i64 {
        let (start, tid) = (self.now(thread), self.tid(thread));
        let (correlation, ext) = (self.next_correlation(), self.lane(thread).ops.last().copied());
        self.emit(|t| link(t.runtime(name, tid, start, dur, correlation), ext).ac2g_end());
        self.lane(thread).now = start + dur;
        start + dur
    }

    /// A launch call and its kernel. Returns the kernel's end.
    pub(super) fn kernel(&mut self, thread: Thread, kernel: &Kernel<'_>) -> i64 {
        let ext = self.lane(thread).ops.last().copied();
        let correlation = self.launch_call(thread, kernel.api, |t| {
            t.launching(kernel.name, kernel.grid, kernel.block)
        });
        let k = kernel;
        self.device_work(thread, k.device, k.stream, k.dur, |t, start| {
            let t = t.kernel(k.name, k.device, k.stream, start, k.dur, correlation);
            link(t.grid(k.grid, k.block), ext)
        })
    }

    /// A graph launch and `count` kernels, all with its correlation. Returns the last one's end.
    pub(super) fn graph(&mut self, thread: Thread, device: i64, count: u32) -> i64 {
        let correlation = self.launch_call(thread, "cudaGraphLaunch", |t| t);
        let mut end = self.now(thread);
        for i in 0..count {
            let dur = self.rng.between(2_000, 9_000);
            let name = if i % 2 == 0 {
                "graph_gemm_kernel"
            } else {
                "graph_elementwise_kernel"
            };
            end = self.device_work(thread, device, FIRST_STREAM, dur, |t, start| {
                t.kernel(name, device, FIRST_STREAM, start, dur, correlation)
            });
        }
        end
    }

    /// A copy between host and device: the call and the device row. Returns the copy's end.
    pub(super) fn copy(&mut self, thread: Thread, to_device: bool, bytes: i64) -> i64 {
        let (kind, name) = match (to_device, self.spec.backend) {
            (true, Backend::Cuda) => (1, "Memcpy HtoD (Pinned -> Device)"),
            (false, Backend::Cuda) => (2, "Memcpy DtoH (Device -> Pageable)"),
            (true, Backend::Rocm) => (1, "Memcpy HtoD (Host -> Device)"),
            (false, Backend::Rocm) => (2, "Memcpy DtoH (Device -> Host)"),
        };
        let ext = self.lane(thread).ops.last().copied();
        let api = match self.spec.backend {
            Backend::Cuda => "cudaMemcpyAsync",
            Backend::Rocm => "hipMemcpyWithStream",
        };
        let correlation = self.launch_call(thread, api, |t| t.copying(kind, bytes));
        // 25 GB/s over the bus, and never under a microsecond.
        let dur = 1_000 + bytes / 25;
        self.device_work(thread, 0, FIRST_STREAM, dur, |t, start| {
            link(
                t.memcpy(name, 0, FIRST_STREAM, start, dur, correlation)
                    .bytes(bytes),
                ext,
            )
        })
    }

    /// The kernel of an all-reduce, after everything the compute stream of that device has queued.
    pub(super) fn all_reduce(&mut self, thread: Thread, device: i64, collective: &Collective, bytes: i64) {
        let name = match self.spec.backend {
            Backend::Cuda => "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            Backend::Rocm => "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
        };
        let api = match self.spec.backend {
            Backend::Cuda => "cudaLaunchKernelExC",
            Backend::Rocm => "hipExtLaunchKernel",
        };
        let ready = self.free_at.get(&(device, FIRST_STREAM)).copied().unwrap_or(0);
        let free = self.free_at.entry((device, COMM_STREAM)).or_insert(0);
        *free = (*free).max(ready);
        let n = i64::from(self.spec.world_size);
        let dur = bytes * 2 * (n - 1) / n / BUS_BYTES_PER_NS + self.rng.between(2_000, 9_000);
        let ext = self.lane(thread).ops.last().copied();
        let (grid, block) = ([24, 1, 1], [544, 1, 1]);
        let correlation = self.launch_call(thread, api, |t| t.launching(name, grid, block));
        self.device_work(thread, device, COMM_STREAM, dur, |t, start| {
            let t = t
                .kernel(name, device, COMM_STREAM, start, dur, correlation)
                .grid(grid, block);
            link(t, ext).collective(collective)
        });
    }

    /// Makes a stream wait for all work queued on another.
    pub(super) fn stream_waits(&mut self, device: i64, stream: i64, other: i64) {
        let ready = self.free_at.get(&(device, other)).copied().unwrap_or(0);
        let free = self.free_at.entry((device, stream)).or_insert(0);
        *free = (*free).max(ready);
    }

    /// When all queued device work ends.
    pub(super) fn device_idle_at(&self) -> i64 {
        self.free_at.values().copied().max().unwrap_or(0)
    }

    /// An allocation on a device. Returns its address.
    pub(super) fn allocate(&mut self, thread: Thread, bytes: i64, device: i64) -> i64 {
        let address = self.address;
        self.address += bytes;
        self.memory_row(thread, bytes, address, device);
        address
    }

    pub(super) fn free(&mut self, thread: Thread, bytes: i64, address: i64, device: i64) {
        self.memory_row(thread, -bytes, address, device);
    }

    fn memory_row(&mut self, thread: Thread, bytes: i64, address: i64, device: i64) {
        if self.spec.memory {
            let (now, tid) = (self.now(thread), self.tid(thread));
            self.emit(|t| t.memory(tid, now, bytes, address, device));
        }
    }

    fn next_correlation(&mut self) -> i64 {
        self.correlation += 1;
        self.correlation
    }

    /// Appends a launch call with its flow start; `more` adds arguments. Returns its correlation.
    fn launch_call(&mut self, thread: Thread, api: &str, more: impl FnOnce(Trace) -> Trace) -> i64 {
        let (start, tid) = (self.now(thread), self.tid(thread));
        let dur = self.rng.between(3_500, 6_500);
        let (correlation, ext) = (self.next_correlation(), self.lane(thread).ops.last().copied());
        self.emit(|t| more(link(t.launch(api, tid, start, dur, correlation), ext)).ac2g());
        self.lane(thread).now = start + dur;
        correlation
    }

    /// Appends a device row that starts when both the launch and the stream allow it. Returns its end.
    fn device_work(
        &mut self,
        thread: Thread,
        device: i64,
        stream: i64,
        dur: i64,
        row: impl FnOnce(Trace, i64) -> Trace,
    ) -> i64 {
        let launched = self.now(thread) + self.rng.between(1_500, 3_500);
        let queued = self.free_at.get(&(device, stream)).map_or(0, |free| free + 800);
        let start = launched.max(queued);
        let end = start + dur;
        self.free_at.insert((device, stream), end);
        if let Some(open) = self.lane(thread).annotations.last_mut() {
            let span = open.spans.entry((device, stream)).or_insert((start, end));
            *span = (span.0.min(start), span.1.max(end));
        }
        self.emit(|t| row(t, start).ac2g());
        end
    }
}

fn link(trace: Trace, ext: Option<i64>) -> Trace {
    match ext {
        Some(ext) => trace.ext(ext),
        None => trace,
    }
}
