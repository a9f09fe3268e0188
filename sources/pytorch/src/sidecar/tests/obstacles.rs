//! Places that cannot be written, and things in the way.

use super::*;

/// Makes sure that tables come to lie in the cache, whatever is in the way beside the trace, that they are
/// reused from there, and that the thing in the way is as it was.
fn assert_goes_to_the_cache(trace: &Fixture) {
    let beside = |listing: Vec<String>| -> Vec<String> {
        listing
            .into_iter()
            .filter(|path| !path.starts_with("cache"))
            .collect()
    };
    let before = beside(trace.listing());
    let obtained = trace.build();
    assert!(obtained.built);
    assert_eq!(obtained.sidecar.dir(), trace.cached());
    assert!(!trace.build().built);
    assert_eq!(trace.store.status().unwrap().artifact_dir, trace.cached());
    assert_eq!(beside(trace.listing()), before);
}

/// Makes sure that without a cache this is a clear error.
fn assert_no_place(trace: Fixture) {
    let trace = trace.without_cache();
    let error = trace
        .store
        .obtain(false, |draft| write_tables(trace.input(), draft))
        .unwrap_err();
    let BuildError::Store(error) = error else {
        panic!("{error}")
    };
    assert_eq!((error.code(), error.class().exit_status()), ("limit.no_place", 5));
    assert!(
        error.to_string().contains(trace.root().to_str().unwrap()),
        "{error}"
    );
}

#[test]
fn a_file_in_place_of_the_folder() {
    let trace = Fixture::new();
    fs::write(trace.root(), "mine").unwrap();
    assert_goes_to_the_cache(&trace);
    assert_eq!(fs::read_to_string(trace.root()).unwrap(), "mine");
    assert_no_place(trace);
}

#[test]
fn a_file_in_place_of_the_tables_folder() {
    let trace = Fixture::new();
    fs::create_dir(trace.root()).unwrap();
    fs::write(trace.beside(), "mine").unwrap();
    assert_goes_to_the_cache(&trace);
    assert_no_place(trace);
}

#[test]
fn a_folder_of_that_name_with_files_of_others() {
    for files in [
        &["notes.txt"][..],
        &["events.parquet"],
        &["notes.txt", "events.parquet"],
    ] {
        let trace = Fixture::new();
        fs::create_dir_all(trace.beside()).unwrap();
        for file in files {
            fs::write(trace.beside().join(file), "mine").unwrap();
        }
        assert_goes_to_the_cache(&trace);
        for file in files {
            assert_eq!(fs::read_to_string(trace.beside().join(file)).unwrap(), "mine");
        }
        assert_no_place(trace);
    }
}

#[test]
fn a_foreign_file_among_stale_tables_keeps_them_from_being_replaced() {
    let trace = Fixture::new();
    trace.build();
    fs::write(trace.beside().join("notes.txt"), "mine").unwrap();
    assert!(!trace.build().built, "good tables are used all the same");
    fs::write(trace.input(), "one trace").unwrap();
    assert_goes_to_the_cache(&trace);
}

#[test]
fn foreign_files_beside_the_tables_do_not_matter() {
    let trace = Fixture::new();
    fs::create_dir_all(trace.root().join("other-source")).unwrap();
    fs::write(trace.root().join("notes.txt"), "mine").unwrap();
    assert_eq!(trace.build().sidecar.dir(), trace.beside());
    assert_eq!(
        fs::read_to_string(trace.root().join("notes.txt")).unwrap(),
        "mine"
    );
}

#[test]
fn an_empty_folder_is_taken() {
    let trace = Fixture::new();
    fs::create_dir_all(trace.beside()).unwrap();
    assert_eq!(trace.build().sidecar.dir(), trace.beside());
}

#[test]
fn names_too_long_for_a_folder_beside_the_trace() {
    let trace = Fixture::named(&format!("{}.json", "x".repeat(250)));
    assert_goes_to_the_cache(&trace);
}

#[cfg(unix)]
#[test]
fn links_in_place_of_the_folders_and_files() {
    use std::os::unix::fs::symlink;
    let places: [fn(&Fixture) -> PathBuf; 4] = [
        Fixture::root,
        Fixture::beside,
        |trace| trace.root().join(".pytorch.lock"),
        |trace| trace.beside().join("events.parquet"),
    ];
    for (index, place) in places.iter().enumerate() {
        for exists in [false, true] {
            let trace = Fixture::new();
            let target = trace.folder.path().join("target");
            if exists && index < 2 {
                fs::create_dir(&target).unwrap();
                fs::write(target.join("events.parquet"), "mine").unwrap();
            } else if exists {
                fs::write(&target, "mine").unwrap();
            }
            fs::create_dir_all(place(&trace).parent().unwrap()).unwrap();
            symlink(&target, place(&trace)).unwrap();
            assert_goes_to_the_cache(&trace);
            assert_eq!(fs::read_link(place(&trace)).unwrap(), target);
            assert_eq!(target.exists(), exists);
            assert_no_place(trace);
        }
    }
}

