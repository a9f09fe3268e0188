//! Which device work belongs to a range.
//!
//! By *launch*: the device rows whose launch starts inside the range, on any thread that works for it. Those
//! are its own thread and the threads that run the backward operators of what its thread ran forward; for
//! steps, all threads of the rank.
//!
//! ```text
//! main      |------- step 1 -------|------- step 2 -------|
//! autograd          l1    l2               l3
//! device                     k1 k2 |  k2 runs on   k3           k2 belongs to step 1: its launch l2 does
//! ```
//!
//! By *time*: the parts of the rank's device rows that lie inside the range.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;
use veloq_core::NsRange;

use crate::interval::{length, length_within, union};
use crate::row::RowType;

use super::query::{Slice, Work};

/// How device work is given to ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attribution {
    Launch,
    Time,
}

/// Device work that belongs to a range, or to several: the rows by number, each with the part that counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attributed {
    pub(super) rows: Vec<(u32, Range<i64>)>,
}

/// The device time of attributed work, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DeviceTime {
    pub(super) total_ns: i64,
    pub(super) busy_ns: i64,
    pub(super) comm_ns: i64,
    pub(super) count: u64,
}

/// Finds the device work of ranges.
pub(super) struct Attributor<'w> {
    work: &'w [Work],
    window: NsRange,
    attribution: Attribution,
    /// Rows by rank, then by start (of the launch, or of the row itself).
    by_rank: FxHashMap<Option<i64>, Ordered>,
    /// Rows by the thread of their launch, then by its start.
    by_thread: FxHashMap<u32, Ordered>,
    backward_threads: FxHashMap<u32, Vec<u32>>,
}

/// Rows by instant; with the latest end of all rows up to each.
#[derive(Default)]
struct Ordered {
    rows: Vec<(i64, u32)>,
    latest_end_ns: Vec<i64>,
}

impl Ordered {
    fn sort(&mut self, work: &[Work]) {
        self.rows.sort_unstable();
        let mut latest_ns = i64::MIN;
        for (_, row) in &self.rows {
            latest_ns = latest_ns.max(work[*row as usize].interval.end);
            self.latest_end_ns.push(latest_ns);
        }
    }

    /// Returns the rows whose instant is inside a range.
    fn within(&self, range: &Range<i64>) -> &[(i64, u32)] {
        let from = self.rows.partition_point(|(at, _)| *at < range.start);
        let to = self.rows.partition_point(|(at, _)| *at < range.end);
        &self.rows[from..to.max(from)]
    }

    /// Returns the rows that can overlap a range, their instants being starts.
    fn around(&self, range: &Range<i64>) -> &[(i64, u32)] {
        let from = self.latest_end_ns.partition_point(|end| *end <= range.start);
        let to = self.rows.partition_point(|(at, _)| *at < range.end);
        &self.rows[from.min(to)..to]
    }
}

impl<'w> Attributor<'w> {
    /// Prepares the finding; what lies outside the window does not count.
    pub(super) fn new(
        work: &'w [Work],
        backward_threads: FxHashMap<u32, Vec<u32>>,
        window: NsRange,
        attribution: Attribution,
    ) -> Self {
        let mut by_rank: FxHashMap<Option<i64>, Ordered> = FxHashMap::default();
        let mut by_thread: FxHashMap<u32, Ordered> = FxHashMap::default();
        for (row, item) in (0_u32..).zip(work) {
            match (attribution, item.launch) {
                (Attribution::Time, _) => {
                    by_rank
                        .entry(item.rank)
                        .or_default()
                        .rows
                        .push((item.interval.start, row));
                }
                (Attribution::Launch, Some((at_ns, track))) => {
                    by_rank.entry(item.rank).or_default().rows.push((at_ns, row));
                    by_thread.entry(track).or_default().rows.push((at_ns, row));
                }
                (Attribution::Launch, None) => {}
            }
        }
        by_rank
            .values_mut()
            .chain(by_thread.values_mut())
            .for_each(|ordered| ordered.sort(work));
        Self {
            work,
            window,
            attribution,
            by_rank,
            by_thread,
            backward_threads,
        }
    }

