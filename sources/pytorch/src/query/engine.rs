//! The DataFusion session over a trace's tables; the only place that names a runtime or blocks on one.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use arrow::array::{
    Array, AsArray, BinaryArray, Int64Array, StringArray, UInt8Array, UInt16Array, UInt32Array,
};
use arrow::datatypes::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow::record_batch::RecordBatch;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::DataFusionError;
use datafusion::execution::context::{SessionConfig, SessionContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::{SendableRecordBatchStream, collect_partitioned, execute_stream_partitioned};
use datafusion::prelude::DataFrame;
use futures::StreamExt as _;
use object_store::local::LocalFileSystem;
use tokio::runtime::Runtime;

use crate::error::Error;
use crate::sidecar::Sidecar;
use crate::tables::TableDef;

/// The root under which the artifact folder is known to the engine, so that nothing in a trace's path
/// (wildcards, schemes, percent signs) is ever read as part of an address.
const ROOT: &str = "sidecar://tables/";

/// A query engine over one artifact folder.
pub(crate) struct Engine {
    runtime: Runtime,
    context: SessionContext,
    sidecar: Sidecar,
    threads: usize,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Engine")
            .field("sidecar", &self.sidecar)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Returns an engine over complete tables that works with so many threads.
    ///
    /// # Errors
    /// When the folder cannot be looked at, because others took it away or otherwise, or no runtime can be
    /// made.
    pub(crate) fn new(sidecar: Sidecar, threads: usize) -> Result<Self, Error> {
        let runtime = if threads > 1 {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(threads)
                .build()
        } else {
            tokio::runtime::Builder::new_current_thread().build()
        };
        let runtime = runtime.map_err(Error::Runtime)?;
        let mut config = SessionConfig::new()
            .with_target_partitions(threads)
            .with_collect_statistics(false)
            .with_batch_size(16 * 1024)
            // Partitions are contiguous parts of the file, and stay in its order.
            .with_round_robin_repartition(false);
        // A partition that is done early would else read the part of another one in its own place.
        config.options_mut().execution.enable_file_stream_work_stealing = false;
        config.options_mut().execution.parquet.pushdown_filters = true;
        config.options_mut().execution.parquet.bloom_filter_on_read = false;
        let context = SessionContext::new_with_config(config);
        let store = LocalFileSystem::new_with_prefix(sidecar.dir()).map_err(|error| {
            if sidecar.is_current() {
                Error::Query(error.into())
            } else {
                Error::TablesReplaced
            }
        })?;
        let url = ROOT.parse().map_err(|_| Error::Internal {
            what: "the address of the tables",
        })?;
        context.register_object_store(&url, Arc::new(store));
        Ok(Self {
            runtime,
            context,
            sidecar,
            threads,
        })
    }

    /// Returns how many threads work at once.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Returns a table as the start of a plan.
    fn table(&self, table: &TableDef) -> Result<DataFrame, DataFusionError> {
        let url = ListingTableUrl::parse(format!("{ROOT}{}.parquet", table.name))?;
        let options = ListingOptions::new(Arc::new(ParquetFormat::default()));
        let config = ListingTableConfig::new(url)
            .with_listing_options(options)
            .with_schema(table.arrow_schema());
        self.context.read_table(Arc::new(ListingTable::try_new(config)?))
    }

    /// Runs a plan on a table and returns its batches; rows that a scan and filters let through stay in
    /// file order.
    ///
    /// # Errors
    /// What the engine reports, a damaged table among it.
    pub(crate) fn query(
        &self,
        table: &TableDef,
        plan: impl FnOnce(DataFrame) -> Result<DataFrame, DataFusionError>,
    ) -> Result<Vec<RecordBatch>, Error> {
        let frame = plan(self.table(table)?)?;
        let partitions = self.checked(|| {
            let partitions = self.runtime.block_on(async {
                let task = Arc::new(frame.task_ctx());
                let physical = frame.create_physical_plan().await?;
                collect_partitioned(physical, task).await
            });
            Ok(partitions?)
        })?;
        Ok(partitions.into_iter().flatten().collect())
    }

    /// Folds the rows that a predicate lets through: the parts of the table at once, each in file order
    /// from a start of its own. Returns the parts' results in file order.
    ///
    /// No batch outlives its step, so that memory does not grow with the table.
    ///
    /// # Errors
    /// What the engine or a step reports, a damaged table among it.
    pub(crate) fn fold<A: Send>(
        &self,
        table: &TableDef,
        columns: &[&str],
        predicate: Option<Expr>,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, &RecordBatch) -> Result<(), Error> + Sync,
    ) -> Result<Vec<A>, Error> {
        let frame = selected(self.table(table)?, columns, predicate)?;
        let part = |mut batches: SendableRecordBatchStream| {
            self.runtime.block_on(async {
                let mut folded = start();
                while let Some(batch) = batches.next().await {
                    step(&mut folded, &batch?)?;
                }
                Ok(folded)
            })
        };
        self.checked(|| {
            let streams = self.runtime.block_on(async {
                let task = Arc::new(frame.task_ctx());
                execute_stream_partitioned(frame.create_physical_plan().await?, task)
            })?;
            let part = &part;
            thread::scope(|scope| {
                let mut streams = streams.into_iter();
                let first = streams.next();
                let others: Vec<_> = streams.map(|stream| scope.spawn(move || part(stream))).collect();
                let first = first.map(part);
                let others = others
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
                first.into_iter().chain(others).collect()
            })
        })
    }

    /// Passes on an answer when the tables it was read from were whole and are still those of the trace.
    fn checked<T>(&self, ask: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        // On some damage, readers of Parquet panic. Nothing they leave behind is used afterwards.
        let answer = catch_unwind(AssertUnwindSafe(ask)).unwrap_or(Err(Error::Internal {
            what: "a table cannot be made out",
        }));
        // Another process may have put the tables of a newer trace in the place of those that were checked.
        if !self.sidecar.is_current() {
            return Err(Error::TablesReplaced);
        }
        match answer {
            Err(error @ (Error::Query(_) | Error::Internal { .. })) => Err(match self.sidecar.verify() {
                Ok(()) => error,
                Err(damage) => Error::TablesDamaged(damage.to_string()),
            }),
            answer => answer,
        }
    }

    /// Returns the given columns of the rows that a predicate lets through, in file order.
    ///
    /// # Errors
    /// What the engine reports, a damaged table among it.
    pub(crate) fn scan(
        &self,
        table: &TableDef,
        columns: &[&str],
        predicate: Option<Expr>,
    ) -> Result<Vec<RecordBatch>, Error> {
        self.query(table, |frame| selected(frame, columns, predicate))
    }
}

