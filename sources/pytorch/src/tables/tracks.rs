//! The `tracks` table: threads of processes, and streams of devices.

use std::sync::Arc;

use arrow::array::{StringArray, UInt32Array};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;

use crate::ingest::columns::{Id, NONE, Strings, Tracks};
use crate::ingest::names::TrackNames;
use crate::link::rank::Ranks;

use super::{TableDef, column_def, int64};

/// The `tracks` table.
pub(crate) static TRACKS: TableDef = TableDef {
    name: "tracks",
    doc: "One row a pair of process and thread id as written, in the order of their first row.",
    columns: &[
        column_def!("track", UInt32, Plain, "track id"),
        column_def!("rank", Int64, null, Plain, "rank"),
        column_def!("pid", Int64, null, Plain, "process id, where it is an integer"),
        column_def!(
            "pid_text",
            Utf8,
            null,
            Plain,
            "process id, where it is other text"
        ),
        column_def!("tid", Int64, null, Plain, "thread id, where it is an integer"),
        column_def!("tid_text", Utf8, null, Plain, "thread id, where it is other text"),
        column_def!("process_name", Utf8, null, Plain, "the process's name"),
        column_def!(
            "thread_name",
            Utf8,
            null,
            Plain,
            "the thread's most specific name"
        ),
    ],
};

/// Returns all tracks.
pub(crate) fn tracks_batch(
    tracks: &Tracks,
    strings: &Strings,
    ranks: &Ranks,
    names: &TrackNames,
) -> Result<RecordBatch, ArrowError> {
    let numbers = || 0..u32::try_from(tracks.keys().len()).expect("fewer tracks than rows");
    let integer = |id: Id| if let Id::Int(value) = id { value } else { NONE };
    let text = |id: Id| {
        if let Id::Text(number) = id {
            Some(strings.get(number))
        } else {
            None
        }
    };
    let keys = tracks.keys();
    RecordBatch::try_new(
        TRACKS.arrow_schema(),
        vec![
            Arc::new(UInt32Array::from_iter_values(numbers())),
            int64(numbers().map(|track| ranks.rank_of(track))),
            int64(keys.iter().map(|key| integer(key.pid))),
            Arc::new(StringArray::from_iter(keys.iter().map(|key| text(key.pid)))),
            int64(keys.iter().map(|key| integer(key.tid))),
            Arc::new(StringArray::from_iter(keys.iter().map(|key| text(key.tid)))),
            Arc::new(StringArray::from_iter(
                numbers().map(|track| names.process(track, tracks, strings)),
            )),
            Arc::new(StringArray::from_iter(
                numbers().map(|track| names.thread(track, strings)),
            )),
        ],
    )
}
