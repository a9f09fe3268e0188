//! The query of `collectives`.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Float64Type, Int64Type, UInt32Type};
use datafusion::logical_expr::Expr;

use crate::comm::collectives::Confidence;
use crate::comm::kind::CommKind;
use crate::error::Error;
use crate::query::engine::{BatchColumns, value};
use crate::session::TraceSession;
use crate::tables::collectives::COLLECTIVES;

/// A collective as stored: rows and strings by number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredCollective {
    pub(super) kind: CommKind,
    pub(super) rank: Option<i64>,
    pub(super) step: Option<i64>,
    pub(super) ordinal: u32,
    pub(super) name: Option<u32>,
    pub(super) start_ns: Option<i64>,
    pub(super) duration_ns: Option<i64>,
    pub(super) cpu_row: Option<u32>,
    pub(super) kernel_rows: Vec<u32>,
    pub(super) event_rows: Vec<u32>,
    pub(super) group_name: Option<String>,
    pub(super) group_description: Option<String>,
    pub(super) group_size: Option<i64>,
    pub(super) group_ranks: Option<Vec<i64>>,
    pub(super) dtype: Option<String>,
    pub(super) in_bytes: Option<i64>,
    pub(super) out_bytes: Option<i64>,
    pub(super) algbw_gb_per_s: Option<f64>,
    pub(super) busbw_gb_per_s: Option<f64>,
    pub(super) seq: Option<i64>,
    pub(super) exposed_ns: Option<i64>,
    pub(super) confidence: Confidence,
}

/// Returns the collectives that a predicate lets through, by rank, start and first row.
///
/// # Errors
/// What the engine reports; `internal.tables` for numbers that stand for nothing.
pub(super) fn collectives(
    session: &TraceSession,
    predicate: Option<Expr>,
) -> Result<Vec<StoredCollective>, Error> {
    let columns: Vec<&str> = COLLECTIVES.columns.iter().map(|column| column.name).collect();
    let mut found = Vec::new();
    for batch in session.engine().scan(&COLLECTIVES, &columns, predicate)? {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .expect("the query selected this column")
        };
        let list = |name: &str, at: usize| -> Option<ArrayRef> {
            let lists = column(name).as_list::<i32>();
            lists.is_valid(at).then(|| lists.value(at))
        };
        let rows = |name: &str, at: usize| {
            list(name, at).map_or_else(Vec::new, |list| {
                list.as_primitive::<UInt32Type>().values().to_vec()
            })
        };
        let integer = |name: &str, at: usize| value(batch.i64s(name), at);
        let number = |name: &str, at: usize| value(column(name).as_primitive::<Float64Type>(), at);
        let text = |name: &str, at: usize| {
            let texts = batch.texts(name);
            texts.is_valid(at).then(|| texts.value(at).to_owned())
        };
        for at in 0..batch.num_rows() {
            let unknown = Error::Internal {
                what: "a collective's kind or confidence is none",
            };
            let kind = CommKind::from_code(batch.u8s("kind").value(at));
            let confidence = Confidence::from_code(batch.u8s("confidence").value(at));
            let (Some(kind), Some(confidence)) = (kind, confidence) else {
                return Err(unknown);
            };
            found.push(StoredCollective {
                kind,
                rank: integer("rank", at),
                step: integer("step", at),
                ordinal: batch.u32s("ordinal").value(at),
                name: value(batch.u32s("name"), at),
                start_ns: integer("start_ns", at),
                duration_ns: integer("duration_ns", at),
                cpu_row: value(batch.u32s("cpu_row"), at),
                kernel_rows: rows("kernel_rows", at),
                event_rows: rows("event_rows", at),
                group_name: text("group_name", at),
                group_description: text("group_description", at),
                group_size: integer("group_size", at),
                group_ranks: list("group_ranks", at)
                    .map(|list| list.as_primitive::<Int64Type>().values().to_vec()),
                dtype: text("dtype", at),
                in_bytes: integer("in_bytes", at),
                out_bytes: integer("out_bytes", at),
                algbw_gb_per_s: number("algbw_gb_per_s", at),
                busbw_gb_per_s: number("busbw_gb_per_s", at),
                seq: integer("seq", at),
                exposed_ns: integer("exposed_ns", at),
                confidence,
            });
        }
    }
    Ok(found)
}
