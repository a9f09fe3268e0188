//! A strict scanner of JSON text that picks an event out of an element in one pass, without copying.

use std::borrow::Cow;

use super::event::Event;
use super::recover::is_between;
use super::scalar::{Scalar, integer, number_id, text_id};
use super::time::{Time, parse_microseconds};

/// Values nested deeper than this are damage: what reads them later has limits of its own.
const MAX_DEPTH: u32 = 100;

/// Why scanning stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The text ends within the value.
    End,
    /// The text is not JSON here.
    Fault(usize),
    /// Values are nested deeper than any reader of them would follow.
    TooDeep,
}

type Scanned<T> = Result<T, Stop>;

/// A position in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

const fn repeat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Returns the position of the first quote, backslash or control byte from `at` on, or the text's length.
///
/// Eight bytes at a time; the lowest hit of a word is exact (see "Bit Twiddling Hacks", `hasless`).
#[inline]
fn special_at(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(chunk);
        let quote = word ^ repeat(b'"');
        let backslash = word ^ repeat(b'\\');
        let low = word.wrapping_sub(repeat(0x20)) & !word;
        let quotes = quote.wrapping_sub(repeat(1)) & !quote;
        let backslashes = backslash.wrapping_sub(repeat(1)) & !backslash;
        let hits = (low | quotes | backslashes) & repeat(0x80);
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < bytes.len() && bytes[at] >= 0x20 && bytes[at] != b'"' && bytes[at] != b'\\' {
        at += 1;
    }
    at
}

/// A string as written: its text between the quotes, and whether escapes are in it.
#[derive(Debug, Clone, Copy)]
struct RawString<'a> {
    inner: &'a str,
    has_escape: bool,
}

impl<'a> RawString<'a> {
    fn decode(self) -> Cow<'a, str> {
        if self.has_escape {
            Cow::Owned(unescape(self.inner))
        } else {
            Cow::Borrowed(self.inner)
        }
    }
}

/// Returns the text that valid escapes stand for; half a surrogate pair becomes U+FFFD.
fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next() else { break };
        rest = &rest[kind.len_utf8()..];
        match kind {
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'u' => {
                let (unit, after) = hex_unit(rest);
                rest = after;
                let low = rest.strip_prefix("\\u").map(hex_unit);
                match (unit, low) {
                    (0xd800..=0xdbff, Some((low @ 0xdc00..=0xdfff, after))) => {
                        rest = after;
                        let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    _ => text.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)),
                }
            }
            other => text.push(other),
        }
    }
    text.push_str(rest);
    text
}

fn hex_unit(text: &str) -> (u32, &str) {
    match text
        .get(..4)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
    {
        Some(unit) => (unit, &text[4..]),
        None => (0xfffd, text),
    }
}

/// What stands at a backslash and `u` in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnicodeEscape {
    /// An escape of this length that stands for a character: six bytes, or twelve of a surrogate pair.
    Character(usize),
    /// Half a surrogate pair, which stands for nothing.
    Half,
    /// No escape.
    None,
    /// The text ends too early to tell.
    Cut,
}

