//! Damage done to traces: seeded, so that each mutant can be made again.

use std::ops::Range;

use veloq_tracegen::Rng;

/// A way to damage a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Everything from some byte on is gone.
    Cut,
    /// Bits are flipped, up to 64 of them.
    FlipBits,
    /// A run of bytes has other values.
    Overwrite,
    /// A run of bytes is gone.
    Delete,
    /// A run of bytes stands there twice.
    Duplicate,
    /// The beginning of one file, then the end of another.
    Splice,
    /// Whole elements stand in another order.
    ReorderElements,
    /// Whole elements stand there twice, or again elsewhere.
    RepeatElements,
    /// Whole elements of another trace stand among those of the trace.
    MixElements,
    /// Numbers have values that no profiler writes.
    OddNumbers,
}

impl Kind {
    /// What can be done to any bytes.
    pub(crate) const OF_BYTES: [Self; 6] = [
        Self::Cut,
        Self::FlipBits,
        Self::Overwrite,
        Self::Delete,
        Self::Duplicate,
        Self::Splice,
    ];
    /// What can be done to the text of a trace.
    pub(crate) const OF_TEXT: [Self; 10] = [
        Self::Cut,
        Self::FlipBits,
        Self::Overwrite,
        Self::Delete,
        Self::Duplicate,
        Self::Splice,
        Self::ReorderElements,
        Self::RepeatElements,
        Self::MixElements,
        Self::OddNumbers,
    ];
}

/// The text of a trace, and where its elements are.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) bytes: Vec<u8>,
    pub(crate) elements: Vec<Range<usize>>,
}

impl Text {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let elements = elements(&bytes);
        Self { bytes, elements }
    }

    /// Returns the text with the elements of the given stretches alone.
    pub(crate) fn slice(&self, stretches: &[Range<usize>]) -> Self {
        let kept: Vec<&[u8]> = stretches
            .iter()
            .flat_map(|stretch| self.elements[stretch.clone()].iter())
            .map(|element| &self.bytes[element.clone()])
            .collect();
        Self::new(self.with_elements(&kept))
    }

    /// Returns the text with other elements in place of its own.
    fn with_elements(&self, elements: &[&[u8]]) -> Vec<u8> {
        let (Some(first), Some(last)) = (self.elements.first(), self.elements.last()) else {
            return self.bytes.clone();
        };
        let (head, tail) = (&self.bytes[..first.start], &self.bytes[last.end..]);
        [head, &elements.join(&b",\n"[..]), tail].concat()
    }

    fn parts(&self) -> Vec<&[u8]> {
        let part = |element: &Range<usize>| &self.bytes[element.clone()];
        self.elements.iter().map(part).collect()
    }

    /// Returns the text, damaged; `other` is what a piece of another trace is taken from.
    pub(crate) fn damaged(&self, kind: Kind, other: &Self, rng: &mut Rng) -> Vec<u8> {
        let mut parts = self.parts();
        match kind {
            Kind::ReorderElements => {
                let mut stretch = stretch(parts.len(), rng);
                match below(3, rng) {
                    0 => parts[stretch].reverse(),
                    1 => {
                        let middle = below(stretch.len(), rng);
                        parts[stretch].rotate_left(middle);
                    }
                    _ => {
                        while let Some(at) = stretch.next_back() {
                            parts.swap(at, below(at + 1, rng));
                        }
                    }
                }
            }
            Kind::RepeatElements => {
                let repeated = parts[stretch(parts.len(), rng)].to_vec();
                let at = below(parts.len() + 1, rng);
                parts.splice(at..at, repeated);
            }
            Kind::MixElements => {
                let others = other.parts();
                let at = below(parts.len() + 1, rng);
                parts.splice(at..at, others[stretch(others.len(), rng)].iter().copied());
            }
            Kind::OddNumbers => return odd_numbers(&self.bytes, rng),
            _ => return damaged_bytes(&self.bytes, kind, &other.bytes, rng),
        }
        self.with_elements(&parts)
    }
}

/// Returns bytes, damaged; `other` is what a piece of another file is taken from.
pub(crate) fn damaged_bytes(bytes: &[u8], kind: Kind, other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match kind {
        Kind::Cut => bytes.truncate(below(bytes.len(), rng)),
        Kind::FlipBits => {
            for _ in 0..(1 << below(7, rng)) {
                let at = below(bytes.len(), rng);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << below(8, rng);
                }
            }
        }
        Kind::Overwrite => {
            let run = stretch(bytes.len(), rng);
            let fill = rng.next().to_le_bytes()[0];
            let is_noise = below(2, rng) == 0;
            for byte in &mut bytes[run] {
                *byte = if is_noise {
                    rng.next().to_le_bytes()[0]
                } else {
                    fill
                };
            }
        }
        Kind::Delete => {
            bytes.drain(stretch(bytes.len(), rng));
        }
        Kind::Duplicate => {
            let run = stretch(bytes.len(), rng);
            let (end, twin) = (run.end, bytes[run].to_vec());
            bytes.splice(end..end, twin);
        }
        Kind::Splice => {
            bytes.truncate(below(bytes.len(), rng));
            bytes.extend_from_slice(&other[below(other.len(), rng)..]);
        }
        Kind::ReorderElements | Kind::RepeatElements | Kind::MixElements | Kind::OddNumbers => {
            unreachable!("{kind:?} needs the text of a trace")
        }
    }
    bytes
}

