//! The collectives of a trace: what each did, when, in which group, and how fast.
//!
//! What the args of the kernels tell goes before what those of the describing operator tell; a process group
//! is completed from the header. Nothing is guessed: a size needs a number of elements and a known type.
//!
//! The time of a collective is that of its device work, from first start to last end. Without device work
//! it is that of the backend's own thread, else of the operator, which for asynchronous backends is only
//! the call: no bandwidth comes from it. Collectives none of whose rows has a usable time are left out.
//!
//! *Exposed* time is device work of the collective while no kernel that computes runs on the same device.
//! Copies and fills do not count as cover: they compete for the same links, and nobody waits for their
//! results alone. It is unknown for collectives without device work.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ingest::columns::{NO_ROW, NONE, Rows};
use crate::interval::{length, length_within, union};
use crate::kineto::collective_args::CollectiveArgs;
use crate::kineto::metadata::{Group, Header};
use crate::link::nesting::Nesting;
use crate::link::rank::Ranks;
use crate::link::step::Steps;
use crate::row::RowType;

use super::assemble::{Assembled, Linked, assemble};
use super::bandwidth::{Bandwidth, bytes};
use super::classify::CommRows;
use super::kind::CommKind;

/// How well it is known that rows make up a collective of a kind.
///
/// The numbers are those of the stored column; they never change within a sidecar format version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Confidence {
    /// Args describe the collective.
    Metadata = 0,
    /// Nothing describes it, but launches or nesting join rows that agree.
    Linked = 1,
    /// A row's name is all there is.
    Name = 2,
    /// Rows of different threads were joined by the order of calls, and the time rests on it.
    Time = 3,
}

impl Confidence {
    /// All values in the order of their numbers.
    const ALL: [Self; 4] = [Self::Metadata, Self::Linked, Self::Name, Self::Time];

    /// Returns the confidence as answers spell it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Linked => "linked",
            Self::Name => "name",
            Self::Time => "time",
        }
    }

    /// Returns the stored number.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the confidence of a stored number.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// The process group of a collective, as far as it is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessGroup {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) size: Option<i64>,
    /// The members' global ranks.
    pub(crate) ranks: Option<Vec<i64>>,
}

/// One collective. Rows are row numbers, times ns as written; [`NONE`] and [`NO_ROW`] stand for absent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Collective {
    pub(crate) kind: CommKind,
    pub(crate) rank: i64,
    /// Number of the step in which it was called.
    pub(crate) step: i64,
    /// Position by start among those of its kind, rank and step; from 0.
    pub(crate) ordinal: u32,
    /// String number of the name of its most telling row: kernel, annotation, operator.
    pub(crate) name: u32,
    pub(crate) start_ns: i64,
    pub(crate) dur_ns: i64,
    /// The innermost operator, or the annotation where there is none.
    pub(crate) cpu_row: u32,
    /// Device work; ascending.
    pub(crate) kernel_rows: Vec<u32>,
    /// Outer operators, annotations, their projections, members of a coalesced group; ascending.
    pub(crate) event_rows: Vec<u32>,
    pub(crate) process_group: Arc<ProcessGroup>,
    pub(crate) dtype: Option<String>,
    /// What this rank puts in, and gets out.
    pub(crate) in_bytes: Option<i64>,
    pub(crate) out_bytes: Option<i64>,
    pub(crate) bandwidth: Bandwidth,
    /// Number of the collective within its process group.
    pub(crate) sequence: Option<i64>,
    /// `None` without device work.
    pub(crate) exposed_ns: Option<i64>,
    pub(crate) confidence: Confidence,
}

