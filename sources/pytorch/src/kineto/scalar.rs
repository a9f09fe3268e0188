//! Ids and integers as traces spell them.

use std::borrow::Cow;

/// An id: of a process, a thread, a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scalar<'a> {
    Missing,
    /// An integer, also one written as `12.0` or `"12"`.
    Int(i64),
    /// An integer beyond 64 signed bits.
    UInt(u64),
    /// Any other text.
    Text(Cow<'a, str>),
}

/// Returns the integer that a number's text is: `12`, `-3`, `12.0`; `None` for fractions and beyond 64 bits.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    // The usual case by hand: short runs of digits.
    if !bytes.is_empty() && bytes.len() <= 18 && bytes.iter().all(u8::is_ascii_digit) {
        return Some(
            bytes
                .iter()
                .fold(0, |value, digit| value * 10 + i64::from(digit - b'0')),
        );
    }
    match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|b| b == b'0') => {
            whole.parse().ok()
        }
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// Returns the id that a number's text is.
pub(crate) fn number_id(text: &str) -> Scalar<'_> {
    match integer(text) {
        Some(value) => Scalar::Int(value),
        None => text
            .parse()
            .map_or(Scalar::Text(Cow::Borrowed(text)), Scalar::UInt),
    }
}

/// Returns the id that a string is: an integer where it is nothing but one.
pub(crate) fn text_id(text: Cow<'_, str>) -> Scalar<'_> {
    let is_plain = !text.is_empty() && !text.starts_with('+');
    match text.parse::<i64>() {
        Ok(value) if is_plain => Scalar::Int(value),
        _ => Scalar::Text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_every_digit() {
        assert_eq!(integer("12"), Some(12));
        assert_eq!(integer("12.0"), Some(12));
        assert_eq!(integer("12.5"), None);
        assert_eq!(integer("-549452224"), Some(-549_452_224));
        assert_eq!(integer("9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer("9223372036854775808"), None);
        assert_eq!(number_id("18446744073709551615"), Scalar::UInt(u64::MAX));
    }

    #[test]
    fn text_that_is_a_number_is_one() {
        assert_eq!(text_id("4093687616".into()), Scalar::Int(4_093_687_616));
        assert_eq!(text_id("stream 7".into()), Scalar::Text("stream 7".into()));
        assert_eq!(text_id("".into()), Scalar::Text("".into()));
    }
}
