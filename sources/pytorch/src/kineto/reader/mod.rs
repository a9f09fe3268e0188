//! Reading a trace: a stream of text into blocks of elements, parsed by several threads, taken up in order.
//!
//! One thread unpacks the text and cuts it where an element *seems* to end and another to start. Workers
//! parse each piece as if that were so. The caller's thread takes the pieces in order and checks it: a
//! piece counts as parsed only if the one before was used up to its last byte and ended behind a comma.
//! Otherwise what was left over is joined with the piece and parsed again. So neither the guesses nor the
//! number of threads can change the result; see the tests.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use veloq_core::{Interrupt, ProgressSink};

use crate::open::{Ending, TextReader};

use super::block::{BlockSink, BlockText, End, Parsed, parse_block};
use super::error::ReadError;
use super::issues::{Issue, Issues, Place};
use super::recover::{boundary_after, last_cut};
use super::root::{Head, LookAlike, RootKeys, parse_head, parse_tail};

/// Text in a block. Large enough that cutting costs nothing, small enough that a few fit a cache.
const BLOCK_BYTES: usize = 1 << 20;

/// Blocks that wait between two threads.
const WAITING: usize = 4;

/// An element beyond this size is passed over; one that is complete in a block or two more may be kept.
const MAX_ELEMENT_BYTES: usize = 64 << 20;

/// Compressed data may hold this many rows whatever its size: they take less than half a gigabyte.
const PACKED_ROWS_FLOOR: u64 = 8 << 20;

/// Beyond [`PACKED_ROWS_FLOOR`], compressed data may hold one row in so many bytes. Rows of real traces take 15
/// to 30.
const PACKED_ROW_BYTES: u64 = 4;

/// Keys before or behind the elements beyond this size are not kept.
const MAX_ROOT_BYTES: usize = 64 << 20;

/// Where a block begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct First {
    /// The index of its first element.
    pub(crate) index: u64,
    /// Its place in the unpacked text, in bytes.
    pub(crate) offset: u64,
}

/// Makes sinks for blocks, and takes them up in file order.
pub(crate) trait Collector {
    type Block: BlockSink;

    /// Returns an empty block; called on worker threads.
    fn block() -> Self::Block;

    /// Takes up a block that begins there.
    ///
    /// # Errors
    /// When there are more elements than can be numbered.
    fn absorb(&mut self, block: Self::Block, first: First) -> Result<(), ReadError>;

    /// Returns how many rows were taken up so far: what memory is used for.
    fn rows(&self) -> u64;
}

/// How to read.
#[derive(Clone, Copy)]
pub(crate) struct ReadOptions<'p> {
    /// Threads that parse, besides the one that unpacks.
    pub(crate) workers: usize,
    pub(crate) block_bytes: usize,
    pub(crate) progress: Option<&'p dyn ProgressSink>,
    pub(crate) interrupt: Option<&'p Interrupt>,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        Self {
            workers: 2,
            block_bytes: BLOCK_BYTES,
            progress: None,
            interrupt: None,
        }
    }
}

/// What a text held beside its elements.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) keys: RootKeys,
    /// Where the text ends too early, if it does: behind the last whole element, with the index of the one
    /// that is missing; or among the keys behind the elements.
    pub(crate) truncated_at: Option<Place>,
    pub(crate) issues: Issues,
    pub(crate) is_compressed: bool,
    pub(crate) text_bytes: u64,
}

/// A piece of the text on its way to a worker.
struct Piece {
    number: u64,
    text: Vec<u8>,
    is_cut_between: bool,
    is_last: bool,
}

/// A piece with what its worker found.
struct Worked<B> {
    piece: Piece,
    block: B,
    parsed: Parsed,
}

