//! The names that metadata rows give to processes and threads.

use rustc_hash::FxHashMap;

use super::columns::{NONE, Named, Strings, TrackKey, Tracks};

/// Names of tracks and processes, as string numbers; of several, the most specific.
#[derive(Debug, Default)]
pub(crate) struct TrackNames {
    threads: FxHashMap<u32, u32>,
    processes: FxHashMap<TrackKey, u32>,
    labels: FxHashMap<TrackKey, u32>,
}

/// Returns the key under which a track's process is known.
fn process_of(key: &TrackKey) -> TrackKey {
    TrackKey {
        tid: super::columns::Id::Missing,
        ..*key
    }
}

impl TrackNames {
    /// Takes up a name.
    ///
    /// A thread may be named several times (`thread 639 (python3)`, `thread 639 (pt_autograd_0)`): a name that
    /// threads do not merely inherit from their process wins, then the first by its letters, so that the
    /// order in the file does not matter. Of several names of a process the last is taken.
    pub(crate) fn add(&mut self, named: Named, track: u32, name: u32, tracks: &Tracks, strings: &Strings) {
        let process = process_of(&tracks.keys()[track as usize]);
        match named {
            Named::Process => {
                self.processes.insert(process, name);
            }
            Named::ProcessLabels => {
                self.labels.insert(process, name);
            }
            Named::Thread => {
                let is_inherited = |name: &str| name.contains("(python") || name.contains("(pt_main_thread");
                let rank = |number: u32| {
                    let name = strings.get(number);
                    (is_inherited(name), name)
                };
                let known = self.threads.entry(track).or_insert(name);
                if rank(name) < rank(*known) {
                    *known = name;
                }
            }
        }
    }

    /// Returns how many names there are.
    pub(crate) fn len(&self) -> usize {
        self.threads.len() + self.processes.len() + self.labels.len()
    }

    /// Returns the name of a track's thread.
    pub(crate) fn thread<'s>(&self, track: u32, strings: &'s Strings) -> Option<&'s str> {
        self.threads.get(&track).map(|name| strings.get(*name).trim_end())
    }

    /// Returns the name of a track's process, else its label.
    pub(crate) fn process<'s>(&self, track: u32, tracks: &Tracks, strings: &'s Strings) -> Option<&'s str> {
        let process = process_of(&tracks.keys()[track as usize]);
        let unranked = TrackKey {
            rank: NONE,
            ..process
        };
        let find = |names: &FxHashMap<TrackKey, u32>| names.get(&process).or(names.get(&unranked)).copied();
        find(&self.processes)
            .or(find(&self.labels))
            .map(|name| strings.get(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::columns::Id;

    #[test]
    fn the_most_specific_name_wins_in_any_order() {
        let mut strings = Strings::default();
        let mut tracks = Tracks::default();
        let track = tracks.intern(TrackKey {
            rank: NONE,
            pid: Id::Int(1),
            tid: Id::Int(639),
        });
        let names = [
            "thread 639 (python3)",
            "thread 639 (pt_autograd_0)",
            "thread 639 (pt_main_thread)",
        ];
        let numbers = names.map(|name| strings.intern(name));
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let mut known = TrackNames::default();
            for at in order {
                known.add(Named::Thread, track, numbers[at], &tracks, &strings);
            }
            assert_eq!(known.thread(track, &strings), Some(names[1]));
        }
    }
}
