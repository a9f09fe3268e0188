//! The scalar texts a trace is made of: times, ids and JSON values.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A point in time or a duration, written to the trace as decimal microseconds.
///
/// An `i64` is nanoseconds. A `&str` is decimal microseconds: text with at most three decimals becomes
/// nanoseconds exactly, anything else is written to the file as it stands (`"1e3"`, `"NaN"`, `"-1.-500"`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Time {
    /// Nanoseconds; written with three decimals, or cut to whole microseconds in the old eras.
    Ns(i64),
    /// Text that goes into the file unchanged, whatever the era.
    Verbatim(Cow<'static, str>),
}

impl Time {
    /// A time whose text is kept as it is, for instance `12.0` or a quoted number.
    pub fn verbatim(text: impl Into<Cow<'static, str>>) -> Self {
        Time::Verbatim(text.into())
    }

    /// Nanoseconds, or `None` for verbatim text.
    pub fn ns(&self) -> Option<i64> {
        match self {
            Time::Ns(ns) => Some(*ns),
            Time::Verbatim(_) => None,
        }
    }
}

impl From<i64> for Time {
    fn from(ns: i64) -> Self {
        Time::Ns(ns)
    }
}

impl From<&'static str> for Time {
    fn from(us: &'static str) -> Self {
        decimal_us(us).map_or(Time::Verbatim(Cow::Borrowed(us)), Time::Ns)
    }
}

/// Reads `[-]digits[.d{1,3}]` microseconds as nanoseconds; `None` for every other form.
fn decimal_us(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || fraction.len() > 3 {
        return None;
    }
    let ns: i64 = format!("{fraction:0<3}").parse().ok()?;
    whole
        .parse::<i64>()
        .ok()?
        .checked_mul(1000)?
        .checked_add(ns)
        .map(|ns| sign * ns)
}

/// How an era prints a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// Three decimals.
    Decimal,
    /// Whole microseconds, the rest cut off as the old writers did.
    Truncated,
}

pub(crate) fn write_time(out: &mut String, time: &Time, offset_ns: i64, form: TimeForm) {
    match time {
        Time::Verbatim(text) => out.push_str(text),
        Time::Ns(ns) => {
            let ns = ns + offset_ns;
            let sign = if ns < 0 { "-" } else { "" };
            let (us, rest) = (ns.unsigned_abs() / 1000, ns.unsigned_abs() % 1000);
            // Writing to a String cannot fail.
            let _ = match form {
                TimeForm::Decimal => write!(out, "{sign}{us}.{rest:03}"),
                TimeForm::Truncated => write!(out, "{sign}{us}"),
            };
        }
    }
}

/// A pid or tid: a number, or a string as merged and very old files have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Id {
    /// A plain number.
    Int(i64),
    /// A JSON string.
    Text(String),
}

impl Id {
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Id::Int(n) => {
                let _ = write!(out, "{n}");
            }
            Id::Text(text) => write_string(out, text),
        }
    }
}

impl From<i64> for Id {
    fn from(n: i64) -> Self {
        Id::Int(n)
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        Id::Text(text.to_owned())
    }
}

/// The text of one JSON value. A `&str` becomes a JSON string; use [`Json::raw`] for arrays, objects, or
/// text that is no JSON at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(pub(crate) Cow<'static, str>);

impl Json {
    /// The given text, unchecked.
    pub fn raw(text: impl Into<Cow<'static, str>>) -> Self {
        Json(text.into())
    }

    /// JSON `null`.
    pub fn null() -> Self {
        Json::raw("null")
    }
}

impl From<i64> for Json {
    fn from(n: i64) -> Self {
        if n == 0 {
            Json::raw("0")
        } else {
            Json::raw(n.to_string())
        }
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Json::raw(if value { "true" } else { "false" })
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        let mut out = String::with_capacity(text.len() + 2);
        write_string(&mut out, text);
        Json::raw(out)
    }
}

impl From<&[i64]> for Json {
    fn from(numbers: &[i64]) -> Self {
        Json::raw(int_list(numbers, ", "))
    }
}

impl<const N: usize> From<[i64; N]> for Json {
    fn from(numbers: [i64; N]) -> Self {
        Json::from(&numbers[..])
    }
}

pub(crate) fn int_list(numbers: &[i64], separator: &str) -> String {
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("[{}]", texts.join(separator))
}

/// `numerator / denominator` with six decimals, trailing zeros dropped: the float texts of kernel and copy
/// arguments without going through a float. The denominator must not be zero.
pub(crate) fn ratio(numerator: i64, denominator: i64) -> Json {
    let millionths = i128::from(numerator) * 1_000_000 / i128::from(denominator);
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    Json::raw(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}

/// Appends `text` as a JSON string with its quotes.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(time: impl Into<Time>) -> String {
        let mut out = String::new();
        write_time(&mut out, &time.into(), 0, TimeForm::Decimal);
        out
    }

    #[test]
    fn times_are_written_as_microseconds_with_three_decimals() {
        assert_eq!(written(1_234_567), "1234.567");
        assert_eq!(written(-5), "-0.005");
        assert_eq!(written("12"), "12.000");
        assert_eq!(written("12.5"), "12.500");
        assert_eq!(written("-0.25"), "-0.250");
    }

    #[test]
    fn text_that_is_no_short_decimal_is_kept() {
        for text in ["1e3", "NaN", "1.2345", "-1.-500", ".5", "5.", ""] {
            assert_eq!(written(text), text);
        }
        assert_eq!(written(Time::verbatim("12.0")), "12.0");
    }

    #[test]
    fn old_eras_cut_to_whole_microseconds() {
        let mut out = String::new();
        write_time(&mut out, &Time::Ns(1_999), 5_000_000, TimeForm::Truncated);
        assert_eq!(out, "5001");
    }

    #[test]
    fn ratios_have_six_decimals_at_most() {
        assert_eq!(ratio(66, 132), Json::raw("0.5"));
        assert_eq!(ratio(264, 132), Json::raw("2"));
        assert_eq!(ratio(1, 3), Json::raw("0.333333"));
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(Json::from("a\"b\\c\n"), Json::raw(r#""a\"b\\c\u000a""#));
    }
}
