//! The store under everything that can happen to it.

mod cleaning;
mod damage;
mod obstacles;
mod processes;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use tempfile::TempDir;
use veloq_core::{Explain, SidecarStatus};

use super::draft::Draft;
use super::error::Error;
use super::place::is_passing_name;
use super::*;

/// What a test's builds fail with.
#[derive(Debug, thiserror::Error)]
enum BuildError {
    #[error("store")]
    Store(#[from] Error),
    #[error("write")]
    Write(#[source] io::Error),
    #[error("another")]
    Other,
}

/// A trace in a folder of its own, and a cache folder.
struct Fixture {
    folder: TempDir,
    store: Store,
}

impl Fixture {
    fn new() -> Self {
        Self::named("run.json.gz")
    }

    fn named(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("traces")).unwrap();
        let input = folder.path().join("traces").join(name);
        fs::write(&input, "the trace").unwrap();
        let store = Store::with_cache(&input, Some(&folder.path().join("cache")));
        Self { folder, store }
    }

    fn without_cache(mut self) -> Self {
        self.store = Store::with_cache(&self.store.input, None);
        self
    }

    fn input(&self) -> &Path {
        &self.store.input
    }

    /// The folder of what is derived from the trace, beside it.
    fn root(&self) -> PathBuf {
        self.store.places[0].root().to_owned()
    }

    /// The tables' folder beside the trace.
    fn beside(&self) -> PathBuf {
        self.store.places[0].dir()
    }

    /// The tables' folder in the cache.
    fn cached(&self) -> PathBuf {
        self.store.places[1].dir()
    }

    fn build(&self) -> Obtained {
        obtain(&self.store, false)
    }

    /// Every file and folder beside the trace and in the cache, links not followed, sorted.
    fn listing(&self) -> Vec<String> {
        fn walk(base: &Path, dir: &Path, names: &mut Vec<String>) {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                names.push(
                    entry
                        .path()
                        .strip_prefix(base)
                        .unwrap()
                        .to_string_lossy()
                        .into_owned(),
                );
                if entry.file_type().unwrap().is_dir() {
                    walk(base, &entry.path(), names);
                }
            }
        }
        let mut names = Vec::new();
        walk(self.folder.path(), self.folder.path(), &mut names);
        names.sort();
        names
    }
}

/// What the tables hold: derived from the trace, so that tables of another trace show. `events` is large
/// enough not to be read whole each time.
fn table_content(input: &[u8], table: &str) -> Vec<u8> {
    let unit = format!("{table} of {} ", String::from_utf8_lossy(input));
    let length = if table == "events" { 600_000 } else { 3_000 };
    unit.bytes().cycle().take(length).collect()
}

fn write_tables(input: &Path, draft: &Draft) -> Result<Contents, BuildError> {
    let content = fs::read(input).map_err(BuildError::Write)?;
    for table in TABLES {
        let mut file = fs::File::create(draft.path(table)).map_err(BuildError::Write)?;
        for chunk in table_content(&content, table).chunks(50_000) {
            file.write_all(chunk).map_err(BuildError::Write)?;
        }
    }
    Ok(contents())
}

fn contents() -> Contents {
    Contents {
        rows: [5, 4, 3, 2, 1],
        inventory: RawValue::from_string("{\"kernels\":7}".to_owned()).unwrap(),
    }
}

/// Obtains tables, and makes sure that they are those of the trace as it is now.
fn obtain(store: &Store, force: bool) -> Obtained {
    let obtained = store
        .obtain(force, |draft| write_tables(&store.input, draft))
        .unwrap();
    assert_is_right(&obtained.sidecar, &store.input);
    obtained
}

fn assert_is_right(sidecar: &Sidecar, input: &Path) {
    let content = fs::read(input).unwrap();
    for table in TABLES {
        let mut read = Vec::new();
        io::Read::read_to_end(&mut sidecar.open(table).unwrap(), &mut read).unwrap();
        assert!(read == table_content(&content, table), "{table}");
    }
    assert_eq!(sidecar.manifest().inventory.get(), "{\"kernels\":7}");
    sidecar.verify().unwrap();
    assert!(sidecar.is_current());
}

