//! Linking the crate is all it takes: the command line lists the source, finds its files, asks its verbs and
//! knows its schemas. A third source, made here, does what a source must not do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use veloq_cli::{GLOBAL_IDS, Surroundings};
use veloq_core::{
    Answer, CleanReport, Detection, ErasedVerb, Example, Failure, Input, Page, PrepOptions, Preparation,
    Probe, SidecarReport, Source, SourceEntry, SourceSchema, SourceSpec, Table, TableView, TraceSpan, Verb,
    VerbSpec, inventory, sources,
};
use veloq_source_spans as _;

struct Called {
    status: u8,
    stdout: String,
    stderr: String,
}

impl Called {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

fn veloq(words: &[&str]) -> Called {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let argv = std::iter::once("veloq")
        .chain(words.iter().copied())
        .map(OsString::from);
    let status = veloq_cli::run(argv, &Surroundings::default(), &mut stdout, &mut stderr);
    Called {
        status,
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

const SPANS: &str = "\
{\"name\":\"load\",\"start_ns\":1000,\"dur_ns\":50,\"thread\":\"main\"}
{\"name\":\"step\",\"start_ns\":1100,\"dur_ns\":400}
{\"name\":\"load\",\"start_ns\":1200,\"dur_ns\":50}
";

fn trace(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, SPANS).unwrap();
    path
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn the_source_is_listed() {
    let called = veloq(&["sources"]);
    let answer = called.json();
    let names: Vec<&str> = answer["data"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"spans"), "{names:?}");
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!((called.status, called.stderr.as_str()), (0, ""));
}

#[test]
fn its_files_are_found_without_naming_it() {
    let folder = folder();
    let path = trace(folder.path(), "run.spans.ndjson");
    let path = path.to_str().unwrap();
    let short = veloq(&["longest", path]);
    assert_eq!(short.status, 0, "{}", short.stdout);
    assert_eq!(short.stdout, veloq(&["spans", "longest", path]).stdout);
    let answer = short.json();
    assert_eq!(answer["command"], "spans.longest");
    assert_eq!(answer["trace_span"]["origin_ns"], "1000");
    assert_eq!(answer["trace_span"]["span_ns"], 500);
    let keys: Vec<&Value> = answer["data"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["key"])
        .collect();
    assert_eq!(keys, ["span|1", "span|0", "span|2"]);
    assert_eq!(answer["data"]["rows"][0]["start_ns"], 100);
}

#[test]
fn other_names_need_the_source_and_the_error_types_it() {
    let folder = folder();
    let path = trace(folder.path(), "my run.ndjson");
    let path = path.to_str().unwrap();
    let called = veloq(&["longest", path, "--limit", "1"]);
    let error = called.json();
    assert_eq!(
        (called.status, &error["error"]["code"]),
        (2, &"usage.source_needed".into())
    );
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(
        hint.contains(&format!("`veloq spans longest '{path}' --limit 1`")),
        "{hint}"
    );
    assert_eq!(veloq(&["spans", "longest", path]).status, 0);
    let other = trace(folder.path(), "run.txt");
    let refused = veloq(&["spans", "longest", other.to_str().unwrap()]);
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (3, &"input.not_accepted".into())
    );
}

#[test]
fn answers_fit_their_schema_and_broken_ones_do_not() {
    let folder = folder();
    let path = trace(folder.path(), "run.spans.ndjson");
    let answer = veloq(&["longest", path.to_str().unwrap()]).json();
    let schema = veloq(&["spans", "schema", "longest"]).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.validate(&answer).unwrap();
    let envelope = veloq(&["spans", "schema", "envelope"]).json();
    jsonschema::validator_for(&envelope)
        .unwrap()
        .validate(&answer)
        .unwrap();
    let mut lacking = answer.clone();
    lacking["data"]["rows"][0]
        .as_object_mut()
        .unwrap()
        .remove("duration_ns");
    assert!(!validator.is_valid(&lacking));
    let mut extra = answer.clone();
    extra["data"]["rows"][0]["colour"] = "red".into();
    assert!(!validator.is_valid(&extra));
    let mut mistyped = answer;
    mistyped["data"]["rows"][0]["start_ns"] = "100".into();
    assert!(!validator.is_valid(&mistyped));
}

#[test]
fn verbs_of_the_framework_come_for_free() {
    let folder = folder();
    let path = trace(folder.path(), "run.spans.ndjson");
    let path = path.to_str().unwrap();
    let prep = veloq(&["prep", path]);
    assert_eq!(
        (prep.status, &prep.json()["data"]["count"]),
        (0, &0.into()),
        "{}",
        prep.stdout
    );
    assert_eq!(prep.json()["command"], "spans.prep");
    let info = veloq(&["info", path]).json();
    assert_eq!(info["data"]["rows"][0]["source"], "spans");
    assert_eq!(veloq(&["clean", path]).json()["data"]["count"], 0);
    let listed = veloq(&["info", folder.path().to_str().unwrap()]).json();
    assert_eq!(listed["data"]["rows"][0]["path"], path);
}

#[test]
fn verbs_of_another_source_are_refused_for_its_files() {
    let folder = folder();
    let path = trace(folder.path(), "run.spans.ndjson");
    let called = veloq(&["panics", path.to_str().unwrap()]);
    assert_eq!(
        (called.status, &called.json()["error"]["code"]),
        (2, &"usage.unknown_verb".into())
    );
}

#[test]
fn shared_verbs_take_the_flags_of_the_source_that_claims_the_file() {
    let folder = folder();
    let path = trace(folder.path(), "run.faulty");
    let called = veloq(&["longest", path.to_str().unwrap(), "--only-faulty", "7"]);
    assert_eq!(called.status, 0, "{}", called.stdout);
    assert_eq!(called.json()["command"], "faulty.longest");
    let path = trace(folder.path(), "run.spans.ndjson");
    let called = veloq(&["longest", path.to_str().unwrap(), "--name", "load"]);
    assert_eq!(called.json()["data"]["count"], 2);
    let called = veloq(&["longest", path.to_str().unwrap(), "--only-faulty", "7"]);
    assert_eq!(
        (called.status, &called.json()["error"]["code"]),
        (2, &"usage.unknown_flag".into())
    );
}

#[test]
fn every_source_keeps_its_promises() {
    for source in sources() {
        veloq_core::testing::check_source(source, GLOBAL_IDS);
    }
    veloq_core::check_registry(&sources()).unwrap();
    veloq_cli::app().debug_assert();
}

#[test]
fn damaged_files_are_input_errors() {
    let folder = folder();
    let path = folder.path().join("bad.spans.ndjson");
    std::fs::write(&path, "{\"name\": 5}").unwrap();
    let called = veloq(&["longest", path.to_str().unwrap()]);
    let error = called.json();
    assert_eq!(
        (called.status, &error["error"]["code"]),
        (3, &"input.not_a_span".into())
    );
    assert_eq!(error["error"]["chain"].as_array().unwrap().len(), 1);
    assert_eq!(error["trace"]["kind"], "spans");
}

#[test]
fn a_panic_is_a_report_with_status_70() {
    let folder = folder();
    let path = trace(folder.path(), "run.faulty");
    let path = path.to_str().unwrap();
    let called = veloq(&["panics", path]);
    let error = called.json();
    assert_eq!(
        (called.status, &error["error"]["code"]),
        (70, &"internal.panic".into())
    );
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("index out of the trace")
    );
    let text = veloq(&["panics", path, "--format", "table"]);
    assert_eq!((text.status, text.stdout.as_str()), (70, ""));
    assert!(text.stderr.starts_with("error: "), "{}", text.stderr);
}

#[test]
fn an_answer_that_is_no_json_is_a_fault_of_ours_and_leaves_no_half() {
    let folder = folder();
    let path = trace(folder.path(), "run.faulty");
    let called = veloq(&["longest", path.to_str().unwrap()]);
    assert_eq!(
        (called.status, &called.json()["error"]["code"]),
        (70, &"internal.serialize".into())
    );
}

#[test]
fn a_closed_pipe_is_a_quiet_success_and_a_full_disk_is_not() {
    struct Refuses(std::io::ErrorKind);
    impl std::io::Write for Refuses {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    for (kind, expected) in [
        (std::io::ErrorKind::BrokenPipe, 0),
        (std::io::ErrorKind::StorageFull, 5),
    ] {
        for format in ["json", "csv", "table", "md"] {
            let mut stderr = Vec::new();
            let argv = ["veloq", "sources", "--format", format].map(OsString::from);
            let status = veloq_cli::run(argv, &Surroundings::default(), &mut Refuses(kind), &mut stderr);
            assert_eq!(status, expected, "{format}");
            assert_eq!(stderr.is_empty(), expected == 0, "{format}");
        }
    }
}

/// A source whose verbs panic, or answer what cannot be JSON.
struct Faulty;

inventory::submit! { SourceEntry::new(&Faulty) }

struct FaultySession(Preparation);

impl veloq_core::Session for FaultySession {
    fn span(&self) -> Option<TraceSpan> {
        None
    }

    fn preparation(&self) -> &Preparation {
        &self.0
    }
}

impl Source for Faulty {
    type Session = FaultySession;
    const SPEC: SourceSpec = SourceSpec {
        name: "faulty",
        version: "v0",
        about: "Nothing well",
        claims: &["*.faulty"],
        priority: 1,
    };

    fn detect(&self, probe: &Probe<'_>) -> Detection {
        if probe.name.ends_with(".faulty") {
            Detection::Yes("its name")
        } else {
            Detection::No
        }
    }

    fn prep(&self, input: &Input, _: &PrepOptions<'_>) -> Result<FaultySession, Failure> {
        Ok(FaultySession(Preparation {
            artifact_dir: input.path.clone(),
            built: false,
            elapsed_ms: 0,
            input_bytes: 0,
        }))
    }

    fn sidecars(&self, input: &Input) -> Result<SidecarReport, Failure> {
        Ok(SidecarReport {
            artifact_dir: input.path.clone(),
            input_bytes: 0,
            sidecars: Vec::new(),
        })
    }

    fn clean(&self, _: &Input) -> Result<CleanReport, Failure> {
        Ok(CleanReport::default())
    }

    fn schema(&self) -> SourceSchema {
        SourceSchema { tables: Vec::new() }
    }

    fn verbs(&self) -> &'static [&'static dyn ErasedVerb<FaultySession>] {
        &[&Panics, &Unserializable]
    }
}

/// Nothing to ask
#[derive(Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct NoRequest {}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct NoResponse(Page<u8, u8>);

impl TableView for NoResponse {
    fn table(&self) -> Table {
        Table {
            sections: Vec::new(),
            total_matched: 0,
            notes: Vec::new(),
        }
    }
}

struct Panics;

impl Verb for Panics {
    type Session = FaultySession;
    type Request = NoRequest;
    type Response = NoResponse;
    const SPEC: VerbSpec = VerbSpec {
        name: "panics",
        about: "Panics",
        examples: &[Example {
            asks: "A panic",
            command: "faulty panics TRACE",
        }],
    };

    fn run(&self, _: &FaultySession, _: NoRequest) -> Result<NoResponse, Failure> {
        panic!("index out of the trace")
    }
}

/// Asks for a fault
#[derive(Debug, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct FaultRequest {
    /// A flag that no other source has; without it the answer is no JSON
    #[arg(long)]
    only_faulty: Option<u8>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Sometimes {
    Sound {
        count: u8,
    },
    #[serde(serialize_with = "refuse")]
    Broken {
        rows: u8,
    },
}

fn refuse<S: serde::Serializer>(_: &u8, _: S) -> Result<S::Ok, S::Error> {
    Err(serde::ser::Error::custom("not today"))
}

impl TableView for Sometimes {
    fn table(&self) -> Table {
        NoResponse(Page::new(Vec::new(), 0, 0)).table()
    }
}

struct Unserializable;

impl Verb for Unserializable {
    type Session = FaultySession;
    type Request = FaultRequest;
    type Response = Sometimes;
    const SPEC: VerbSpec = VerbSpec {
        name: "longest",
        about: "Shares its name with a verb of another source",
        examples: &[Example {
            asks: "An answer",
            command: "faulty longest TRACE --only-faulty 1",
        }],
    };

    fn run(&self, _: &FaultySession, request: FaultRequest) -> Result<Sometimes, Failure> {
        Ok(match request.only_faulty {
            Some(count) => Sometimes::Sound { count },
            None => Sometimes::Broken { rows: 0 },
        })
    }
}

#[test]
fn erased_answers_are_those_of_the_verb() {
    let sound: Box<dyn Answer> = Box::new(Sometimes::Sound { count: 3 });
    assert_eq!(serde_json::to_string(&sound).unwrap(), "{\"count\":3}");
}
