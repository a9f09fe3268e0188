//! A profiler whose traces veloq can read, and the registry of all of them.

use std::fmt::Debug;
use std::path::PathBuf;

use clap::ArgMatches;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::detect::{Detection, Probe};
use crate::error::Failure;
use crate::guide::{Recipe, Skill};
use crate::interrupt::Interrupt;
use crate::response::TraceSpan;
use crate::verb::{Answer, ErasedVerb, VerbSpec};

/// What is fixed about a source.
#[derive(Debug, Clone, Copy)]
pub struct SourceSpec {
    /// The name on the command line and in answers.
    pub name: &'static str,
    /// The version of its answers.
    pub version: &'static str,
    /// What it reads, in one line.
    pub about: &'static str,
    /// The file names it claims without being asked by name.
    pub claims: &'static [&'static str],
    /// Who is asked first when files are detected; unique, higher first.
    pub priority: u16,
}

/// The one trace of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The path as given.
    pub path: PathBuf,
}

impl Input {
    /// Returns the input at a path; nothing is opened.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path as answers show it.
    pub fn display(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Returns the file's name as detection sees it; lossy where it is not UTF-8.
    pub fn file_name(&self) -> String {
        self.path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }
}

/// Is told how far the opening of a trace has come; called from any thread.
pub trait ProgressSink: Send + Sync {
    /// Tells the bytes of input read so far, out of the input's size.
    fn advance(&self, read_bytes: u64, total_bytes: u64);
}

/// How a trace is to be opened.
#[derive(Clone, Copy, Default)]
pub struct PrepOptions<'a> {
    /// Whether existing sidecars are rebuilt.
    pub force: bool,
    /// Whether the first damage in the input is an error instead of a finding.
    pub strict: bool,
    /// How many threads may work; `None` takes what the machine has.
    pub threads: Option<usize>,
    /// Who wants to hear of progress.
    pub progress: Option<&'a dyn ProgressSink>,
    /// Who may ask to stop. A source that is asked to fails with any error, and leaves nothing half-made.
    pub interrupt: Option<&'a Interrupt>,
}

impl Debug for PrepOptions<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PrepOptions")
            .field("force", &self.force)
            .field("strict", &self.strict)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// What the opening of a trace cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Preparation {
    /// Where the sidecars are.
    pub artifact_dir: PathBuf,
    /// Whether they were built by this call.
    pub built: bool,
    /// Wall time of the opening.
    pub elapsed_ms: u64,
    /// The input's size on disk.
    pub input_bytes: u64,
}

/// An opened trace.
pub trait Session {
    /// Returns the time the trace covers, if it covers any.
    fn span(&self) -> Option<TraceSpan>;

    /// Returns what opening it cost.
    fn preparation(&self) -> &Preparation;
}

/// The state of one stored table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SidecarStatus {
    /// Complete, and of this input.
    Ready,
    /// Not there.
    Missing,
    /// Of another input or another format version.
    Stale,
    /// Damaged.
    Corrupt,
}

/// One stored table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidecar {
    /// The table's name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// Its state.
    pub status: SidecarStatus,
    /// Its rows, when it can be read.
    pub rows: Option<u64>,
    /// Its size on disk, when it is there.
    pub bytes: Option<u64>,
}

/// The stored tables of a trace, none built for the asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidecarReport {
    /// Where they are, or would be.
    pub artifact_dir: PathBuf,
    /// The input's size on disk.
    pub input_bytes: u64,
    /// One entry a table, in a fixed order.
    pub sidecars: Vec<Sidecar>,
}

/// What `clean` removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanReport {
    /// The removed files and folders, with the bytes each held.
    pub removed: Vec<(PathBuf, u64)>,
    /// What was left alone, with the reason.
    pub kept: Vec<(PathBuf, String)>,
}

/// A column of a stored table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableColumn {
    /// The column's name.
    pub name: String,
    /// The type of its values.
    pub data_type: String,
    /// Whether a value may be absent.
    pub is_nullable: bool,
    /// What the values are, with their unit.
    pub doc: String,
}

/// A stored table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableSchema {
    /// The table's name.
    pub name: String,
    /// What a row is, and the order of the rows.
    pub doc: String,
    /// Its columns.
    pub columns: Vec<TableColumn>,
}

/// What a source stores of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceSchema {
    /// The tables, in a fixed order.
    pub tables: Vec<TableSchema>,
}

