//! Parsing a run of elements: the unit of work of the reader.

use super::event::Event;
use super::issues::{Issue, Issues, Place};
use super::recover::{boundary_after, repair};
use super::root::find_elements;
use super::scan::{Scanner, Stop};

/// Receives the elements of one block.
pub(crate) trait BlockSink: Send {
    /// Takes up an element. Indices count from the block's start; flow markers have none of their own and
    /// come with that of the element after them. `offset` is where the element begins, in bytes from the
    /// block's start.
    fn event(&mut self, index: u64, offset: u64, event: &Event<'_>);
}

/// A run of elements, cut out of the text somewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockText<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether an element came right before, so that a comma is due.
    pub(crate) is_after_element: bool,
    /// Whether the text was cut where another element seems to start.
    pub(crate) is_cut_between: bool,
    /// Whether no text follows.
    pub(crate) is_last: bool,
}

/// How a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With all of its text read, behind a comma.
    Between,
    /// With all of its text read, behind an element.
    AfterElement,
    /// Within an element, or where only more text can tell.
    Within,
    /// With the array of elements.
    Closed,
    /// Within an element, and no text follows.
    Truncated,
}

/// What a block held.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) end: End,
    /// How many bytes were read; what follows belongs to the next block, or to the root.
    pub(crate) consumed: usize,
    /// Elements that take an index.
    pub(crate) elements: u64,
    /// Elements with a `ph`.
    pub(crate) events: u64,
    pub(crate) issues: Issues,
}

/// How many places that look like an element's end are tried before a damaged element is given up.
const REPAIR_ATTEMPTS: usize = 4;

/// Text made valid UTF-8, with the places where bytes were replaced.
struct Utf8<'a> {
    text: std::borrow::Cow<'a, str>,
    /// Of each replacement: its place in the text, and by how many bytes the text is longer behind it.
    replaced: Vec<(usize, isize)>,
}

impl<'a> Utf8<'a> {
    /// Replaces what is not UTF-8; a character that the end cuts in two is left off.
    fn new(bytes: &'a [u8]) -> Self {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => {
                return Self {
                    text: text.into(),
                    replaced: Vec::new(),
                };
            }
            Err(error) => error,
        };
        if error.error_len().is_none() {
            let text = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            return Self {
                text,
                replaced: Vec::new(),
            };
        }
        let mut text = String::with_capacity(bytes.len() + 64);
        let mut replaced = Vec::new();
        let mut longer = 0_isize;
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let is_cut_character = chunks.peek().is_none()
                && std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
            if !invalid.is_empty() && !is_cut_character {
                longer += 3 - isize::try_from(invalid.len()).unwrap_or(3);
                replaced.push((text.len(), longer));
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        Self {
            text: text.into(),
            replaced,
        }
    }

    /// Returns the place in the bytes of a place in the text.
    fn in_bytes(&self, at: usize) -> usize {
        let before = self.replaced.partition_point(|(place, _)| *place < at);
        let longer = before.checked_sub(1).map_or(0, |last| self.replaced[last].1);
        at.saturating_add_signed(-longer)
    }

    fn is_replaced_within(&self, start: usize, end: usize) -> bool {
        self.replaced
            .get(self.replaced.partition_point(|(at, _)| *at < start))
            .is_some_and(|(at, _)| *at < end)
    }
}

/// Parses a block.
pub(crate) fn parse_block(block: BlockText<'_>, sink: &mut impl BlockSink) -> Parsed {
    let utf8 = Utf8::new(block.bytes);
    let mut parser = Parser {
        block,
        text: &utf8.text,
        utf8: &utf8,
        sink,
        elements: 0,
        events: 0,
        issues: Issues::default(),
    };
    let (end, at) = parser.run();
    Parsed {
        end,
        consumed: utf8.in_bytes(at),
        elements: parser.elements,
        events: parser.events,
        issues: parser.issues,
    }
}

struct Parser<'t, S> {
    block: BlockText<'t>,
    text: &'t str,
    utf8: &'t Utf8<'t>,
    sink: &'t mut S,
    elements: u64,
    events: u64,
    issues: Issues,
}

