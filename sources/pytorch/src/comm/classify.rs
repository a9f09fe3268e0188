//! The kind of communication of every row.
//!
//! Each type of row has its own rule; a row named after another type's rows means nothing. In order:
//! - the `Collective name` in a row's args, whatever its type;
//! - operators by namespace (`c10d::…`), annotations by backend (`nccl:…`), on the CPU as on devices;
//!   rows of communication categories always;
//! - an operator that describes a collective but has no args (writers before 2023-12) by the annotation
//!   inside it, else by the operator around it;
//! - kernels that are communication by name: by the describing operator around their launch, else by what
//!   the name tells, else by any operator or annotation around the launch;
//! - any device work that a describing operator launches itself: the copy that stands for a collective of
//!   one rank. What other operators inside it launch (`aten::copy_` that flattens a list) is none.
//!
//! Python frames and API calls are no communication.

use crate::ingest::columns::{NO_ROW, Rows, Strings};
use crate::kineto::collective_args::{CollectiveArgs, DESCRIBING_OP};
use crate::link::Tally;
use crate::link::nesting::Nesting;
use crate::row::RowType;

use super::kernel_name::kind_of_kernel;
use super::kind::{CommKind, kind_of_annotation, kind_of_collective_name, kind_of_op};
use super::link::ops_around;

/// Collectives that are launched as one, by the describing operator that ends their group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Coalesced {
    pub(crate) end_row: u32,
    /// Describing operators, in the order of their calls.
    pub(crate) members: Vec<u32>,
}

/// What is known of communication row by row.
#[derive(Debug, Default)]
pub(crate) struct CommRows {
    /// Code of a [`CommKind`]; 0 on rows that are no communication.
    pub(crate) kind: Vec<u8>,
    /// Rows that are communication, but nothing tells of which kind.
    pub(crate) unclassified: Tally,
    /// The largest group that args name: a lower bound of the world's size.
    pub(crate) world_size: Option<i64>,
    /// Sorted by `end_row`.
    pub(crate) coalesced: Vec<Coalesced>,
    /// Operators that describe collectives; ascending.
    describing: Vec<u32>,
    /// Rows whose args tell the kind; ascending.
    told: Vec<u32>,
}

impl CommRows {
    /// Returns the kind of a row; `None` when it is no communication.
    pub(crate) fn kind_of(&self, row: u32) -> Option<CommKind> {
        CommKind::from_code(self.kind[row as usize])
    }

    /// Returns whether a row is an operator that describes a collective.
    pub(crate) fn is_describing(&self, row: u32) -> bool {
        self.describing.binary_search(&row).is_ok()
    }

    /// Returns the members of the group that a describing operator ends.
    pub(crate) fn members_ended_by(&self, row: u32) -> Option<&[u32]> {
        self.coalesced
            .binary_search_by_key(&row, |group| group.end_row)
            .ok()
            .map(|at| self.coalesced[at].members.as_slice())
    }

    fn set(&mut self, row: u32, kind: CommKind) {
        self.kind[row as usize] = kind.code();
    }

    /// Returns whether a row's own args tell its kind.
    pub(crate) fn is_told(&self, row: u32) -> bool {
        self.told.binary_search(&row).is_ok()
    }

    fn is_open(&self, row: u32) -> bool {
        self.kind_of(row).is_some_and(CommKind::is_undetermined)
    }
}

/// What names say, each asked once.
struct Names {
    kinds: Vec<u8>,
    rule: fn(&str) -> Option<CommKind>,
}

impl Names {
    const NOT_ASKED: u8 = u8::MAX;

    fn new(strings: &Strings, rule: fn(&str) -> Option<CommKind>) -> Self {
        Self {
            kinds: vec![Self::NOT_ASKED; strings.len()],
            rule,
        }
    }

    fn code(&mut self, strings: &Strings, name: u32) -> u8 {
        let Some(known) = self.kinds.get_mut(name as usize) else {
            return 0;
        };
        if *known == Self::NOT_ASKED {
            *known = (self.rule)(strings.get(name)).map_or(0, CommKind::code);
        }
        *known
    }
}

/// Writers of 2020 and 2021 filed annotations under operators.
fn kind_of_op_or_annotation(name: &str) -> Option<CommKind> {
    if name == DESCRIBING_OP {
        return Some(CommKind::Unknown);
    }
    kind_of_op(name).or_else(|| kind_of_annotation(name))
}

