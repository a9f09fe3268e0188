//! Wrong command lines, each with a stable code and the words to type instead.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, FromArgMatches};
use veloq_core::{ErrorClass, Explain};

/// Why a command line cannot be understood.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    #[error("`{given}` is not {what}")]
    UnknownVerb {
        given: String,
        what: String,
        hint: String,
    },
    #[error("`{command}` lacks a verb")]
    MissingVerb { command: String, hint: String },
    #[error("`{given}` is not a flag of `{command}`")]
    UnknownFlag {
        given: String,
        command: String,
        near: Option<String>,
    },
    #[error("`{given}` is one word too many for `{command}`")]
    UnexpectedArgument {
        given: String,
        command: String,
        usage: Option<String>,
    },
    #[error("{} {} missing", listed(names), if names.len() == 1 { "is" } else { "are" })]
    MissingArgument {
        names: Vec<String>,
        usage: Option<String>,
        command: String,
    },
    #[error("{}", invalid_value_message(flag, given))]
    InvalidValue {
        flag: String,
        given: String,
        known: Vec<String>,
        near: Option<String>,
        #[source]
        reason: Option<Reason>,
    },
    #[error("`{flag}` cannot be used with {}", listed(others))]
    ConflictingFlags { flag: String, others: Vec<String> },
    #[error("no source claims `{path}` by its name")]
    SourceNeeded { path: String, commands: Vec<String> },
    #[error("`{given}` is not a target of `{command}`")]
    UnknownTarget {
        given: String,
        command: String,
        near: Option<String>,
    },
    #[error("the command line cannot be understood")]
    Other {
        #[source]
        reason: Reason,
        command: String,
    },
}

/// Reads the arguments of a command from what clap matched.
///
/// # Errors
/// Only when the command's own definition and what was parsed differ.
pub(crate) fn read_args<T: FromArgMatches>(matches: &ArgMatches) -> Result<T, UsageError> {
    T::from_arg_matches(matches).map_err(|error| UsageError::from_clap(&error, "veloq", &[], None))
}

/// What a parser of values or clap itself says.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Reason(String);

impl Explain for UsageError {
    fn code(&self) -> &'static str {
        match self {
            Self::UnknownVerb { .. } => "usage.unknown_verb",
            Self::MissingVerb { .. } => "usage.missing_verb",
            Self::UnknownFlag { .. } => "usage.unknown_flag",
            Self::UnexpectedArgument { .. } => "usage.unexpected_argument",
            Self::MissingArgument { .. } => "usage.missing_argument",
            Self::InvalidValue { .. } => "usage.invalid_value",
            Self::ConflictingFlags { .. } => "usage.conflicting_flags",
            Self::SourceNeeded { .. } => "usage.source_needed",
            Self::UnknownTarget { .. } => "usage.unknown_target",
            Self::Other { .. } => "usage.command_line",
        }
    }

    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownVerb { hint, .. } | Self::MissingVerb { hint, .. } => Some(hint.clone()),
            Self::UnknownFlag { command, near, .. } => Some(match near {
                Some(near) => format!("Did you mean `{near}`? `{command} --help` lists all flags."),
                None => format!("`{command} --help` lists all flags."),
            }),
            Self::UnexpectedArgument { usage, command, .. }
            | Self::MissingArgument { usage, command, .. } => Some(match usage {
                Some(usage) => format!("Type `{usage}`."),
                None => format!("`{command} --help` shows what it takes."),
            }),
            Self::InvalidValue { known, near, .. } => choice_hint(known, near.as_deref()),
            Self::SourceNeeded { commands, .. } => Some(match commands.as_slice() {
                [] => "Name the source: `veloq sources` lists them.".to_owned(),
                commands => {
                    let commands: Vec<String> = commands.iter().map(|line| format!("`{line}`")).collect();
                    format!("Name the source: type {}.", commands.join(" or "))
                }
            }),
            Self::UnknownTarget { command, near, .. } => Some(match near {
                Some(near) => format!("Did you mean `{near}`? `{command}` lists all targets."),
                None => format!("`{command}` lists all targets."),
            }),
            Self::Other { command, .. } => Some(format!("`{command} --help` shows what it takes.")),
            Self::ConflictingFlags { .. } => None,
        }
    }
}

impl UsageError {
    /// Returns the error of a value that none of the known ones is.
    pub(crate) fn invalid_choice(flag: &str, given: &str, known: &[&str]) -> Self {
        Self::InvalidValue {
            flag: flag.to_owned(),
            given: given.to_owned(),
            known: known.iter().map(|&word| word.to_owned()).collect(),
            near: veloq_core::nearest(given, known.iter().copied()).map(str::to_owned),
            reason: None,
        }
    }

