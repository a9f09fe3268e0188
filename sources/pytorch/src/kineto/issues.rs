//! What was wrong with a trace's text and could be got over: named, counted, located.

/// One kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Issue {
    /// Quotes, control bytes or backslashes stood unescaped in a string.
    UnescapedString,
    /// Bytes that are not UTF-8, or half a surrogate pair; replaced by U+FFFD.
    InvalidUtf8,
    /// `NaN`, `inf`, `N/A` or nothing in place of a value.
    InvalidValue,
    /// A comma too many or too few.
    Comma,
    /// An event without a name.
    NoName,
    /// Args that are no object.
    OddArgs,
    /// A key given twice in one event; the last one counts.
    RepeatedKey,
    /// An element that could not be made out.
    Unreadable,
    /// An element that is no object, or an object without anything of an event.
    NoEvent,
    /// An element that is nested deeper than any event.
    TooDeep,
    /// An element larger than is ever kept in memory.
    Oversized,
    /// Another trace begins within an element: the text of two writers is mixed up.
    SecondTrace,
    /// The root's keys are damaged; those behind the damage are not known.
    Header,
    /// Compressed data that does not match its checksum, or that ends too early.
    Compression,
    /// Something follows the end of the trace.
    Foreign,
}

impl Issue {
    /// Returns whether the element is kept, its text put right.
    fn is_repaired(self) -> bool {
        matches!(
            self,
            Self::UnescapedString | Self::InvalidUtf8 | Self::InvalidValue | Self::Comma
        )
    }

    /// Returns whether the element is kept, as it is or put right.
    pub(crate) fn is_kept(self) -> bool {
        self.is_repaired() || matches!(self, Self::NoName | Self::OddArgs | Self::RepeatedKey)
    }

    /// Returns whether it is a matter of elements, and not of what is around them.
    fn is_of_elements(self) -> bool {
        !matches!(self, Self::Header | Self::Compression | Self::Foreign)
    }

    /// Returns what is wrong, in words.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::UnescapedString => "unescaped characters in strings",
            Self::InvalidUtf8 => "bytes that are not UTF-8, or half a surrogate pair",
            Self::InvalidValue => "values that are not JSON (NaN, inf, N/A)",
            Self::Comma => "commas too many or too few",
            Self::NoName => "events without a name",
            Self::OddArgs => "args that are no object",
            Self::RepeatedKey => "keys given twice, of which the last one counts",
            Self::Unreadable => "damaged beyond repair",
            Self::NoEvent => "no events",
            Self::Oversized => "larger than any event",
            Self::TooDeep => "nested deeper than any event",
            Self::SecondTrace => "another trace begins in it",
            Self::Header => "damaged keys beside the events",
            Self::Compression => "the compressed data does not match its checksum, or ends too early",
            Self::Foreign => "data behind the end of the trace",
        }
    }
}

/// Where a damage was seen first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Byte offset in the unpacked text.
    pub(crate) offset: u64,
    /// Index of the element, where it is in one.
    pub(crate) index: Option<u64>,
}

/// A kind of damage, how often it was seen, and where: the first place and up to three indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) issue: Issue,
    pub(crate) count: u64,
    pub(crate) first: Place,
    pub(crate) indices: Vec<u64>,
}

impl Seen {
    /// Returns what was done about it, as a sentence.
    pub(crate) fn detail(&self) -> String {
        let (count, what) = (self.count, self.issue.description());
        if !self.issue.is_of_elements() {
            return match self.issue {
                Issue::Compression => format!("Any part of the text may be damaged: {what}."),
                _ => format!("Passed over: {what}."),
            };
        }
        let deed = if self.issue.is_repaired() {
            "repaired"
        } else if self.issue.is_kept() {
            "kept as they are"
        } else {
            "passed over"
        };
        let indices: Vec<String> = self.indices.iter().map(u64::to_string).collect();
        let dots = if count > indices.len() as u64 { ", …" } else { "" };
        format!(
            "{count} elements were {deed}: {what} (at index {}{dots}).",
            indices.join(", ")
        )
    }
}

/// All damage of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Issues(Vec<Seen>);

impl Issues {
    /// Counts a damage.
    pub(crate) fn add(&mut self, issue: Issue, place: Place) {
        self.append_seen(Seen {
            issue,
            count: 1,
            first: place,
            indices: place.index.into_iter().collect(),
        });
    }

    /// Takes over what a later block saw; its places are moved by the block's own.
    pub(crate) fn append(&mut self, later: Self, offset: u64, first_index: u64) {
        for mut seen in later.0 {
            seen.first.offset += offset;
            seen.first.index = seen.first.index.map(|index| index + first_index);
            for index in &mut seen.indices {
                *index += first_index;
            }
            self.append_seen(seen);
        }
    }

    fn append_seen(&mut self, seen: Seen) {
        match self.0.iter_mut().find(|known| known.issue == seen.issue) {
            Some(known) => {
                known.count += seen.count;
                let room = 3_usize.saturating_sub(known.indices.len());
                known.indices.extend(seen.indices.into_iter().take(room));
            }
            None => {
                self.0.push(seen);
                self.0.sort_by_key(|seen| seen.issue);
            }
        }
    }

    /// Returns all kinds of damage seen.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Seen> {
        self.0.iter()
    }

    /// Returns the damage that comes first in the text.
    pub(crate) fn first(&self) -> Option<&Seen> {
        self.0.iter().min_by_key(|seen| seen.first.offset)
    }

    /// Returns where damage of a kind was seen first.
    pub(crate) fn place_of(&self, issue: Issue) -> Option<Place> {
        self.0
            .iter()
            .find(|seen| seen.issue == issue)
            .map(|seen| seen.first)
    }

    /// Returns how many elements were passed over as damaged beyond repair.
    pub(crate) fn unreadable(&self) -> u64 {
        self.0
            .iter()
            .filter(|seen| seen.issue == Issue::Unreadable)
            .map(|seen| seen.count)
            .sum()
    }
}
