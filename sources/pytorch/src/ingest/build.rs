//! Building a trace's tables.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use parquet::errors::ParquetError;
use veloq_core::{Interrupt, ProgressSink};

use crate::comm::rank::rank_of_file;
use crate::inventory::take::{Parts, Reading, take};
use crate::inventory::{Damage, Inventory};
use crate::kineto::file_name::worker_in_file_name;
use crate::kineto::metadata::Header;
use crate::kineto::reader::{Document, ReadOptions, read};
use crate::open_error::OpenError;
use crate::sidecar::TABLES;
use crate::tables::TableDef;
use crate::tables::collectives::{COLLECTIVES, collectives_batch};
use crate::tables::events::{EVENTS, EventColumns};
use crate::tables::texts::{ARGS, STRINGS, args_batch, string_batches};
use crate::tables::tracks::{TRACKS, tracks_batch};
use crate::tables::write::{TableWriter, write_columns};

use super::collect::{ArgsRun, Collected, Gatherer};
use super::derive::{Derived, derive};

/// Rows of the `strings` table in a batch.
const STRING_BATCH: usize = 64 * 1024;

/// Runs of args that may wait for their writer: what bounds the memory between the two.
const WAITING_ARGS: usize = 4;

/// What was built: the rows of each table, in the order of [`TABLES`], and the inventory.
pub(crate) struct Built {
    pub(crate) rows: [u64; TABLES.len()],
    pub(crate) inventory: Inventory,
}

/// Where a build writes, and with how many threads.
pub(crate) struct Workplace<'a> {
    /// The path of a table's file.
    pub(crate) file: &'a (dyn Fn(&str) -> PathBuf + Sync),
    pub(crate) threads: usize,
    pub(crate) progress: Option<&'a dyn ProgressSink>,
    /// Looked at between two pieces of work.
    pub(crate) interrupt: Option<&'a Interrupt>,
}

impl Workplace<'_> {
    fn is_interrupted(&self) -> bool {
        self.interrupt.is_some_and(Interrupt::is_requested)
    }
}

/// Reads a trace and writes all of its tables.
///
/// # Errors
/// When the trace cannot be read or is none, or a table cannot be written.
pub(crate) fn build(input: &Path, place: &Workplace<'_>) -> Result<Built, OpenError> {
    let (mut collected, document, args_rows) = collect(input, place)?;
    let header = Header::read(&document.keys);
    let file_name = input
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let file_rank = rank_of_file(&header, &collected.rows, &collected.strings, Some(&file_name));
    let derived = derive(&mut collected, &header, file_rank, place.threads);
    let rows_of = write_tables(&collected, &derived, place)?;
    let parts = Parts {
        collected: &collected,
        derived: &derived,
        header: &header,
        reading: &reading(&document, first_untimed(&collected, &derived)),
        worker: worker_in_file_name(&file_name).map(str::to_owned),
    };
    let rows = TABLES.map(|table| {
        if table == ARGS.name {
            args_rows
        } else {
            rows_of(table)
        }
    });
    Ok(Built {
        rows,
        inventory: take(&parts),
    })
}

fn table_error(table: &'static TableDef) -> impl Fn(ParquetError) -> OpenError {
    move |source| OpenError::Table {
        table: table.name,
        source,
    }
}

/// Reads the trace into columns, its args into their table.
///
/// # Errors
/// When the trace cannot be read or is none, or the table cannot be written.
pub(crate) fn collect(input: &Path, place: &Workplace<'_>) -> Result<(Collected, Document, u64), OpenError> {
    let (sender, receiver) = sync_channel(WAITING_ARGS);
    let path = (place.file)(ARGS.name);
    thread::scope(|scope| {
        let writer = scope.spawn(move || write_args(&path, &receiver));
        let mut gatherer = Gatherer::new(sender);
        let options = ReadOptions {
            workers: place.threads,
            progress: place.progress,
            interrupt: place.interrupt,
            ..ReadOptions::default()
        };
        let document = read(input, options, &mut gatherer);
        let collected = gatherer.finish();
        let args = writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A table that cannot be written comes first: reading on without it was in vain.
        let args_rows = args.map_err(table_error(&ARGS))?;
        Ok((collected, document?, args_rows))
    })
}

