//! The filters that verbs share: as typed, and as understood.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::datatypes::{DataType, UInt32Type};
use clap::Args;
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{ColumnarValue, Expr, Volatility, col, create_udf, lit};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use veloq_core::{NsRange, nearest, parse_duration_filter, parse_time};

use crate::error::Error;
use crate::row::{ROW_TYPES, RowType};
use crate::session::TraceSession;
use crate::tables::events::column;

/// Which rows to consider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Filters {
    /// Row types, separated by commas, or `all`
    #[arg(long = "type", value_name = "TYPE,…", value_delimiter = ',')]
    #[serde(rename = "type")]
    pub(crate) types: Vec<String>,
    /// Whole name, case-sensitive; `*` stands for any text, `?` for any one character
    #[arg(long, value_name = "GLOB")]
    pub(crate) name: Option<String>,
    /// Regular expression found anywhere in the name
    #[arg(long, value_name = "RE")]
    pub(crate) name_regex: Option<String>,
    /// Duration: `>1ms`, `<=100us`, `100us-1ms`
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    pub(crate) duration: Option<String>,
    /// Only communication, of any type
    #[arg(long)]
    pub(crate) is_comm: bool,
    /// One rank of a file that holds several
    #[arg(long, value_name = "N", conflicts_with = "all_ranks")]
    pub(crate) rank: Option<i64>,
    /// All ranks of a file that holds several
    #[arg(long)]
    pub(crate) all_ranks: bool,
    /// One device
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) device: Option<i64>,
    /// One stream of one device
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) stream: Option<i64>,
    /// Rows that start in step N on its thread, and device rows launched in it
    #[arg(long, value_name = "N")]
    pub(crate) step: Option<i64>,
    /// Start of the window, since the trace's origin: `250`, `1.5us`, `2ms`, `3s`
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// End of the window, itself outside
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
}

/// The filters as understood; what an answer's `auxiliary.scope` shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scope {
    /// Row types, in the order of the type table; left out for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) r#type: Option<Vec<&'static str>>,
    /// The glob that the whole name fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The regular expression found in the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name_regex: Option<String>,
    /// Least duration in ns, itself inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min_duration_ns: Option<i64>,
    /// Greatest duration in ns, itself inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_duration_ns: Option<i64>,
    /// Whether only communication is considered; left out when not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_comm: Option<bool>,
    /// The rank; left out for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rank: Option<i64>,
    /// The device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) device_id: Option<i64>,
    /// The stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream_id: Option<i64>,
    /// The step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<i64>,
    /// Start of the window in ns since the origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from_ns: Option<i64>,
    /// End of the window in ns since the origin, itself outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to_ns: Option<i64>,
}

fn invalid(flag: &'static str) -> impl FnOnce(String) -> Error {
    move |problem| Error::InvalidFlag { flag, problem }
}

/// Returns the types that `--type` names; `None` for all. `comm` is no type but a property, see
/// [`Filters::resolve`].
fn parse_types(names: &[String]) -> Result<(Option<Vec<RowType>>, bool), Error> {
    let mut types = Vec::new();
    let mut is_comm = false;
    for name in names {
        match name.as_str() {
            "all" => return Ok((None, false)),
            "comm" => is_comm = true,
            name => {
                let wanted = name.replace('_', "-");
                let found = ROW_TYPES.into_iter().find(|row_type| row_type.name() == wanted);
                types.push(found.ok_or_else(|| {
                    let known = ROW_TYPES.iter().map(|row_type| row_type.name());
                    let problem = match nearest(&wanted, known.clone()) {
                        Some(near) => format!("`{name}` is not a row type; did you mean `{near}`?"),
                        None => format!(
                            "`{name}` is not a row type; the types are {}",
                            known.collect::<Vec<_>>().join(", ")
                        ),
                    };
                    Error::InvalidFlag {
                        flag: "--type",
                        problem,
                    }
                })?);
            }
        }
    }
    types.sort_unstable();
    types.dedup();
    Ok(((!names.is_empty()).then_some(types), is_comm))
}

