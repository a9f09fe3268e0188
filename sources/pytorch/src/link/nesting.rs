//! What encloses what on a CPU thread, and the time that is a row's own.
//!
//! # The rule
//! On one thread, a row is *inside* another of a given kind when its interval lies wholly within it; of
//! several, the one that started last encloses it innermost. Rows that start together are taken longest
//! first, and exact twins in file order, so that one may be listed before its parent.
//!
//! Real threads hold rows that cross (a Python frame that begins before a range and ends within it). A
//! crossing row is inside neither of its neighbours, but whatever both enclose is given to the later one:
//!
//! ```text
//! A |----------|            0..10
//! B      |-----------|      5..15   crosses A: inside nothing
//! C        |--|             6..9    inside B, which started after A
//! ```
//!
//! This makes the open rows of a kind a stack with falling ends: once B is open, A can be the innermost
//! of nothing that is still to come, so it leaves the stack. One pass over the sorted rows, O(log depth)
//! each, finds every innermost row, however badly rows cross.
//!
//! # Self time
//! Every instant covered by rows of a kind belongs to the one of them that is on top of that stack. So
//! above A has 5 (0..5), B has 7 (5..6 and 9..15), C has 3, and the self times of a thread add up to the
//! union of its rows: 15.

use crate::ingest::columns::{NO_ROW, NONE, Rows};
use crate::row::RowType;

use super::{Tally, no_rows, nones};

/// The kinds of rows that nest among themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Op,
    Annotation,
    Python,
    Api,
}

const KINDS: usize = 4;

/// Returns the kind of a type, for types whose rows enclose others.
pub(crate) fn kind_of(row_type: RowType) -> Option<Kind> {
    match row_type {
        RowType::CpuOp => Some(Kind::Op),
        RowType::Annotation | RowType::Step => Some(Kind::Annotation),
        RowType::Python => Some(Kind::Python),
        RowType::Runtime | RowType::Driver => Some(Kind::Api),
        _ => None,
    }
}

/// What encloses each row, by kind; [`NO_ROW`] where nothing does.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// The innermost enclosing row of any kind.
    pub(crate) parent: Vec<u32>,
    /// The number of enclosing rows along `parent`.
    pub(crate) depth: Vec<u16>,
    /// The innermost enclosing operator.
    pub(crate) op: Vec<u32>,
    /// The innermost enclosing annotation or step.
    pub(crate) annotation: Vec<u32>,
    /// The innermost enclosing Python frame or module call.
    pub(crate) python: Vec<u32>,
    /// The innermost enclosing module call.
    pub(crate) module: Vec<u32>,
    /// The row's own time: nested rows of its kind taken out. [`NONE`] on other rows.
    pub(crate) self_ns: Vec<i64>,
    /// All CPU-side rows with a time, thread by thread, outer before inner.
    pub(crate) order: Vec<u32>,
    /// Rows that start inside a row of some kind and end after it.
    pub(crate) crossing: Tally,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    row: u32,
    start_ns: i64,
    end_ns: i64,
}

/// The open rows of one kind on one thread: starts rise and ends fall from bottom to top.
#[derive(Debug, Default)]
struct Stack {
    open: Vec<Open>,
    /// Up to where time has been given to rows.
    cursor_ns: i64,
}

impl Stack {
    /// Closes what ends before a row that starts at `start_ns`, giving out the time up to there.
    ///
    /// A row of no length is kept open for its exact twin: old writers cut times to whole microseconds,
    /// so that a short operator and the one it calls can both have no length.
    fn close_until(&mut self, start_ns: i64, is_instant: bool, self_ns: &mut [i64]) {
        while let Some(top) = self.open.last() {
            let is_twin = is_instant && top.start_ns == start_ns && top.end_ns == start_ns;
            if top.end_ns > start_ns || is_twin {
                break;
            }
            self_ns[top.row as usize] += (top.end_ns - self.cursor_ns).max(0);
            self.cursor_ns = self.cursor_ns.max(top.end_ns);
            self.open.pop();
        }
    }

    /// Returns the last started open row that lasts until `end_ns`.
    fn innermost(&self, end_ns: i64) -> Option<Open> {
        match self.open.last() {
            Some(top) if top.end_ns >= end_ns => Some(*top),
            _ => {
                let lasting = self.open.partition_point(|open| open.end_ns >= end_ns);
                lasting.checked_sub(1).map(|at| self.open[at])
            }
        }
    }

    fn is_crossed_by(&self, end_ns: i64) -> bool {
        self.open.last().is_some_and(|top| top.end_ns < end_ns)
    }

    fn push(&mut self, row: Open, self_ns: &mut [i64]) {
        if let Some(top) = self.open.last() {
            self_ns[top.row as usize] += (row.start_ns - self.cursor_ns).max(0);
        }
        self.cursor_ns = row.start_ns;
        while self.is_crossed_by(row.end_ns) {
            self.open.pop();
        }
        self.open.push(row);
    }
}

