//! What `clean` removes, and what it leaves.

use super::*;

/// The names of what was removed and kept, without the folder they are in.
fn names(trace: &Fixture, paths: impl IntoIterator<Item = PathBuf>) -> Vec<String> {
    let mut names: Vec<String> = paths
        .into_iter()
        .map(|path| {
            path.strip_prefix(trace.root())
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

fn kept(trace: &Fixture) -> Vec<String> {
    let report = trace.store.clean().unwrap();
    names(trace, report.kept.into_iter().map(|(path, _)| path))
}

#[test]
fn removes_its_own_files_and_folders() {
    let trace = Fixture::new();
    trace.build();
    let report = trace.store.clean().unwrap();
    assert!(report.kept.is_empty());
    assert_eq!(
        report
            .removed
            .iter()
            .map(|(path, bytes)| (path.strip_prefix(trace.root()).unwrap().to_str().unwrap(), *bytes))
            .collect::<Vec<_>>()[1..6],
        [
            ("pytorch/args.parquet", 3_000),
            ("pytorch/collectives.parquet", 3_000),
            ("pytorch/events.parquet", 600_000),
            ("pytorch/strings.parquet", 3_000),
            ("pytorch/tracks.parquet", 3_000),
        ]
    );
    assert_eq!(report.removed.last().unwrap(), &(trace.root(), 0));
    assert_eq!(trace.listing(), ["traces", "traces/run.json.gz"]);
    assert_eq!(fs::read_to_string(trace.input()).unwrap(), "the trace");
    assert!(trace.store.clean().unwrap().removed.is_empty());
}

#[test]
fn cleans_the_cache_too_and_the_trace_may_be_gone() {
    let trace = Fixture::new();
    fs::write(trace.root(), "mine").unwrap();
    trace.build();
    fs::remove_file(trace.root()).unwrap();
    trace.build();
    assert!(trace.beside().exists() || trace.cached().exists());
    fs::remove_file(trace.input()).unwrap();
    trace.store.clean().unwrap();
    assert_eq!(trace.listing(), ["cache", "traces"]);
}

#[test]
fn leaves_a_folder_it_did_not_make() {
    let trace = Fixture::new();
    fs::create_dir_all(trace.beside()).unwrap();
    for name in ["manifest.json", "events.parquet", "notes.txt"] {
        fs::write(trace.beside().join(name), "mine").unwrap();
    }
    let listing = trace.listing();
    assert_eq!(kept(&trace), ["pytorch"]);
    assert_eq!(trace.listing(), listing);
}

#[test]
fn leaves_an_empty_folder_it_did_not_make() {
    let trace = Fixture::new();
    fs::create_dir(trace.root()).unwrap();
    assert_eq!(kept(&trace), [""]);
    assert!(trace.root().exists());
}

#[test]
fn leaves_foreign_files_among_its_own() {
    let trace = Fixture::new();
    trace.build();
    fs::create_dir(trace.beside().join("plots")).unwrap();
    fs::write(trace.beside().join("notes.txt"), "mine").unwrap();
    fs::create_dir(trace.root().join("nsys")).unwrap();
    fs::write(trace.root().join(".pytorch.lock"), "mine").unwrap();
    let foreign_draft = ".pytorch.tmp-1-0123456789abcdef";
    fs::create_dir(trace.root().join(foreign_draft)).unwrap();
    fs::write(trace.root().join(foreign_draft).join("events.parquet"), "mine").unwrap();
    assert_eq!(
        kept(&trace),
        [
            ".pytorch.lock",
            foreign_draft,
            "nsys",
            "pytorch/notes.txt",
            "pytorch/plots"
        ]
    );
    let left = trace.listing();
    assert_eq!(
        left,
        [
            "traces",
            "traces/run.json.gz",
            "traces/run.json.gz.veloq",
            "traces/run.json.gz.veloq/.pytorch.lock",
            "traces/run.json.gz.veloq/.pytorch.tmp-1-0123456789abcdef",
            "traces/run.json.gz.veloq/.pytorch.tmp-1-0123456789abcdef/events.parquet",
            "traces/run.json.gz.veloq/nsys",
            "traces/run.json.gz.veloq/pytorch",
            "traces/run.json.gz.veloq/pytorch/notes.txt",
            "traces/run.json.gz.veloq/pytorch/plots",
        ]
    );
}

#[cfg(unix)]
#[test]
fn follows_and_removes_no_links() {
    use std::os::unix::fs::symlink;
    let trace = Fixture::new();
    trace.build();
    let elsewhere = trace.folder.path().join("elsewhere");

    let table = trace.beside().join("args.parquet");
    fs::rename(&table, &elsewhere).unwrap();
    symlink(&elsewhere, &table).unwrap();
    assert_eq!(kept(&trace), ["pytorch/args.parquet"]);
    assert!(elsewhere.exists() && fs::symlink_metadata(&table).unwrap().is_symlink());
    fs::remove_file(&elsewhere).unwrap();
    fs::remove_dir_all(trace.root()).unwrap();

    for folder in [trace.root(), trace.beside()] {
        trace.build();
        fs::rename(&folder, &elsewhere).unwrap();
        symlink(&elsewhere, &folder).unwrap();
        let before = trace.listing();
        assert_eq!(kept(&trace), names(&trace, [folder.clone()]));
        assert_eq!(trace.listing(), before);
        fs::remove_file(&folder).unwrap();
        fs::remove_dir_all(&elsewhere).unwrap();
    }
}

#[test]
fn leaves_a_build_that_runs_and_the_build_does_not_mind() {
    let trace = Fixture::new();
    let obtained = trace
        .store
        .obtain(false, |draft| {
            let contents = write_tables(trace.input(), draft);
            let report = trace.store.clean().unwrap();
            assert!(report.removed.is_empty(), "{report:?}");
            assert_eq!(report.kept.len(), 2, "{report:?}");
            contents
        })
        .unwrap();
    assert_is_right(&obtained.sidecar, trace.input());
    assert_eq!(obtained.sidecar.dir(), trace.beside());
}

#[test]
fn a_clean_that_was_killed_can_be_finished() {
    let trace = Fixture::new();
    trace.build();
    let steps = super::super::contents::survey(&trace.beside()).unwrap().own.len();
    for killed_after in 0..steps {
        trace.build();
        for (path, _) in &super::super::contents::survey(&trace.beside()).unwrap().own[..killed_after] {
            fs::remove_file(path).unwrap();
        }
        let found = trace.store.find().unwrap();
        assert_eq!(matches!(found, Found::Missing), killed_after > 0);
        trace.store.clean().unwrap();
        assert_eq!(trace.listing(), ["traces", "traces/run.json.gz"]);
    }
}
