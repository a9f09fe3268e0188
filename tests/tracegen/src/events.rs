//! The row methods of [`Trace`]: one per kind of event.

use crate::collective::Collective;
use crate::dialect::{Backend, Era, Kind};
use crate::row::{Row, Side};
use crate::trace::Trace;
use crate::value::{Id, Json, Time, ratio};

/// Compute units of the device that `deviceProperties` names, for the per-SM figures of kernels.
const SM_COUNT: i64 = 132;

impl Trace {
    /// An operator.
    #[must_use]
    pub fn cpu_op(self, name: &str, tid: impl Into<Id>, ts: impl Into<Time>, dur: impl Into<Time>) -> Self {
        self.host_range(Kind::CpuOp, name, tid, ts, dur)
    }

    /// A user annotation (`record_function`, optimizer, `nccl:…`).
    #[must_use]
    pub fn annotation(
        self,
        name: &str,
        tid: impl Into<Id>,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
    ) -> Self {
        self.host_range(Kind::Annotation, name, tid, ts, dur)
    }

    /// The annotation `ProfilerStep#n`.
    #[must_use]
    pub fn step(self, n: i64, tid: impl Into<Id>, ts: impl Into<Time>, dur: impl Into<Time>) -> Self {
        self.annotation(&format!("ProfilerStep#{n}"), tid, ts, dur)
    }

    fn host_range(
        mut self,
        kind: Kind,
        name: &str,
        tid: impl Into<Id>,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
    ) -> Self {
        let (key, n) = (self.dialect.ev_idx_key(), self.next_ev_idx());
        let mut row = self.host_row(kind, name, tid.into(), ts.into(), dur.into());
        if self.dialect.era >= Era::E4 {
            row = row.arg("Record function id", 0);
        }
        if self.dialect.era >= Era::E3 {
            row = row.arg(key, n);
        }
        self.push(row)
    }

    /// A Python frame. `id` and `parent` are the `Python id` and `Python parent id`.
    #[must_use]
    pub fn python(
        mut self,
        name: &str,
        tid: impl Into<Id>,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
        id: i64,
        parent: Option<i64>,
    ) -> Self {
        let (key, n) = (self.dialect.ev_idx_key(), self.next_ev_idx());
        let row = self.host_row(Kind::Python, name, tid.into(), ts.into(), dur.into());
        let parent = parent.map_or(Json::null(), Json::from);
        self.push(
            row.arg("Python parent id", parent)
                .arg("Python id", id)
                .arg(key, n),
        )
    }

