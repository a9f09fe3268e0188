//! Time as integer nanoseconds: literals, and half-open ranges.

use std::ops::Range;

/// A half-open range of nanoseconds since the trace's origin; an absent end is unbounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NsRange {
    /// First nanosecond inside.
    pub from_ns: Option<i64>,
    /// First nanosecond after.
    pub to_ns: Option<i64>,
}

impl NsRange {
    /// Returns whether a half-open interval has a part inside; an empty interval counts as its instant.
    pub fn overlaps(&self, interval: &Range<i64>) -> bool {
        let end = interval.end.max(interval.start.saturating_add(1));
        self.to_ns.is_none_or(|to| interval.start < to) && self.from_ns.is_none_or(|from| from < end)
    }

    /// Returns the part of a half-open interval that lies inside; empty when there is none.
    pub fn clip(&self, interval: Range<i64>) -> Range<i64> {
        let start = self
            .from_ns
            .map_or(interval.start, |from| interval.start.max(from));
        let end = self.to_ns.map_or(interval.end, |to| interval.end.min(to));
        start..end.max(start)
    }
}

/// Parses a time literal into nanoseconds: `250`, `250ns`, `1.5us`, `1.5µs`, `2ms`, `3s`.
///
/// # Errors
/// A message that names the literal, when it is not a decimal number with a known unit, has digits below
/// a nanosecond, or does not fit 64 bits.
pub fn parse_time(literal: &str) -> Result<i64, String> {
    let text = literal.trim();
    let unit_at = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let digits_of_unit = match unit.trim() {
        "" | "ns" => 0,
        "us" | "µs" | "μs" => 3,
        "ms" => 6,
        "s" => 9,
        _ => return Err(format!("`{literal}` has no known unit; use ns, us, ms or s")),
    };
    let (negative, number) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_number(whole) || !is_number(fraction) {
        return Err(format!(
            "`{literal}` is not a time; write for example 250ns, 1.5us, 2ms or 3s"
        ));
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > digits_of_unit {
        return Err(format!("`{literal}` has digits below a nanosecond"));
    }
    let digits = format!("{whole}{fraction:0<digits_of_unit$}");
    let digits = digits.trim_start_matches('0');
    let value: i64 = if digits.is_empty() {
        0
    } else {
        digits
            .parse()
            .map_err(|_| format!("`{literal}` does not fit 64-bit nanoseconds"))?
    };
    Ok(if negative { -value } else { value })
}

/// Parses a duration filter (`>1ms`, `>=1ms`, `<5us`, `<=100us`, `100us-1ms`, both ends inside) into an
/// inclusive range of nanoseconds, either end open.
///
/// # Errors
/// A message that names the filter or the literal in it that cannot be read.
pub fn parse_duration_filter(filter: &str) -> Result<(Option<i64>, Option<i64>), String> {
    let text = filter.trim();
    let beyond = |literal: &str, by: i64| parse_time(literal).map(|ns| ns.saturating_add(by));
    if let Some(rest) = text.strip_prefix(">=") {
        return Ok((Some(parse_time(rest)?), None));
    }
    if let Some(rest) = text.strip_prefix("<=") {
        return Ok((None, Some(parse_time(rest)?)));
    }
    if let Some(rest) = text.strip_prefix('>') {
        return Ok((Some(beyond(rest, 1)?), None));
    }
    if let Some(rest) = text.strip_prefix('<') {
        return Ok((None, Some(beyond(rest, -1)?)));
    }
    if let Some((low, high)) = text.split_once('-') {
        let range = (parse_time(low)?, parse_time(high)?);
        if range.0 > range.1 {
            return Err(format!("`{filter}` is empty: its low end is above its high end"));
        }
        return Ok((Some(range.0), Some(range.1)));
    }
    Err(format!(
        "`{filter}` is not a duration filter; write '>1ms', '<=100us' or '100us-1ms'"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literals_become_exact_nanoseconds() {
        for (literal, ns) in [
            ("250", 250),
            ("250ns", 250),
            ("1.5us", 1_500),
            ("1.5µs", 1_500),
            ("2ms", 2_000_000),
            ("3s", 3_000_000_000),
            ("0.001us", 1),
            ("0", 0),
            (".5us", 500),
            ("1.000s", 1_000_000_000),
            ("-1us", -1_000),
        ] {
            assert_eq!(parse_time(literal), Ok(ns), "{literal}");
        }
        for wrong in [
            "",
            "us",
            "1.5",
            "1.5ns",
            "0.0001us",
            "1 hour",
            "1e3us",
            "99999999999s",
            "1.2.3us",
            "--1",
        ] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn duration_filters_are_inclusive_ranges() {
        assert_eq!(parse_duration_filter(">1us"), Ok((Some(1_001), None)));
        assert_eq!(parse_duration_filter(">=1us"), Ok((Some(1_000), None)));
        assert_eq!(parse_duration_filter("<1us"), Ok((None, Some(999))));
        assert_eq!(parse_duration_filter("<=100us"), Ok((None, Some(100_000))));
        assert_eq!(
            parse_duration_filter("100us-1ms"),
            Ok((Some(100_000), Some(1_000_000)))
        );
        assert!(parse_duration_filter("1ms-1us").is_err());
        assert!(parse_duration_filter("1ms").is_err());
    }

    #[test]
    fn ranges_are_half_open() {
        let range = NsRange {
            from_ns: Some(10),
            to_ns: Some(20),
        };
        assert!(range.overlaps(&(5..11)));
        assert!(!range.overlaps(&(5..10)));
        assert!(
            range.overlaps(&(10..10)),
            "an instant on the first nanosecond is inside"
        );
        assert!(!range.overlaps(&(20..20)));
        assert_eq!(range.clip(5..15), 10..15);
        assert!(range.clip(30..40).is_empty());
    }

    proptest! {
        #[test]
        fn every_unit_reads_back_what_it_writes(ns in -i64::MAX..=i64::MAX) {
            let (sign, size) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
            for (unit, digits) in [("us", 3), ("µs", 3), ("ms", 6), ("s", 9)] {
                let one = 10_u64.pow(digits);
                let literal = format!("{sign}{}.{:0width$}{unit}", size / one, size % one, width = digits as usize);
                prop_assert_eq!(parse_time(&literal), Ok(ns), "{}", literal);
            }
            prop_assert_eq!(parse_time(&ns.to_string()), Ok(ns));
        }

        #[test]
        fn a_clipped_interval_is_what_both_cover(
            from in prop::option::of(0_i64..40), to in prop::option::of(0_i64..40), start in 0_i64..40, width in 0_i64..20
        ) {
            let (range, interval) = (NsRange { from_ns: from, to_ns: to }, start..start + width);
            // Filters refuse a range without an instant.
            prop_assume!(from.zip(to).is_none_or(|(from, to)| from < to));
            let is_inside = |ns: i64| from.is_none_or(|from| from <= ns) && to.is_none_or(|to| ns < to);
            let clipped = range.clip(interval.clone());
            for ns in 0..80 {
                prop_assert_eq!(clipped.contains(&ns), interval.contains(&ns) && is_inside(ns));
            }
            if width > 0 {
                prop_assert_eq!(range.overlaps(&interval), interval.clone().any(is_inside));
            }
        }
    }
}
