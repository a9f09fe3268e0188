//! Repairing elements that are not valid JSON.
//!
//! Writers of several years put names and annotations into the file without escaping them, so that quotes,
//! control bytes and backslashes stand raw in strings; others wrote `NaN`, `inf`, `N/A` or nothing where a
//! value belongs. Such an element is cut out at the next place that looks like the start of another, and
//! rewritten leniently into valid JSON. What stays unreadable is passed over and counted.

use std::fmt::Write as _;

use super::scan::{UnicodeEscape, unicode_escape};

/// The keys with which elements begin, in whatever order writers put them.
const FIRST_KEYS: [&str; 11] = [
    "ph", "name", "cat", "ts", "pid", "tid", "args", "dur", "id", "s", "bp",
];

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Returns whether an element seems to start at the brace at `at`: a known key follows it.
///
/// `None` when the text ends too early to tell.
fn is_element_start(bytes: &[u8], at: usize) -> Option<bool> {
    let key = skip_space(bytes, at + 1);
    match bytes.get(key) {
        None => None,
        Some(b'"') => {
            let rest = &bytes[key + 1..];
            let is_known = |first: &&str| {
                rest.strip_prefix(first.as_bytes())
                    .is_some_and(|behind| behind.first() == Some(&b'"'))
            };
            if FIRST_KEYS.iter().any(is_known) {
                return Some(true);
            }
            if rest.len() < 6 { None } else { Some(false) }
        }
        Some(_) => Some(false),
    }
}

/// Returns the position behind the first place from `from` on that looks like the end of an element: a
/// closing brace that a comma and the start of another element follow, or that ends the array of elements.
///
/// The position is behind the brace. Where the text ends behind brace and comma, `is_cut_between` tells
/// whether an element follows, and `is_final` that nothing does.
pub(super) fn boundary_after(text: &str, from: usize, is_cut_between: bool, is_final: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'}', &bytes[from..])
        .map(|offset| from + offset)
        .find_map(|brace| {
            let next = skip_space(bytes, brace + 1);
            let is_end = match bytes.get(next) {
                Some(b',') => {
                    let start = skip_space(bytes, next + 1);
                    match bytes.get(start) {
                        None => is_cut_between || is_final,
                        Some(b'{') => is_element_start(bytes, start) == Some(true),
                        Some(_) => false,
                    }
                }
                Some(b']') => {
                    let behind = skip_space(bytes, next + 1);
                    match bytes.get(behind) {
                        None => is_final,
                        Some(b'}') => is_final && skip_space(bytes, behind + 1) == bytes.len(),
                        Some(b',') => is_top_level_key(bytes, behind + 1),
                        Some(_) => false,
                    }
                }
                _ => false,
            };
            is_end.then_some(brace + 1)
        })
}

/// Returns whether a key of the root follows.
fn is_top_level_key(bytes: &[u8], at: usize) -> bool {
    const KEYS: [&str; 10] = [
        "schemaVersion",
        "traceName",
        "displayTimeUnit",
        "baseTimeNanoseconds",
        "deviceProperties",
        "distributedInfo",
        "INFO",
        "WARNING",
        "ERROR",
        "trace_id",
    ];
    let key = skip_space(bytes, at);
    bytes.get(key) == Some(&b'"')
        && KEYS
            .iter()
            .any(|known| bytes[key + 1..].starts_with(known.as_bytes()))
}

/// Returns where the text can be cut: the last place where an element seems to end and another to start.
/// The position is that of the next element's brace.
pub(super) fn last_cut(bytes: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(b'{', bytes).find(|&brace| is_between(bytes, brace))
}

/// Returns whether an element seems to end before the brace at `at`, and another to start there.
pub(super) fn is_between(bytes: &[u8], at: usize) -> bool {
    let before = |at: usize| {
        bytes[..at]
            .iter()
            .rposition(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t'))
    };
    let end = before(at).filter(|comma| bytes[*comma] == b',').and_then(before);
    end.is_some_and(|end| bytes[end] == b'}') && is_element_start(bytes, at) == Some(true)
}

/// What was wrong with an element that could be repaired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) strings: bool,
    pub(super) characters: bool,
    pub(super) values: bool,
    pub(super) commas: bool,
}

/// An element rewritten as valid JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repaired {
    pub(super) text: String,
    pub(super) wrong: Wrong,
}

/// Levels that a repaired element may have.
const MAX_DEPTH: usize = 100;

