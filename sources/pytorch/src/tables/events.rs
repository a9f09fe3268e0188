//! The `events` table: one row an event, with everything that was derived of it.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt8Array, UInt16Array, UInt32Array};

use crate::ingest::columns::{NO_ROW, NONE, Rows, Sparse};
use crate::ingest::derive::Derived;
use crate::link::device_time::outer_row;

use super::{TableDef, column_def, int64, uint32};

/// Names of the columns.
pub(crate) mod column {
    pub(crate) const INDEX: &str = "index";
    pub(crate) const TYPE: &str = "type";
    pub(crate) const PHASE: &str = "phase";
    pub(crate) const NAME: &str = "name";
    pub(crate) const CATEGORY: &str = "category";
    pub(crate) const START_NS: &str = "start_ns";
    pub(crate) const DURATION_NS: &str = "duration_ns";
    pub(crate) const TRACK: &str = "track";
    pub(crate) const RANK: &str = "rank";
    pub(crate) const DEVICE_ID: &str = "device_id";
    pub(crate) const STREAM_ID: &str = "stream_id";
    pub(crate) const STEP: &str = "step";
    pub(crate) const CORRELATION_ID: &str = "correlation_id";
    pub(crate) const EXTERNAL_ID: &str = "external_id";
    pub(crate) const DEPTH: &str = "depth";
    pub(crate) const PARENT: &str = "parent";
    pub(crate) const OP: &str = "op";
    pub(crate) const ANNOTATION: &str = "annotation";
    pub(crate) const PYTHON: &str = "python";
    pub(crate) const MODULE: &str = "module";
    pub(crate) const LAUNCH: &str = "launch";
    pub(crate) const FORWARD: &str = "forward";
    pub(crate) const COMM_KIND: &str = "comm_kind";
    pub(crate) const BYTES: &str = "bytes";
    pub(crate) const SHAPE: &str = "shape";
    pub(crate) const SELF_NS: &str = "self_ns";
    pub(crate) const GPU_SELF_NS: &str = "gpu_self_ns";
    pub(crate) const GPU_TOTAL_NS: &str = "gpu_total_ns";
    pub(crate) const OUTER: &str = "outer";
    pub(crate) const STREAM_FREE_NS: &str = "stream_free_ns";
    pub(crate) const FLAGS: &str = "flags";
}

/// Bits of the `flags` column.
pub(crate) mod flag {
    /// A copy or a fill that its backend filed under kernels.
    pub(crate) const RECLASSIFIED: u8 = 1;
    /// A range that was still open when the capture ended.
    pub(crate) const UNFINISHED: u8 = 2;
    /// A row on a device: work, synchronisation, or an annotation projected on a stream.
    pub(crate) const DEVICE_SIDE: u8 = 4;
}

