//! Sets of half-open intervals: how long something was busy, idle or exposed.
//!
//! All functions but [`union`] take and return *sets*: ranges that are not empty, sorted, and neither
//! overlap nor touch. [`union`] makes a set of any ranges.
//!
//! ```text
//! ranges       |----|        0..5        union                 0..8, 10..14
//!                 |-----|    3..8        length                12
//!                  |--|      4..6        gaps in 0..20         8..10, 14..20
//!              10 |----|     10..14
//!
//! a            0..8, 10..14              intersection of a, b  2..4, 7..8, 10..12    length 5
//! b            2..4, 7..12               a without b           0..2, 4..7, 12..14    length 7
//! ```
//!
//! Units are the caller's; everywhere else in this crate they are nanoseconds. Sums saturate.

use std::ops::Range;

/// Returns the set that covers exactly what the ranges cover. Empty and inverted ranges cover nothing.
pub(crate) fn union(ranges: impl IntoIterator<Item = Range<i64>>) -> Vec<Range<i64>> {
    let mut ranges: Vec<Range<i64>> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
    if !ranges.is_sorted_by_key(|range| range.start) {
        ranges.sort_unstable_by_key(|range| range.start);
    }
    ranges.dedup_by(|later, earlier| {
        let joins = later.start <= earlier.end;
        if joins {
            earlier.end = earlier.end.max(later.end);
        }
        joins
    });
    ranges
}

/// Returns the length of one range; 0 when it is empty or inverted.
pub(crate) fn length_of(range: &Range<i64>) -> i64 {
    range.end.saturating_sub(range.start).max(0)
}

/// Returns the length of a set.
pub(crate) fn length(set: &[Range<i64>]) -> i64 {
    set.iter()
        .fold(0, |sum: i64, range| sum.saturating_add(length_of(range)))
}

/// Returns the ranges of a set that overlap a window: a binary search, no copy.
pub(crate) fn overlapping<'s>(set: &'s [Range<i64>], window: &Range<i64>) -> &'s [Range<i64>] {
    if window.is_empty() {
        return &[];
    }
    let from = set.partition_point(|range| range.end <= window.start);
    let to = set.partition_point(|range| range.start < window.end);
    &set[from..to]
}

/// Returns how much of a window a set covers.
pub(crate) fn length_within(set: &[Range<i64>], window: &Range<i64>) -> i64 {
    overlapping(set, window).iter().fold(0, |sum: i64, range| {
        sum.saturating_add(range.end.min(window.end) - range.start.max(window.start))
    })
}

/// Returns what of a window a set leaves uncovered.
pub(crate) fn gaps(set: &[Range<i64>], window: &Range<i64>) -> Vec<Range<i64>> {
    let mut gaps = Vec::new();
    let mut free_from = window.start;
    for range in overlapping(set, window) {
        if range.start > free_from {
            gaps.push(free_from..range.start);
        }
        free_from = range.end;
    }
    if free_from < window.end {
        gaps.push(free_from..window.end);
    }
    gaps
}

/// Returns what two sets both cover.
pub(crate) fn intersection(a: &[Range<i64>], b: &[Range<i64>]) -> Vec<Range<i64>> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut both = Vec::new();
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let common = x.start.max(y.start)..x.end.min(y.end);
        let a_ends_first = x.end <= y.end;
        if !common.is_empty() {
            both.push(common);
        }
        if a_ends_first {
            a.next();
        } else {
            b.next();
        }
    }
    both
}

/// Returns what the first set covers and the second does not: communication exposed beside compute.
pub(crate) fn subtract(set: &[Range<i64>], other: &[Range<i64>]) -> Vec<Range<i64>> {
    let Some((first, last)) = set.first().zip(set.last()) else {
        return Vec::new();
    };
    intersection(set, &gaps(other, &(first.start..last.end)))
}

