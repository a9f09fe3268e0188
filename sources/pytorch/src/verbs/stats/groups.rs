//! Groups: the combinations of axis values that rows have, by number.

use rustc_hash::FxHashMap;

/// Values up to this bound are looked up by place, others by hash.
const DENSE: i64 = 1 << 20;

const ABSENT: u32 = u32::MAX;

/// Numbers the values of one axis, from 0 in the order in which they are first seen.
#[derive(Debug, Default)]
struct Ordinals {
    dense: Vec<u32>,
    sparse: FxHashMap<i64, u32>,
    count: u32,
}

impl Ordinals {
    fn of(&mut self, value: i64) -> u32 {
        let place = if (0..DENSE).contains(&value) {
            let at = usize::try_from(value).expect("checked to be in a small range");
            if at >= self.dense.len() {
                self.dense.resize((at + 1).next_power_of_two(), ABSENT);
            }
            &mut self.dense[at]
        } else {
            self.sparse.entry(value).or_insert(ABSENT)
        };
        if *place == ABSENT {
            *place = self.count;
            self.count += 1;
        }
        *place
    }
}

/// Numbers combinations of axis values, from 0 in the order in which they are first seen.
#[derive(Debug)]
pub(super) struct Groups {
    of_axes: Vec<Ordinals>,
    /// For every axis but the first: the number of a combination of the axes before and of its own value.
    combined: Vec<FxHashMap<(u32, u32), u32>>,
    /// Axis by axis, group by group.
    values: Vec<i64>,
    count: u32,
}

impl Groups {
    /// Returns no groups, of so many axes.
    ///
    /// # Panics
    /// Without axes.
    pub(super) fn new(axes: usize) -> Self {
        assert!(axes > 0, "a group has axes");
        Self {
            of_axes: std::iter::repeat_with(Ordinals::default).take(axes).collect(),
            combined: vec![FxHashMap::default(); axes - 1],
            values: Vec::new(),
            count: 0,
        }
    }

    /// Returns the number of a group; a new one when it was never seen.
    pub(super) fn number(&mut self, values: &[i64]) -> u32 {
        let mut number = self.of_axes[0].of(values[0]);
        for (at, combined) in self.combined.iter_mut().enumerate() {
            let ordinal = self.of_axes[at + 1].of(values[at + 1]);
            let next = u32::try_from(combined.len()).expect("fewer groups than rows");
            number = *combined.entry((number, ordinal)).or_insert(next);
        }
        if number == self.count {
            self.values.extend_from_slice(values);
            self.count += 1;
        }
        number
    }

    /// Returns the axis values of a group.
    pub(super) fn values(&self, number: u32) -> &[i64] {
        let axes = self.of_axes.len();
        &self.values[number as usize * axes..][..axes]
    }

    /// Returns the axis values of all groups, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[i64]> {
        self.values.chunks_exact(self.of_axes.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn groups_are_numbered_as_they_are_seen() {
        let mut groups = Groups::new(2);
        let rows = [[7, -1], [7, i64::MIN], [7, -1], [8, -1], [1 << 40, 3]];
        let numbers = rows.map(|row| groups.number(&row));
        assert_eq!(numbers, [0, 1, 0, 2, 3]);
        assert_eq!(groups.values(3), [1 << 40, 3]);
    }

    proptest! {
        #[test]
        fn a_number_stands_for_one_combination(
            rows in prop::collection::vec(prop::array::uniform3(-2_i64..3), 1..80),
        ) {
            let mut groups = Groups::new(3);
            for row in &rows {
                let number = groups.number(row);
                prop_assert_eq!(groups.values(number), row);
            }
            let mut distinct = rows.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(groups.iter().count(), distinct.len());
        }
    }
}
