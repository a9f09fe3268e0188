//! Taking up events: on worker threads into blocks, in file order into one.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use serde::Deserialize;

use crate::kineto::block::BlockSink;
use crate::kineto::category::{Category, Classified, category_of, classify};
use crate::kineto::error::ReadError;
use crate::kineto::event::Event;
use crate::kineto::reader::{Collector, First};
use crate::kineto::scalar::Scalar;
use crate::kineto::time::Time;
use crate::link::Tally;
use crate::row::RowType;

use super::columns::{Flow, Id, NO_ROW, NONE, Named, Placement, Rows, Sequence, Strings, TrackKey, Tracks};
use super::derive::ABSURD_NS;
use super::idle::{Content, NAMES, drop_idle};
use super::names::TrackNames;

/// The raw args of a run of rows, on their way to the `args` table.
#[derive(Debug, Default)]
pub(crate) struct ArgsRun {
    pub(crate) index: Vec<u32>,
    pub(crate) ends: Vec<i32>,
    pub(crate) text: Vec<u8>,
}

/// How often each phase and each category occurs, among all elements.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// By string number; [`NO_ROW`] counts elements without a category.
    pub(crate) categories: BTreeMap<u32, u64>,
    /// By first byte of `ph`; 0 when missing.
    pub(crate) phases: BTreeMap<u8, u64>,
}

/// What one block of text held. Strings, tracks and indices are numbered within the block.
#[derive(Debug, Default)]
pub(crate) struct Block {
    rows: Rows,
    strings: Strings,
    tracks: Tracks,
    flows: Vec<Flow>,
    names: Vec<(Named, u32, u32)>,
    args: ArgsRun,
    counts: Counts,
    invalid_times: Tally,
    suspects: Vec<Suspect>,
    /// The category, and the track, of the event before: neighbours mostly share both.
    last_category: Option<(String, u32, Category)>,
    last_track: Option<(TrackKey, u32)>,
}

/// Everything one pass over a trace's text leaves.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) rows: Rows,
    pub(crate) strings: Strings,
    pub(crate) tracks: Tracks,
    pub(crate) flows: Vec<Flow>,
    pub(crate) names: TrackNames,
    /// Names of tracks without rows that were passed over.
    pub(crate) idle_names: u64,
    pub(crate) counts: Counts,
    /// Rows whose time or duration is missing, negative or unreadable.
    pub(crate) invalid_times: Tally,
    /// Rows whose time may turn out to be of no use, in file order; not all of them where there are many.
    pub(crate) suspects: Vec<Suspect>,
}

/// A row whose time may be of no use: the place of its element is kept, for all others it is not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suspect {
    pub(crate) row: u32,
    /// Byte offset of its element in the unpacked text.
    pub(crate) offset: u64,
}

/// Suspects kept of a block; the first that matters is among them.
const SUSPECTS: usize = 16;

/// Takes up blocks in file order, and passes their args on.
pub(crate) struct Gatherer {
    collected: Collected,
    args: SyncSender<ArgsRun>,
}

impl Gatherer {
    /// Returns an empty gatherer that sends args to a writer.
    pub(crate) fn new(args: SyncSender<ArgsRun>) -> Self {
        Self {
            collected: Collected::default(),
            args,
        }
    }

    /// Returns what was gathered, and lets the args' writer finish.
    pub(crate) fn finish(self) -> Collected {
        self.collected
    }
}

fn id_of(scalar: &Scalar<'_>, strings: &mut Strings) -> Id {
    match scalar {
        Scalar::Missing => Id::Missing,
        Scalar::Int(value) => Id::Int(*value),
        Scalar::UInt(value) => Id::Text(strings.intern(&value.to_string())),
        Scalar::Text(text) => Id::Text(strings.intern(text)),
    }
}

/// Returns the number in a stream's old spelling: `stream 7`, `stream 7 user`.
fn stream_in(text: &str) -> Option<i64> {
    let rest = text.strip_prefix("stream ")?;
    rest.split(' ').next()?.parse().ok()
}

/// What metadata rows carry.
#[derive(Deserialize)]
struct NameArgs {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    labels: Option<String>,
}

impl Block {
    fn category(&mut self, event: &Event<'_>) -> (u32, Category) {
        let Some(text) = event.category.as_deref() else {
            return (NO_ROW, Category::Unknown);
        };
        match &self.last_category {
            Some((last, number, category)) if last == text => (*number, *category),
            _ => {
                let (number, category) = (self.strings.intern(text), category_of(text));
                self.last_category = Some((text.to_owned(), number, category));
                (number, category)
            }
        }
    }

    fn track(&mut self, event: &Event<'_>) -> u32 {
        let key = TrackKey {
            rank: event.args_rank.unwrap_or(NONE),
            pid: id_of(&event.pid, &mut self.strings),
            tid: id_of(&event.tid, &mut self.strings),
        };
        match self.last_track {
            Some((last, number)) if last == key => number,
            _ => {
                let number = self.tracks.intern(key);
                self.last_track = Some((key, number));
                number
            }
        }
    }

