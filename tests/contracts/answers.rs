//! Every schema lets real answers pass, and nothing that is broken in one place.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::broken::{Walk, properties, walk};
use crate::support::{Lab, contracts, examples, fixtures, is_lookalike, pytorch, response_contract};

/// Flags that several verbs share, with values that let something through on a training run: what a verb
/// understood of them is part of its answer.
const SHARED_FLAGS: [(&str, &str); 12] = [
    ("rank", "0"),
    ("device", "0"),
    ("stream", "7"),
    ("step", "1"),
    ("from", "1us"),
    ("to", "5ms"),
    ("type", "kernel,cpu-op"),
    ("name", "*"),
    ("name-regex", "."),
    ("duration", "1ns-1s"),
    ("limit", "1"),
    ("offset", "1"),
];

/// A range that was still open when the capture ended, a copy that its backend files under kernels, and a
/// synchronisation.
const ODD_ROWS: &str = r#"{"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "open", "pid": 1, "tid": 1, "ts": 1, "dur": 9, "args": {"finished": false}},
    {"ph": "X", "cat": "kernel", "name": "Memcpy HtoD (Host -> Device)", "pid": 0, "tid": 7, "ts": 2, "dur": 1},
    {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 3, "dur": 1, "args":
        {"cuda_sync_kind": "Stream Sync", "stream": 7, "correlation": 5, "device": 0, "wait_on_stream": 7,
         "wait_on_cuda_event_record_corr_id": 3, "wait_on_cuda_event_id": 2}}
]}"#;

/// Returns the answers of each verb's first example with one shared flag more.
fn answers_with_flags(lab: &Lab, trace: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for verb in pytorch().verbs() {
        let command = pytorch().augment(verb.name, clap::Command::new(verb.name));
        let takes = |flag: &str| {
            command
                .get_arguments()
                .any(|argument| argument.get_long() == Some(flag))
        };
        let example = verb.examples.first().unwrap();
        let has = |flag: &str| example.command.contains(&format!("--{flag}"));
        for (flag, value) in SHARED_FLAGS.iter().filter(|(flag, _)| takes(flag) && !has(flag)) {
            let called = lab.run_example(example, trace, &["--format", "json", &format!("--{flag}"), value]);
            if called.status == 0 {
                all.push(called.answer());
            }
        }
        for switch in ["all-ranks", "is-comm"]
            .into_iter()
            .filter(|switch| takes(switch) && !has(switch))
        {
            let called = lab.run_example(example, trace, &["--format", "json", &format!("--{switch}")]);
            if called.status == 0 {
                all.push(called.answer());
            }
        }
    }
    all
}

fn takes_row_ids(verb: &str) -> bool {
    let command = pytorch().augment(verb, clap::Command::new("verb"));
    command
        .get_arguments()
        .any(|argument| argument.get_id() == "row_ids")
}

/// Returns the ids of two rows of each type, and one of no row.
fn some_rows(lab: &Lab, trace: &str) -> Vec<String> {
    let answer = lab
        .run(&["pytorch", "search", trace, "--limit", "0", "--all-ranks"])
        .answer();
    let mut of_type: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in answer["data"]["rows"].as_array().unwrap() {
        let text = |field: &str| row[field].as_str().unwrap().to_owned();
        // Communication, backward operators and the like differ from other rows of their type.
        let kind = format!(
            "{} {} {}",
            text("type"),
            row["comm_kind"],
            row["correlation_id"].is_null()
        );
        let ids = of_type.entry(kind).or_default();
        if ids.len() < 2 {
            ids.push(text("row_id"));
        }
    }
    of_type
        .into_values()
        .flatten()
        .chain(["kernel:4000000".to_owned()])
        .collect()
}