/// Returns whether a row is on the CPU side and has a time: a candidate for having a parent.
fn is_nested(rows: &Rows, row: usize, is_placed: bool) -> bool {
    if rows.start_ns[row] == NONE || rows.dur_ns[row] == NONE || is_placed {
        return false;
    }
    kind_of(rows.row_type[row]).is_some() || matches!(rows.row_type[row], RowType::Memory | RowType::Comm)
}

/// Returns the rows that can nest, sorted by track, start, falling end, file order.
///
/// Writers emit the rows of a thread nearly in this order, which the stable sort makes use of.
fn nesting_order(rows: &Rows) -> Vec<u32> {
    let mut placed = rows.placement.0.iter().map(|(row, _)| *row).peekable();
    let mut by_track: Vec<Vec<u32>> = Vec::new();
    for number in rows.numbers() {
        let is_placed = placed.next_if_eq(&number).is_some();
        if is_nested(rows, number as usize, is_placed) {
            let track = rows.track[number as usize] as usize;
            if track >= by_track.len() {
                by_track.resize_with(track + 1, Vec::new);
            }
            by_track[track].push(number);
        }
    }
    let mut order = Vec::new();
    for mut track in by_track {
        track.sort_by_key(|&row| {
            let (start, dur) = (rows.start_ns[row as usize], rows.dur_ns[row as usize]);
            (start, std::cmp::Reverse(start + dur))
        });
        order.extend(track);
    }
    order
}

/// Finds what encloses every CPU-side row, and every row's own time.
///
/// `is_module_name` tells of each string whether it names a module call.
pub(crate) fn nest(rows: &Rows, is_module_name: &[bool]) -> Nesting {
    let count = rows.len();
    let mut nesting = Nesting {
        parent: no_rows(count),
        depth: vec![0; count],
        op: no_rows(count),
        annotation: no_rows(count),
        python: no_rows(count),
        module: no_rows(count),
        self_ns: nones(count),
        order: nesting_order(rows),
        crossing: Tally::default(),
    };
    let Nesting {
        parent,
        depth,
        op,
        annotation,
        python,
        module,
        self_ns,
        order,
        crossing,
    } = &mut nesting;
    let mut stacks: [Stack; KINDS] = Default::default();
    let mut track = NO_ROW;
    for &row in order.iter() {
        let at = row as usize;
        if rows.track[at] != track {
            track = rows.track[at];
            for stack in &mut stacks {
                stack.close_until(i64::MAX, false, self_ns);
                *stack = Stack::default();
            }
        }
        let (start_ns, dur_ns) = (rows.start_ns[at], rows.dur_ns[at]);
        let open = Open {
            row,
            start_ns,
            end_ns: start_ns + dur_ns,
        };
        let mut innermost: Option<Open> = None;
        let mut crosses = false;
        for (stack, context) in stacks.iter_mut().zip(
            [&mut *op, &mut *annotation, &mut *python]
                .into_iter()
                .map(Some)
                .chain([None]),
        ) {
            stack.close_until(start_ns, dur_ns == 0, self_ns);
            crosses |= stack.is_crossed_by(open.end_ns);
            let enclosing = stack.innermost(open.end_ns);
            if let (Some(context), Some(enclosing)) = (context, enclosing) {
                context[at] = enclosing.row;
            }
            innermost = later(innermost, enclosing);
        }
        if let Some(enclosing) = innermost {
            parent[at] = enclosing.row;
            depth[at] = depth[enclosing.row as usize].saturating_add(1);
        }
        if python[at] != NO_ROW {
            let frame = python[at] as usize;
            let is_module = is_module_name
                .get(rows.name[frame] as usize)
                .is_some_and(|is| *is);
            module[at] = if is_module { python[at] } else { module[frame] };
        }
        if crosses {
            crossing.add(row);
        }
        if let Some(kind) = kind_of(rows.row_type[at]) {
            self_ns[at] = 0;
            stacks[kind as usize].push(open, self_ns);
        }
    }
    for stack in &mut stacks {
        stack.close_until(i64::MAX, false, self_ns);
    }
    nesting
}