/// Values in place of a number: beyond what integers, times and ids hold, or of another type.
const ODD: [&str; 24] = [
    "0",
    "-0",
    "-1",
    "1e308",
    "-1e308",
    "1e-400",
    "1e999999999999",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775.807",
    "-9223372036854775.808",
    "9007199254740993",
    "0.0000000000000000000000000001",
    "NaN",
    "-Infinity",
    "null",
    "true",
    "\"7\"",
    "[1]",
    "{\"a\":1}",
];

/// Returns the text with up to 32 of its numbers replaced.
fn odd_numbers(text: &[u8], rng: &mut Rng) -> Vec<u8> {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let mut bytes = text.to_vec();
    for _ in 0..(1 << below(6, rng)) {
        let from = below(bytes.len(), rng);
        // Numbers outside strings stand behind a colon, a comma or a bracket.
        let Some(start) = (from.max(2)..bytes.len())
            .find(|&at| bytes[at].is_ascii_digit() && matches!(bytes[at - 1], b':' | b',' | b'[' | b' '))
        else {
            continue;
        };
        let length = bytes[start..].iter().take_while(|byte| is_part(**byte)).count();
        bytes.splice(start..start + length, ODD[below(ODD.len(), rng)].bytes());
    }
    bytes
}

/// Returns a number below a bound; 0 when the bound is.
pub(crate) fn below(bound: usize, rng: &mut Rng) -> usize {
    let bound = i64::try_from(bound).expect("a length fits");
    usize::try_from(rng.between(0, bound - 1)).expect("it is not negative")
}

/// Returns a part of so many things: short ones are as likely as long ones.
fn stretch(count: usize, rng: &mut Rng) -> Range<usize> {
    let bits = usize::BITS - count.leading_zeros();
    let longest = 1_usize << below(bits as usize + 1, rng);
    let start = below(count, rng);
    let length = 1 + below(longest, rng);
    start..(start + length).min(count)
}

/// Returns where the elements of a trace are: the objects in the array of `traceEvents`, or in the root when that
/// is an array. Where the text is no such thing, what looks like elements.
fn elements(text: &[u8]) -> Vec<Range<usize>> {
    let key = b"\"traceEvents\"";
    let first = text.iter().position(|byte| b"[{".contains(byte)).unwrap_or(0);
    let array = match text.get(first) {
        Some(b'[') => Some(first),
        _ => text
            .windows(key.len())
            .position(|window| window == key)
            .and_then(|at| Some(at + text[at..].iter().position(|byte| *byte == b'[')?)),
    };
    let mut found = Vec::new();
    let (mut depth, mut is_string, mut is_escaped, mut start) = (0_usize, false, false, 0);
    let from = array.map_or(text.len(), |array| array + 1);
    for (at, byte) in text.iter().enumerate().skip(from) {
        match (is_string, *byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => is_string = !is_string,
            (true, _) => {}
            (false, b'{' | b'[') => {
                if depth == 0 {
                    start = at;
                }
                depth += 1;
            }
            (false, b'}' | b']') => {
                if depth == 0 {
                    break;
                }
                depth -= 1;
                if depth == 0 {
                    found.push(start..at + 1);
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Text {
        let text = br#"{"a": [1], "traceEvents": [{"ph": "X", "name": "[{\"", "ts": 1}, {"ts": 2.5, "args": {"l": [3]}},
            {"ts": 9}], "b": [{}]}"#;
        Text::new(text.to_vec())
    }

    #[test]
    fn elements_are_the_objects_of_the_array() {
        let text = text();
        let names: Vec<usize> = text.parts().iter().map(|part| part.len()).collect();
        assert_eq!(names, [36, 31, 9]);
        assert_eq!(text.slice(&[0..1, 2..3]).elements.len(), 2);
        assert_eq!(Text::new(b"[{\"ts\": 1}, {}]".to_vec()).elements.len(), 2);
        assert_eq!(Text::new(Vec::new()).elements.len(), 0);
    }

    #[test]
    fn every_kind_damages_and_can_be_done_again() {
        let text = text();
        for kind in Kind::OF_TEXT {
            let mutant = |seed| text.damaged(kind, &text, &mut Rng::new(seed));
            assert!(
                (0..20).any(|seed| mutant(seed) != text.bytes),
                "{kind:?} changes nothing"
            );
            assert!(
                (0..20).all(|seed| mutant(seed) == mutant(seed)),
                "{kind:?} is not seeded"
            );
        }
    }

    #[test]
    fn nothing_can_be_damaged_too() {
        let nothing = Text::new(Vec::new());
        for kind in Kind::OF_TEXT {
            for seed in 0..20 {
                nothing.damaged(kind, &nothing, &mut Rng::new(seed));
            }
        }
    }
}