/// Reads a trace.
///
/// # Errors
/// When the file cannot be read, is no trace, or is damaged beyond use.
pub(crate) fn read<C: Collector>(
    path: &Path,
    options: ReadOptions<'_>,
    collector: &mut C,
) -> Result<Document, ReadError> {
    let io_error = |source| ReadError::Io {
        path: path.to_owned(),
        source,
    };
    let mut reader = TextReader::open(path, options.progress).map_err(io_error)?;
    let opened = read_head(path, &mut reader)?;
    let is_compressed = reader.is_compressed();
    let row_limit = if is_compressed {
        PACKED_ROWS_FLOOR.max(reader.stored_bytes() / PACKED_ROW_BYTES)
    } else {
        u64::MAX
    };
    let mut merger = Merger::new(collector, &opened, row_limit);
    let (pieces, piece_queue) = sync_channel::<Piece>(WAITING);
    let (results, result_queue) = sync_channel::<Worked<C::Block>>(WAITING);
    // Held by the workers alone: when they have gone, nobody waits for more pieces, and the feeder ends too.
    let piece_queue = Arc::new(Mutex::new(piece_queue));
    let (fed, merged) = thread::scope(|scope| {
        let feeder = scope.spawn(|| feed(reader, opened.rest, opened.has_ended, options.block_bytes, pieces));
        for _ in 0..options.workers.max(1) {
            let (piece_queue, results) = (Arc::clone(&piece_queue), results.clone());
            scope.spawn(move || work::<C>(&piece_queue, &results));
        }
        drop((piece_queue, results));
        let merged = merger.run(&result_queue, options.interrupt);
        drop(result_queue);
        let fed = feeder
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (fed, merged)
    });
    // A merger that stopped early closes the queues, so its error comes first.
    merged?;
    let (ending, text_bytes) = fed.map_err(io_error)?;
    merger.finish(
        path,
        ending,
        is_compressed,
        opened.head_bytes + text_bytes,
        opened.keys,
        opened.is_damaged,
    )
}

/// The beginning of a text, up to its elements.
struct Opened {
    keys: RootKeys,
    is_bare_array: bool,
    is_damaged: bool,
    /// Text that was read behind the beginning.
    rest: Vec<u8>,
    has_ended: bool,
    /// Bytes before the elements.
    head_bytes: u64,
}

fn read_head(path: &Path, reader: &mut TextReader<'_>) -> Result<Opened, ReadError> {
    let mut text = Vec::new();
    loop {
        let more = text.len().max(64 * 1024);
        let has_ended = reader
            .append_to(&mut text, more)
            .map_err(|source| ReadError::Io {
                path: path.to_owned(),
                source,
            })?;
        if text.is_empty() {
            let path = path.to_owned();
            return Err(if reader.ending().is_cut {
                ReadError::NothingUnpacked { path }
            } else {
                ReadError::Empty { path }
            });
        }
        let other = |what| {
            Err(ReadError::NotATrace {
                path: path.to_owned(),
                what,
            })
        };
        match text.as_slice() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return other(LookAlike::Utf16),
            [b'[' | b'{', 0, ..] | [0, b'[' | b'{', ..] => return other(LookAlike::Utf16),
            [0x80, 2..=5, ..] | [b'P', b'K', 3, 4, ..] => return other(LookAlike::Pickle),
            _ => {}
        }
        let mark = if text.starts_with(&[0xef, 0xbb, 0xbf]) {
            3
        } else {
            0
        };
        // Replacing bytes one for one keeps positions; keys are read from text that mostly is UTF-8.
        let lossy = ascii_where_invalid(&text[mark..]);
        match parse_head(&lossy, has_ended) {
            Head::Elements {
                at,
                is_bare_array,
                keys,
                is_damaged,
            } => {
                let rest = text.split_off(mark + at);
                let head_bytes = (mark + at) as u64;
                return Ok(Opened {
                    keys,
                    is_bare_array,
                    is_damaged,
                    rest,
                    has_ended,
                    head_bytes,
                });
            }
            Head::Other(what) => return other(what),
            Head::NeedsMore if text.len() > MAX_ROOT_BYTES => {
                return Err(ReadError::HeadTooLarge {
                    limit_bytes: MAX_ROOT_BYTES,
                });
            }
            Head::NeedsMore => {}
        }
    }
}

/// Returns the text with every byte that is not UTF-8 replaced by `?`.
fn ascii_where_invalid(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(std::iter::repeat_n('?', chunk.invalid().len()));
    }
    text
}

/// Unpacks text and cuts it into pieces; returns how it ended, and its length.
fn feed(
    mut reader: TextReader<'_>,
    mut text: Vec<u8>,
    mut has_ended: bool,
    block_bytes: usize,
    pieces: SyncSender<Piece>,
) -> io::Result<(Ending, u64)> {
    let mut text_bytes = 0;
    for number in 0.. {
        while !has_ended && text.len() < block_bytes {
            let missing = block_bytes - text.len();
            has_ended = reader.append_to(&mut text, missing)?;
        }
        let cut = if has_ended && text.len() <= block_bytes {
            None
        } else {
            last_cut(&text).filter(|cut| *cut > 0)
        };
        let is_last = has_ended && cut.is_none();
        let mut rest = Vec::with_capacity(block_bytes);
        if let Some(cut) = cut {
            rest.extend_from_slice(&text[cut..]);
            text.truncate(cut);
        }
        text_bytes += text.len() as u64;
        let piece = Piece {
            number,
            text,
            is_cut_between: cut.is_some(),
            is_last,
        };
        if pieces.send(piece).is_err() || is_last {
            break;
        }
        text = rest;
    }
    Ok((reader.ending(), text_bytes))
}