    /// A call of an `nn.Module`: `nn.Module: <class>_<number>`, numbered per class.
    #[must_use]
    #[expect(
        clippy::too_many_arguments,
        reason = "the two axes of a module call on top of a frame's"
    )]
    pub fn module(
        self,
        class: &str,
        number: i64,
        tid: impl Into<Id>,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
        id: i64,
        parent: Option<i64>,
    ) -> Self {
        self.python(&format!("nn.Module: {class}_{number}"), tid, ts, dur, id, parent)
            .arg("Python module id", number)
    }

    /// A runtime API call, launch or not. On ROCm a leading `cuda` becomes `hip`.
    #[must_use]
    pub fn runtime(
        self,
        name: &str,
        tid: impl Into<Id>,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
        correlation: i64,
    ) -> Self {
        self.api_call(
            Kind::Runtime,
            name,
            tid.into(),
            ts.into(),
            dur.into(),
            correlation,
        )
    }

    /// Same as [`runtime`](Self::runtime), for readability where device rows follow.
    #[must_use]
    pub fn launch(
        self,
        name: &str,
        tid: impl Into<Id>,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
        correlation: i64,
    ) -> Self {
        self.runtime(name, tid, ts, dur, correlation)
    }

    /// A driver API call (`cuLaunchKernel` of Triton kernels).
    #[must_use]
    pub fn driver(
        self,
        name: &str,
        tid: impl Into<Id>,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
        correlation: i64,
    ) -> Self {
        self.api_call(Kind::Driver, name, tid.into(), ts.into(), dur.into(), correlation)
    }

    fn api_call(self, kind: Kind, name: &str, tid: Id, ts: Time, dur: Time, correlation: i64) -> Self {
        let name = self.dialect.api_name(name);
        let mut row = self.host_row(kind, &name, tid, ts, dur);
        let (key, id) = match self.dialect.backend {
            Backend::Cuda => ("cbid", cuda_callback_id(&name)),
            Backend::Rocm => ("cid", hip_callback_id(&name)),
        };
        row = row.arg(key, id).arg("correlation", correlation);
        row.correlation = Some(correlation);
        let row = self.with_unlinked_external(row, correlation);
        self.push(row)
    }

    /// A kernel. `device` is the index; on ROCm the row shows the HSA agent number instead.
    #[must_use]
    pub fn kernel(
        self,
        name: &str,
        device: i64,
        stream: i64,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
        correlation: i64,
    ) -> Self {
        let mut row = self.device_row(
            Kind::Kernel,
            name,
            device,
            stream,
            ts.into(),
            dur.into(),
            correlation,
        );
        if self.dialect.backend == Backend::Rocm {
            row = row.arg("kind", "Dispatch Kernel");
        } else {
            row = row.arg("registers per thread", 32).arg("shared memory", 0);
            if self.dialect.era >= Era::E9 {
                row = row.arg("graph id", 0).arg("graph node id", 0);
            }
        }
        self.push(row).grid([1, 1, 1], [128, 1, 1])
    }

    /// A copy, with the profiler's whole name: `Memcpy HtoD (Pinned -> Device)`. Give its size with
    /// [`bytes`](Self::bytes).
    #[must_use]
    pub fn memcpy(
        self,
        name: &str,
        device: i64,
        stream: i64,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
        correlation: i64,
    ) -> Self {
        let mut row = self.device_row(
            Kind::Memcpy,
            name,
            device,
            stream,
            ts.into(),
            dur.into(),
            correlation,
        );
        if self.dialect.backend == Backend::Rocm {
            row = row.arg("kind", name.split(' ').nth(1).unwrap_or_default());
        }
        self.push(row)
    }

    /// A fill, `Memset (Device)`. Give its size with [`bytes`](Self::bytes).
    #[must_use]
    pub fn memset(
        self,
        device: i64,
        stream: i64,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
        correlation: i64,
    ) -> Self {
        let row = self.device_row(
            Kind::Memset,
            "Memset (Device)",
            device,
            stream,
            ts.into(),
            dur.into(),
            correlation,
        );
        self.push(row)
    }

    /// A `cuda_sync` row; `kind` is its name (`Stream Sync`, `Context Sync`, `Event Sync`,
    /// `Stream Wait Event`). Stream −1 means none.
    #[must_use]
    pub fn sync(
        self,
        kind: &str,
        device: i64,
        stream: i64,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
        correlation: i64,
    ) -> Self {
        let mut row = self.device_row(
            Kind::Sync,
            kind,
            device,
            stream,
            ts.into(),
            dur.into(),
            correlation,
        );
        row.set_arg("cuda_sync_kind".into(), kind.into());
        self.push(row)
    }

    /// A `gpu_user_annotation`: the projection of an annotation on a stream. The times are written as given;
    /// current writers widen the enclosed device rows by 1 ns on both sides.
    #[must_use]
    pub fn gpu_annotation(
        self,
        name: &str,
        device: i64,
        stream: i64,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
    ) -> Self {
        let dialect = self.dialect;
        let pid = Id::Int(dialect.device_pid(device));
        let row = Row::new('X', name, pid, dialect.stream_tid(stream))
            .cat(dialect.category(Kind::GpuAnnotation))
            .at(ts)
            .lasting(dur);
        self.push(row)
    }

    /// An allocation (`bytes` > 0) or a free (< 0), as a `[memory]` instant. `device` −1 is the CPU. The
    /// running totals follow from the calls made so far for that rank and device.
    #[must_use]
    pub fn memory(
        mut self,
        tid: impl Into<Id>,
        ts: impl Into<Time>,
        bytes: i64,
        address: i64,
        device: i64,
    ) -> Self {
        const RESERVE_STEP: i64 = 2 << 20;
        let total = self.allocated.entry((self.rank, device)).or_insert(0);
        *total += bytes;
        let allocated = *total;
        let (key, n) = (self.dialect.ev_idx_key(), self.next_ev_idx());
        let (device_type, reserved) = match device {
            -1 => (0, 0),
            _ => (
                self.dialect.memory_device_type(),
                allocated.max(0).saturating_add(RESERVE_STEP - 1) / RESERVE_STEP * RESERVE_STEP,
            ),
        };
        let mut row = Row::new(
            'i',
            "[memory]",
            self.cpu_pid(),
            self.dialect.thread_tid(tid.into()),
        )
        .at(ts);
        row.scope = Some('t');
        if self.dialect.era == Era::E1 {
            row = row
                .arg("Device Type", device_type)
                .arg("Device Id", device)
                .arg("Bytes", bytes);
        } else {
            row = row
                .cat("cpu_instant_event")
                .arg("Total Reserved", reserved)
                .arg("Total Allocated", allocated)
                .arg("Bytes", bytes)
                .arg("Addr", address)
                .arg("Device Id", device)
                .arg("Device Type", device_type)
                .arg(key, n);
        }
        self.push(row)
    }

    /// The op `record_param_comms` with the arguments of `collective`.
    #[must_use]
    pub fn record_param_comms(
        self,
        tid: impl Into<Id>,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
        collective: &Collective,
    ) -> Self {
        self.cpu_op("record_param_comms", tid, ts, dur)
            .collective(collective)
    }

    /// A row of profiler overhead (`Buffer Flush`, `Activity Buffer Request` …).
    #[must_use]
    pub fn overhead(self, name: &str, ts: impl Into<Time>, dur: impl Into<Time>) -> Self {
        let row = Row::new('X', name, Id::Int(-1), Id::Int(0))
            .cat(self.dialect.category(Kind::Overhead))
            .at(ts)
            .lasting(dur);
        self.push(row)
    }

    /// A counter sample (`ph` C) with one value.
    #[must_use]
    pub fn counter(
        self,
        cat: &'static str,
        name: &str,
        pid: impl Into<Id>,
        ts: impl Into<Time>,
        value: i64,
    ) -> Self {
        let row = Row::new('C', name, pid.into(), Id::Int(0))
            .cat(cat)
            .at(ts)
            .arg("value", value);
        self.push(row)
    }

    /// A complete row of any category, with pid and tid as given.
    #[must_use]
    pub fn row(
        self,
        cat: &'static str,
        name: &str,
        pid: impl Into<Id>,
        tid: impl Into<Id>,
        ts: impl Into<Time>,
        dur: impl Into<Time>,
    ) -> Self {
        let row = Row::new('X', name, pid.into(), tid.into())
            .cat(cat)
            .at(ts)
            .lasting(dur);
        self.push(row)
    }

    /// The launch flow of the row appended last: `s` on an API call, `f` on a device row. It copies that
    /// row's correlation, track and time; rows without a correlation get none.
    #[must_use]
    pub fn ac2g(mut self) -> Self {
        let ph = match self.last() {
            Some(row) if row.side == Side::Device => 'f',
            _ => 's',
        };
        self.launch_flow(ph)
    }

    /// The lone `f` that writers put on API calls that launch nothing.
    #[must_use]
    pub fn ac2g_end(self) -> Self {
        self.launch_flow('f')
    }

    fn launch_flow(mut self, ph: char) -> Self {
        let (cat, name) = self.dialect.launch_flow();
        let Some(Row {
            correlation: Some(correlation),
            pid,
            tid,
            ts: Some(ts),
            side,
            ..
        }) = self.last().map(|row| row.clone())
        else {
            return self;
        };
        // In E1 the host end of a flow has a number where its call has a string.
        let tid = match tid {
            Id::Text(text) if side == Side::Host => text.parse().map_or(Id::Text(text), Id::Int),
            tid => tid,
        };
        let mut row = Row::new(ph, name, pid, tid).cat(cat).at(ts);
        row.id = Some(correlation);
        self.push_merged(row)
    }

    /// A forward-backward flow: `s` at the forward op, `f` at the backward op.
    #[must_use]
    pub fn fwdbwd(self, id: i64, forward: (i64, i64), backward: (i64, i64)) -> Self {
        let (cat, name) = self.dialect.fwdbwd_flow();
        let end = |ph, (tid, ts): (i64, i64)| {
            let mut row = Row::new(ph, name, self.cpu_pid(), Id::Int(tid)).cat(cat).at(ts);
            row.id = Some(id);
            row
        };
        let (start, finish) = (end('s', forward), end('f', backward));
        self.push(start).push(finish)
    }

    /// The name of a thread of the current process.
    #[must_use]
    pub fn thread_name(self, tid: i64, name: &str) -> Self {
        let pid = self.cpu_pid();
        self.metadata("thread_name", pid, tid, 0, "name", name)
    }

    /// The name of the current process.
    #[must_use]
    pub fn process_name(self, name: &str) -> Self {
        let pid = self.cpu_pid();
        self.metadata("process_name", pid, 0, 0, "name", name)
    }

    /// A metadata row (`ph` M): `process_name`, `process_labels`, `thread_sort_index` …
    #[must_use]
    pub fn metadata(
        self,
        row: &str,
        pid: impl Into<Id>,
        tid: impl Into<Id>,
        ts: impl Into<Time>,
        key: &'static str,
        value: impl Into<Json>,
    ) -> Self {
        let row = Row::new('M', row, pid.into(), tid.into()).at(ts).arg(key, value);
        self.push(row)
    }

    /// The marks every capture ends with: the Trace span and its two instants.
    #[must_use]
    pub fn window(self, start: i64, end: i64) -> Self {
        let spans = if self.dialect.era == Era::E1 {
            "Traces"
        } else {
            "Spans"
        };
        let span = Row::new(
            'X',
            "PyTorch Profiler (0)",
            spans.into(),
            "PyTorch Profiler".into(),
        )
        .cat("Trace")
        .at(start)
        .lasting(end - start)
        .arg("Op count", 0);
        let instant = |name, pid: &str, tid: &str, ts| {
            let mut row = Row::new('i', name, pid.into(), tid.into()).at(ts);
            row.scope = Some('g');
            row
        };
        let first = instant(
            "Iteration Start: PyTorch Profiler",
            "Traces",
            "Trace PyTorch Profiler",
            start,
        );
        let last = instant("Record Window End", "", "", end);
        self.push(span).push(first).push(last)
    }

    /// An element of any text, well formed or not.
    #[must_use]
    pub fn raw(self, text: impl Into<String>) -> Self {
        self.push_raw(text.into())
    }

    fn next_ev_idx(&mut self) -> i64 {
        self.ev_idx += 1;
        self.ev_idx - 1
    }

    fn host_row(&self, kind: Kind, name: &str, tid: Id, ts: Time, dur: Time) -> Row {
        Row::new('X', name, self.cpu_pid(), self.dialect.thread_tid(tid))
            .cat(self.dialect.category(kind))
            .at(ts)
            .lasting(dur)
    }

    #[expect(clippy::too_many_arguments, reason = "the axes of a device row")]
    fn device_row(
        &self,
        kind: Kind,
        name: &str,
        device: i64,
        stream: i64,
        ts: Time,
        dur: Time,
        correlation: i64,
    ) -> Row {
        let dialect = self.dialect;
        let pid = dialect.device_pid(device);
        let mut row = Row::new('X', name, Id::Int(pid), dialect.stream_tid(stream))
            .cat(dialect.category(kind))
            .at(ts)
            .lasting(dur);
        if dialect.backend == Backend::Cuda && kind == Kind::Kernel {
            row = row.arg("queued", 0);
        }
        row = row.arg("device", pid);
        if dialect.backend == Backend::Cuda {
            row = row.arg("context", 1);
        }
        row = row.arg("stream", stream).arg("correlation", correlation);
        row.correlation = Some(correlation);
        row.side = Side::Device;
        self.with_unlinked_external(row, correlation)
    }

    fn with_unlinked_external(&self, mut row: Row, correlation: i64) -> Row {
        if let Some(id) = self.dialect.unlinked_external(correlation) {
            let args = row.args.get_or_insert_with(Vec::new);
            args.insert(0, (self.dialect.external_key().into(), id.into()));
        }
        row
    }
}

