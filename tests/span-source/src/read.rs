//! From text to spans.

use serde::Deserialize;

use crate::error::Error;

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// What was done.
    pub name: String,
    /// When it began, on a clock that the file does not name.
    pub start_ns: u64,
    /// How long it took.
    pub dur_ns: u64,
    /// Where it was done.
    pub thread: Option<String>,
}

impl Span {
    /// Returns the first nanosecond after; reading made sure that it fits.
    pub(crate) fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.dur_ns)
    }
}

/// Returns the spans of a text in their order; blank lines are skipped.
///
/// # Errors
/// `input.not_a_span` and `input.time_overflow`, with the line.
pub fn read_spans(text: &str) -> Result<Vec<Span>, Error> {
    let mut spans = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let span: Span =
            serde_json::from_str(line).map_err(|source| Error::NotASpan { line: at + 1, source })?;
        if span.start_ns.checked_add(span.dur_ns).is_none() {
            return Err(Error::EndOverflow { line: at + 1 });
        }
        spans.push(span);
    }
    Ok(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_spans() {
        let spans = read_spans("{\"name\":\"a\",\"start_ns\":5,\"dur_ns\":2}\n\n").unwrap();
        assert_eq!((spans.len(), spans[0].end_ns()), (1, 7));
    }

    #[test]
    fn wrong_lines_are_named() {
        let error = read_spans("\n{\"name\":\"a\"}").unwrap_err();
        assert_eq!(error.to_string(), "line 2 is not a span");
        let error =
            read_spans("{\"name\":\"a\",\"start_ns\":18446744073709551615,\"dur_ns\":1}").unwrap_err();
        assert!(matches!(error, Error::EndOverflow { line: 1 }));
    }
}