/// Parses pieces until there are no more.
fn work<C: Collector>(pieces: &Mutex<Receiver<Piece>>, results: &SyncSender<Worked<C::Block>>) {
    loop {
        let piece = pieces.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(piece) = piece else { return };
        let mut block = C::block();
        let text = BlockText {
            bytes: &piece.text,
            is_after_element: false,
            is_cut_between: piece.is_cut_between,
            is_last: piece.is_last,
        };
        let parsed = parse_block(text, &mut block);
        if results.send(Worked { piece, block, parsed }).is_err() {
            return;
        }
    }
}

/// Takes pieces in order and joins what the guesses tore apart.
struct Merger<'c, C> {
    collector: &'c mut C,
    row_limit: u64,
    is_bare_array: bool,
    /// Text that was left over, and where it starts in the whole text.
    carry: Vec<u8>,
    carry_offset: u64,
    /// How long the carry must be before it is worth parsing again.
    carry_wanted: usize,
    is_after_element: bool,
    /// Whether the rest of an oversized element is being passed over.
    is_skipping: bool,
    index: u64,
    elements: u64,
    events: u64,
    issues: Issues,
    truncated_at: Option<Place>,
    /// Text behind the elements, once they have ended.
    tail: Option<Vec<u8>>,
    is_tail_cut: bool,
}

impl<'c, C: Collector> Merger<'c, C> {
    fn new(collector: &'c mut C, opened: &Opened, row_limit: u64) -> Self {
        Self {
            collector,
            row_limit,
            is_bare_array: opened.is_bare_array,
            carry: Vec::new(),
            carry_offset: opened.head_bytes,
            carry_wanted: 0,
            is_after_element: false,
            is_skipping: false,
            index: 0,
            elements: 0,
            events: 0,
            issues: Issues::default(),
            truncated_at: None,
            tail: None,
            is_tail_cut: false,
        }
    }

