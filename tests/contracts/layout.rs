//! What the layout of the workspace promises.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use veloq_cli::GLOBAL_IDS;
use veloq_core::{check_registry, sources};

use crate::support::{Lab, root};

fn folders_in(folder: &Path) -> BTreeSet<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// Core is what a new source compiles against: an engine in it would be everybody's engine.
#[test]
fn core_depends_on_no_engine() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package",
            "veloq-core",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .args(["--offline", "--locked", "--all-features"])
        .current_dir(root())
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(tree.contains("serde"), "{tree}");
    for crate_name in tree.lines().filter_map(|line| line.split(' ').next()) {
        let is_engine = [
            "arrow",
            "datafusion",
            "parquet",
            "tokio",
            "veloq-source",
            "veloq-cli",
        ]
        .iter()
        .any(|engine| crate_name.starts_with(engine));
        assert!(!is_engine, "veloq-core depends on {crate_name}");
    }
}

#[test]
fn sources_on_disk_are_those_of_the_registry() {
    let linked: BTreeSet<String> = sources()
        .iter()
        .map(|source| source.spec().name.to_owned())
        .collect();
    assert_eq!(folders_in(&root().join("sources")), linked);
    check_registry(&sources()).unwrap();
}

#[test]
fn the_shipped_binary_knows_the_same_sources() {
    let answer = Lab::new().run(&["sources"]).answer();
    let listed: BTreeSet<String> = answer["data"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(listed, folders_in(&root().join("sources")));
}

#[test]
fn folders_of_verbs_are_the_verbs_of_their_source() {
    for source in sources() {
        let spec = source.spec();
        let listed: BTreeSet<String> = source
            .verbs()
            .iter()
            .map(|verb| verb.name.replace('-', "_"))
            .collect();
        let folder = root().join("sources").join(spec.name).join("src/verbs");
        assert_eq!(folders_in(&folder), listed, "{}", spec.name);
    }
}

#[test]
fn sources_keep_their_promises() {
    for source in sources() {
        veloq_core::testing::check_source(source, GLOBAL_IDS);
    }
}

/// Clap checks a tree in debug builds only, and a command only once it is used.
#[test]
fn the_command_tree_is_sound() {
    veloq_cli::app().debug_assert();
    let mut names = BTreeSet::new();
    for command in veloq_cli::app().get_subcommands() {
        assert!(
            names.insert(command.get_name().to_owned()),
            "two commands `{}`",
            command.get_name()
        );
        assert!(
            command.get_about().is_some(),
            "`{}` says nothing",
            command.get_name()
        );
    }
}

#[test]
fn test_files_are_wired_in() {
    for tests in ["contracts", "e2e"] {
        let folder = root().join("tests").join(tests);
        let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
        for path in std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let is_rust = path.extension().is_some_and(|extension| extension == "rs");
            assert!(
                !is_rust || stem == "main" || main.contains(&format!("mod {stem};")),
                "{} is never compiled",
                path.display()
            );
        }
    }
}
