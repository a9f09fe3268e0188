//! Writing a table: Parquet, row group by row group.

use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use arrow::array::ArrayRef;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowWriterOptions, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::texts::ARGS;
use super::{Storage, TableDef};

/// Rows in a row group of fixed-width tables: the unit of parallel scans and of memory while writing.
const GROUP_ROWS: usize = 256 * 1024;

/// Rows of a column that are made at once.
const BATCH_ROWS: usize = 64 * 1024;

/// Rows in a row group of args, which are wide.
const ARGS_GROUP_ROWS: usize = 32 * 1024;

/// Rows in a page: what a look-up of one row has to read of each column.
const PAGE_ROWS: usize = 8 * 1024;

/// Rows in a page of args.
const ARGS_PAGE_ROWS: usize = 512;

fn properties(table: &TableDef) -> WriterProperties {
    let is_args = table.name == ARGS.name;
    let (group_rows, page_rows) = if is_args {
        (ARGS_GROUP_ROWS, ARGS_PAGE_ROWS)
    } else {
        (GROUP_ROWS, PAGE_ROWS)
    };
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::LZ4_RAW)
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows.min(1024))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None);
    for column in table.columns {
        let path = ColumnPath::from(column.name);
        builder = match column.storage {
            Storage::Plain => builder,
            // Only look-ups and windows prune: by index, by time. Statistics of the rest would never help.
            // Hardly any bytes repeat in rising numbers: compression would cost time and save little.
            Storage::Sorted => builder
                .set_column_statistics_enabled(path.clone(), EnabledStatistics::Page)
                .set_column_compression(path, Compression::UNCOMPRESSED),
            Storage::FewValues => builder.set_column_dictionary_enabled(path, true),
        };
    }
    builder.build()
}

fn file(path: &Path) -> Result<BufWriter<File>, ParquetError> {
    Ok(BufWriter::with_capacity(1 << 18, File::create(path)?))
}

/// Writes one table, batch by batch.
pub(crate) struct TableWriter {
    writer: ArrowWriter<BufWriter<File>>,
    rows: u64,
}

impl TableWriter {
    /// Creates the table's file.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub(crate) fn create(path: &Path, table: &TableDef) -> Result<Self, ParquetError> {
        let options = ArrowWriterOptions::new().with_properties(properties(table));
        let writer = ArrowWriter::try_new_with_options(file(path)?, table.arrow_schema(), options)?;
        Ok(Self { writer, rows: 0 })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// When the disk is full, or writing fails otherwise.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        self.rows += batch.num_rows() as u64;
        self.writer.write(batch)
    }

    /// Completes the file and returns how many rows it has.
    ///
    /// # Errors
    /// When the disk is full, or writing fails otherwise.
    pub(crate) fn finish(self) -> Result<u64, ParquetError> {
        self.writer
            .into_inner()?
            .into_inner()
            .map_err(|error| ParquetError::from(error.into_error()))?;
        Ok(self.rows)
    }
}

/// Writes a table whose columns are made on demand, its columns encoded by several threads.
///
/// `array(column, range)` makes a range of a column. The bytes written do not depend on `threads`.
///
/// # Errors
/// When the disk is full, or writing fails otherwise; what `array` reports.
pub(crate) fn write_columns(
    path: &Path,
    table: &TableDef,
    rows: usize,
    threads: usize,
    array: impl Fn(usize, Range<usize>) -> Result<ArrayRef, ParquetError> + Sync,
) -> Result<(), ParquetError> {
    let options = ArrowWriterOptions::new().with_properties(properties(table));
    let schema = table.arrow_schema();
    let writer = ArrowWriter::try_new_with_options(file(path)?, Arc::clone(&schema), options)?;
    let (mut writer, factory) = writer.into_serialized_writer()?;
    for (number, start) in (0..rows).step_by(GROUP_ROWS).enumerate() {
        let group = start..rows.min(start + GROUP_ROWS);
        let columns = factory.create_column_writers(number)?;
        let encode = |(at, mut column): (usize, ArrowColumnWriter)| {
            for from in group.clone().step_by(BATCH_ROWS) {
                let array = array(at, from..group.end.min(from + BATCH_ROWS))?;
                for leaf in compute_leaves(schema.field(at), &array)? {
                    column.write(&leaf)?;
                }
            }
            column.close()
        };
        let queue = Mutex::new(columns.into_iter().enumerate());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || -> Result<Vec<(usize, ArrowColumnChunk)>, ParquetError> {
            std::iter::from_fn(next)
                .map(|column| Ok((column.0, encode(column)?)))
                .collect()
        };
        let mut chunks = thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut chunks = work()?;
            for helper in helpers {
                chunks.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            }
            Ok::<_, ParquetError>(chunks)
        })?;
        chunks.sort_by_key(|(at, _)| *at);
        let mut row_group = writer.next_row_group()?;
        for (_, chunk) in chunks {
            chunk.append_to_row_group(&mut row_group)?;
        }
        row_group.close()?;
    }
    writer
        .into_inner()?
        .into_inner()
        .map_err(|error| ParquetError::from(error.into_error()))?;
    Ok(())
}
