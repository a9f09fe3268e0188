//! `info`: what a file is, without reading it through.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use clap::{ArgMatches, Args};
use schemars::JsonSchema;
use serde::Serialize;
use veloq_core::{
    Cell, Column, Detection, ErasedSource, Example, Failure, Input, Page, SidecarStatus, Table, TableView,
    Unit, answer_schema,
};

use super::{Asked, Meta, NoAuxiliary};
use crate::framework::{SidecarRow, status_word};
use crate::input::{InputError, Look, look, traces_in};
use crate::output::Output;
use crate::render::count_table;
use crate::usage::read_args;

/// Tells size, compression, source and sidecars of a file, or of each trace in a folder; opens no trace.
#[derive(Debug, Clone, Args)]
struct InfoRequest {
    /// A file, or a folder with traces
    path: PathBuf,
}

/// The file, or the traces of a folder by path.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct InfoResponse(Page<FileRow, NoAuxiliary>);

/// A file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileRow {
    /// `file|<path>`.
    key: String,
    /// The path, as given or below the folder as given.
    path: String,
    /// Its size on disk.
    size_bytes: u64,
    /// When it was last written, in whole seconds since 1970; null when the file system does not tell.
    modified_s: Option<i64>,
    /// `gzip`, `zstd`, `xz`, `bzip2` or `zip`, going by the first bytes; null when none of them.
    compression: Option<String>,
    /// The source that claims it; null when it has to be named.
    source: Option<String>,
    /// What each source says of it, by source.
    detections: Vec<DetectionRow>,
    /// Where the sidecars are, or would be; null when no source can read it.
    artifact_dir: Option<String>,
    /// What is stored of it.
    sidecars: Vec<SidecarRow>,
}

/// What a source says of a file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DetectionRow {
    /// The source.
    source: String,
    /// How sure it is.
    claim: Claim,
    /// Why; null for no.
    reason: Option<String>,
}

/// How sure a source is of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Claim {
    /// Its own: verbs work without naming the source.
    Yes,
    /// Readable when the source is named.
    Maybe,
    /// Not readable.
    No,
}

impl TableView for InfoResponse {
    fn table(&self) -> Table {
        let columns = vec![
            Column::detail("key", Unit::Id),
            Column::new("path", Unit::Text),
            Column::new("size_bytes", Unit::Bytes),
            Column::detail("modified_s", Unit::Count),
            Column::new("compression", Unit::Text),
            Column::new("source", Unit::Text),
            Column::new("sidecars", Unit::Text),
            Column::detail("artifact_dir", Unit::Text),
        ];
        let rows = self.0.rows.iter().map(|row| {
            vec![
                row.key.as_str().into(),
                row.path.as_str().into(),
                row.size_bytes.into(),
                row.modified_s.into(),
                row.compression.as_deref().into(),
                row.source.as_deref().into(),
                worst(&row.sidecars).map(status_word).into(),
                row.artifact_dir.as_deref().into(),
            ]
        });
        let mut table = count_table(columns, rows.collect::<Vec<Vec<Cell>>>(), self.0.total_matched);
        for row in self.0.rows.iter().filter(|row| row.source.is_none()) {
            let readers: Vec<&str> = row
                .detections
                .iter()
                .filter(|detection| detection.claim == Claim::Maybe)
                .map(|detection| detection.source.as_str())
                .collect();
            table.notes.push(if readers.is_empty() {
                format!("No source reads {}.", row.path)
            } else {
                format!(
                    "No source claims {} by its name; it can be tried with {}.",
                    row.path,
                    readers.join(" or ")
                )
            });
        }
        table
    }
}

/// Returns the state that a file's sidecars add up to: ready only when all are.
fn worst(sidecars: &[SidecarRow]) -> Option<SidecarStatus> {
    let is_any = |status| sidecars.iter().any(|sidecar| sidecar.status == status);
    [
        SidecarStatus::Corrupt,
        SidecarStatus::Stale,
        SidecarStatus::Missing,
        SidecarStatus::Ready,
    ]
    .into_iter()
    .find(|status| is_any(*status))
}

pub(super) const META: Meta = Meta {
    name: "info",
    about: "What is this file, who reads it, and is it prepared? Opens no trace",
    shape: "<PATH>",
    examples: &[
        Example {
            asks: "One file",
            command: "info TRACE",
        },
        Example {
            asks: "All traces of a folder",
            command: "info . --format table",
        },
    ],
    augment: InfoRequest::augment_args,
    answer,
    schema: Some(|| answer_schema::<InfoResponse>(None, "info", false)),
};

fn answer(asked: &Asked<'_>, matches: &ArgMatches) -> Result<Output, Failure> {
    let InfoRequest { path } = read_args(matches)?;
    let looks = if path.is_dir() {
        traces_in(&path, asked.sources).map_err(|source| InputError::Unreadable { path, source })?
    } else {
        vec![look(&path)?]
    };
    let mut rows = Vec::new();
    for look in &looks {
        rows.push(file_row(look, asked.sources)?);
    }
    let total = rows.len() as u64;
    Ok(Output::Answer(Box::new(InfoResponse(Page::new(
        rows,
        total,
        NoAuxiliary {},
    )))))
}

fn file_row(look: &Look, sources: &[&'static dyn ErasedSource]) -> Result<FileRow, Failure> {
    let path = display(&look.path);
    let mut by_priority = sources.to_vec();
    by_priority.sort_by_key(|source| std::cmp::Reverse(source.spec().priority));
    let claiming = by_priority
        .iter()
        .find(|source| look.detect(**source).is_claimed());
    let reading = claiming.or_else(|| {
        by_priority
            .iter()
            .find(|source| look.detect(**source) != Detection::No)
    });
    let stored = match reading {
        Some(source) => Some(source.sidecars(&Input::new(&look.path))?),
        None => None,
    };
    Ok(FileRow {
        key: format!("file|{path}"),
        path,
        size_bytes: look.metadata.len(),
        modified_s: modified_s(look),
        compression: look.compression().map(str::to_owned),
        source: claiming.map(|source| source.spec().name.to_owned()),
        detections: sources
            .iter()
            .map(|source| detection_row(look, *source))
            .collect(),
        artifact_dir: stored.as_ref().map(|stored| display(&stored.artifact_dir)),
        sidecars: stored.map_or_else(Vec::new, |stored| {
            stored.sidecars.into_iter().map(Into::into).collect()
        }),
    })
}

fn detection_row(look: &Look, source: &dyn ErasedSource) -> DetectionRow {
    let (claim, reason) = match look.detect(source) {
        Detection::Yes(reason) => (Claim::Yes, Some(reason)),
        Detection::Maybe(reason) => (Claim::Maybe, Some(reason)),
        Detection::No => (Claim::No, None),
    };
    DetectionRow {
        source: source.spec().name.to_owned(),
        claim,
        reason: reason.map(str::to_owned),
    }
}

fn modified_s(look: &Look) -> Option<i64> {
    let modified = look.metadata.modified().ok()?;
    match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).ok(),
        Err(before) => i64::try_from(before.duration().as_secs())
            .ok()
            .map(|seconds| -seconds),
    }
}

fn display(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
