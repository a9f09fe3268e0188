//! The stages of opening a trace one by one, for benches. No part of the source's interface.

use std::path::{Path, PathBuf};

use veloq_core::Failure;

use crate::ingest::build::{Workplace, collect, write_tables};
use crate::ingest::collect::Collected;
use crate::ingest::derive::{Derived, derive};
use crate::kineto::block::BlockSink;
use crate::kineto::error::ReadError;
use crate::kineto::event::Event;
use crate::kineto::metadata::Header;
use crate::kineto::reader::{Collector, Document, First, ReadOptions, read};
use crate::open::TextReader;
use crate::open_error::OpenError;

/// Text is unpacked in pieces of this size, as when a trace is opened.
const PIECE_BYTES: usize = 1 << 20;

/// Unpacks a trace and returns the bytes of its text.
///
/// # Errors
/// When the file cannot be read.
pub fn unpack(path: &Path) -> std::io::Result<u64> {
    let mut reader = TextReader::open(path, None)?;
    let mut text = Vec::new();
    let mut bytes = 0;
    loop {
        text.clear();
        let has_ended = reader.append_to(&mut text, PIECE_BYTES)?;
        bytes += text.len() as u64;
        if has_ended {
            return Ok(bytes);
        }
    }
}

/// Counts elements, and drops them.
#[derive(Default)]
struct Counter(u64);

impl BlockSink for Counter {
    fn event(&mut self, _: u64, _: u64, _: &Event<'_>) {
        self.0 += 1;
    }
}

impl Collector for Counter {
    type Block = Self;

    fn block() -> Self {
        Self::default()
    }

    fn absorb(&mut self, block: Self, _: First) -> Result<(), ReadError> {
        self.0 += block.0;
        Ok(())
    }

    fn rows(&self) -> u64 {
        // Nothing is kept.
        0
    }
}

/// Unpacks and parses a trace, and returns how many elements it has, flow markers among them.
///
/// # Errors
/// When the trace cannot be read or is none.
pub fn parse(path: &Path, threads: usize) -> Result<u64, Failure> {
    let mut counter = Counter::default();
    let options = ReadOptions {
        workers: threads,
        ..ReadOptions::default()
    };
    read(path, options, &mut counter).map_err(OpenError::from)?;
    Ok(counter.0)
}

/// A trace that was read into columns.
pub struct Columns {
    collected: Collected,
    document: Document,
}

/// What links the rows of a trace.
pub struct Links(Derived);

impl Columns {
    /// Unpacks, parses and collects a trace; the table of args is written into `folder` on the way.
    ///
    /// # Errors
    /// When the trace cannot be read or is none, or the table cannot be written.
    pub fn collect(path: &Path, threads: usize, folder: &Path) -> Result<Self, Failure> {
        let file = in_folder(folder);
        let (collected, document, _) = collect(path, &workplace(&file, threads))?;
        Ok(Self { collected, document })
    }

    /// Returns how many rows there are.
    pub fn rows(&self) -> usize {
        self.collected.rows.len()
    }

    /// Links the rows.
    pub fn link(&mut self) -> Links {
        let header = Header::read(&self.document.keys);
        Links(derive(&mut self.collected, &header, None, 1))
    }

    /// Writes all tables but that of the args.
    ///
    /// # Errors
    /// When a table cannot be written.
    pub fn write(&self, links: &Links, threads: usize, folder: &Path) -> Result<(), Failure> {
        let file = in_folder(folder);
        let place = workplace(&file, threads);
        write_tables(&self.collected, &links.0, &place).map(drop)?;
        Ok(())
    }
}

fn in_folder(folder: &Path) -> impl Fn(&str) -> PathBuf + Sync {
    move |table: &str| folder.join(format!("{table}.parquet"))
}

fn workplace(file: &(dyn Fn(&str) -> PathBuf + Sync), threads: usize) -> Workplace<'_> {
    Workplace {
        file,
        threads,
        progress: None,
        interrupt: None,
    }
}
