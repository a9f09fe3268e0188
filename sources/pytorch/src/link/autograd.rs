//! Which forward operator a backward one belongs to.
//!
//! The profiler joins them twice: by flow markers (`s` on the innermost forward operator, `f` on the inner
//! backward one), and by sequence number (a counter of the forward thread, repeated on the backward
//! operator and on the engine's wrapper around it). Flows are exact and come first. Several forward
//! operators share a number (a composite one and those it calls, and operators that made no graph node);
//! the real one started last.

use rustc_hash::FxHashMap;

use crate::ingest::columns::{Flow, Id, NO_ROW, NONE, Rows};
use crate::row::RowType;

use super::nesting::Nesting;
use super::no_rows;
use super::rank::Ranks;

/// Of each backward operator, its forward one; [`NO_ROW`] elsewhere.
#[derive(Debug)]
pub(crate) struct Autograd {
    pub(crate) forward: Vec<u32>,
    /// Backward operators with a forward one.
    pub(crate) count: u64,
}

/// Joins backward operators to forward ones.
pub(crate) fn link_autograd(rows: &Rows, flows: &[Flow], ranks: &Ranks, nesting: &Nesting) -> Autograd {
    let mut forward = no_rows(rows.len());
    join_flows(rows, flows, ranks, nesting, &mut forward);
    join_sequences(rows, ranks, nesting, &mut forward);
    let count = forward.iter().filter(|row| **row != NO_ROW).count() as u64;
    Autograd { forward, count }
}

/// Returns the innermost operator that starts at an instant of a track.
fn op_starting_at(rows: &Rows, order: &[u32], track: u32, at_ns: i64) -> Option<u32> {
    let key = |row: &u32| (rows.track[*row as usize], rows.start_ns[*row as usize]);
    let end = order.partition_point(|row| key(row) <= (track, at_ns));
    order[..end]
        .iter()
        .rev()
        .take_while(|row| key(row) == (track, at_ns))
        .find(|row| rows.row_type[**row as usize] == RowType::CpuOp)
        .copied()
}

fn join_flows(rows: &Rows, flows: &[Flow], ranks: &Ranks, nesting: &Nesting, forward: &mut [u32]) {
    let mut starts: FxHashMap<(u16, Id), u32> = FxHashMap::default();
    let group = |flow: &Flow| ranks.of_track[flow.track as usize];
    for flow in flows.iter().filter(|flow| flow.is_start) {
        if let Some(op) = op_starting_at(rows, &nesting.order, flow.track, flow.at_ns) {
            starts.insert((group(flow), flow.id), op);
        }
    }
    for flow in flows.iter().filter(|flow| !flow.is_start) {
        let Some(&from) = starts.get(&(group(flow), flow.id)) else {
            continue;
        };
        if let Some(op) = op_starting_at(rows, &nesting.order, flow.track, flow.at_ns) {
            join(rows, nesting, forward, op, from);
        }
    }
}

/// Joins a backward operator, and the wrapper around it that has the same number.
fn join(rows: &Rows, nesting: &Nesting, forward: &mut [u32], backward: u32, from: u32) {
    forward[backward as usize] = from;
    let wrapper = nesting.op[backward as usize];
    let number = |row: u32| rows.sequence.get(row).map(|sequence| sequence.number);
    if wrapper != NO_ROW && number(wrapper).is_some() && number(wrapper) == number(backward) {
        forward[wrapper as usize] = from;
    }
}

/// Joins what no flow joined, where the number names one forward thread's operator.
fn join_sequences(rows: &Rows, ranks: &Ranks, nesting: &Nesting, forward: &mut [u32]) {
    #[derive(Clone, Copy)]
    struct Last {
        op: u32,
        track: u32,
        is_ambiguous: bool,
    }
    let mut last: FxHashMap<(u16, i64), Last> = FxHashMap::default();
    let ops = || {
        rows.sequence.0.iter().filter(|(row, sequence)| {
            let at = *row as usize;
            sequence.number >= 0 && rows.row_type[at] == RowType::CpuOp && rows.start_ns[at] != NONE
        })
    };
    for (row, sequence) in ops().filter(|(_, sequence)| sequence.forward_thread == 0) {
        let track = rows.track[*row as usize];
        let found = Last {
            op: *row,
            track,
            is_ambiguous: false,
        };
        last.entry((ranks.of_track[track as usize], sequence.number))
            .and_modify(|known| {
                known.is_ambiguous |= known.track != track;
                let key = |op: u32| {
                    (
                        rows.start_ns[op as usize],
                        std::cmp::Reverse(rows.dur_ns[op as usize]),
                        op,
                    )
                };
                if key(*row) > key(known.op) {
                    known.op = *row;
                }
            })
            .or_insert(found);
    }
    for (row, sequence) in ops().filter(|(_, sequence)| sequence.forward_thread > 0) {
        let at = *row as usize;
        let group = ranks.of_track[rows.track[at] as usize];
        let Some(known) = last.get(&(group, sequence.number)) else {
            continue;
        };
        let is_earlier = rows.start_ns[known.op as usize] <= rows.start_ns[at];
        if forward[at] == NO_ROW && !known.is_ambiguous && is_earlier {
            join(rows, nesting, forward, *row, known.op);
        }
    }
}
