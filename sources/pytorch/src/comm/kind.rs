//! The kinds of communication, and what names say of them.
//!
//! Writers, backends and frameworks spell one kind in many ways (`_allgather_base`, `all_gather`,
//! `AllGather`); all are compared in lower case without `_`, as in [`plain`].

/// What a communication row does.
///
/// The numbers are those of the stored `comm_kind` column, where 0 means no communication; they never
/// change within a sidecar format version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum CommKind {
    AllReduce = 1,
    AllGather = 2,
    ReduceScatter = 3,
    AllToAll = 4,
    Broadcast = 5,
    Reduce = 6,
    Gather = 7,
    Scatter = 8,
    Send = 9,
    Recv = 10,
    /// Sends and receives in one; from the name of an NCCL kernel alone it may as well be an all-to-all,
    /// a gather or a scatter.
    SendRecv = 11,
    Barrier = 12,
    /// Waiting for communication that another row describes.
    Wait = 13,
    /// The begin or the end of a group of collectives that are launched as one.
    Coalesced = 14,
    /// Setting up a communicator.
    Init = 15,
    /// Communication, but nothing tells of which kind.
    Unknown = 16,
}

/// All kinds in the order of their numbers.
pub(crate) const COMM_KINDS: [CommKind; 16] = [
    CommKind::AllReduce,
    CommKind::AllGather,
    CommKind::ReduceScatter,
    CommKind::AllToAll,
    CommKind::Broadcast,
    CommKind::Reduce,
    CommKind::Gather,
    CommKind::Scatter,
    CommKind::Send,
    CommKind::Recv,
    CommKind::SendRecv,
    CommKind::Barrier,
    CommKind::Wait,
    CommKind::Coalesced,
    CommKind::Init,
    CommKind::Unknown,
];

impl CommKind {
    /// Returns the kind of a stored number; `None` for 0 and numbers never given out.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        COMM_KINDS.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// Returns the stored number.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the kind as filters and answers spell it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Send => "send",
            Self::Recv => "recv",
            Self::SendRecv => "send_recv",
            Self::Barrier => "barrier",
            Self::Wait => "wait",
            Self::Coalesced => "coalesced",
            Self::Init => "init",
            Self::Unknown => "unknown",
        }
    }

    /// Returns whether rows of the kind move data. A barrier does not: its kernel moves a token that says
    /// nothing of the network.
    pub(crate) const fn is_transfer(self) -> bool {
        match self {
            Self::AllReduce
            | Self::AllGather
            | Self::ReduceScatter
            | Self::AllToAll
            | Self::Broadcast
            | Self::Reduce
            | Self::Gather
            | Self::Scatter
            | Self::Send
            | Self::Recv
            | Self::SendRecv => true,
            Self::Barrier | Self::Wait | Self::Coalesced | Self::Init | Self::Unknown => false,
        }
    }

    /// Returns whether the kind leaves open which collective a row is part of.
    pub(crate) const fn is_undetermined(self) -> bool {
        matches!(self, Self::SendRecv | Self::Unknown)
    }
}

/// Returns a name in lower case without `_`.
pub(super) fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| *c != '_')
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// What plain names begin with. Longer words stand before those they begin with.
const WORDS: &[(&str, CommKind)] = &[
    ("allreduce", CommKind::AllReduce),
    ("allgather", CommKind::AllGather),
    ("reducescatter", CommKind::ReduceScatter),
    ("alltoall", CommKind::AllToAll),
    ("broadcast", CommKind::Broadcast),
    ("reduce", CommKind::Reduce),
    ("gather", CommKind::Gather),
    ("scatter", CommKind::Scatter),
    ("sendrecv", CommKind::SendRecv),
    ("send", CommKind::Send),
    ("recv", CommKind::Recv),
    ("barrier", CommKind::Barrier),
    ("monitoredbarrier", CommKind::Barrier),
    ("wait", CommKind::Wait),
    ("startcoalescing", CommKind::Coalesced),
    ("endcoalescing", CommKind::Coalesced),
    ("coalesced", CommKind::Coalesced),
    ("init", CommKind::Init),
];

/// Returns the kind that a plain name begins with.
pub(super) fn kind_at_start(plain: &str) -> Option<CommKind> {
    WORDS
        .iter()
        .find(|(word, _)| plain.starts_with(word))
        .map(|(_, kind)| *kind)
}

/// Returns the kind that occurs anywhere in a plain name; the longest words count.
pub(super) fn kind_within(plain: &str) -> Option<CommKind> {
    WORDS
        .iter()
        .filter(|(_, kind)| kind.is_transfer() || *kind == CommKind::Barrier)
        .find(|(word, _)| plain.contains(word))
        .map(|(_, kind)| *kind)
}

/// Returns the kind of a `Collective name`, for example `_allgather_base`.
pub(crate) fn kind_of_collective_name(name: &str) -> Option<CommKind> {
    kind_at_start(&plain(name))
}

/// What annotations of communication backends begin with, in front of a colon.
const BACKENDS: &[&str] = &[
    "nccl", "rccl", "gloo", "hccl", "xccl", "mccl", "oneccl", "ccl", "ucc", "mpi",
];

/// Returns the kind of an annotation that a communication backend made: `nccl:all_reduce`,
/// `nccl:send 0->1`, `gloo:barrier`. Any other annotation is none, whatever it is named after.
pub(crate) fn kind_of_annotation(name: &str) -> Option<CommKind> {
    let (backend, what) = name.split_once(':')?;
    if what.starts_with(':') || !BACKENDS.iter().any(|known| known.eq_ignore_ascii_case(backend)) {
        return None;
    }
    Some(kind_of_collective_name(what.trim_start()).unwrap_or(CommKind::Unknown))
}

