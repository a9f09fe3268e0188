//! Which rows share ids: the ranks of a file.
//!
//! Correlations, external ids, flows and streams are numbers of one process, and merge tools put several
//! processes into one file without renumbering them. So every id is scoped by *rank group*: the rank that a
//! merge tool wrote into `args.rank`, else the bracketed prefix of the pid (`[TP00-DP01] 251`), else the
//! file itself.

use std::collections::BTreeMap;

use crate::ingest::columns::{Id, NONE, Strings, Tracks};

/// One rank's share of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankGroup {
    /// The rank, if it is known.
    pub(crate) rank: Option<i64>,
    /// The merge tool's label of it, where ranks have labels.
    pub(crate) label: Option<String>,
}

/// The rank groups of a file, and each track's.
#[derive(Debug)]
pub(crate) struct Ranks {
    /// At least one; sorted by rank, then label.
    pub(crate) groups: Vec<RankGroup>,
    /// Group number of each track.
    pub(crate) of_track: Vec<u16>,
    /// Whether ranks were numbered here, by the order of their labels, as no label gives one.
    pub(crate) is_numbered: bool,
}

impl Ranks {
    /// Returns whether the file holds more than one rank.
    pub(crate) fn is_merged(&self) -> bool {
        self.groups.len() > 1
    }

    /// Returns the rank of a track, or [`NONE`].
    pub(crate) fn rank_of(&self, track: u32) -> i64 {
        self.groups[usize::from(self.of_track[track as usize])]
            .rank
            .unwrap_or(NONE)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    File,
    Rank(i64),
    Label(String),
}

/// Returns `TP00-DP01` of the pid text `[TP00-DP01] 251`.
fn label_of(pid: &str) -> Option<&str> {
    let (label, rest) = pid.strip_prefix('[')?.split_once(']')?;
    (!label.is_empty() && rest.trim_start().parse::<i64>().is_ok()).then_some(label)
}

/// Returns the rank that a label of a single axis gives: 3 for `TP03` or `rank3`.
fn rank_in_label(label: &str) -> Option<i64> {
    let digits_at = label.find(|c: char| c.is_ascii_digit())?;
    let (axis, digits) = label.split_at(digits_at);
    let is_single = axis
        .chars()
        .all(|c| c.is_ascii_alphabetic() || matches!(c, ' ' | '_'));
    if is_single { digits.parse().ok() } else { None }
}

/// Groups the tracks by rank.
///
/// `file_rank` is the rank the header or the file's name gives. `has_rows` tells which tracks hold event
/// rows: tracks that only metadata names make no rank of their own.
pub(crate) fn group_by_rank(
    tracks: &Tracks,
    strings: &Strings,
    has_rows: &[bool],
    file_rank: Option<i64>,
) -> Ranks {
    let scope_of = |key: &crate::ingest::columns::TrackKey| {
        if key.rank != NONE {
            return Scope::Rank(key.rank);
        }
        match key.pid {
            Id::Text(number) => {
                label_of(strings.get(number)).map_or(Scope::File, |l| Scope::Label(l.to_owned()))
            }
            Id::Missing | Id::Int(_) => Scope::File,
        }
    };
    let mut scopes: BTreeMap<Scope, u16> = BTreeMap::new();
    for (key, _) in tracks
        .keys()
        .iter()
        .zip(has_rows)
        .filter(|(_, has_rows)| **has_rows)
    {
        scopes.insert(scope_of(key), 0);
    }
    // Rows that a merge tool left unmarked (profiler marks with text pids) are no rank beside marked ones.
    if scopes.len() > 1 {
        let unmarked_is_noise = tracks
            .keys()
            .iter()
            .zip(has_rows)
            .filter(|(key, has_rows)| **has_rows && scope_of(key) == Scope::File)
            .all(|(key, _)| matches!(key.pid, Id::Text(_) | Id::Missing));
        if unmarked_is_noise {
            scopes.remove(&Scope::File);
        }
    }
    for (number, group) in scopes.values_mut().enumerate() {
        *group = u16::try_from(number).unwrap_or(u16::MAX);
    }
    let labels: Vec<&String> = scopes
        .keys()
        .filter_map(|scope| {
            if let Scope::Label(label) = scope {
                Some(label)
            } else {
                None
            }
        })
        .collect();
    let numbers: Option<Vec<i64>> = labels.iter().map(|label| rank_in_label(label)).collect();
    let numbers = numbers.filter(|numbers| {
        let mut unique = numbers.clone();
        unique.sort_unstable();
        unique.dedup();
        unique.len() == numbers.len()
    });
    let is_numbered = !labels.is_empty() && numbers.is_none();
    let numbers = numbers.unwrap_or_else(|| (0..).take(labels.len()).collect());
    let mut label_ranks = numbers.into_iter();
    let mut groups: Vec<RankGroup> = scopes
        .keys()
        .map(|scope| match scope {
            Scope::File => RankGroup {
                rank: file_rank,
                label: None,
            },
            Scope::Rank(rank) => RankGroup {
                rank: Some(*rank),
                label: None,
            },
            Scope::Label(label) => RankGroup {
                rank: label_ranks.next(),
                label: Some(label.clone()),
            },
        })
        .collect();
    if groups.is_empty() {
        groups.push(RankGroup {
            rank: file_rank,
            label: None,
        });
    }
    let of_track = tracks
        .keys()
        .iter()
        .map(|key| scopes.get(&scope_of(key)).copied().unwrap_or(0))
        .collect();
    Ranks {
        groups,
        of_track,
        is_numbered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::columns::TrackKey;

    fn ranks_of(pids: &[&str], file_rank: Option<i64>) -> Vec<Option<i64>> {
        let mut strings = Strings::default();
        let mut tracks = Tracks::default();
        for pid in pids {
            let pid = pid
                .parse()
                .map_or_else(|_| Id::Text(strings.intern(pid)), Id::Int);
            tracks.intern(TrackKey {
                rank: NONE,
                pid,
                tid: Id::Int(1),
            });
        }
        let ranks = group_by_rank(&tracks, &strings, &vec![true; tracks.keys().len()], file_rank);
        ranks
            .of_track
            .iter()
            .map(|group| ranks.groups[usize::from(*group)].rank)
            .collect()
    }

    #[test]
    fn plain_pids_have_the_rank_of_the_file() {
        assert_eq!(ranks_of(&["251", "0", "Spans"], Some(5)), [Some(5); 3]);
        assert_eq!(ranks_of(&["251"], None), [None]);
    }

    #[test]
    fn labels_with_one_axis_give_the_rank() {
        assert_eq!(
            ranks_of(&["[TP03] 251", "[TP01] 251", "[TP03] 0"], Some(0)),
            [Some(3), Some(1), Some(3)]
        );
    }

    #[test]
    fn labels_with_several_axes_are_numbered_in_order() {
        assert_eq!(
            ranks_of(&["[TP01-DP00] 9", "[TP00-DP00] 9", "Spans"], None),
            [Some(1), Some(0), Some(0)]
        );
    }
}
