//! Measures of a group's durations: sum, extremes, percentiles, union.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use arrow::array::{Array, Int64Array};

/// Rows of one batch: group, rank (empty when the trace has one), start and duration.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) groups: Vec<u32>,
    pub(super) ranks: Vec<i64>,
    pub(super) start_ns: Int64Array,
    pub(super) duration_ns: Int64Array,
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
pub(super) fn measure(chunks: Vec<Chunk>, groups: usize, threads: usize) -> Vec<Option<Durations>> {
    let mut sorted = BySize::new(chunks, groups);
    let threads = if sorted.intervals.len() < WORTH_A_THREAD {
        1
    } else {
        threads
    };
    let mut measured = vec![None; groups];
    let queue = Mutex::new(sorted.groups(&mut measured));
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
            for (place, intervals, ranks) in taken {
                *place = durations(intervals, ranks, &mut scratch);
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
    drop(queue);
    measured
}

/// The rows with a time, group by group.
struct BySize {
    /// Where each group's rows end.
    ends: Vec<usize>,
    intervals: Vec<Interval>,
    /// In the order of `intervals`; empty when the trace has one rank.
    ranks: Vec<i64>,
}

impl BySize {
    /// Sorts rows by group; chunks are let go as they are taken over.
    fn new(chunks: Vec<Chunk>, groups: usize) -> Self {
        let has_time =
            |chunk: &Chunk, at: usize| chunk.start_ns.is_valid(at) && chunk.duration_ns.is_valid(at);
        let mut next = vec![0_usize; groups];
        for chunk in &chunks {
            for (at, group) in chunk.groups.iter().enumerate() {
                next[*group as usize] += usize::from(has_time(chunk, at));
            }
        }
        let mut rows = 0;
        for count in &mut next {
            rows += std::mem::replace(count, rows);
        }
        let has_ranks = chunks.iter().any(|chunk| !chunk.ranks.is_empty());
        let mut intervals = vec![Interval::default(); rows];
        let mut ranks = vec![0; if has_ranks { rows } else { 0 }];
        for chunk in chunks {
            for (at, group) in chunk.groups.iter().enumerate() {
                if !has_time(&chunk, at) {
                    continue;
                }
                let place = &mut next[*group as usize];
                intervals[*place] = Interval {
                    start_ns: chunk.start_ns.value(at),
                    duration_ns: chunk.duration_ns.value(at),
                };
                if has_ranks {
                    ranks[*place] = chunk.ranks[at];
                }
                *place += 1;
            }
        }
        Self {
            ends: next,
            intervals,
            ranks,
        }
    }

    /// Returns, group by group, the place for its measures, its rows and their ranks.
    fn groups<'a>(
        &'a mut self,
        places: &'a mut [Option<Durations>],
    ) -> impl Iterator<Item = (&'a mut Option<Durations>, &'a mut [Interval], &'a [i64])> + Send {
        let mut intervals = self.intervals.as_mut_slice();
        let mut ranks = self.ranks.as_slice();
        let mut start = 0;
        places.iter_mut().zip(&self.ends).map(move |(place, end)| {
            let rows = end - start;
            start = *end;
            let of_group = intervals
                .split_off_mut(..rows)
                .expect("groups end within the rows");
            let ranks_of_group = ranks
                .split_off(..rows.min(ranks.len()))
                .expect("as long as the rows");
            (place, of_group, ranks_of_group)
        })
    }
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

    fn chunk(rows: &[(u32, i64, Option<i64>, Option<i64>)], has_ranks: bool) -> Chunk {
        Chunk {
            groups: rows.iter().map(|row| row.0).collect(),
            ranks: if has_ranks {
                rows.iter().map(|row| row.1).collect()
            } else {
                Vec::new()
            },
            start_ns: rows.iter().map(|row| row.2).collect(),
            duration_ns: rows.iter().map(|row| row.3).collect(),
        }
    }

    #[test]
    fn rows_without_a_time_are_left_out() {
        let rows = [
            (0, 0, Some(5), None),
            (1, 0, None, None),
            (1, 0, Some(3), Some(4)),
        ];
        let measured = measure(vec![chunk(&rows, false)], 2, 1);
        assert_eq!(measured[0], None);
        assert_eq!(measured[1].map(|durations| durations.busy_ns), Some(4));
    }

    #[test]
    fn busy_time_is_a_union_within_a_rank() {
        let rows = [
            (0, 0, Some(0), Some(10)),
            (0, 0, Some(5), Some(10)),
            (0, 1, Some(0), Some(10)),
        ];
        let busy_ns = |has_ranks| measure(vec![chunk(&rows, has_ranks)], 1, 1)[0].unwrap().busy_ns;
        assert_eq!((busy_ns(true), busy_ns(false)), (25, 15));
    }

    proptest! {
        #[test]
        fn measures_are_those_of_the_sorted_rows(
            rows in prop::collection::vec((0_u32..4, 0_i64..3, 0_i64..50, 0_i64..20), 1..60),
            cut in 0_usize..60,
            threads in 1_usize..3,
        ) {
            let rows: Vec<_> = rows
                .into_iter()
                .map(|(group, rank, start, duration)| (group, rank, Some(start), Some(duration)))
                .collect();
            let (head, tail) = rows.split_at(cut.min(rows.len()));
            let measured = measure(vec![chunk(head, true), chunk(tail, true)], 4, threads);
            for (group, durations) in (0_u32..).zip(measured) {
                let of_group: Vec<_> = rows.iter().filter(|row| row.0 == group).collect();
                let mut sorted: Vec<i64> = of_group.iter().filter_map(|row| row.3).collect();
                sorted.sort_unstable();
                let nearest = |percent: usize| {
                    sorted.iter().copied().find(|value| {
                        let not_above = sorted.iter().filter(|other| *other <= value).count();
                        not_above * 100 >= percent * sorted.len()
                    })
                };
                let busy_ns = (0..3).map(|rank| {
                    let of_rank = of_group.iter().filter(|row| row.1 == rank);
                    length(&union(of_rank.map(|row| row.2.unwrap()..row.2.unwrap() + row.3.unwrap())))
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