/// A profiler whose traces can be read.
///
/// # Example
/// A source is a unit type with a session, a list of verbs, and one line that registers it:
/// `inventory::submit! { SourceEntry::new(&MySource) }`.
pub trait Source: Sync + 'static {
    /// An opened trace.
    type Session: Session + 'static;
    /// Name, version, claims.
    const SPEC: SourceSpec;

    /// Returns whether a file is one of this source's; looks at nothing but the probe.
    fn detect(&self, probe: &Probe<'_>) -> Detection;

    /// Opens a trace: reuses its sidecars, or builds them.
    ///
    /// # Errors
    /// Input errors, limits, and nothing about the question: that comes later.
    fn prep(&self, input: &Input, options: &PrepOptions<'_>) -> Result<Self::Session, Failure>;

    /// Returns the state of a trace's sidecars; builds nothing.
    ///
    /// # Errors
    /// `input.…` when the input itself is missing or cannot be looked at.
    fn sidecars(&self, input: &Input) -> Result<SidecarReport, Failure>;

    /// Removes what this source stored of a trace, and nothing else. The trace itself may be gone.
    ///
    /// # Errors
    /// When something of its own could not be removed.
    fn clean(&self, input: &Input) -> Result<CleanReport, Failure>;

    /// Returns the tables a trace is stored as.
    fn schema(&self) -> SourceSchema;

    /// Returns the verbs in the order of the help.
    fn verbs(&self) -> &'static [&'static dyn ErasedVerb<Self::Session>];

    /// Returns ways to answer questions that take several commands.
    fn recipes(&self) -> &'static [Recipe] {
        &[]
    }

    /// Returns instructions for coding agents.
    fn skill(&self) -> Option<Skill> {
        None
    }
}

/// An answer on its way to the envelope.
pub struct Outcome {
    /// The time the trace covers.
    pub span: Option<TraceSpan>,
    /// The answer.
    pub answer: Box<dyn Answer>,
}

/// A [`Source`] whose session is hidden, so that all sources fit one registry.
pub trait ErasedSource: Sync {
    /// Returns name, version, claims.
    fn spec(&self) -> &'static SourceSpec;
    /// See [`Source::detect`].
    fn detect(&self, probe: &Probe<'_>) -> Detection;
    /// Opens a trace and tells what it cost; see [`Source::prep`].
    ///
    /// # Errors
    /// Those of [`Source::prep`].
    fn prep(
        &self,
        input: &Input,
        options: &PrepOptions<'_>,
    ) -> Result<(Preparation, Option<TraceSpan>), Failure>;
    /// See [`Source::sidecars`].
    ///
    /// # Errors
    /// Those of [`Source::sidecars`].
    fn sidecars(&self, input: &Input) -> Result<SidecarReport, Failure>;
    /// See [`Source::clean`].
    ///
    /// # Errors
    /// Those of [`Source::clean`].
    fn clean(&self, input: &Input) -> Result<CleanReport, Failure>;
    /// See [`Source::schema`].
    fn schema(&self) -> SourceSchema;
    /// Returns the specs of all verbs, in the order of the help.
    fn verbs(&self) -> Vec<&'static VerbSpec>;
    /// See [`Source::recipes`].
    fn recipes(&self) -> &'static [Recipe];
    /// See [`Source::skill`].
    fn skill(&self) -> Option<Skill>;
    /// Adds a verb's arguments to a command; unknown verbs add none.
    fn augment(&self, verb: &str, command: clap::Command) -> clap::Command;
    /// Opens the trace and answers a question typed on the command line; `None` for an unknown verb.
    ///
    /// # Errors
    /// Those of opening and of the verb.
    fn run(
        &self,
        verb: &str,
        input: &Input,
        options: &PrepOptions<'_>,
        matches: &ArgMatches,
    ) -> Option<Result<Outcome, Failure>>;
    /// Opens the trace and answers a question written as JSON; `None` for an unknown verb.
    ///
    /// # Errors
    /// Those of opening and of the verb.
    fn run_json(
        &self,
        verb: &str,
        input: &Input,
        options: &PrepOptions<'_>,
        request: Value,
    ) -> Option<Result<Outcome, Failure>>;
    /// Returns the schemas of a verb's request and of its whole answer; `None` for an unknown verb.
    fn verb_schemas(&self, verb: &str) -> Option<(Value, Value)>;
}

fn find_verb<S: Source>(source: &S, name: &str) -> Option<&'static dyn ErasedVerb<S::Session>> {
    source
        .verbs()
        .iter()
        .copied()
        .find(|verb| verb.spec().name == name)
}

