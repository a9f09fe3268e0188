//! The stored form of a trace: where its tables lie, and whether they may be trusted.
//!
//! ```text
//! run.json.gz
//! run.json.gz.veloq/                    Place: beside the input, or an entry of the user's cache folder
//!   .pytorch.lock                       held by who builds; gone when nobody does
//!   .pytorch.tmp-<pid>-<random>/        Draft: a build in the making
//!   pytorch/                            Sidecar: complete, because it was renamed into place
//!     CACHEDIR.TAG                      the marker that veloq made this folder
//!     manifest.json                     whose tables these are, and their checksums
//!     events.parquet …                  TABLES
//! ```
//!
//! This module deals in files and knows nothing of what is in the tables. What it promises, whatever is
//! killed, full, read-only, damaged or swapped meanwhile:
//!
//! - **Never a wrong answer.** Tables are used only when the input's [`Fingerprint`] and theirs agree, the
//!   manifest is intact to the bit, and each table has the size and the checksum the manifest tells. Bit rot
//!   of the medium in the middle of a large table is left to the checksums of the Parquet pages.
//! - **Never a foreign file touched.** Only files of known names are removed, only from folders that carry
//!   veloq's marker, and no symbolic link is followed or removed.
//! - **Either an answer or a clear error.** A place that cannot be written is passed over for the next one;
//!   [`Error`] tells what was tried.
//!
//! Nothing is synced to the medium: tables can be built again, and what a power cut leaves behind shows as
//! a wrong size or checksum. No path is made from anything a trace or a manifest says.

mod check;
mod clean;
mod contents;
mod draft;
mod error;
mod fingerprint;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod forge;
mod lock;
mod manifest;
mod place;
mod status;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{info, warn};

use check::inspect;
pub(crate) use check::{Found, Sidecar};
use draft::Claim;
pub(crate) use draft::{Contents, Draft};
pub(crate) use error::Error;
use error::Obstacle;
pub(crate) use fingerprint::Fingerprint;
use place::Place;

/// The version of the stored form.
///
/// Raise it with every change of the tables' layout *and* of what their values mean: tables of another
/// version are built again, tables of the same version are believed.
pub(crate) const FORMAT_VERSION: u32 = 3;

/// The tables of a trace, in the order in which they are listed. Each is the file `<name>.parquet`.
pub(crate) const TABLES: [&str; 5] = ["events", "args", "strings", "tracks", "collectives"];

/// The places where the tables of one input may lie.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    input: PathBuf,
    /// In the order in which they are tried: beside the input, then the cache folder.
    places: Vec<Place>,
    /// How long another build of these tables is waited for.
    patience: Option<Duration>,
}

/// Tables that may be read.
#[derive(Debug)]
pub(crate) struct Obtained {
    pub(crate) sidecar: Sidecar,
    /// Whether this call built them.
    pub(crate) built: bool,
}

impl Store {
    /// Returns the store of an input; nothing is opened.
    ///
    /// The cache folder is `VELOQ_CACHE_DIR`, else `XDG_CACHE_HOME/veloq`, else `~/.cache/veloq`.
    pub(crate) fn new(input: &Path) -> Self {
        Self::with_cache(input, place::cache_folder().as_deref())
    }

    /// Returns the store of an input with a given cache folder.
    pub(crate) fn with_cache(input: &Path, cache: Option<&Path>) -> Self {
        Self {
            input: input.to_owned(),
            places: place::places(input, cache),
            patience: None,
        }
    }

    /// Returns the tables of the input as it is now, if there are any.
    ///
    /// # Errors
    /// `input.…` when there is no such file or it cannot be read.
    #[cfg(test)]
    pub(crate) fn find(&self) -> Result<Found, Error> {
        Ok(self.look(&Fingerprint::of(&self.input)?))
    }

    /// Returns the tables of the input as it is now; has them written when there are none.
    ///
    /// `write` writes every table of [`TABLES`] to [`Draft::path`]. It is called once, and again in the rare
    /// case that the place turns out to be full or was taken away: it must start afresh each time. With
    /// `force` existing tables are built anew.
    ///
    /// Of several processes at once one builds, the others wait for it and reuse its tables. When locks do not
    /// work or the other one takes too long, both build, and the first to finish is published.
    ///
    /// # Errors
    /// What `write` fails with; `input.…`; `input.changed` when the input is not what it was when the build
    /// began; `limit.disk_full` and `limit.no_place` when no place could take the tables.
    pub(crate) fn obtain<E>(
        &self,
        force: bool,
        mut write: impl FnMut(&Draft) -> Result<Contents, E>,
    ) -> Result<Obtained, E>
    where
        E: std::error::Error + From<Error> + 'static,
    {
        let fingerprint = Fingerprint::of(&self.input)?;
        if !force {
            match self.look(&fingerprint) {
                Found::Ready(sidecar) => {
                    return Ok(Obtained {
                        sidecar,
                        built: false,
                    });
                }
                Found::Missing => {}
                Found::Stale(why) => info!("tables are built anew: {why}"),
                Found::Corrupt(damage) => warn!("tables are built anew: {damage}"),
            }
        }
        let mut obstacles = Vec::new();
        for place in &self.places {
            let draft = match self.claim(place, &fingerprint, force) {
                Ok(Claim::Theirs(sidecar)) => {
                    return Ok(Obtained {
                        sidecar,
                        built: false,
                    });
                }
                Ok(Claim::Ours(draft)) => draft,
                Err(obstacle) => {
                    info!("no tables there: {obstacle}");
                    obstacles.push(obstacle);
                    continue;
                }
            };
            let contents = match write(&draft) {
                Ok(contents) => contents,
                Err(error) => {
                    let obstacle = draft.obstacle_of(&error).ok_or(error)?;
                    info!("no tables there: {obstacle}");
                    obstacles.push(obstacle);
                    continue;
                }
            };
            match draft.finish(contents)? {
                Ok(sidecar) => {
                    return Ok(Obtained { sidecar, built: true });
                }
                Err(obstacle) => {
                    info!("no tables there: {obstacle}");
                    obstacles.push(obstacle);
                }
            }
        }
        // An input that has gone meanwhile is the better reason.
        Fingerprint::of(&self.input)?;
        Err(Error::no_place(obstacles).into())
    }

    /// Returns the first usable tables, or why the nearest ones are not usable.
    fn look(&self, fingerprint: &Fingerprint) -> Found {
        let mut nearest = Found::Missing;
        for place in &self.places {
            match inspect(place, fingerprint) {
                Found::Missing => {}
                Found::Ready(sidecar) => return Found::Ready(sidecar),
                found => {
                    if matches!(nearest, Found::Missing) {
                        nearest = found;
                    }
                }
            }
        }
        nearest
    }

    /// Starts a build in a place, unless its tables are there once it is our turn.
    fn claim(&self, place: &Place, fingerprint: &Fingerprint, force: bool) -> Result<Claim, Obstacle> {
        let patience = self.patience.unwrap_or_else(|| patience(fingerprint.size_bytes));
        let lock = place.lock(patience)?;
        // Whoever held the lock before may have built them.
        if !force && let Found::Ready(sidecar) = self.look(fingerprint) {
            return Ok(Claim::Theirs(sidecar));
        }
        Draft::begin(&self.input, place, fingerprint, force, lock).map(Claim::Ours)
    }
}

/// Returns how long another build is waited for: half a minute, and the time a build would take at 10 MB/s,
/// which is slower than any.
fn patience(input_bytes: u64) -> Duration {
    Duration::from_secs(30 + input_bytes / 10_000_000)
}