impl<S: BlockSink> Parser<'_, S> {
    /// Parses elements until the text or the array ends; returns how, and up to where text was used.
    fn run(&mut self) -> (End, usize) {
        let mut scanner = Scanner::new(self.text, 0);
        let mut is_after = self.block.is_after_element;
        loop {
            let Ok(byte) = scanner.next_byte() else {
                return (
                    if is_after { End::AfterElement } else { End::Between },
                    self.text.len(),
                );
            };
            let start = scanner.at();
            match byte {
                b',' if is_after => {
                    scanner.advance();
                    is_after = false;
                    continue;
                }
                b',' => {
                    self.issue(Issue::Comma, start);
                    scanner.advance();
                    continue;
                }
                b']' => {
                    if !is_after && (self.elements > 0 || self.block.is_after_element) {
                        self.issue(Issue::Comma, start);
                    }
                    return (End::Closed, start + 1);
                }
                _ => {}
            }
            if is_after {
                self.issue(Issue::Comma, start);
            }
            let next = if byte == b'{' {
                self.element(&mut scanner)
            } else {
                self.no_object(&mut scanner)
            };
            match next {
                Ok(at) => scanner = Scanner::new(self.text, at),
                Err(end) => return (end, start),
            }
            is_after = true;
        }
    }

    fn issue(&mut self, issue: Issue, at: usize) {
        let offset = self.utf8.in_bytes(at) as u64;
        self.issues.add(
            issue,
            Place {
                offset,
                index: Some(self.elements),
            },
        );
    }

    fn take(&mut self, event: &Event<'_>, start: usize) {
        if event.is_empty() {
            self.issue(Issue::NoEvent, start);
            self.elements += 1;
            return;
        }
        for (is_odd, issue) in [
            (event.name.is_none() && !event.is_flow(), Issue::NoName),
            (event.has_odd_args(), Issue::OddArgs),
            (event.repeats_key, Issue::RepeatedKey),
        ] {
            if is_odd {
                self.issue(issue, start);
            }
        }
        self.events += u64::from(event.phase != 0);
        let offset = self.utf8.in_bytes(start) as u64;
        self.sink.event(self.elements, offset, event);
        if !event.is_flow() {
            self.elements += 1;
        }
    }

    /// Parses the object at the scanner's position; returns the position behind it.
    fn element(&mut self, scanner: &mut Scanner<'_>) -> Result<usize, End> {
        let start = scanner.at();
        match scanner.event() {
            Ok(event) => {
                let end = scanner.at();
                if event.is_empty() {
                    self.holds_second_trace(start, end);
                }
                if !self.utf8.replaced.is_empty() && self.utf8.is_replaced_within(start, end) {
                    self.issue(Issue::InvalidUtf8, start);
                }
                self.take(&event, start);
                Ok(end)
            }
            Err(Stop::End) if !self.block.is_last => Err(End::Within),
            Err(Stop::TooDeep) => self.too_deep(start),
            Err(Stop::End | Stop::Fault(_)) => self.recover(start),
        }
    }

    /// Passes over the element at `start`, which is nested too deeply; returns the position behind it.
    fn too_deep(&mut self, start: usize) -> Result<usize, End> {
        let mut scanner = Scanner::new(self.text, start);
        match scanner.skip_nested() {
            Ok(()) => {
                self.issue(Issue::TooDeep, start);
                self.elements += 1;
                Ok(scanner.at())
            }
            Err(Stop::End) if !self.block.is_last => Err(End::Within),
            Err(_) => self.recover(start),
        }
    }

    /// Passes over an element that is no object.
    fn no_object(&mut self, scanner: &mut Scanner<'_>) -> Result<usize, End> {
        let start = scanner.at();
        match scanner.skip_value() {
            Ok(_) => {
                self.issue(Issue::NoEvent, start);
                self.elements += 1;
                Ok(scanner.at())
            }
            Err(Stop::End) if !self.block.is_last => Err(End::Within),
            Err(Stop::TooDeep) => self.too_deep(start),
            Err(Stop::End | Stop::Fault(_)) => self.recover(start),
        }
    }

    /// Repairs the element at `start`, or passes over it; returns the position behind it.
    fn recover(&mut self, start: usize) -> Result<usize, End> {
        let mut from = start;
        let mut first_end = None;
        for _ in 0..REPAIR_ATTEMPTS {
            let end = boundary_after(self.text, from, self.block.is_cut_between, self.block.is_last);
            let Some(end) = end else {
                if !self.block.is_last {
                    return Err(End::Within);
                }
                break;
            };
            first_end.get_or_insert(end);
            if self.holds_second_trace(start, end) {
                break;
            }
            if self.take_repaired(start, end) {
                return Ok(end);
            }
            from = end;
        }
        let Some(end) = first_end else {
            self.holds_second_trace(start, self.text.len());
            return Err(End::Truncated);
        };
        self.issue(Issue::Unreadable, start);
        self.elements += 1;
        Ok(end)
    }

    /// Notes it when the head of another trace is in an element that is damaged or no event: two processes that write to one
    /// file overwrite each other's elements block by block, and one whose writer was killed may have been
    /// written on to. What can be made out then belongs to either.
    fn holds_second_trace(&mut self, start: usize, end: usize) -> bool {
        let is_there = find_elements(&self.text[start..end]).is_some();
        if is_there {
            self.issue(Issue::SecondTrace, start);
        }
        is_there
    }

    fn take_repaired(&mut self, start: usize, end: usize) -> bool {
        let Some(repaired) = repair(&self.text[start..end]) else {
            return false;
        };
        let Ok(event) = Scanner::new(&repaired.text, 0).event() else {
            return false;
        };
        for (is_wrong, issue) in [
            (repaired.wrong.strings, Issue::UnescapedString),
            (repaired.wrong.values, Issue::InvalidValue),
            (repaired.wrong.commas, Issue::Comma),
            (
                repaired.wrong.characters || self.utf8.is_replaced_within(start, end),
                Issue::InvalidUtf8,
            ),
        ] {
            if is_wrong {
                self.issue(issue, start);
            }
        }
        self.take(&event, start);
        true
    }
}
