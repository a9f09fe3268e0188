//! A build: written where nobody looks, and renamed into place when it is complete.

use std::error::Error as StdError;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::value::RawValue;
use tracing::info;

use super::check::{CLOCK_TICK_NS, Found, Sidecar, checksum_of_last, inspect, is_coarse, tail_bytes};
use super::contents::{MANIFEST_FILE, MARKER, MARKER_FILE, remove, survey, table_file};
use super::error::{Error, Obstacle, Reason, is_full};
use super::fingerprint::{Fingerprint, Stamp, changed_ns, since_epoch_ns};
use super::lock::{self, Attempt, Lock};
use super::manifest::{Manifest, TableFile};
use super::place::{Folder, Passing, Place, folder_at};
use super::{FORMAT_VERSION, TABLES};

/// How long the leftovers of a build are kept where locks cannot tell whether it still runs.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// What the turn to build came to.
#[derive(Debug)]
pub(super) enum Claim {
    /// Somebody else built the tables meanwhile.
    Theirs(Sidecar),
    Ours(Draft),
}

/// What a build wrote, apart from the tables themselves.
#[derive(Debug)]
pub(crate) struct Contents {
    /// The rows of each table, in the order of [`TABLES`].
    pub(crate) rows: [u64; TABLES.len()],
    /// What is to be known of the tables without opening any.
    pub(crate) inventory: Box<RawValue>,
}

/// A folder for tables in the making; removed with all that was written unless it is finished.
#[derive(Debug)]
pub(crate) struct Draft {
    input: PathBuf,
    place: Place,
    /// The input as it was before it was opened.
    fingerprint: Fingerprint,
    /// Whether tables of the same input are replaced.
    force: bool,
    dir: PathBuf,
    /// Tells others that this build is alive. Closed before the place's lock is given up.
    _marker: File,
    _lock: Lock,
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After publication there is nothing under this name. What cannot be removed now is swept up by the
        // next build, or by `clean`.
        if let Ok(survey) = survey(&self.dir) {
            remove(&self.dir, survey);
        }
    }
}

impl Draft {
    /// Creates the folder of a build, and clears away those of builds that were killed.
    pub(super) fn begin(
        input: &Path,
        place: &Place,
        fingerprint: &Fingerprint,
        force: bool,
        lock: Lock,
    ) -> Result<Self, Obstacle> {
        sweep(place);
        let mut last = Reason::Contended.at(place.root());
        for _ in 0..16 {
            let dir = place.passing_dir(Passing::Draft);
            match create(&dir, input) {
                Ok(marker) => {
                    return Ok(Self {
                        input: input.to_owned(),
                        place: place.clone(),
                        fingerprint: fingerprint.clone(),
                        force,
                        dir,
                        _marker: marker,
                        _lock: lock,
                    });
                }
                Err(error) => {
                    let _ = survey(&dir).map(|survey| remove(&dir, survey));
                    last = Obstacle::io(place.root(), error);
                    if !last.is_vanished() {
                        break;
                    }
                }
            }
        }
        Err(last)
    }

    /// Returns the path at which a table is to be written.
    pub(crate) fn path(&self, table: &str) -> PathBuf {
        self.dir.join(table_file(table))
    }

    /// Returns what is wrong with this place if that is why writing to it failed.
    pub(super) fn obstacle_of(&self, error: &(dyn StdError + 'static)) -> Option<Obstacle> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<io::Error>()
                && (is_full(error) || error.kind() == io::ErrorKind::ReadOnlyFilesystem)
            {
                return Some(Obstacle::io(self.place.root(), copy(error)));
            }
            cause = error.source();
        }
        (!matches!(folder_at(&self.dir), Folder::There))
            .then(|| Obstacle::io(self.place.root(), io::ErrorKind::NotFound.into()))
    }

    /// Publishes the tables, or returns what is wrong with this place.
    ///
    /// # Errors
    /// `input.changed` when the input is not what it was when the build began, and `input.…` when it is no
    /// longer there; `internal.table_not_written`.
    pub(super) fn finish(self, contents: Contents) -> Result<Result<Sidecar, Obstacle>, Error> {
        let mut tables = Vec::with_capacity(TABLES.len());
        for (table, rows) in TABLES.into_iter().zip(contents.rows) {
            match self.describe(table, rows) {
                Ok(described) => tables.push(described),
                Err(error) => {
                    return match self.obstacle_of(&error) {
                        None if error.kind() == io::ErrorKind::NotFound => Err(Error::TableNotWritten {
                            table: table.to_owned(),
                        }),
                        obstacle => Ok(Err(
                            obstacle.unwrap_or_else(|| Obstacle::io(&self.path(table), error))
                        )),
                    };
                }
            }
        }
        // All of the input has been read by now: was it one and the same?
        if Fingerprint::of(&self.input)? != self.fingerprint {
            return Err(Error::InputChanged {
                path: self.input.clone(),
            });
        }
        let manifest = Manifest {
            format_version: FORMAT_VERSION,
            veloq_version: env!("CARGO_PKG_VERSION").to_owned(),
            input: self.fingerprint.clone(),
            tables,
            inventory: contents.inventory,
        };
        Ok(self.publish(manifest))
    }

