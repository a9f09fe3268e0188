//! The commands that belong to no verb: sources, info, prep, clean, completions, man.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Lab, pytorch, shell_words};

fn files_under(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if path.is_dir() {
            found.extend(files_under(&path));
        } else {
            found.insert(path.to_str().unwrap().to_owned());
        }
    }
    found
}

#[test]
fn sources_tell_what_can_be_asked() {
    let answer = Lab::new().run(&["sources"]).answer();
    let row = &answer["data"]["rows"][0];
    assert_eq!((&row["name"], &row["version"]), (&"pytorch".into(), &"v0".into()));
    assert_eq!(
        row["claims"],
        serde_json::json!(["*.pt.trace.json", "*.pt.trace.json.gz"])
    );
    let verbs: Vec<&str> = row["verbs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verb| verb["name"].as_str().unwrap())
        .collect();
    let own: Vec<&str> = pytorch().verbs().iter().map(|verb| verb.name).collect();
    assert_eq!(verbs, [own.as_slice(), &["prep", "schema"]].concat());
}

#[test]
fn info_opens_nothing() {
    let lab = Lab::new();
    let trace = lab.training();
    lab.write("other.json", "{}");
    lab.write("notes.txt", "");
    let before = files_under(lab.path());
    let row = lab.run(&["info", &trace]).answer()["data"]["rows"][0].clone();
    assert_eq!(
        (&row["source"], &row["compression"]),
        (&"pytorch".into(), &"gzip".into())
    );
    assert_eq!(
        row["size_bytes"],
        std::fs::metadata(lab.path().join(&trace)).unwrap().len()
    );
    let statuses = row["sidecars"].as_array().unwrap();
    assert!(
        !statuses.is_empty() && statuses.iter().all(|sidecar| sidecar["status"] == "missing"),
        "{row}"
    );
    let other = lab.run(&["info", "other.json"]).answer()["data"]["rows"][0].clone();
    assert_eq!(
        (&other["source"], &other["detections"][0]["claim"]),
        (&().into(), &"maybe".into())
    );
    let notes = lab.run(&["info", "notes.txt"]).answer()["data"]["rows"][0].clone();
    assert_eq!(
        (&notes["artifact_dir"], &notes["detections"][0]["claim"]),
        (&().into(), &"no".into())
    );
    let folder = lab.run(&["info", "."]).answer();
    assert_eq!(folder["data"]["count"], 2, "{folder}");
    assert_eq!(files_under(lab.path()), before, "nothing was written");
    lab.run(&["prep", &trace]).answer();
    let row = lab.run(&["info", &trace]).answer()["data"]["rows"][0].clone();
    assert!(
        row["sidecars"]
            .as_array()
            .unwrap()
            .iter()
            .all(|sidecar| sidecar["status"] == "ready"),
        "{row}"
    );
}

#[test]
fn prep_builds_once_unless_forced() {
    let lab = Lab::new();
    let trace = lab.training();
    let prep = |words: &[&str]| {
        let words = [&["prep", trace.as_str()], words].concat();
        let answer = lab.run(&words).answer();
        let rows = answer["data"]["rows"].as_array().unwrap();
        assert!(!rows.is_empty());
        let statuses: BTreeSet<String> = rows
            .iter()
            .map(|row| row["status"].as_str().unwrap().to_owned())
            .collect();
        let statuses: Vec<String> = statuses.into_iter().collect();
        (statuses.join(" "), answer["data"]["auxiliary"].clone())
    };
    let (statuses, auxiliary) = prep(&["--status"]);
    assert_eq!(
        (statuses.as_str(), &auxiliary["built"]),
        ("missing", &false.into())
    );
    assert_eq!(auxiliary["elapsed_ms"], serde_json::Value::Null);
    let (statuses, auxiliary) = prep(&[]);
    assert_eq!((statuses.as_str(), &auxiliary["built"]), ("ready", &true.into()));
    assert_eq!(
        auxiliary["input_bytes"],
        std::fs::metadata(lab.path().join(&trace)).unwrap().len()
    );
    assert_eq!(prep(&[]).1["built"], false);
    assert_eq!(prep(&["--force"]).1["built"], true);
    let (statuses, auxiliary) = prep(&["--status"]);
    assert_eq!((statuses.as_str(), &auxiliary["built"]), ("ready", &false.into()));
}

#[test]
fn clean_removes_what_veloq_made_and_nothing_else() {
    let lab = Lab::new();
    let trace = lab.training();
    lab.write("mine.txt", "keep");
    let before = files_under(lab.path());
    lab.run(&["search", &trace]).answer();
    assert!(files_under(lab.path()).len() > before.len());
    let answer = lab.run(&["clean", &trace]).answer();
    assert!(
        answer["data"]["auxiliary"]["freed_bytes"].as_u64().unwrap() > 0,
        "{answer}"
    );
    assert_eq!(files_under(lab.path()), before);
    assert_eq!(lab.run(&["clean", &trace]).answer()["data"]["count"], 0);
    // A file of somebody else in the folder stays, and with it the folder.
    lab.run(&["search", &trace]).answer();
    let foreign = lab.path().join(format!("{trace}.veloq/notes.txt"));
    std::fs::write(&foreign, "mine").unwrap();
    lab.run(&["clean", &trace]).answer();
    assert!(foreign.is_file());
}

#[test]
fn clean_works_when_the_trace_is_gone() {
    let lab = Lab::new();
    let trace = lab.training();
    lab.run(&["search", &trace]).answer();
    std::fs::remove_file(lab.path().join(&trace)).unwrap();
    let answer = lab.run(&["clean", &trace]).answer();
    assert!(answer["data"]["count"].as_u64().unwrap() > 0, "{answer}");
    assert!(!lab.path().join(format!("{trace}.veloq")).exists());
}

#[test]
fn completions_know_verbs_and_flags() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let called = lab.run(&["completions", shell]);
        assert_eq!((called.status, called.stderr.as_str()), (0, ""), "{shell}");
        for word in ["summary", "duration", "sources"] {
            assert!(called.stdout.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn manual_pages_are_written_for_every_verb() {
    let lab = Lab::new();
    let page = lab.run(&["man"]);
    assert!(page.stdout.contains(".TH veloq"), "{}", page.stdout);
    let answer = lab.run(&["man", "pages/man1"]).answer();
    let names: Vec<&str> = answer["data"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    for verb in pytorch().verbs() {
        let name = format!("veloq-pytorch-{}", verb.name);
        assert!(names.contains(&name.as_str()), "{name}: {names:?}");
        let text = std::fs::read_to_string(lab.path().join(format!("pages/man1/{name}.1"))).unwrap();
        assert!(text.contains(".TH"), "{name}");
    }
    lab.write("file", "");
    lab.run(&["man", "file/below"]).error(5, "limit.output");
}

/// What the help of a command shows can be typed.
#[test]
fn examples_of_commands_work() {
    let lab = Lab::new();
    let trace = lab.training();
    let mut seen = 0;
    for command in veloq_cli::app().get_subcommands() {
        let help = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        for line in help.lines().filter_map(|line| line.strip_prefix("    veloq ")) {
            let words = shell_words(&line.replace("TRACE", &trace));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let called = lab.run(&words);
            assert_eq!(
                (called.status, called.stderr.as_str()),
                (0, ""),
                "{}",
                called.line
            );
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}

/// `veloq … | head -1` ends well.
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let lab = Lab::new();
    let trace = lab.training();
    let mut command = lab.command(["search", trace.as_str(), "--limit", "0"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
}
