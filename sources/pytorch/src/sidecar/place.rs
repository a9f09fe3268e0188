//! Where the tables of an input may lie, and how a place is made ready for them.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::hash::BuildHasher as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_128;

use super::contents;
use super::error::{Obstacle, Reason};
use super::lock::{self, Lock};

/// What is appended to an input's name to name the folder of what is derived from it.
const SUFFIX: &str = ".veloq";
/// The tables' folder in it: this source's name.
const SOURCE_FOLDER: &str = "pytorch";
/// The longest part of a file name that a cache entry's name repeats.
const CACHE_NAME_CHARS: usize = 80;

/// One place for the tables of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The folder of all that is derived from the input; other sources have their folders in it.
    root: PathBuf,
    /// Whether the root is in the cache folder: the folders above it may then be created too.
    is_cached: bool,
}

/// Returns the places for an input's tables: beside it, then in the cache folder. None when the path cannot
/// be that of a file.
pub(super) fn places(input: &Path, cache: Option<&Path>) -> Vec<Place> {
    let Some(name) = input.file_name() else {
        return Vec::new();
    };
    let mut beside = OsString::from(name);
    beside.push(SUFFIX);
    let mut places = vec![Place {
        root: input.with_file_name(beside),
        is_cached: false,
    }];
    places.extend(cache.map(|cache| Place {
        root: cache.join(cache_entry(input, name.to_string_lossy().as_ref())),
        is_cached: true,
    }));
    places
}

/// Returns the name of an input's entry in the cache folder: its name, for people, and a hash of the path of
/// the folder it is in, links resolved, and its name. The input itself may be gone.
fn cache_entry(input: &Path, name: &str) -> String {
    let folder = match input.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let folder = fs::canonicalize(folder)
        .or_else(|_| std::path::absolute(folder))
        .unwrap_or_else(|_| folder.to_owned());
    let path = match input.file_name() {
        Some(name) => folder.join(name),
        None => folder,
    };
    let readable: String = name
        .chars()
        .take(CACHE_NAME_CHARS)
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    format!(
        "{readable}-{:032x}{SUFFIX}",
        xxh3_128(path.as_os_str().as_encoded_bytes())
    )
}

/// Returns the user's cache folder for veloq: `VELOQ_CACHE_DIR`, else `XDG_CACHE_HOME/veloq`, else
/// `~/.cache/veloq`. A relative `XDG_CACHE_HOME` is ignored, as the XDG base directory specification says.
pub(super) fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("VELOQ_CACHE_DIR").or_else(|| {
        set("XDG_CACHE_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| {
                std::env::home_dir()
                    .filter(|home| home.is_absolute())
                    .map(|home| home.join(".cache"))
            })
            .map(|cache| cache.join("veloq"))
    })
}

/// What is at a path that should be a folder; symbolic links are not followed.
#[derive(Debug)]
pub(super) enum Folder {
    There,
    Absent,
    /// Something else, or something that cannot be looked at.
    Blocked(Reason),
}

/// Looks at a path that should be a folder.
pub(super) fn folder_at(path: &Path) -> Folder {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Folder::There,
        Ok(metadata) if metadata.is_symlink() => Folder::Blocked(Reason::SymbolicLink),
        Ok(_) => Folder::Blocked(Reason::NotAFolder),
        Err(error) => match error.kind() {
            // A name too long to be looked up is not there.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
                Folder::Absent
            }
            _ => Folder::Blocked(Reason::Io(error)),
        },
    }
}

impl Place {
    /// Returns the folder of all that is derived from the input.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the tables' folder.
    pub(super) fn dir(&self) -> PathBuf {
        self.root.join(SOURCE_FOLDER)
    }

    /// Returns the file whose lock a builder holds.
    pub(super) fn lock_path(&self) -> PathBuf {
        self.root.join(format!(".{SOURCE_FOLDER}.lock"))
    }

