//! Which step a row belongs to.
//!
//! A CPU-side row belongs to the step on its own thread in which it starts; a device row to the step of
//! its rank in which its launch starts, on whatever thread: the backward pass launches from threads of its
//! own. A device row without a launch belongs to no step.

use crate::ingest::columns::{NO_ROW, NONE, Rows, Strings};
use crate::kineto::category::step_number;
use crate::row::RowType;

use super::launch::Launches;
use super::nones;
use super::rank::Ranks;

/// A step of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) row: u32,
    pub(crate) number: i64,
    pub(crate) group: u16,
    pub(crate) track: u32,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
}

/// The steps of a file and the step number of each row, or [`NONE`].
#[derive(Debug)]
pub(crate) struct Steps {
    /// Sorted by group, start, number; one entry a rank and number: the longest of several.
    pub(crate) steps: Vec<Step>,
    pub(crate) of_row: Vec<i64>,
}

impl Steps {
    /// Returns the step of a rank group in which an instant lies: of several, the last started.
    pub(crate) fn at(&self, group: u16, instant_ns: i64) -> Option<&Step> {
        Finder::new(&self.steps).at(group, instant_ns)
    }
}

/// Finds the steps of instants; quickly where one instant is near the one before.
struct Finder<'a> {
    /// Sorted by group and start.
    steps: &'a [Step],
    group: u16,
    /// The steps of the group that start no later than any instant from `since_ns` to before `until_ns`.
    started: &'a [Step],
    since_ns: i64,
    until_ns: i64,
}

impl<'a> Finder<'a> {
    fn new(steps: &'a [Step]) -> Self {
        Self {
            steps,
            group: 0,
            started: &[],
            since_ns: i64::MAX,
            until_ns: i64::MAX,
        }
    }

    fn at(&mut self, group: u16, instant_ns: i64) -> Option<&'a Step> {
        if group != self.group || instant_ns < self.since_ns || instant_ns >= self.until_ns {
            let from = self.steps.partition_point(|step| step.group < group);
            let to = self
                .steps
                .partition_point(|step| (step.group, step.start_ns) <= (group, instant_ns));
            self.group = group;
            self.started = self.steps.get(from..to)?;
            self.since_ns = self.started.last().map_or(i64::MIN, |step| step.start_ns);
            let next = self.steps.get(to).filter(|step| step.group == group);
            self.until_ns = next.map_or(i64::MAX, |step| step.start_ns);
        }
        self.started
            .iter()
            .rev()
            .take(16)
            .find(|step| instant_ns < step.end_ns)
    }
}

/// Finds the steps, and the step of every row.
pub(crate) fn assign_steps(rows: &Rows, strings: &Strings, ranks: &Ranks, launches: &Launches) -> Steps {
    let mut steps: Vec<Step> = rows
        .numbers()
        .filter(|row| rows.row_type[*row as usize] == RowType::Step)
        .filter_map(|row| {
            let number = step_number(strings.get(rows.name[row as usize]))?;
            let track = rows.track[row as usize];
            Some(Step {
                row,
                number,
                group: ranks.of_track[track as usize],
                track,
                start_ns: rows.start_ns[row as usize],
                end_ns: rows.end_ns(row)?,
            })
        })
        .collect();
    steps.sort_by_key(|step| {
        (
            step.group,
            step.number,
            std::cmp::Reverse(step.end_ns - step.start_ns),
            step.row,
        )
    });
    steps.dedup_by_key(|step| (step.group, step.number));
    steps.sort_by_key(|step| (step.group, step.start_ns, step.number));
    let mut of_row = nones(rows.len());
    if steps.is_empty() {
        return Steps { steps, of_row };
    }
    let mut finder = Finder::new(&steps);
    let mut placed = rows.placement.0.iter().map(|(row, _)| *row).peekable();
    for row in rows.numbers() {
        let at = row as usize;
        let launch = launches.launch[at];
        let is_placed = placed.next_if_eq(&row).is_some();
        let is_device_side =
            is_placed || rows.row_type[at].is_device_work() || rows.row_type[at] == RowType::Sync;
        let (instant_row, needs_thread) = if is_device_side {
            (launch, false)
        } else {
            (row, true)
        };
        if instant_row == NO_ROW || rows.start_ns[instant_row as usize] == NONE {
            continue;
        }
        let track = rows.track[instant_row as usize];
        let group = ranks.of_track[track as usize];
        if let Some(step) = finder.at(group, rows.start_ns[instant_row as usize])
            && (!needs_thread || step.track == track)
        {
            of_row[at] = step.number;
        }
    }
    for step in &steps {
        of_row[step.row as usize] = step.number;
    }
    Steps { steps, of_row }
}
