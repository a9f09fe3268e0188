//! Which rows make up one collective.
//!
//! A collective is seen as up to four kinds of rows: operators on the CPU (`c10d::…` around the describing
//! operator), an annotation of its backend, the kernels it launched, and the annotation's projections on
//! their streams:
//!
//! ```text
//! thread   c10d::allreduce_ |-----------------|         outer operator: an event row
//!            record_param_comms |-----------|           innermost operator: the CPU row
//!              nccl:all_reduce    |-------|             annotation: an event row
//!                launch              |-|
//! stream                                  nccl:all_reduce |------------|   event row
//!                                         kernel           |----------|    device row
//! ```
//!
//! Whatever records the same collective twice does so nested, so the innermost operator stands for it.
//! Backends on the CPU (gloo) have no kernels: their annotation is on a thread of their own, and is joined
//! with an operator of its rank and kind in the order of calls, as such backends work in that order.
//!
//! Waiting is no collective, nor is the begin or the end of a coalesced group: a group that is launched as
//! one kernel is one collective, its members event rows.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ingest::columns::{NO_ROW, Rows};
use crate::link::nesting::Nesting;
use crate::link::rank::Ranks;
use crate::row::RowType;

use super::classify::CommRows;
use super::kind::CommKind;
use super::link::ops_around;

/// The rows of one collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assembled {
    /// The innermost operator, or the annotation where there is none; [`NO_ROW`] for device work alone.
    pub(super) cpu_row: u32,
    /// Device work; ascending.
    pub(super) kernel_rows: Vec<u32>,
    /// Whatever else belongs to it; ascending.
    pub(super) event_rows: Vec<u32>,
    /// The describing operators of a group that was launched as one.
    pub(super) members: Vec<u32>,
    /// The row whose time is that of the collective where there is no device work: an annotation of a
    /// backend's own thread, or a row of a communication category; else [`NO_ROW`].
    pub(super) time_row: u32,
    /// Whether rows were joined by the order of calls.
    pub(super) is_by_time: bool,
}

impl Assembled {
    fn of(cpu_row: u32) -> Self {
        Self {
            cpu_row,
            kernel_rows: Vec::new(),
            event_rows: Vec::new(),
            members: Vec::new(),
            time_row: NO_ROW,
            is_by_time: false,
        }
    }
}

/// What collectives are assembled from.
#[derive(Clone, Copy)]
pub(super) struct Linked<'a> {
    pub(super) rows: &'a Rows,
    pub(super) ranks: &'a Ranks,
    pub(super) nesting: &'a Nesting,
    pub(super) comm: &'a CommRows,
}

impl Linked<'_> {
    pub(super) fn group_of(&self, row: u32) -> u16 {
        self.ranks.of_track[self.rows.track[row as usize] as usize]
    }

    /// Returns whether a row of some kind can stand for a collective.
    fn can_stand(&self, row: u32) -> bool {
        self.comm
            .kind_of(row)
            .is_some_and(|kind| kind.is_transfer() || kind == CommKind::Barrier)
    }
}

/// Collectives under construction, with the one that each CPU-side row belongs to.
struct Assembly<'a> {
    linked: Linked<'a>,
    collectives: Vec<Assembled>,
    of_row: FxHashMap<u32, usize>,
}

/// Joins the communication rows of a trace into collectives; no order is promised.
pub(super) fn assemble(linked: Linked<'_>) -> Vec<Assembled> {
    let mut assembly = Assembly {
        linked,
        collectives: Vec::new(),
        of_row: FxHashMap::default(),
    };
    assembly.take_ops();
    assembly.take_device_work();
    assembly.take_annotations();
    assembly.take_projections();
    let mut collectives = assembly.collectives;
    for collective in &mut collectives {
        for rows in [&mut collective.kernel_rows, &mut collective.event_rows] {
            rows.sort_unstable();
            rows.dedup();
        }
    }
    collectives
}

