//! Which API call launched a device row, and for which operator.
//!
//! A launch and its device rows share a correlation number within one process; 0 and -1 mean unknown. A
//! graph launch has many device rows. Rows whose launch came before the capture began have none.
//!
//! The operator of a launch is the innermost one that encloses it on its thread. Where none does (old
//! writers put API calls under another thread id), the `External id` names it, if the writer's era made
//! that number meaningful: in 2021-11 to 2024-03 it repeated the row's own correlation.

use rustc_hash::FxHashMap;

use crate::ingest::columns::{NO_ROW, NONE, Rows};
use crate::row::RowType;

use super::nesting::Nesting;
use super::rank::Ranks;
use super::{Tally, no_rows};

/// Launches and operators of rows; [`NO_ROW`] where there is none.
#[derive(Debug)]
pub(crate) struct Launches {
    /// Of each device or synchronisation row, the API call that launched it.
    pub(crate) launch: Vec<u32>,
    /// Device work without a launch.
    pub(crate) unlinked: Tally,
    /// Device rows whose correlation more than one distinct API call carries.
    pub(crate) ambiguous: Tally,
    /// Device rows whose correlation is 0 or negative.
    pub(crate) zero_correlation: Tally,
    /// API calls whose external id was found to mean nothing.
    pub(crate) untrusted_external: Tally,
    /// Rows linked to an operator by external id, for want of one that encloses the launch.
    pub(crate) by_external: Tally,
}

fn group_of(rows: &Rows, ranks: &Ranks, row: u32) -> u16 {
    ranks.of_track[rows.track[row as usize] as usize]
}

/// Returns the better launch of two that carry one correlation: the longer, then the earlier in the file.
///
/// Writers of 2022 repeated API rows with no length.
fn better(rows: &Rows, a: u32, b: u32) -> u32 {
    if rows.dur_ns[b as usize] > rows.dur_ns[a as usize] {
        b
    } else {
        a
    }
}

/// Finds the launch of every device row, and gives device rows and launches their operator.
///
/// Device rows take over the contexts (operator, annotation, frame, module) of their launch.
pub(crate) fn link_launches(rows: &Rows, ranks: &Ranks, nesting: &mut Nesting) -> Launches {
    let mut calls: FxHashMap<(u16, i64), (u32, bool)> = FxHashMap::default();
    for row in rows.numbers() {
        let at = row as usize;
        if !rows.row_type[at].is_api() || rows.correlation[at] <= 0 {
            continue;
        }
        let key = (group_of(rows, ranks, row), rows.correlation[at]);
        calls
            .entry(key)
            .and_modify(|(known, is_ambiguous)| {
                let k = *known as usize;
                let is_repeat = rows.name[k] == rows.name[at] && rows.track[k] == rows.track[at];
                *is_ambiguous |= !is_repeat;
                *known = better(rows, *known, row);
            })
            .or_insert((row, false));
    }
    let mut launches = Launches {
        launch: no_rows(rows.len()),
        unlinked: Tally::default(),
        ambiguous: Tally::default(),
        zero_correlation: Tally::default(),
        untrusted_external: Tally::default(),
        by_external: Tally::default(),
    };
    for row in rows.numbers() {
        let at = row as usize;
        let is_work = rows.row_type[at].is_device_work();
        if !is_work && rows.row_type[at] != RowType::Sync {
            continue;
        }
        let correlation = rows.correlation[at];
        let call = if correlation > 0 {
            calls.get(&(group_of(rows, ranks, row), correlation))
        } else {
            None
        };
        match call {
            Some(&(call, is_ambiguous)) => {
                launches.launch[at] = call;
                if is_ambiguous && is_work {
                    launches.ambiguous.add(row);
                }
            }
            None if is_work => {
                launches.unlinked.add(row);
                if correlation != NONE && correlation <= 0 {
                    launches.zero_correlation.add(row);
                }
            }
            None => {}
        }
    }
    let externals = ExternalIds::judge(rows, ranks, &mut launches);
    for row in rows.numbers().filter(|row| rows.row_type[*row as usize].is_api()) {
        externals.fill_op(rows, ranks, row, nesting, &mut launches.by_external);
    }
    for row in rows.numbers() {
        let at = row as usize;
        let call = launches.launch[at];
        if call != NO_ROW {
            let call = call as usize;
            for context in [
                &mut nesting.op,
                &mut nesting.annotation,
                &mut nesting.python,
                &mut nesting.module,
            ] {
                context[at] = context[call];
            }
        }
        if rows.row_type[at].is_device_work() {
            externals.fill_op(rows, ranks, row, nesting, &mut launches.by_external);
        }
    }
    launches
}

/// The operators that external ids name, where the ids mean something.
struct ExternalIds {
    ops: FxHashMap<(u16, i64), u32>,
}

impl ExternalIds {
    /// Decides whether the external ids of API rows mean anything, and collects the operators they name.
    ///
    /// They mean nothing where nearly all API rows repeat their correlation (19 of 20). Few rows prove
    /// nothing: below 4, single repeats can be chance.
    fn judge(rows: &Rows, ranks: &Ranks, launches: &mut Launches) -> Self {
        let (mut with_external, mut repeats) = (0_u64, Tally::default());
        for row in rows.numbers() {
            let at = row as usize;
            if rows.row_type[at].is_api() && rows.external[at] > 0 && rows.correlation[at] > 0 {
                with_external += 1;
                if rows.external[at] == rows.correlation[at] {
                    repeats.add(row);
                }
            }
        }
        let mut ops = FxHashMap::default();
        if with_external >= 4 && repeats.count * 20 >= with_external * 19 {
            launches.untrusted_external = repeats;
            return Self { ops };
        }
        for row in rows.numbers() {
            let at = row as usize;
            if rows.row_type[at] == RowType::CpuOp && rows.external[at] > 0 && rows.start_ns[at] != NONE {
                ops.entry((group_of(rows, ranks, row), rows.external[at]))
                    .or_insert(row);
            }
        }
        Self { ops }
    }

    /// Gives a row without an operator the one its external id names.
    fn fill_op(&self, rows: &Rows, ranks: &Ranks, row: u32, nesting: &mut Nesting, filled: &mut Tally) {
        let at = row as usize;
        let external = rows.external[at];
        if nesting.op[at] != NO_ROW || external <= 0 || external == rows.correlation[at] {
            return;
        }
        if let Some(&op) = self.ops.get(&(group_of(rows, ranks, row), external)) {
            nesting.op[at] = op;
            filled.add(row);
        }
    }
}
