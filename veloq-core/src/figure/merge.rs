//! Merging what is too small to see.

use std::ops::Range;

use super::Span;

/// What a rectangle stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) range: Range<i64>,
    pub(super) class: usize,
    /// The span, or the first of the merged ones.
    pub(super) span: usize,
    /// How many spans; 1 unless merged.
    pub(super) count: u64,
}

/// Merges the spans of a lane that are shorter than `least_ns` into runs: neighbours of a class with less than
/// that between them. Runs that are too short themselves are drawn as wide as they are, so gaps of `least_ns`
/// and more always stay. Spans outside the window are left out, others cut to it.
///
/// Shapes come in the order of their starts, runs before longer spans.
pub(super) fn shapes(spans: &[Span], window: &Range<i64>, least_ns: i64) -> Vec<Shape> {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|at| (spans[*at].range.start, spans[*at].range.end, *at));
    let mut runs: Vec<Shape> = Vec::new();
    let mut long: Vec<Shape> = Vec::new();
    // The open run of each class, as its place among the runs.
    let mut open: Vec<Option<usize>> = Vec::new();
    for at in order {
        let span = &spans[at];
        let range = span.range.start.max(window.start)..span.range.end.min(window.end);
        if range.start >= range.end {
            continue;
        }
        let shape = Shape {
            range,
            class: span.class,
            span: at,
            count: 1,
        };
        if shape.range.end - shape.range.start >= least_ns {
            long.push(shape);
            continue;
        }
        if open.len() <= span.class {
            open.resize(span.class + 1, None);
        }
        match open[span.class] {
            Some(run) if shape.range.start - runs[run].range.end < least_ns => {
                runs[run].range.end = runs[run].range.end.max(shape.range.end);
                runs[run].count += 1;
            }
            _ => {
                open[span.class] = Some(runs.len());
                runs.push(shape);
            }
        }
    }
    runs.extend(long);
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spans(ranges: &[(i64, i64)]) -> Vec<Span> {
        let span = |(start, end): &(i64, i64)| Span {
            range: *start..*end,
            class: 0,
            name: String::new(),
        };
        ranges.iter().map(span).collect()
    }

    #[test]
    fn short_neighbours_are_merged_and_long_spans_and_gaps_stay() {
        let spans = spans(&[(0, 2), (3, 5), (40, 90), (20, 22), (6, 7)]);
        let found: Vec<(Range<i64>, u64)> = shapes(&spans, &(0..100), 10)
            .into_iter()
            .map(|shape| (shape.range, shape.count))
            .collect();
        assert_eq!(found, [(0..7, 3), (20..22, 1), (40..90, 1)]);
    }

    proptest! {
        #[test]
        fn shapes_are_bounded_and_stand_for_every_span(
            ranges in prop::collection::vec((0_i64..1_000, 1_i64..30), 0..300),
            least_ns in 1_i64..50,
        ) {
            let spans = spans(&ranges.iter().map(|(start, length)| (*start, start + length)).collect::<Vec<_>>());
            let window = 0..1_030;
            let found = shapes(&spans, &window, least_ns);
            prop_assert_eq!(found.iter().map(|shape| shape.count).sum::<u64>(), spans.len() as u64);
            let short = found.iter().filter(|shape| shape.range.end - shape.range.start < least_ns).count();
            let gaps = usize::try_from(1_030 / least_ns).unwrap() + 1;
            prop_assert!(short <= gaps, "{short} runs with {gaps} gaps at most");
        }
    }
}
