//! The fields of an answer in short, for the help: read off its schema, so that the two cannot differ.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Returns the fields of the rows and of `data.auxiliary` that the schema of a whole answer names, one a
/// line; `None` when it names none.
pub(crate) fn of_answer(schema: &Value) -> Option<String> {
    let data = &resolved(schema, &schema["properties"]["data"])["properties"];
    let row = resolved(schema, &resolved(schema, &data["rows"])["items"]);
    let mut text = String::new();
    match row["anyOf"].as_array() {
        Some(kinds) => {
            for kind in kinds.iter().map(|kind| resolved(schema, kind)) {
                let what = kind["description"].as_str().map(in_short).unwrap_or_default();
                section(&mut text, &format!("Fields of a row ({what})"), schema, kind);
            }
        }
        None => section(&mut text, "Fields of a row", schema, row),
    }
    let auxiliary = resolved(schema, &data["auxiliary"]);
    section(&mut text, "Fields of data.auxiliary", schema, auxiliary);
    (!text.is_empty()).then_some(text)
}

fn section(text: &mut String, title: &str, schema: &Value, object: &Value) {
    let none = Map::new();
    let fields = object["properties"].as_object().unwrap_or(&none);
    let width = fields.keys().map(String::len).max().unwrap_or(0);
    if fields.is_empty() {
        return;
    }
    // Writing into a string cannot fail.
    let _ = writeln!(text, "\n{title}:");
    for (name, field) in fields {
        let own = field["description"].as_str();
        let about = own.or(resolved(schema, field)["description"].as_str());
        let _ = writeln!(text, "  {name:width$}  {}", in_short(about.unwrap_or_default()));
    }
}

/// Follows a reference to where it leads.
fn resolved<'a>(schema: &'a Value, node: &'a Value) -> &'a Value {
    let target = node["$ref"]
        .as_str()
        .and_then(|reference| reference.strip_prefix('#'))
        .and_then(|pointer| schema.pointer(pointer));
    target.unwrap_or(node)
}

/// Returns what a description says before it goes into detail.
fn in_short(description: &str) -> String {
    let line = description.replace('\n', " ");
    let ends = ["; ", ". ", ": "].iter().filter_map(|end| line.find(end));
    let short = &line[..ends.min().unwrap_or(line.len())];
    short.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_told_in_the_order_of_the_schema() {
        let schema = json!({
            "properties": { "data": { "$ref": "#/$defs/Data" } },
            "$defs": {
                "Data": { "properties": {
                    "rows": { "type": "array", "items": { "$ref": "#/$defs/Row" } },
                    "auxiliary": { "properties": { "scope": { "$ref": "#/$defs/Scope" } } }
                } },
                "Row": { "properties": {
                    "name": { "description": "The name; null where\nthere is none." },
                    "b": { "description": "Bytes." }
                } },
                "Scope": { "description": "The filters. More." }
            }
        });
        assert_eq!(
            of_answer(&schema).as_deref(),
            Some(
                "\nFields of a row:\n  name  The name\n  b     Bytes\n\
                 \nFields of data.auxiliary:\n  scope  The filters\n"
            )
        );
        assert_eq!(of_answer(&json!({})), None);
    }
}
