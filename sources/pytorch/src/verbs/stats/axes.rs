//! The axes by which rows are grouped.

use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::{col, lit};
use serde_json::Value;
use veloq_core::nearest;

use crate::comm::kind::CommKind;
use crate::error::Error;
use crate::query::by_index::ByIndex;
use crate::query::chain::{ChainKind, Chains};
use crate::query::engine::{BatchColumns, value};
use crate::row::RowType;
use crate::session::{StringTable, TraceSession, Track};
use crate::tables::events::column;

use super::paths::Paths;

/// What rows have in common in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    Name,
    Type,
    Category,
    Step,
    Rank,
    Device,
    Stream,
    Thread,
    Shape,
    CommKind,
    PythonContext,
    PythonPath,
    Module,
    LaunchedBy,
}

const AXES: [(Axis, &str); 14] = [
    (Axis::Name, "name"),
    (Axis::Type, "type"),
    (Axis::Category, "category"),
    (Axis::Step, "step"),
    (Axis::Rank, "rank"),
    (Axis::Device, "device"),
    (Axis::Stream, "stream"),
    (Axis::Thread, "thread"),
    (Axis::Shape, "shape"),
    (Axis::CommKind, "comm-kind"),
    (Axis::PythonContext, "python-context"),
    (Axis::PythonPath, "python-path"),
    (Axis::Module, "module"),
    (Axis::LaunchedBy, "launched-by"),
];

impl Axis {
    pub(super) fn name(self) -> &'static str {
        AXES.iter()
            .find(|(axis, _)| *axis == self)
            .map_or("", |(_, name)| name)
    }

    /// Parses the names of `--group-by`; each may occur once.
    pub(super) fn parse_all(names: &[String]) -> Result<Vec<Self>, Error> {
        let invalid = |problem| Error::InvalidFlag {
            flag: "--group-by",
            problem,
        };
        let mut axes = Vec::new();
        for name in names {
            let found = AXES
                .iter()
                .find(|(_, known)| known == name)
                .map(|(axis, _)| *axis);
            let axis = found.ok_or_else(|| {
                let known = AXES.iter().map(|(_, known)| *known);
                invalid(match nearest(name, known.clone()) {
                    Some(near) => format!("`{name}` is not an axis; did you mean `{near}`?"),
                    None => format!(
                        "`{name}` is not an axis; the axes are {}",
                        known.collect::<Vec<_>>().join(", ")
                    ),
                })
            })?;
            if axes.contains(&axis) {
                return Err(invalid(format!("`{name}` is named twice")));
            }
            axes.push(axis);
        }
        if axes.is_empty() {
            return Err(invalid("no axis is named".to_owned()));
        }
        Ok(axes)
    }

    /// Returns the capability without which no row has a value of the axis.
    pub(super) fn capability(self) -> Option<&'static str> {
        match self {
            Self::PythonContext | Self::PythonPath => Some("python_stacks"),
            Self::Module => Some("modules"),
            Self::Shape => Some("shapes"),
            Self::Step => Some("steps"),
            Self::LaunchedBy => Some("gpu_activity"),
            _ => None,
        }
    }

    /// Returns the stored column that the axis is read from.
    pub(super) fn column(self) -> &'static str {
        match self {
            Self::Name => column::NAME,
            Self::Type => column::TYPE,
            Self::Category => column::CATEGORY,
            Self::Step => column::STEP,
            Self::Rank => column::RANK,
            Self::Device => column::DEVICE_ID,
            Self::Stream => column::STREAM_ID,
            Self::Thread => column::TRACK,
            Self::Shape => column::SHAPE,
            Self::CommKind => column::COMM_KIND,
            Self::PythonContext | Self::PythonPath => column::PYTHON,
            Self::Module => column::MODULE,
            Self::LaunchedBy => column::OP,
        }
    }
}

/// Stands for the absent value of an axis.
pub(super) const NONE: i64 = i64::MIN;

/// Values of axes by number, with what the numbers stand for.
///
/// Most numbers are those of the stored columns. Frames, modules and operators are rows, and many rows are
/// one frame: their numbers are those of names, or of paths.
pub(super) struct AxisValues<'s> {
    strings: &'s StringTable,
    /// Read for the thread axis only.
    tracks: &'s [Track],
    has_ranks: bool,
    /// The string id of each Python row's name.
    frame_names: ByIndex,
    /// The string id of the name of each operator that launched something.
    op_names: ByIndex,
    paths: Paths,
}

