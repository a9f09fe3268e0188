//! Times: decimal microseconds of text, exactly into integer nanoseconds.
//!
//! Absolute microseconds with three decimals do not fit a float: its spacing there is a quarter of a
//! microsecond. So the digits are moved, never computed. Digits below a nanosecond are rounded half away
//! from zero.

/// A time or a duration as an element gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// The key is not there.
    Missing,
    /// Nanoseconds.
    Ns(i64),
    /// There, but no time: not a number, or beyond 64 bits.
    Invalid,
}

/// Returns the nanoseconds of decimal microseconds: `12`, `12.5`, `-3.001`, `1.2e3`.
pub(crate) fn parse_microseconds(text: &str) -> Time {
    nanoseconds(text).map_or(Time::Invalid, Time::Ns)
}

fn nanoseconds(text: &str) -> Option<i64> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = whole.bytes().chain(fraction.bytes());
    // How many of the digits stand before the nanosecond.
    let kept = i64::try_from(whole.len()).ok()? + i64::from(exponent) + 3;
    let mut value: i64 = 0;
    let mut place = 0_i64;
    let mut rounds_up = false;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        if place < kept {
            value = value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
        } else if place == kept {
            rounds_up = digit >= b'5';
        }
        place += 1;
    }
    while place < kept && value != 0 {
        value = value.checked_mul(10)?;
        place += 1;
    }
    value = value.checked_add(i64::from(rounds_up))?;
    Some(if is_negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_of_real_traces_is_exact() {
        for (text, ns) in [
            ("0", 0),
            ("12", 12_000),
            ("12.0", 12_000),
            ("12.5", 12_500),
            ("1751410836000.001", 1_751_410_836_000_001),
            ("1711964646123456.789", 1_711_964_646_123_456_789),
            ("-3.001", -3_001),
            ("1.2e3", 1_200_000),
            ("1.5E-2", 15),
            ("0.0004", 0),
            ("0.0005", 1),
            ("-0.0005", -1),
            ("0e99999", 0),
            (".5", 500),
            ("5.", 5_000),
        ] {
            assert_eq!(parse_microseconds(text), Time::Ns(ns), "{text}");
        }
        for text in [
            "",
            "-",
            ".",
            "NaN",
            "-1.-500",
            "1e",
            "--1",
            "1.2.3",
            "9223372036854775.808",
            "1e30",
            "0x10",
        ] {
            assert_eq!(parse_microseconds(text), Time::Invalid, "{text}");
        }
    }

    proptest! {
        #[test]
        fn three_decimals_are_the_nanoseconds(ns in -i64::MAX..=i64::MAX) {
            let sign = if ns < 0 { "-" } else { "" };
            let text = format!("{sign}{}.{:03}", ns.unsigned_abs() / 1000, ns.unsigned_abs() % 1000);
            prop_assert_eq!(parse_microseconds(&text), Time::Ns(ns));
        }

        /// `<whole>.<fraction>e<exponent>` is the digits with the point moved.
        #[test]
        fn exponents_move_the_point(
            digits in 0_u64..1_000_000_000, point in 0_usize..=9, exponent in -12_i32..10, capital in any::<bool>()
        ) {
            let (whole, fraction) = (format!("{digits:09}"), format!("{digits:09}"));
            let (whole, fraction) = (&whole[..point], &fraction[point..]);
            let text = format!("{whole}.{fraction}{}{exponent:+}", if capital { 'E' } else { 'e' });
            // How far the last digit is above a nanosecond, in powers of ten.
            let above = exponent + 3 - i32::try_from(fraction.len()).unwrap();
            let power = 10_i128.pow(above.unsigned_abs());
            let exact = if above >= 0 {
                i128::from(digits) * power
            } else {
                (i128::from(digits) * 2 + power) / (2 * power)
            };
            let expected = i64::try_from(exact).map_or(Time::Invalid, Time::Ns);
            prop_assert_eq!(parse_microseconds(&text), expected, "{}", text);
        }

        #[test]
        fn digits_below_a_nanosecond_are_rounded_away_from_zero(
            ns in -1_000_000_000_i64..1_000_000_000, below in 0_u32..1_000_000
        ) {
            let sign = if ns < 0 { "-" } else { "" };
            let text = format!("{sign}{}.{:03}{below:06}", ns.abs() / 1000, ns.abs() % 1000);
            let away = if below < 500_000 { 0 } else if ns < 0 { -1 } else { 1 };
            prop_assert_eq!(parse_microseconds(&text), Time::Ns(ns + away), "{}", text);
        }
    }
}