/// How often a question is asked before what others do to its files meanwhile is an error.
const ATTEMPTS: u32 = 8;

/// Asks until there is an answer, or an error that asking again does not help.
fn persistently<T>(mut ask: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    for _ in 1..ATTEMPTS {
        match ask() {
            Err(failure) if failure.is_passing() => {}
            ended => return ended,
        }
    }
    ask()
}

impl<S: Source> ErasedSource for S {
    fn spec(&self) -> &'static SourceSpec {
        const { &S::SPEC }
    }

    fn detect(&self, probe: &Probe<'_>) -> Detection {
        Source::detect(self, probe)
    }

    fn prep(
        &self,
        input: &Input,
        options: &PrepOptions<'_>,
    ) -> Result<(Preparation, Option<TraceSpan>), Failure> {
        persistently(|| {
            let session = Source::prep(self, input, options)?;
            Ok((session.preparation().clone(), session.span()))
        })
    }

    fn sidecars(&self, input: &Input) -> Result<SidecarReport, Failure> {
        Source::sidecars(self, input)
    }

    fn clean(&self, input: &Input) -> Result<CleanReport, Failure> {
        Source::clean(self, input)
    }

    fn schema(&self) -> SourceSchema {
        Source::schema(self)
    }

    fn recipes(&self) -> &'static [Recipe] {
        Source::recipes(self)
    }

    fn skill(&self) -> Option<Skill> {
        Source::skill(self)
    }

    fn verbs(&self) -> Vec<&'static VerbSpec> {
        Source::verbs(self).iter().map(|verb| verb.spec()).collect()
    }

    fn augment(&self, verb: &str, command: clap::Command) -> clap::Command {
        match find_verb(self, verb) {
            Some(verb) => verb.augment(command),
            None => command,
        }
    }

    fn run(
        &self,
        verb: &str,
        input: &Input,
        options: &PrepOptions<'_>,
        matches: &ArgMatches,
    ) -> Option<Result<Outcome, Failure>> {
        let verb = find_verb(self, verb)?;
        Some(persistently(|| {
            let session = Source::prep(self, input, options)?;
            let answer = verb.run_args(&session, matches)?;
            Ok(Outcome {
                span: session.span(),
                answer,
            })
        }))
    }

    fn run_json(
        &self,
        verb: &str,
        input: &Input,
        options: &PrepOptions<'_>,
        request: Value,
    ) -> Option<Result<Outcome, Failure>> {
        let verb = find_verb(self, verb)?;
        Some(persistently(|| {
            let session = Source::prep(self, input, options)?;
            let answer = verb.run_json(&session, request.clone())?;
            Ok(Outcome {
                span: session.span(),
                answer,
            })
        }))
    }

    fn verb_schemas(&self, verb: &str) -> Option<(Value, Value)> {
        let verb = find_verb(self, verb)?;
        Some((verb.request_schema(&S::SPEC), verb.answer_schema(&S::SPEC)))
    }
}

/// A source's entry in the registry.
///
/// Registration runs before `main`, and only in binaries that link the source's crate: a `use` of the
/// crate is what links it. The constructor is public so that the registry could be an explicit list.
pub struct SourceEntry {
    source: &'static dyn ErasedSource,
}

impl SourceEntry {
    /// Returns the entry of a source.
    pub const fn new(source: &'static dyn ErasedSource) -> Self {
        Self { source }
    }
}

inventory::collect!(SourceEntry);

/// Returns all registered sources, sorted by name.
pub fn sources() -> Vec<&'static dyn ErasedSource> {
    let mut all: Vec<_> = inventory::iter::<SourceEntry>
        .into_iter()
        .map(|entry| entry.source)
        .collect();
    all.sort_by_key(|source| source.spec().name);
    all
}

/// Returns what is wrong with the registry: no source at all, or two with one name or one priority.
pub fn check_registry(sources: &[&'static dyn ErasedSource]) -> Result<(), String> {
    if sources.is_empty() {
        return Err("built without sources".to_owned());
    }
    for (i, a) in sources.iter().enumerate() {
        for b in &sources[i + 1..] {
            if a.spec().name == b.spec().name {
                return Err(format!("two sources are named `{}`", a.spec().name));
            }
            if a.spec().priority == b.spec().priority {
                return Err(format!(
                    "the sources `{}` and `{}` have one priority",
                    a.spec().name,
                    b.spec().name
                ));
            }
        }
    }
    Ok(())
}
