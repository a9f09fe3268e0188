//! table: for people in front of a terminal.

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use veloq_core::{Column, Section, Table, Unit};

use super::escape::visible;
use super::{closing_line, seen_columns, units};

/// Between two columns.
const GAP: &str = "  ";
/// Text is never cut below this width: less says nothing.
const MIN_TEXT_WIDTH: usize = 16;
const HEADING: Style = Style::new().bold();
const FAINT: Style = AnsiColor::BrightBlack.on_default();

/// Returns the answer as text, cut to the given width where names allow it.
pub(super) fn render(table: &Table, width: usize, has_color: bool) -> String {
    let mut text = String::new();
    for (at, section) in table.sections.iter().enumerate() {
        if let Some(title) = &section.title {
            text.push_str(&painted(&visible(title), HEADING, has_color));
            text.push('\n');
        }
        push_section(section, width, has_color, &mut text);
        if at == 0 {
            text.push_str(&painted(&closing_line(table), FAINT, has_color));
            text.push('\n');
        }
        if at + 1 < table.sections.len() {
            text.push('\n');
        }
    }
    if !table.notes.is_empty() {
        text.push('\n');
    }
    for note in &table.notes {
        text.push_str(&format!("note: {}\n", visible(note)));
    }
    text
}

fn push_section(section: &Section, width: usize, has_color: bool, text: &mut String) {
    let seen = seen_columns(section);
    let columns: Vec<&Column> = seen.iter().map(|at| &section.columns[*at]).collect();
    let headings: Vec<String> = columns
        .iter()
        .map(|column| visible(units::heading(column)).into_owned())
        .collect();
    let rows: Vec<Vec<String>> = section
        .rows
        .iter()
        .map(|row| {
            seen.iter()
                .zip(&columns)
                .map(|(at, column)| {
                    let cell = row.get(*at).map(|cell| units::cell(column, cell));
                    visible(&cell.unwrap_or_default()).into_owned()
                })
                .collect()
        })
        .collect();
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.width()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    fit(&mut widths, &columns, &headings, width);
    let mut push_line = |cells: &[String], style: Option<Style>| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&columns)
            .zip(&widths)
            .map(|((cell, column), width)| padded(cell, column.unit, *width))
            .collect();
        let line = padded.join(GAP);
        let line = line.trim_end();
        match style {
            Some(style) => text.push_str(&painted(line, style, has_color)),
            None => text.push_str(line),
        }
        text.push('\n');
    };
    push_line(&headings, Some(HEADING));
    for row in &rows {
        push_line(row, None);
    }
}

/// Narrows text columns, the widest first, until a line fits; numbers and ids keep their width.
fn fit(widths: &mut [usize], columns: &[&Column], headings: &[String], width: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    loop {
        let total = widths.iter().sum::<usize>() + gaps;
        let Some(excess) = total.checked_sub(width).filter(|excess| *excess > 0) else {
            return;
        };
        let floor = |at: usize| headings[at].width().max(MIN_TEXT_WIDTH);
        let mut texts: Vec<usize> = (0..widths.len())
            .filter(|at| columns[*at].unit == Unit::Text && widths[*at] > floor(*at))
            .collect();
        texts.sort_by_key(|at| std::cmp::Reverse(widths[*at]));
        let Some(&widest) = texts.first() else {
            return;
        };
        // No further than the next widest: then both give way.
        let next = texts.get(1).map_or(0, |at| widths[*at]);
        let target = widths[widest]
            .saturating_sub(excess)
            .max(next.min(widths[widest] - 1));
        widths[widest] = target.max(floor(widest));
    }
}

fn padded(cell: &str, unit: Unit, width: usize) -> String {
    let cell = shortened(cell, width);
    let fill = " ".repeat(width.saturating_sub(cell.width()));
    if unit.is_numeric() {
        fill + &cell
    } else {
        cell + &fill
    }
}

/// Returns a text of at most the given width: the middle makes place for an ellipsis, since names differ at
/// both ends.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let head = taken(text.chars(), room.div_ceil(2));
    let tail: String = taken(text.chars().rev(), room / 2).chars().rev().collect();
    format!("{head}…{tail}")
}

/// Returns as many characters as fit a width.
fn taken(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

fn painted(text: &str, style: Style, has_color: bool) -> String {
    if has_color {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::count_table;
    use proptest::prelude::*;
    use veloq_core::Cell;

    fn sample() -> Table {
        let columns = vec![
            Column::new("row_id", Unit::Id),
            Column::new("name", Unit::Text),
            Column::new("total_ns", Unit::Nanoseconds),
            Column::new("share", Unit::Ratio),
            Column::detail("key", Unit::Id),
            Column::new("rank", Unit::Count),
        ];
        let rows = vec![
            vec![
                "kernel:91".into(),
                "void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>".into(),
                Cell::Int(1_234_567),
                0.25.into(),
                "k".into(),
                Cell::Null,
            ],
            vec![
                "kernel:7".into(),
                "a\u{1b}[2J".into(),
                Cell::Int(12),
                Cell::Null,
                "k".into(),
                Cell::Null,
            ],
        ];
        count_table(columns, rows, 1_465)
    }

    #[test]
    fn numbers_are_right_aligned_and_names_give_way() {
        let mut table = sample();
        table.notes.push("Two rows have no launch.".into());
        assert_eq!(
            render(&table, 70, false),
            "\
row_id     name                               total              share
kernel:91  void at::native…Functor<float>>  1.23 ms  25.0 % ██▌
kernel:7   a\\x1b[2J                           12 ns                  –
showing 2 of 1,465

note: Two rows have no launch.
"
        );
    }

    #[test]
    fn colour_is_only_added() {
        let plain = render(&sample(), 70, false);
        let colored = render(&sample(), 70, true);
        assert!(!plain.contains('\u{1b}'));
        assert_eq!(anstyle_free(&colored), plain);
    }

    fn anstyle_free(text: &str) -> String {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| {
            all + part.split_once('m').map_or("", |(_, rest)| rest)
        })
    }

    proptest! {
        #[test]
        fn lines_fit_when_names_can_give_way(name in "\\PC{0,200}", width in 80usize..200) {
            let mut table = sample();
            table.sections[0].rows[0][1] = Cell::Text(name);
            for line in render(&table, width, false).lines() {
                prop_assert!(line.width() <= width, "{line}");
            }
        }
    }
}
