//! Pictures of a trace: threads above, the streams of each device below.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use arrow::record_batch::RecordBatch;
use clap::Args;
use datafusion::logical_expr::Expr;
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use veloq_core::figure::{Figure, Lane, Span, SpanClass, write_svg};
use veloq_core::{Failure, NsRange};

use crate::error::Error;
use crate::query::engine::{BatchColumns, value};
use crate::row::RowType;
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column, flag};

/// Threads of a rank that are drawn: those with most to show.
const MAX_THREADS: usize = 6;
/// Streams of a device that are drawn: likewise.
const MAX_STREAMS: usize = 12;
/// Lanes of ranges on a thread: ranges inside more than so many others are left out.
const MAX_LEVELS: usize = 4;
/// Lanes of a picture, shared out among the first [`MAX_RANKS`] ranks.
const MAX_LANES: usize = 80;
/// Ranks that are drawn.
const MAX_RANKS: usize = 20;

/// Whether to draw a picture, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PictureArgs {
    /// Also draw a picture of the rows into an SVG file; another SVG file there is replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<String>,
}

/// A picture that was drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Picture {
    /// The file.
    path: String,
    /// Its size.
    bytes: u64,
    /// Lanes drawn.
    lanes: u64,
    /// Rows that are too small to see, and drawn together with their neighbours.
    merged_rows: u64,
    /// Rows that are not drawn: of threads and streams with less to show, ranges too deep inside others, and
    /// types that have no lane.
    left_out_rows: u64,
}

/// What a row is drawn as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Range,
    Operator,
    Call,
    Compute,
    Communication,
    Copy,
    Fill,
}

/// How each [`Class`] looks, in its order: the palette of Okabe and Ito, which colour-blind people can tell
/// apart.
const CLASSES: &[SpanClass] = &[
    class("steps and annotations", "#f0e442", "#000000", false),
    class("operators (outermost)", "#bdbdbd", "#000000", false),
    class("API calls", "#e6a8cb", "#000000", false),
    class("kernels", "#0072b2", "#ffffff", false),
    class("communication", "#e69f00", "#000000", true),
    class("copies", "#009e73", "#000000", false),
    class("fills", "#56b4e9", "#000000", false),
];

const fn class(label: &'static str, fill: &'static str, ink: &'static str, is_hatched: bool) -> SpanClass {
    SpanClass {
        label,
        fill,
        ink,
        is_hatched,
    }
}

/// Which lane a row belongs to, in the order from top to bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Thread {
        track: u32,
        part: Part,
    },
    Stream {
        device: Option<i64>,
        stream: Option<i64>,
        track: u32,
    },
}

/// A lane of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Ranges,
    Operators,
    Calls,
}

/// Rows by rank and lane.
#[derive(Debug, Default)]
struct Read {
    lanes: BTreeMap<(Option<i64>, Place), Vec<Item>>,
    left_out: u64,
}

/// A row that is drawn.
#[derive(Debug, Clone, Copy)]
struct Item {
    start_ns: i64,
    end_ns: i64,
    class: Class,
    name: Option<u32>,
}

