//! Rows: their types and their ids.

use std::fmt;
use std::str::FromStr;

/// The type of an event row.
///
/// The numbers are those of the stored `type` column; they never change within a sidecar format version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum RowType {
    CpuOp = 0,
    Annotation = 1,
    Step = 2,
    Runtime = 3,
    Driver = 4,
    Kernel = 5,
    Memcpy = 6,
    Memset = 7,
    Memory = 8,
    Python = 9,
    Comm = 10,
    Sync = 11,
    Overhead = 12,
    Counter = 13,
    Other = 14,
}

/// All types, in the order of their numbers, which is that of the contract's table.
pub(crate) const ROW_TYPES: [RowType; 15] = [
    RowType::CpuOp,
    RowType::Annotation,
    RowType::Step,
    RowType::Runtime,
    RowType::Driver,
    RowType::Kernel,
    RowType::Memcpy,
    RowType::Memset,
    RowType::Memory,
    RowType::Python,
    RowType::Comm,
    RowType::Sync,
    RowType::Overhead,
    RowType::Counter,
    RowType::Other,
];

impl RowType {
    /// Returns the type as filters and answers spell it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::CpuOp => "cpu-op",
            Self::Annotation => "annotation",
            Self::Step => "step",
            Self::Runtime => "runtime",
            Self::Driver => "driver",
            Self::Kernel => "kernel",
            Self::Memcpy => "memcpy",
            Self::Memset => "memset",
            Self::Memory => "memory",
            Self::Python => "python",
            Self::Comm => "comm",
            Self::Sync => "sync",
            Self::Overhead => "overhead",
            Self::Counter => "counter",
            Self::Other => "other",
        }
    }

    /// Returns the prefix of the type's row ids.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::CpuOp => "cpu_op",
            other => other.name(),
        }
    }

    /// Returns the type of a stored number.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        ROW_TYPES.get(usize::from(code)).copied()
    }

    /// Returns the stored number.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    /// Returns whether rows of this type keep a device busy.
    pub(crate) const fn is_device_work(self) -> bool {
        matches!(self, Self::Kernel | Self::Memcpy | Self::Memset)
    }

    /// Returns whether rows of this type are API calls that can launch device work.
    pub(crate) const fn is_api(self) -> bool {
        matches!(self, Self::Runtime | Self::Driver)
    }
}

/// The id of a row: its type and its element's position among the trace's elements, flow markers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowId {
    pub(crate) row_type: RowType,
    pub(crate) index: u32,
}

impl fmt::Display for RowId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.row_type.prefix(), self.index)
    }
}

impl FromStr for RowId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (prefix, index) = text
            .split_once(':')
            .ok_or_else(|| format!("`{text}` is not a row id; row ids look like `kernel:91`"))?;
        let row_type = ROW_TYPES
            .into_iter()
            .find(|t| t.prefix() == prefix)
            .ok_or_else(|| {
                let near = veloq_core::nearest(prefix, ROW_TYPES.iter().map(|t| t.prefix()));
                match near {
                    Some(near) => format!("`{prefix}` is not a row prefix; did you mean `{near}:{index}`?"),
                    None => format!("`{prefix}` is not a row prefix; row ids look like `kernel:91`"),
                }
            })?;
        let index = index
            .parse()
            .map_err(|_| format!("`{text}` has no valid index behind its prefix"))?;
        Ok(Self { row_type, index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_unique_and_round_trip() {
        for (code, row_type) in ROW_TYPES.into_iter().enumerate() {
            assert_eq!(usize::from(row_type.code()), code);
            assert_eq!(RowType::from_code(row_type.code()), Some(row_type));
            let id = RowId { row_type, index: 7 };
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(RowType::from_code(15), None);
    }

    #[test]
    fn wrong_ids_name_the_nearest_prefix() {
        let message = "kernal:5".parse::<RowId>().unwrap_err();
        assert!(message.contains("`kernel:5`"), "{message}");
        assert!("kernel".parse::<RowId>().is_err());
        assert!("kernel:x".parse::<RowId>().is_err());
        assert!("kernel:-1".parse::<RowId>().is_err());
    }
}
