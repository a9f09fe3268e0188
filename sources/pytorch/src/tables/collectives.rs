//! The `collectives` table: one row a collective, with the rows that belong to it.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float64Array, Int64Builder, ListBuilder, StringArray, UInt8Array, UInt32Array, UInt32Builder,
};
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;

use crate::comm::collectives::Collective;
use crate::ingest::collect::Collected;
use crate::ingest::columns::{NO_ROW, NONE};
use crate::ingest::derive::Derived;

use super::{ColumnDef, Storage, TableDef, column_def, int64, uint32};

const fn list(name: &'static str, item: fn() -> DataType, is_nullable: bool, doc: &'static str) -> ColumnDef {
    ColumnDef {
        name,
        data_type: item,
        is_nullable,
        storage: Storage::Plain,
        doc,
    }
}

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

/// The `collectives` table.
pub(crate) const COLLECTIVES: TableDef = TableDef {
    name: "collectives",
    doc: "One row a collective, by rank, start and first row. References to events are their `index`.",
    columns: &[
        column_def!("kind", UInt8, Plain, "kind of communication by its number"),
        column_def!("rank", Int64, null, Plain, "rank"),
        column_def!(
            "step",
            Int64,
            null,
            Plain,
            "number of the step in which it was called"
        ),
        column_def!(
            "ordinal",
            UInt32,
            Plain,
            "position by start among those of its kind, rank and step; from 0"
        ),
        column_def!(
            "name",
            UInt32,
            null,
            Plain,
            "name of its most telling row, as a string id"
        ),
        column_def!(
            "start_ns",
            Int64,
            null,
            Plain,
            "start in ns since the trace's origin"
        ),
        column_def!("duration_ns", Int64, null, Plain, "duration in ns"),
        column_def!(
            "cpu_row",
            UInt32,
            null,
            Plain,
            "the operator or annotation that called it"
        ),
        list(
            "kernel_rows",
            || list_of(DataType::UInt32),
            false,
            "its device work, ascending",
        ),
        list(
            "event_rows",
            || list_of(DataType::UInt32),
            false,
            "other rows that belong to it, ascending",
        ),
        column_def!("group_name", Utf8, null, Plain, "name of its process group"),
        column_def!(
            "group_description",
            Utf8,
            null,
            Plain,
            "what the group's user called it"
        ),
        column_def!("group_size", Int64, null, Plain, "members of the group"),
        list(
            "group_ranks",
            || list_of(DataType::Int64),
            true,
            "global ranks of the members",
        ),
        column_def!("dtype", Utf8, null, Plain, "type of the elements, as written"),
        column_def!("in_bytes", Int64, null, Plain, "bytes that this rank puts in"),
        column_def!("out_bytes", Int64, null, Plain, "bytes that this rank gets out"),
        column_def!(
            "algbw_gb_per_s",
            Float64,
            null,
            Plain,
            "algorithm bandwidth in 10^9 bytes a second"
        ),
        column_def!(
            "busbw_gb_per_s",
            Float64,
            null,
            Plain,
            "bus bandwidth in 10^9 bytes a second"
        ),
        column_def!(
            "seq",
            Int64,
            null,
            Plain,
            "number of the collective within its process group"
        ),
        column_def!(
            "exposed_ns",
            Int64,
            null,
            Plain,
            "device time not covered by compute of the same device"
        ),
        column_def!(
            "confidence",
            UInt8,
            Plain,
            "how the rows were joined, by its number"
        ),
    ],
};

/// Returns all collectives.
pub(crate) fn collectives_batch(collected: &Collected, derived: &Derived) -> Result<RecordBatch, ArrowError> {
    let all = &derived.collectives;
    let index_of = |row: u32| {
        if row == NO_ROW {
            NO_ROW
        } else {
            collected.rows.index[row as usize]
        }
    };
    let origin_ns = derived.span.origin_ns;
    let since_origin = |at: i64| if at == NONE { NONE } else { at - origin_ns };
    let rows = |get: fn(&Collective) -> &Vec<u32>| -> ArrayRef {
        let mut builder = ListBuilder::new(UInt32Builder::new());
        for collective in all {
            builder.append_value(get(collective).iter().map(|row| Some(index_of(*row))));
        }
        Arc::new(builder.finish())
    };
    let mut ranks = ListBuilder::new(Int64Builder::new());
    for collective in all {
        ranks.append_option(
            collective
                .process_group
                .ranks
                .as_ref()
                .map(|ranks| ranks.iter().map(|rank| Some(*rank))),
        );
    }
    let integers = |get: fn(&Collective) -> Option<i64>| int64(all.iter().map(|c| get(c).unwrap_or(NONE)));
    let texts = |get: fn(&Collective) -> Option<&str>| -> ArrayRef {
        Arc::new(StringArray::from_iter(all.iter().map(get)))
    };
    let numbers = |get: fn(&Collective) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(all.iter().map(get)))
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt8Array::from_iter_values(all.iter().map(|c| c.kind.code()))),
        int64(all.iter().map(|c| c.rank)),
        int64(all.iter().map(|c| c.step)),
        Arc::new(UInt32Array::from_iter_values(all.iter().map(|c| c.ordinal))),
        uint32(all.iter().map(|c| c.name)),
        int64(all.iter().map(|c| since_origin(c.start_ns))),
        int64(all.iter().map(|c| c.dur_ns)),
        uint32(all.iter().map(|c| index_of(c.cpu_row))),
        rows(|c| &c.kernel_rows),
        rows(|c| &c.event_rows),
        texts(|c| c.process_group.name.as_deref()),
        texts(|c| c.process_group.description.as_deref()),
        integers(|c| c.process_group.size),
        Arc::new(ranks.finish()),
        texts(|c| c.dtype.as_deref()),
        integers(|c| c.in_bytes),
        integers(|c| c.out_bytes),
        numbers(|c| c.bandwidth.algorithm),
        numbers(|c| c.bandwidth.bus),
        integers(|c| c.sequence),
        integers(|c| c.exposed_ns),
        Arc::new(UInt8Array::from_iter_values(
            all.iter().map(|c| c.confidence.code()),
        )),
    ];
    RecordBatch::try_new(COLLECTIVES.arrow_schema(), columns)
}
