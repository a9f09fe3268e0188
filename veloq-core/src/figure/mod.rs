//! Figures: lanes of spans over time, drawn as SVG.
//!
//! A source says what lies in which lane; how it is drawn is the same for all: a title, a legend, a time axis,
//! lanes in groups, labels where they fit. A figure is bounded: what is too small to see is merged, and said to
//! be. Equal figures give equal bytes.

mod axis;
mod draw;
mod file;
mod merge;

use std::ops::Range;

pub use file::write_svg;

/// How a class of spans looks, and what the legend calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanClass {
    /// What the spans are: `communication`.
    pub label: &'static str,
    /// Fill, as SVG writes it; from a palette that colour-blind people can tell apart.
    pub fill: &'static str,
    /// Colour of the label on the fill.
    pub ink: &'static str,
    /// Whether spans are hatched, so that colour is not all that tells them.
    pub is_hatched: bool,
}

/// A span in a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// When it lasts, in ns.
    pub range: Range<i64>,
    /// Its class: a place in [`Figure::classes`].
    pub class: usize,
    /// Its name, as the trace has it.
    pub name: String,
}

/// A lane: spans of one thread, or of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// The heading that lanes next to each other share: `rank 0, device 0`.
    pub group: String,
    /// Its own label: `stream 7`.
    pub label: String,
    /// What lies in it, in any order. Later ones are drawn over earlier ones.
    pub spans: Vec<Span>,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// The title, in one line.
    pub title: String,
    /// What is to be seen, in one sentence.
    pub description: String,
    /// From when to when, in ns; spans are cut to it.
    pub window: Range<i64>,
    /// All classes that spans may have.
    pub classes: &'static [SpanClass],
    /// The lanes, from top to bottom.
    pub lanes: Vec<Lane>,
    /// What is not to be seen: said below the lanes.
    pub notes: Vec<String>,
}

/// A drawn figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawing {
    /// The SVG document.
    pub svg: String,
    /// Rectangles that stand for spans.
    pub shapes: u64,
    /// Spans that share a rectangle with others.
    pub merged_spans: u64,
}

impl Figure {
    /// Draws the figure.
    pub fn draw(&self) -> Drawing {
        draw::draw(self)
    }
}
