//! Numbers for people: three digits that matter, and a unit.
//!
//! Whole numbers are scaled with integers, so that a boundary is never crossed by a rounding error of a
//! float.

use veloq_core::{Cell, Column, Unit};

/// Cells of a share's bar.
const BAR_CELLS: u32 = 10;

/// Returns a value as people read it; text comes back as it is.
pub(super) fn cell(column: &Column, cell: &Cell) -> String {
    match (cell, column.unit) {
        (Cell::Null, _) => "–".to_owned(),
        (Cell::Text(text), _) => text.clone(),
        (Cell::Bool(is_true), _) => if *is_true { "yes" } else { "no" }.to_owned(),
        (Cell::Int(value), Unit::Nanoseconds) if is_instant(column) => instant(*value),
        (Cell::Int(value), Unit::Nanoseconds) => duration(*value),
        (Cell::Int(value), Unit::Bytes) => bytes(*value),
        (Cell::Int(value), Unit::Count) => thousands(*value),
        (Cell::Int(value), Unit::Ratio) => share(if *value == 0 { 0.0 } else { 1.0 }),
        (Cell::Int(value), Unit::GigabytesPerSecond) => format!("{value} GB/s"),
        (Cell::Int(value), Unit::Text | Unit::Id) => value.to_string(),
        (Cell::Float(value), Unit::Nanoseconds) => duration(rounded(*value)),
        (Cell::Float(value), Unit::Bytes) => bytes(rounded(*value)),
        (Cell::Float(value), Unit::Ratio) => share(*value),
        (Cell::Float(value), Unit::GigabytesPerSecond) => format!("{value:.1} GB/s"),
        (Cell::Float(value), Unit::Count | Unit::Text | Unit::Id) => format!("{value:.3}"),
    }
}

/// Returns a column's heading: the field's name, without the unit that the values carry themselves.
pub(super) fn heading(column: &Column) -> &str {
    let suffix = match column.unit {
        Unit::Nanoseconds => "_ns",
        Unit::GigabytesPerSecond => "_gb_per_s",
        _ => "",
    };
    match column.name.strip_suffix(suffix) {
        Some(name) if !name.is_empty() => name,
        _ => &column.name,
    }
}

/// Returns whether a column holds points in time. Those differ in their last digits, so that three of them
/// would show nothing.
fn is_instant(column: &Column) -> bool {
    column.name.ends_with("start_ns") || column.name.ends_with("end_ns")
}

/// Returns a point in time in ms, exact to the nanosecond.
fn instant(value_ns: i128) -> String {
    let (whole, rest) = (
        value_ns.unsigned_abs() / 1_000_000,
        value_ns.unsigned_abs() % 1_000_000,
    );
    let sign = if value_ns < 0 { "-" } else { "" };
    format!("{sign}{}.{rest:06} ms", grouped(&whole.to_string()))
}

/// Returns a duration in the unit that gives it one to three digits before the point.
pub(crate) fn duration(value_ns: i128) -> String {
    scaled(
        value_ns,
        &[(1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s")],
    )
}

/// Returns a size in decimal units.
pub(crate) fn bytes(value: i128) -> String {
    scaled(
        value,
        &[
            (1, "B"),
            (1_000, "kB"),
            (1_000_000, "MB"),
            (1_000_000_000, "GB"),
            (1_000_000_000_000, "TB"),
        ],
    )
}

/// Returns an integer with its digits in groups of three.
pub(crate) fn thousands(value: i128) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(&value.unsigned_abs().to_string()))
}

fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a value with three significant digits in the largest unit that leaves one before the point.
fn scaled(value: i128, units: &[(u128, &str)]) -> String {
    let magnitude = value.unsigned_abs();
    let sign = if value < 0 { "-" } else { "" };
    for (at, (factor, unit)) in units.iter().enumerate() {
        let is_last = at + 1 == units.len();
        if *factor == 1 {
            if magnitude < 1000 || is_last {
                return format!("{sign}{magnitude} {unit}");
            }
            continue;
        }
        for (decimals, scale) in [(2_usize, 100_u128), (1, 10), (0, 1)] {
            let rounded = round_div(magnitude.saturating_mul(scale), *factor);
            if rounded < 1000 || (is_last && decimals == 0) {
                let (whole, rest) = (rounded / scale, rounded % scale);
                let whole = grouped(&whole.to_string());
                return match decimals {
                    0 => format!("{sign}{whole} {unit}"),
                    _ => format!("{sign}{whole}.{rest:0decimals$} {unit}"),
                };
            }
        }
    }
    thousands(value)
}

fn round_div(value: u128, by: u128) -> u128 {
    (value + by / 2) / by
}

/// Returns a share as a percentage and a bar.
fn share(ratio: f64) -> String {
    let eighths_of_bar = f64::from(BAR_CELLS * 8);
    let eighths = rounded(ratio.clamp(0.0, 1.0) * eighths_of_bar);
    let (full, part) = (eighths / 8, eighths % 8);
    let mut bar = String::new();
    for _ in 0..full {
        bar.push('█');
    }
    if let Some(part) = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(usize::try_from(part).unwrap_or(0))
    {
        bar.push_str(part);
    }
    let cells = BAR_CELLS as usize;
    format!("{:.1} % {bar:<cells$}", ratio * 100.0)
}

fn rounded(value: f64) -> i128 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float beyond 128 bits becomes the nearest bound, which is as good for three digits"
    )]
    let whole = value.round() as i128;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (1_234_567, "1.23 ms"),
            (12_345_678, "12.3 ms"),
            (999_600, "1.00 ms"),
            (999_499, "999 µs"),
            (64_085_015, "64.1 ms"),
            (5_000_000_000_000, "5,000 s"),
            (-1_500, "-1.50 µs"),
        ] {
            assert_eq!(duration(ns), text, "{ns}");
        }
    }

    #[test]
    fn sizes_and_counts_are_grouped() {
        assert_eq!(bytes(4_500_000_000), "4.50 GB");
        assert_eq!(bytes(12), "12 B");
        assert_eq!(thousands(1_465), "1,465");
        assert_eq!(thousands(-1_234_567), "-1,234,567");
        assert_eq!(thousands(999), "999");
    }

    #[test]
    fn instants_keep_their_last_digit() {
        let start = Column::new("start_ns", Unit::Nanoseconds);
        assert_eq!(cell(&start, &Cell::Int(1_064_085_015)), "1,064.085015 ms");
        assert_eq!(heading(&start), "start");
    }

    #[test]
    fn shares_have_a_bar() {
        assert_eq!(share(0.0), "0.0 %           ");
        assert_eq!(share(0.5), "50.0 % █████     ");
        assert_eq!(share(1.0), "100.0 % ██████████");
    }
}
