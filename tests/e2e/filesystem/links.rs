//! Folders and links that veloq did not make.

use std::fs;

use super::{Guarded, tree};

/// Links in place of the folders lead nowhere: they are neither followed nor removed.
#[cfg(unix)]
#[test]
fn links_in_place_of_folders_are_not_followed() {
    use std::os::unix::fs::symlink;
    let guarded = Guarded::new();
    let foreign = guarded.lab.path().join("foreign");
    fs::create_dir_all(foreign.join("pytorch")).unwrap();
    fs::write(foreign.join("pytorch/manifest.json"), "mine").unwrap();
    fs::write(foreign.join("events.parquet"), "mine too").unwrap();
    let file = guarded.lab.path().join("file");
    fs::write(&file, "a file").unwrap();
    let before = tree(&foreign);
    for target in [
        &foreign,
        &file,
        &guarded.lab.path().join("dangling"),
        &guarded.input(),
    ] {
        for is_inner in [false, true] {
            let what = format!("link to {}, inner: {is_inner}", target.display());
            let link = if is_inner {
                fs::create_dir(guarded.root()).unwrap();
                guarded.tables()
            } else {
                guarded.root()
            };
            symlink(target, &link).unwrap();
            guarded.assert_right(&what);
            guarded.run(&["clean"]).answer();
            assert_eq!(fs::read_link(&link).unwrap(), *target, "{what}");
            assert_eq!(tree(&foreign), before, "{what}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "a file", "{what}");
            assert!(!guarded.lab.path().join("dangling").exists(), "{what}");
            fs::remove_file(&link).unwrap();
            let _ = fs::remove_dir(guarded.root());
        }
    }
}

/// `clean` takes what veloq made and nothing else, whatever it is called.
#[test]
fn clean_leaves_what_veloq_did_not_make() {
    let guarded = Guarded::new();
    let mine = guarded.tables();
    fs::create_dir_all(mine.join("events.parquet")).unwrap();
    for name in ["manifest.json", "args.parquet", "CACHEDIR.TAG", "notes.txt"] {
        fs::write(mine.join(name), format!("my {name}")).unwrap();
    }
    fs::write(guarded.root().join(".pytorch.lock"), "mine").unwrap();
    fs::create_dir(guarded.root().join(".pytorch.tmp-1-0123456789abcdef")).unwrap();
    fs::write(
        guarded
            .root()
            .join(".pytorch.tmp-1-0123456789abcdef/events.parquet"),
        "mine",
    )
    .unwrap();
    let before = tree(&guarded.root());
    let answer = guarded.run(&["clean"]).answer();
    let rows = answer["data"]["rows"].as_array().unwrap();
    assert!(
        rows.iter()
            .all(|row| row["removed"] == false && row["reason"].is_string()),
        "{answer}"
    );
    assert_eq!(tree(&guarded.root()), before);
    // Questions are answered from the cache, and leave it alone, too.
    guarded.assert_right("beside a foreign folder");
    assert_eq!(tree(&guarded.root()), before);
    guarded.run(&["clean"]).answer();
    assert_eq!(tree(&guarded.root()), before);
    assert!(tree(&guarded.cache()).is_empty());
    // The trace may be gone; `clean` then still finds only what is veloq's.
    fs::remove_file(guarded.input()).unwrap();
    guarded.run(&["clean"]).answer();
    assert_eq!(tree(&guarded.root()), before);
}
