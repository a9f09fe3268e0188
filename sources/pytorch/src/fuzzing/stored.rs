//! Stored tables with something else in their place.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;
use veloq_core::{Answer, ErasedVerb, Failure, Input, PrepOptions};

use crate::prep;
use crate::session::TraceSession;
use crate::sidecar::forge::{Forgery, forge};
use crate::verbs::VERBS;

/// The answers of all verbs.
type Answers = Vec<Result<Box<dyn Answer>, Failure>>;

/// Asks every verb on a trace of whose tables one is not what it was; nothing when that is noticed and they
/// cannot be opened.
pub(super) fn ask_forged(forgery: Forgery<'_>) -> Answers {
    static STORED: OnceLock<Mutex<Stored>> = OnceLock::new();
    let stored = STORED.get_or_init(|| Mutex::new(Stored::new()));
    let stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
    for (path, content) in &stored.intact {
        fs::write(path, content).expect("the folder takes a file");
    }
    forge(&stored.tables, forgery).expect("what is stored was intact");
    match prep::open(&stored.input, &options()) {
        Ok(session) => ask_all(&session, &stored.row_ids),
        Err(_) => Vec::new(),
    }
}

fn ask_all(session: &TraceSession, row_ids: &[Value]) -> Answers {
    let ask = |verb: &&dyn ErasedVerb<TraceSession>| {
        let request = match verb.spec().name {
            "inspect" | "correlate" => json!({ "row_ids": row_ids }),
            _ => json!({}),
        };
        verb.run_json(session, request)
    };
    VERBS.iter().map(ask).collect()
}

fn options() -> PrepOptions<'static> {
    PrepOptions {
        threads: Some(1),
        ..PrepOptions::default()
    }
}

/// A trace with its tables.
struct Stored {
    input: Input,
    row_ids: Vec<Value>,
    tables: PathBuf,
    /// The files of the tables and the manifest.
    intact: Vec<(PathBuf, Vec<u8>)>,
    _folder: TempDir,
}

impl Stored {
    fn new() -> Self {
        let folder = TempDir::new().expect("there is a folder for temporary files");
        let path = folder.path().join("trace.json");
        let fixture = "../../fixtures/pytorch/one_kernel.pt.trace.json";
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture), &path).expect("the fixture is there");
        let input = Input::new(path);
        let session = prep::open(&input, &options()).expect("the fixture is a trace");
        let search = VERBS.iter().find(|verb| verb.spec().name == "search");
        let found = search.and_then(|search| search.run_json(&session, json!({})).ok());
        let found = found.and_then(|found| serde_json::to_value(&found).ok());
        let rows = found.as_ref().and_then(|found| found["rows"].as_array());
        let row_ids = rows
            .expect("a search is answered")
            .iter()
            .map(|row| row["row_id"].clone());
        let tables = PathBuf::from(session.artifact_dir());
        let files = fs::read_dir(&tables).expect("the tables are there");
        let intact = files
            .map(|file| file.expect("the folder can be read").path())
            .map(|path| (path.clone(), fs::read(path).expect("the file can be read")))
            .collect();
        Self {
            input,
            row_ids: row_ids.collect(),
            tables,
            intact,
            _folder: folder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page index of this table is said to be before the file; the reader of Parquet panics on it.
    #[test]
    fn tables_that_readers_panic_on_are_told() {
        let corpus = include_bytes!("../../../../tests/fuzz/corpus/sidecar/index_before_the_file");
        let (table, content) = corpus.split_first().unwrap();
        let answers = ask_forged(Forgery::Table(usize::from(*table) - 2, content));
        let errors = answers.iter().filter_map(|answer| answer.as_ref().err());
        let codes: Vec<&str> = errors.map(Failure::code).collect();
        assert!(codes.contains(&"internal.tables"), "{codes:?}");
    }
}