/// Rewrites an element as valid JSON; `None` when its structure cannot be made out.
///
/// A quote ends a string when what follows it could follow a string there. Values that are no JSON become
/// strings of their text (`"NaN"`), and missing ones null.
pub(super) fn repair(element: &str) -> Option<Repaired> {
    let mut repair = Repair {
        bytes: element.as_bytes(),
        element,
        at: 0,
        out: String::new(),
        wrong: Wrong::default(),
    };
    repair.structure()?;
    repair.skip_space();
    (repair.at == repair.bytes.len()).then_some(Repaired {
        text: repair.out,
        wrong: repair.wrong,
    })
}

struct Repair<'a> {
    bytes: &'a [u8],
    element: &'a str,
    at: usize,
    out: String,
    wrong: Wrong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Key,
    ObjectValue,
    ArrayValue,
}

impl Repair<'_> {
    fn skip_space(&mut self) {
        self.at = skip_space(self.bytes, self.at);
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.bytes.get(self.at).copied()
    }

    /// Rewrites the object that the element is, with all that is in it.
    fn structure(&mut self) -> Option<()> {
        let mut levels: Vec<u8> = Vec::new();
        loop {
            // A value starts here.
            let place = match levels.last() {
                Some(b'[') => Place::ArrayValue,
                _ => Place::ObjectValue,
            };
            match self.peek()? {
                open @ (b'{' | b'[') if levels.len() < MAX_DEPTH => {
                    self.at += 1;
                    self.out.push(char::from(open));
                    levels.push(open);
                    if self.opens(open)? {
                        continue;
                    }
                }
                _ if levels.is_empty() => return None,
                b'"' => self.string(place)?,
                b',' | b'}' | b']' => {
                    self.wrong.values = true;
                    self.out.push_str("null");
                }
                _ => self.scalar()?,
            }
            if !self.closes(&mut levels)? {
                return Some(());
            }
        }
    }

    /// Begins an object or array; returns whether a value follows.
    fn opens(&mut self, open: u8) -> Option<bool> {
        let close = open + 2;
        match self.peek()? {
            byte if byte == close => Some(false),
            b'"' if open == b'{' => {
                self.key()?;
                Some(true)
            }
            _ if open == b'[' => Some(true),
            _ => None,
        }
    }

    /// Goes on behind a value; returns whether another one follows, or the element has ended.
    fn closes(&mut self, levels: &mut Vec<u8>) -> Option<bool> {
        loop {
            let Some(&open) = levels.last() else {
                return Some(false);
            };
            let close = open + 2;
            match self.peek()? {
                b',' => {
                    self.at += 1;
                    if self.peek()? == close {
                        self.wrong.commas = true;
                        continue;
                    }
                    self.out.push(',');
                    if open == b'{' {
                        self.key()?;
                    }
                    return Some(true);
                }
                byte if byte == close => {
                    self.at += 1;
                    self.out.push(char::from(close));
                    levels.pop();
                }
                _ => return None,
            }
        }
    }

    fn key(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.string(Place::Key)?;
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        self.out.push(':');
        Some(())
    }

    /// Returns whether the quote at `at` can be the end of a string.
    fn is_end_quote(&self, at: usize, place: Place) -> bool {
        let next = skip_space(self.bytes, at + 1);
        match (self.bytes.get(next), place) {
            (Some(b':'), Place::Key) => true,
            (Some(b'}'), Place::ObjectValue) | (Some(b']'), Place::ArrayValue) => true,
            (Some(b','), Place::ObjectValue) => {
                matches!(
                    self.bytes.get(skip_space(self.bytes, next + 1)),
                    Some(b'"' | b'}')
                )
            }
            (Some(b','), Place::ArrayValue) => true,
            _ => false,
        }
    }

    /// Returns whether the quote at `at` is that of another element's first key.
    fn is_in_next_element(&self, at: usize) -> bool {
        let brace = self.bytes[..at]
            .iter()
            .rposition(|byte| !byte.is_ascii_whitespace());
        brace.is_some_and(|brace| self.bytes[brace] == b'{' && is_between(self.bytes, brace))
    }

    fn string(&mut self, place: Place) -> Option<()> {
        self.out.push('"');
        let mut copied = self.at + 1;
        let mut at = copied;
        loop {
            let byte = *self.bytes.get(at)?;
            let is_end = byte == b'"' && self.is_end_quote(at, place);
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                at += 1;
                continue;
            }
            self.out.push_str(&self.element[copied..at]);
            match byte {
                b'"' if is_end => {
                    self.out.push('"');
                    self.at = at + 1;
                    return Some(());
                }
                // The text of another element is no string, however its quotes could be read.
                b'"' if self.is_in_next_element(at) => return None,
                b'"' => {
                    self.out.push_str("\\\"");
                    self.wrong.strings = true;
                }
                b'\\' if self.is_half_character(at) => {
                    self.out.push_str("\\ufffd");
                    self.wrong.characters = true;
                    at += 5;
                }
                b'\\' => {
                    let length = self.escape_at(at);
                    if length == 0 {
                        self.out.push_str("\\\\");
                        self.wrong.strings = true;
                    } else {
                        self.out.push_str(&self.element[at..at + length]);
                        at += length - 1;
                    }
                }
                control => {
                    let _ = write!(self.out, "\\u{control:04x}");
                    self.wrong.strings = true;
                }
            }
            at += 1;
            copied = at;
        }
    }

    /// Returns whether half a surrogate pair is escaped at `at`.
    fn is_half_character(&self, at: usize) -> bool {
        self.bytes.get(at + 1) == Some(&b'u')
            && match unicode_escape(self.bytes, at) {
                UnicodeEscape::Half => true,
                // What would follow the first half is cut off.
                UnicodeEscape::Cut => self.bytes.len() >= at + 6,
                UnicodeEscape::Character(_) | UnicodeEscape::None => false,
            }
    }

    /// Returns the length of the valid escape at `at`, or 0.
    fn escape_at(&self, at: usize) -> usize {
        match self.bytes.get(at + 1) {
            // A backslash before the quote that ends the string is a path's last one, not an escape.
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => match unicode_escape(self.bytes, at) {
                UnicodeEscape::Character(length) => length,
                UnicodeEscape::Half | UnicodeEscape::None | UnicodeEscape::Cut => 0,
            },
            _ => 0,
        }
    }

    /// Rewrites what stands in place of a value: a number or literal as it is, anything else as a string.
    fn scalar(&mut self) -> Option<()> {
        let start = self.at;
        let length = self.bytes[start..]
            .iter()
            .position(|b| matches!(b, b',' | b'}' | b']' | b'{' | b'[' | b'"'))?;
        let word = self.element.get(start..start + length)?.trim_end();
        self.at = start + length;
        if serde_json::from_str::<&serde_json::value::RawValue>(word).is_ok() {
            self.out.push_str(word);
        } else {
            self.wrong.values = true;
            self.out.push_str(&serde_json::to_string(word).ok()?);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(element: &str) -> String {
        let repaired = repair(element).unwrap_or_else(|| panic!("`{element}` is beyond repair"));
        serde_json::from_str::<serde_json::Value>(&repaired.text).unwrap();
        repaired.text
    }

    #[test]
    fn raw_quotes_and_control_bytes_are_escaped() {
        assert_eq!(
            repaired("{\"name\":\"a \"b\" c\",\"ts\":1}"),
            r#"{"name":"a \"b\" c","ts":1}"#
        );
        assert_eq!(
            repaired("{\"name\":\"a\nb\u{1}\"}"),
            r#"{"name":"a\u000ab\u0001"}"#
        );
        assert_eq!(repaired(r#"{"name":"C:\temp\x"}"#), r#"{"name":"C:\temp\\x"}"#);
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        assert_eq!(
            repaired(r#"{"a":"\ud83d\ude00","b":"\ud800x","c":"\udc00\ud800"}"#),
            r#"{"a":"\ud83d\ude00","b":"\ufffdx","c":"\ufffd\ufffd"}"#
        );
    }

    #[test]
    fn values_that_are_none_become_text() {
        assert_eq!(
            repaired(r#"{"a":NaN,"b":-nan(ind),"c":N/A,"d":inf,"e":-1.-500,"f":,"g":1.5}"#),
            r#"{"a":"NaN","b":"-nan(ind)","c":"N/A","d":"inf","e":"-1.-500","f":null,"g":1.5}"#
        );
    }

    #[test]
    fn trailing_commas_are_dropped() {
        assert_eq!(
            repaired(r#"{"a":[1,2,],"b":{"c":1,},}"#),
            r#"{"a":[1,2],"b":{"c":1}}"#
        );
    }

    #[test]
    fn boundaries_need_the_start_of_an_element() {
        let text = r#"{"name":"x},{y"},{"ph":"X"}"#;
        assert_eq!(boundary_after(text, 0, false, false), Some(16));
        assert_eq!(last_cut(text.as_bytes()), Some(17));
        assert_eq!(last_cut(br#"{"args":[{"a":1},{"b":2}"#), None);
    }
}
