//! What may happen to files while veloq works: whole processes, and answers compared byte for byte with those
//! of an undisturbed run.

mod changes;
mod links;
mod places;
mod processes;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Called, Lab};

/// The questions whose answers are compared: one from the manifest, and one from each kind of table.
const QUESTIONS: [&[&str]; 3] = [
    &["summary"],
    &["search", "--type", "all", "--limit", "0"],
    &["collectives", "--limit", "0"],
];

fn words<'a>(question: &[&'a str], trace: &'a str) -> Vec<&'a str> {
    let (verb, flags) = question.split_first().unwrap();
    [&[*verb, trace], flags].concat()
}

/// A trace in a folder of its own, and what an undisturbed run answers.
struct Guarded {
    lab: Lab,
    name: String,
    bytes: Vec<u8>,
    answers: Vec<String>,
}

/// Returns an answer without the one thing in it that tells where the tables are.
fn without_place(answer: &str) -> String {
    const KEY: &str = "\"artifact_dir\":\"";
    match answer.split_once(KEY) {
        Some((before, place)) => {
            let end = place.find('"').unwrap();
            format!("{before}{KEY}{}", &place[end..])
        }
        None => answer.to_owned(),
    }
}

/// Returns what an undisturbed run answers to all questions about a trace of this name and content.
fn undisturbed(name: &str, bytes: &[u8]) -> Vec<String> {
    let lab = Lab::new();
    lab.write(name, bytes);
    let answers = QUESTIONS.iter().map(|question| {
        let called = lab.run(&words(question, name));
        called.answer();
        without_place(&called.stdout)
    });
    answers.collect()
}

impl Guarded {
    fn new() -> Self {
        let lab = Lab::new();
        let name = lab.training();
        let bytes = fs::read(lab.path().join(&name)).unwrap();
        let answers = undisturbed(&name, &bytes);
        Self {
            lab,
            name,
            bytes,
            answers,
        }
    }

    fn input(&self) -> PathBuf {
        self.lab.path().join(&self.name)
    }

    /// The folder of what is derived from the trace.
    fn root(&self) -> PathBuf {
        self.lab.path().join(format!("{}.veloq", self.name))
    }

    /// The folder of the tables.
    fn tables(&self) -> PathBuf {
        self.root().join("pytorch")
    }

    fn cache(&self) -> PathBuf {
        self.lab.path().join("cache")
    }

    fn command(&self, question: &[&str]) -> Command {
        self.lab.command(words(question, &self.name))
    }

    fn run(&self, question: &[&str]) -> Called {
        self.lab.run(&words(question, &self.name))
    }

    /// Checks that nothing happened to the trace.
    fn assert_kept(&self, what: &str) {
        assert!(
            fs::read(self.input()).unwrap() == self.bytes,
            "{what}: the trace itself"
        );
    }

    /// Checks that a question is answered as in an undisturbed run.
    fn assert_answered(&self, at: usize, called: &Called, what: &str) {
        assert_eq!(
            called.status, 0,
            "{what}: {} {}{}",
            called.line, called.stdout, called.stderr
        );
        assert!(
            without_place(&called.stdout) == self.answers[at],
            "{what}: {}\n{}\ninstead of\n{}",
            called.line,
            called.stdout,
            self.answers[at]
        );
    }

    /// Asks all questions and checks that they are answered as in an undisturbed run.
    fn assert_right(&self, what: &str) {
        for (at, question) in QUESTIONS.iter().enumerate() {
            self.assert_answered(at, &self.run(question), what);
        }
        self.assert_kept(what);
    }

    /// Checks that a call that may fail gave either the right answer or one of these errors.
    fn assert_right_or(&self, at: usize, called: &Called, codes: &[&str], what: &str) {
        if called.status == 0 {
            return self.assert_answered(at, called, what);
        }
        let error = called.parsed();
        let code = error["error"]["code"].as_str().unwrap_or_default();
        assert!(
            codes.contains(&code),
            "{what}: {} {}{}",
            called.line,
            called.stdout,
            called.stderr
        );
        assert!(error["error"]["hint"].is_string(), "{what}: {error}");
        self.assert_kept(what);
    }

    /// Checks that nothing but whole tables is beside the trace, and nothing in the cache.
    fn assert_tidy(&self, what: &str) {
        let beside: Vec<_> = tree(&self.root()).into_keys().map(|path| top(&path)).collect();
        assert!(beside.iter().all(|name| name == "pytorch"), "{what}: {beside:?}");
        let cached = tree(&self.cache());
        assert!(cached.is_empty(), "{what}: {cached:?}");
    }
}

fn top(path: &Path) -> String {
    path.iter().next().unwrap().to_string_lossy().into_owned()
}

/// Returns all there is in a folder: files with their content, links with what they lead to.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    fn walk(base: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            let what = if kind.is_symlink() {
                format!("link to {}", fs::read_link(&path).unwrap().display())
            } else if kind.is_dir() {
                walk(base, &path, found);
                "folder".to_owned()
            } else {
                format!("{:?}", fs::read(&path).unwrap())
            };
            found.insert(path.strip_prefix(base).unwrap().to_owned(), what);
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, folder, &mut found);
    found
}

/// Says plainly that a case could not be tried here.
fn skipped(why: &str) {
    // Unlike the print macros, this is shown when the test passes, too.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
