//! The time axis: where its ticks are, and what stands at them.

use std::ops::Range;

/// Ticks there are at most.
const MAX_TICKS: i64 = 12;

/// Returns the distance of ticks in ns: 1, 2 or 5 times a power of ten.
pub(super) fn step(length_ns: i64) -> i64 {
    let mut unit = 1_i64;
    loop {
        for factor in [1, 2, 5] {
            let step = unit.saturating_mul(factor);
            if length_ns / step < MAX_TICKS || step == i64::MAX {
                return step;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// Returns the ticks in a window: multiples of the step.
pub(super) fn ticks(window: &Range<i64>) -> impl Iterator<Item = i64> {
    let step = step(window.end.saturating_sub(window.start).max(1));
    let first = window.start.div_euclid(step).saturating_mul(step);
    let end = window.end;
    let start = window.start;
    std::iter::successors(Some(first), move |at| at.checked_add(step))
        .take_while(move |at| *at <= end)
        .filter(move |at| *at >= start)
}

/// Returns a time in the unit that suits ticks of a distance: `1.5 ms`.
pub(super) fn time(at_ns: i64, step_ns: i64) -> String {
    let (unit, name) = match step_ns {
        1_000_000_000.. => (1_000_000_000, "s"),
        1_000_000.. => (1_000_000, "ms"),
        1_000.. => (1_000, "µs"),
        _ => (1, "ns"),
    };
    decimal(at_ns, unit, name)
}

/// Returns a duration with as many digits as it takes: `12.345 µs`.
pub(super) fn duration(ns: i64) -> String {
    match ns {
        1_000_000_000.. => decimal(ns, 1_000_000_000, "s"),
        1_000_000.. => decimal(ns, 1_000_000, "ms"),
        1_000.. => decimal(ns, 1_000, "µs"),
        _ => decimal(ns, 1, "ns"),
    }
}

fn decimal(ns: i64, unit: u64, name: &str) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let (whole, rest) = (ns.unsigned_abs() / unit, ns.unsigned_abs() % unit);
    let digits = unit.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole} {name}"),
        fraction => format!("{sign}{whole}.{fraction} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_1_2_5_and_few() {
        assert_eq!(
            [1, 11, 12, 100, 6_302_786, i64::MAX].map(step),
            [1, 1, 2, 10, 1_000_000, 1_000_000_000_000_000_000]
        );
        for length in [1, 7, 999, 123_456_789, i64::MAX / 2] {
            let count = ticks(&(0..length)).count();
            assert!((1..=12).contains(&count), "{length}: {count}");
        }
        assert_eq!(ticks(&(-5..7)).collect::<Vec<_>>(), [-4, -2, 0, 2, 4, 6]);
    }

    #[test]
    fn times_have_the_unit_of_their_ticks() {
        assert_eq!(time(1_500_000, 500_000), "1500 µs");
        assert_eq!(time(2_000_000, 1_000_000), "2 ms");
        assert_eq!(time(0, 1_000_000_000), "0 s");
        assert_eq!(duration(12_345), "12.345 µs");
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(-1), "-1 ns");
    }
}