/// Returns the plan of the given columns of the rows that a predicate lets through.
fn selected(
    frame: DataFrame,
    columns: &[&str],
    predicate: Option<Expr>,
) -> Result<DataFrame, DataFusionError> {
    let frame = match predicate {
        Some(predicate) => frame.filter(predicate)?,
        None => frame,
    };
    frame.select_columns(columns)
}

/// Typed access to a batch's columns by name.
///
/// # Panics
/// All methods, when the column is not in the batch or of another type: the caller selected it.
pub(crate) trait BatchColumns {
    fn i64s(&self, name: &str) -> &Int64Array;
    fn u32s(&self, name: &str) -> &UInt32Array;
    fn u16s(&self, name: &str) -> &UInt16Array;
    fn u8s(&self, name: &str) -> &UInt8Array;
    fn texts(&self, name: &str) -> &StringArray;
    fn binaries(&self, name: &str) -> &BinaryArray;
}

fn column<'b>(batch: &'b RecordBatch, name: &str) -> &'b dyn Array {
    batch
        .column_by_name(name)
        .expect("the query selected this column")
}

impl BatchColumns for RecordBatch {
    fn i64s(&self, name: &str) -> &Int64Array {
        column(self, name).as_primitive::<Int64Type>()
    }

    fn u32s(&self, name: &str) -> &UInt32Array {
        column(self, name).as_primitive::<UInt32Type>()
    }

    fn u16s(&self, name: &str) -> &UInt16Array {
        column(self, name).as_primitive::<UInt16Type>()
    }

    fn u8s(&self, name: &str) -> &UInt8Array {
        column(self, name).as_primitive::<UInt8Type>()
    }

    fn texts(&self, name: &str) -> &StringArray {
        column(self, name).as_string::<i32>()
    }

    fn binaries(&self, name: &str) -> &BinaryArray {
        column(self, name).as_binary::<i32>()
    }
}

/// Returns a value that may be null.
pub(crate) fn value<T: arrow::array::ArrowPrimitiveType>(
    array: &arrow::array::PrimitiveArray<T>,
    at: usize,
) -> Option<T::Native> {
    array.is_valid(at).then(|| array.value(at))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;
    use xxhash_rust::xxh3::xxh3_128;

    use super::*;
    use crate::ingest::columns::Strings;
    use crate::open_error::OpenError;
    use crate::sidecar::{Contents, Store};
    use crate::tables::TABLES;
    use crate::tables::texts::{STRINGS, string_batches};
    use crate::tables::write::TableWriter;

    /// Returns an engine over a table of strings; the other tables are empty.
    fn engine_over(strings: &Strings, folder: &std::path::Path, threads: usize) -> Engine {
        let input = folder.join("a.json");
        std::fs::write(&input, "[]").unwrap();
        let obtained = Store::with_cache(&input, None).obtain(false, |draft| {
            let written = |table: &'static TableDef| {
                let mut writer = TableWriter::create(&draft.path(table.name), table)?;
                if table.name == STRINGS.name {
                    for batch in string_batches(strings, 64 * 1024) {
                        writer.write(&batch?)?;
                    }
                }
                writer.finish()
            };
            let mut rows = [0; TABLES.len()];
            for (rows, table) in rows.iter_mut().zip(TABLES) {
                *rows = written(table).map_err(|source| OpenError::Table {
                    table: table.name,
                    source,
                })?;
            }
            let inventory = RawValue::from_string("{}".to_owned()).unwrap();
            Ok::<_, OpenError>(Contents { rows, inventory })
        });
        Engine::new(obtained.unwrap().sidecar, threads).unwrap()
    }

    /// The engine reads a table of more than 10 MB in parts; whichever is read first, they come in order.
    #[test]
    fn rows_of_a_large_table_stay_in_file_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut strings = Strings::default();
        for number in 0..600_000_u32 {
            strings.intern(&format!("{:032x}", xxh3_128(&number.to_le_bytes())));
        }
        let engine = engine_over(&strings, folder.path(), 8);
        for attempt in 0..10 {
            let batches = engine.scan(&STRINGS, &["text"], None).unwrap();
            let texts = batches
                .iter()
                .flat_map(|batch| batch.texts("text").iter().flatten());
            assert!(texts.eq(strings.iter()), "scan {attempt}");
            let parts = engine
                .fold(&STRINGS, &["text"], None, Vec::new, |part, batch| {
                    part.push(batch.texts("text").clone());
                    Ok(())
                })
                .unwrap();
            let texts = parts.iter().flatten().flat_map(|texts| texts.iter().flatten());
            assert!(texts.eq(strings.iter()), "fold {attempt}");
        }
    }
}
