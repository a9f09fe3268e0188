//! What the README, the skill and the recipes show and claim, repeated.

use std::fs;

use serde_json::Value;
use veloq_core::Example;

use crate::support::{Called, Lab, called, pytorch, root, shell_words};

/// A lab with the fixture that the guides use, under the path that they use.
fn lab_with_fixture() -> (Lab, &'static str) {
    let lab = Lab::new();
    let path = "fixtures/pytorch/cuda_training.pt.trace.json.gz";
    let copy = lab.path().join(path);
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    fs::copy(root().join(path), copy).unwrap();
    (lab, path)
}

fn ask(lab: &Lab, command: &str) -> Called {
    let words = shell_words(command);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    called(&mut lab.command(words.iter().copied()), &words)
}

/// A command of a guide and what it shows as its output.
fn session(guide: &str) -> Vec<(&str, String)> {
    let blocks = guide
        .split("```console\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"));
    blocks
        .map(|(block, _)| {
            let (command, output) = block.split_once('\n').unwrap();
            (command.strip_prefix("$ veloq ").unwrap(), output.to_owned())
        })
        .collect()
}

fn assert_session_repeats(guide: &str) {
    let (lab, _) = lab_with_fixture();
    let session = session(guide);
    assert!(session.len() >= 5);
    for (command, output) in session {
        assert_eq!(ask(&lab, command).stdout, output, "veloq {command}");
    }
}

fn skill() -> &'static str {
    pytorch().skill().unwrap().text
}

#[test]
fn the_session_of_the_readme_can_be_repeated() {
    assert_session_repeats(&fs::read_to_string(root().join("README.md")).unwrap());
}

#[test]
fn the_session_of_the_skill_can_be_repeated() {
    assert_session_repeats(skill());
}

/// The rows `| question | command | bytes |` at the end of the skill.
#[test]
fn answers_cost_what_the_skill_says() {
    let (lab, trace) = lab_with_fixture();
    let (_, table) = skill().split_once("| Question | Command | Bytes |\n").unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 10);
    for row in rows {
        let command = row[1].trim_matches('`').replace("TRACE", trace);
        let bytes: usize = row[2].replace(',', "").parse().unwrap();
        let called = ask(&lab, &command);
        called.answer();
        assert_eq!(called.stdout.len(), bytes, "{command}");
    }
}

#[test]
fn every_command_of_every_recipe_is_answered_with_rows() {
    let lab = Lab::new();
    let trace = lab.training();
    let recipes = pytorch().recipes();
    assert!(recipes.len() >= 6);
    for recipe in recipes {
        let mut row_id: Option<String> = None;
        for step in recipe.steps {
            let command = match (&row_id, step.command.contains("ROW_ID")) {
                (Some(row_id), true) => step.command.replace("ROW_ID", row_id),
                (None, true) => panic!("{}: no row id before `{}`", recipe.id, step.command),
                (_, false) => step.command.to_owned(),
            };
            let example = Example {
                asks: recipe.question,
                command: command.leak(),
            };
            let answer = lab.run_example(&example, &trace, &[]).answer();
            let rows = answer["data"]["rows"].as_array().unwrap();
            assert!(!rows.is_empty(), "{}: {}", recipe.id, step.command);
            row_id = rows[0]["row_id"].as_str().map(str::to_owned);
        }
    }
}

#[test]
fn a_recipe_is_shown_and_a_misspelt_one_guessed() {
    let lab = Lab::new();
    let listed = lab.run(&["recipes"]).answer();
    let ids: Vec<&str> = listed["data"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    for recipe in pytorch().recipes() {
        assert!(ids.contains(&recipe.id));
        let shown = lab.run(&["recipes", recipe.id]).answer();
        let steps = shown["data"]["rows"][0]["steps"].as_array().unwrap();
        assert_eq!(steps.len(), recipe.steps.len());
    }
    let misspelt = lab.run(&["recipes", "stp-time"]);
    assert_eq!(misspelt.status, 2);
    let hint = misspelt.parsed()["error"]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("`step-time`"), "{hint}");
}

#[test]
fn the_skill_is_installed_once_and_never_over_another_file() {
    let lab = Lab::new();
    assert_eq!(lab.run(&["skill"]).stdout, skill());
    let install = |more: &[&str]| lab.run(&[&["skill", "--install", "agent/skills"], more].concat());
    let written = |called: Called| called.answer()["data"]["rows"][0]["written"].clone();
    assert_eq!(written(install(&[])), Value::Bool(true));
    assert_eq!(written(install(&[])), Value::Bool(false));
    let path = lab.path().join("agent/skills/pytorch-profile-analysis/SKILL.md");
    assert_eq!(fs::read_to_string(&path).unwrap(), skill());
    fs::write(&path, "mine").unwrap();
    let refused = install(&[]);
    assert_eq!(
        (refused.status, &refused.parsed()["error"]["code"]),
        (2, &Value::from("usage.output_exists"))
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(written(install(&["--force"])), Value::Bool(true));
    assert_eq!(fs::read_to_string(&path).unwrap(), skill());
}
