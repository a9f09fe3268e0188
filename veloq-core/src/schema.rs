//! JSON Schemas of requests and whole answers: draft, closedness and null rules are decided here once.
//!
//! Requests are described as they are read, answers as they are written. A field that is always written is
//! required; a measured quantity that can be unknown is required and nullable; an axis that can be left out
//! is optional.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::source::SourceSpec;

/// The version of the envelope.
pub const SCHEMA_VERSION: &str = "v1";

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns the schema of a verb's request, as JSON in which every field may be left out and none be added.
///
/// Closedness is added here because a request whose filters are flattened into it cannot say so itself.
pub fn request_schema<T: JsonSchema>(source: &str, verb: &str) -> Value {
    let generator = SchemaGenerator::new(SchemaSettings::draft2020_12().for_deserialize());
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), json!(format!("Request of {source} {verb}")));
        object.insert("additionalProperties".into(), json!(false));
    }
    schema
}

/// Returns the schema that only null fits.
pub fn null_schema() -> Value {
    json!({ "type": "null" })
}

/// Returns the schema of a whole answer: the envelope with the payload `T` as its `data`.
///
/// `source` is absent for meta commands; `has_trace` tells whether the command reads a trace.
pub fn answer_schema<T: JsonSchema>(source: Option<&SourceSpec>, command: &str, has_trace: bool) -> Value {
    let mut generator = SchemaGenerator::new(SchemaSettings::draft2020_12().for_serialize());
    let data = T::json_schema(&mut generator).to_value();
    let definitions = generator.take_definitions(true);
    let full_command = source.map_or_else(|| command.to_owned(), |s| format!("{}.{command}", s.name));
    let source_schema = source.map_or_else(null_schema, |s| {
        json!({
            "type": "object",
            "properties": { "kind": { "const": s.name }, "version": { "const": s.version } },
            "required": ["kind", "version"],
            "additionalProperties": false,
        })
    });
    let trace = json!({
        "type": "object",
        "properties": { "kind": { "type": "string" }, "path": { "type": "string" } },
        "required": ["kind", "path"],
        "additionalProperties": false,
    });
    let span = json!({
        "type": ["object", "null"],
        "properties": {
            "origin_ns": { "type": "string", "pattern": "^-?[0-9]+$" },
            "span_ns": { "type": "integer", "minimum": 0 },
            "clock": { "enum": ["unix", "unknown"] },
        },
        "required": ["origin_ns", "span_ns", "clock"],
        "additionalProperties": false,
    });
    json!({
        "$schema": DRAFT,
        "title": format!("Answer of {}", full_command.replace('.', " ")),
        "type": "object",
        "properties": {
            "schema": { "const": SCHEMA_VERSION },
            "source": source_schema,
            "command": { "const": full_command },
            "trace": if has_trace { trace } else { null_schema() },
            "trace_span": if has_trace { span } else { null_schema() },
            "data": data,
        },
        "required": ["schema", "source", "command", "trace", "trace_span", "data"],
        "additionalProperties": false,
        "$defs": definitions,
    })
}
