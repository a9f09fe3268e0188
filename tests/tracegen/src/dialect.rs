//! How the same event is spelled by different backends, writer eras and merge tools.
//!
//! The eras are those of the format notes: a file carries no usable version, readers tell them apart by
//! features, so a builder that can write each of them is the only way to test that.

use crate::value::{Id, TimeForm};

/// Whose device rows the trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// NVIDIA: `cuda…` calls with `cbid`, device index as pid.
    #[default]
    Cuda,
    /// AMD: `hip…` calls with `cid`, HSA agent number as pid (device 0 shows as 2), `kind` on kernels.
    Rocm,
}

/// The writer's generation, oldest first, so that eras compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    /// 2021: `Operator`/`Runtime`/`Kernel` categories, string tids, `external id`, flows `async`/`launch`.
    E1,
    /// 2021-11..2022-10: today's categories, flows `async_cpu_to_gpu`; `External id` = own correlation.
    E3,
    /// 2022-10..2024-03: today's flows; `External id` on runtime and device rows = own correlation.
    E4,
    /// Spring 2024 nightlies: epoch microseconds with three decimals, `displayTimeUnit` `ns`, no base.
    E5,
    /// 2024: relative times, base after `traceEvents`; unlinked rows fall back to the correlation.
    E6,
    /// 2025: version keys and `trace_id`; unlinked rows have no `External id`.
    E7,
    /// 2025: base before `traceEvents`.
    #[default]
    E8,
    /// 2026: `host_name`, `graph id` on kernels.
    E9,
}

/// How several ranks share one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// One rank per file, named by `distributedInfo`.
    #[default]
    None,
    /// SGLang: every pid becomes `"[TP00] 900"`; all other ids collide between ranks.
    PidPrefix,
    /// TraceLens: `args.rank`; pid, correlation and flow id are shifted by rank, originals in `*_raw`.
    ArgsRank,
}

/// The shift per rank that [`Merge::ArgsRank`] applies to pids, correlations and flow ids.
pub const RANK_SHIFT: i64 = 100_000_000;

/// Epoch of traces older than E6, in nanoseconds: 2022-04-15 05:20:00 UTC.
pub const EPOCH_NS: i64 = 1_650_000_000_000_000_000;

/// `baseTimeNanoseconds` of traces from E6 on: a multiple of a quarter year, as the writer has it.
pub const BASE_NS: i64 = 1_751_410_836_000_000_000;

/// What a row is, apart from how its category is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    CpuOp,
    Annotation,
    GpuAnnotation,
    Python,
    Runtime,
    Driver,
    Kernel,
    Memcpy,
    Memset,
    Sync,
    Overhead,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dialect {
    pub(crate) backend: Backend,
    pub(crate) era: Era,
    pub(crate) merge: Merge,
}

impl Dialect {
    pub(crate) fn category(self, kind: Kind) -> &'static str {
        if self.era == Era::E1 {
            match kind {
                Kind::CpuOp | Kind::Annotation => return "Operator",
                Kind::Runtime => return "Runtime",
                Kind::Kernel => return "Kernel",
                Kind::Memcpy => return "Memcpy",
                Kind::Memset => return "Memset",
                _ => {}
            }
        }
        match kind {
            Kind::CpuOp => "cpu_op",
            Kind::Annotation => "user_annotation",
            Kind::GpuAnnotation if self.era <= Era::E3 => "gpu_user_Annotation",
            Kind::GpuAnnotation => "gpu_user_annotation",
            Kind::Python => "python_function",
            Kind::Runtime => "cuda_runtime",
            Kind::Driver => "cuda_driver",
            Kind::Kernel => "kernel",
            Kind::Memcpy => "gpu_memcpy",
            Kind::Memset => "gpu_memset",
            Kind::Sync => "cuda_sync",
            Kind::Overhead => "overhead",
        }
    }

    /// Category and name of the launch flow.
    pub(crate) fn launch_flow(self) -> (&'static str, &'static str) {
        match self.era {
            Era::E1 => ("async", "launch"),
            Era::E3 => ("async_cpu_to_gpu", "async_gpu"),
            _ => ("ac2g", "ac2g"),
        }
    }

    /// Category and name of the forward-backward flow.
    pub(crate) fn fwdbwd_flow(self) -> (&'static str, &'static str) {
        if self.era <= Era::E3 {
            ("forward_backward", "fwd_bwd")
        } else {
            ("fwdbwd", "fwdbwd")
        }
    }

    /// The key under which runtime and device rows carry the op's id.
    pub(crate) fn external_key(self) -> &'static str {
        if self.era == Era::E1 {
            "external id"
        } else {
            "External id"
        }
    }

    /// The external id a runtime or device row has when the caller named none.
    pub(crate) fn unlinked_external(self, correlation: i64) -> Option<i64> {
        match self.era {
            Era::E1 => Some(0),
            Era::E3 | Era::E4 | Era::E5 | Era::E6 => Some(correlation),
            Era::E7 | Era::E8 | Era::E9 => None,
        }
    }

    pub(crate) fn ev_idx_key(self) -> &'static str {
        if self.era <= Era::E3 {
            "Profiler Event Index"
        } else {
            "Ev Idx"
        }
    }

    /// `cudaX` becomes `hipX` on ROCm; every other name is kept.
    pub(crate) fn api_name(self, name: &str) -> String {
        match name.strip_prefix("cuda") {
            Some(rest) if self.backend == Backend::Rocm => format!("hip{rest}"),
            _ => name.to_owned(),
        }
    }

    /// The pid of a device's rows: its index, or on ROCm the number of its HSA agent.
    pub(crate) fn device_pid(self, device: i64) -> i64 {
        match self.backend {
            Backend::Cuda => device,
            Backend::Rocm => device + 2,
        }
    }

    pub(crate) fn stream_tid(self, stream: i64) -> Id {
        if self.era == Era::E1 {
            Id::Text(format!("stream {stream}"))
        } else {
            Id::Int(stream)
        }
    }

    /// The tid of an X row on a CPU thread; flows keep the number even in E1.
    pub(crate) fn thread_tid(self, tid: Id) -> Id {
        match tid {
            Id::Int(n) if self.era == Era::E1 => Id::Text(n.to_string()),
            tid => tid,
        }
    }

    /// Nanoseconds added to every time of the trace.
    pub(crate) fn time_offset(self) -> i64 {
        if self.era <= Era::E5 { EPOCH_NS } else { 0 }
    }

    pub(crate) fn time_form(self) -> TimeForm {
        if self.era <= Era::E4 {
            TimeForm::Truncated
        } else {
            TimeForm::Decimal
        }
    }

    /// The `Device Type` of the backend's memory in `[memory]` rows (c10::DeviceType).
    pub(crate) fn memory_device_type(self) -> i64 {
        match self.backend {
            Backend::Cuda => 1,
            Backend::Rocm => 6,
        }
    }
}
