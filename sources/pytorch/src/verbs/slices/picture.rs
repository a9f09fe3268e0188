//! The picture of slices: the ranges, and the device rows that belong to them.

use std::ops::Range;

use rustc_hash::FxHashSet;
use veloq_core::{Failure, NsRange};

use crate::query::filters::type_among;
use crate::row::RowType;
use crate::session::TraceSession;
use crate::verbs::picture::{Picture, Subject, draw, window_of};

use super::attribute::Attributor;
use super::query::{Slice, Work};

/// Draws slices with their device rows into a file; both are cut to the window.
///
/// # Errors
/// `usage.output_exists`, `limit.output`; what the engine reports.
pub(super) fn draw_slices(
    session: &TraceSession,
    slices: &[&Slice],
    work: &[Work],
    attributor: &Attributor<'_>,
    window: NsRange,
    path: &str,
) -> Result<Picture, Failure> {
    let mut indices: FxHashSet<u32> = slices.iter().map(|slice| slice.id.index).collect();
    let mut ranges: Vec<Range<i64>> = slices.iter().map(|slice| slice.start_ns..slice.end_ns).collect();
    for slice in slices {
        for (row, part) in attributor.of(slice).rows {
            indices.insert(work[row as usize].index);
            ranges.push(part);
        }
    }
    let drawn = [
        RowType::Annotation,
        RowType::Step,
        RowType::Kernel,
        RowType::Memcpy,
        RowType::Memset,
    ];
    let subject = Subject {
        verb: "slices",
        predicate: Some(type_among(&drawn)),
        is_wanted: |index| indices.contains(&index),
        window: window_of(ranges.into_iter(), window),
    };
    draw(session, subject, path)
}