/// `xccl::allreduce`, `hccl:allgather`, or just `allreduce`.
fn kind_of_comm_row(name: &str) -> Option<CommKind> {
    let own = name.rsplit(':').next().unwrap_or(name);
    Some(kind_of_collective_name(own).unwrap_or(CommKind::Unknown))
}

/// Finds the communication rows of a trace and the kind of each.
pub(crate) fn classify(rows: &Rows, strings: &Strings, nesting: &Nesting) -> CommRows {
    let mut comm = by_names(rows, strings);
    let edges = by_args(rows, &mut comm);
    describe_without_args(rows, nesting, &mut comm);
    find_coalesced(rows, nesting, &edges, &mut comm);
    for row in rows.numbers() {
        if rows.row_type[row as usize].is_device_work()
            && let Some(kind) = kind_of_device_work(nesting, &comm, row)
        {
            comm.set(row, kind);
        }
    }
    for row in rows.numbers() {
        if comm.is_open(row) {
            comm.unclassified.add(row);
        }
    }
    comm
}

fn by_names(rows: &Rows, strings: &Strings) -> CommRows {
    let mut comm = CommRows {
        kind: vec![0; rows.len()],
        ..CommRows::default()
    };
    let mut ops = Names::new(strings, kind_of_op_or_annotation);
    let mut annotations = Names::new(strings, kind_of_annotation);
    let mut kernels = Names::new(strings, kind_of_kernel);
    let mut others = Names::new(strings, kind_of_comm_row);
    for row in rows.numbers() {
        let at = row as usize;
        let names = match rows.row_type[at] {
            RowType::CpuOp => &mut ops,
            RowType::Annotation => &mut annotations,
            RowType::Kernel => &mut kernels,
            RowType::Comm => &mut others,
            _ => continue,
        };
        comm.kind[at] = names.code(strings, rows.name[at]);
        if rows.row_type[at] == RowType::CpuOp
            && comm.kind[at] == CommKind::Unknown.code()
            && strings.get(rows.name[at]) == DESCRIBING_OP
        {
            comm.describing.push(row);
        } else if rows.row_type[at] == RowType::Comm && comm.kind[at] == 0 {
            comm.kind[at] = CommKind::Unknown.code();
        }
    }
    comm
}

/// Where the describing operators of a group begin and end: row and whether it is the begin.
type Edges = Vec<(u32, bool)>;

fn by_args(rows: &Rows, comm: &mut CommRows) -> Edges {
    let mut edges = Edges::new();
    for (row, args) in &rows.collective_args.0 {
        if rows.row_type[*row as usize] == RowType::Python {
            continue;
        }
        let args = CollectiveArgs::parse(args);
        let name = args.name.as_deref().unwrap_or_default();
        match kind_of_collective_name(name) {
            Some(kind) => {
                comm.set(*row, kind);
                comm.told.push(*row);
            }
            None if comm.kind[*row as usize] == 0 => comm.set(*row, CommKind::Unknown),
            None => {}
        }
        if comm.kind_of(*row) == Some(CommKind::Coalesced) && comm.is_describing(*row) {
            edges.push((*row, name.starts_with("start")));
        }
        comm.world_size = comm.world_size.max(args.group_size);
    }
    edges
}

/// Gives describing operators without args the kind of the annotation inside, else of an operator around.
fn describe_without_args(rows: &Rows, nesting: &Nesting, comm: &mut CommRows) {
    if !comm.describing.iter().any(|row| comm.is_open(*row)) {
        return;
    }
    for row in rows.numbers() {
        if rows.row_type[row as usize] != RowType::Annotation {
            continue;
        }
        let (op, kind) = (nesting.op[row as usize], comm.kind_of(row));
        if let Some(kind) = kind
            && op != NO_ROW
            && comm.is_describing(op)
            && comm.is_open(op)
        {
            comm.set(op, kind);
        }
    }
    for at in 0..comm.describing.len() {
        let row = comm.describing[at];
        if comm.is_open(row)
            && let Some(kind) = determined(comm, ops_around(nesting, row))
        {
            comm.set(row, kind);
        }
    }
}

/// Returns the first kind among rows that tells which collective they belong to.
fn determined(comm: &CommRows, rows: impl Iterator<Item = u32>) -> Option<CommKind> {
    rows.filter_map(|row| comm.kind_of(row))
        .find(|kind| !kind.is_undetermined() && *kind != CommKind::Coalesced)
}

