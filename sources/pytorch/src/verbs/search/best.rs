//! The first rows of an order, out of any number of rows.

/// Where a row stands in an order; equal values stand in file order, unknown ones last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    is_unknown: bool,
    value: i64,
    index: u32,
}

/// Keeps the first so many rows of an order, and counts all.
#[derive(Debug)]
pub(super) struct Best {
    wanted: usize,
    is_descending: bool,
    kept: Vec<Place>,
    /// Once enough are kept: what stands behind it is not wanted.
    last_wanted: Option<Place>,
    count: u64,
}

/// Rows kept beyond those wanted, so that passing over the rest is rare.
const SLACK: usize = 4096;

impl Best {
    pub(super) fn new(wanted: usize, is_descending: bool) -> Self {
        Self {
            wanted,
            is_descending,
            kept: Vec::new(),
            last_wanted: None,
            count: 0,
        }
    }

    /// Takes a row in.
    pub(super) fn add(&mut self, value: Option<i64>, index: u32) {
        self.count += 1;
        let value = value.map(|value| if self.is_descending { !value } else { value });
        let place = Place {
            is_unknown: value.is_none(),
            value: value.unwrap_or(0),
            index,
        };
        if self.last_wanted.is_none_or(|last| place < last) {
            self.keep(place);
        }
    }

    fn keep(&mut self, place: Place) {
        self.kept.push(place);
        if self.kept.len() >= self.wanted.saturating_mul(2).saturating_add(SLACK) {
            self.drop_unwanted();
        }
    }

    fn drop_unwanted(&mut self) {
        if let Some(last) = self.wanted.checked_sub(1).filter(|last| *last < self.kept.len()) {
            self.last_wanted = Some(*self.kept.select_nth_unstable(last).1);
        }
        self.kept.truncate(self.wanted);
    }

    /// Takes in the rows of another part of the table.
    pub(super) fn append(&mut self, other: Self) {
        self.count += other.count;
        for place in other.kept {
            self.keep(place);
        }
    }

    /// Returns the indices of the first rows in their order, and how many rows there are in all.
    pub(super) fn finish(mut self) -> (Vec<u32>, u64) {
        self.drop_unwanted();
        self.kept.sort_unstable();
        (
            self.kept.into_iter().map(|place| place.index).collect(),
            self.count,
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn first(wanted: usize, is_descending: bool, rows: &[(Option<i64>, u32)]) -> Vec<u32> {
        let mut best = Best::new(wanted, is_descending);
        for (value, index) in rows {
            best.add(*value, *index);
        }
        best.finish().0
    }

    #[test]
    fn order_is_total_and_puts_unknown_last() {
        let rows = [(None, 0), (Some(5), 1), (Some(9), 2), (Some(5), 3)];
        assert_eq!(first(9, false, &rows), [1, 3, 2, 0]);
        assert_eq!(first(9, true, &rows), [2, 1, 3, 0]);
        assert_eq!(first(2, true, &rows), [2, 1]);
        let extremes = [(Some(i64::MIN), 0), (Some(i64::MAX), 1), (None, 2)];
        assert_eq!(first(9, true, &extremes), [1, 0, 2]);
    }

    proptest! {
        #[test]
        fn the_first_rows_are_those_of_the_sorted_list(
            values in prop::collection::vec(prop::option::of(-9_i64..9), 0..12_000),
            wanted in 0_usize..40,
            cut in 0_usize..12_000,
            is_descending: bool,
        ) {
            let rows: Vec<(Option<i64>, u32)> = values.into_iter().zip(0..).collect();
            let (head, tail) = rows.split_at(cut.min(rows.len()));
            let mut parts = [head, tail].into_iter().map(|rows| {
                let mut best = Best::new(wanted, is_descending);
                for (value, index) in rows {
                    best.add(*value, *index);
                }
                best
            });
            let (mut best, rest) = (parts.next().unwrap(), parts.next().unwrap());
            best.append(rest);
            let mut sorted = rows.clone();
            sorted.sort_by_key(|(value, index)| {
                let value = value.map(|value| if is_descending { -value } else { value });
                (value.is_none(), value, *index)
            });
            let (found, count) = best.finish();
            prop_assert_eq!(count, rows.len() as u64);
            let expected: Vec<u32> = sorted.iter().take(wanted).map(|(_, index)| *index).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