/// Returns answers by command: every example of every verb on a few fixtures that differ, and veloq's own
/// commands.
fn answers(lab: &Lab) -> BTreeMap<String, Vec<Value>> {
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut add = |answer: Value| {
        let command = answer["command"].as_str().unwrap().to_owned();
        all.entry(command).or_default().push(answer);
    };
    for fixture in fixtures("pytorch")
        .iter()
        .filter(|fixture| !is_lookalike(fixture))
    {
        let name = lab.copy(fixture);
        add(lab.run(&["pytorch", "prep", &name]).answer());
        for example in examples() {
            let called = lab.run_example(example, &name, &["--format", "json"]);
            if called.status == 0 {
                add(called.answer());
            }
        }
        // Verbs about single rows, asked about two of each type.
        let ids = some_rows(lab, &name);
        for verb in pytorch()
            .verbs()
            .into_iter()
            .filter(|verb| takes_row_ids(verb.name))
        {
            let mut words = vec!["pytorch", verb.name, &name];
            words.extend(ids.iter().map(String::as_str));
            add(lab.run(&words).answer());
        }
        // Verbs that need nothing but a trace, asked for nothing in particular.
        for verb in pytorch().verbs() {
            let called = lab.run(&["pytorch", verb.name, &name]);
            if called.status == 0 {
                add(called.answer());
            }
        }
    }
    lab.write("odd.pt.trace.json", ODD_ROWS);
    for verb in ["search", "inspect", "correlate"] {
        let ids: &[&str] = if verb == "search" {
            &[]
        } else {
            &["cpu_op:0", "memcpy:1", "sync:2"]
        };
        add(lab.run(&[&[verb, "odd.pt.trace.json"], ids].concat()).answer());
    }
    let trace = lab.training();
    for trace in [trace.as_str(), "merged_args_rank.json", "collectives.json"] {
        answers_with_flags(lab, trace).into_iter().for_each(&mut add);
    }
    add(lab.run(&["prep", &trace, "--force"]).answer());
    add(lab.run(&["prep", &trace, "--status"]).answer());
    add(lab.run(&["info", "."]).answer());
    add(lab.run(&["clean", &trace]).answer());
    add(lab.run(&["sources"]).answer());
    add(lab.run(&["schema"]).answer());
    add(lab.run(&["pytorch", "schema"]).answer());
    add(lab.run(&["man", "pages"]).answer());
    all
}

#[test]
fn contracts_refuse_what_is_broken() {
    let lab = Lab::new();
    let all = answers(&lab);
    for verb in pytorch().verbs() {
        let command = format!("pytorch.{}", verb.name);
        assert!(all.contains_key(&command), "no example of {command} was answered");
    }
    let mut never_seen = Vec::new();
    for (command, answers) in &all {
        let path = response_contract(command);
        let own = &contracts()[&path];
        let envelope = &contracts()["envelope.schema.json"];
        let mut seen = BTreeSet::new();
        for (at, answer) in answers.iter().enumerate() {
            let found = walk(&own.schema, answer, false);
            assert_eq!(
                found.open,
                BTreeSet::new(),
                "{path}: these objects let unknown fields pass"
            );
            // A few answers of a verb are enough to break; all are looked at for their fields.
            if at < 4 {
                must_refuse(&path, own, &walk(&own.schema, answer, true));
                must_refuse(
                    "envelope.schema.json",
                    envelope,
                    &walk(&envelope.schema, answer, true),
                );
            }
            seen.extend(found.seen);
        }
        let unseen: Vec<String> = properties(&own.schema).difference(&seen).cloned().collect();
        if !unseen.is_empty() {
            never_seen.push(format!("{path}: no answer has {unseen:?}"));
        }
    }
    assert!(never_seen.is_empty(), "{}", never_seen.join("\n"));
}

#[test]
fn contracts_refuse_broken_errors() {
    let lab = Lab::new();
    let trace = lab.training();
    let errors = [
        lab.run(&["nope"]).error(2, "usage.unknown_verb"),
        lab.run(&["search", "gone.pt.trace.json"])
            .error(3, "input.not_found"),
        lab.run(&["search", &trace, "--nope"])
            .error(2, "usage.unknown_flag"),
    ];
    assert!(
        errors
            .iter()
            .all(|error| error["hint"].is_string() || error["hint"].is_null())
    );
    let contract = &contracts()["error.schema.json"];
    for words in [
        &["nope"][..],
        &["search", "gone.pt.trace.json"],
        &["pytorch", "search", "."],
    ] {
        let error = lab.run(words).json();
        let found = walk(&contract.schema, &error, true);
        assert_eq!(found.open, BTreeSet::new());
        must_refuse("error.schema.json", contract, &found);
    }
}

fn must_refuse(path: &str, contract: &crate::support::Contract, walk: &Walk) {
    assert!(!walk.broken.is_empty(), "{path}: nothing to break");
    for (how, broken) in &walk.broken {
        assert!(!contract.validator.is_valid(broken), "{path} lets pass: {how}");
    }
}
