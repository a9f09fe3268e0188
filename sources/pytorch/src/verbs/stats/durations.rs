//! Measures of a group's durations: sum, extremes, percentiles, union.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The rows of a group that have a time, in the order of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct TimedRows {
    intervals: Vec<Interval>,
    /// In the order of `intervals`; empty when the trace has one rank.
    ranks: Vec<i64>,
}

impl TimedRows {
    /// Adds a row; `rank` is given when the trace has several.
    pub(super) fn push(&mut self, start_ns: i64, duration_ns: i64, rank: Option<i64>) {
        self.intervals.push(Interval {
            start_ns,
            duration_ns,
        });
        self.ranks.extend(rank);
    }

    /// Adds the rows of a later part of the table.
    pub(super) fn append(&mut self, next: Self) {
        if self.intervals.is_empty() {
            *self = next;
        } else {
            self.intervals.extend(next.intervals);
            self.ranks.extend(next.ranks);
        }
    }
}

/// Measures of the rows of a group that have a time, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Durations {
    pub(super) total_ns: i64,
    pub(super) avg_ns: i64,
    pub(super) min_ns: i64,
    pub(super) max_ns: i64,
    /// Nearest rank.
    pub(super) p50_ns: i64,
    /// Nearest rank.
    pub(super) p95_ns: i64,
    /// Length of the union of the intervals, rank by rank.
    pub(super) busy_ns: i64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    start_ns: i64,
    duration_ns: i64,
}

/// Groups that one thread takes at a time.
const GROUPS_AT_ONCE: usize = 64;

/// Fewer rows than this are measured on one thread.
const WORTH_A_THREAD: usize = 64 * 1024;