    /// Takes up a metadata row: the names it gives.
    fn metadata(&mut self, event: &Event<'_>) {
        let named = match event.name.as_deref() {
            Some("process_name") => Named::Process,
            Some("process_labels") => Named::ProcessLabels,
            Some("thread_name") => Named::Thread,
            _ => return,
        };
        let Some(Ok(args)) = event.args.map(serde_json::from_str::<NameArgs>) else {
            return;
        };
        let text = if named == Named::ProcessLabels {
            args.labels
        } else {
            args.name
        };
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            let track = self.track(event);
            let name = self.strings.intern(&text);
            self.names.push((named, track, name));
        }
    }

    fn flow(&mut self, event: &Event<'_>, category: Category) {
        let Time::Ns(at_ns) = event.ts else { return };
        if category != Category::ForwardBackwardFlow || event.phase == b't' {
            return;
        }
        let id = id_of(&event.id, &mut self.strings);
        let track = self.track(event);
        self.flows.push(Flow {
            id,
            is_start: event.phase == b's',
            track,
            at_ns,
        });
    }

    /// Returns start and duration in ns, [`NONE`] where they are missing or impossible.
    fn times(&mut self, event: &Event<'_>, row: u32) -> (i64, i64) {
        let start = if let Time::Ns(ns) = event.ts { ns } else { NONE };
        let dur = match event.dur {
            Time::Ns(ns) if ns >= 0 && (start == NONE || start.checked_add(ns).is_some()) => ns,
            Time::Missing if event.phase != b'X' => 0,
            _ => NONE,
        };
        if start == NONE || dur == NONE {
            self.invalid_times.add(row);
        }
        (start, dur)
    }

    /// Keeps the place of a row without a time, or with one far from that of the row before: which times are
    /// absurd is known only when all are.
    fn suspect(&mut self, row: u32, offset: u64, start_ns: i64, dur_ns: i64) {
        if self.suspects.len() == SUSPECTS {
            return;
        }
        let before = self.rows.start_ns.last().copied().unwrap_or(NONE);
        let is_far = before == NONE || before.saturating_sub(start_ns).saturating_abs() > ABSURD_NS;
        // An unknown time is less than any.
        if start_ns <= 0 || dur_ns == NONE || dur_ns > ABSURD_NS || is_far {
            self.suspects.push(Suspect { row, offset });
        }
    }

    fn row(&mut self, index: u32, offset: u64, event: &Event<'_>, category_number: u32, category: Category) {
        let row = self.rows.numbers().end;
        let name = event.name.as_deref();
        let process = if let Scalar::Text(text) = &event.pid {
            Some(text.as_ref())
        } else {
            None
        };
        let Classified {
            row_type,
            is_reclassified,
        } = classify(category, event.phase, name.unwrap_or_default(), process);
        let (start_ns, dur_ns) = self.times(event, row);
        self.suspect(row, offset, start_ns, dur_ns);
        let track = self.track(event);
        let name = name.map_or(NO_ROW, |name| self.strings.intern(name));
        let shape = match event.input_dims {
            Some(text) if row_type == RowType::CpuOp => self.strings.intern(text),
            _ => NO_ROW,
        };
        let rows = &mut self.rows;
        rows.index.push(index);
        rows.row_type.push(row_type);
        rows.phase.push(event.phase);
        rows.category.push(category_number);
        rows.name.push(name);
        rows.start_ns.push(start_ns);
        rows.dur_ns.push(dur_ns);
        rows.track.push(track);
        rows.correlation.push(event.correlation.unwrap_or(NONE));
        rows.external.push(event.external_id.unwrap_or(NONE));
        rows.shape.push(shape);
        if row_type.is_device_work() || row_type == RowType::Sync || category == Category::DeviceAnnotation {
            rows.placement.0.push((row, placement(event)));
        }
        if let Some(number) = event.sequence_number {
            let forward_thread = event.fwd_thread_id.unwrap_or(0);
            rows.sequence.0.push((
                row,
                Sequence {
                    number,
                    forward_thread,
                },
            ));
        }
        if let Some(bytes) = event.bytes {
            rows.bytes.0.push((row, bytes));
        }
        if event.has_collective
            && let Some(args) = event.args
        {
            rows.collective_args.0.push((row, args.into()));
        }
        if is_reclassified {
            rows.reclassified.push(row);
        }
        if event.finished == Some(false) && row_type != RowType::Memory {
            rows.unfinished.push(row);
        }
        if let Some(args) = event.args {
            self.args.index.push(index);
            self.args.text.extend_from_slice(args.as_bytes());
            let end = i32::try_from(self.args.text.len()).expect("a block is far below 2 GiB");
            self.args.ends.push(end);
        }
    }
}