    /// Returns the name of a folder that nobody else uses, for a build in the making (`tmp`) or for tables on
    /// their way out (`old`).
    pub(super) fn passing_dir(&self, kind: Passing) -> PathBuf {
        #[expect(
            clippy::disallowed_types,
            reason = "a name nobody else has; no answer depends on it"
        )]
        let random = std::hash::RandomState::new().hash_one(std::process::id());
        let pid = std::process::id();
        self.root.join(format!("{}{pid}-{random:016x}", kind.prefix()))
    }

    /// Returns the folders in the root that are named like builds in the making or tables on their way out,
    /// sorted by name.
    pub(super) fn passing_dirs(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.root) else {
            return Vec::new();
        };
        let mut dirs: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| entry.file_name().to_str().is_some_and(is_passing_name))
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        dirs.sort();
        dirs
    }

    /// Returns whether tables could be looked for and stored here, as far as can be told without trying.
    pub(super) fn is_open(&self) -> bool {
        !matches!(folder_at(&self.root), Folder::Blocked(_))
            && !matches!(folder_at(&self.dir()), Folder::Blocked(_))
    }

    /// Creates the root, if need be, and waits for the lock.
    ///
    /// Tables that are there already must be veloq's own: a folder of that name with anything else in it is
    /// not taken over.
    pub(super) fn lock(&self, patience: Duration) -> Result<Lock, Obstacle> {
        let mut last = Reason::Contended.at(&self.root);
        // Whoever finishes or cleans takes away the lock and the empty folder; then they are made again.
        for _ in 0..16 {
            let attempt = self.create_root().and_then(|created| {
                let folder = created.then_some(self.root());
                self.check_tables_are_ours()
                    .and_then(|()| lock::acquire(&self.lock_path(), folder, patience))
                    .inspect_err(|_| {
                        if let Some(folder) = folder {
                            // Somebody else's by now if it is not empty.
                            let _ = fs::remove_dir(folder);
                        }
                    })
            });
            match attempt {
                Err(obstacle) if obstacle.is_vanished() => last = obstacle,
                done => return done,
            }
        }
        Err(last)
    }

    /// Creates the root if it is not there, and tells whether that was needed.
    fn create_root(&self) -> Result<bool, Obstacle> {
        let at_root = |error| Obstacle::io(&self.root, error);
        if self.is_cached
            && let Some(cache) = self.root.parent()
        {
            private(DirBuilder::new().recursive(true))
                .create(cache)
                .map_err(at_root)?;
        }
        let created = match DirBuilder::new().create(&self.root) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(at_root(error)),
        };
        match folder_at(&self.root) {
            Folder::There => Ok(created),
            Folder::Absent => Err(at_root(io::ErrorKind::NotFound.into())),
            Folder::Blocked(reason) => Err(reason.at(&self.root)),
        }
    }

    /// Makes sure that tables which are there may be replaced.
    pub(super) fn check_tables_are_ours(&self) -> Result<(), Obstacle> {
        let dir = self.dir();
        match folder_at(&dir) {
            Folder::Absent => Ok(()),
            Folder::Blocked(reason) => Err(reason.at(&dir)),
            Folder::There => {
                let survey = contents::survey(&dir).map_err(|error| Obstacle::io(&dir, error))?;
                match survey.foreign.first() {
                    Some(path) => Err(Reason::Foreign.at(path)),
                    None if survey.is_ours || survey.own.is_empty() => Ok(()),
                    None => Err(Reason::Foreign.at(&dir)),
                }
            }
        }
    }
}

/// Why a folder is in the root for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// A build in the making.
    Draft,
    /// Tables on their way out.
    Old,
}

impl Passing {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Draft => ".pytorch.tmp-",
            Self::Old => ".pytorch.old-",
        }
    }
}

/// Returns whether a name is one that [`Place::passing_dir`] gives.
pub(super) fn is_passing_name(name: &str) -> bool {
    [Passing::Draft, Passing::Old].iter().any(|kind| {
        name.strip_prefix(kind.prefix())
            .and_then(|rest| rest.split_once('-'))
            .is_some_and(|(pid, random)| {
                !pid.is_empty()
                    && pid.bytes().all(|byte| byte.is_ascii_digit())
                    && random.len() == 16
                    && random.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
    })
}

/// Makes a builder create folders that only their owner may enter.
fn private(builder: &mut DirBuilder) -> &mut DirBuilder {
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_lie_beside_the_input_then_in_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("rank 0/é.pt.trace.json.gz");
        let places = places(&input, Some(Path::new("/cache")));
        assert_eq!(
            places[0].dir(),
            folder.path().join("rank 0/é.pt.trace.json.gz.veloq/pytorch")
        );
        let entry = places[1].root().strip_prefix("/cache").unwrap().to_str().unwrap();
        assert!(
            entry.starts_with("_.pt.trace.json.gz-") && entry.ends_with(".veloq"),
            "{entry}"
        );
        assert_eq!(entry.len(), "_.pt.trace.json.gz-".len() + 32 + ".veloq".len());
    }

    #[test]
    fn cache_entries_tell_folders_apart_and_links_together() {
        let folder = tempfile::tempdir().unwrap();
        let entry = |path: &str| cache_entry(&folder.path().join(path), "t.json");
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        assert_ne!(entry("a/t.json"), entry("b/t.json"));
        assert_eq!(entry("a/t.json"), entry("b/../a/t.json"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.path().join("a"), folder.path().join("link")).unwrap();
            assert_eq!(entry("a/t.json"), entry("link/t.json"));
        }
    }

    #[test]
    fn long_names_get_short_cache_entries() {
        let entry = cache_entry(Path::new("x"), &"y".repeat(255));
        assert!(entry.len() < 128);
    }

    #[test]
    fn paths_that_name_no_file_have_no_places() {
        assert!(places(Path::new(".."), None).is_empty());
        assert!(places(Path::new("/"), None).is_empty());
    }

    #[test]
    fn only_names_given_here_are_taken_for_our_folders() {
        let place = &places(Path::new("t.json"), None)[0];
        for kind in [Passing::Draft, Passing::Old] {
            let dir = place.passing_dir(kind);
            assert_ne!(dir, place.passing_dir(kind));
            assert!(is_passing_name(dir.file_name().unwrap().to_str().unwrap()));
        }
        for name in [
            ".pytorch.tmp-",
            ".pytorch.tmp-1-2",
            ".pytorch.tmp-x-0123456789abcdef",
            "pytorch",
        ] {
            assert!(!is_passing_name(name), "{name}");
        }
    }
}