#[test]
fn builds_once_and_leaves_nothing_else_behind() {
    let trace = Fixture::new();
    assert!(matches!(trace.store.find().unwrap(), Found::Missing));
    let first = trace.build();
    assert!(first.built);
    assert_eq!(first.sidecar.dir(), trace.beside());
    assert_eq!(
        trace.listing(),
        [
            "traces",
            "traces/run.json.gz",
            "traces/run.json.gz.veloq",
            "traces/run.json.gz.veloq/pytorch",
            "traces/run.json.gz.veloq/pytorch/CACHEDIR.TAG",
            "traces/run.json.gz.veloq/pytorch/args.parquet",
            "traces/run.json.gz.veloq/pytorch/collectives.parquet",
            "traces/run.json.gz.veloq/pytorch/events.parquet",
            "traces/run.json.gz.veloq/pytorch/manifest.json",
            "traces/run.json.gz.veloq/pytorch/strings.parquet",
            "traces/run.json.gz.veloq/pytorch/tracks.parquet",
        ]
    );
    assert!(!trace.build().built);
    assert!(matches!(trace.store.find().unwrap(), Found::Ready(_)));
    assert!(obtain(&trace.store, true).built);
    assert_eq!(trace.listing().len(), 11);
}

#[test]
fn large_tables_carry_a_stamp_and_small_ones_are_read_whole() {
    let trace = Fixture::new();
    let sidecar = trace.build().sidecar;
    let tables = &sidecar.manifest().tables;
    assert_eq!(
        tables.iter().map(|table| table.rows).collect::<Vec<_>>(),
        [5, 4, 3, 2, 1]
    );
    assert_eq!(tables[0].bytes, 600_000);
    if cfg!(target_os = "linux") {
        assert!(tables[0].stamp.is_some());
    }
    assert!(
        tables[1..]
            .iter()
            .all(|table| table.stamp.is_none() && table.checksum == table.tail_checksum)
    );
}

