//! A question a source can answer.

use clap::{ArgMatches, Args, FromArgMatches};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use crate::error::{ErrorClass, Explain, Failure};
use crate::schema::{answer_schema, request_schema};
use crate::source::SourceSpec;
use crate::table::TableView;

/// A command line that shows a verb at work; tests run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// What the example asks, in words.
    pub asks: &'static str,
    /// The arguments after `veloq`; `TRACE` stands for a trace.
    pub command: &'static str,
}

/// What is fixed about a verb.
#[derive(Debug, Clone, Copy)]
pub struct VerbSpec {
    /// The name on the command line.
    pub name: &'static str,
    /// The question it answers, in one line.
    pub about: &'static str,
    /// Worked command lines, shown in its help.
    pub examples: &'static [Example],
}

/// A response, erased: it serializes, and shows itself as a table.
pub trait Answer: erased_serde::Serialize + TableView + Send {}
impl<T: erased_serde::Serialize + TableView + Send> Answer for T {}
erased_serde::serialize_trait_object!(Answer);

/// A typed question on a source's session.
///
/// The doc comment of `Request` is the verb's help; its `Default` is the one home of every default.
pub trait Verb: Sync + 'static {
    /// The source's session.
    type Session;
    /// What is asked.
    type Request: Args + FromArgMatches + Default + Serialize + DeserializeOwned + JsonSchema;
    /// What is answered; the `data` of the envelope.
    type Response: Answer + JsonSchema + 'static;
    /// Name, purpose, examples.
    const SPEC: VerbSpec;

    /// Answers one question.
    ///
    /// # Errors
    /// Usage errors of the request, missing capabilities, limits.
    fn run(&self, session: &Self::Session, request: Self::Request) -> Result<Self::Response, Failure>;
}

/// A [`Verb`] whose types are hidden, so that a source can list its verbs.
pub trait ErasedVerb<S>: Sync {
    /// Returns name, purpose, examples.
    fn spec(&self) -> &'static VerbSpec;

    /// Adds the verb's flags and positional arguments to a command.
    fn augment(&self, command: clap::Command) -> clap::Command;

    /// Answers a question typed on the command line.
    ///
    /// # Errors
    /// Those of [`Verb::run`].
    fn run_args(&self, session: &S, matches: &ArgMatches) -> Result<Box<dyn Answer>, Failure>;

    /// Answers a question written as JSON; absent fields have their defaults.
    ///
    /// # Errors
    /// `usage.request` when the JSON does not fit the request; else those of [`Verb::run`].
    fn run_json(&self, session: &S, request: Value) -> Result<Box<dyn Answer>, Failure>;

    /// Returns the JSON Schema of the verb's request.
    fn request_schema(&self, source: &SourceSpec) -> Value;

    /// Returns the JSON Schema of the verb's whole answer, envelope included.
    fn answer_schema(&self, source: &SourceSpec) -> Value;
}

#[derive(Debug, thiserror::Error)]
#[error("the request does not fit `{verb}`")]
struct BadRequest {
    verb: &'static str,
    source: serde_json::Error,
}

impl Explain for BadRequest {
    fn code(&self) -> &'static str {
        "usage.request"
    }

    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn hint(&self) -> Option<String> {
        Some("Compare the request with the verb's request schema in `contracts/`.".to_owned())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the command line does not fit the verb")]
struct BadArguments(#[source] clap::Error);

impl Explain for BadArguments {
    fn code(&self) -> &'static str {
        "usage.arguments"
    }

    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

/// Returns a key of the request that its schema does not have; serde lets those of flattened structs pass.
fn unknown_key<'a>(request: &'a Value, schema: &Value) -> Option<&'a String> {
    let known = schema.get("properties");
    request
        .as_object()?
        .keys()
        .find(|key| known.and_then(|known| known.get(key.as_str())).is_none())
}

impl<V: Verb> ErasedVerb<V::Session> for V {
    fn spec(&self) -> &'static VerbSpec {
        const { &V::SPEC }
    }

    fn augment(&self, command: clap::Command) -> clap::Command {
        V::Request::augment_args(command)
    }

    fn run_args(&self, session: &V::Session, matches: &ArgMatches) -> Result<Box<dyn Answer>, Failure> {
        let request = V::Request::from_arg_matches(matches).map_err(BadArguments)?;
        Ok(Box::new(self.run(session, request)?))
    }

    fn run_json(&self, session: &V::Session, request: Value) -> Result<Box<dyn Answer>, Failure> {
        let bad_request = |source| BadRequest {
            verb: V::SPEC.name,
            source,
        };
        if let Some(key) = unknown_key(&request, &request_schema::<V::Request>("", V::SPEC.name)) {
            return Err(bad_request(serde_json::Error::custom(format!("unknown field `{key}`"))).into());
        }
        let request = serde_json::from_value(request).map_err(bad_request)?;
        Ok(Box::new(self.run(session, request)?))
    }

    fn request_schema(&self, source: &SourceSpec) -> Value {
        request_schema::<V::Request>(source.name, V::SPEC.name)
    }

    fn answer_schema(&self, source: &SourceSpec) -> Value {
        answer_schema::<V::Response>(Some(source), V::SPEC.name, true)
    }
}
