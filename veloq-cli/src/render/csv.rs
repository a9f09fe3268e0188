//! csv: the rows alone, all columns, every number exact.
//!
//! The first line holds the JSON field names; an unknown value is an empty cell. Times are integer
//! nanoseconds, shares fractions. Text that a spreadsheet would take for a formula (it begins with `=`, `+`,
//! `-`, `@`, their full-width forms, tab or the end of a line) has an apostrophe before it, and so has text that
//! begins with an apostrophe itself: a program that takes one leading apostrophe off text columns gets the exact
//! text. Numbers are never changed.

use std::io::{self, Write};

use veloq_core::{Cell, Table};

/// Writes the first block of a table.
pub(super) fn write(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let Some(section) = table.sections.first() else {
        return Ok(());
    };
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(section.columns.iter().map(|column| &column.name))?;
    for row in &section.rows {
        writer.write_record(row.iter().map(field))?;
    }
    writer.flush()
}

/// What text begins with that is not to stand first in a cell: what OWASP's "CSV Injection" lists, and the
/// apostrophe.
const FORMULA: [char; 12] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}', '\t', '\r', '\n', '\'',
];

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Text(text) if text.starts_with(FORMULA) => format!("'{text}"),
        Cell::Text(text) => text.clone(),
        Cell::Int(value) => value.to_string(),
        Cell::Float(value) => value.to_string(),
        Cell::Bool(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::count_table;
    use veloq_core::{Column, Unit};

    #[test]
    fn formulas_are_quoted_and_numbers_are_not() {
        let columns = vec![
            Column::new("name", Unit::Text),
            Column::detail("delta_ns", Unit::Nanoseconds),
            Column::new("ratio", Unit::Ratio),
        ];
        let rows = vec![
            vec!["=cmd|'/c calc'!A0".into(), Cell::Int(-5), 0.1.into()],
            vec!["'quoted".into(), Cell::Int(9_007_199_254_740_993), Cell::Null],
            vec!["a, \"b\"\nc".into(), Cell::Int(0), 1.0.into()],
        ];
        let mut out = Vec::new();
        write(&count_table(columns, rows, 3), &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "name,delta_ns,ratio\n\
             '=cmd|'/c calc'!A0,-5,0.1\n\
             ''quoted,9007199254740993,\n\
             \"a, \"\"b\"\"\nc\",0,1\n"
        );
    }
}
