//! Answers broken in one place each: what a schema must not let pass.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// How many elements of a list are looked at: the others are made alike.
const ELEMENTS: usize = 3;

/// What a walk over an answer, along its schema, finds.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// The answer, broken in one place each, with what was done.
    pub(crate) broken: Vec<(String, Value)>,
    /// The properties the schema names, as `<where in the schema>.<name>`, that the answer has.
    pub(crate) seen: BTreeSet<String>,
    /// Objects with named properties that let others pass.
    pub(crate) open: BTreeSet<String>,
}

/// Walks over an answer along its schema; it is broken only where `breaks` says so, with its lists cut to
/// their first elements.
pub(crate) fn walk(schema: &Value, answer: &Value, breaks: bool) -> Walk {
    let cut = cut(answer);
    let answer = if breaks { &cut } else { answer };
    let mut walk = Walk::default();
    let mut walker = Walker {
        root: schema,
        answer,
        breaks,
        walk: &mut walk,
    };
    walker.visit(schema, "#", answer, String::new());
    walk
}

/// Returns the properties a schema names, in the spelling of [`Walk::seen`].
pub(crate) fn properties(schema: &Value) -> BTreeSet<String> {
    fn collect(node: &Value, place: &str, into: &mut BTreeSet<String>) {
        let Some(object) = node.as_object() else { return };
        for (name, property) in object
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            into.insert(format!("{place}.{name}"));
            collect(property, &format!("{place}.{name}"), into);
        }
        for keyword in ["items", "additionalProperties"] {
            if let Some(inner) = object.get(keyword) {
                collect(inner, &format!("{place}/{keyword}"), into);
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = object
                .get(keyword)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            for branch in branches {
                collect(branch, place, into);
            }
        }
    }
    let mut all = BTreeSet::new();
    collect(schema, "#", &mut all);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        collect(definition, &format!("#/$defs/{name}"), &mut all);
    }
    all
}

fn cut(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().take(ELEMENTS).map(cut).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), cut(field)))
            .collect(),
        other => other.clone(),
    }
}

struct Walker<'a> {
    root: &'a Value,
    answer: &'a Value,
    breaks: bool,
    walk: &'a mut Walk,
}

impl<'a> Walker<'a> {
    /// Visits the part of the answer at `pointer`, which the schema node at `place` describes.
    fn visit(&mut self, node: &'a Value, place: &str, part: &'a Value, pointer: String) {
        let Some((node, place)) = self.resolved(node, place.to_owned(), part) else {
            return;
        };
        if !constrains(node) {
            return;
        }
        let alien = if part.is_array() {
            json!({ "unexpected": true })
        } else {
            json!([["unexpected"]])
        };
        self.break_at(&pointer, "another type", |_| alien);
        match part {
            Value::Object(fields) => self.visit_object(node, &place, fields, &pointer),
            Value::Array(items) => {
                if let Some(inner) = node.get("items") {
                    for (at, item) in items.iter().enumerate() {
                        self.visit(inner, &format!("{place}/items"), item, format!("{pointer}/{at}"));
                    }
                }
            }
            _ => {}
        }
    }

    fn visit_object(&mut self, node: &'a Value, place: &str, fields: &'a Map<String, Value>, pointer: &str) {
        for name in node["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            self.break_at(pointer, &format!("without `{name}`"), |part| {
                let mut part = part.clone();
                if let Some(object) = part.as_object_mut() {
                    object.remove(name);
                }
                part
            });
        }
        let others = node.get("additionalProperties");
        let is_closed = others.is_some_and(|others| *others == json!(false) || constrains(others));
        if is_closed {
            self.break_at(pointer, "one more", |part| {
                let mut part = part.clone();
                part["unexpected"] = json!([["unexpected"]]);
                part
            });
        } else if node.get("properties").is_some() {
            self.walk.open.insert(place.to_owned());
        }
        for (name, field) in fields {
            let escaped = name.replace('~', "~0").replace('/', "~1");
            let pointer = format!("{pointer}/{escaped}");
            if let Some(property) = node["properties"].get(name) {
                let place = format!("{place}.{name}");
                self.walk.seen.insert(place.clone());
                self.visit(property, &place, field, pointer);
            } else if let Some(others) = others {
                self.visit(others, &format!("{place}/additionalProperties"), field, pointer);
            }
        }
    }

    /// Follows references, and of alternatives takes the only one that is not for null.
    fn resolved(&self, mut node: &'a Value, mut place: String, part: &Value) -> Option<(&'a Value, String)> {
        loop {
            if let Some(target) = node.get("$ref").and_then(Value::as_str) {
                node = self.root.pointer(target.strip_prefix('#')?)?;
                target.clone_into(&mut place);
            } else if let Some(branches) = node.get("anyOf").or(node.get("oneOf")).and_then(Value::as_array) {
                // Of several objects, the one whose required fields are all there.
                let fits = |branch: &&Value| {
                    let required = self.target(branch).get("required").and_then(Value::as_array);
                    let names = required.into_iter().flatten().filter_map(Value::as_str);
                    names.into_iter().all(|name| part.get(name).is_some())
                };
                let mut others = branches
                    .iter()
                    .filter(|branch| branch["type"] != "null")
                    .filter(fits);
                match (others.next(), others.next()) {
                    (Some(only), None) if !part.is_null() => node = only,
                    _ => return None,
                }
            } else {
                return Some((node, place));
            }
        }
    }

    /// Returns what a node refers to, or the node itself.
    fn target(&self, node: &'a Value) -> &'a Value {
        let target = node
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| target.strip_prefix('#'));
        target
            .and_then(|target| self.root.pointer(target))
            .unwrap_or(node)
    }

    fn break_at(&mut self, pointer: &str, how: &str, change: impl FnOnce(&Value) -> Value) {
        if !self.breaks {
            return;
        }
        let mut broken = self.answer.clone();
        if let Some(part) = broken.pointer_mut(pointer) {
            *part = change(part);
            self.walk.broken.push((format!("{pointer}: {how}"), broken));
        }
    }
}

/// Returns whether a schema node lets anything at all not pass.
fn constrains(node: &Value) -> bool {
    let keywords = [
        "type",
        "enum",
        "const",
        "$ref",
        "anyOf",
        "oneOf",
        "properties",
        "items",
    ];
    keywords.iter().any(|keyword| node.get(keyword).is_some())
}
