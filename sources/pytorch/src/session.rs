//! An opened trace: its tables and what is known of it as a whole.

use std::sync::OnceLock;

use arrow::array::{Array, AsArray, StringArray};
use veloq_core::{Capability, Finding, Preparation, Session, TraceSpan, Trust};

use crate::error::Error;
use crate::inventory::findings::code;
use crate::inventory::{Inventory, RankFacts};
use crate::query::engine::{BatchColumns, Engine, value};
use crate::query::event::IdValue;
use crate::tables::{texts, tracks};

/// The texts of the `strings` table, by string id.
#[derive(Debug)]
pub(crate) struct StringTable {
    chunks: Vec<StringArray>,
    /// String id of each chunk's first text.
    firsts: Vec<usize>,
    count: usize,
}

impl StringTable {
    /// Returns the text of a string id; empty for an id never given out.
    pub(crate) fn get(&self, id: u32) -> &str {
        let id = id as usize;
        let Some(chunk) = self.firsts.partition_point(|first| *first <= id).checked_sub(1) else {
            return "";
        };
        let at = id - self.firsts[chunk];
        if at < self.chunks[chunk].len() {
            self.chunks[chunk].value(at)
        } else {
            ""
        }
    }

    /// Returns all texts in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.chunks
            .iter()
            .flat_map(|chunk| (0..chunk.len()).map(|at| chunk.value(at)))
    }
}

/// A thread of a process, or a stream of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Track {
    pub(crate) rank: Option<i64>,
    pub(crate) pid: Option<IdValue>,
    pub(crate) tid: Option<IdValue>,
    pub(crate) process_name: Option<String>,
    pub(crate) thread_name: Option<String>,
}

impl Track {
    /// Returns the track in words: `251/4251 (pt_autograd_0)`, after its rank where `has_rank` asks for it.
    pub(crate) fn label(&self, has_rank: bool) -> String {
        let id = |id: &Option<IdValue>| id.as_ref().map_or("?".to_owned(), IdValue::to_string);
        let mut label = format!("{}/{}", id(&self.pid), id(&self.tid));
        if let (true, Some(rank)) = (has_rank, self.rank) {
            label = format!("rank {rank}: {label}");
        }
        match &self.thread_name {
            Some(name) => format!("{label} ({name})"),
            None => label,
        }
    }
}

/// An opened PyTorch trace.
#[derive(Debug)]
pub struct TraceSession {
    path: String,
    engine: Engine,
    inventory: Inventory,
    preparation: Preparation,
    strings: OnceLock<StringTable>,
    tracks: OnceLock<Vec<Track>>,
}

impl TraceSession {
    /// Returns a session on complete tables.
    pub(crate) fn new(path: String, engine: Engine, inventory: Inventory, preparation: Preparation) -> Self {
        Self {
            path,
            engine,
            inventory,
            preparation,
            strings: OnceLock::new(),
            tracks: OnceLock::new(),
        }
    }

    /// Returns the query engine over the tables.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the trace's path as given.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the trace's size on disk.
    pub(crate) fn input_bytes(&self) -> u64 {
        self.preparation.input_bytes
    }

    /// Returns the folder of the trace's tables as text.
    pub(crate) fn artifact_dir(&self) -> String {
        self.preparation.artifact_dir.to_string_lossy().into_owned()
    }

    /// Returns what is known of the trace as a whole.
    pub(crate) fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Returns the texts; read on first use.
    ///
    /// # Errors
    /// What the engine reports.
    pub(crate) fn strings(&self) -> Result<&StringTable, Error> {
        if let Some(strings) = self.strings.get() {
            return Ok(strings);
        }
        let mut table = StringTable {
            chunks: Vec::new(),
            firsts: Vec::new(),
            count: 0,
        };
        for batch in self.engine.scan(&texts::STRINGS, &["text"], None)? {
            table.firsts.push(table.count);
            table.count += batch.num_rows();
            table.chunks.push(batch.column(0).as_string::<i32>().clone());
        }
        Ok(self.strings.get_or_init(|| table))
    }

    /// Returns all tracks by track id; read on first use.
    ///
    /// # Errors
    /// What the engine reports.
    pub(crate) fn tracks(&self) -> Result<&[Track], Error> {
        if let Some(tracks) = self.tracks.get() {
            return Ok(tracks);
        }
        let columns: Vec<&str> = tracks::TRACKS.columns.iter().map(|column| column.name).collect();
        let mut all = Vec::new();
        for batch in self.engine.scan(&tracks::TRACKS, &columns, None)? {
            let text = |name: &str, at: usize| {
                let texts = batch.texts(name);
                texts.is_valid(at).then(|| texts.value(at).to_owned())
            };
            let id = |number: &str, other: &str, at: usize| {
                value(batch.i64s(number), at)
                    .map(IdValue::Int)
                    .or_else(|| text(other, at).map(IdValue::Text))
            };
            for at in 0..batch.num_rows() {
                all.push(Track {
                    rank: value(batch.i64s("rank"), at),
                    pid: id("pid", "pid_text", at),
                    tid: id("tid", "tid_text", at),
                    process_name: text("process_name", at),
                    thread_name: text("thread_name", at),
                });
            }
        }
        Ok(self.tracks.get_or_init(|| all))
    }

    /// Returns a track.
    ///
    /// # Errors
    /// What the engine reports; `internal.tables` when the tables contradict each other.
    pub(crate) fn track(&self, id: u32) -> Result<&Track, Error> {
        self.tracks()?.get(id as usize).ok_or(Error::Internal {
            what: "an event's track is not in `tracks`",
        })
    }

    /// Returns the ranks of the file, each with its devices.
    pub(crate) fn ranks(&self) -> &[RankFacts] {
        &self.inventory.ranks
    }

    /// Returns the trust of an answer: the findings with one of the given codes, and those that bear on
    /// every number.
    pub(crate) fn trust(&self, codes: &[&str]) -> Trust {
        let touches = |finding: &&Finding| {
            codes.contains(&finding.code.as_str()) || code::INPUT.contains(&finding.code.as_str())
        };
        Trust::of(
            self.inventory
                .trust
                .findings
                .iter()
                .filter(touches)
                .cloned()
                .collect(),
        )
    }

    /// Returns whether device work was launched, but its rows were not recorded: device times are unknown.
    pub(crate) fn is_gpu_missing(&self) -> bool {
        self.inventory
            .trust
            .findings
            .iter()
            .any(|finding| finding.code == code::GPU_MISSING)
    }

    /// Checks that the trace holds what a question needs.
    ///
    /// # Errors
    /// `capability.missing`, with the reason the trace's capabilities give.
    pub(crate) fn require(&self, id: &'static str) -> Result<(), Error> {
        match self.inventory.capabilities.get(id) {
            Some(Capability {
                available: false,
                reason,
                ..
            }) => Err(Error::CapabilityMissing {
                id,
                reason: reason.clone(),
            }),
            _ => Ok(()),
        }
    }
}

impl Session for TraceSession {
    fn span(&self) -> Option<TraceSpan> {
        self.inventory.span.as_ref().map(|span| TraceSpan {
            origin_ns: span.origin_ns.clone(),
            span_ns: span.span_ns,
            clock: if span.is_unix { "unix" } else { "unknown" },
        })
    }

    fn preparation(&self) -> &Preparation {
        &self.preparation
    }
}