impl Read {
    fn add(&mut self, batch: &RecordBatch, window: &Range<i64>, is_wanted: &(impl Fn(u32) -> bool + Sync)) {
        let (index, types) = (batch.u32s(column::INDEX), batch.u8s(column::TYPE));
        let (starts, durations) = (batch.i64s(column::START_NS), batch.i64s(column::DURATION_NS));
        let (names, tracks) = (batch.u32s(column::NAME), batch.u32s(column::TRACK));
        let (ranks, devices) = (batch.i64s(column::RANK), batch.i64s(column::DEVICE_ID));
        let (streams, ops) = (batch.i64s(column::STREAM_ID), batch.u32s(column::OP));
        let (comm_kinds, flags) = (batch.u8s(column::COMM_KIND), batch.u8s(column::FLAGS));
        for at in 0..batch.num_rows() {
            let Some(row_type) = RowType::from_code(types.value(at)) else {
                continue;
            };
            let (Some(start_ns), Some(duration_ns)) = (value(starts, at), value(durations, at)) else {
                continue;
            };
            let end_ns = start_ns.saturating_add(duration_ns);
            if start_ns.max(window.start) >= end_ns.min(window.end) || !is_wanted(index.value(at)) {
                continue;
            }
            let thread = |part| Place::Thread {
                track: tracks.value(at),
                part,
            };
            let stream = || Place::Stream {
                device: value(devices, at),
                stream: value(streams, at),
                track: tracks.value(at),
            };
            let is_device_side = flags.value(at) & flag::DEVICE_SIDE != 0;
            let (class, place) = match row_type {
                // Nested operators are inside the ones drawn.
                RowType::CpuOp if value(ops, at).is_some() => continue,
                RowType::CpuOp => (Class::Operator, thread(Part::Operators)),
                RowType::Annotation | RowType::Step if !is_device_side => {
                    (Class::Range, thread(Part::Ranges))
                }
                RowType::Runtime | RowType::Driver => (Class::Call, thread(Part::Calls)),
                RowType::Kernel => (Class::Compute, stream()),
                RowType::Memcpy => (Class::Copy, stream()),
                RowType::Memset => (Class::Fill, stream()),
                _ => {
                    self.left_out += 1;
                    continue;
                }
            };
            let class = match class {
                Class::Compute | Class::Copy | Class::Operator | Class::Range
                    if comm_kinds.value(at) != 0 =>
                {
                    Class::Communication
                }
                class => class,
            };
            self.lanes
                .entry((value(ranks, at), place))
                .or_default()
                .push(Item {
                    start_ns,
                    end_ns,
                    class,
                    name: value(names, at),
                });
        }
    }

    fn append(&mut self, next: Self) {
        self.left_out += next.left_out;
        for (lane, items) in next.lanes {
            self.lanes.entry(lane).or_default().extend(items);
        }
    }
}

/// What a picture shows.
pub(crate) struct Subject<'a, F> {
    /// The verb that draws it.
    pub(crate) verb: &'a str,
    /// Which rows may be drawn.
    pub(crate) predicate: Option<Expr>,
    /// Which of them are, by their index.
    pub(crate) is_wanted: F,
    /// From when to when.
    pub(crate) window: Range<i64>,
}

