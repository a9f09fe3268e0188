//! Answers as text: one file per format, none knows a verb.
//!
//! Whatever a trace holds, no control character of it reaches a terminal: [`escape`] makes them visible in
//! tables, Markdown and error texts, and [`json`] writes them as JSON escapes. Only csv is written as is,
//! since it is read by machines.

mod csv;
mod escape;
pub(crate) mod json;
mod md;
mod table;
pub(crate) mod units;

use std::io::Write;

use veloq_core::{Answer, Cell, Column, Envelope, Report, Section, Table};

use crate::args::Format;
use crate::output::{Ended, Head, ended_by_io};
use escape::visible;

/// How an answer is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) format: Format,
    /// Whether json is indented.
    pub(crate) is_indented: bool,
    /// The columns of the screen a table may use.
    pub(crate) width: usize,
    pub(crate) has_color: bool,
}

/// Writes an answer.
pub(crate) fn answer(
    head: &Head,
    answer: &dyn Answer,
    style: &Style,
    out: &mut dyn Write,
) -> Result<(), Ended> {
    match style.format {
        Format::Json => {
            let envelope = Envelope::new(
                head.source.clone(),
                &head.command,
                head.trace.as_ref(),
                head.trace_span.as_ref(),
                answer,
            );
            json::write(&envelope, style.is_indented, out)
        }
        Format::Csv => csv::write(&answer.table(), out).map_err(ended_by_io),
        Format::Table => {
            let text = table::render(&answer.table(), style.width, style.has_color);
            out.write_all(text.as_bytes()).map_err(ended_by_io)
        }
        Format::Md => out
            .write_all(md::render(&answer.table()).as_bytes())
            .map_err(ended_by_io),
    }
}

/// Returns an error as text for people.
pub(crate) fn error_text(report: &Report) -> String {
    let mut text = format!(
        "error: {} [{}]\n",
        visible(&report.message),
        visible(&report.code)
    );
    for cause in &report.chain {
        text.push_str(&format!("  because: {}\n", visible(cause)));
    }
    if let Some(hint) = &report.hint {
        text.push_str(&format!("hint: {}\n", visible(hint)));
    }
    text
}

/// Returns a table of one block without notes.
pub(crate) fn count_table(columns: Vec<Column>, rows: Vec<Vec<Cell>>, total_matched: u64) -> Table {
    Table {
        sections: vec![Section {
            title: None,
            columns,
            rows,
        }],
        total_matched,
        notes: Vec::new(),
    }
}

/// Returns the line that tells how much of the matches is shown.
fn closing_line(table: &Table) -> String {
    let shown = table.sections.first().map_or(0, |section| section.rows.len());
    format!(
        "showing {} of {}",
        units::thousands(i128::try_from(shown).unwrap_or(i128::MAX)),
        units::thousands(i128::from(table.total_matched))
    )
}

/// Returns the positions of the columns people see: not those for complete forms only, and none in which
/// every value is missing.
fn seen_columns(section: &Section) -> Vec<usize> {
    let has_value = |at: usize| {
        section.rows.is_empty()
            || section
                .rows
                .iter()
                .any(|row| row.get(at).is_some_and(|cell| *cell != Cell::Null))
    };
    (0..section.columns.len())
        .filter(|at| !section.columns[*at].is_detail && has_value(*at))
        .collect()
}
