//! Sorting and cutting of lists: `--sort`, `--limit`, `--offset`.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Which part of the list to show.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PageArgs {
    /// Rows to show at most; 0 for all
    #[arg(long, value_name = "N", default_value_t = Self::default().limit)]
    pub(crate) limit: u64,
    /// Rows to pass over first
    #[arg(long, value_name = "N", default_value_t = Self::default().offset)]
    pub(crate) offset: u64,
}

impl Default for PageArgs {
    fn default() -> Self {
        Self { limit: 50, offset: 0 }
    }
}

/// Where a page was cut; for `auxiliary`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) is_truncated: bool,
    pub(crate) next_offset: Option<u64>,
}

impl PageArgs {
    /// Returns the page of a list, and whether more follow.
    pub(crate) fn cut<T>(&self, rows: Vec<T>) -> (Vec<T>, Cut) {
        let total = rows.len() as u64;
        self.cut_of(rows, total)
    }

    /// Returns the page of a list of which at least the first [`wanted`](Self::wanted) rows are given, and
    /// whether more follow.
    pub(crate) fn cut_of<T>(&self, mut rows: Vec<T>, total: u64) -> (Vec<T>, Cut) {
        let end = self.wanted().min(rows.len());
        let start = usize::try_from(self.offset).unwrap_or(usize::MAX).min(end);
        rows.truncate(end);
        rows.drain(..start);
        let is_truncated = start < end && (end as u64) < total;
        (
            rows,
            Cut {
                is_truncated,
                next_offset: is_truncated.then_some(end as u64),
            },
        )
    }

    /// Returns how many rows from the first on decide what the page holds.
    pub(crate) fn wanted(&self) -> usize {
        let end = match self.limit {
            0 => u64::MAX,
            limit => self.offset.saturating_add(limit),
        };
        usize::try_from(end).unwrap_or(usize::MAX)
    }
}

/// A sort order: `FIELD`, `FIELD:asc` or `FIELD:desc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(crate) field: &'static str,
    pub(crate) is_descending: bool,
}

/// Parses `--sort` against the fields that a verb can sort by.
///
/// # Errors
/// `usage.invalid_value`, with the nearest field.
pub(crate) fn parse_sort(text: &str, fields: &[&'static str]) -> Result<Sort, Error> {
    let (name, order) = text.split_once(':').unwrap_or((text, "asc"));
    let is_descending = match order {
        "asc" => false,
        "desc" => true,
        _ => {
            let problem = format!("`{order}` is not an order; take asc or desc");
            return Err(Error::InvalidFlag {
                flag: "--sort",
                problem,
            });
        }
    };
    match fields.iter().find(|field| **field == name) {
        Some(field) => Ok(Sort { field, is_descending }),
        None => {
            let problem = match veloq_core::nearest(name, fields.iter().copied()) {
                Some(near) => format!("`{name}` cannot be sorted by; did you mean `{near}`?"),
                None => format!(
                    "`{name}` cannot be sorted by; the fields are {}",
                    fields.join(", ")
                ),
            };
            Err(Error::InvalidFlag {
                flag: "--sort",
                problem,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_cut_and_tell_what_follows() {
        let cut = |limit, offset| PageArgs { limit, offset }.cut(vec![1, 2, 3, 4, 5]);
        assert_eq!(
            cut(2, 1),
            (
                vec![2, 3],
                Cut {
                    is_truncated: true,
                    next_offset: Some(3)
                }
            )
        );
        assert_eq!(
            cut(0, 3),
            (
                vec![4, 5],
                Cut {
                    is_truncated: false,
                    next_offset: None
                }
            )
        );
        assert_eq!(cut(2, 9).0, Vec::<i32>::new());
    }

    #[test]
    fn sort_fields_are_checked() {
        let fields = ["start_ns", "duration_ns"];
        let sort = parse_sort("duration_ns:desc", &fields).unwrap();
        assert_eq!(
            sort,
            Sort {
                field: "duration_ns",
                is_descending: true
            }
        );
        assert!(
            parse_sort("duration", &fields)
                .unwrap_err()
                .to_string()
                .contains("`duration_ns`")
        );
        assert!(parse_sort("start_ns:up", &fields).is_err());
    }
}
