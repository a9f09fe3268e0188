//! Putting a figure on paper.

use std::fmt::Write as _;

use super::axis::{duration, step, ticks, time};
use super::file::START;
use super::merge::{Shape, shapes};
use super::{Drawing, Figure, Lane};

const WIDTH: f64 = 1400.0;
/// Where time begins: labels of lanes stand left of it.
const LEFT: f64 = 200.0;
const PLOT: f64 = WIDTH - LEFT - 20.0;
const LANE: f64 = 18.0;
const LANE_GAP: f64 = 4.0;
const GROUP_HEADING: f64 = 24.0;
const TITLE_HEIGHT: f64 = 56.0;
const LEGEND_HEIGHT: f64 = 26.0;
const AXIS_HEIGHT: f64 = 24.0;
const LINE: f64 = 16.0;
/// A character of a label, on average.
const CHAR: f64 = 6.6;
/// A label with fewer characters says nothing.
const MIN_LABEL: usize = 4;
/// Characters of a name that a tooltip shows.
const MAX_TOLD: usize = 240;
/// What is narrower than this is merged, in the first attempt.
const LEAST: f64 = 1.0;
/// Rectangles at most: beyond, more is merged. About 150 bytes each.
const MAX_SHAPES: usize = 8_000;
const BACKGROUND: &str = "#ffffff";
const INK: &str = "#1a1a1a";
const FAINT: &str = "#5c5c5c";
const GRID: &str = "#e3e3e3";
const LANE_FILL: &str = "#f5f5f5";

/// Where times are on paper.
struct Scale {
    start_ns: i64,
    length_ns: i64,
}

impl Scale {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a hundredth of a pixel needs no more than the 53 bits of a float"
    )]
    fn x(&self, at_ns: i64) -> f64 {
        LEFT + (at_ns - self.start_ns) as f64 / self.length_ns as f64 * PLOT
    }

    /// Returns the time that a width stands for, at least 1 ns.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "a bound for merging need not be exact"
    )]
    fn ns(&self, width: f64) -> i64 {
        ((width / PLOT * self.length_ns as f64) as i64).max(1)
    }
}

