//! The stored tables: one schema each, and the columns' meaning.

pub(crate) mod collectives;
pub(crate) mod events;
pub(crate) mod texts;
pub(crate) mod tracks;
pub(crate) mod write;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use veloq_core::{SourceSchema, TableColumn, TableSchema};

use crate::ingest::columns::{NO_ROW, NONE};

/// How a column's values lie in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// As they are.
    Plain,
    /// With the least and greatest value of every page, so that look-ups pass over most of them.
    Sorted,
    /// By a dictionary: few values, or long runs of one.
    FewValues,
}

/// A column of a stored table.
pub(crate) struct ColumnDef {
    pub(crate) name: &'static str,
    pub(crate) data_type: fn() -> DataType,
    pub(crate) is_nullable: bool,
    pub(crate) storage: Storage,
    /// What the values are, with their unit.
    pub(crate) doc: &'static str,
}

/// A stored table.
pub(crate) struct TableDef {
    /// The name, and with `.parquet` the file's.
    pub(crate) name: &'static str,
    /// What a row is, and the order of the rows.
    pub(crate) doc: &'static str,
    pub(crate) columns: &'static [ColumnDef],
}

impl TableDef {
    /// Returns the table's Arrow schema.
    pub(crate) fn arrow_schema(&self) -> SchemaRef {
        let fields = self
            .columns
            .iter()
            .map(|c| Field::new(c.name, (c.data_type)(), c.is_nullable));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}

/// Defines a column: name, Arrow type, `null` when values may be absent, storage, what the values are.
macro_rules! column_def {
    ($name:expr, $data_type:ident, null, $storage:ident, $doc:literal) => {
        column_def!(@ $name, $data_type, true, $storage, $doc)
    };
    ($name:expr, $data_type:ident, $storage:ident, $doc:literal) => {
        column_def!(@ $name, $data_type, false, $storage, $doc)
    };
    (@ $name:expr, $data_type:ident, $is_nullable:literal, $storage:ident, $doc:literal) => {
        $crate::tables::ColumnDef {
            name: $name,
            data_type: || ::arrow::datatypes::DataType::$data_type,
            is_nullable: $is_nullable,
            storage: $crate::tables::Storage::$storage,
            doc: $doc,
        }
    };
}
use column_def;

/// All tables, in the order in which they are listed.
pub(crate) const TABLES: [&TableDef; 5] = [
    &events::EVENTS,
    &texts::ARGS,
    &texts::STRINGS,
    &tracks::TRACKS,
    &collectives::COLLECTIVES,
];

/// Returns the stored tables as the `schema` verb lists them.
pub(crate) fn source_schema() -> SourceSchema {
    let column = |def: &ColumnDef| TableColumn {
        name: def.name.to_owned(),
        data_type: (def.data_type)().to_string(),
        is_nullable: def.is_nullable,
        doc: def.doc.to_owned(),
    };
    let table = |def: &&TableDef| TableSchema {
        name: def.name.to_owned(),
        doc: def.doc.to_owned(),
        columns: def.columns.iter().map(column).collect(),
    };
    SourceSchema {
        tables: TABLES.iter().map(table).collect(),
    }
}

/// Returns an array in which [`NONE`] is null.
fn int64(values: impl Iterator<Item = i64>) -> ArrayRef {
    let values: Vec<i64> = values.collect();
    let nulls = NullBuffer::from_iter(values.iter().map(|value| *value != NONE));
    Arc::new(Int64Array::new(
        values.into(),
        Some(nulls).filter(|nulls| nulls.null_count() > 0),
    ))
}

/// Returns an array in which [`NO_ROW`] is null.
fn uint32(values: impl Iterator<Item = u32>) -> ArrayRef {
    let values: Vec<u32> = values.collect();
    let nulls = NullBuffer::from_iter(values.iter().map(|value| *value != NO_ROW));
    Arc::new(UInt32Array::new(
        values.into(),
        Some(nulls).filter(|nulls| nulls.null_count() > 0),
    ))
}