    fn run(
        &mut self,
        results: &Receiver<Worked<C::Block>>,
        interrupt: Option<&Interrupt>,
    ) -> Result<(), ReadError> {
        let mut early: BTreeMap<u64, Worked<C::Block>> = BTreeMap::new();
        let mut next = 0;
        while let Ok(worked) = results.recv() {
            early.insert(worked.piece.number, worked);
            while let Some(worked) = early.remove(&next) {
                if interrupt.is_some_and(Interrupt::is_requested) {
                    return Err(ReadError::Interrupted);
                }
                next += 1;
                self.take(worked)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, worked: Worked<C::Block>) -> Result<(), ReadError> {
        let Worked { piece, block, parsed } = worked;
        if let Some(tail) = &mut self.tail {
            append_bounded(tail, &piece.text, &mut self.is_tail_cut);
            return Ok(());
        }
        if self.is_skipping {
            return self.skip(piece);
        }
        if self.carry.is_empty() && !self.is_after_element {
            return self.accept(piece.text, block, parsed, piece.is_cut_between);
        }
        self.carry.extend_from_slice(&piece.text);
        self.parse_carry(piece.is_cut_between, piece.is_last)
    }

    /// Parses the carry, unless it has grown too little since the last time.
    fn parse_carry(&mut self, is_cut_between: bool, is_last: bool) -> Result<(), ReadError> {
        if self.carry.len() < self.carry_wanted && !is_last {
            return Ok(());
        }
        let text = std::mem::take(&mut self.carry);
        let mut block = C::block();
        let is_after_element = self.is_after_element;
        let parsed = parse_block(
            BlockText {
                bytes: &text,
                is_after_element,
                is_cut_between,
                is_last,
            },
            &mut block,
        );
        self.accept(text, block, parsed, is_cut_between)
    }

    fn accept(
        &mut self,
        mut text: Vec<u8>,
        block: C::Block,
        parsed: Parsed,
        is_cut_between: bool,
    ) -> Result<(), ReadError> {
        let Parsed {
            end,
            consumed,
            elements,
            events,
            issues,
        } = parsed;
        let first = First {
            index: self.index,
            offset: self.carry_offset,
        };
        self.collector.absorb(block, first)?;
        if self.collector.rows() > self.row_limit {
            return Err(ReadError::TooDense {
                limit: self.row_limit,
            });
        }
        self.issues.append(issues, self.carry_offset, self.index);
        self.index += elements;
        self.elements += elements;
        self.events += events;
        self.carry_offset += consumed as u64;
        text.drain(..consumed);
        if elements > 0 || end == End::Between || end == End::AfterElement {
            self.is_after_element = end == End::AfterElement;
        }
        match end {
            End::Between | End::AfterElement => {}
            End::Closed => self.tail = Some(text),
            End::Truncated => self.truncated_at = Some(self.here()),
            End::Within => {
                // What stands before the unfinished element was a comma, or nothing.
                self.is_after_element = false;
                self.carry_wanted = text.len().saturating_mul(2).min(MAX_ELEMENT_BYTES);
                self.carry = text;
                if self.carry.len() > MAX_ELEMENT_BYTES {
                    self.begin_skipping(is_cut_between);
                }
            }
        }
        Ok(())
    }

    /// The place that was reached.
    fn here(&self) -> Place {
        Place {
            offset: self.carry_offset,
            index: Some(self.index),
        }
    }

    /// Gives the element in the carry up.
    fn begin_skipping(&mut self, is_cut_between: bool) {
        self.issues.add(Issue::Oversized, self.here());
        self.index += 1;
        self.elements += 1;
        self.carry_offset += self.carry.len() as u64;
        self.carry = Vec::new();
        self.carry_wanted = 0;
        self.is_skipping = !is_cut_between;
    }

    /// Looks for the end of an oversized element in a piece.
    fn skip(&mut self, piece: Piece) -> Result<(), ReadError> {
        let text = ascii_where_invalid(&piece.text);
        match boundary_after(&text, 0, piece.is_cut_between, piece.is_last) {
            Some(end) => {
                self.carry_offset += end as u64;
                self.carry = piece.text[end..].to_vec();
                self.is_after_element = true;
                self.is_skipping = false;
                self.parse_carry(piece.is_cut_between, piece.is_last)
            }
            None => {
                self.carry_offset += piece.text.len() as u64;
                if piece.is_last {
                    self.truncated_at = Some(self.here());
                }
                Ok(())
            }
        }
    }

    fn finish(
        mut self,
        path: &Path,
        ending: Ending,
        is_compressed: bool,
        text_bytes: u64,
        mut keys: RootKeys,
        mut is_damaged: bool,
    ) -> Result<Document, ReadError> {
        if self.is_bare_array && self.elements > 0 && self.events == 0 {
            return Err(ReadError::NotATrace {
                path: path.to_owned(),
                what: LookAlike::ObjectsWithoutPhase,
            });
        }
        let unreadable = self.issues.unreadable();
        if unreadable >= 100 && unreadable * 2 > self.elements {
            return Err(ReadError::BeyondUse {
                unreadable,
                elements: self.elements,
            });
        }
        if let Some(Place { offset, index }) = self.issues.place_of(Issue::SecondTrace) {
            return Err(ReadError::Interleaved { offset, index });
        }
        let at = |offset: u64| Place { offset, index: None };
        match &self.tail {
            None => {
                self.truncated_at.get_or_insert(self.here());
            }
            Some(tail) => {
                let text = ascii_where_invalid(tail);
                let end = if self.is_bare_array {
                    Some(0)
                } else {
                    let tail = parse_tail(&text);
                    keys.extend(tail.keys);
                    is_damaged |= tail.is_damaged || (self.is_tail_cut && tail.end.is_none());
                    if !tail.is_closed && !self.is_tail_cut {
                        self.truncated_at.get_or_insert(at(text_bytes));
                    }
                    tail.end
                };
                // Zeros pad files as blank space does.
                let is_blank = |c: char| c.is_ascii_whitespace() || c == '\0';
                if let Some(end) = end
                    && let Some(behind) = text[end..].find(|c| !is_blank(c))
                {
                    let place = at(self.carry_offset + (end + behind) as u64);
                    self.issues.add(Issue::Foreign, place);
                }
            }
        }
        if is_damaged {
            self.issues.add(Issue::Header, at(text_bytes));
        }
        if ending.is_cut && self.truncated_at.is_none() {
            self.issues.add(Issue::Compression, at(text_bytes));
        }
        if ending.has_foreign_data {
            self.issues.add(Issue::Foreign, at(text_bytes));
        }
        Ok(Document {
            keys,
            truncated_at: self.truncated_at,
            issues: self.issues,
            is_compressed,
            text_bytes,
        })
    }
}

fn append_bounded(kept: &mut Vec<u8>, more: &[u8], is_cut: &mut bool) {
    let room = MAX_ROOT_BYTES.saturating_sub(kept.len()).min(more.len());
    *is_cut |= room < more.len();
    kept.extend_from_slice(&more[..room]);
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
