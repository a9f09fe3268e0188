//! The files in `contracts/`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::{Lab, contracts, root};

/// Returns the generated contracts as they are on disk, by path; brings them up to date before when asked to.
fn on_disk() -> &'static BTreeMap<String, String> {
    static FILES: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    FILES.get_or_init(|| {
        let folder = root().join("contracts");
        if std::env::var_os("VELOQ_UPDATE_CONTRACTS").is_none() {
            return read(&folder);
        }
        for path in read(&folder).keys() {
            std::fs::remove_file(folder.join(path)).unwrap();
        }
        for contract in veloq_cli::contracts() {
            let path = folder.join(contract.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, contract.text).unwrap();
        }
        read(&folder)
    })
}

fn read(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for sub in std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if !sub.is_dir() {
            continue;
        }
        for path in std::fs::read_dir(&sub)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            let name = path
                .strip_prefix(folder)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/");
            found.insert(name, std::fs::read_to_string(&path).unwrap());
        }
    }
    found
}

/// Returns the first line in which two texts differ, with its number.
fn first_difference(old: &str, new: &str) -> String {
    let (mut old_lines, mut new_lines) = (old.lines(), new.lines());
    for number in 1.. {
        let (a, b) = (old_lines.next(), new_lines.next());
        if a != b {
            let shown = |line: Option<&str>| line.unwrap_or("<end>").to_owned();
            return format!("line {number}\n  - {}\n  + {}", shown(a), shown(b));
        }
        if a.is_none() {
            break;
        }
    }
    "line ends".to_owned()
}

#[test]
fn contracts_are_those_of_the_types() {
    let old = on_disk();
    let new: BTreeMap<String, String> = veloq_cli::contracts()
        .into_iter()
        .map(|contract| (contract.path, contract.text))
        .collect();
    let mut differences = Vec::new();
    for (path, text) in &new {
        match old.get(path) {
            None => differences.push(format!("{path} is missing")),
            Some(old) if old != text => differences.push(format!("{path}: {}", first_difference(old, text))),
            Some(_) => {}
        }
    }
    for path in old.keys().filter(|path| !new.contains_key(*path)) {
        differences.push(format!("{path} belongs to no verb"));
    }
    assert!(
        differences.is_empty(),
        "contracts/ is not what the types say; review, then VELOQ_UPDATE_CONTRACTS=1 cargo test --workspace contracts\n{}",
        differences.join("\n")
    );
}

#[test]
fn contracts_are_valid_schemas_of_one_draft() {
    for (path, contract) in contracts() {
        jsonschema::meta::validate(&contract.schema).unwrap_or_else(|fault| panic!("{path}: {fault}"));
        assert_eq!(
            contract.schema["$schema"], "https://json-schema.org/draft/2020-12/schema",
            "{path}"
        );
        assert!(contract.schema["title"].is_string(), "{path}");
    }
}

/// Descriptions are the documentation of every field.
#[test]
fn contracts_describe_every_field() {
    fn undescribed(node: &Value, defs: &Value, place: &str, into: &mut Vec<String>) {
        match node {
            Value::Object(object) => {
                for (name, property) in object
                    .get("properties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten()
                {
                    // A reference carries the description of what it refers to.
                    let referred = property["$ref"]
                        .as_str()
                        .and_then(|target| target.strip_prefix("#/$defs/"))
                        .map_or(property, |name| &defs[name]);
                    let is_described =
                        property["description"].is_string() || referred["description"].is_string();
                    if !is_described {
                        into.push(format!("{place}.{name}"));
                    }
                }
                for (keyword, inner) in object {
                    undescribed(inner, defs, &format!("{place}/{keyword}"), into);
                }
            }
            Value::Array(items) => {
                for item in items {
                    undescribed(item, defs, place, into);
                }
            }
            _ => {}
        }
    }
    for (path, contract) in contracts() {
        let mut missing = Vec::new();
        // The head is the same everywhere, and described in the envelope's own schema.
        let payload = if path.contains('/') && path.contains(".response.") {
            let data = &contract.schema["properties"]["data"];
            undescribed(
                &contract.schema["$defs"],
                &contract.schema["$defs"],
                "$defs",
                &mut missing,
            );
            data
        } else {
            &contract.schema
        };
        undescribed(payload, &contract.schema["$defs"], "data", &mut missing);
        assert!(missing.is_empty(), "{path}: {missing:?}");
    }
}

#[test]
fn contracts_are_what_schema_prints() {
    let lab = Lab::new();
    let printed = |words: &[&str]| {
        let called = lab.run(words);
        assert_eq!(
            (called.status, called.stderr.as_str()),
            (0, ""),
            "{}",
            called.line
        );
        called.stdout
    };
    let file = |path: &str| std::fs::read_to_string(root().join("contracts").join(path)).unwrap();
    for target in ["envelope", "error"] {
        let text = file(&format!("{target}.schema.json"));
        assert_eq!(printed(&["schema", target]), text);
        assert_eq!(printed(&["pytorch", "schema", target]), text);
    }
    for contract in veloq_cli::contracts() {
        let (folder, name) = contract.path.split_once('/').unwrap();
        let is_request = name.contains(".request.");
        let full = if folder == "meta" {
            contract.target.clone()
        } else {
            format!("{folder}.{}", contract.target)
        };
        let mut words = vec!["schema", full.as_str()];
        words.extend(is_request.then_some("--request"));
        assert_eq!(printed(&words), contract.text, "{words:?}");
        if folder != "meta" {
            let mut words = vec![folder, "schema", contract.target.as_str()];
            words.extend(is_request.then_some("--request"));
            // Formats are for answers: a schema is printed as it is.
            words.extend(["--format", "table"]);
            assert_eq!(printed(&words), contract.text, "{words:?}");
        }
    }
}

#[test]
fn contracts_without_a_target_are_listed() {
    on_disk();
    let lab = Lab::new();
    for words in [&["schema"][..], &["pytorch", "schema"]] {
        let answer = lab.run(words).answer();
        let rows = answer["data"]["rows"].as_array().unwrap();
        assert!(rows.len() > 2);
        for row in rows {
            let path = root().join(row["contract"].as_str().unwrap());
            assert!(path.is_file(), "{}", path.display());
            let target = row["target"].as_str().unwrap();
            let mut words = words.to_vec();
            words.push(target);
            assert_eq!(lab.run(&words).stdout, std::fs::read_to_string(path).unwrap());
        }
    }
}
