//! The rows of a trace as plain columns, in file order.
//!
//! This is what one pass over the text leaves in memory: fixed-width values, about fifty bytes a row, with
//! every string interned. What only few rows have (device, sequence number, bytes …) is kept apart in lists
//! sorted by row. A *row* here is a position in these columns; a row's *index* is its element's position in
//! the trace (see [`crate::row::RowId`]).

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::row::RowType;

/// Stands for an absent 64-bit value; no id, time or size in a trace can be this number.
pub(crate) const NONE: i64 = i64::MIN;

/// Stands for an absent reference to a row or a string.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// Strings by number; the same text always has the same number.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    text: String,
    ends: Vec<usize>,
    /// Number by hash. A hash that is taken by another text moves on to the next one that is free.
    numbers: FxHashMap<u64, u32>,
}

impl Strings {
    /// Returns the number of a text, new or known.
    pub(crate) fn intern(&mut self, text: &str) -> u32 {
        let mut hash = xxh3_64(text.as_bytes());
        while let Some(&number) = self.numbers.get(&hash) {
            if self.get(number) == text {
                return number;
            }
            hash = hash.wrapping_add(1);
        }
        let number = u32::try_from(self.ends.len()).expect("fewer texts than rows, which fit 32 bits");
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.numbers.insert(hash, number);
        number
    }

    /// Returns the number of a text that is known.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        let mut hash = xxh3_64(text.as_bytes());
        loop {
            let number = *self.numbers.get(&hash)?;
            if self.get(number) == text {
                return Some(number);
            }
            hash = hash.wrapping_add(1);
        }
    }

    /// Returns the text of a number; empty for [`NO_ROW`].
    pub(crate) fn get(&self, number: u32) -> &str {
        let at = number as usize;
        let Some(&end) = self.ends.get(at) else { return "" };
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..end]
    }

    /// Returns how many texts there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns all texts in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start..end])
    }
}

/// A process or thread id as the file spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Id {
    Missing,
    Int(i64),
    /// Text that is no integer; a string's number.
    Text(u32),
}

/// Where rows happen: a thread of a process, or a stream of a device, of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TrackKey {
    /// `args.rank` where a merge tool wrote it, else [`NONE`].
    pub(crate) rank: i64,
    pub(crate) pid: Id,
    pub(crate) tid: Id,
}

/// Tracks by number, in the order of their first row.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    keys: Vec<TrackKey>,
    numbers: FxHashMap<TrackKey, u32>,
}

impl Tracks {
    /// Returns the number of a track, new or known.
    pub(crate) fn intern(&mut self, key: TrackKey) -> u32 {
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        let number = u32::try_from(self.keys.len()).expect("fewer tracks than rows, which fit 32 bits");
        self.keys.push(key);
        self.numbers.insert(key, number);
        number
    }

    /// Returns the number of a track that is known.
    pub(crate) fn find(&self, key: TrackKey) -> Option<u32> {
        self.numbers.get(&key).copied()
    }

    /// Returns the keys in the order of their numbers.
    pub(crate) fn keys(&self) -> &[TrackKey] {
        &self.keys
    }
}

/// Values of a few rows, sorted by row.
#[derive(Debug)]
pub(crate) struct Sparse<T>(pub(crate) Vec<(u32, T)>);

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Sparse<T> {
    /// Returns the value of a row.
    pub(crate) fn get(&self, row: u32) -> Option<&T> {
        self.0
            .binary_search_by_key(&row, |(at, _)| *at)
            .ok()
            .map(|at| &self.0[at].1)
    }

    /// Returns the values of a range of rows.
    pub(crate) fn within(&self, rows: &std::ops::Range<usize>) -> &[(u32, T)] {
        let from = self.0.partition_point(|(row, _)| (*row as usize) < rows.start);
        let to = self.0.partition_point(|(row, _)| (*row as usize) < rows.end);
        &self.0[from..to]
    }

    /// Moves all values of `other` behind these, its rows counted from `first_row`.
    fn append(&mut self, other: Self, first_row: u32) {
        self.0
            .extend(other.0.into_iter().map(|(row, value)| (row + first_row, value)));
    }
}

/// Where a device row ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The device's number within its rank, or [`NONE`].
    pub(crate) device: i64,
    /// The stream's number within its device, or [`NONE`].
    pub(crate) stream: i64,
    /// Whether the row belongs to a CUDA graph, where the writer tells.
    pub(crate) is_graph: bool,
}

/// Autograd's number of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) number: i64,
    /// 0 on forward operators; on backward ones the profiler's small number of the forward thread.
    pub(crate) forward_thread: i64,
}

