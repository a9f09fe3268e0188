//! Paths of Python frames: the names of all frames around a row, outermost first.

use rustc_hash::FxHashMap;

use crate::query::by_index::ByIndex;
use crate::query::chain::Chains;
use crate::session::StringTable;

/// Frames of a path beyond this many are cut off, outermost first.
const MAX_FRAMES: usize = 100;

/// A path: that of the frame around, and one more name.
#[derive(Debug)]
struct Path {
    outer: Option<u32>,
    /// String id.
    name: u32,
}

/// All paths of a trace, numbered; frames called the same way share one.
#[derive(Debug, Default)]
pub(super) struct Paths {
    paths: Vec<Path>,
    /// The number of the path that ends in each frame, as it is shown: paths that differ only beyond
    /// [`MAX_FRAMES`] are one.
    pub(super) of_frame: ByIndex,
}

impl Paths {
    /// Numbers the paths of frames, given the string ids of their names and the frames around them.
    pub(super) fn new(names: &ByIndex, outer: &Chains) -> Self {
        let mut paths = Self::default();
        let mut whole = ByIndex::default();
        let mut numbers: FxHashMap<(Option<u32>, u32), u32> = FxHashMap::default();
        let mut unnumbered = Vec::new();
        for frame in names.indices() {
            let mut path = None;
            for around in outer.inner_first(Some(frame)) {
                path = whole.get(around);
                if path.is_some() {
                    break;
                }
                unnumbered.push(around);
            }
            for frame in unnumbered.drain(..).rev() {
                let Some(name) = names.get(frame) else { continue };
                let next = u32::try_from(paths.paths.len()).expect("fewer paths than rows");
                let number = *numbers.entry((path, name)).or_insert(next);
                if number == next {
                    paths.paths.push(Path { outer: path, name });
                }
                whole.put(frame, number);
                path = Some(number);
            }
        }
        let mut shown_as: FxHashMap<(Vec<u32>, bool), u32> = FxHashMap::default();
        let count = u32::try_from(paths.paths.len()).expect("fewer paths than rows");
        let mut depths: Vec<usize> = Vec::with_capacity(paths.paths.len());
        let mut shown = Vec::with_capacity(paths.paths.len());
        for number in 0..count {
            let outer = paths.paths[number as usize].outer;
            let depth = outer.map_or(0, |outer| depths[outer as usize]) + 1;
            depths.push(depth);
            shown.push(if depth <= MAX_FRAMES {
                number
            } else {
                *shown_as.entry(paths.names(number)).or_insert(number)
            });
        }
        for frame in whole.indices() {
            if let Some(number) = whole.get(frame) {
                paths.of_frame.put(frame, shown[number as usize]);
            }
        }
        paths
    }

    /// Returns the string ids of a path's names, innermost first, and whether outer ones were cut off.
    fn names(&self, number: u32) -> (Vec<u32>, bool) {
        let mut chain = std::iter::successors(self.paths.get(number as usize), |path| {
            path.outer.and_then(|outer| self.paths.get(outer as usize))
        });
        let names = chain.by_ref().take(MAX_FRAMES).map(|path| path.name).collect();
        (names, chain.next().is_some())
    }

    /// Returns a path in words: `train.py(1): <module> > model.py(7): forward`.
    pub(super) fn text(&self, number: u32, strings: &StringTable) -> String {
        let (names, is_cut) = self.names(number);
        let mut words: Vec<&str> = is_cut.then_some("…").into_iter().collect();
        words.extend(names.iter().rev().map(|name| strings.get(*name)));
        words.join(" > ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames in file order, as (index, name, frame around).
    fn paths(frames: &[(u32, u32, Option<u32>)]) -> Paths {
        let names = frames.iter().map(|(index, name, _)| (*index, *name)).collect();
        let outer = frames
            .iter()
            .filter_map(|(index, _, outer)| Some((*index, (*outer)?)));
        Paths::new(&names, &Chains::from_links(outer))
    }

    #[test]
    fn frames_called_the_same_way_share_a_path() {
        // `main` calls `step` twice, `other` calls it once; the first child is listed before its parent.
        let paths = paths(&[
            (2, 20, Some(5)),
            (5, 10, None),
            (6, 20, Some(5)),
            (8, 11, None),
            (9, 20, Some(8)),
        ]);
        let of = |frame| paths.of_frame.get(frame).unwrap();
        assert_eq!(of(2), of(6));
        assert_ne!(of(2), of(9));
        assert_eq!(paths.names(of(9)), (vec![20, 11], false));
    }

    #[test]
    fn paths_that_are_cut_to_the_same_frames_are_one() {
        // Two stacks of 101 frames of one name, under different outermost names.
        let depth = u32::try_from(MAX_FRAMES).unwrap() + 1;
        let stack = |first: u32, outermost_name: u32| {
            (0..depth).map(move |at| {
                let name = if at == 0 { outermost_name } else { 7 };
                (first + at, name, (at > 0).then(|| first + at - 1))
            })
        };
        let frames: Vec<_> = stack(0, 1).chain(stack(1_000, 2)).collect();
        let paths = paths(&frames);
        let of = |frame| paths.of_frame.get(frame).unwrap();
        assert_eq!(of(depth - 1), of(1_000 + depth - 1));
        assert_ne!(of(depth - 2), of(1_000 + depth - 2));
        assert!(paths.names(of(depth - 1)).1);
    }
}
