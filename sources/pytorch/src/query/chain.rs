//! Chains of rows of one kind that enclose one another on a thread: operators, annotations, Python frames.
//!
//! Each row stores the innermost row of each kind around it. A chain follows that reference from row to
//! row of the same kind: `op` from operator to operator, and so on. Two kinds may cross (a Python frame that
//! begins before a range and ends within it), so that no single chain of parents holds all of them.

use crate::error::Error;
use crate::row::RowType;
use crate::session::TraceSession;
use crate::tables::events::column;

use super::by_index::ByIndex;
use super::filters::type_among;

/// A kind of rows that nest among themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainKind {
    Op,
    Annotation,
    Python,
}

impl ChainKind {
    fn types(self) -> &'static [RowType] {
        match self {
            Self::Op => &[RowType::CpuOp],
            Self::Annotation => &[RowType::Annotation, RowType::Step],
            Self::Python => &[RowType::Python],
        }
    }

    /// Returns the stored column that names the innermost row of the kind around a row.
    pub(crate) fn column(self) -> &'static str {
        match self {
            Self::Op => column::OP,
            Self::Annotation => column::ANNOTATION,
            Self::Python => column::PYTHON,
        }
    }

    /// Returns the kind of a type's rows.
    pub(crate) fn of(row_type: RowType) -> Option<Self> {
        [Self::Op, Self::Annotation, Self::Python]
            .into_iter()
            .find(|kind| kind.types().contains(&row_type))
    }
}

/// The enclosing row of every row of one kind, as indices.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    /// The row of the kind directly around the row.
    outer: ByIndex,
}

impl Chains {
    /// Reads the chains of one kind.
    ///
    /// # Errors
    /// What the engine reports.
    pub(crate) fn load(session: &TraceSession, kind: ChainKind) -> Result<Self, Error> {
        let outer = ByIndex::load(session, kind.column(), type_among(kind.types()))?;
        Ok(Self { outer })
    }

    /// Returns the chains that pairs of a row and the row directly around it make.
    #[cfg(test)]
    pub(crate) fn from_links(links: impl IntoIterator<Item = (u32, u32)>) -> Self {
        Self {
            outer: links.into_iter().collect(),
        }
    }

    /// Returns the row of the kind directly around a row of the kind.
    pub(crate) fn outer(&self, row: u32) -> Option<u32> {
        self.outer.get(row)
    }

    /// Returns a row and all rows of its kind around it, innermost first.
    pub(crate) fn inner_first(&self, innermost: Option<u32>) -> impl Iterator<Item = u32> {
        self.outer.follow(innermost)
    }

    /// Returns a row and all rows of its kind around it, outermost first.
    pub(crate) fn outer_first(&self, innermost: Option<u32>) -> Vec<u32> {
        let mut chain: Vec<u32> = self.inner_first(innermost).collect();
        chain.reverse();
        chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_followed_to_the_outermost_row() {
        let chains = Chains::from_links([(7, 4), (4, 2)]);
        assert_eq!(chains.outer_first(Some(7)), [2, 4, 7]);
        assert_eq!(chains.outer_first(None), Vec::<u32>::new());
        assert_eq!(chains.outer(2), None);
        assert_eq!(chains.outer(99), None);
    }
}
