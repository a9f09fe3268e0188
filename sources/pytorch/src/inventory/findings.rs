//! Reasons to doubt: one finding a kind, in a fixed order.

use veloq_core::{Finding, Severity, Trust};

use crate::ingest::columns::Rows;
use crate::kineto::issues::Seen;
use crate::link::Tally;
use crate::row::RowId;

/// Codes of findings, in the order in which they are told.
pub(crate) mod code {
    pub(crate) const TRUNCATED: &str = "input.truncated";
    pub(crate) const REPAIRED: &str = "input.repaired";
    pub(crate) const SKIPPED_EVENTS: &str = "input.skipped_events";
    pub(crate) const INVALID_ROWS: &str = "time.invalid_rows";
    pub(crate) const CLOCK_INVERSION: &str = "time.clock_inversion";
    pub(crate) const GPU_MISSING: &str = "gpu.missing";
    pub(crate) const UNLINKED_ROWS: &str = "gpu.unlinked_rows";
    pub(crate) const IMPOSSIBLE_OVERLAP: &str = "gpu.impossible_overlap";
    pub(crate) const STREAM_OVERLAP: &str = "gpu.stream_overlap";
    pub(crate) const GRAPH_PARTIAL: &str = "graph.partial";
    pub(crate) const LINK_AMBIGUOUS: &str = "link.ambiguous";
    pub(crate) const EXTERNAL_ID_UNTRUSTED: &str = "link.external_id_untrusted";
    pub(crate) const CROSSING_ROWS: &str = "nesting.crossing_rows";
    pub(crate) const FLAG_WITHOUT_ROWS: &str = "capture.flag_without_rows";
    pub(crate) const RANK_UNKNOWN: &str = "rank.unknown";
    pub(crate) const RANK_MERGED_FILE: &str = "rank.merged_file";
    pub(crate) const COMM_UNCLASSIFIED: &str = "comm.unclassified";

    /// Findings that bear on every number of an answer.
    pub(crate) const INPUT: &[&str] = &[TRUNCATED, REPAIRED, SKIPPED_EVENTS, INVALID_ROWS];
}

/// Gathers findings.
pub(crate) struct Findings<'a> {
    rows: &'a Rows,
    findings: Vec<Finding>,
}

/// The fixed parts of a finding.
pub(crate) struct Kind {
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    pub(crate) affects: &'static [&'static str],
}

impl<'a> Findings<'a> {
    /// Returns an empty gathering over a trace's rows.
    pub(crate) fn new(rows: &'a Rows) -> Self {
        Self {
            rows,
            findings: Vec::new(),
        }
    }

    /// Adds a finding on rows, when there are any.
    pub(crate) fn on_rows(&mut self, kind: &Kind, tally: &Tally, detail: String) {
        if tally.count > 0 {
            let row_id = |row: &u32| {
                let at = *row as usize;
                RowId {
                    row_type: self.rows.row_type[at],
                    index: self.rows.index[at],
                }
                .to_string()
            };
            let row_ids = tally.rows.iter().map(row_id).collect();
            self.push(kind, tally.count, row_ids, detail);
        }
    }

    /// Adds a finding on elements as they are in the text; those that are rows are named by their ids.
    pub(crate) fn on_elements(&mut self, kind: &Kind, seen: &Seen) {
        let row_id = |index: &u64| {
            let at = self.rows.index.binary_search(&u32::try_from(*index).ok()?).ok()?;
            let row_type = self.rows.row_type[at];
            let index = self.rows.index[at];
            Some(RowId { row_type, index }.to_string())
        };
        let row_ids = seen.indices.iter().filter_map(row_id).collect();
        self.push(kind, seen.count, row_ids, seen.detail());
    }

    /// Adds a finding on the trace as a whole.
    pub(crate) fn push(&mut self, kind: &Kind, count: u64, row_ids: Vec<String>, detail: String) {
        self.findings.push(Finding {
            code: kind.code.to_owned(),
            severity: kind.severity,
            count,
            detail,
            row_ids,
            affects: kind.affects.iter().map(|field| (*field).to_owned()).collect(),
        });
    }

    /// Returns the trust that the findings add up to.
    pub(crate) fn into_trust(self) -> Trust {
        Trust::of(self.findings)
    }
}