/// Collects what was called between the begin and the end of a group on its thread.
fn find_coalesced(rows: &Rows, nesting: &Nesting, edges: &Edges, comm: &mut CommRows) {
    if edges.is_empty() {
        return;
    }
    let mut open: Option<Vec<u32>> = None;
    let mut thread = None;
    for &row in &nesting.order {
        if !comm.is_describing(row) {
            continue;
        }
        if thread.replace(rows.track[row as usize]) != Some(rows.track[row as usize]) {
            open = None;
        }
        match edges.binary_search_by_key(&row, |(edge, _)| *edge) {
            Ok(at) if edges[at].1 => open = Some(Vec::new()),
            Ok(_) => {
                if let Some(members) = open.take() {
                    comm.coalesced.push(Coalesced {
                        end_row: row,
                        members,
                    });
                }
            }
            Err(_) => {
                if let Some(members) = &mut open
                    && comm.kind_of(row).is_some_and(CommKind::is_transfer)
                {
                    members.push(row);
                }
            }
        }
    }
    comm.coalesced.sort_by_key(|group| group.end_row);
}

/// Returns the kind of a group: that of its members, or send and receive in one.
fn kind_of_members(comm: &CommRows, members: &[u32]) -> Option<CommKind> {
    let mut kinds = members.iter().filter_map(|member| comm.kind_of(*member));
    let first = kinds.next()?;
    kinds.try_fold(first, |so_far, kind| {
        let both_are_between_peers = [so_far, kind]
            .iter()
            .all(|kind| matches!(kind, CommKind::Send | CommKind::Recv | CommKind::SendRecv));
        match so_far == kind {
            true => Some(kind),
            false if both_are_between_peers => Some(CommKind::SendRecv),
            false => None,
        }
    })
}

