//! Names of tracks without rows: kept while there are few, passed over when there are so many that they would
//! fill the memory.

use super::collect::Counts;
use super::columns::{Flow, Id, NO_ROW, Named, Rows, Strings, TrackKey, Tracks};

/// So many names are taken up whether their tracks hold rows or not; they take a quarter of a gigabyte at
/// most. Real traces name a few thousand tracks.
pub(super) const NAMES: usize = 1 << 20;

/// What a block holds besides names.
pub(super) struct Content<'b> {
    pub(super) rows: &'b Rows,
    pub(super) flows: &'b [Flow],
    pub(super) counts: &'b Counts,
    pub(super) strings: &'b Strings,
    pub(super) tracks: &'b Tracks,
}

/// Which of a block's strings and tracks are of use.
pub(super) struct Used {
    pub(super) strings: Vec<bool>,
    pub(super) tracks: Vec<bool>,
}

/// Drops the names of tracks that hold no row, here or before, as far as `known` and `known_strings` tell.
/// Returns what is of use then, and how many names were dropped.
pub(super) fn drop_idle(
    names: &mut Vec<(Named, u32, u32)>,
    content: &Content<'_>,
    known: &Tracks,
    known_strings: &Strings,
) -> (Used, u64) {
    let mut used = Used {
        strings: vec![false; content.strings.len()],
        tracks: vec![false; content.tracks.keys().len()],
    };
    let with_rows = content.rows.track.iter();
    for track in with_rows.chain(content.flows.iter().map(|flow| &flow.track)) {
        used.tracks[*track as usize] = true;
    }
    let before = names.len();
    names.retain(|(_, track, _)| {
        let at = *track as usize;
        if !used.tracks[at] {
            let known_id = |id: Id| match id {
                Id::Text(number) => known_strings.find(content.strings.get(number)).map(Id::Text),
                other => Some(other),
            };
            let key = content.tracks.keys()[at];
            let key = known_id(key.pid)
                .zip(known_id(key.tid))
                .map(|(pid, tid)| TrackKey { pid, tid, ..key });
            used.tracks[at] = key.is_some_and(|key| known.find(key).is_some());
        }
        used.tracks[at]
    });
    let Content { rows, .. } = content;
    let columns = rows.category.iter().chain(&rows.name).chain(&rows.shape).copied();
    let flow_ids = content.flows.iter().map(|flow| flow.id);
    let tracks = content.tracks.keys().iter().zip(&used.tracks);
    let track_ids = tracks
        .filter(|(_, is_used)| **is_used)
        .flat_map(|(key, _)| [key.pid, key.tid]);
    let ids = flow_ids.chain(track_ids).filter_map(|id| match id {
        Id::Text(number) => Some(number),
        Id::Missing | Id::Int(_) => None,
    });
    let categories = content.counts.categories.keys().copied();
    let kept = names.iter().map(|(_, _, name)| *name);
    for number in columns.chain(ids).chain(categories).chain(kept) {
        if number != NO_ROW {
            used.strings[number as usize] = true;
        }
    }
    (used, (before - names.len()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::columns::NONE;

    #[test]
    fn names_are_kept_of_tracks_with_rows_only() {
        let key = |tid: Id| TrackKey {
            rank: NONE,
            pid: Id::Int(1),
            tid,
        };
        let (mut strings, mut known_strings) = (Strings::default(), Strings::default());
        let (mut tracks, mut known) = (Tracks::default(), Tracks::default());
        known_strings.intern("other");
        known.intern(key(Id::Text(known_strings.intern("before"))));
        let busy = tracks.intern(key(Id::Int(7)));
        let idle = tracks.intern(key(Id::Text(strings.intern("idle"))));
        let before = tracks.intern(key(Id::Text(strings.intern("before"))));
        let name = strings.intern("a thread");
        let unused = strings.intern("an idle thread");
        let flows = [Flow {
            id: Id::Int(1),
            is_start: true,
            track: busy,
            at_ns: 0,
        }];
        let mut names = vec![
            (Named::Thread, busy, name),
            (Named::Thread, idle, unused),
            (Named::Thread, before, name),
        ];
        let content = Content {
            rows: &Rows::default(),
            flows: &flows,
            counts: &Counts::default(),
            strings: &strings,
            tracks: &tracks,
        };
        let (used, dropped) = drop_idle(&mut names, &content, &known, &known_strings);
        assert_eq!(dropped, 1);
        assert_eq!(
            names,
            [(Named::Thread, busy, name), (Named::Thread, before, name)]
        );
        assert_eq!(used.tracks, [true, false, true]);
        assert_eq!(used.strings, [false, true, true, false]);
    }
}
