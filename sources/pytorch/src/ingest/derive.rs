//! All that is derived of the rows, in the order in which it can be.

use std::panic::resume_unwind;
use std::thread;

use crate::comm::classify::CommRows;
use crate::comm::collectives::Collective;
use crate::kineto::category::MODULE_PREFIX;
use crate::kineto::metadata::Header;
use crate::link::Tally;
use crate::link::autograd::{Autograd, link_autograd};
use crate::link::device_time::{DeviceTime, attribute};
use crate::link::launch::{Launches, link_launches};
use crate::link::nesting::{Nesting, nest};
use crate::link::rank::{Ranks, group_by_rank};
use crate::link::step::{Steps, assign_steps};
use crate::link::stream::{Streams, scan_streams};
use crate::row::RowType;

use super::collect::Collected;
use super::columns::{NO_ROW, NONE, Rows};

/// The time that the valid rows cover, in ns as written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Earliest start; 0 where no row has a time.
    pub(crate) origin_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) is_empty: bool,
}

/// What is derived of a trace's rows.
#[derive(Debug)]
pub(crate) struct Derived {
    pub(crate) span: Extent,
    pub(crate) ranks: Ranks,
    pub(crate) nesting: Nesting,
    pub(crate) launches: Launches,
    pub(crate) steps: Steps,
    pub(crate) autograd: Autograd,
    pub(crate) device_time: DeviceTime,
    pub(crate) streams: Streams,
    pub(crate) comm: CommRows,
    pub(crate) collectives: Vec<Collective>,
    /// Rows taken out of time: at 0 among epoch times, or absurdly far from all others.
    pub(crate) absurd_times: Tally,
    /// Device rows that start before their launch call does.
    pub(crate) inversions: Inversions,
}

/// Device rows that start before their launch.
#[derive(Debug, Default)]
pub(crate) struct Inversions {
    pub(crate) rows: Tally,
    pub(crate) median_ns: i64,
    pub(crate) max_ns: i64,
}

/// Links the rows of a trace.
///
/// `file_rank` is the rank that the header or the file's name gives, where one does. The outcome does not
/// depend on `threads`.
pub(crate) fn derive(
    collected: &mut Collected,
    header: &Header,
    file_rank: Option<i64>,
    threads: usize,
) -> Derived {
    let absurd_times = drop_absurd_times(&mut collected.rows);
    let rows = &collected.rows;
    let strings = &collected.strings;
    let span = extent(rows);
    let mut has_rows = vec![false; collected.tracks.keys().len()];
    for track in &rows.track {
        has_rows[*track as usize] = true;
    }
    let ranks = group_by_rank(&collected.tracks, strings, &has_rows, file_rank);
    let is_module_name: Vec<bool> = strings
        .iter()
        .map(|text| text.starts_with(MODULE_PREFIX))
        .collect();
    let mut nesting = nest(rows, &is_module_name);
    let launches = link_launches(rows, &ranks, &mut nesting);
    let find_steps = || assign_steps(rows, strings, &ranks, &launches);
    let link_others = || {
        let autograd = link_autograd(rows, &collected.flows, &ranks, &nesting);
        let device_time = attribute(rows, &nesting, &launches);
        (autograd, device_time, scan_streams(rows, &ranks))
    };
    let (steps, (autograd, device_time, streams)) = if threads > 1 {
        thread::scope(|scope| {
            let steps = scope.spawn(find_steps);
            let others = link_others();
            (steps.join().unwrap_or_else(|panic| resume_unwind(panic)), others)
        })
    } else {
        (find_steps(), link_others())
    };
    let comm = crate::comm::classify::classify(rows, strings, &nesting);
    let collectives = crate::comm::collectives::collect(rows, &ranks, &nesting, &steps, &comm, header);
    let inversions = find_inversions(rows, &launches);
    // Nobody asks for it any more, and the tables are still to be written.
    nesting.order = Vec::new();
    Derived {
        span,
        ranks,
        nesting,
        launches,
        steps,
        autograd,
        device_time,
        streams,
        comm,
        collectives,
        absurd_times,
        inversions,
    }
}

/// A row this far from the middle of all rows did not happen in the capture: 60 days. Captures last
/// seconds to hours; times relative to a process's start reach 91 days, but all of them alike.
pub(super) const ABSURD_NS: i64 = 60 * 24 * 3_600 * 1_000_000_000;

/// Takes rows with absurd times out of time: their start becomes unknown.
///
/// Broken drivers write rows at 0 among epoch times, and clock steps write durations of years.
fn drop_absurd_times(rows: &mut Rows) -> Tally {
    let mut absurd = Tally::default();
    let stride = rows.len() / 100_000 + 1;
    let mut sample: Vec<i64> = rows
        .start_ns
        .iter()
        .step_by(stride)
        .copied()
        .filter(|start| *start != NONE)
        .collect();
    if sample.is_empty() {
        return absurd;
    }
    let middle = sample.len() / 2;
    let median = *sample.select_nth_unstable(middle).1;
    // Relative times of a young process may well begin at 0.
    let zero_is_absurd = median > 3_600 * 1_000_000_000;
    for row in rows.numbers() {
        let at = row as usize;
        let (start, dur) = (rows.start_ns[at], rows.dur_ns[at]);
        if start == NONE {
            continue;
        }
        let is_far = start.saturating_sub(median).saturating_abs() > ABSURD_NS;
        if is_far || (start == 0 && zero_is_absurd) {
            rows.start_ns[at] = NONE;
            absurd.add(row);
        } else if dur > ABSURD_NS {
            rows.dur_ns[at] = NONE;
            absurd.add(row);
        }
    }
    absurd
}

fn extent(rows: &Rows) -> Extent {
    let starts = rows.start_ns.iter().copied().filter(|start| *start != NONE);
    let Some(origin_ns) = starts.clone().min() else {
        return Extent {
            is_empty: true,
            ..Extent::default()
        };
    };
    let ends = rows
        .start_ns
        .iter()
        .zip(&rows.dur_ns)
        .filter(|(start, _)| **start != NONE);
    let end_ns = ends
        .map(|(start, dur)| if *dur == NONE { *start } else { start + dur })
        .max();
    Extent {
        origin_ns,
        end_ns: end_ns.unwrap_or(origin_ns),
        is_empty: false,
    }
}

fn find_inversions(rows: &Rows, launches: &Launches) -> Inversions {
    let mut inversions = Inversions::default();
    let mut by_ns = Vec::new();
    for row in rows
        .numbers()
        .filter(|row| rows.row_type[*row as usize] != RowType::Sync)
    {
        let call = launches.launch[row as usize];
        if call == NO_ROW {
            continue;
        }
        let (start, launch) = (rows.start_ns[row as usize], rows.start_ns[call as usize]);
        if start != NONE && launch != NONE && start < launch {
            inversions.rows.add(row);
            by_ns.push(launch - start);
        }
    }
    if !by_ns.is_empty() {
        let middle = by_ns.len() / 2;
        inversions.max_ns = by_ns.iter().copied().max().unwrap_or(0);
        inversions.median_ns = *by_ns.select_nth_unstable(middle).1;
    }
    inversions
}
