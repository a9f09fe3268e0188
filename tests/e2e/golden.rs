//! Whole answers as they were reviewed: each verb's first example, as json on the smallest trace and as a
//! table on a training run.
//!
//! A changed answer is a changed file in `snapshots/`, to be reviewed like code. To bring them up to date:
//! `INSTA_UPDATE=always cargo test --workspace --test e2e golden`.

use std::collections::BTreeSet;

use insta::Settings;

use crate::support::{Lab, pytorch, root};

fn settings() -> Settings {
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path(root().join("tests/e2e/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

#[test]
fn golden_answers_are_unchanged() {
    let lab = Lab::new();
    let small = lab.copy(&root().join("fixtures/pytorch/one_kernel.pt.trace.json"));
    let training = lab.training();
    for verb in pytorch().verbs() {
        let Some(example) = verb.examples.first() else {
            continue;
        };
        let json = lab.run_example(example, &small, &["--format", "json", "--pretty"]);
        let table = lab.run_example(example, &training, &["--format", "table"]);
        settings().bind(|| {
            insta::assert_snapshot!(format!("{}.json", verb.name), json.stdout);
            insta::assert_snapshot!(format!("{}.table", verb.name), table.stdout);
        });
    }
}

#[test]
fn golden_files_belong_to_verbs() {
    let verbs: BTreeSet<&str> = pytorch().verbs().iter().map(|verb| verb.name).collect();
    for entry in std::fs::read_dir(root().join("tests/e2e/snapshots")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let verb = name.split('.').next().unwrap_or_default();
        assert!(verbs.contains(verb), "{name} belongs to no verb");
    }
}