/// Returns the regular expression of a glob: whole text, `*` and `?`.
fn glob_regex(glob: &str) -> String {
    let mut pattern = String::from(r"(?s)\A");
    for c in glob.chars() {
        match c {
            '*' => pattern.push_str(".*"),
            '?' => pattern.push('.'),
            c => pattern.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    pattern.push_str(r"\z");
    pattern
}

/// Compiles a user's regular expression; matching takes linear time, and the size is bounded.
fn compile(pattern: &str, flag: &'static str) -> Result<Regex, Error> {
    regex::RegexBuilder::new(pattern)
        .size_limit(1 << 20)
        .build()
        .map_err(|error| Error::InvalidFlag {
            flag,
            problem: error.to_string(),
        })
}

/// Returns a predicate: whether a string id is marked. A null is not.
fn is_marked(column_name: &str, marks: Vec<bool>) -> Expr {
    let marks = Arc::new(marks);
    let lookup = move |args: &[ColumnarValue]| -> Result<ColumnarValue, DataFusionError> {
        let arrays = ColumnarValue::values_to_arrays(args)?;
        let ids = arrays[0].as_primitive::<UInt32Type>();
        let is_marked = |id: u32| marks.get(id as usize).copied().unwrap_or(false);
        let result: BooleanArray = (0..ids.len())
            .map(|at| Some(ids.is_valid(at) && is_marked(ids.value(at))))
            .collect();
        Ok(ColumnarValue::Array(Arc::new(result)))
    };
    let name = "is_marked_string";
    create_udf(
        name,
        vec![DataType::UInt32],
        DataType::Boolean,
        Volatility::Immutable,
        Arc::new(lookup),
    )
    .call(vec![col(column_name)])
}

/// Returns the predicate that lets through rows with one of the given types.
pub(crate) fn type_among(types: &[RowType]) -> Expr {
    col(column::TYPE).in_list(types.iter().map(|row_type| lit(row_type.code())).collect(), false)
}

/// Returns the predicate that lets through rows that overlap a window; an instant counts as its moment.
pub(crate) fn overlaps_window(window: NsRange) -> Option<Expr> {
    let starts_before = window.to_ns.map(|to| col(column::START_NS).lt(lit(to)));
    let ends_after = window.from_ns.map(|from| {
        let end = col(column::START_NS) + col(column::DURATION_NS);
        end.gt(lit(from)).or(col(column::START_NS).gt_eq(lit(from)))
    });
    both(starts_before, ends_after)
}

/// Returns the conjunction of two predicates, each of which may be absent.
pub(crate) fn both(a: Option<Expr>, b: Option<Expr>) -> Option<Expr> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.and(b)),
        (a, b) => a.or(b),
    }
}

impl Scope {
    /// Returns the window.
    pub(crate) fn window(&self) -> NsRange {
        NsRange {
            from_ns: self.from_ns,
            to_ns: self.to_ns,
        }
    }
}

/// Filters checked against a trace, with the predicate they make.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) scope: Scope,
    /// The predicate of all filters, or `None` when every row is let through.
    pub(crate) predicate: Option<Expr>,
}

impl Filters {
    /// Checks the filters against a trace.
    ///
    /// `default_types` are considered when no type is given; empty for all.
    ///
    /// # Errors
    /// `usage.invalid_value`, `scope.rank_required`, `scope.unknown_rank`, `scope.device_required`;
    /// `capability.missing` for `--step` in a trace without steps.
    pub(crate) fn resolve(
        &self,
        session: &TraceSession,
        default_types: &[RowType],
    ) -> Result<Resolved, Error> {
        let (types, type_is_comm) = parse_types(&self.types)?;
        if self.step.is_some() {
            session.require("steps")?;
        }
        let types = if self.types.is_empty() && !default_types.is_empty() {
            Some(default_types.to_vec())
        } else {
            types
        };
        let rank = self.resolve_rank(session)?;
        self.check_stream(session, rank)?;
        let (min_duration_ns, max_duration_ns) = match &self.duration {
            Some(filter) => parse_duration_filter(filter).map_err(invalid("--duration"))?,
            None => (None, None),
        };
        let time =
            |text: &Option<String>, flag| text.as_deref().map(parse_time).transpose().map_err(invalid(flag));
        let (from_ns, to_ns) = (time(&self.from, "--from")?, time(&self.to, "--to")?);
        if let (Some(from), Some(to)) = (from_ns, to_ns)
            && from >= to
        {
            let problem = format!("the window is empty: its end {to}ns is not after its start {from}ns");
            return Err(Error::InvalidFlag {
                flag: "--to",
                problem,
            });
        }
        let is_comm = self.is_comm || (type_is_comm && types.as_ref().is_some_and(Vec::is_empty));
        let mut predicate = match &types {
            Some(types) if type_is_comm => {
                let comm = col(column::COMM_KIND).not_eq(lit(0_u8));
                Some(if types.is_empty() {
                    comm
                } else {
                    type_among(types).or(comm)
                })
            }
            Some(types) => Some(type_among(types)),
            None => None,
        };
        if self.is_comm {
            predicate = both(predicate, Some(col(column::COMM_KIND).not_eq(lit(0_u8))));
        }
        let equal = |name: &str, wanted: Option<i64>| wanted.map(|wanted| col(name).eq(lit(wanted)));
        for more in [
            equal(column::RANK, if session.ranks().len() > 1 { rank } else { None }),
            equal(column::DEVICE_ID, self.device),
            equal(column::STREAM_ID, self.stream),
            equal(column::STEP, self.step),
            min_duration_ns.map(|least| col(column::DURATION_NS).gt_eq(lit(least))),
            max_duration_ns.map(|most| col(column::DURATION_NS).lt_eq(lit(most))),
            self.name_predicate(session)?,
        ] {
            predicate = both(predicate, more);
        }
        let mut shown_types: Option<Vec<&'static str>> =
            types.map(|types| types.into_iter().map(RowType::name).collect());
        if let Some(shown) = &mut shown_types
            && type_is_comm
        {
            shown.push(RowType::Comm.name());
        }
        let scope = Scope {
            r#type: shown_types,
            name: self.name.clone(),
            name_regex: self.name_regex.clone(),
            min_duration_ns,
            max_duration_ns,
            is_comm: is_comm.then_some(true),
            rank,
            device_id: self.device,
            stream_id: self.stream,
            step: self.step,
            from_ns,
            to_ns,
        };
        let predicate = both(predicate, overlaps_window(scope.window()));
        Ok(Resolved { scope, predicate })
    }

