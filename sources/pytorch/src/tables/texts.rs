//! The tables of texts: `strings` (names and the like, once each) and `args` (the raw args of every row).

use std::sync::Arc;

use arrow::array::{BinaryArray, StringArray, UInt32Array};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;

use crate::ingest::columns::Strings;

use super::{TableDef, column_def};

/// The `strings` table.
pub(crate) static STRINGS: TableDef = TableDef {
    name: "strings",
    doc: "One row a distinct text; the row's position is its string id.",
    columns: &[column_def!("text", Utf8, Plain, "the text")],
};

/// The `args` table.
pub(crate) static ARGS: TableDef = TableDef {
    name: "args",
    doc: "One row an event that has args, in file order.",
    columns: &[
        column_def!("index", UInt32, Sorted, "the event's index"),
        column_def!(
            "args",
            Binary,
            Plain,
            "the args as JSON text: as written, or repaired where it was not valid"
        ),
    ],
};

/// Returns the args of a run of events: `ends[i]` is where the text of `index[i]` ends in `text`.
pub(crate) fn args_batch(index: Vec<u32>, ends: &[i32], text: Vec<u8>) -> Result<RecordBatch, ArrowError> {
    let offsets: Vec<i32> = std::iter::once(0).chain(ends.iter().copied()).collect();
    let args = BinaryArray::new(OffsetBuffer::new(offsets.into()), Buffer::from_vec(text), None);
    RecordBatch::try_new(
        ARGS.arrow_schema(),
        vec![Arc::new(UInt32Array::from(index)), Arc::new(args)],
    )
}

/// Returns all strings, at most `at_most` a batch.
pub(crate) fn string_batches(
    strings: &Strings,
    at_most: usize,
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
    let mut texts = strings.iter().peekable();
    std::iter::from_fn(move || {
        texts.peek()?;
        let array = StringArray::from_iter_values(texts.by_ref().take(at_most));
        Some(RecordBatch::try_new(
            STRINGS.arrow_schema(),
            vec![Arc::new(array)],
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn args_are_cut_at_their_ends() {
        let batch = args_batch(vec![3, 9], &[2, 7], b"{}{\"a\"}".to_vec()).unwrap();
        let args = batch.column(1).as_any().downcast_ref::<BinaryArray>().unwrap();
        assert_eq!((args.value(0), args.value(1)), (&b"{}"[..], &b"{\"a\"}"[..]));
    }

    #[test]
    fn strings_keep_their_order_across_batches() {
        let mut strings = Strings::default();
        for text in ["a", "b", "c"] {
            strings.intern(text);
        }
        let sizes: Vec<usize> = string_batches(&strings, 2)
            .map(|batch| batch.unwrap().num_rows())
            .collect();
        assert_eq!(sizes, [2, 1]);
    }
}