fn write_args(path: &Path, runs: &Receiver<ArgsRun>) -> Result<u64, ParquetError> {
    let mut writer = TableWriter::create(path, &ARGS)?;
    for run in runs {
        writer.write(&args_batch(run.index, &run.ends, run.text)?)?;
    }
    writer.finish()
}

/// Writes all tables but the args; returns how many rows each has.
///
/// # Errors
/// When a table cannot be written.
pub(crate) fn write_tables(
    collected: &Collected,
    derived: &Derived,
    place: &Workplace<'_>,
) -> Result<impl Fn(&str) -> u64, OpenError> {
    let file = place.file;
    let columns = EventColumns {
        rows: &collected.rows,
        derived,
    };
    let count = collected.rows.len();
    let array = |column, range| {
        if place.is_interrupted() {
            return Err(ParquetError::General("interrupted".to_owned()));
        }
        Ok(columns.array(column, range))
    };
    write_columns(&file(EVENTS.name), &EVENTS, count, place.threads, array).map_err(table_error(&EVENTS))?;

    let write_strings = || {
        let mut writer = TableWriter::create(&file(STRINGS.name), &STRINGS)?;
        for batch in string_batches(&collected.strings, STRING_BATCH) {
            writer.write(&batch?)?;
        }
        writer.finish()
    };
    let strings = write_strings().map_err(table_error(&STRINGS))?;

    let write_one = |table: &'static TableDef, batch| {
        let mut writer = TableWriter::create(&file(table.name), table)?;
        writer.write(&batch?)?;
        writer.finish()
    };
    let batch = tracks_batch(
        &collected.tracks,
        &collected.strings,
        &derived.ranks,
        &collected.names,
    );
    let tracks = write_one(&TRACKS, batch).map_err(table_error(&TRACKS))?;
    let batch = collectives_batch(collected, derived);
    let collectives = write_one(&COLLECTIVES, batch).map_err(table_error(&COLLECTIVES))?;

    let rows = [
        (EVENTS.name, count as u64),
        (STRINGS.name, strings),
        (TRACKS.name, tracks),
        (COLLECTIVES.name, collectives),
    ];
    Ok(move |table: &str| {
        rows.iter()
            .find(|(name, _)| *name == table)
            .map_or(0, |(_, rows)| *rows)
    })
}

/// Returns the first row without a usable time, if there is any, as damage.
fn first_untimed(collected: &Collected, derived: &Derived) -> Option<Damage> {
    let firsts = [&collected.invalid_times, &derived.absurd_times].map(|tally| tally.rows.first());
    let row = *firsts.into_iter().flatten().min()?;
    let suspect = collected
        .suspects
        .binary_search_by_key(&row, |suspect| suspect.row);
    Some(Damage {
        what: "a time or a duration is missing or impossible".to_owned(),
        byte_offset: suspect.ok().map(|at| collected.suspects[at].offset),
        index: Some(u64::from(collected.rows.index[row as usize])),
        is_truncation: false,
    })
}

/// Returns what reading tells for the inventory.
fn reading(document: &Document, untimed: Option<Damage>) -> Reading {
    let told = |is_kept: bool| {
        let seen = document.issues.iter();
        seen.filter(|seen| seen.issue.is_kept() == is_kept)
            .cloned()
            .collect()
    };
    let damage = document.issues.first().map(|seen| Damage {
        what: seen.issue.description().to_owned(),
        byte_offset: Some(seen.first.offset),
        index: seen.first.index,
        is_truncation: false,
    });
    let truncation = document.truncated_at.map(|place| Damage {
        what: "the text ends too early".to_owned(),
        byte_offset: Some(place.offset),
        index: place.index,
        is_truncation: true,
    });
    let all = damage.into_iter().chain(truncation).chain(untimed);
    Reading {
        truncated_at: document.truncated_at.map(|place| place.offset),
        repaired: told(true),
        skipped: told(false),
        first_damage: all.min_by_key(|damage| damage.byte_offset.unwrap_or(u64::MAX)),
    }
}