/// The `events` table.
pub(crate) const EVENTS: TableDef = TableDef {
    name: "events",
    doc: "One row an event, in file order. References to other rows are their `index`.",
    columns: &[
        column_def!(
            column::INDEX,
            UInt32,
            Sorted,
            "position among the trace's elements, flow markers apart; ascending"
        ),
        column_def!(column::TYPE, UInt8, FewValues, "row type, by its number"),
        column_def!(
            column::PHASE,
            UInt8,
            FewValues,
            "first byte of `ph`, 0 when missing"
        ),
        column_def!(column::NAME, UInt32, null, Plain, "name, as a string id"),
        column_def!(
            column::CATEGORY,
            UInt32,
            null,
            FewValues,
            "category as written, as a string id"
        ),
        column_def!(
            column::START_NS,
            Int64,
            null,
            Sorted,
            "start in ns since the trace's origin; null when invalid"
        ),
        column_def!(
            column::DURATION_NS,
            Int64,
            null,
            Plain,
            "duration in ns; 0 on instants; null when invalid"
        ),
        column_def!(
            column::TRACK,
            UInt32,
            FewValues,
            "thread or stream, as a track id"
        ),
        column_def!(column::RANK, Int64, null, FewValues, "rank"),
        column_def!(
            column::DEVICE_ID,
            Int64,
            null,
            FewValues,
            "device, on device-side rows; a number within its rank"
        ),
        column_def!(
            column::STREAM_ID,
            Int64,
            null,
            FewValues,
            "stream, on device-side rows; a number within its device"
        ),
        column_def!(
            column::STEP,
            Int64,
            null,
            FewValues,
            "number of the step the row, or its launch, starts in"
        ),
        column_def!(
            column::CORRELATION_ID,
            Int64,
            null,
            Plain,
            "number shared by a launch and its device rows"
        ),
        column_def!(
            column::EXTERNAL_ID,
            Int64,
            null,
            Plain,
            "the profiler's number of an operator, or of the one around"
        ),
        column_def!(
            column::DEPTH,
            UInt16,
            FewValues,
            "number of enclosing rows on the thread"
        ),
        column_def!(column::PARENT, UInt32, null, Plain, "innermost enclosing row"),
        column_def!(
            column::OP,
            UInt32,
            null,
            Plain,
            "innermost enclosing operator; of device rows, that of the launch"
        ),
        column_def!(
            column::ANNOTATION,
            UInt32,
            null,
            Plain,
            "innermost enclosing annotation or step; likewise"
        ),
        column_def!(
            column::PYTHON,
            UInt32,
            null,
            Plain,
            "innermost enclosing Python frame; likewise"
        ),
        column_def!(
            column::MODULE,
            UInt32,
            null,
            Plain,
            "innermost enclosing module call; likewise"
        ),
        column_def!(
            column::LAUNCH,
            UInt32,
            null,
            Plain,
            "API call that launched the device row"
        ),
        column_def!(
            column::FORWARD,
            UInt32,
            null,
            Plain,
            "forward operator of a backward one"
        ),
        column_def!(
            column::COMM_KIND,
            UInt8,
            FewValues,
            "kind of communication by its number; 0 when none"
        ),
        column_def!(
            column::BYTES,
            Int64,
            null,
            Plain,
            "bytes moved, or allocated (negative: freed)"
        ),
        column_def!(
            column::SHAPE,
            UInt32,
            null,
            Plain,
            "input shapes as JSON text, as a string id"
        ),
        column_def!(
            column::SELF_NS,
            Int64,
            null,
            Plain,
            "own time in ns, nested rows of the kind taken out"
        ),
        column_def!(
            column::GPU_SELF_NS,
            Int64,
            null,
            Plain,
            "device time in ns launched directly by the row"
        ),
        column_def!(
            column::GPU_TOTAL_NS,
            Int64,
            null,
            Plain,
            "device time in ns launched anywhere inside the row"
        ),
        column_def!(
            column::OUTER,
            UInt32,
            null,
            Plain,
            "of rows that launched device work: the row of their kind around them"
        ),
        column_def!(
            column::STREAM_FREE_NS,
            Int64,
            null,
            Plain,
            "when all earlier rows of the stream had ended, in ns"
        ),
        column_def!(
            column::FLAGS,
            UInt8,
            FewValues,
            "1 reclassified, 2 unfinished, 4 device side"
        ),
    ],
};

/// The columns of a trace as arrays, column by column and range by range.
pub(crate) struct EventColumns<'a> {
    pub(crate) rows: &'a Rows,
    pub(crate) derived: &'a Derived,
}

