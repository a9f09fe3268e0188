//! The order of device work on its stream.

use crate::ingest::columns::{NONE, Rows, Sparse};

use super::Tally;
use super::rank::Ranks;

/// What the order on streams tells.
#[derive(Debug)]
pub(crate) struct Streams {
    /// Of device rows but the first of each stream: when all earlier rows of the stream had ended.
    pub(crate) free_ns: Sparse<i64>,
    /// Rows that start before an earlier one of their stream has ended.
    pub(crate) overlapping: Tally,
    /// Rows that run past the starts of at least [`IMPOSSIBLE_STARTS`] later ones of their stream.
    pub(crate) impossible: Tally,
    /// Of the impossible rows: the sum of their durations as written, and cut at the next start.
    pub(crate) impossible_raw_ns: i64,
    pub(crate) impossible_clipped_ns: i64,
}

/// How many later rows a row may run past. Healthy overlap on one stream (programmatic dependent launch,
/// branches of a graph that fold onto one stream) has been seen with neighbours, not with this many.
const IMPOSSIBLE_STARTS: usize = 16;

/// Scans every stream in the order of starts.
pub(crate) fn scan_streams(rows: &Rows, ranks: &Ranks) -> Streams {
    let mut work: Vec<(u16, i64, i64, i64, u32)> = rows
        .placement
        .0
        .iter()
        .filter(|(row, _)| rows.row_type[*row as usize].is_device_work() && rows.end_ns(*row).is_some())
        .map(|(row, placement)| {
            let group = ranks.of_track[rows.track[*row as usize] as usize];
            (
                group,
                placement.device,
                placement.stream,
                rows.start_ns[*row as usize],
                *row,
            )
        })
        .collect();
    work.sort_unstable();
    let mut streams = Streams {
        free_ns: Sparse::default(),
        overlapping: Tally::default(),
        impossible: Tally::default(),
        impossible_raw_ns: 0,
        impossible_clipped_ns: 0,
    };
    let stream_of = |at: usize| (work[at].0, work[at].1, work[at].2);
    let mut free_ns = NONE;
    for (at, &(.., start_ns, row)) in work.iter().enumerate() {
        if at > 0 && stream_of(at) != stream_of(at - 1) {
            free_ns = NONE;
        }
        if free_ns != NONE {
            streams.free_ns.0.push((row, free_ns));
        }
        if free_ns > start_ns {
            streams.overlapping.add(row);
        }
        let end_ns = start_ns + rows.dur_ns[row as usize];
        free_ns = free_ns.max(end_ns);
        let past = at + IMPOSSIBLE_STARTS;
        if past < work.len() && stream_of(past) == stream_of(at) && work[past].3 < end_ns {
            streams.impossible.add(row);
            streams.impossible_raw_ns += end_ns - start_ns;
            let next_start = work[at + 1..=past]
                .iter()
                .map(|later| later.3)
                .find(|next| *next > start_ns);
            streams.impossible_clipped_ns += next_start.unwrap_or(end_ns).min(end_ns) - start_ns;
        }
    }
    streams.free_ns.0.sort_unstable_by_key(|(row, _)| *row);
    streams
}
