//! Stored tables that are no longer what they were.

use super::super::manifest::Manifest;
use super::*;

/// Writes another manifest, intact, in place of the one that is there.
fn change_manifest(trace: &Fixture, change: impl FnOnce(&mut Manifest)) {
    let path = trace.beside().join("manifest.json");
    let mut manifest = Manifest::from_text(&fs::read(&path).unwrap()).unwrap();
    change(&mut manifest);
    fs::write(&path, manifest.to_text().unwrap()).unwrap();
}

/// Damages a file in some way, and makes sure that it is noticed and mended.
fn assert_mends(trace: &Fixture, file: &str, what: &str, damage: impl FnOnce(&Path)) {
    trace.build();
    damage(&trace.beside().join(file));
    assert!(
        !matches!(trace.store.find().unwrap(), Found::Ready(_)),
        "{file}: {what}"
    );
    assert!(
        trace
            .store
            .status()
            .unwrap()
            .sidecars
            .iter()
            .any(|table| { table.status != SidecarStatus::Ready })
    );
    let obtained = trace.build();
    assert!(obtained.built, "{file}: {what}");
    assert_eq!(obtained.sidecar.dir(), trace.beside(), "{file}: {what}");
}

fn files() -> Vec<String> {
    let mut files: Vec<String> = TABLES.iter().map(|table| format!("{table}.parquet")).collect();
    files.push("manifest.json".to_owned());
    files
}

#[test]
fn truncated_emptied_lengthened_and_missing_files_are_built_anew() {
    let trace = Fixture::new();
    for file in files() {
        let set_length = |length: u64| {
            move |path: &Path| {
                fs::File::options()
                    .write(true)
                    .open(path)
                    .unwrap()
                    .set_len(length)
                    .unwrap()
            }
        };
        assert_mends(&trace, &file, "empty", set_length(0));
        assert_mends(&trace, &file, "cut", set_length(100));
        assert_mends(&trace, &file, "longer", set_length(700_000));
        assert_mends(&trace, &file, "missing", |path| fs::remove_file(path).unwrap());
    }
}

#[test]
fn flipped_bits_are_noticed_wherever_they_are() {
    let trace = Fixture::new();
    for file in files() {
        for part in 0..8 {
            assert_mends(&trace, &file, "flipped", |path| {
                let mut content = fs::read(path).unwrap();
                let at = (content.len() - 1) * part / 7;
                content[at] ^= 1 << part;
                fs::write(path, content).unwrap();
            });
        }
    }
}

#[test]
fn a_flipped_bit_under_kept_times_is_noticed() {
    let trace = Fixture::new();
    assert_mends(&trace, "events.parquet", "flipped in the middle", |path| {
        let modified = fs::metadata(path).unwrap().modified().unwrap();
        let mut content = fs::read(path).unwrap();
        content[1_000] ^= 1;
        fs::write(path, content).unwrap();
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(modified)
            .unwrap();
    });
}

#[test]
fn status_tells_the_damaged_table_from_the_others() {
    let trace = Fixture::new();
    trace.build();
    let path = trace.beside().join("args.parquet");
    let mut content = fs::read(&path).unwrap();
    content[1] ^= 1;
    fs::write(&path, content).unwrap();
    fs::remove_file(trace.beside().join("tracks.parquet")).unwrap();
    use SidecarStatus::{Corrupt, Missing, Ready};
    assert_eq!(statuses(&trace.store), [Ready, Corrupt, Ready, Missing, Ready]);
    fs::write(trace.beside().join("manifest.json"), "{}").unwrap();
    assert_eq!(
        statuses(&trace.store),
        [Corrupt, Corrupt, Corrupt, Missing, Corrupt]
    );
}

#[test]
fn a_damaged_marker_only_costs_the_place_beside_the_trace_if_the_manifest_is_damaged_too() {
    let trace = Fixture::new();
    trace.build();
    fs::write(trace.beside().join("CACHEDIR.TAG"), "x").unwrap();
    assert!(!trace.build().built);
    fs::write(trace.input(), "one trace").unwrap();
    assert_eq!(trace.build().sidecar.dir(), trace.beside());

    for file in ["CACHEDIR.TAG", "manifest.json"] {
        fs::write(trace.beside().join(file), "x").unwrap();
    }
    let listing = trace.listing();
    let obtained = trace.build();
    assert_eq!(obtained.sidecar.dir(), trace.cached());
    assert!(listing.iter().all(|path| trace.listing().contains(path)));
}

#[test]
fn copied_tables_are_good_after_a_closer_look() {
    let trace = Fixture::new();
    trace.build();
    let copy = trace.folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for file in files() {
        fs::copy(trace.beside().join(&file), copy.join(&file)).unwrap();
    }
    fs::remove_dir_all(trace.beside()).unwrap();
    fs::rename(&copy, trace.beside()).unwrap();
    assert!(!trace.build().built);
}

#[test]
fn tables_of_another_format_version_are_stale() {
    let trace = Fixture::new();
    trace.build();
    change_manifest(&trace, |manifest| manifest.format_version += 1);
    assert!(matches!(trace.store.find().unwrap(), Found::Stale(_)));
    assert_eq!(statuses(&trace.store), [SidecarStatus::Stale; 5]);
    assert!(trace.build().built);
}

#[test]
fn an_intact_manifest_cannot_lead_elsewhere() {
    let trace = Fixture::new();
    let secret = trace.folder.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    type Change = fn(&mut Manifest);
    let changes: [Change; 4] = [
        |manifest| manifest.tables[0].file = "../../../secret".to_owned(),
        |manifest| manifest.tables[0].name = "../../../secret".to_owned(),
        |manifest| manifest.tables.truncate(4),
        |manifest| manifest.tables.swap(0, 1),
    ];
    for change in changes {
        trace.build();
        change_manifest(&trace, change);
        assert!(matches!(trace.store.find().unwrap(), Found::Corrupt(_)));
        assert!(trace.build().built);
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
}
