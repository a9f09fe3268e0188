//! md: the table as GitHub-flavoured Markdown.

use veloq_core::{Section, Table};

use super::escape::visible;
use super::{closing_line, seen_columns, units};

/// Returns the answer as Markdown.
pub(super) fn render(table: &Table) -> String {
    let mut text = String::new();
    for (at, section) in table.sections.iter().enumerate() {
        if let Some(title) = &section.title {
            text.push_str(&format!("### {}\n\n", inline(title)));
        }
        push_section(section, &mut text);
        if at == 0 {
            text.push_str(&format!("\n{}\n", closing_line(table)));
        }
        if at + 1 < table.sections.len() {
            text.push('\n');
        }
    }
    if !table.notes.is_empty() {
        text.push('\n');
    }
    for note in &table.notes {
        text.push_str(&format!("- {}\n", inline(note)));
    }
    text
}

fn push_section(section: &Section, text: &mut String) {
    let seen = seen_columns(section);
    let columns: Vec<_> = seen.iter().map(|at| &section.columns[*at]).collect();
    let headings: Vec<String> = columns
        .iter()
        .map(|column| inline(units::heading(column)))
        .collect();
    text.push_str(&format!("| {} |\n", headings.join(" | ")));
    let rules: Vec<&str> = columns
        .iter()
        .map(|column| if column.unit.is_numeric() { "---:" } else { "---" })
        .collect();
    text.push_str(&format!("| {} |\n", rules.join(" | ")));
    for row in &section.rows {
        let cells: Vec<String> = seen
            .iter()
            .zip(&columns)
            .filter_map(|(at, column)| Some(inline(&units::cell(column, row.get(*at)?))))
            .collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
}

/// Returns a text of which Markdown makes nothing but itself. Control characters come first: what they
/// become holds backslashes.
fn inline(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text.trim_end()).chars() {
        if matches!(c, '\\' | '|' | '`' | '*' | '<' | '[') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::count_table;
    use veloq_core::{Cell, Column, Unit};

    #[test]
    fn cells_cannot_break_out_of_the_table() {
        let columns = vec![
            Column::new("name", Unit::Text),
            Column::new("total_ns", Unit::Nanoseconds),
        ];
        let rows = vec![vec!["a|b\\|c\n<script>`*".into(), Cell::Int(1_500)]];
        let mut table = count_table(columns, rows, 7);
        table.notes.push("One | two.".into());
        assert_eq!(
            render(&table),
            "| name | total |\n\
             | --- | ---: |\n\
             | a\\|b\\\\\\|c\\\\n\\<script>\\`\\* | 1.50 µs |\n\
             \n\
             showing 1 of 7\n\
             \n\
             - One \\| two.\n"
        );
    }
}
