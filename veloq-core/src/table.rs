//! Answers as tables, typed until they are rendered.

/// What a column's numbers mean, so that a renderer can choose the digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Words, names.
    Text,
    /// A row id; never shortened.
    Id,
    /// A plain number: a count or an index.
    Count,
    /// Nanoseconds: a duration, or a time since the trace's origin.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// A share in 0..=1.
    Ratio,
    /// 10^9 bytes a second.
    GigabytesPerSecond,
}

impl Unit {
    /// Returns whether the column holds numbers.
    pub fn is_numeric(self) -> bool {
        !matches!(self, Self::Text | Self::Id)
    }
}

/// A column: its name is that of the row's JSON field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The field's name, with its unit (`total_ns`).
    pub name: String,
    /// What the values mean.
    pub unit: Unit,
    /// Whether only complete forms (csv) show the column.
    pub is_detail: bool,
}

impl Column {
    /// Returns a column that every form shows.
    pub fn new(name: impl Into<String>, unit: Unit) -> Self {
        Self {
            name: name.into(),
            unit,
            is_detail: false,
        }
    }

    /// Returns a column that only complete forms show.
    pub fn detail(name: impl Into<String>, unit: Unit) -> Self {
        Self {
            name: name.into(),
            unit,
            is_detail: true,
        }
    }
}

/// A value in a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Unknown, or does not apply.
    Null,
    /// Words.
    Text(String),
    /// An exact integer.
    Int(i128),
    /// A measured fraction; always finite.
    Float(f64),
    /// A yes or no.
    Bool(bool),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        if value.is_finite() {
            Self::Float(value)
        } else {
            Self::Null
        }
    }
}

macro_rules! cell_from_int {
    ($($int:ty),*) => {$(
        impl From<$int> for Cell {
            fn from(value: $int) -> Self {
                Self::Int(i128::from(value))
            }
        }
    )*};
}
cell_from_int!(u8, i32, u32, i64, u64);

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// One block of a table: a title, columns, rows of as many cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// The heading, absent for the main block.
    pub title: Option<String>,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows; each has one cell a column.
    pub rows: Vec<Vec<Cell>>,
}

/// An answer as a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The blocks: first the answer's rows (all that csv prints), then what the verb adds.
    pub sections: Vec<Section>,
    /// The number of rows before the limit.
    pub total_matched: u64,
    /// What a reader must know, as sentences: trust findings, scope.
    pub notes: Vec<String>,
}

/// A response that can be shown as a table.
pub trait TableView {
    /// Returns the response as a table.
    fn table(&self) -> Table;
}