    /// Returns what clap has against a command line, in our words.
    ///
    /// `command` is as much of the command as could be understood (`veloq pytorch search`), `words` what may
    /// follow it, and `usage` its shape.
    pub(crate) fn from_clap(
        error: &clap::Error,
        command: &str,
        words: &[String],
        usage: Option<String>,
    ) -> Self {
        let invalid = texts(error, ContextKind::InvalidArg);
        let first = invalid.first().cloned().unwrap_or_default();
        let command = command.to_owned();
        match error.kind() {
            ErrorKind::InvalidSubcommand => {
                let given = texts(error, ContextKind::InvalidSubcommand).concat();
                Self::unknown_verb(&given, &command, words)
            }
            ErrorKind::UnknownArgument if first.starts_with('-') => Self::UnknownFlag {
                near: texts(error, ContextKind::SuggestedArg).into_iter().next(),
                given: first,
                command,
            },
            ErrorKind::UnknownArgument => Self::UnexpectedArgument {
                given: first,
                command,
                usage,
            },
            ErrorKind::MissingRequiredArgument => Self::MissingArgument {
                names: invalid,
                usage,
                command,
            },
            ErrorKind::InvalidValue if texts(error, ContextKind::InvalidValue).concat().is_empty() => {
                Self::MissingArgument {
                    names: vec![first],
                    usage: None,
                    command,
                }
            }
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => Self::InvalidValue {
                flag: flag_of(&first),
                given: texts(error, ContextKind::InvalidValue).concat(),
                known: texts(error, ContextKind::ValidValue),
                near: texts(error, ContextKind::SuggestedValue).into_iter().next(),
                reason: std::error::Error::source(error).map(|reason| Reason(reason.to_string())),
            },
            ErrorKind::ArgumentConflict => Self::ConflictingFlags {
                flag: flag_of(&first),
                others: texts(error, ContextKind::PriorArg)
                    .iter()
                    .map(|other| flag_of(other))
                    .collect(),
            },
            _ => Self::Other {
                reason: Reason(summary_line(error)),
                command,
            },
        }
    }

    /// Returns the error of a word that is no verb; a word that looks like a path gets a verb to put
    /// before it.
    pub(crate) fn unknown_verb(given: &str, command: &str, words: &[String]) -> Self {
        let what = if command == "veloq" {
            "a source, a verb or a command".to_owned()
        } else {
            format!("a verb of `{command}`")
        };
        let known = words.iter().map(String::as_str);
        let is_path = given.contains(['.', '/', '\\']) || std::path::Path::new(given).exists();
        let hint = if is_path {
            format!(
                "A verb comes before the trace: type `{command} summary {}`.",
                shell_word(given)
            )
        } else if let Some(near) = veloq_core::nearest(given, known) {
            format!("Did you mean `{near}`? `{command} --help` lists all.")
        } else {
            format!("Choose one of {}.", words.join(", "))
        };
        Self::UnknownVerb {
            given: given.to_owned(),
            what,
            hint,
        }
    }
}

fn choice_hint(known: &[String], near: Option<&str>) -> Option<String> {
    let near = near.map(|near| format!("Did you mean `{near}`?"));
    let choice = (!known.is_empty()).then(|| format!("Choose one of {}.", known.join(", ")));
    let hint: Vec<String> = near.into_iter().chain(choice).collect();
    (!hint.is_empty()).then(|| hint.join(" "))
}

fn invalid_value_message(flag: &str, given: &str) -> String {
    format!("`{given}` is no value for `{flag}`")
}

/// Joins names in backticks.
fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(ContextValue::StyledStr(text)) => vec![text.to_string()],
        Some(ContextValue::StyledStrs(texts)) => texts.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

/// Returns a flag without the name of its value: `--limit` of `--limit <N>`.
fn flag_of(shown: &str) -> String {
    shown.split(' ').next().unwrap_or(shown).to_owned()
}

/// Returns the first line of clap's own message.
fn summary_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Returns a word as a POSIX shell reads it back.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '=' | '@' | '%' | '+' | ',')
    };
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns a command line with a source's name put before its first plain word.
pub(crate) fn with_source(argv: &[OsString], source: &str) -> String {
    let first = crate::args::plain_words(argv).first().copied();
    let mut line = vec!["veloq".to_owned()];
    for word in argv.iter().skip(1) {
        if first.is_some_and(|first| std::ptr::eq(first, word)) {
            line.push(source.to_owned());
        }
        line.push(shell_word(&word.to_string_lossy()));
    }
    line.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(shell_word("run-1.json"), "run-1.json");
        assert_eq!(shell_word("my run.json"), "'my run.json'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(">1ms"), "'>1ms'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn source_goes_before_the_verb() {
        let argv: Vec<OsString> = ["veloq", "--format", "csv", "search", "my run.json"]
            .map(OsString::from)
            .to_vec();
        assert_eq!(
            with_source(&argv, "pytorch"),
            "veloq --format csv pytorch search 'my run.json'"
        );
    }
}