/// Returns the kind of a device row; `None` when it is no communication.
fn kind_of_device_work(nesting: &Nesting, comm: &CommRows, row: u32) -> Option<CommKind> {
    let is_of_collective = |kind: &CommKind| kind.is_transfer() || *kind == CommKind::Barrier;
    let own = comm.kind_of(row);
    let Some(own) = own else {
        let launcher = ops_around(nesting, row).next();
        return launcher
            .filter(|op| comm.is_describing(*op))
            .and_then(|op| comm.kind_of(op))
            .filter(is_of_collective);
    };
    if comm.is_told(row) && own != CommKind::Coalesced {
        return Some(own);
    }
    let described = ops_around(nesting, row)
        .filter(|op| comm.is_describing(*op))
        .find_map(|op| match comm.members_ended_by(op) {
            Some(members) => kind_of_members(comm, members),
            None => comm.kind_of(op).filter(is_of_collective),
        });
    let by_name = Some(own).filter(|kind| is_of_collective(kind) && !kind.is_undetermined());
    let annotation = Some(nesting.annotation[row as usize]).filter(|row| *row != NO_ROW);
    described
        .or(by_name)
        .or_else(|| determined(comm, ops_around(nesting, row)))
        .or_else(|| determined(comm, annotation.into_iter()))
        .or(Some(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::testing::TestRows;

    fn kinds(table: &TestRows) -> CommRows {
        let linked = table.link(Some(0));
        classify(&table.rows, &table.strings, &linked.nesting)
    }

    #[test]
    fn each_type_of_row_has_its_own_rule() {
        let mut table = TestRows::default();
        let op = table.op("c10d::allreduce_", 0, 10);
        let annotation = table.annotation("nccl:all_reduce", 2, 5);
        let frame = table.cpu(RowType::Python, "nccl:all_reduce", 0, 100);
        let call = table.call("ncclAllReduce", 3, 1, 5);
        let kernel = table.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 20, 5, 5);
        let projected = table.device(RowType::Annotation, "nccl:all_reduce", 20, 5, 5);
        let impostor = table.device(
            RowType::Annotation,
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)",
            20,
            5,
            5,
        );
        let gemm = table.kernel("void gemm_with_sync<128>(float*, ncclComm*)", 30, 5, 6);
        let reduction = table.kernel("void at::native::reduce_kernel<512, 1>(int)", 40, 5, 7);
        let xccl = table.cpu(RowType::Comm, "xccl::allreduce", 50, 5);
        let comm = kinds(&table);
        for row in [op, annotation, kernel, projected, xccl] {
            assert_eq!(comm.kind_of(row), Some(CommKind::AllReduce), "row {row}");
        }
        for row in [frame, call, impostor, gemm, reduction] {
            assert_eq!(comm.kind_of(row), None, "row {row}");
        }
        assert_eq!(comm.unclassified.count, 0);
    }

    #[test]
    fn args_go_before_names() {
        let mut table = TestRows::default();
        let kernel = table.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 20, 5, 5);
        let generic = table.kernel("ncclDevKernel_Generic(int)", 30, 5, 6);
        table.collective_args(kernel, r#"{"Collective name": "barrier"}"#);
        table.collective_args(
            generic,
            r#"{"Collective name": "_allgather_base", "Group size": 8}"#,
        );
        let comm = kinds(&table);
        assert_eq!(comm.kind_of(kernel), Some(CommKind::Barrier));
        assert_eq!(comm.kind_of(generic), Some(CommKind::AllGather));
        assert_eq!(comm.world_size, Some(8));
    }

    #[test]
    fn ambiguous_kernels_take_the_kind_of_what_launched_them() {
        let mut table = TestRows::default();
        let describing = table.op("record_param_comms", 0, 10);
        table.collective_args(describing, r#"{"Collective name": "all_to_all"}"#);
        table.call("hipExtLaunchKernel", 2, 1, 5);
        let linked = table.kernel("ncclDevKernel_SendRecv(int)", 20, 5, 5);
        table.annotation("nccl:recv 0<-1", 30, 10);
        table.call("hipExtLaunchKernel", 32, 1, 6);
        let annotated = table.kernel("ncclDevKernel_Generic(int)", 40, 5, 6);
        let orphan = table.kernel("ncclDevKernel_SendRecv(int)", 50, 5, 7);
        let generic = table.kernel("ncclDevKernel_Generic_4(int)", 60, 5, 8);
        let comm = kinds(&table);
        assert_eq!(comm.kind_of(linked), Some(CommKind::AllToAll));
        assert_eq!(comm.kind_of(annotated), Some(CommKind::Recv));
        assert_eq!(comm.kind_of(orphan), Some(CommKind::SendRecv));
        assert_eq!(comm.kind_of(generic), Some(CommKind::Unknown));
        assert_eq!(comm.unclassified.rows, [orphan, generic]);
    }

    #[test]
    fn describing_operators_without_args_take_the_annotation_inside_or_the_operator_around() {
        let mut table = TestRows::default();
        let by_annotation = table.op("record_param_comms", 0, 10);
        table.annotation("nccl:all_to_all", 2, 5);
        table.op("c10d::broadcast_", 20, 10);
        let by_op = table.op("record_param_comms", 22, 5);
        let unknown = table.op("record_param_comms", 40, 5);
        let comm = kinds(&table);
        assert_eq!(comm.kind_of(by_annotation), Some(CommKind::AllToAll));
        assert_eq!(comm.kind_of(by_op), Some(CommKind::Broadcast));
        assert_eq!(comm.kind_of(unknown), Some(CommKind::Unknown));
        assert_eq!(comm.unclassified.rows, [unknown]);
    }

    #[test]
    fn the_copy_of_a_group_of_one_is_communication_and_flattening_is_not() {
        let mut table = TestRows::default();
        let describing = table.op("record_param_comms", 0, 20);
        table.collective_args(describing, r#"{"Collective name": "_allgather_base"}"#);
        table.call("cudaMemcpyAsync", 2, 1, 5);
        table.op("aten::copy_", 10, 5);
        table.call("cudaLaunchKernel", 12, 1, 6);
        let copy = table.device(RowType::Memcpy, "Memcpy DtoD (Device -> Device)", 30, 5, 5);
        let flattening = table.kernel("vectorized_elementwise_kernel", 40, 5, 6);
        let comm = kinds(&table);
        assert_eq!(comm.kind_of(copy), Some(CommKind::AllGather));
        assert_eq!(comm.kind_of(flattening), None);
    }

    #[test]
    fn coalesced_kernels_take_the_kind_of_the_members() {
        let mut table = TestRows::default();
        for (at, name) in [
            (0, "startCoalescing"),
            (10, "send"),
            (20, "recv"),
            (30, "endCoalescing"),
        ] {
            let row = table.op("record_param_comms", at, 8);
            table.collective_args(row, &format!(r#"{{"Collective name": "{name}"}}"#));
        }
        table.call("cudaLaunchKernelExC", 32, 1, 5);
        let kernel = table.kernel("ncclDevKernel_Generic(int)", 50, 5, 5);
        let comm = kinds(&table);
        assert_eq!(comm.kind_of(kernel), Some(CommKind::SendRecv));
        assert_eq!(comm.members_ended_by(3), Some(&[1, 2][..]));
    }
}