    /// Returns the rank to look at; `None` for all.
    fn resolve_rank(&self, session: &TraceSession) -> Result<Option<i64>, Error> {
        let ranks = session.ranks();
        let names = || ranks.iter().map(|rank| rank.display_name()).collect::<Vec<_>>();
        match self.rank {
            Some(rank) if ranks.iter().any(|known| known.rank == Some(rank)) => Ok(Some(rank)),
            Some(rank) => Err(Error::UnknownRank { rank, ranks: names() }),
            None if ranks.len() > 1 && !self.all_ranks => Err(Error::RankRequired { ranks: names() }),
            None => Ok(None),
        }
    }

    /// Checks that `--device` and `--stream` name one thing.
    fn check_stream(&self, session: &TraceSession, rank: Option<i64>) -> Result<(), Error> {
        let ranks = session.ranks();
        if self.device.is_some() && ranks.len() > 1 && rank.is_none() {
            let ranks = ranks.iter().map(|rank| rank.display_name()).collect();
            return Err(Error::RankRequired { ranks });
        }
        let Some(stream) = self.stream else { return Ok(()) };
        if self.device.is_some() {
            return Ok(());
        }
        let in_scope = ranks.iter().filter(|known| rank.is_none() || known.rank == rank);
        let devices: Vec<String> = in_scope
            .flat_map(|known| known.device_ids.iter().map(|device| format!("device {device}")))
            .collect();
        if devices.len() > 1 {
            Err(Error::DeviceRequired { stream, devices })
        } else {
            Ok(())
        }
    }

    /// Returns the predicate of `--name` and `--name-regex`.
    fn name_predicate(&self, session: &TraceSession) -> Result<Option<Expr>, Error> {
        let patterns = name_patterns(self)?;
        if patterns.is_empty() {
            return Ok(None);
        }
        let strings = session.strings()?;
        let marks = strings
            .iter()
            .map(|text| patterns.iter().all(|pattern| pattern.is_match(text)))
            .collect();
        Ok(Some(is_marked(column::NAME, marks)))
    }
}

/// Returns what a name must fit: `--name` and `--name-regex`, as regular expressions.
///
/// # Errors
/// `usage.invalid_value` when one of them is none.
pub(crate) fn name_patterns(filters: &Filters) -> Result<Vec<Regex>, Error> {
    let mut patterns = Vec::new();
    if let Some(glob) = &filters.name {
        patterns.push(compile(&glob_regex(glob), "--name")?);
    }
    if let Some(pattern) = &filters.name_regex {
        patterns.push(compile(pattern, "--name-regex")?);
    }
    Ok(patterns)
}

/// Returns the window cut to the trace: from the origin or `--from`, to the span's end or `--to`.
pub(crate) fn window_within(scope: &Scope, session: &TraceSession) -> Range<i64> {
    let span_ns = session.inventory().span.as_ref().map_or(0, |span| span.span_ns);
    let end = scope.to_ns.unwrap_or(i64::try_from(span_ns).unwrap_or(i64::MAX));
    let start = scope.from_ns.unwrap_or(0);
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names_and_escape_the_rest() {
        let fits = |glob: &str, name: &str| Regex::new(&glob_regex(glob)).unwrap().is_match(name);
        assert!(fits("aten::*", "aten::mm"));
        assert!(!fits("aten", "aten::mm"));
        assert!(fits("a?b", "a\nb"));
        assert!(fits("gemm<(*)[x]+", "gemm<(int)[x]+"));
        assert!(!fits("A*", "aten"));
    }

    #[test]
    fn types_are_named_or_guessed() {
        let types = |names: &[&str]| parse_types(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            types(&["kernel", "cpu_op"]).unwrap(),
            (Some(vec![RowType::CpuOp, RowType::Kernel]), false)
        );
        assert_eq!(types(&["all"]).unwrap(), (None, false));
        assert_eq!(types(&[]).unwrap(), (None, false));
        assert_eq!(types(&["comm"]).unwrap(), (Some(vec![]), true));
        assert!(types(&["kernl"]).unwrap_err().to_string().contains("`kernel`"));
    }
}