/// Measures all groups; `None` for those without a row that has a time.
pub(super) fn measure(mut groups: Vec<TimedRows>, threads: usize) -> Vec<Option<Durations>> {
    let rows: usize = groups.iter().map(|rows| rows.intervals.len()).sum();
    let threads = if rows < WORTH_A_THREAD { 1 } else { threads };
    let mut measured = vec![None; groups.len()];
    let queue = Mutex::new(measured.iter_mut().zip(&mut groups));
    let work = || {
        let mut scratch = Vec::new();
        loop {
            let taken: Vec<_> = {
                let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
                queue.by_ref().take(GROUPS_AT_ONCE).collect()
            };
            if taken.is_empty() {
                return;
            }
            for (place, rows) in taken {
                *place = durations(&mut rows.intervals, &rows.ranks, &mut scratch);
            }
        }
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        work();
        for other in others {
            other.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
    measured
}

fn durations(intervals: &mut [Interval], ranks: &[i64], scratch: &mut Vec<i64>) -> Option<Durations> {
    scratch.clear();
    scratch.extend(intervals.iter().map(|interval| interval.duration_ns));
    let count = i64::try_from(scratch.len()).ok().filter(|count| *count > 0)?;
    let total_ns = scratch.iter().fold(0_i64, |sum, ns| sum.saturating_add(*ns));
    let busy_ns = if ranks.is_empty() {
        busy_ns(intervals)
    } else {
        busy_ns_by_rank(intervals, ranks)
    };
    Some(Durations {
        total_ns,
        avg_ns: total_ns / count,
        min_ns: scratch.iter().copied().min()?,
        max_ns: scratch.iter().copied().max()?,
        p95_ns: percentile(scratch, 95),
        p50_ns: percentile(scratch, 50),
        busy_ns,
    })
}

/// Returns the nearest-rank percentile of values, which are reordered: the least that is not below `percent`
/// of them.
fn percentile(values: &mut [i64], percent: usize) -> i64 {
    let rank = (values.len() * percent).div_ceil(100).max(1);
    *values.select_nth_unstable(rank - 1).1
}

/// Returns the length of the union of intervals, which are reordered.
fn busy_ns(intervals: &mut [Interval]) -> i64 {
    if !intervals.is_sorted_by_key(|interval| interval.start_ns) {
        intervals.sort_unstable_by_key(|interval| interval.start_ns);
    }
    let mut busy_ns = 0_i64;
    let mut covered_until = i64::MIN;
    for interval in intervals {
        let end_ns = interval.start_ns.saturating_add(interval.duration_ns);
        if end_ns > covered_until {
            busy_ns = busy_ns.saturating_add(end_ns - interval.start_ns.max(covered_until));
            covered_until = end_ns;
        }
    }
    busy_ns
}

/// Returns the sum over the ranks of the length of the union of the rank's intervals.
fn busy_ns_by_rank(intervals: &[Interval], ranks: &[i64]) -> i64 {
    let mut rows: Vec<(i64, Interval)> = ranks.iter().copied().zip(intervals.iter().copied()).collect();
    rows.sort_unstable_by_key(|(rank, interval)| (*rank, interval.start_ns));
    rows.chunk_by_mut(|(a, _), (b, _)| a == b)
        .map(|of_rank| {
            let mut intervals: Vec<Interval> = of_rank.iter().map(|(_, interval)| *interval).collect();
            busy_ns(&mut intervals)
        })
        .fold(0, i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::interval::{length, union};

    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let mut values: Vec<i64> = (1..=20).rev().collect();
        assert_eq!(
            (percentile(&mut values, 50), percentile(&mut values, 95)),
            (10, 19)
        );
        assert_eq!((percentile(&mut [7], 50), percentile(&mut [7], 95)), (7, 7));
        assert_eq!(percentile(&mut [1, 3, 2], 50), 2);
    }

    /// Returns the groups of rows given as (group, rank, start, duration).
    fn grouped(rows: &[(u32, i64, i64, i64)], has_ranks: bool) -> Vec<TimedRows> {
        let mut groups = vec![TimedRows::default(); 4];
        for (group, rank, start_ns, duration_ns) in rows {
            groups[*group as usize].push(*start_ns, *duration_ns, has_ranks.then_some(*rank));
        }
        groups
    }

    #[test]
    fn groups_without_rows_that_have_a_time_are_not_measured() {
        let measured = measure(grouped(&[(1, 0, 3, 4)], false), 1);
        assert_eq!(measured[0], None);
        assert_eq!(measured[1].map(|durations| durations.busy_ns), Some(4));
    }

    #[test]
    fn busy_time_is_a_union_within_a_rank() {
        let rows = [(0, 0, 0, 10), (0, 0, 5, 10), (0, 1, 0, 10)];
        let busy_ns = |has_ranks| measure(grouped(&rows, has_ranks), 1)[0].unwrap().busy_ns;
        assert_eq!((busy_ns(true), busy_ns(false)), (25, 15));
    }

    proptest! {
        #[test]
        fn measures_are_those_of_the_sorted_rows(
            rows in prop::collection::vec((0_u32..4, 0_i64..3, 0_i64..50, 0_i64..20), 1..60),
            cut in 0_usize..60,
            threads in 1_usize..3,
        ) {
            let (head, tail) = rows.split_at(cut.min(rows.len()));
            let mut groups = grouped(head, true);
            for (rows, next) in groups.iter_mut().zip(grouped(tail, true)) {
                rows.append(next);
            }
            let measured = measure(groups, threads);
            for (group, durations) in (0_u32..).zip(measured) {
                let of_group: Vec<_> = rows.iter().filter(|row| row.0 == group).collect();
                let mut sorted: Vec<i64> = of_group.iter().map(|row| row.3).collect();
                sorted.sort_unstable();
                let nearest = |percent: usize| {
                    sorted.iter().copied().find(|value| {
                        let not_above = sorted.iter().filter(|other| *other <= value).count();
                        not_above * 100 >= percent * sorted.len()
                    })
                };
                let busy_ns = (0..3).map(|rank| {
                    let of_rank = of_group.iter().filter(|row| row.1 == rank);
                    length(&union(of_rank.map(|row| row.2..row.2 + row.3)))
                });
                let expected = (!sorted.is_empty()).then(|| Durations {
                    total_ns: sorted.iter().sum(),
                    avg_ns: sorted.iter().sum::<i64>() / sorted.len() as i64,
                    min_ns: sorted[0],
                    max_ns: *sorted.last().unwrap(),
                    p50_ns: nearest(50).unwrap(),
                    p95_ns: nearest(95).unwrap(),
                    busy_ns: busy_ns.sum(),
                });
                prop_assert_eq!(durations, expected);
            }
        }
    }
}