/// Draws a picture into a file.
///
/// # Errors
/// `usage.output_exists`, `limit.output`; what the engine reports.
pub(crate) fn draw(
    session: &TraceSession,
    subject: Subject<'_, impl Fn(u32) -> bool + Sync>,
    path: &str,
) -> Result<Picture, Failure> {
    let window = subject.window;
    let parts = session.engine().fold(
        &EVENTS,
        &[
            column::INDEX,
            column::TYPE,
            column::NAME,
            column::START_NS,
            column::DURATION_NS,
            column::TRACK,
            column::RANK,
            column::DEVICE_ID,
            column::STREAM_ID,
            column::OP,
            column::COMM_KIND,
            column::FLAGS,
        ],
        subject.predicate,
        Read::default,
        |read, batch| {
            read.add(batch, &window, &subject.is_wanted);
            Ok(())
        },
    )?;
    let mut read = Read::default();
    for part in parts {
        read.append(part);
    }
    let mut left_out = read.left_out;
    let lanes = lanes(session, read, &mut left_out)?;
    let lane_count = lanes.len() as u64;
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!(
            "{left_out} rows are not drawn: Python frames, memory and other types without a lane, threads and \
             streams with less to show, and ranges deep inside others."
        ));
    }
    notes.extend(session.trust(&[]).details());
    let figure = Figure {
        title: format!("{}: {}", file_name(session.path()), subject.verb),
        description: description(&window, &lanes),
        window,
        classes: CLASSES,
        lanes,
        notes,
    };
    let drawing = figure.draw();
    write_svg(Path::new(path), &drawing.svg)?;
    Ok(Picture {
        path: path.to_owned(),
        bytes: drawing.svg.len() as u64,
        lanes: lane_count,
        merged_rows: drawing.merged_spans,
        left_out_rows: left_out,
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn description(window: &Range<i64>, lanes: &[Lane]) -> String {
    let rows: usize = lanes.iter().map(|lane| lane.spans.len()).sum();
    let ms = |ns: i64| format!("{}.{:06}", ns / 1_000_000, (ns % 1_000_000).abs());
    format!(
        "{rows} rows in {} lanes, from {} to {} ms since the trace's origin. Hover over a bar for its name and time.",
        lanes.len(),
        ms(window.start),
        ms(window.end)
    )
}

/// Makes the lanes of what was read: of each rank the threads, then the devices' streams.
fn lanes(session: &TraceSession, read: Read, left_out: &mut u64) -> Result<Vec<Lane>, Error> {
    let wanted = wanted_tracks(&read);
    let mut streams_of: BTreeMap<Option<i64>, usize> = BTreeMap::new();
    for (rank, place) in read.lanes.keys() {
        let streams = streams_of.entry(*rank).or_default();
        *streams += usize::from(matches!(place, Place::Stream { track, .. } if wanted.contains(track)));
    }
    let drawn: BTreeMap<Option<i64>, Room> = streams_of
        .iter()
        .take(MAX_RANKS)
        .map(|(rank, streams)| {
            (
                *rank,
                Room::new(MAX_LANES / streams_of.len().min(MAX_RANKS), *streams),
            )
        })
        .collect();
    let mut lanes = Vec::new();
    let (mut rank_before, mut first_of_rank) = (None, 0);
    for ((rank, place), items) in read.lanes {
        if rank_before != Some(rank) {
            (rank_before, first_of_rank) = (Some(rank), lanes.len());
        }
        let (track, room) = match place {
            Place::Thread { track, .. } => (track, drawn.get(&rank).map_or(0, |room| room.threads)),
            Place::Stream { track, .. } => (track, drawn.get(&rank).map_or(0, |room| room.all)),
        };
        let free = room.saturating_sub(lanes.len() - first_of_rank);
        if !wanted.contains(&track) || free == 0 {
            *left_out += items.len() as u64;
            continue;
        }
        let group = group_of(session, rank, &place)?;
        let (label, levels) = match place {
            Place::Thread {
                part: Part::Ranges, ..
            } => ("ranges".to_owned(), levels(items, free.min(MAX_LEVELS), left_out)),
            Place::Thread {
                part: Part::Operators,
                ..
            } => ("operators".to_owned(), vec![items]),
            Place::Thread {
                part: Part::Calls, ..
            } => ("API calls".to_owned(), vec![items]),
            Place::Stream { stream, .. } => {
                let label = stream.map_or("no stream".to_owned(), |stream| format!("stream {stream}"));
                (label, vec![items])
            }
        };
        for (level, items) in levels.iter().enumerate() {
            let label = if level == 0 { label.clone() } else { String::new() };
            lanes.push(lane(session, group.clone(), label, items)?);
        }
    }
    Ok(lanes)
}

fn group_of(session: &TraceSession, rank: Option<i64>, place: &Place) -> Result<String, Error> {
    let place = match place {
        Place::Thread { track, .. } => format!("thread {}", session.track(*track)?.label(false)),
        Place::Stream { device, .. } => {
            let name = session
                .inventory()
                .devices
                .iter()
                .find(|known| known.rank == rank && known.device_id == *device)
                .and_then(|known| known.name.clone());
            let number = device.map_or("?".to_owned(), |device| device.to_string());
            match name {
                Some(name) => format!("device {number} ({name})"),
                None => format!("device {number}"),
            }
        }
    };
    Ok(match rank.filter(|_| session.ranks().len() > 1) {
        Some(rank) => format!("rank {rank}, {place}"),
        None => place,
    })
}

/// How many lanes of a picture a rank may fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    all: usize,
    /// Its threads, which come first, leave half of the room to its streams, or what they need of it.
    threads: usize,
}

impl Room {
    fn new(all: usize, streams: usize) -> Self {
        Self {
            all,
            threads: all - streams.min(all.div_ceil(2)),
        }
    }
}

/// What tracks belong to: the process, or one of its devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Process,
    Device(Option<i64>),
}

