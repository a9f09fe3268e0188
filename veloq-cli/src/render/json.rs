//! json: the whole answer, on one line or indented.
//!
//! The bytes are valid JSON in which DEL, C1 and directional characters inside strings are written as
//! `\u` escapes (C0 always is): a parser reads the same text, a terminal sees nothing to obey. Fragments
//! that verbs pass on as they were in the trace lose their white space, so that the answer stays on a line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

use super::escape::is_steering;
use crate::output::{Ended, ended_by_io, ended_by_json};

/// Writes a value and a newline.
pub(crate) fn write(value: &impl Serialize, is_indented: bool, out: &mut dyn Write) -> Result<(), Ended> {
    let written = if is_indented {
        value.serialize(&mut Serializer::with_formatter(
            &mut *out,
            Tame(PrettyFormatter::new()),
        ))
    } else {
        value.serialize(&mut Serializer::with_formatter(&mut *out, Tame(CompactFormatter)))
    };
    written.map_err(ended_by_json)?;
    out.write_all(b"\n").map_err(ended_by_io)
}

/// A formatter whose strings hold no steering characters.
struct Tame<F>(F);

macro_rules! delegate {
    ($($method:ident($($arg:ident: $kind:ty),*);)*) => {$(
        fn $method<W: ?Sized + Write>(&mut self, writer: &mut W $(, $arg: $kind)*) -> io::Result<()> {
            self.0.$method(writer $(, $arg)*)
        }
    )*};
}

impl<F: Formatter> Formatter for Tame<F> {
    delegate! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        write_tame(writer, fragment)
    }

    fn write_raw_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let (mut is_in_string, mut is_escaped) = (false, false);
        let mut kept = String::with_capacity(fragment.len());
        for c in fragment.chars() {
            match c {
                ' ' | '\t' | '\n' | '\r' if !is_in_string => continue,
                '"' if !is_escaped => is_in_string = !is_in_string,
                _ => {}
            }
            is_escaped = is_in_string && c == '\\' && !is_escaped;
            kept.push(c);
        }
        write_tame(writer, &kept)
    }
}

/// Writes a piece of JSON text; steering characters can only stand inside its strings.
fn write_tame<W: ?Sized + Write>(writer: &mut W, fragment: &str) -> io::Result<()> {
    let mut rest = fragment;
    while let Some(at) = rest.find(is_steering) {
        let (before, from) = rest.split_at(at);
        writer.write_all(before.as_bytes())?;
        let mut chars = from.chars();
        if let Some(c) = chars.next() {
            // All steering characters lie in the basic plane: one escape each.
            write!(writer, "\\u{:04x}", u32::from(c))?;
        }
        rest = chars.as_str();
    }
    writer.write_all(rest.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    fn compact(value: &impl Serialize) -> String {
        let mut out = Vec::new();
        write(value, false, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn steering_characters_are_escapes() {
        assert_eq!(
            compact(&"a\u{9b}31m\u{202e}\u{7f}\n"),
            "\"a\\u009b31m\\u202e\\u007f\\n\"\n"
        );
    }

    #[test]
    fn raw_fragments_lose_their_white_space_and_nothing_else() {
        let raw = RawValue::from_string(
            "{ \"a b\" : [1.50,\n\t9007199254740993 ], \"q\\\" \\\\\" : \" \u{85}\" }".into(),
        );
        assert_eq!(
            compact(&raw.unwrap()),
            "{\"a b\":[1.50,9007199254740993],\"q\\\" \\\\\":\" \\u0085\"}\n"
        );
    }

    proptest! {
        #[test]
        fn any_text_reads_back_as_it_was(text in any::<String>()) {
            let written = compact(&text);
            prop_assert!(!written.trim_end().contains(is_steering));
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        }
    }
}