    fn publish(&self, manifest: Manifest) -> Result<Sidecar, Obstacle> {
        let path = self.dir.join(MANIFEST_FILE);
        manifest
            .to_text()
            .map_err(io::Error::from)
            .and_then(|text| fs::write(&path, text))
            .map_err(|error| Obstacle::io(self.place.root(), error))?;
        let sidecar = Sidecar::open_dir(&self.dir, manifest)
            .map_err(|damage| Obstacle::io(&self.dir, io::Error::new(io::ErrorKind::InvalidData, damage)))?;
        let dir = self.place.dir();
        // Others may publish and clean at the same time, where locks do not keep them apart.
        for _ in 0..16 {
            match fs::rename(&self.dir, &dir) {
                Ok(()) => return Ok(sidecar.moved_to(dir)),
                Err(error) => match folder_at(&dir) {
                    Folder::There => {}
                    Folder::Blocked(reason) => return Err(reason.at(&dir)),
                    Folder::Absent => return Err(Obstacle::io(&dir, error)),
                },
            }
            if !self.force
                && let Found::Ready(theirs) = inspect(&self.place, &self.fingerprint)
            {
                return Ok(theirs);
            }
            self.move_aside(&dir)?;
        }
        Err(Reason::Contended.at(&dir))
    }

    /// Makes room for new tables. There is no way to swap two folders at once: who looks between the two
    /// renames finds no tables, and waits for the lock.
    fn move_aside(&self, dir: &Path) -> Result<(), Obstacle> {
        self.place.check_tables_are_ours()?;
        let aside = self.place.passing_dir(Passing::Old);
        match fs::rename(dir, &aside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Obstacle::io(dir, error)),
        }
        if let Ok(survey) = survey(&aside) {
            remove(&aside, survey);
        }
        Ok(())
    }

    fn describe(&self, table: &str, rows: u64) -> io::Result<TableFile> {
        let mut file = File::open(self.path(table))?;
        let bytes = file.metadata()?.len();
        let checksum = checksum_of_last(&mut file, bytes)?;
        let tail_checksum = checksum_of_last(&mut file, tail_bytes(bytes))?;
        let stamp = if tail_bytes(bytes) == bytes {
            // Read whole each time anyway.
            None
        } else {
            let metadata = file.metadata()?;
            outlive_tick(&metadata).then(|| Stamp::of(&metadata))
        };
        Ok(TableFile {
            name: table.to_owned(),
            file: table_file(table),
            rows,
            bytes,
            checksum,
            tail_checksum,
            stamp,
        })
    }
}

/// Waits until a later write to a file would show in its stamp, and returns whether that can be relied on.
fn outlive_tick(metadata: &Metadata) -> bool {
    let Some(changed) = changed_ns(metadata).filter(|_| !is_coarse(metadata)) else {
        return false;
    };
    let age = since_epoch_ns(SystemTime::now()) - changed;
    if (0..CLOCK_TICK_NS).contains(&age) {
        thread::sleep(Duration::from_nanos(
            u64::try_from(CLOCK_TICK_NS - age).unwrap_or(0),
        ));
    }
    // Negative when the clock was set back since, or when a server on the net keeps the file's times.
    age >= 0
}

/// Creates a build's folder with its marker, locked.
fn create(dir: &Path, input: &Path) -> io::Result<File> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        // Who may not read the trace may not read its tables.
        let read = fs::metadata(input)?.permissions().mode() & 0o044;
        builder.mode(0o700 | read | read >> 2);
    }
    #[cfg(not(unix))]
    let _ = input;
    builder.create(dir)?;
    let path = dir.join(MARKER_FILE);
    let marker = File::options().write(true).create_new(true).open(&path)?;
    match lock::attempt(marker.try_clone()?, &path) {
        Attempt::Held(_) | Attempt::Unsupported(_) => {}
        // Somebody took the new folder for a leftover.
        Attempt::Busy | Attempt::Replaced => return Err(io::ErrorKind::NotFound.into()),
    }
    (&marker).write_all(MARKER.as_bytes())?;
    Ok(marker)
}

/// Removes what killed builds left in a place.
fn sweep(place: &Place) {
    for dir in place.passing_dirs() {
        if let Some(leftover) = leftover(&dir) {
            info!("removing what a killed build left in `{}`", dir.display());
            remove(&dir, leftover.survey);
        }
    }
}

/// What a build that no longer runs left behind.
#[derive(Debug)]
pub(super) struct Leftover {
    pub(super) survey: super::contents::Survey,
    /// Keeps others from taking it for a leftover too.
    _marker: Option<File>,
}

/// Returns the contents of a build's folder if veloq made it and its build no longer runs.
pub(super) fn leftover(dir: &Path) -> Option<Leftover> {
    let survey = survey(dir).ok()?;
    if !survey.is_ours && !survey.is_unborn {
        return None;
    }
    let path = dir.join(MARKER_FILE);
    let marker = match File::options().read(true).write(true).open(&path) {
        Ok(marker) => match lock::attempt(marker, &path) {
            Attempt::Held(marker) => Some(marker),
            Attempt::Busy | Attempt::Replaced => return None,
            Attempt::Unsupported(_) => {
                let age = fs::metadata(dir)
                    .and_then(|metadata| metadata.modified())
                    .ok()?
                    .elapsed()
                    .ok()?;
                if age < ABANDONED_AFTER {
                    return None;
                }
                None
            }
        },
        Err(_) => None,
    };
    Some(Leftover {
        survey,
        _marker: marker,
    })
}

/// Returns an error of the same kind and number.
fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => error.kind().into(),
    }
}