#[test]
fn a_replaced_trace_of_the_same_size_has_its_own_tables() {
    let trace = Fixture::new();
    let before = trace.build().sidecar;
    fs::write(trace.input(), "one trace").unwrap();
    assert!(matches!(trace.store.find().unwrap(), Found::Stale(_)));
    assert_eq!(statuses(&trace.store), [SidecarStatus::Stale; 5]);
    assert!(trace.build().built);
    assert!(!trace.build().built);
    // Who still reads the old ones can tell.
    assert!(!before.is_current());
    assert_eq!(before.open("events").unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_trace_that_is_replaced_while_it_is_read_has_no_tables() {
    let trace = Fixture::new();
    let error = trace
        .store
        .obtain(false, |draft| {
            let contents = write_tables(trace.input(), draft);
            fs::write(trace.input(), "one trace").unwrap();
            contents
        })
        .unwrap_err();
    let BuildError::Store(error) = error else {
        panic!("{error}")
    };
    assert_eq!((error.code(), error.class().exit_status()), ("input.changed", 3));
    assert_eq!(trace.listing(), ["traces", "traces/run.json.gz"]);

    let error = trace
        .store
        .obtain(false, |draft| {
            let contents = write_tables(trace.input(), draft);
            fs::remove_file(trace.input()).unwrap();
            contents
        })
        .unwrap_err();
    assert!(matches!(error, BuildError::Store(Error::InputMissing { .. })));
}

#[test]
fn a_build_that_fails_leaves_nothing_and_keeps_what_was_there() {
    let trace = Fixture::new();
    let fail = |draft: &Draft| {
        fs::write(draft.path("events"), "half").map_err(BuildError::Write)?;
        Err(BuildError::Other)
    };
    assert!(matches!(trace.store.obtain(false, fail), Err(BuildError::Other)));
    assert_eq!(trace.listing(), ["traces", "traces/run.json.gz"]);
    trace.build();
    let listing = trace.listing();
    assert!(matches!(trace.store.obtain(true, fail), Err(BuildError::Other)));
    assert_eq!(trace.listing(), listing);
    assert!(!trace.build().built);
}

#[test]
fn a_build_without_one_of_its_tables_is_a_fault_of_ours() {
    let trace = Fixture::new();
    let error = trace
        .store
        .obtain(false, |draft| {
            let contents = write_tables(trace.input(), draft)?;
            fs::remove_file(draft.path("tracks")).map_err(BuildError::Write)?;
            Ok(contents)
        })
        .unwrap_err();
    let BuildError::Store(error) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (error.code(), error.class().exit_status()),
        ("internal.table_not_written", 70)
    );
    assert_eq!(trace.listing(), ["traces", "traces/run.json.gz"]);
}

#[test]
fn the_first_of_two_builds_is_published() {
    let trace = Fixture::new();
    // As where locks do not work: the second does not wait for the first.
    let hasty = Store {
        patience: Some(Duration::ZERO),
        ..trace.store.clone()
    };
    let outer = trace
        .store
        .obtain(false, |draft| {
            assert!(obtain(&hasty, false).built);
            write_tables(trace.input(), draft)
        })
        .unwrap();
    assert_is_right(&outer.sidecar, trace.input());
    assert_eq!(trace.listing().len(), 11);
}

#[test]
fn a_clock_that_went_back_changes_nothing() {
    let trace = Fixture::new();
    let ahead = std::time::SystemTime::now() + Duration::from_secs(1_000_000);
    let set = |path: &Path| {
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(ahead)
            .unwrap()
    };
    set(trace.input());
    assert!(trace.build().built);
    for table in TABLES {
        set(&trace.beside().join(format!("{table}.parquet")));
    }
    set(&trace.beside().join("manifest.json"));
    assert!(!trace.build().built, "other times only cost a closer look");
}

/// The status of each table as `prep --status` tells it.
fn statuses(store: &Store) -> Vec<SidecarStatus> {
    store
        .status()
        .unwrap()
        .sidecars
        .iter()
        .map(|table| table.status)
        .collect()
}

#[test]
fn status_tells_of_every_table_and_builds_nothing() {
    let trace = Fixture::new();
    assert_eq!(statuses(&trace.store), [SidecarStatus::Missing; 5]);
    assert_eq!(trace.listing(), ["traces", "traces/run.json.gz"]);
    trace.build();
    let report = trace.store.status().unwrap();
    assert_eq!((report.artifact_dir, report.input_bytes), (trace.beside(), 9));
    let events = &report.sidecars[0];
    assert_eq!(
        (events.name.as_str(), events.status),
        ("events", SidecarStatus::Ready)
    );
    assert_eq!((events.rows, events.bytes), (Some(5), Some(600_000)));
    assert_eq!(events.path, trace.beside().join("events.parquet"));
    assert_eq!(
        report
            .sidecars
            .iter()
            .map(|table| table.name.as_str())
            .collect::<Vec<_>>(),
        TABLES
    );
    fs::remove_file(trace.input()).unwrap();
    assert_eq!(trace.store.status().unwrap_err().code(), "input.missing");
}

#[cfg(unix)]
#[test]
fn who_may_not_read_the_trace_may_not_read_its_tables() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let trace = Fixture::new();
    fs::set_permissions(trace.input(), fs::Permissions::from_mode(0o600)).unwrap();
    trace.build();
    assert_eq!(mode(&trace.beside()), 0o700);
    fs::set_permissions(trace.input(), fs::Permissions::from_mode(0o640)).unwrap();
    trace.build();
    assert_eq!(mode(&trace.beside()) & !0o050, 0o700);
}
