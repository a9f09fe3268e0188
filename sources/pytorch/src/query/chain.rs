//! Chains of rows of one kind that enclose one another on a thread: operators, annotations, Python frames.
//!
//! Each row stores the innermost row of each kind around it. A chain follows that reference from row to
//! row of the same kind: `op` from operator to operator, and so on. Two kinds may cross (a Python frame that
//! begins before a range and ends within it), so that no single chain of parents holds all of them.

use crate::error::Error;
use crate::ingest::columns::NO_ROW;
use crate::row::RowType;
use crate::session::TraceSession;
use crate::tables::events::{EVENTS, column};

use super::engine::{BatchColumns, value};
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
    /// By index: the row of the kind directly around the row, or [`NO_ROW`].
    outer: Vec<u32>,
}

impl Chains {
    /// Reads the chains of one kind.
    ///
    /// # Errors
    /// What the engine reports.
    pub(crate) fn load(session: &TraceSession, kind: ChainKind) -> Result<Self, Error> {
        let columns = [column::INDEX, kind.column()];
        let mut chains = Self::default();
        for batch in session
            .engine()
            .scan(&EVENTS, &columns, Some(type_among(kind.types())))?
        {
            let (rows, outer) = (batch.u32s(column::INDEX), batch.u32s(kind.column()));
            for at in 0..batch.num_rows() {
                if let Some(outer) = value(outer, at) {
                    chains.add(rows.value(at), outer);
                }
            }
        }
        Ok(chains)
    }

    fn add(&mut self, row: u32, outer: u32) {
        let at = row as usize;
        if at >= self.outer.len() {
            self.outer.resize(at + 1, NO_ROW);
        }
        self.outer[at] = outer;
    }

    /// Returns the row of the kind directly around a row of the kind.
    pub(crate) fn outer(&self, row: u32) -> Option<u32> {
        self.outer
            .get(row as usize)
            .copied()
            .filter(|outer| *outer != NO_ROW)
    }

    /// Returns a row and all rows of its kind around it, innermost first.
    pub(crate) fn inner_first(&self, innermost: Option<u32>) -> impl Iterator<Item = u32> {
        // A chain is never longer than the table; the bound keeps damaged tables from going round for ever.
        std::iter::successors(innermost, |row| self.outer(*row)).take(self.outer.len() + 1)
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

    fn chains(links: &[(u32, u32)]) -> Chains {
        let mut chains = Chains::default();
        for (row, outer) in links {
            chains.add(*row, *outer);
        }
        chains
    }

    #[test]
    fn chains_are_followed_to_the_outermost_row() {
        let chains = chains(&[(7, 4), (4, 2)]);
        assert_eq!(chains.outer_first(Some(7)), [2, 4, 7]);
        assert_eq!(chains.outer_first(None), Vec::<u32>::new());
        assert_eq!(chains.outer(2), None);
        assert_eq!(chains.outer(99), None);
    }

    #[test]
    fn a_circle_in_damaged_tables_ends() {
        assert_eq!(chains(&[(1, 2), (2, 1)]).inner_first(Some(1)).count(), 4);
    }
}
