//! Every example of every verb on every fixture, and on real traces when there are any.

use std::path::Path;

use crate::support::{Called, Lab, examples, fixtures, is_lookalike, pytorch, real_traces};

/// The trace the examples are written for answers all of them.
#[test]
fn examples_are_answered() {
    let lab = Lab::new();
    let trace = lab.training();
    for example in examples() {
        let called = lab.run_example(example, &trace, &[]);
        assert_eq!(
            called.status, 0,
            "{}\n{}{}",
            called.line, called.stdout, called.stderr
        );
        assert_eq!(called.stderr, "", "{}", called.line);
        lab.run_example(example, &trace, &["--format", "json"]).answer();
    }
}

/// Not every trace can answer everything, but each says so in the words of the contract.
#[test]
fn examples_meet_every_fixture() {
    let lab = Lab::new();
    for fixture in fixtures("pytorch") {
        let is_trace = !is_lookalike(&fixture);
        for called in ask_everything(&lab, &fixture) {
            let answer = called.json();
            let code = answer["error"]["code"].as_str().unwrap_or("answered");
            let is_expected = match called.status {
                0 => is_trace,
                3 => !is_trace && code.starts_with("input."),
                4 => is_trace && (code == "capability.missing" || code.starts_with("scope.")),
                _ => false,
            };
            assert!(is_expected, "{}: {} {code}\n{answer}", called.line, called.status);
        }
    }
}

#[test]
fn examples_meet_real_traces() {
    let lab = Lab::new();
    for trace in real_traces() {
        for called in ask_everything(&lab, &trace) {
            let answer = called.json();
            assert!(matches!(called.status, 0 | 4), "{}: {answer}", called.line);
        }
    }
}

/// Asks the first example of each verb.
fn ask_everything(lab: &Lab, trace: &Path) -> Vec<Called> {
    let name = lab.copy(trace);
    let firsts = pytorch()
        .verbs()
        .into_iter()
        .filter_map(|verb| verb.examples.first());
    firsts
        .map(|example| lab.run_example(example, &name, &["--format", "json"]))
        .collect()
}

/// The help of a verb shows its question and its examples.
#[test]
fn help_teaches_every_verb() {
    let lab = Lab::new();
    for verb in pytorch().verbs() {
        for words in [
            &["pytorch", verb.name, "--help"][..],
            &[verb.name, "-h"],
            &["help", verb.name],
        ] {
            let called = lab.run(words);
            assert_eq!(
                (called.status, called.stderr.as_str()),
                (0, ""),
                "{}",
                called.line
            );
            let flat = called.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(verb.about), "{}: {}", called.line, called.stdout);
            for example in verb.examples {
                assert!(
                    called.stdout.contains(example.command),
                    "{}: {}",
                    called.line,
                    called.stdout
                );
            }
        }
    }
}

#[test]
fn short_forms_answer_the_same() {
    let lab = Lab::new();
    let trace = lab.training();
    for example in examples() {
        let long = lab.run_example(example, &trace, &[]);
        let short = veloq_core::Example {
            command: example.command.strip_prefix("pytorch ").unwrap(),
            ..*example
        };
        assert_eq!(
            lab.run_example(&short, &trace, &[]).stdout,
            long.stdout,
            "{}",
            example.command
        );
    }
}