/// Finds the collectives of a trace, sorted by rank group, start and first row.
pub(crate) fn collect(
    rows: &Rows,
    ranks: &Ranks,
    nesting: &Nesting,
    steps: &Steps,
    comm: &CommRows,
    header: &Header,
) -> Vec<Collective> {
    let linked = Linked {
        rows,
        ranks,
        nesting,
        comm,
    };
    let assembled = assemble(linked);
    if assembled.is_empty() {
        return Vec::new();
    }
    let mut describer = Describer {
        linked,
        steps,
        header,
        compute: compute_by_device(linked),
        groups: BTreeMap::new(),
    };
    let mut collectives: Vec<(u16, Collective)> = assembled
        .into_iter()
        .filter_map(|rows| describer.describe(rows))
        .collect();
    collectives.sort_by(order);
    let mut counts: FxHashMap<(CommKind, i64, i64), u32> = FxHashMap::default();
    collectives
        .into_iter()
        .map(|(_, mut collective)| {
            let count = counts
                .entry((collective.kind, collective.rank, collective.step))
                .or_default();
            collective.ordinal = *count;
            *count += 1;
            collective
        })
        .collect()
}

fn order(a: &(u16, Collective), b: &(u16, Collective)) -> Ordering {
    let key = |(group, collective): &(u16, Collective)| {
        let first_row = collective
            .kernel_rows
            .first()
            .map_or(collective.cpu_row, |row| (*row).min(collective.cpu_row));
        (*group, collective.start_ns, first_row)
    };
    key(a).cmp(&key(b))
}

/// The intervals in which a device computes, by rank group and device.
type Compute = FxHashMap<(u16, i64), Vec<Range<i64>>>;

fn compute_by_device(linked: Linked<'_>) -> Compute {
    let mut intervals: Compute = FxHashMap::default();
    for (row, placement) in &linked.rows.placement.0 {
        let is_compute =
            linked.rows.row_type[*row as usize] == RowType::Kernel && linked.comm.kind_of(*row).is_none();
        if is_compute && let Some(interval) = interval(linked.rows, *row) {
            intervals
                .entry((linked.group_of(*row), placement.device))
                .or_default()
                .push(interval);
        }
    }
    intervals
        .into_iter()
        .map(|(device, intervals)| (device, union(intervals)))
        .collect()
}

fn interval(rows: &Rows, row: u32) -> Option<Range<i64>> {
    Some(rows.start_ns[row as usize]..rows.end_ns(row)?)
}

/// Tells what is known of assembled collectives.
struct Describer<'a> {
    linked: Linked<'a>,
    steps: &'a Steps,
    header: &'a Header,
    compute: Compute,
    groups: BTreeMap<ProcessGroup, Arc<ProcessGroup>>,
}

impl<'a> Describer<'a> {
    fn describe(&mut self, assembled: Assembled) -> Option<(u16, Collective)> {
        let Linked {
            rows, ranks, comm, ..
        } = self.linked;
        let first_kernel = assembled.kernel_rows.first().copied();
        let main_row = first_kernel.or(Some(assembled.cpu_row).filter(|row| *row != NO_ROW))?;
        let kind = self.kind_of(&assembled, main_row)?;
        let device_span = span(rows, &assembled.kernel_rows);
        let own_span = span(rows, &[assembled.time_row]);
        let time = device_span
            .clone()
            .or_else(|| own_span.clone())
            .or_else(|| span(rows, &[assembled.cpu_row]))?;
        let dur_ns = time.end - time.start;
        let args = self.args_of(&assembled);
        let dtype = args.dtype.as_deref();
        let is_sized = kind != CommKind::Barrier;
        let [in_bytes, out_bytes] =
            [args.in_elements, args.out_elements].map(|count| bytes(count, dtype).filter(|_| is_sized));
        let process_group = self.process_group(&args);
        let bandwidth = if device_span.is_some() || own_span.is_some() {
            Bandwidth::of(kind, in_bytes, out_bytes, dur_ns, process_group.size)
        } else {
            Bandwidth::default()
        };
        let track = rows.track[main_row as usize];
        let collective = Collective {
            kind,
            rank: ranks.rank_of(track),
            step: self.step_of(&assembled),
            ordinal: 0,
            name: self.name_of(&assembled, main_row),
            start_ns: time.start,
            dur_ns,
            cpu_row: assembled.cpu_row,
            process_group,
            dtype: dtype.filter(|_| is_sized).map(str::to_owned),
            in_bytes,
            out_bytes,
            bandwidth,
            sequence: args.sequence,
            exposed_ns: self.exposed_ns(&assembled.kernel_rows),
            confidence: self.confidence(comm, &assembled),
            kernel_rows: assembled.kernel_rows,
            event_rows: assembled.event_rows,
        };
        Some((ranks.of_track[track as usize], collective))
    }