pub(super) fn draw(figure: &Figure) -> Drawing {
    let window = &figure.window;
    let scale = Scale {
        start_ns: window.start,
        length_ns: window.end.saturating_sub(window.start).max(1),
    };
    let (lanes, least) = merged(figure, &scale);
    let merged_spans = lanes
        .iter()
        .flatten()
        .map(|shape| shape.count)
        .filter(|count| *count > 1)
        .sum();
    let mut notes = figure.notes.clone();
    if merged_spans > 0 {
        let least = duration(scale.ns(least));
        notes.push(format!(
            "{merged_spans} rows shorter than {least} are drawn together with their neighbours, paler; gaps shorter than that do not show."
        ));
    }
    if lanes.iter().all(Vec::is_empty) {
        notes.push("Nothing to draw in this window.".to_owned());
    }
    let top = TITLE_HEIGHT + LEGEND_HEIGHT + AXIS_HEIGHT;
    let mut body = String::new();
    let mut y = top;
    let mut last_group = None;
    for (lane, shapes) in figure.lanes.iter().zip(&lanes) {
        if last_group != Some(&lane.group) {
            y += GROUP_HEADING;
            text(&mut body, 12.0, y - 7.0, INK, "font-weight=\"bold\"", &lane.group);
            last_group = Some(&lane.group);
        }
        push_lane(&mut body, figure, lane, shapes, y, &scale);
        y += LANE + LANE_GAP;
    }
    let bottom = y;
    let height = bottom + AXIS_HEIGHT + LINE * line_count(notes.len()) + 12.0;
    let mut svg = String::with_capacity(body.len() + 4096);
    push_head(&mut svg, figure, height);
    push_legend(&mut svg, figure, &lanes);
    push_axis(&mut svg, figure, &scale, top, bottom);
    svg.push_str(&body);
    for (at, note) in notes.iter().enumerate() {
        let y = bottom + AXIS_HEIGHT + LINE * line_count(at + 1);
        text(&mut svg, 12.0, y, FAINT, "", note);
    }
    svg.push_str("</svg>\n");
    Drawing {
        svg,
        shapes: lanes.iter().map(|shapes| shapes.len() as u64).sum(),
        merged_spans,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a handful of lines")]
fn line_count(lines: usize) -> f64 {
    lines as f64
}

/// Returns the shapes of all lanes, and the width below which spans were merged.
fn merged(figure: &Figure, scale: &Scale) -> (Vec<Vec<Shape>>, f64) {
    let mut least = LEAST;
    loop {
        let least_ns = scale.ns(least);
        let lanes: Vec<Vec<Shape>> = figure
            .lanes
            .iter()
            .map(|lane| shapes(&lane.spans, &figure.window, least_ns))
            .collect();
        if lanes.iter().map(Vec::len).sum::<usize>() <= MAX_SHAPES || least > PLOT {
            return (lanes, least);
        }
        least *= 2.0;
    }
}

fn push_head(svg: &mut String, figure: &Figure, height: f64) {
    let (title, description) = (escaped(&figure.title), escaped(&figure.description));
    let _ = write!(
        svg,
        "{START}xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"title description\" \
         viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\" font-size=\"11\">\n\
         <title id=\"title\">{title}</title>\n<desc id=\"description\">{description}</desc>\n\
         <defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><rect width=\"1.5\" height=\"6\" fill=\"{INK}\" fill-opacity=\"0.35\"/>\
         </pattern></defs>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"{BACKGROUND}\"/>\n",
    );
    text(
        svg,
        12.0,
        26.0,
        INK,
        "font-size=\"17\" font-weight=\"bold\"",
        &fitted(&figure.title, 150),
    );
    text(svg, 12.0, 46.0, FAINT, "", &fitted(&figure.description, 220));
}

/// Draws the classes that occur.
fn push_legend(svg: &mut String, figure: &Figure, lanes: &[Vec<Shape>]) {
    let mut x = 12.0;
    let y = TITLE_HEIGHT;
    for (number, class) in figure.classes.iter().enumerate() {
        if !lanes.iter().flatten().any(|shape| shape.class == number) {
            continue;
        }
        rect(svg, x, y, 16.0, 12.0, class.fill, "", None);
        if class.is_hatched {
            rect(svg, x, y, 16.0, 12.0, "url(#hatch)", "", None);
        }
        text(svg, x + 22.0, y + 10.0, INK, "", class.label);
        x += 22.0 + line_count(class.label.chars().count()) * CHAR + 24.0;
    }
}

fn push_axis(svg: &mut String, figure: &Figure, scale: &Scale, top: f64, bottom: f64) {
    let step_ns = step(scale.length_ns);
    for at in ticks(&figure.window) {
        let x = scale.x(at);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.2}\" y1=\"{:.2}\" x2=\"{x:.2}\" y2=\"{bottom:.2}\" stroke=\"{GRID}\"/>",
            top - 4.0
        );
        let label = time(at, step_ns);
        for y in [top - 9.0, bottom + 14.0] {
            text(svg, x, y, FAINT, "text-anchor=\"middle\"", &label);
        }
    }
}

fn push_lane(svg: &mut String, figure: &Figure, lane: &Lane, shapes: &[Shape], y: f64, scale: &Scale) {
    rect(svg, LEFT, y, PLOT, LANE, LANE_FILL, "", None);
    text(svg, 12.0, y + 13.0, INK, "", &fitted(&lane.label, 30));
    for shape in shapes {
        let Some(class) = figure.classes.get(shape.class) else {
            continue;
        };
        let (x, end) = (scale.x(shape.range.start), scale.x(shape.range.end));
        // What is there shows, however short.
        let width = (end - x).max(0.5);
        let name = &fitted(&lane.spans[shape.span].name, MAX_TOLD);
        let length = duration(shape.range.end - shape.range.start);
        let at = time(shape.range.start, 1_000);
        let (told, opacity) = if shape.count > 1 {
            (
                format!("{} rows in {length} from {at}, the first {name}", shape.count),
                " fill-opacity=\"0.65\"",
            )
        } else {
            (format!("{name}: {length} at {at}"), "")
        };
        rect(
            svg,
            x,
            y + 1.0,
            width,
            LANE - 2.0,
            class.fill,
            opacity,
            Some(&told),
        );
        if class.is_hatched {
            rect(
                svg,
                x,
                y + 1.0,
                width,
                LANE - 2.0,
                "url(#hatch)",
                " pointer-events=\"none\"",
                None,
            );
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a label is cut to a whole number of characters"
        )]
        let room = ((width - 6.0).max(0.0) / CHAR) as usize;
        if shape.count == 1 && room >= MIN_LABEL {
            let label = fitted(name, room);
            let style = " pointer-events=\"none\"";
            text(svg, x + 3.0, y + 13.0, class.ink, style, &label);
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "the parts of a rectangle")]
fn rect(
    svg: &mut String,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    fill: &str,
    more: &str,
    told: Option<&str>,
) {
    let _ = write!(
        svg,
        "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{fill}\"{more}"
    );
    match told {
        Some(told) => {
            let _ = writeln!(svg, "><title>{}</title></rect>", escaped(told));
        }
        None => svg.push_str("/>\n"),
    }
}

