//! Text that cannot steer a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns whether a character steers a terminal or the direction of text instead of showing something:
/// C0, DEL, C1, line and paragraph separators, directional marks, embeddings, overrides and isolates, the
/// byte order mark.
pub(super) fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Returns a text in which steering characters are written out: `\n`, `\x1b`, `\u{202e}`.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_steering) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str(r"\n"),
            '\r' => shown.push_str(r"\r"),
            '\t' => shown.push_str(r"\t"),
            // Writing into a string cannot fail.
            c if is_steering(c) && u32::from(c) < 0x100 => {
                let _ = write!(shown, r"\x{:02x}", u32::from(c));
            }
            c if is_steering(c) => {
                let _ = write!(shown, r"\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn steering_characters_are_written_out() {
        assert_eq!(visible("a\nb\tc"), r"a\nb\tc");
        assert_eq!(visible("\u{1b}[31mred\u{9b}0m\u{7f}"), r"\x1b[31mred\x9b0m\x7f");
        assert_eq!(visible("\u{202e}gpj.exe\u{2069}"), r"\u{202e}gpj.exe\u{2069}");
        assert_eq!(
            visible("void at::kernel<float>(µs, 漢字)"),
            "void at::kernel<float>(µs, 漢字)"
        );
    }

    proptest! {
        #[test]
        fn no_steering_character_remains(text in any::<String>()) {
            prop_assert!(!visible(&text).contains(is_steering));
        }
    }
}