/// Cuts a range at the edges of equally wide buckets; yields bucket numbers with the length in each.
///
/// Bucket 0 begins at `origin`. Nothing before it is yielded, nothing of an empty range, and nothing when
/// `width` is not positive.
///
/// ```text
/// origin 0, width 10     |  bucket 0  |  bucket 1  |  bucket 2  |
/// 7..25                         |-----|------------|------|          (0, 3) (1, 10) (2, 5)
/// ```
pub(crate) fn split_at_buckets(
    range: Range<i64>,
    origin: i64,
    width: i64,
) -> impl Iterator<Item = (usize, i64)> {
    let mut at = range.start.max(origin);
    std::iter::from_fn(move || {
        if at >= range.end || width <= 0 {
            return None;
        }
        let bucket = at.saturating_sub(origin) / width;
        let edge = origin.saturating_add(width.saturating_mul(bucket.saturating_add(1)));
        let end = range.end.min(edge.max(at.saturating_add(1)));
        let piece = (usize::try_from(bucket).unwrap_or(usize::MAX), end - at);
        at = end;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pairs of (start, end) as ranges; single-range slices would look like mistaken arrays to clippy.
    fn set(pairs: &[(i64, i64)]) -> Vec<Range<i64>> {
        pairs.iter().map(|(start, end)| *start..*end).collect()
    }

    #[test]
    fn the_example_of_the_module_holds() {
        let a = union(set(&[(4, 6), (0, 5), (10, 14), (3, 8)]));
        assert_eq!(a, set(&[(0, 8), (10, 14)]));
        assert_eq!(length(&a), 12);
        assert_eq!(gaps(&a, &(0..20)), set(&[(8, 10), (14, 20)]));
        let b = set(&[(2, 4), (7, 12)]);
        assert_eq!(intersection(&a, &b), set(&[(2, 4), (7, 8), (10, 12)]));
        assert_eq!(length(&intersection(&a, &b)), 5);
        assert_eq!(subtract(&a, &b), set(&[(0, 2), (4, 7), (12, 14)]));
        assert_eq!(length(&subtract(&a, &b)), 7);
    }

    #[test]
    fn touching_ranges_join_and_empty_ones_vanish() {
        assert_eq!(union(set(&[(0, 5), (5, 7), (9, 9), (12, 10)])), set(&[(0, 7)]));
        assert_eq!(union(set(&[])), set(&[]));
    }

    #[test]
    fn windows_clip_at_their_edges() {
        let ranges = set(&[(0, 8), (10, 14)]);
        assert_eq!(length_within(&ranges, &(5..11)), 4);
        assert_eq!(length_within(&ranges, &(8..10)), 0);
    }

    #[test]
    fn buckets_split_ranges_at_their_edges() {
        let pieces = |range, origin, width| split_at_buckets(range, origin, width).collect::<Vec<_>>();
        assert_eq!(pieces(7..25, 0, 10), [(0, 3), (1, 10), (2, 5)]);
        assert_eq!(pieces(10..20, 0, 10), [(1, 10)]);
        assert_eq!(pieces(-5..3, 0, 10), [(0, 3)]);
        assert_eq!(pieces(103..104, 100, 4), [(0, 1)]);
        assert_eq!(pieces(5..5, 0, 10), []);
        assert_eq!(pieces(0..5, 0, 0), []);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let all = set(&[(i64::MIN, i64::MAX)]);
        assert_eq!(length(&all), i64::MAX);
        assert_eq!(subtract(&all, &all), set(&[]));
        let pieces: Vec<_> = split_at_buckets(i64::MAX - 3..i64::MAX, 0, i64::MAX / 2).collect();
        assert_eq!(pieces.iter().map(|(_, length)| length).sum::<i64>(), 3);
    }

    fn ranges() -> impl Strategy<Value = Vec<Range<i64>>> {
        prop::collection::vec((0_i64..60, -3_i64..15), 0..12).prop_map(|pairs| {
            pairs
                .into_iter()
                .map(|(start, length)| start..start + length)
                .collect()
        })
    }

    fn covers(ranges: &[Range<i64>], instant: i64) -> bool {
        ranges.iter().any(|range| range.contains(&instant))
    }

    proptest! {
        #[test]
        fn sets_cover_what_brute_force_covers(a in ranges(), b in ranges()) {
            let (x, y) = (union(a.clone()), union(b.clone()));
            let (both, first) = (intersection(&x, &y), subtract(&x, &y));
            for instant in -5..80 {
                let (in_a, in_b) = (covers(&a, instant), covers(&b, instant));
                prop_assert_eq!(covers(&x, instant), in_a);
                prop_assert_eq!(covers(&both, instant), in_a && in_b);
                prop_assert_eq!(covers(&first, instant), in_a && !in_b);
            }
            for set in [&x, &y, &both, &first] {
                prop_assert!(set.iter().all(|range| !range.is_empty()));
                prop_assert!(set.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }

        #[test]
        fn a_union_knows_no_order_and_no_cuts(
            a in ranges(), order in any::<u64>(), at in prop::collection::vec(0_i64..75, 12)
        ) {
            let set = union(a.clone());
            prop_assert!(length(&set) <= a.iter().map(length_of).sum());
            prop_assert_eq!(&union(set.clone()), &set);
            let mut pieces: Vec<Range<i64>> = a
                .iter()
                .zip(at)
                .flat_map(|(range, at)| [range.start..range.end.min(at), range.start.max(at)..range.end])
                .collect();
            pieces.sort_by_key(|piece| (piece.start.cast_unsigned() ^ order).wrapping_mul(order | 1));
            prop_assert_eq!(union(pieces), set);
        }

        #[test]
        fn busy_and_idle_add_up_to_the_window(a in ranges(), start in 0_i64..60, width in 0_i64..30) {
            let (set, window) = (union(a), start..start + width);
            let busy = length_within(&set, &window);
            prop_assert_eq!(busy + length(&gaps(&set, &window)), width);
        }

        #[test]
        fn buckets_hold_all_of_a_range(start in 0_i64..50, width in 1_i64..20, span in 0_i64..50) {
            let mut at = start;
            for (bucket, length) in split_at_buckets(start..start + span, 0, width) {
                let from = i64::try_from(bucket).unwrap() * width;
                prop_assert!(length > 0 && from <= at && at + length <= from + width);
                at += length;
            }
            prop_assert_eq!(at, start + span);
        }
    }
}