type Extract = fn(&EventColumns<'_>, Range<usize>) -> ArrayRef;

/// How each column of [`EVENTS`] is made, in the same order.
const EXTRACTS: [Extract; EVENTS.columns.len()] = [
    |c, range| Arc::new(UInt32Array::from_iter_values(c.rows.index[range].iter().copied())),
    |c, range| {
        Arc::new(UInt8Array::from_iter_values(
            c.rows.row_type[range].iter().map(|t| t.code()),
        ))
    },
    |c, range| Arc::new(UInt8Array::from_iter_values(c.rows.phase[range].iter().copied())),
    |c, range| uint32(c.rows.name[range].iter().copied()),
    |c, range| uint32(c.rows.category[range].iter().copied()),
    |c, range| c.times(&c.rows.start_ns[range]),
    |c, range| int64(c.rows.dur_ns[range].iter().copied()),
    |c, range| uint32(c.rows.track[range].iter().copied()),
    |c, range| {
        int64(
            c.rows.track[range]
                .iter()
                .map(|track| c.derived.ranks.rank_of(*track)),
        )
    },
    |c, range| c.sparse(range, &c.rows.placement, |placement| placement.device),
    |c, range| c.sparse(range, &c.rows.placement, |placement| placement.stream),
    |c, range| int64(c.derived.steps.of_row[range].iter().copied()),
    |c, range| int64(c.rows.correlation[range].iter().copied()),
    |c, range| int64(c.rows.external[range].iter().copied()),
    |c, range| {
        Arc::new(UInt16Array::from_iter_values(
            c.derived.nesting.depth[range].iter().copied(),
        ))
    },
    |c, range| c.links(&c.derived.nesting.parent[range]),
    |c, range| c.links(&c.derived.nesting.op[range]),
    |c, range| c.links(&c.derived.nesting.annotation[range]),
    |c, range| c.links(&c.derived.nesting.python[range]),
    |c, range| c.links(&c.derived.nesting.module[range]),
    |c, range| c.links(&c.derived.launches.launch[range]),
    |c, range| c.links(&c.derived.autograd.forward[range]),
    |c, range| {
        Arc::new(UInt8Array::from_iter_values(
            c.derived.comm.kind[range].iter().copied(),
        ))
    },
    |c, range| c.sparse(range, &c.rows.bytes, |bytes| *bytes),
    |c, range| uint32(c.rows.shape[range].iter().copied()),
    |c, range| int64(c.derived.nesting.self_ns[range].iter().copied()),
    |c, range| int64(c.derived.device_time.self_ns[range].iter().copied()),
    |c, range| int64(c.derived.device_time.total_ns[range].iter().copied()),
    |c, range| c.outer_rows(range),
    |c, range| {
        let origin_ns = c.derived.span.origin_ns;
        c.sparse(range, &c.derived.streams.free_ns, |at| at - origin_ns)
    },
    |c, range| Arc::new(UInt8Array::from(c.flags(range))),
];

impl EventColumns<'_> {
    /// Returns a range of one column; `column` is its place in [`EVENTS`].
    pub(crate) fn array(&self, column: usize, range: Range<usize>) -> ArrayRef {
        EXTRACTS[column](self, range)
    }

    fn times(&self, times: &[i64]) -> ArrayRef {
        let origin_ns = self.derived.span.origin_ns;
        int64(
            times
                .iter()
                .map(|at| if *at == NONE { NONE } else { at - origin_ns }),
        )
    }

    fn links(&self, rows: &[u32]) -> ArrayRef {
        uint32(rows.iter().map(|row| {
            if *row == NO_ROW {
                NO_ROW
            } else {
                self.rows.index[*row as usize]
            }
        }))
    }

    fn outer_rows(&self, range: Range<usize>) -> ArrayRef {
        let outer = |row: u32| {
            let has_launched = self.derived.device_time.total_ns[row as usize] > 0;
            match outer_row(self.rows, &self.derived.nesting, row) {
                outer if has_launched && outer != NO_ROW => self.rows.index[outer as usize],
                _ => NO_ROW,
            }
        };
        uint32(self.rows.numbers().skip(range.start).take(range.len()).map(outer))
    }

    fn sparse<T>(&self, range: Range<usize>, values: &Sparse<T>, get: impl Fn(&T) -> i64) -> ArrayRef {
        let mut column = vec![NONE; range.len()];
        for (row, value) in values.within(&range) {
            column[*row as usize - range.start] = get(value);
        }
        int64(column.into_iter())
    }

    fn flags(&self, range: Range<usize>) -> Vec<u8> {
        let mut flags = vec![0; range.len()];
        let mut mark = |row: u32, bit: u8| flags[row as usize - range.start] |= bit;
        let within = |rows: &[u32]| {
            let from = rows.partition_point(|row| (*row as usize) < range.start);
            let to = rows.partition_point(|row| (*row as usize) < range.end);
            from..to
        };
        for row in &self.rows.reclassified[within(&self.rows.reclassified)] {
            mark(*row, flag::RECLASSIFIED);
        }
        for row in &self.rows.unfinished[within(&self.rows.unfinished)] {
            mark(*row, flag::UNFINISHED);
        }
        for (row, _) in self.rows.placement.within(&range) {
            mark(*row, flag::DEVICE_SIDE);
        }
        flags
    }
}