/// Returns which of two enclosing rows is the inner one.
fn later(a: Option<Open>, b: Option<Open>) -> Option<Open> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let rank = |open: &Open| (open.start_ns, std::cmp::Reverse(open.end_ns), open.row);
            Some(if rank(&a) >= rank(&b) { a } else { b })
        }
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of (type, start, duration) on one thread.
    fn thread(rows: &[(RowType, i64, i64)]) -> Rows {
        let mut columns = Rows::default();
        for (index, (row_type, start_ns, dur_ns)) in (0_u32..).zip(rows) {
            columns.index.push(index);
            columns.row_type.push(*row_type);
            columns.start_ns.push(*start_ns);
            columns.dur_ns.push(*dur_ns);
            columns.track.push(0);
            columns.name.push(NO_ROW);
        }
        columns
    }

    fn self_times(rows: &[(RowType, i64, i64)]) -> Vec<i64> {
        nest(&thread(rows), &[]).self_ns
    }

    const OP: RowType = RowType::CpuOp;

    #[test]
    fn the_example_of_the_rule_holds() {
        let rows = [(OP, 0, 10), (OP, 5, 10), (OP, 6, 3)];
        let nesting = nest(&thread(&rows), &[]);
        assert_eq!(nesting.op, [NO_ROW, NO_ROW, 1]);
        assert_eq!(nesting.self_ns, [5, 7, 3]);
        assert_eq!(
            nesting.crossing,
            Tally {
                count: 1,
                rows: vec![1]
            }
        );
    }

    #[test]
    fn a_child_may_be_listed_before_its_parent() {
        let nesting = nest(&thread(&[(OP, 0, 4), (OP, 0, 10)]), &[]);
        assert_eq!(nesting.parent, [1, NO_ROW]);
        assert_eq!(nesting.self_ns, [4, 6]);
    }

    #[test]
    fn exact_twins_nest_in_file_order() {
        let nesting = nest(&thread(&[(OP, 3, 4), (OP, 3, 4)]), &[]);
        assert_eq!(nesting.parent, [NO_ROW, 0]);
        assert_eq!(nesting.self_ns, [0, 4]);
        let instants = nest(&thread(&[(OP, 0, 9), (OP, 3, 0), (OP, 3, 0)]), &[]);
        assert_eq!(instants.parent, [NO_ROW, 0, 1]);
        assert_eq!(instants.self_ns, [9, 0, 0]);
    }

    #[test]
    fn intervals_are_half_open() {
        let nesting = nest(&thread(&[(OP, 0, 5), (OP, 5, 5)]), &[]);
        assert_eq!(nesting.parent, [NO_ROW, NO_ROW]);
        assert_eq!(nesting.crossing.count, 0);
    }

    #[test]
    fn kinds_nest_apart_and_the_last_started_is_the_parent() {
        let (step, python) = (RowType::Step, RowType::Python);
        let rows = [
            (step, 0, 100),
            (python, 10, 50),
            (OP, 20, 20),
            (RowType::Runtime, 25, 5),
        ];
        let nesting = nest(&thread(&rows), &[]);
        assert_eq!(nesting.parent, [NO_ROW, 0, 1, 2]);
        assert_eq!(nesting.depth, [0, 1, 2, 3]);
        assert_eq!(
            (nesting.op[3], nesting.python[3], nesting.annotation[3]),
            (2, 1, 0)
        );
        assert_eq!(nesting.self_ns, [100, 50, 20, 5]);
    }

    #[test]
    fn recursion_leaves_each_level_its_own_time() {
        assert_eq!(
            self_times(&[(OP, 0, 100), (OP, 10, 50), (OP, 20, 5)]),
            [50, 45, 5]
        );
    }

    /// The innermost enclosing row by the rule's own words, row by row.
    fn innermost_by_force(rows: &[(RowType, i64, i64)], at: usize) -> u32 {
        let order = |row: usize| (rows[row].1, std::cmp::Reverse(rows[row].1 + rows[row].2), row);
        let (start, end) = (rows[at].1, rows[at].1 + rows[at].2);
        (0..rows.len())
            .filter(|other| *other != at && order(*other) < order(at))
            .filter(|other| {
                let (from, to) = (rows[*other].1, rows[*other].1 + rows[*other].2);
                from <= start && end <= to && (to > start || (from, to) == (start, end))
            })
            .max_by_key(|other| order(*other))
            .map_or(NO_ROW, |other| u32::try_from(other).unwrap())
    }

    proptest! {
        #[test]
        fn innermost_rows_are_those_of_brute_force(
            spans in prop::collection::vec((0_i64..30, 0_i64..12), 0..25)
        ) {
            let rows: Vec<_> = spans.into_iter().map(|(start, dur)| (OP, start, dur)).collect();
            let nesting = nest(&thread(&rows), &[]);
            let by_force: Vec<u32> = (0..rows.len()).map(|at| innermost_by_force(&rows, at)).collect();
            prop_assert_eq!(nesting.op, by_force);
        }

        #[test]
        fn self_times_add_up_to_the_union(
            spans in prop::collection::vec((0_i64..40, 0_i64..15), 0..25)
        ) {
            let rows: Vec<_> = spans.iter().map(|(start, dur)| (OP, *start, *dur)).collect();
            let covered = (0..60).filter(|t| spans.iter().any(|(s, d)| s <= t && *t < s + d)).count();
            prop_assert_eq!(self_times(&rows).iter().sum::<i64>(), i64::try_from(covered).unwrap());
        }
    }
}
