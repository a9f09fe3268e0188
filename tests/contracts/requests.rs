//! Requests as JSON: all fields may be left out, none may be unknown or of another type.

use serde_json::{Value, json};
use veloq_core::{Input, PrepOptions};

use crate::support::{Lab, contracts, pytorch};

#[test]
fn contracts_of_requests_are_closed_and_typed() {
    let mut checked = 0;
    for (path, contract) in contracts().iter().filter(|(path, _)| path.contains(".request.")) {
        let fits = |request: Value| contract.validator.is_valid(&request);
        assert!(fits(json!({})), "{path}: every field has a default");
        assert!(!fits(json!([])), "{path}: an array passes");
        assert!(
            !fits(json!({ "unexpected": 1 })),
            "{path}: an unknown field passes"
        );
        for name in contract.schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
        {
            let alien = json!({ "unexpected": [[]] });
            assert!(!fits(json!({ name: alien })), "{path}: `{name}` may be anything");
            checked += 1;
        }
    }
    assert!(checked > 0, "there are requests with fields");
}

/// What the schema refuses, reading refuses too: an unknown field would be a question half understood.
#[test]
fn requests_with_unknown_fields_are_refused() {
    let lab = Lab::new();
    let trace = lab.training();
    let input = Input::new(lab.path().join(trace));
    for verb in pytorch().verbs() {
        let outcome = pytorch().run_json(
            verb.name,
            &input,
            &PrepOptions::default(),
            json!({ "unexpected": 1 }),
        );
        match outcome.unwrap() {
            Ok(_) => panic!("{}: an unknown field is read over", verb.name),
            Err(failure) => assert_eq!(failure.code(), "usage.request", "{}", verb.name),
        }
    }
}