/// Looks at the backslash at `at`, which a `u` follows.
pub(super) fn unicode_escape(bytes: &[u8], at: usize) -> UnicodeEscape {
    let unit = |at: usize| {
        let digits = bytes.get(at + 2..at + 6)?;
        let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    match unit(at) {
        None if bytes.len() < at + 6 => UnicodeEscape::Cut,
        None => UnicodeEscape::None,
        Some(0xdc00..=0xdfff) => UnicodeEscape::Half,
        Some(0xd800..=0xdbff) if bytes.len() < at + 12 => UnicodeEscape::Cut,
        Some(0xd800..=0xdbff) => match unit(at + 6) {
            Some(0xdc00..=0xdfff) if bytes[at + 6..].starts_with(b"\\u") => UnicodeEscape::Character(12),
            _ => UnicodeEscape::Half,
        },
        Some(_) => UnicodeEscape::Character(6),
    }
}

impl<'a> Scanner<'a> {
    /// Returns a scanner at a position of a text.
    pub(crate) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    /// Returns the position.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    #[inline]
    fn peek(&self) -> Scanned<u8> {
        self.bytes().get(self.at).copied().ok_or(Stop::End)
    }

    fn fault<T>(&self) -> Scanned<T> {
        Err(Stop::Fault(self.at))
    }

    /// Passes over white space.
    #[inline]
    pub(crate) fn skip_space(&mut self) {
        let bytes = self.bytes();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// Passes over white space and returns the byte behind it, which is not consumed.
    #[inline]
    pub(crate) fn next_byte(&mut self) -> Scanned<u8> {
        self.skip_space();
        self.peek()
    }

    /// Consumes one byte.
    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Scanned<()> {
        if self.next_byte()? == byte {
            self.at += 1;
            Ok(())
        } else {
            self.fault()
        }
    }

    /// Scans a string; the position is on its opening quote.
    fn string(&mut self) -> Scanned<RawString<'a>> {
        let bytes = self.bytes();
        let start = self.at + 1;
        let mut at = start;
        let mut has_escape = false;
        loop {
            at = special_at(bytes, at);
            match bytes.get(at) {
                None => return Err(Stop::End),
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(RawString {
                        inner: &self.text[start..at],
                        has_escape,
                    });
                }
                Some(b'\\') => {
                    has_escape = true;
                    at += match bytes.get(at + 1) {
                        None => return Err(Stop::End),
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                        Some(b'u') => match unicode_escape(bytes, at) {
                            UnicodeEscape::Character(length) => length,
                            UnicodeEscape::Cut => return Err(Stop::End),
                            UnicodeEscape::Half | UnicodeEscape::None => return Err(Stop::Fault(at)),
                        },
                        Some(_) => return Err(Stop::Fault(at)),
                    };
                }
                Some(_) => return Err(Stop::Fault(at)),
            }
        }
    }

    /// Scans a number.
    fn number(&mut self) -> Scanned<&'a str> {
        let bytes = self.bytes();
        let start = self.at;
        let mut at = start;
        let digits = |at: &mut usize| {
            let from = *at;
            while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
            *at > from
        };
        if bytes.get(at) == Some(&b'-') {
            at += 1;
        }
        let leading = at;
        let mut is_valid = digits(&mut at);
        is_valid &= bytes.get(leading) != Some(&b'0') || at == leading + 1;
        if is_valid && bytes.get(at) == Some(&b'.') {
            at += 1;
            is_valid = digits(&mut at);
        }
        if is_valid && matches!(bytes.get(at), Some(b'e' | b'E')) {
            at += 1;
            if matches!(bytes.get(at), Some(b'+' | b'-')) {
                at += 1;
            }
            is_valid = digits(&mut at);
        }
        match bytes.get(at) {
            // What follows may still belong to the number.
            None => Err(Stop::End),
            Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t') if is_valid => {
                self.at = at;
                Ok(&self.text[start..at])
            }
            Some(_) => Err(Stop::Fault(at)),
        }
    }

    fn literal(&mut self, word: &str) -> Scanned<()> {
        let rest = &self.bytes()[self.at..];
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else if word.as_bytes().starts_with(rest) {
            Err(Stop::End)
        } else {
            self.fault()
        }
    }

    /// Passes over a value of any kind, without recursion.
    pub(crate) fn skip_value(&mut self) -> Scanned<&'a str> {
        self.skip_space();
        let start = self.at;
        // One bit a level: 1 for an object, 0 for an array.
        let mut levels: u128 = 0;
        let mut depth = 0_u32;
        loop {
            match self.next_byte()? {
                b'"' => {
                    self.string()?;
                }
                open @ (b'{' | b'[') => {
                    if depth == MAX_DEPTH {
                        return Err(Stop::TooDeep);
                    }
                    self.at += 1;
                    let is_object = open == b'{';
                    let close = if is_object { b'}' } else { b']' };
                    if self.next_byte()? == close {
                        self.at += 1;
                    } else {
                        levels = levels << 1 | u128::from(is_object);
                        depth += 1;
                        if is_object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                _ => {
                    self.number()?;
                }
            }
            loop {
                if depth == 0 {
                    return Ok(&self.text[start..self.at]);
                }
                let is_object = levels & 1 == 1;
                match (self.next_byte()?, is_object) {
                    (b',', _) => {
                        self.at += 1;
                        if is_object {
                            self.key()?;
                        }
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        levels >>= 1;
                        depth -= 1;
                    }
                    _ => return self.fault(),
                }
            }
        }
    }

    /// Passes over an object or array however deeply it is nested, counting brackets only; stops where an
    /// element of a trace seems to begin instead.
    pub(super) fn skip_nested(&mut self) -> Scanned<()> {
        let mut depth = 0_usize;
        loop {
            match self.next_byte()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' if depth > 0 && is_between(self.bytes(), self.at) => return self.fault(),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Scans a key and its colon.
    #[inline]
    pub(crate) fn key(&mut self) -> Scanned<&'a str> {
        if self.next_byte()? != b'"' {
            return self.fault();
        }
        let key = self.string()?;
        self.expect(b':')?;
        Ok(key.inner)
    }

    /// Scans a value that should be text; other values are passed over.
    fn text_value(&mut self) -> Scanned<Option<Cow<'a, str>>> {
        match self.next_byte()? {
            b'"' => Ok(Some(self.string()?.decode())),
            b'n' => {
                self.literal("null")?;
                Ok(None)
            }
            _ => self.skip_value().map(|raw| Some(Cow::Borrowed(raw))),
        }
    }

    fn time_value(&mut self) -> Scanned<Time> {
        Ok(match self.next_byte()? {
            b'"' => parse_microseconds(self.string()?.inner.trim()),
            b'-' | b'0'..=b'9' => parse_microseconds(self.number()?),
            _ => {
                self.skip_value()?;
                Time::Invalid
            }
        })
    }

    fn id_value(&mut self) -> Scanned<Scalar<'a>> {
        Ok(match self.next_byte()? {
            b'"' => text_id(self.string()?.decode()),
            b'-' | b'0'..=b'9' => number_id(self.number()?),
            b'n' => {
                self.literal("null")?;
                Scalar::Missing
            }
            _ => Scalar::Text(Cow::Borrowed(self.skip_value()?)),
        })
    }

    /// Scans a value that should be an integer, also one in quotes; other values are passed over.
    #[inline]
    fn int_value(&mut self) -> Scanned<Option<i64>> {
        match self.next_byte()? {
            b'"' => Ok(integer(self.string()?.inner)),
            b'-' | b'0'..=b'9' => Ok(integer(self.number()?)),
            _ => self.skip_value().map(|_| None),
        }
    }

    /// Scans the element that starts here.
    pub(crate) fn event(&mut self) -> Scanned<Event<'a>> {
        let mut event = Event::default();
        self.expect(b'{')?;
        if self.next_byte()? == b'}' {
            self.at += 1;
            return Ok(event);
        }
        let mut keys = 0_u16;
        loop {
            let key = match self.key()? {
                "ph" => {
                    event.phase = self.text_value()?.and_then(|ph| ph.bytes().next()).unwrap_or(0);
                    1
                }
                "name" => {
                    event.name = self.text_value()?;
                    1 << 1
                }
                "cat" => {
                    event.category = self.text_value()?;
                    1 << 2
                }
                "ts" => {
                    event.ts = self.time_value()?;
                    1 << 3
                }
                "dur" => {
                    event.dur = self.time_value()?;
                    1 << 4
                }
                "pid" => {
                    event.pid = self.id_value()?;
                    1 << 5
                }
                "tid" => {
                    event.tid = self.id_value()?;
                    1 << 6
                }
                "id" => {
                    event.id = self.id_value()?;
                    1 << 7
                }
                "args" => {
                    if keys & 1 << 8 != 0 {
                        event.clear_args();
                    }
                    self.args(&mut event)?;
                    1 << 8
                }
                _ => {
                    self.skip_value()?;
                    0
                }
            };
            event.repeats_key |= keys & key != 0;
            keys |= key;
            match self.next_byte()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(event);
                }
                _ => return self.fault(),
            }
        }
    }

    fn args(&mut self, event: &mut Event<'a>) -> Scanned<()> {
        let first = self.next_byte()?;
        let start = self.at;
        if first != b'{' {
            let raw = self.skip_value()?;
            event.args = (raw != "null").then_some(raw);
            return Ok(());
        }
        self.at += 1;
        if self.next_byte()? == b'}' {
            self.at += 1;
            event.args = Some(&self.text[start..self.at]);
            return Ok(());
        }
        let mut keys = 0_u16;
        loop {
            let key = match self.key()? {
                "correlation" => {
                    event.correlation = self.int_value()?;
                    1
                }
                "External id" | "external id" => {
                    event.external_id = self.int_value()?;
                    1 << 1
                }
                "stream" => {
                    event.stream = self.int_value()?;
                    1 << 2
                }
                "device" => {
                    event.device = self.int_value()?;
                    1 << 3
                }
                "bytes" | "Bytes" => {
                    event.bytes = self.int_value()?;
                    1 << 4
                }
                "Sequence number" => {
                    event.sequence_number = self.int_value()?;
                    1 << 5
                }
                "Fwd thread id" => {
                    event.fwd_thread_id = self.int_value()?;
                    1 << 6
                }
                "Input Dims" | "Input dims" => {
                    event.input_dims = Some(self.skip_value()?);
                    1 << 7
                }
                "rank" => {
                    event.args_rank = self.int_value()?;
                    1 << 8
                }
                "Collective name" => {
                    event.has_collective = true;
                    self.skip_value()?;
                    1 << 9
                }
                "graph id" => {
                    event.graph_id = self.int_value()?;
                    1 << 10
                }
                "finished" => {
                    event.finished = Some(self.skip_value()? != "false");
                    1 << 11
                }
                _ => {
                    self.skip_value()?;
                    0
                }
            };
            event.repeats_key |= keys & key != 0;
            keys |= key;
            match self.next_byte()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    event.args = Some(&self.text[start..self.at]);
                    return Ok(());
                }
                _ => return self.fault(),
            }
        }
    }
}
