//! The JSON Schemas of everything veloq reads and prints: the files in `contracts/`.

use serde_json::Value;
use veloq_core::{ErasedSource, sources};

use crate::framework::FRAMEWORK;
use crate::meta::META;

/// Which side of a command a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// What is asked, as JSON.
    Request,
    /// The whole answer, envelope included.
    Response,
}

/// A JSON Schema that callers may rely on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// What `schema` calls it: `summary`, `envelope`.
    pub target: String,
    /// What it describes, in one line.
    pub about: String,
    /// Its file, relative to `contracts/`.
    pub path: String,
    /// Which side it describes.
    pub side: Side,
    /// The schema, as the file holds it.
    pub text: String,
}

/// Returns the contracts of all linked sources and of veloq's own commands, generated from the types.
pub fn contracts() -> Vec<Contract> {
    let mut all: Vec<Contract> = sources().into_iter().flat_map(of_source).collect();
    all.extend(of_commands());
    all
}

/// Returns those of one source: both sides of each verb, in the order of the help.
pub(crate) fn of_source(source: &'static dyn ErasedSource) -> Vec<Contract> {
    let spec = source.spec();
    let own = source.verbs().into_iter().filter_map(|verb| {
        let schemas = source.verb_schemas(verb.name)?;
        Some((verb.name, verb.about, schemas))
    });
    let framework = FRAMEWORK
        .iter()
        .map(|verb| (verb.name, verb.about, (verb.schemas)(spec)));
    own.chain(framework)
        .flat_map(|(verb, about, (request, response))| {
            let contract = |side, name: &str, schema: &Value| Contract {
                target: verb.to_owned(),
                about: about.to_owned(),
                path: format!("{}/{verb}.{name}.schema.json", spec.name),
                side,
                text: text_of(schema),
            };
            [
                contract(Side::Request, "request", &request),
                contract(Side::Response, "response", &response),
            ]
        })
        .collect()
}

/// Returns those of veloq's own commands, the ones that answer in an envelope.
pub(crate) fn of_commands() -> Vec<Contract> {
    META.iter()
        .filter_map(|meta| {
            let schema = meta.schema?();
            Some(Contract {
                target: meta.name.to_owned(),
                about: meta.about.to_owned(),
                path: format!("meta/{}.response.schema.json", meta.name),
                side: Side::Response,
                text: text_of(&schema),
            })
        })
        .collect()
}

/// Returns the two that are written by hand, because outsiders rely on them whatever the verb.
pub(crate) fn by_hand() -> Vec<Contract> {
    let contract = |target: &str, about: &str, text: &str| Contract {
        target: target.to_owned(),
        about: about.to_owned(),
        path: format!("{target}.schema.json"),
        side: Side::Response,
        text: text.to_owned(),
    };
    vec![
        contract(
            "envelope",
            "The shape of every answer",
            include_str!("../../contracts/envelope.schema.json"),
        ),
        contract(
            "error",
            "The shape of every error",
            include_str!("../../contracts/error.schema.json"),
        ),
    ]
}

fn text_of(schema: &Value) -> String {
    format!("{schema:#}\n")
}