impl<'s> AxisValues<'s> {
    /// Reads what the given axes need.
    ///
    /// # Errors
    /// What the engine reports.
    pub(super) fn new(session: &'s TraceSession, axes: &[Axis]) -> Result<Self, Error> {
        let mut values = Self {
            strings: session.strings()?,
            tracks: &[],
            has_ranks: session.ranks().len() > 1,
            frame_names: ByIndex::default(),
            op_names: ByIndex::default(),
            paths: Paths::default(),
        };
        if axes.contains(&Axis::Thread) {
            values.tracks = session.tracks()?;
        }
        let needs_frames = axes
            .iter()
            .any(|axis| matches!(axis, Axis::PythonContext | Axis::PythonPath | Axis::Module));
        if needs_frames {
            let is_frame = col(column::TYPE).eq(lit(RowType::Python.code()));
            values.frame_names = ByIndex::load(session, column::NAME, is_frame)?;
        }
        if axes.contains(&Axis::PythonPath) {
            let outer = Chains::load(session, ChainKind::Python)?;
            values.paths = Paths::new(&values.frame_names, &outer);
        }
        if axes.contains(&Axis::LaunchedBy) {
            let is_op = col(column::TYPE).eq(lit(RowType::CpuOp.code()));
            let launches = is_op.and(col(column::GPU_TOTAL_NS).is_not_null());
            values.op_names = ByIndex::load(session, column::NAME, launches)?;
        }
        Ok(values)
    }

    /// Appends an axis' number of every row of a batch to `numbers`.
    pub(super) fn numbers(&self, axis: Axis, batch: &RecordBatch, numbers: &mut Vec<i64>) {
        let rows = 0..batch.num_rows();
        let by_row = |numbers: &ByIndex, row: Option<u32>| {
            row.and_then(|row| numbers.get(row)).map_or(NONE, i64::from)
        };
        match axis {
            Axis::Type | Axis::CommKind => {
                let codes = batch.u8s(axis.column());
                numbers.extend(rows.map(|at| i64::from(codes.value(at))));
            }
            Axis::Step | Axis::Rank | Axis::Device | Axis::Stream => {
                let values = batch.i64s(axis.column());
                numbers.extend(rows.map(|at| value(values, at).unwrap_or(NONE)));
            }
            Axis::Name | Axis::Category | Axis::Thread | Axis::Shape => {
                let ids = batch.u32s(axis.column());
                numbers.extend(rows.map(|at| value(ids, at).map_or(NONE, i64::from)));
            }
            Axis::PythonContext | Axis::Module | Axis::PythonPath | Axis::LaunchedBy => {
                let of_rows = match axis {
                    Axis::PythonPath => &self.paths.of_frame,
                    Axis::LaunchedBy => &self.op_names,
                    _ => &self.frame_names,
                };
                let around = batch.u32s(axis.column());
                numbers.extend(rows.map(|at| by_row(of_rows, value(around, at))));
            }
        }
    }

    /// Returns what a number of an axis stands for.
    pub(super) fn value(&self, axis: Axis, number: i64) -> Value {
        if number == NONE {
            return Value::Null;
        }
        let id = || u32::try_from(number).unwrap_or(u32::MAX);
        match axis {
            Axis::Step | Axis::Rank | Axis::Device | Axis::Stream => number.into(),
            Axis::Type => u8::try_from(number)
                .ok()
                .and_then(RowType::from_code)
                .map(RowType::name)
                .into(),
            Axis::CommKind => u8::try_from(number)
                .ok()
                .and_then(CommKind::from_code)
                .map(CommKind::name)
                .into(),
            Axis::Name
            | Axis::Category
            | Axis::Shape
            | Axis::PythonContext
            | Axis::Module
            | Axis::LaunchedBy => self.strings.get(id()).into(),
            Axis::Thread => self
                .tracks
                .get(id() as usize)
                .map(|track| track.label(self.has_ranks))
                .into(),
            Axis::PythonPath => self.paths.text(id(), self.strings).into(),
        }
    }
}

/// Returns an axis' part of a key: `name:aten::mm`; `none` for an absent value.
///
/// Bars and backslashes in values are escaped, so that no two groups have one key.
pub(super) fn key_part(axis: Axis, value: &Value) -> String {
    let value = match value {
        Value::Null => "none".to_owned(),
        Value::String(text) if text == "none" => "\\none".to_owned(),
        Value::String(text) => text.replace('\\', "\\\\").replace('|', "\\|"),
        other => other.to_string(),
    };
    format!("{}:{value}", axis.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_named_once_and_guessed() {
        let parse =
            |names: &[&str]| Axis::parse_all(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(parse(&["name", "step"]).unwrap(), [Axis::Name, Axis::Step]);
        assert!(parse(&["nmae"]).unwrap_err().to_string().contains("`name`"));
        assert!(parse(&["name", "name"]).is_err());
        assert!(parse(&[]).is_err());
    }

    #[test]
    fn keys_keep_values_apart() {
        assert_eq!(key_part(Axis::Name, &Value::Null), "name:none");
        assert_eq!(key_part(Axis::Name, &"none".into()), "name:\\none");
        assert_eq!(key_part(Axis::Name, &"a|step:1".into()), "name:a\\|step:1");
        assert_eq!(key_part(Axis::Step, &7.into()), "step:7");
    }
}
