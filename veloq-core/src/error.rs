//! Errors: what went wrong as data, and the one place where it becomes a report.

use std::error::Error;

use schemars::JsonSchema;
use serde::Serialize;

/// Who has to act on an error; decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The command line or the request is wrong.
    Usage,
    /// The input is missing, unreadable, not a trace, or damaged beyond use.
    Input,
    /// This trace, or this version, cannot answer the question.
    Unsupported,
    /// A limit or a resource was reached.
    Limit,
    /// A fault of veloq itself.
    Internal,
}

impl ErrorClass {
    /// Returns the exit status: 2, 3, 4, 5 or 70.
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Input => 3,
            Self::Unsupported => 4,
            Self::Limit => 5,
            Self::Internal => 70,
        }
    }
}

/// An error that can tell a caller its stable code, its class and what to do next.
pub trait Explain: Error + Send + Sync + 'static {
    /// Returns the stable, dotted code, for example `input.truncated`.
    fn code(&self) -> &'static str;

    /// Returns who has to act.
    fn class(&self) -> ErrorClass;

    /// Returns what to do next, as a sentence.
    fn hint(&self) -> Option<String> {
        None
    }

    /// Returns whether the question only met others at work on its files, and may be answered if it is asked
    /// again at once.
    fn is_passing(&self) -> bool {
        false
    }
}

/// Any [`Explain`] on its way to the edge, so that `?` works across crates.
#[derive(Debug)]
pub struct Failure(Box<dyn Explain>);

impl<E: Explain> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl Failure {
    /// Returns the error's class.
    pub fn class(&self) -> ErrorClass {
        self.0.class()
    }

    /// Returns the error's stable code.
    pub fn code(&self) -> &'static str {
        self.0.code()
    }

    /// Returns whether asking again at once may help; see [`Explain::is_passing`].
    pub fn is_passing(&self) -> bool {
        self.0.is_passing()
    }

    /// Returns the report a caller sees.
    pub fn report(&self) -> Report {
        let mut chain = Vec::new();
        let mut cause = self.0.source();
        while let Some(error) = cause {
            chain.push(error.to_string());
            cause = error.source();
        }
        Report {
            code: self.0.code().to_owned(),
            message: self.0.to_string(),
            hint: self.0.hint(),
            chain,
        }
    }
}

/// An error as callers read it: stable code, message, hint, causes outermost first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    /// Stable, dotted code.
    pub code: String,
    /// What went wrong; lower case, no full stop.
    pub message: String,
    /// What to do next, as a sentence.
    pub hint: Option<String>,
    /// The causes, outermost first.
    pub chain: Vec<String>,
}

/// Returns the candidate nearest to `given`, if one is near enough to be meant.
///
/// Near means: an edit distance (insert, delete, replace, swap neighbours) of at most a third of the
/// longer word, and at least one letter in common.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(given, candidate), candidate))
        .filter(|(d, candidate)| *d <= given.chars().count().max(candidate.chars().count()).div_ceil(3))
        .min_by_key(|(d, _)| *d)
        .map(|(_, candidate)| candidate)
}

/// Returns the optimal string alignment distance of two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = previous[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(previous[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut previous, row);
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_nearest_word_or_none() {
        let verbs = ["summary", "search", "stats", "slices"];
        assert_eq!(nearest("sumary", verbs), Some("summary"));
        assert_eq!(nearest("saerch", verbs), Some("search"));
        assert_eq!(nearest("stat", verbs), Some("stats"));
        assert_eq!(nearest("frobnicate", verbs), None);
    }

    #[test]
    fn statuses_are_those_of_the_contract() {
        let classes = [
            ErrorClass::Usage,
            ErrorClass::Input,
            ErrorClass::Unsupported,
            ErrorClass::Limit,
            ErrorClass::Internal,
        ];
        assert_eq!(classes.map(ErrorClass::exit_status), [2, 3, 4, 5, 70]);
    }
}
