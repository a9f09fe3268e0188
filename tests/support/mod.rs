//! What the whole-binary tests share: runs of the real binary in a folder of their own, and checks of what
//! it prints against the contracts.

pub(crate) mod broken;
pub(crate) mod damage;
pub(crate) mod watch;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;
use tempfile::TempDir;
use veloq_core::{ErasedSource, Example};

/// A folder of its own for one test, with copies of fixtures; also the home of sidecars and caches.
pub(crate) struct Lab {
    folder: TempDir,
}

/// What one call printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) line: String,
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file and returns its name.
    pub(crate) fn write<'a>(&self, name: &'a str, bytes: impl AsRef<[u8]>) -> &'a str {
        std::fs::write(self.path().join(name), bytes).unwrap();
        name
    }

    /// Copies a file into the folder and returns its name.
    pub(crate) fn copy(&self, from: &Path) -> String {
        let name = from.file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::copy(from, self.path().join(&name)).unwrap();
        name
    }

    /// Copies the fixture that has a bit of everything and returns its name.
    pub(crate) fn training(&self) -> String {
        self.copy(&root().join("fixtures/pytorch/cuda_training.pt.trace.json.gz"))
    }

    /// Returns a command that runs the binary (the one that `VELOQ_BIN` names, if it does) in this folder, in
    /// surroundings that no machine changes.
    pub(crate) fn command<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let binary = std::env::var_os("VELOQ_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_veloq").into());
        let mut command = Command::new(binary);
        command
            .args(words)
            .current_dir(self.path())
            .env("VELOQ_CACHE_DIR", self.path().join("cache"))
            .stdin(Stdio::null());
        for variable in ["VELOQ_FORMAT", "COLUMNS", "NO_COLOR", "RUST_BACKTRACE"] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs the binary.
    pub(crate) fn run(&self, words: &[&str]) -> Called {
        called(&mut self.command(words.iter().copied()), words)
    }

    /// Runs an example of a verb on a trace in this folder.
    pub(crate) fn run_example(&self, example: &Example, trace: &str, more: &[&str]) -> Called {
        let mut words = shell_words(example.command);
        for word in words.iter_mut().filter(|word| *word == "TRACE") {
            trace.clone_into(word);
        }
        let words: Vec<&str> = words
            .iter()
            .map(String::as_str)
            .chain(more.iter().copied())
            .collect();
        self.run(&words)
    }
}