pub(crate) fn blocks_per_sm(grid: [i64; 3]) -> Json {
    ratio(grid.iter().product(), SM_COUNT)
}

pub(crate) fn warps_per_sm(grid: [i64; 3], block: [i64; 3]) -> Json {
    let warps_per_block = block.iter().product::<i64>().div_euclid(32).max(1);
    ratio(grid.iter().product::<i64>() * warps_per_block, SM_COUNT)
}

/// CUPTI's runtime and driver callback ids, for the calls that traces hold most.
fn cuda_callback_id(name: &str) -> i64 {
    match name {
        "cudaLaunchKernel" => 211,
        "cudaLaunchKernelExC" => 430,
        "cudaMemcpyAsync" => 41,
        "cudaMemsetAsync" => 51,
        "cudaGraphLaunch" => 311,
        "cudaStreamSynchronize" => 131,
        "cudaDeviceSynchronize" => 165,
        "cudaStreamWaitEvent" => 147,
        "cudaEventRecord" => 135,
        "cuLaunchKernel" => 307,
        _ => 0,
    }
}

/// roctracer's HIP callback ids as found in files.
fn hip_callback_id(name: &str) -> i64 {
    match name {
        "hipLaunchKernel" => 107,
        "hipExtModuleLaunchKernel" => 65,
        "hipMemcpyWithStream" => 153,
        "hipDeviceSynchronize" => 48,
        _ => 0,
    }
}
