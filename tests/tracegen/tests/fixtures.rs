//! The committed fixtures are what the code says they are; `VELOQ_UPDATE_FIXTURES=1` rewrites them.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;
use std::{env, fs};

use veloq_tracegen::fixtures::{Fixture, Packing, all};

/// Traces that were recorded, not generated.
const RECORDED: [&str; 5] = [
    "cpu_mlp_train.pt.trace.json.gz",
    "gloo_ddp_rank0.pt.trace.json.gz",
    "gloo_ddp_rank1.pt.trace.json.gz",
    "gloo_ddp_rank2.pt.trace.json.gz",
    "gloo_ddp_rank3.pt.trace.json.gz",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pytorch")
}

/// The content of a file, decompressed as far as it goes, and whether its end was sound.
fn content(fixture: &Fixture, bytes: &[u8]) -> (Vec<u8>, bool) {
    if fixture.packing == Packing::Plain {
        return (bytes.to_vec(), true);
    }
    let mut content = Vec::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "the file is as small as its generator made it"
    )]
    let end = flate2::read::GzDecoder::new(bytes).read_to_end(&mut content);
    (content, end.is_ok())
}

#[test]
fn committed_fixtures_are_up_to_date() {
    let update = env::var_os("VELOQ_UPDATE_FIXTURES").is_some();
    for fixture in all().unwrap() {
        let path = folder().join(fixture.name);
        if update {
            fs::write(&path, fixture.file_bytes().unwrap()).unwrap();
        }
        let bytes = fs::read(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; run with VELOQ_UPDATE_FIXTURES=1", path.display()));
        let (committed, sound) = content(&fixture, &bytes);
        assert!(
            committed == fixture.content,
            "{} differs; run with VELOQ_UPDATE_FIXTURES=1",
            fixture.name
        );
        assert_eq!(sound, fixture.packing != Packing::GzipCut, "{}", fixture.name);
    }
}

#[test]
fn the_folder_holds_these_fixtures_and_no_others() {
    let mut known: BTreeSet<String> = all().unwrap().iter().map(|f| f.name.to_owned()).collect();
    known.extend(RECORDED.map(str::to_owned));
    let found: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".json") && !name.ends_with(".veloq"))
        .collect();
    assert_eq!(found, known);
}

#[test]
fn every_fixture_is_described() {
    let readme = fs::read_to_string(folder().join("../README.md")).unwrap();
    for name in all().unwrap().iter().map(|f| f.name).chain(RECORDED) {
        assert!(
            readme.contains(&format!("`{name}`")),
            "{name} is missing in fixtures/README.md"
        );
    }
}

#[test]
fn fixtures_stay_small() {
    let sizes: Vec<u64> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap())
        .filter(fs::Metadata::is_file)
        .map(|file| file.len())
        .collect();
    assert!(sizes.iter().all(|size| *size < 100_000), "{sizes:?}");
    assert!(sizes.iter().sum::<u64>() < 1_500_000);
}

/// Only the files meant to be broken are.
#[test]
fn sound_fixtures_parse_and_damaged_ones_do_not() {
    for fixture in all().unwrap() {
        let parses = serde_json::from_slice::<serde_json::Value>(&fixture.content).is_ok();
        let broken = fixture.name.starts_with("damaged_") || fixture.name == "byte_order_mark.json";
        assert_eq!(parses, !broken, "{}", fixture.name);
    }
}