#[cfg(unix)]
#[test]
fn tables_are_not_read_through_links() {
    let trace = Fixture::new();
    trace.build();
    let elsewhere = trace.folder.path().join("elsewhere");
    fs::rename(trace.root(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, trace.root()).unwrap();
    assert!(matches!(trace.store.find().unwrap(), Found::Missing));
    fs::remove_file(trace.root()).unwrap();
    fs::rename(&elsewhere, trace.root()).unwrap();
    let table = trace.beside().join("args.parquet");
    fs::rename(&table, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &table).unwrap();
    assert!(matches!(trace.store.find().unwrap(), Found::Corrupt(_)));
}

#[cfg(unix)]
#[test]
fn a_linked_trace_has_its_tables_beside_the_link() {
    let trace = Fixture::new();
    let link = trace.folder.path().join("link.json.gz");
    std::os::unix::fs::symlink(trace.input(), &link).unwrap();
    let store = Store::with_cache(&link, None);
    assert_eq!(
        obtain(&store, false).sidecar.dir(),
        trace.folder.path().join("link.json.gz.veloq/pytorch")
    );
    fs::write(trace.input(), "one trace").unwrap();
    assert!(obtain(&store, false).built);
}

#[cfg(unix)]
#[test]
fn a_folder_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let trace = Fixture::new();
    let folder = trace.input().parent().unwrap().to_owned();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let is_bound = fs::write(folder.join("probe"), "").is_err();
    if is_bound {
        assert_goes_to_the_cache(&trace);
    } else {
        eprintln!("skipped: permissions do not bind the superuser");
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn file_systems_that_take_no_folders() {
    let folder = tempfile::tempdir().unwrap();
    for input in ["/proc/sys/kernel/ostype", "/sys/kernel/notes"].map(Path::new) {
        if !input.is_file() {
            eprintln!("skipped: there is no {}", input.display());
            continue;
        }
        let store = Store::with_cache(input, Some(folder.path()));
        let obtained = store.obtain(false, |draft| write_tables(input, draft)).unwrap();
        assert!(obtained.built && obtained.sidecar.dir().starts_with(folder.path()));
        let error = Store::with_cache(input, None)
            .obtain(false, |draft| write_tables(input, draft))
            .unwrap_err();
        assert!(
            matches!(error, BuildError::Store(Error::NoPlace { .. })),
            "{error:?}"
        );
    }
}

/// Writes tables until the disk is full, as many times as told.
fn write_to_full_disk<'a>(
    trace: &'a Fixture,
    times: &'a mut u32,
) -> impl FnMut(&Draft) -> Result<Contents, BuildError> + 'a {
    move |draft| {
        let contents = write_tables(trace.input(), draft)?;
        if *times > 0 {
            *times -= 1;
            // As some libraries wrap it.
            let full = io::Error::other(BuildError::Write(io::ErrorKind::StorageFull.into()));
            return Err(BuildError::Write(full));
        }
        Ok(contents)
    }
}

#[test]
fn a_full_disk_is_passed_over() {
    let trace = Fixture::new();
    let obtained = trace
        .store
        .obtain(false, write_to_full_disk(&trace, &mut 1))
        .unwrap();
    assert_eq!(obtained.sidecar.dir(), trace.cached());
    assert_is_right(&obtained.sidecar, trace.input());
    assert!(!trace.root().exists());
}

#[test]
fn full_disks_everywhere_are_an_error_and_leave_nothing() {
    let trace = Fixture::new();
    let error = trace
        .store
        .obtain(false, write_to_full_disk(&trace, &mut 2))
        .unwrap_err();
    let BuildError::Store(error) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (error.code(), error.class().exit_status()),
        ("limit.disk_full", 5)
    );
    assert_eq!(trace.listing(), ["cache", "traces", "traces/run.json.gz"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_really_is_full() {
    let trace = Fixture::new();
    let mut calls = 0;
    let obtained = trace
        .store
        .obtain(false, |draft| {
            calls += 1;
            if calls == 1 {
                fs::write("/dev/full", "x").map_err(BuildError::Write)?;
            }
            write_tables(trace.input(), draft)
        })
        .unwrap();
    assert_eq!((obtained.sidecar.dir(), calls), (&*trace.cached(), 2));
}

#[test]
fn a_build_whose_folder_is_taken_away_goes_on_elsewhere() {
    let trace = Fixture::new();
    let mut calls = 0;
    let obtained = trace
        .store
        .obtain(false, |draft| {
            calls += 1;
            if calls == 1 {
                fs::remove_dir_all(trace.root()).unwrap();
            }
            write_tables(trace.input(), draft)
        })
        .unwrap();
    assert_eq!((obtained.sidecar.dir(), calls), (&*trace.cached(), 2));
}