fn text(svg: &mut String, x: f64, y: f64, fill: &str, more: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.2}\" y=\"{y:.2}\" fill=\"{fill}\" {more}>{}</text>",
        escaped(text)
    );
}

/// Returns a text cut in the middle to so many characters.
fn fitted(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    let kept = room.saturating_sub(1);
    let head: String = text.chars().take(kept.div_ceil(2)).collect();
    let tail: String = text.chars().skip(count - kept / 2).collect();
    format!("{head}…{tail}")
}

/// Returns a text that XML takes: markup escaped, control characters and what turns the direction of text
/// replaced.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                safe.push('\u{fffd}');
            }
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::super::{Span, SpanClass};
    use super::*;

    const CLASSES: &[SpanClass] = &[
        SpanClass {
            label: "compute",
            fill: "#0072b2",
            ink: "#ffffff",
            is_hatched: false,
        },
        SpanClass {
            label: "communication",
            fill: "#d55e00",
            ink: "#000000",
            is_hatched: true,
        },
    ];

    fn figure(spans: Vec<Span>) -> Figure {
        Figure {
            title: "a & b".to_owned(),
            description: "what is <busy> when".to_owned(),
            window: 0..1_000_000,
            classes: CLASSES,
            lanes: vec![Lane {
                group: "rank 0, device 0".to_owned(),
                label: "stream 7".to_owned(),
                spans,
            }],
            notes: Vec::new(),
        }
    }

    fn span(start: i64, end: i64, class: usize, name: &str) -> Span {
        Span {
            range: start..end,
            class,
            name: name.to_owned(),
        }
    }

    #[test]
    fn names_cannot_break_out_of_the_document() {
        let drawing = figure(vec![span(0, 900_000, 0, "a<script>\u{1b}[2J\u{202e}\"&")]).draw();
        assert!(!drawing.svg.contains("<script"));
        assert!(
            drawing
                .svg
                .contains("a&lt;script&gt;\u{fffd}[2J\u{fffd}&quot;&amp;")
        );
        assert!(!drawing.svg.chars().any(|c| c.is_control() && c != '\n'));
        assert!(drawing.svg.starts_with(START) && drawing.svg.ends_with("</svg>\n"));
    }

    #[test]
    fn the_legend_has_what_occurs() {
        let drawing = figure(vec![span(0, 10_000, 1, "all_reduce")]).draw();
        assert!(drawing.svg.contains(">communication</text>"));
        assert!(!drawing.svg.contains(">compute</text>"));
    }

    #[test]
    fn a_figure_is_bounded_and_says_what_it_merged() {
        let spans = (0..200_000).map(|at| span(at * 5, at * 5 + 4, 0, "k")).collect();
        let drawing = figure(spans).draw();
        assert!(drawing.shapes <= MAX_SHAPES as u64);
        assert_eq!(drawing.merged_spans, 200_000);
        assert!(drawing.svg.contains("200000 rows shorter than"));
        assert!(drawing.svg.len() < 2_000_000);
    }

    #[test]
    fn an_empty_figure_says_so() {
        let drawing = figure(Vec::new()).draw();
        assert_eq!((drawing.shapes, drawing.merged_spans), (0, 0));
        assert!(drawing.svg.contains("Nothing to draw in this window."));
    }

    #[test]
    fn equal_figures_give_equal_bytes() {
        let spans = vec![
            span(5, 90_000, 0, "gemm"),
            span(100_000, 300_000, 1, "all_reduce"),
        ];
        assert_eq!(figure(spans.clone()).draw(), figure(spans).draw());
    }
}
