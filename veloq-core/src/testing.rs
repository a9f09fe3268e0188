//! Checks that the tests of every source call.

use crate::source::ErasedSource;

/// Checks what every source promises about its spec and its verbs.
///
/// # Panics
/// When a promise is broken: names are lower-case words, verbs are unique, each verb has at least one
/// example that starts with the source and the verb, a flag's id is never that of a global flag, and the
/// schemas of all verbs are objects with a title.
pub fn check_source(source: &dyn ErasedSource, global_ids: &[&str]) {
    let spec = source.spec();
    let is_word = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    assert!(is_word(spec.name), "source name `{}`", spec.name);
    let mut seen = Vec::new();
    for verb in source.verbs() {
        assert!(is_word(verb.name), "verb name `{}`", verb.name);
        assert!(!seen.contains(&verb.name), "two verbs are named `{}`", verb.name);
        seen.push(verb.name);
        assert!(!verb.examples.is_empty(), "`{}` has no example", verb.name);
        for example in verb.examples {
            let start = format!("{} {} TRACE", spec.name, verb.name);
            assert!(
                example.command.starts_with(&start),
                "`{}` does not start with `{start}`",
                example.command
            );
        }
        let command = source.augment(verb.name, clap::Command::new(verb.name));
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            assert!(
                !global_ids.contains(&id),
                "`{}`: flag id `{id}` is that of a global flag",
                verb.name
            );
            assert!(arg.get_help().is_some(), "`{}`: `{id}` has no help", verb.name);
        }
        let schemas = source.verb_schemas(verb.name);
        assert!(
            schemas
                .is_some_and(|(request, answer)| request["title"].is_string() && answer["title"].is_string()),
            "`{}` has no schemas",
            verb.name
        );
    }
    assert!(
        source
            .augment("no-such-verb", clap::Command::new("x"))
            .get_arguments()
            .next()
            .is_none()
    );
    assert!(source.verb_schemas("no-such-verb").is_none());
}