/// Returns the tracks with most to show: so many threads of each rank, and so many streams of each device.
fn wanted_tracks(read: &Read) -> FxHashSet<u32> {
    let mut shown: BTreeMap<(Option<i64>, Owner), BTreeMap<u32, i64>> = BTreeMap::new();
    for ((rank, place), items) in &read.lanes {
        let (owner, track) = match place {
            Place::Thread { track, .. } => (Owner::Process, *track),
            Place::Stream { device, track, .. } => (Owner::Device(*device), *track),
        };
        let of_owner = shown.entry((*rank, owner)).or_default();
        let shown_ns = of_owner.entry(track).or_default();
        for item in items {
            *shown_ns = shown_ns.saturating_add(item.end_ns - item.start_ns);
        }
    }
    let mut wanted = FxHashSet::default();
    for ((_, owner), tracks) in shown {
        let most = match owner {
            Owner::Process => MAX_THREADS,
            Owner::Device(_) => MAX_STREAMS,
        };
        let mut tracks: Vec<(u32, i64)> = tracks.into_iter().collect();
        tracks.sort_by_key(|(track, shown_ns)| (std::cmp::Reverse(*shown_ns), *track));
        wanted.extend(tracks.into_iter().take(most).map(|(track, _)| track));
    }
    wanted
}

/// Puts ranges into as many lanes as it takes for none to lie on another, but no more than `most`.
fn levels(mut items: Vec<Item>, most: usize, left_out: &mut u64) -> Vec<Vec<Item>> {
    items.sort_by_key(|item| (item.start_ns, std::cmp::Reverse(item.end_ns)));
    let mut levels: Vec<Vec<Item>> = Vec::new();
    for item in items {
        let free = levels
            .iter()
            .position(|level| level.last().is_none_or(|last| last.end_ns <= item.start_ns));
        match free {
            Some(level) => levels[level].push(item),
            None if levels.len() < most => levels.push(vec![item]),
            None => *left_out += 1,
        }
    }
    levels
}

fn lane(session: &TraceSession, group: String, label: String, items: &[Item]) -> Result<Lane, Error> {
    let strings = session.strings()?;
    let span = |item: &Item| Span {
        range: item.start_ns..item.end_ns,
        class: item.class as usize,
        name: item
            .name
            .map_or(String::new(), |name| strings.get(name).to_owned()),
    };
    Ok(Lane {
        group,
        label,
        spans: items.iter().map(span).collect(),
    })
}

/// Returns the smallest window that holds all ranges, cut to a given one.
pub(crate) fn window_of(ranges: impl Iterator<Item = Range<i64>>, cut: NsRange) -> Range<i64> {
    let hull = ranges
        .map(|range| cut.clip(range))
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
    hull.unwrap_or(0..0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(start_ns: i64, end_ns: i64) -> Item {
        Item {
            start_ns,
            end_ns,
            class: Class::Range,
            name: None,
        }
    }

    #[test]
    fn every_class_has_a_look() {
        assert_eq!(CLASSES.len(), Class::Fill as usize + 1);
    }

    #[test]
    fn ranges_inside_others_go_one_lane_down() {
        let mut left_out = 0;
        let found = levels(
            vec![item(5, 9), item(0, 10), item(10, 20), item(6, 8)],
            3,
            &mut left_out,
        );
        let starts: Vec<Vec<i64>> = found
            .iter()
            .map(|level| level.iter().map(|item| item.start_ns).collect())
            .collect();
        assert_eq!((starts, left_out), (vec![vec![0, 10], vec![5], vec![6]], 0));
        let deep = (0..6).map(|at| item(at, 100)).collect();
        assert_eq!(levels(deep, 4, &mut left_out).len(), 4);
        assert_eq!(left_out, 2);
    }

    #[test]
    fn threads_leave_room_for_streams() {
        let threads = |all, streams| Room::new(all, streams).threads;
        assert_eq!(threads(80, 0), 80);
        assert_eq!(threads(80, 12), 68);
        assert_eq!(threads(80, 96), 40);
        assert_eq!(threads(4, 12), 2);
    }
}
