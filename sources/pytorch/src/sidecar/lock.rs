//! One builder at a time, as far as the file system has locks.
//!
//! The lock is the operating system's: it vanishes with the process that holds it, however that ends. Its file
//! is removed by whoever held it last, so that a folder of tables holds nothing else; a waiter therefore makes
//! sure that the file it has locked is still the one under the name.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::error::{Obstacle, Reason};

/// How often a lock that another process holds is tried, at first and in the long run.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The right to build in a place until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    /// The locked file; `None` when locks do not work there or the holder takes too long.
    held: Option<File>,
    /// The folder that was created to hold the lock: goes when nothing else came into it.
    folder: Option<PathBuf>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Only the holder removes the file, while it holds it; what cannot be removed does no harm.
        if self.held.is_some() {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Waits for a lock. After `patience`, and where there are no locks, goes on without: two builds at once cost
/// time and do no harm.
///
/// `folder` is removed together with the lock if it is empty then.
///
/// # Errors
/// When the file cannot be created, or something else is in its place.
pub(super) fn acquire(path: &Path, folder: Option<&Path>, patience: Duration) -> Result<Lock, Obstacle> {
    let lock = |held| Lock {
        path: path.to_owned(),
        held,
        folder: folder.map(Path::to_owned),
    };
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Reason::NotAFile.at(path));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| Obstacle::io(path, error))?;
        match attempt(file, path) {
            Attempt::Held(file) => return Ok(lock(Some(file))),
            Attempt::Replaced => {}
            Attempt::Unsupported(error) => {
                info!("`{}` cannot be locked: {error}", path.display());
                // The file stays for others who may be told the same.
                return Ok(lock(None));
            }
            Attempt::Busy if began.elapsed() >= patience => {
                warn!(
                    "another process holds `{}` for too long; going on without it",
                    path.display()
                );
                return Ok(lock(None));
            }
            Attempt::Busy => {
                if pause == FIRST_PAUSE {
                    info!("waiting for another process that reads the same trace");
                }
                thread::sleep(pause);
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        }
    }
}

/// What came of trying a lock once.
#[derive(Debug)]
pub(super) enum Attempt {
    Held(File),
    /// Somebody else holds it.
    Busy,
    /// The locked file is no longer the one under the path.
    Replaced,
    Unsupported(io::Error),
}

/// Tries to lock a file that was opened at a path.
pub(super) fn attempt(file: File, path: &Path) -> Attempt {
    loop {
        return match file.try_lock() {
            Ok(()) if is_at(&file, path) => Attempt::Held(file),
            Ok(()) => Attempt::Replaced,
            Err(TryLockError::WouldBlock) => Attempt::Busy,
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(TryLockError::Error(error)) => Attempt::Unsupported(error),
        };
    }
}

/// Returns whether an open file is the one at a path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Returns true: elsewhere an open file keeps its name.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = acquire(&path, None, Duration::ZERO).unwrap();
        assert!(first.held.is_some());
        let second = thread::spawn({
            let path = path.clone();
            move || acquire(&path, None, Duration::from_secs(60)).unwrap()
        });
        thread::sleep(Duration::from_millis(30));
        assert!(!second.is_finished());
        drop(first);
        let second = second.join().unwrap();
        assert!(second.held.is_some());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn goes_on_without_a_lock_that_does_not_come_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = acquire(&path, None, Duration::ZERO).unwrap();
        let second = acquire(&path, None, Duration::from_millis(10)).unwrap();
        assert!(second.held.is_none());
        drop(second);
        assert!(path.exists(), "the lock is the first one's to remove");
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn takes_away_the_folder_made_for_it_when_nothing_else_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("root");
        for keep in [false, true] {
            fs::create_dir(&folder).unwrap();
            let lock = acquire(&folder.join("lock"), Some(&folder), Duration::ZERO).unwrap();
            if keep {
                fs::write(folder.join("tables"), "").unwrap();
            }
            drop(lock);
            assert_eq!(folder.exists(), keep);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_the_lock_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::os::unix::fs::symlink(folder.path().join("victim"), &path).unwrap();
        assert!(acquire(&path, None, Duration::ZERO).is_err());
        assert!(!folder.path().join("victim").exists());
    }
}
