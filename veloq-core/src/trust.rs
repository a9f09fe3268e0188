//! How far an answer can be believed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; no number is in doubt.
    Info,
    /// Some numbers are incomplete, doubtful or null.
    Warning,
    /// The answer cannot be relied on.
    Error,
}

/// One reason to doubt, or to read with care.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Stable, dotted code, for example `gpu.unlinked_rows`.
    pub code: String,
    /// How much it weighs.
    pub severity: Severity,
    /// How many rows it concerns.
    pub count: u64,
    /// What was found, as a sentence.
    pub detail: String,
    /// Up to three of the rows.
    pub row_ids: Vec<String>,
    /// Names of the fields that became null or doubtful.
    pub affects: Vec<String>,
}

/// The overall judgement of a [`Trust`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No finding above [`Severity::Info`].
    Ok,
    /// At least one warning.
    Degraded,
    /// At least one error.
    Unusable,
}

/// The findings that touch an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// The worst of the findings.
    pub verdict: Verdict,
    /// The findings, in the order of the source's list of codes.
    pub findings: Vec<Finding>,
}

impl Trust {
    /// Returns the trust that these findings add up to.
    pub fn of(findings: Vec<Finding>) -> Self {
        let verdict = match findings.iter().map(|finding| finding.severity).max() {
            Some(Severity::Error) => Verdict::Unusable,
            Some(Severity::Warning) => Verdict::Degraded,
            Some(Severity::Info) | None => Verdict::Ok,
        };
        Self { verdict, findings }
    }

    /// Returns what was found, as sentences.
    pub fn details(&self) -> Vec<String> {
        self.findings
            .iter()
            .map(|finding| finding.detail.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_is_that_of_the_worst_finding() {
        let finding = |severity| Finding {
            code: "x.y".into(),
            severity,
            count: 1,
            detail: "One.".into(),
            row_ids: vec![],
            affects: vec![],
        };
        assert_eq!(Trust::of(vec![]).verdict, Verdict::Ok);
        assert_eq!(Trust::of(vec![finding(Severity::Info)]).verdict, Verdict::Ok);
        assert_eq!(
            Trust::of(vec![finding(Severity::Info), finding(Severity::Warning)]).verdict,
            Verdict::Degraded
        );
        assert_eq!(
            Trust::of(vec![finding(Severity::Error), finding(Severity::Info)]).verdict,
            Verdict::Unusable
        );
    }
}