    /// Returns the device work of a range, each row once.
    pub(super) fn of(&self, slice: &Slice) -> Attributed {
        let range = slice.start_ns..slice.end_ns;
        let mut attributed = Attributed::default();
        let mut take = |rows: &[(i64, u32)], bounds: Option<&Range<i64>>| {
            for (_, row) in rows {
                let whole = self.window.clip(self.work[*row as usize].interval.clone());
                let part = match bounds {
                    Some(bounds) => whole.start.max(bounds.start)..whole.end.min(bounds.end),
                    None => whole,
                };
                if self.counts(*row, &part) {
                    attributed.rows.push((*row, part));
                }
            }
        };
        match self.attribution {
            Attribution::Time => {
                if let Some(ordered) = self.by_rank.get(&slice.rank) {
                    take(ordered.around(&range), Some(&range));
                }
            }
            Attribution::Launch if slice.id.row_type == RowType::Step => {
                if let Some(ordered) = self.by_rank.get(&slice.rank) {
                    take(ordered.within(&range), None);
                }
            }
            Attribution::Launch => {
                let helpers = self
                    .backward_threads
                    .get(&slice.track)
                    .map_or(&[][..], Vec::as_slice);
                for track in std::iter::once(&slice.track).chain(helpers) {
                    if let Some(ordered) = self.by_thread.get(track) {
                        take(ordered.within(&range), None);
                    }
                }
            }
        }
        attributed
    }

    /// Returns whether a part of a row counts: it has a length, or the row has none and lies in the window.
    fn counts(&self, row: u32, part: &Range<i64>) -> bool {
        let whole = &self.work[row as usize].interval;
        part.start < part.end || (whole.is_empty() && self.window.overlaps(whole))
    }

    /// Measures attributed work; rows that occur several times count once.
    pub(super) fn measure(&self, attributed: &mut Attributed) -> DeviceTime {
        attributed
            .rows
            .sort_unstable_by_key(|(row, part)| (*row, part.start));
        let mut time = DeviceTime::default();
        let mut by_device = BTreeMap::new();
        let mut last = None;
        for (row, part) in &attributed.rows {
            let item = &self.work[*row as usize];
            let parts: &mut Vec<Range<i64>> = by_device.entry((item.rank, item.device)).or_default();
            parts.push(part.clone());
            if last == Some(*row) && self.attribution == Attribution::Launch {
                continue;
            }
            time.count += u64::from(last != Some(*row));
            last = Some(*row);
            time.total_ns += part.end - part.start;
            if item.is_comm {
                time.comm_ns += part.end - part.start;
            }
        }
        time.busy_ns = by_device.into_values().map(|parts| length(&union(parts))).sum();
        time
    }

    /// Returns all device time in the window, and how much of it belongs to none of the ranges.
    pub(super) fn outside(&self, slices: &[&Slice], rank: Option<i64>) -> (i64, i64) {
        let in_scope = |item: &Work| rank.is_none() || item.rank == rank;
        let part = |item: &Work| self.window.clip(item.interval.clone());
        let length_of = |range: &Range<i64>| range.end - range.start;
        let total_ns = self
            .work
            .iter()
            .filter(|item| in_scope(item))
            .map(|item| length_of(&part(item)))
            .sum();
        let inside_ns: i64 = match self.attribution {
            Attribution::Launch => {
                let mut is_inside = vec![false; self.work.len()];
                for slice in slices {
                    for (row, _) in self.of(slice).rows {
                        is_inside[row as usize] = true;
                    }
                }
                let inside = self
                    .work
                    .iter()
                    .zip(is_inside)
                    .filter(|(_, is_inside)| *is_inside);
                inside.map(|(item, _)| length_of(&part(item))).sum()
            }
            Attribution::Time => {
                let mut by_rank: FxHashMap<Option<i64>, Vec<Range<i64>>> = FxHashMap::default();
                for slice in slices {
                    by_rank
                        .entry(slice.rank)
                        .or_default()
                        .push(slice.start_ns..slice.end_ns);
                }
                let covered: FxHashMap<_, _> = by_rank
                    .into_iter()
                    .map(|(rank, ranges)| (rank, union(ranges)))
                    .collect();
                let inside = |item: &Work| {
                    covered
                        .get(&item.rank)
                        .map_or(0, |set| length_within(set, &part(item)))
                };
                self.work.iter().filter(|item| in_scope(item)).map(inside).sum()
            }
        };
        (total_ns, total_ns - inside_ns)
    }
}