/// One end of a flow between a forward operator and its backward one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) id: Id,
    pub(crate) is_start: bool,
    pub(crate) track: u32,
    pub(crate) at_ns: i64,
}

/// What a metadata row names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Named {
    Process,
    ProcessLabels,
    Thread,
}

/// The rows, one entry of each column a row.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The element's position among the trace's elements, flow markers apart; ascending.
    pub(crate) index: Vec<u32>,
    pub(crate) row_type: Vec<RowType>,
    /// First byte of `ph`; 0 when missing.
    pub(crate) phase: Vec<u8>,
    /// String number of `cat` as written, or [`NO_ROW`].
    pub(crate) category: Vec<u32>,
    /// String number of `name`, or [`NO_ROW`].
    pub(crate) name: Vec<u32>,
    /// Start in ns as written, or [`NONE`] when missing or invalid.
    pub(crate) start_ns: Vec<i64>,
    /// Duration in ns; 0 on instants, [`NONE`] when missing or invalid.
    pub(crate) dur_ns: Vec<i64>,
    pub(crate) track: Vec<u32>,
    /// Launch correlation, or [`NONE`].
    pub(crate) correlation: Vec<i64>,
    /// `External id`, or [`NONE`].
    pub(crate) external: Vec<i64>,
    /// String number of the input shapes' text, or [`NO_ROW`].
    pub(crate) shape: Vec<u32>,
    /// Rows on a device: work, synchronisation, projected annotations.
    pub(crate) placement: Sparse<Placement>,
    pub(crate) sequence: Sparse<Sequence>,
    /// Bytes moved or, signed, allocated.
    pub(crate) bytes: Sparse<i64>,
    /// The args of rows that describe a collective.
    pub(crate) collective_args: Sparse<Box<str>>,
    /// Copies and fills that were filed under kernels.
    pub(crate) reclassified: Vec<u32>,
    /// Ranges that were still open when the capture ended.
    pub(crate) unfinished: Vec<u32>,
}

impl Rows {
    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns all rows.
    pub(crate) fn numbers(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.len()).expect("rows fit 32 bits, as absorbing checks")
    }

    /// Returns the end of a row, or `None` when its time or duration is not known.
    pub(crate) fn end_ns(&self, row: u32) -> Option<i64> {
        let (start, dur) = (self.start_ns[row as usize], self.dur_ns[row as usize]);
        (start != NONE && dur != NONE).then(|| start + dur)
    }

    /// Moves all rows of a later block behind these; strings and tracks are renumbered by the given maps.
    pub(crate) fn append(&mut self, block: Self, first_index: u32, strings: &[u32], tracks: &[u32]) {
        let first_row = self.numbers().end;
        let string = |number: u32| {
            if number == NO_ROW {
                NO_ROW
            } else {
                strings[number as usize]
            }
        };
        self.index
            .extend(block.index.into_iter().map(|index| index + first_index));
        self.row_type.extend(block.row_type);
        self.phase.extend(block.phase);
        self.category.extend(block.category.into_iter().map(string));
        self.name.extend(block.name.into_iter().map(string));
        self.start_ns.extend(block.start_ns);
        self.dur_ns.extend(block.dur_ns);
        self.track
            .extend(block.track.into_iter().map(|track| tracks[track as usize]));
        self.correlation.extend(block.correlation);
        self.external.extend(block.external);
        self.shape.extend(block.shape.into_iter().map(string));
        self.placement.append(block.placement, first_row);
        self.sequence.append(block.sequence, first_row);
        self.bytes.append(block.bytes, first_row);
        self.collective_args.append(block.collective_args, first_row);
        self.reclassified
            .extend(block.reclassified.into_iter().map(|row| row + first_row));
        self.unfinished
            .extend(block.unfinished.into_iter().map(|row| row + first_row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interning_gives_one_number_a_text() {
        let mut strings = Strings::default();
        let (a, b) = (strings.intern("a"), strings.intern(""));
        assert_eq!((strings.intern("a"), strings.intern("")), (a, b));
        assert_eq!(strings.iter().collect::<Vec<_>>(), ["a", ""]);
        assert_eq!(strings.get(NO_ROW), "");
    }

    #[test]
    fn sparse_values_are_found_by_row() {
        let mut values = Sparse(vec![(1, 'a'), (4, 'b')]);
        values.append(Sparse(vec![(0, 'c')]), 9);
        assert_eq!(
            [0, 1, 4, 9].map(|row| values.get(row).copied()),
            [None, Some('a'), Some('b'), Some('c')]
        );
    }
}
