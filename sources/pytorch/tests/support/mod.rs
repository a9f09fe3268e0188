//! A trace in a folder of its own, asked through the registry as the binary does.

use std::path::Path;

use serde_json::{Value, json};
use veloq_core::{Input, PrepOptions, sources};

/// A trace whose tables land in a folder of their own.
pub(crate) struct Asked {
    _folder: tempfile::TempDir,
    pub(crate) input: Input,
}

/// Returns one of the traces under `fixtures/pytorch`.
pub(crate) fn fixture(name: &str) -> Asked {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/pytorch")
        .join(name);
    Asked::new(name, &std::fs::read(path).unwrap())
}

impl Asked {
    /// Writes the file of a trace.
    pub(crate) fn new(name: &str, content: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        Self {
            _folder: folder,
            input: Input::new(path),
        }
    }

    /// Returns the `data` of an answer, or the error's code.
    pub(crate) fn ask(&self, verb: &str, request: Value) -> Result<Value, String> {
        let source = sources()[0];
        let outcome = source
            .run_json(verb, &self.input, &PrepOptions::default(), request)
            .unwrap();
        outcome
            .map(|outcome| serde_json::to_value(&outcome.answer).unwrap())
            .map_err(|failure| failure.code().to_owned())
    }

    pub(crate) fn summary(&self) -> Value {
        self.ask("summary", json!({})).unwrap()["auxiliary"].take()
    }

    /// Returns the rows of an answer.
    pub(crate) fn rows(&self, verb: &str, request: Value) -> Vec<Value> {
        self.ask(verb, request).unwrap()["rows"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Returns the only event of a name.
    pub(crate) fn event(&self, name: &str) -> Value {
        let rows = self.rows("search", json!({ "name": name }));
        assert_eq!(rows.len(), 1, "`{name}`: {rows:?}");
        rows[0].clone()
    }

    /// Returns the finding of a code.
    pub(crate) fn finding(&self, code: &str) -> Option<Value> {
        let trust = self.summary()["trust"].take();
        trust["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|finding| finding["code"] == code)
            .cloned()
    }
}