/// Runs a prepared command.
pub(crate) fn called(command: &mut Command, words: &[&str]) -> Called {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    Called {
        line: format!("veloq {}", words.join(" ")),
        status: status.code().unwrap_or(-1),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

impl Called {
    /// Returns the JSON on standard output, checked: one line, nothing on standard error, and it fits its
    /// contract, whether it is an answer or an error.
    pub(crate) fn json(&self) -> Value {
        self.checked()
            .unwrap_or_else(|fault| panic!("{}: {fault}\n{}{}", self.line, self.stdout, self.stderr))
    }

    /// Returns what [`json`](Self::json) does, or what is wrong with it.
    pub(crate) fn checked(&self) -> Result<Value, String> {
        if !self.stderr.is_empty() {
            return Err("there is something on standard error".to_owned());
        }
        if self.stdout.matches('\n').count() != 1 {
            return Err("standard output is not one line".to_owned());
        }
        let value = serde_json::from_str(&self.stdout).map_err(|fault| fault.to_string())?;
        check(&value)?;
        Ok(value)
    }

    /// Returns the answer of a call that is answered.
    pub(crate) fn answer(&self) -> Value {
        assert_eq!(self.status, 0, "{}: {}{}", self.line, self.stdout, self.stderr);
        let value = self.json();
        assert!(value.get("data").is_some(), "{}: {value}", self.line);
        value
    }

    /// Returns the error of a call that must fail with this status and code.
    pub(crate) fn error(&self, status: i32, code: &str) -> Value {
        let value = self.json();
        assert_eq!(
            (self.status, value["error"]["code"].as_str()),
            (status, Some(code)),
            "{}: {value}",
            self.line
        );
        value["error"].clone()
    }

    /// Returns what standard output holds, parsed and not checked.
    pub(crate) fn parsed(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|fault| panic!("{}: {fault}\n{}", self.line, self.stdout))
    }
}

/// Checks a whole answer or error against its contracts.
pub(crate) fn check(value: &Value) -> Result<(), String> {
    let all = contracts();
    let fits = |path: &str| {
        let contract = all.get(path).ok_or_else(|| format!("no contract {path}"))?;
        contract
            .validator
            .validate(value)
            .map_err(|fault| format!("{path}: {fault} at {}", fault.instance_path()))
    };
    if value.get("error").is_some() {
        return fits("error.schema.json");
    }
    fits("envelope.schema.json")?;
    fits(&response_contract(value["command"].as_str().unwrap_or_default()))
}

/// Returns the file that describes the answer of a command.
pub(crate) fn response_contract(command: &str) -> String {
    match command.split_once('.') {
        Some((source, verb)) => format!("{source}/{verb}.response.schema.json"),
        None => format!("meta/{command}.response.schema.json"),
    }
}

/// A schema, ready to check.
pub(crate) struct Contract {
    pub(crate) schema: Value,
    pub(crate) validator: Validator,
}

/// Returns all contracts by file: those generated from the types, and those written by hand.
pub(crate) fn contracts() -> &'static BTreeMap<String, Contract> {
    static ALL: OnceLock<BTreeMap<String, Contract>> = OnceLock::new();
    ALL.get_or_init(|| {
        let by_hand = ["envelope.schema.json", "error.schema.json"].map(|name| {
            let text = std::fs::read_to_string(root().join("contracts").join(name)).unwrap();
            (name.to_owned(), text)
        });
        let generated = veloq_cli::contracts()
            .into_iter()
            .map(|contract| (contract.path, contract.text));
        generated
            .chain(by_hand)
            .map(|(path, text)| {
                let schema: Value = serde_json::from_str(&text).unwrap();
                let validator = jsonschema::validator_for(&schema).unwrap();
                (path, Contract { schema, validator })
            })
            .collect()
    })
}

/// Returns the workspace's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the fixtures of a source, sorted by name.
pub(crate) fn fixtures(source: &str) -> Vec<PathBuf> {
    let paths = files_in(&root().join("fixtures").join(source));
    assert!(
        !paths.is_empty(),
        "the fixtures of {source} are part of this repository"
    );
    paths
}

/// Returns whether a fixture is a file that only looks like a trace.
pub(crate) fn is_lookalike(fixture: &Path) -> bool {
    fixture
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .starts_with("lookalike_")
}

/// Returns the real traces, when there are any: in `VELOQ_TRACES`, else beside the workspace.
pub(crate) fn real_traces() -> Vec<PathBuf> {
    let folder =
        std::env::var_os("VELOQ_TRACES").map_or_else(|| root().join("../shared/traces"), PathBuf::from);
    let mut paths = if folder.is_dir() {
        files_in(&folder)
    } else {
        Vec::new()
    };
    paths.retain(|path| {
        path.to_string_lossy().ends_with(".json") || path.to_string_lossy().ends_with(".json.gz")
    });
    if paths.is_empty() {
        // Unlike the print macros, this is shown when the test passes, too.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: no real traces in {} (set VELOQ_TRACES)",
            folder.display()
        );
    }
    paths
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths
}

/// Returns the one source that traces of the fixtures belong to.
pub(crate) fn pytorch() -> &'static dyn ErasedSource {
    let sources = veloq_core::sources();
    *sources
        .iter()
        .find(|source| source.spec().name == "pytorch")
        .unwrap()
}

/// Returns all examples of all verbs of the pytorch source.
pub(crate) fn examples() -> Vec<&'static Example> {
    pytorch()
        .verbs()
        .into_iter()
        .flat_map(|verb| verb.examples)
        .collect()
}

/// Splits a command line as a shell does, as far as examples need it: blanks, and both kinds of quotes.
pub(crate) fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