/// Namespaces whose every operator communicates.
const COMM_NAMESPACES: &[&str] = &[
    "c10d",
    "_c10d_functional",
    "c10d_functional",
    "_c10d_functional_autograd",
];

/// Namespaces of which the operators that are named after a collective communicate.
const MIXED_NAMESPACES: &[&str] = &[
    "symm_mem",
    "_dtensor",
    "_C_custom_ar",
    "vllm",
    "sglang",
    "sgl_kernel",
];

/// What operators of mixed namespaces put in front of the collective's name.
const ALGORITHMS: &[&str] = &[
    "multimem", "oneshot", "twoshot", "outplace", "inplace", "sharddim",
];

/// Returns the kind of a dispatcher operator: `c10d::allreduce_`, `_c10d_functional::wait_tensor`.
pub(crate) fn kind_of_op(name: &str) -> Option<CommKind> {
    let (namespace, op) = name.split_once("::")?;
    if COMM_NAMESPACES.contains(&namespace) {
        return Some(kind_of_collective_name(op).unwrap_or(CommKind::Unknown));
    }
    if !MIXED_NAMESPACES.contains(&namespace) {
        return None;
    }
    kind_behind_algorithm(&plain(op)).filter(|kind| {
        matches!(
            kind,
            CommKind::AllReduce | CommKind::AllGather | CommKind::ReduceScatter | CommKind::AllToAll
        )
    })
}

/// Returns the kind that a plain name begins with once algorithms are taken off its front.
pub(super) fn kind_behind_algorithm(plain: &str) -> Option<CommKind> {
    let mut rest = plain;
    while let Some(shorter) = ALGORITHMS.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = shorter;
    }
    kind_at_start(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_unique_and_round_trip() {
        let mut names: Vec<_> = COMM_KINDS.iter().map(|kind| kind.name()).collect();
        for kind in COMM_KINDS {
            assert_eq!(CommKind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(CommKind::from_code(0), None);
        assert_eq!(CommKind::from_code(17), None);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COMM_KINDS.len());
    }

    #[test]
    fn collective_names_of_all_spellings_are_known() {
        use CommKind::*;
        for (names, kind) in [
            (
                &[
                    "allreduce",
                    "allreduce_coalesced",
                    "allreduce_sparse",
                    "ALLREDUCE",
                ][..],
                AllReduce,
            ),
            (
                &[
                    "allgather",
                    "all_gather",
                    "_allgather_base",
                    "allgather_into_tensor_coalesced",
                ],
                AllGather,
            ),
            (
                &[
                    "reduce_scatter",
                    "reducescatter",
                    "_reduce_scatter_base",
                    "reduce_scatter_tensor_coalesced",
                ],
                ReduceScatter,
            ),
            (&["all_to_all", "all_to_allv"], AllToAll),
            (&["broadcast", "_broadcast_oop"], Broadcast),
            (&["reduce", "_reduce_oop"], Reduce),
            (&["gather"], Gather),
            (&["scatter"], Scatter),
            (&["send"], Send),
            (&["recv"], Recv),
            (&["barrier"], Barrier),
            (&["wait"], Wait),
            (&["startCoalescing", "endCoalescing"], Coalesced),
            (&["init"], Init),
        ] {
            for name in names {
                assert_eq!(kind_of_collective_name(name), Some(kind), "{name}");
            }
        }
        assert_eq!(kind_of_collective_name("something"), None);
        assert_eq!(kind_of_collective_name(""), None);
    }

    #[test]
    fn annotations_need_a_backend_in_front() {
        use CommKind::*;
        for (name, kind) in [
            ("nccl:all_reduce", Some(AllReduce)),
            ("gloo:all_reduce", Some(AllReduce)),
            ("nccl:all_reduce_barrier", Some(AllReduce)),
            ("nccl:_all_gather_base", Some(AllGather)),
            ("hccl:allgather", Some(AllGather)),
            ("nccl:_reduce_scatter_base", Some(ReduceScatter)),
            ("nccl:send 0->1", Some(Send)),
            ("nccl:recv 0<-1", Some(Recv)),
            ("nccl:coalesced", Some(Coalesced)),
            ("gloo:barrier", Some(Barrier)),
            ("nccl:new_thing", Some(Unknown)),
            (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                None,
            ),
            ("all_reduce", None),
            ("nccl::all_reduce", None),
            ("my nccl:all_reduce", None),
            ("Optimizer.step#SGD.step", None),
        ] {
            assert_eq!(kind_of_annotation(name), kind, "{name}");
        }
    }

    #[test]
    fn operators_are_told_by_their_namespace() {
        use CommKind::*;
        for (name, kind) in [
            ("c10d::allreduce_", Some(AllReduce)),
            ("_c10d_functional::all_reduce", Some(AllReduce)),
            ("c10d::_allgather_base_", Some(AllGather)),
            ("_c10d_functional::all_gather_into_tensor", Some(AllGather)),
            ("c10d::_reduce_scatter_base_", Some(ReduceScatter)),
            ("c10d::alltoall_base_", Some(AllToAll)),
            ("c10d::recv_any_source_", Some(Recv)),
            ("c10d::monitored_barrier_", Some(Barrier)),
            ("_c10d_functional::wait_tensor", Some(Wait)),
            ("c10d::something_new", Some(Unknown)),
            ("symm_mem::multimem_all_reduce_", Some(AllReduce)),
            ("symm_mem::get_remote_tensors", None),
            ("vllm::all_reduce", Some(AllReduce)),
            ("vllm::reduce_sum", None),
            ("aten::gather", None),
            ("aten::scatter_add_", None),
            ("record_param_comms", None),
        ] {
            assert_eq!(kind_of_op(name), kind, "{name}");
        }
    }
}