    /// Returns the kind; `None` for what turns out to be no collective.
    fn kind_of(&self, assembled: &Assembled, main_row: u32) -> Option<CommKind> {
        let comm = self.linked.comm;
        let kind = comm.kind_of(main_row)?;
        let kind = if kind.is_undetermined() && assembled.cpu_row != NO_ROW {
            comm.kind_of(assembled.cpu_row)
                .filter(|cpu| cpu.is_transfer() || *cpu == CommKind::Barrier)
                .unwrap_or(kind)
        } else {
            kind
        };
        (!matches!(kind, CommKind::Wait | CommKind::Init)).then_some(kind)
    }

    fn args_of_row(&self, row: u32) -> CollectiveArgs<'a> {
        self.linked
            .rows
            .collective_args
            .get(row)
            .map(|args| CollectiveArgs::parse(args))
            .unwrap_or_default()
    }

    /// Returns the args of the first kernel, completed by those of the operator; of a coalesced group, the
    /// sums of its members.
    fn args_of(&self, assembled: &Assembled) -> CollectiveArgs<'a> {
        let rows = self.linked.rows;
        if !assembled.members.is_empty() {
            return self.args_of_members(&assembled.members);
        }
        let described_kernel = assembled
            .kernel_rows
            .iter()
            .find(|row| rows.collective_args.get(**row).is_some());
        let of_kernel = described_kernel
            .map(|row| self.args_of_row(*row))
            .unwrap_or_default();
        let of_cpu = self.args_of_row(assembled.cpu_row);
        let of_event = assembled
            .event_rows
            .iter()
            .find(|row| rows.row_type[**row as usize] == RowType::Comm)
            .map(|row| self.args_of_row(*row))
            .unwrap_or_default();
        of_kernel.or(of_cpu).or(of_event)
    }

    fn args_of_members(&self, members: &[u32]) -> CollectiveArgs<'a> {
        let mut members = members.iter().map(|member| self.args_of_row(*member));
        let Some(first) = members.next() else {
            return CollectiveArgs::default();
        };
        members.fold(first, |mut sum, member| {
            let is_alike = sum.dtype == member.dtype;
            let add = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?).filter(|_| is_alike);
            sum.in_elements = add(sum.in_elements, member.in_elements);
            sum.out_elements = add(sum.out_elements, member.out_elements);
            sum.dtype = sum.dtype.filter(|_| is_alike);
            sum
        })
    }

    /// Returns the group that args name, completed by the header's entry of that name; where args name none
    /// and the whole job has but one group, that.
    fn process_group(&mut self, args: &CollectiveArgs<'_>) -> Arc<ProcessGroup> {
        let listed = self.listed_group(args);
        let ranks = args
            .group_ranks
            .clone()
            .filter(|ranks| !ranks.is_empty())
            .or_else(|| listed.and_then(|group| group.ranks.clone()))
            .or_else(|| args.evenly_spaced_ranks());
        let own = |text: &Option<std::borrow::Cow<'_, str>>| {
            text.as_deref().filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let group = ProcessGroup {
            name: own(&args.group_name).or_else(|| listed?.name.clone()),
            description: own(&args.group_description).or_else(|| listed?.description.clone()),
            size: args.group_size.or_else(|| listed?.size),
            ranks,
        };
        if let Some(known) = self.groups.get(&group) {
            return Arc::clone(known);
        }
        let shared = Arc::new(group.clone());
        self.groups.insert(group, Arc::clone(&shared));
        shared
    }

    fn listed_group(&self, args: &CollectiveArgs<'_>) -> Option<&'a Group> {
        let info = self.header.distributed.as_ref()?;
        let is_only = info.group_count.is_none_or(|count| count == 1);
        // A merged file has the header of its first rank alone, whose groups are not those of others.
        if self.linked.ranks.is_merged() {
            return None;
        }
        match (&args.group_name, info.groups.as_slice()) {
            (Some(name), groups) => groups.iter().find(|group| {
                group.name.as_deref() == Some(name)
                    && args
                        .group_size
                        .is_none_or(|size| group.size.is_none_or(|listed| listed == size))
            }),
            (None, [group]) if is_only && args.group_size.is_none_or(|size| Some(size) == group.size) => {
                Some(group)
            }
            (None, _) => None,
        }
    }

    /// Returns the step in which the collective was called: that of its device work, else the step of its
    /// rank at the call, on whatever thread.
    fn step_of(&self, assembled: &Assembled) -> i64 {
        let rows = self.linked.rows;
        let of_kernels = assembled
            .kernel_rows
            .iter()
            .map(|row| self.steps.of_row[*row as usize])
            .find(|step| *step != NONE);
        if let Some(step) = of_kernels {
            return step;
        }
        let cpu_row = assembled.cpu_row;
        if cpu_row == NO_ROW || rows.start_ns[cpu_row as usize] == NONE {
            return NONE;
        }
        self.steps
            .at(self.linked.group_of(cpu_row), rows.start_ns[cpu_row as usize])
            .map_or(NONE, |step| step.number)
    }

    /// Returns the name of the most telling row: a kernel, else an annotation, else an operator other than
    /// the describing one.
    fn name_of(&self, assembled: &Assembled, main_row: u32) -> u32 {
        let Linked { rows, comm, .. } = self.linked;
        if !assembled.kernel_rows.is_empty() {
            return rows.name[main_row as usize];
        }
        let mut others = assembled.event_rows.iter();
        let annotation = others
            .clone()
            .find(|row| rows.row_type[**row as usize] != RowType::CpuOp);
        let op = others.find(|row| !comm.is_describing(**row));
        let told_by = annotation.or(op.filter(|_| comm.is_describing(main_row)));
        rows.name[*told_by.unwrap_or(&main_row) as usize]
    }

    /// Returns how long the device work ran while its device did not compute.
    fn exposed_ns(&self, kernels: &[u32]) -> Option<i64> {
        let rows = self.linked.rows;
        let mut by_device: BTreeMap<(u16, i64), Vec<Range<i64>>> = BTreeMap::new();
        for &row in kernels {
            let device = rows.placement.get(row).map_or(NONE, |placement| placement.device);
            if let Some(interval) = interval(rows, row) {
                by_device
                    .entry((self.linked.group_of(row), device))
                    .or_default()
                    .push(interval);
            }
        }
        if by_device.is_empty() {
            return None;
        }
        let exposed = by_device.into_iter().map(|(device, intervals)| {
            let intervals = union(intervals);
            let compute = self.compute.get(&device).map_or(&[][..], Vec::as_slice);
            let covered: i64 = intervals
                .iter()
                .map(|interval| length_within(compute, interval))
                .sum();
            length(&intervals) - covered
        });
        Some(exposed.sum())
    }

    fn confidence(&self, comm: &CommRows, assembled: &Assembled) -> Confidence {
        let described = assembled
            .kernel_rows
            .iter()
            .chain(&assembled.members)
            .chain(Some(&assembled.cpu_row).filter(|row| **row != NO_ROW))
            .any(|row| comm.is_told(*row));
        let joined = usize::from(assembled.cpu_row != NO_ROW)
            + usize::from(!assembled.kernel_rows.is_empty())
            + assembled.event_rows.len();
        match (assembled.is_by_time, described) {
            (true, _) if assembled.kernel_rows.is_empty() => Confidence::Time,
            (_, true) => Confidence::Metadata,
            _ if joined > 1 => Confidence::Linked,
            _ => Confidence::Name,
        }
    }
}

/// Returns the time from first start to last end of the rows that have one.
fn span(rows: &Rows, of: &[u32]) -> Option<Range<i64>> {
    of.iter()
        .filter(|row| **row != NO_ROW)
        .filter_map(|row| interval(rows, *row))
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
}

#[cfg(test)]
mod tests;
