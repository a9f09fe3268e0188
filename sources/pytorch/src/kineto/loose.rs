//! Values whose type writers disagree on: numbers as text, lists as text, flags as numbers.
//!
//! Each reader takes the JSON text of one value, and returns `None` for what is no such value.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::scalar;

/// Returns a text: a string's content, or a number as written.
pub(crate) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let json = value.get();
    match json.as_bytes().first()? {
        b'"' if json.contains('\\') => serde_json::from_str::<String>(json).ok().map(Cow::Owned),
        b'"' => json.get(1..json.len() - 1).map(Cow::Borrowed),
        b'-' | b'0'..=b'9' => Some(Cow::Borrowed(json)),
        _ => None,
    }
}

/// Returns an integer: `12`, `12.0`, `"12"`.
pub(crate) fn integer(value: &RawValue) -> Option<i64> {
    scalar::integer(text(value)?.trim())
}

/// Returns whether a flag is on: `true`, or a number other than 0.
pub(crate) fn is_on(value: &RawValue) -> bool {
    match value.get() {
        "true" | "\"true\"" => true,
        _ => integer(value).is_some_and(|number| number != 0),
    }
}

/// Returns a list of ranks: `[0, 1]` or `"[0, 1]"`. A list that was shortened with `...` is none.
pub(crate) fn ranks(value: &RawValue) -> Option<Vec<i64>> {
    let list = if value.get().starts_with('[') {
        Cow::Borrowed(value.get())
    } else {
        text(value)?
    };
    let inner = list.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    if inner.is_empty() {
        return Some(Vec::new());
    }
    inner
        .split(',')
        .map(|rank| scalar::integer(rank.trim().trim_matches('"')))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn ranks_are_read_from_arrays_and_text() {
        for (json, expected) in [
            ("[0, 1]", Some(vec![0, 1])),
            (r#""[0, 1]""#, Some(vec![0, 1])),
            (r#""[]""#, Some(vec![])),
            ("[]", Some(vec![])),
            (r#""[0, 1, ..., 127]""#, None),
            (r#""0""#, None),
            ("7", None),
            ("null", None),
        ] {
            assert_eq!(ranks(&raw(json)), expected, "{json}");
        }
    }

    #[test]
    fn integers_and_texts_stand_for_each_other() {
        assert_eq!(integer(&raw(r#""12""#)), Some(12));
        assert_eq!(integer(&raw("12.0")), Some(12));
        assert_eq!(integer(&raw("[12]")), None);
        assert_eq!(text(&raw("4.10")).as_deref(), Some("4.10"));
        assert_eq!(text(&raw(r#""a\"b""#)).as_deref(), Some("a\"b"));
        assert_eq!(text(&raw("{}")), None);
    }

    #[test]
    fn flags_are_numbers_or_booleans() {
        assert!(is_on(&raw("1")) && is_on(&raw("true")) && is_on(&raw(r#""1""#)));
        assert!(!is_on(&raw("0")) && !is_on(&raw("false")) && !is_on(&raw("null")));
    }
}