/// Returns where a device row ran: by its args, else by its pid and tid.
///
/// Stream 4294967295 and -1 mean none.
fn placement(event: &Event<'_>) -> Placement {
    let integer = |scalar: &Scalar<'_>| {
        if let Scalar::Int(value) = scalar {
            Some(*value)
        } else {
            None
        }
    };
    let device = event.device.or_else(|| integer(&event.pid)).unwrap_or(NONE);
    let in_tid = || match &event.tid {
        Scalar::Text(text) => stream_in(text),
        tid => integer(tid),
    };
    let stream = event
        .stream
        .or_else(in_tid)
        .filter(|stream| *stream != -1 && *stream != 4_294_967_295);
    Placement {
        device,
        stream: stream.unwrap_or(NONE),
        is_graph: event.graph_id.is_some_and(|id| id > 0),
    }
}

impl BlockSink for Block {
    fn event(&mut self, index: u64, offset: u64, event: &Event<'_>) {
        let (category_number, category) = self.category(event);
        *self.counts.categories.entry(category_number).or_default() += 1;
        *self.counts.phases.entry(event.phase).or_default() += 1;
        match event.phase {
            b's' | b't' | b'f' => self.flow(event, category),
            b'M' => self.metadata(event),
            _ => {
                let index = u32::try_from(index).expect("a block holds far less than 2^32 elements");
                self.row(index, offset, event, category_number, category);
            }
        }
    }
}

impl Collector for Gatherer {
    type Block = Block;

    fn block() -> Self::Block {
        Block::default()
    }

    fn rows(&self) -> u64 {
        self.collected.rows.len() as u64
    }

    fn absorb(&mut self, mut block: Self::Block, first: First) -> Result<(), ReadError> {
        let first_index = first.index;
        let last = block.rows.index.last().map_or(0, |last| u64::from(*last)) + first_index;
        let total = self.collected.rows.len() as u64 + block.rows.len() as u64;
        if last.max(total) >= u64::from(u32::MAX) {
            return Err(ReadError::TooManyElements);
        }
        let first_index = u32::try_from(first_index).map_err(|_| ReadError::TooManyElements)?;
        let Collected {
            rows,
            strings,
            tracks,
            flows,
            names,
            idle_names,
            counts,
            invalid_times,
            suspects,
        } = &mut self.collected;
        let used = (names.len() + block.names.len() > NAMES).then(|| {
            let content = Content {
                rows: &block.rows,
                flows: &block.flows,
                counts: &block.counts,
                strings: &block.strings,
                tracks: &block.tracks,
            };
            let (used, dropped) = drop_idle(&mut block.names, &content, tracks, strings);
            *idle_names += dropped;
            used
        });
        let is_string_used = |at: usize| used.as_ref().is_none_or(|used| used.strings[at]);
        let is_track_used = |at: usize| used.as_ref().is_none_or(|used| used.tracks[at]);
        let string_map: Vec<u32> = block
            .strings
            .iter()
            .enumerate()
            .map(|(at, text)| {
                if is_string_used(at) {
                    strings.intern(text)
                } else {
                    NO_ROW
                }
            })
            .collect();
        let id = |id: Id| {
            if let Id::Text(number) = id {
                Id::Text(string_map[number as usize])
            } else {
                id
            }
        };
        let track_map: Vec<u32> = block
            .tracks
            .keys()
            .iter()
            .enumerate()
            .map(|(at, key)| {
                if !is_track_used(at) {
                    return NO_ROW;
                }
                tracks.intern(TrackKey {
                    rank: key.rank,
                    pid: id(key.pid),
                    tid: id(key.tid),
                })
            })
            .collect();
        let first_row = rows.numbers().end;
        rows.append(block.rows, first_index, &string_map, &track_map);
        flows.extend(block.flows.into_iter().map(|flow| Flow {
            id: id(flow.id),
            track: track_map[flow.track as usize],
            ..flow
        }));
        for (named, track, name) in block.names {
            names.add(
                named,
                track_map[track as usize],
                string_map[name as usize],
                tracks,
                strings,
            );
        }
        for (number, count) in block.counts.categories {
            let number = if number == NO_ROW {
                NO_ROW
            } else {
                string_map[number as usize]
            };
            *counts.categories.entry(number).or_default() += count;
        }
        for (phase, count) in block.counts.phases {
            *counts.phases.entry(phase).or_default() += count;
        }
        invalid_times.append(block.invalid_times, first_row);
        suspects.extend(block.suspects.into_iter().map(|suspect| Suspect {
            row: suspect.row + first_row,
            offset: suspect.offset + first.offset,
        }));
        if !block.args.index.is_empty() {
            for index in &mut block.args.index {
                *index += first_index;
            }
            // A writer that has failed has hung up; its error is reported where it is joined.
            let _ = self.args.send(block.args);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_stream_spellings_give_the_number() {
        assert_eq!(stream_in("stream 7"), Some(7));
        assert_eq!(stream_in("stream 7 user"), Some(7));
        assert_eq!(stream_in("4093687616"), None);
    }
}