impl Assembly<'_> {
    fn start(&mut self, cpu_row: u32) -> usize {
        let number = self.collectives.len();
        self.collectives.push(Assembled::of(cpu_row));
        if cpu_row != NO_ROW {
            self.of_row.insert(cpu_row, number);
        }
        number
    }

    /// Begins a collective for every innermost operator; the operators around are its event rows.
    fn take_ops(&mut self) {
        let Linked {
            rows, nesting, comm, ..
        } = self.linked;
        let stands: Vec<u32> = rows
            .numbers()
            .filter(|row| rows.row_type[*row as usize] == RowType::CpuOp && self.linked.can_stand(*row))
            .collect();
        let outer: FxHashSet<u32> = stands
            .iter()
            .flat_map(|row| ops_around(nesting, *row))
            .filter(|op| comm.kind_of(*op).is_some())
            .collect();
        let mut shared = Vec::new();
        for row in stands.into_iter().filter(|row| !outer.contains(row)) {
            let number = self.start(row);
            for op in ops_around(nesting, row).filter(|op| outer.contains(op)) {
                self.collectives[number].event_rows.push(op);
                if self
                    .of_row
                    .insert(op, number)
                    .is_some_and(|other| other != number)
                {
                    shared.push(op);
                }
            }
        }
        // An operator around several collectives does not tell which of them a row belongs to.
        for op in shared {
            self.of_row.remove(&op);
        }
    }

    fn take_device_work(&mut self) {
        let Linked { rows, comm, .. } = self.linked;
        for row in rows.numbers() {
            let is_part = rows.row_type[row as usize].is_device_work()
                && comm
                    .kind_of(row)
                    .is_some_and(|kind| !matches!(kind, CommKind::Wait | CommKind::Init));
            if is_part {
                let number = self.launcher_of(row).unwrap_or_else(|| self.start(NO_ROW));
                self.collectives[number].kernel_rows.push(row);
            }
        }
    }

    /// Returns the collective that launched a device row, begun here where its operator does not tell the
    /// kind itself.
    fn launcher_of(&mut self, row: u32) -> Option<usize> {
        let Linked { nesting, comm, .. } = self.linked;
        for op in ops_around(nesting, row) {
            if let Some(number) = self.of_row.get(&op) {
                return Some(*number);
            }
            if let Some(members) = comm.members_ended_by(op) {
                return Some(self.start_group(op, members));
            }
            if comm.is_describing(op) {
                return Some(self.start(op));
            }
        }
        let annotation = nesting.annotation[row as usize];
        if annotation == NO_ROW || comm.kind_of(annotation).is_none() {
            return None;
        }
        if let Some(number) = self.of_row.get(&annotation) {
            return Some(*number);
        }
        Some(self.start(annotation))
    }

    /// Begins the collective of a coalesced group. The members' own collectives, which have no device work,
    /// dissolve in it.
    fn start_group(&mut self, end_row: u32, members: &[u32]) -> usize {
        let number = self.start(end_row);
        for member in members {
            let Some(&own) = self.of_row.get(member) else {
                continue;
            };
            if !self.collectives[own].kernel_rows.is_empty() {
                continue;
            }
            let mut dissolved = std::mem::replace(&mut self.collectives[own], Assembled::of(NO_ROW));
            self.collectives[number].members.push(*member);
            self.collectives[number].event_rows.push(*member);
            self.collectives[number]
                .event_rows
                .append(&mut dissolved.event_rows);
            self.of_row.insert(*member, number);
        }
        number
    }

    /// Gives annotations on the CPU, and rows of communication categories, to the collective they are part
    /// of: that of the operator around, else by the order of calls, else one of their own.
    fn take_annotations(&mut self) {
        let Linked {
            rows, nesting, comm, ..
        } = self.linked;
        let mut placed = rows.placement.0.iter().map(|(row, _)| *row).peekable();
        let mut apart = Vec::new();
        for row in rows.numbers() {
            let is_placed = placed.next_if_eq(&row).is_some();
            let row_type = rows.row_type[row as usize];
            let can_be_part = matches!(row_type, RowType::Annotation | RowType::Comm)
                && comm.kind_of(row).is_some()
                && !is_placed
                && !self.of_row.contains_key(&row);
            if !can_be_part {
                continue;
            }
            let around = ops_around(nesting, row).find_map(|op| self.of_row.get(&op).copied());
            if let Some(number) = around {
                self.collectives[number].event_rows.push(row);
                if row_type == RowType::Comm {
                    self.collectives[number].time_row = row;
                }
            } else if row_type == RowType::Comm || self.linked.can_stand(row) {
                apart.push(row);
            }
        }
        self.join_by_order(apart);
    }

    fn join_by_order(&mut self, mut apart: Vec<u32>) {
        let Linked {
            rows, comm, nesting, ..
        } = self.linked;
        let start_of = |row: u32| (rows.start_ns[row as usize], row);
        let mut waiting: BTreeMap<(u16, CommKind), Vec<usize>> = BTreeMap::new();
        for (number, collective) in self.collectives.iter().enumerate() {
            let row = collective.cpu_row;
            let has_annotation = collective
                .event_rows
                .iter()
                .any(|row| rows.row_type[*row as usize] != RowType::CpuOp);
            if row == NO_ROW || !collective.kernel_rows.is_empty() || has_annotation {
                continue;
            }
            if let Some(kind) = comm.kind_of(row) {
                waiting
                    .entry((self.linked.group_of(row), kind))
                    .or_default()
                    .push(number);
            }
        }
        for numbers in waiting.values_mut() {
            numbers.sort_by_key(|number| std::cmp::Reverse(start_of(self.collectives[*number].cpu_row)));
        }
        apart.sort_by_key(|row| start_of(*row));
        for row in apart {
            let kind = comm.kind_of(row).unwrap_or(CommKind::Unknown);
            let queue = waiting.get_mut(&(self.linked.group_of(row), kind));
            let first = queue.filter(|queue| {
                queue.last().is_some_and(|number| {
                    let called = self.collectives[*number].cpu_row;
                    rows.track[called as usize] != rows.track[row as usize]
                        && start_of(called).0 <= start_of(row).0
                })
            });
            if let Some(number) = first.and_then(Vec::pop) {
                let collective = &mut self.collectives[number];
                collective.event_rows.push(row);
                collective.time_row = row;
                collective.is_by_time = true;
                continue;
            }
            // One annotation inside another of its kind is the same collective.
            let around = nesting.annotation[row as usize];
            if around != NO_ROW
                && let Some(&number) = self.of_row.get(&around)
            {
                self.collectives[number].event_rows.push(row);
                continue;
            }
            let number = self.start(row);
            self.collectives[number].time_row = row;
        }
    }

    /// Gives the projections of annotations on streams to the collective whose device work they span.
    fn take_projections(&mut self) {
        let Linked { rows, comm, .. } = self.linked;
        let place_of = |row: u32| {
            let placement = rows.placement.get(row)?;
            Some((self.linked.group_of(row), placement.device, placement.stream))
        };
        let mut work = Vec::new();
        for (number, collective) in self.collectives.iter().enumerate() {
            for &row in &collective.kernel_rows {
                if let Some(place) = place_of(row) {
                    work.push((place, rows.start_ns[row as usize], row, number));
                }
            }
        }
        work.sort_unstable();
        for (row, _) in &rows.placement.0 {
            let is_projection =
                rows.row_type[*row as usize] == RowType::Annotation && comm.kind_of(*row).is_some();
            let (Some(place), Some(end_ns)) = (place_of(*row), rows.end_ns(*row)) else {
                continue;
            };
            if !is_projection {
                continue;
            }
            let start_ns = rows.start_ns[*row as usize];
            let from = work.partition_point(|entry| (entry.0, entry.1) < (place, start_ns));
            if let Some((at, work_start, _, number)) = work.get(from)
                && *at == place
                && *work_start < end_ns
            {
                self.collectives[*number].event_rows.push(*row);
            }
        }
    }
}
