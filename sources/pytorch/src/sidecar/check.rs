//! Whether tables that are there may be used.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::TABLES;
use super::contents::{MANIFEST_FILE, table_file};
use super::fingerprint::{Fingerprint, Stamp};
use super::manifest::{self, Manifest, NotAManifest, TableFile};
use super::place::{Folder, Place, folder_at};

/// What was found of an input's tables.
#[derive(Debug)]
pub(crate) enum Found {
    /// Complete, intact, and of this input.
    Ready(Sidecar),
    /// None.
    Missing,
    /// Intact, but of another input or another format version.
    Stale(Staleness),
    /// Damaged.
    Corrupt(Damage),
}

/// Why intact tables are not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Staleness {
    #[error("the stored tables are of format {0}")]
    Format(u32),
    #[error("the trace has changed since its tables were stored")]
    Input,
}

/// What is wrong with stored tables.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Damage {
    #[error("`{}` is damaged", path.display())]
    Manifest { path: PathBuf },
    #[error("the table `{}` is missing", path.display())]
    TableMissing { path: PathBuf },
    #[error("the table `{}` has {found} bytes instead of {expected}", path.display())]
    TableSize {
        path: PathBuf,
        expected: u64,
        found: u64,
    },
    #[error("the table `{}` is damaged", path.display())]
    TableContent { path: PathBuf },
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Tables that were complete, intact, and of the input when they were looked at.
#[derive(Debug)]
pub(crate) struct Sidecar {
    dir: PathBuf,
    manifest: Manifest,
    /// The files that were looked at, in the order of the manifest.
    seen: Vec<Stamp>,
}

impl Sidecar {
    /// Returns the folder of the tables.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns what is stored about the tables.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the path of a table's file. Whoever opens it by path asks [`is_current`](Self::is_current)
    /// after reading: another process may have put the tables of another input there.
    pub(crate) fn path(&self, table: &str) -> PathBuf {
        self.dir.join(table_file(table))
    }

    /// Opens a table's file: the very file that was looked at, whatever becomes of it afterwards.
    ///
    /// # Errors
    /// `NotFound` when it has been removed or replaced since; obtaining the tables again helps.
    #[cfg(test)]
    pub(crate) fn open(&self, table: &str) -> io::Result<File> {
        let file = File::open(self.path(table))?;
        let stamp = Stamp::of(&file.metadata()?);
        let seen = self
            .manifest
            .tables
            .iter()
            .zip(&self.seen)
            .any(|(known, seen)| known.name == table && *seen == stamp);
        if seen {
            Ok(file)
        } else {
            Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the table has been replaced",
            ))
        }
    }

    /// Returns whether every table's path still leads to the file that was looked at.
    pub(crate) fn is_current(&self) -> bool {
        self.manifest.tables.iter().zip(&self.seen).all(|(table, seen)| {
            fs::symlink_metadata(self.path(&table.name)).is_ok_and(|metadata| Stamp::of(&metadata) == *seen)
        })
    }

    /// Reads all tables through, and compares each with its checksum.
    ///
    /// # Errors
    /// The first damage.
    pub(crate) fn verify(&self) -> Result<(), Damage> {
        self.manifest
            .tables
            .iter()
            .try_for_each(|table| check_table(&self.dir, table, Depth::Whole).map(drop))
    }

    /// Takes tables for usable that lie in a folder; the input they are of is not looked at.
    pub(super) fn open_dir(dir: &Path, manifest: Manifest) -> Result<Self, Damage> {
        let seen = manifest
            .tables
            .iter()
            .map(|table| check_table(dir, table, Depth::Quick))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            dir: dir.to_owned(),
            manifest,
            seen,
        })
    }

    /// Returns this after its folder was renamed.
    pub(super) fn moved_to(self, dir: PathBuf) -> Self {
        Self { dir, ..self }
    }
}

/// Returns what there is of an input's tables in a place.
pub(super) fn inspect(place: &Place, input: &Fingerprint) -> Found {
    match read_manifest(place) {
        Stored::Missing => Found::Missing,
        Stored::Stale(version) => Found::Stale(Staleness::Format(version)),
        Stored::Corrupt(damage) => Found::Corrupt(damage),
        Stored::Intact(manifest) if manifest.input != *input => Found::Stale(Staleness::Input),
        Stored::Intact(manifest) => match Sidecar::open_dir(&place.dir(), manifest) {
            Ok(sidecar) => Found::Ready(sidecar),
            Err(damage) => Found::Corrupt(damage),
        },
    }
}

/// What was found of a manifest.
#[derive(Debug)]
pub(super) enum Stored {
    Intact(Manifest),
    Missing,
    /// Intact, of this other format version.
    Stale(u32),
    Corrupt(Damage),
}

/// Reads the manifest of a place; no link is followed.
pub(super) fn read_manifest(place: &Place) -> Stored {
    let dir = place.dir();
    if !matches!(folder_at(place.root()), Folder::There) || !matches!(folder_at(&dir), Folder::There) {
        return Stored::Missing;
    }
    let path = dir.join(MANIFEST_FILE);
    match fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Stored::Corrupt(Damage::Manifest { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Stored::Missing,
        Err(source) => return Stored::Corrupt(Damage::Unreadable { path, source }),
    }
    let text = match manifest::read_file(&path) {
        Ok(text) => text,
        Err(source) => return Stored::Corrupt(Damage::Unreadable { path, source }),
    };
    match Manifest::from_text(&text) {
        Ok(manifest) if lists_all_tables(&manifest) => Stored::Intact(manifest),
        Ok(_) | Err(NotAManifest::Damaged) => Stored::Corrupt(Damage::Manifest { path }),
        Err(NotAManifest::Version(version)) => Stored::Stale(version),
    }
}

/// Returns whether a manifest lists exactly the known tables under the known names. Paths are made of those,
/// never of what the manifest says.
fn lists_all_tables(manifest: &Manifest) -> bool {
    manifest.tables.len() == TABLES.len()
        && manifest
            .tables
            .iter()
            .zip(TABLES)
            .all(|(table, name)| table.name == name && table.file == table_file(name))
}

/// How closely a table is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Its size and tail; the whole only when its stamp is not the one of the build.
    Quick,
    /// All of it.
    Whole,
}

/// Compares a table with what the manifest tells of it, and returns its stamp.
pub(super) fn check_table(dir: &Path, table: &TableFile, depth: Depth) -> Result<Stamp, Damage> {
    let path = dir.join(table_file(&table.name));
    let unreadable = |source: io::Error| Damage::Unreadable {
        path: path.clone(),
        source,
    };
    match fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(Damage::TableContent { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Damage::TableMissing { path });
        }
        Err(source) => return Err(unreadable(source)),
    }
    let mut file = File::open(&path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.len() != table.bytes {
        return Err(Damage::TableSize {
            path,
            expected: table.bytes,
            found: metadata.len(),
        });
    }
    let stamp = Stamp::of(&metadata);
    let tail = tail_bytes(table.bytes);
    let (length, expected) = if depth == Depth::Quick && table.stamp.as_ref() == Some(&stamp) {
        (tail, &table.tail_checksum)
    } else {
        (table.bytes, &table.checksum)
    };
    if checksum_of_last(&mut file, length).map_err(unreadable)? != *expected {
        return Err(Damage::TableContent { path });
    }
    Ok(stamp)
}

/// Returns how much of the end of a table is read each time the table is used: a 128th, at least 128 KiB and at
/// most 1 MiB. The Parquet footer and the page indexes, which have no checksums of their own, fit in; a small
/// table is read whole.
pub(super) fn tail_bytes(bytes: u64) -> u64 {
    (bytes / 128).clamp(128 << 10, 1 << 20).min(bytes)
}

/// Returns the XXH3-64 of the last bytes of a file, in hexadecimal.
pub(super) fn checksum_of_last(file: &mut File, length: u64) -> io::Result<String> {
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(length)))?;
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; 128 << 10];
    let mut left = length;
    let mut reader = Read::by_ref(file).take(length);
    while left > 0 {
        let read = match reader.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..read]);
        left -= read as u64;
    }
    Ok(format!("{:016x}", hasher.digest()))
}

/// How coarse the clock of file times may be: a later write within this time can have the same stamp.
pub(super) const CLOCK_TICK_NS: i128 = 10_000_000;

/// Returns whether a file system tells times no finer than seconds, or does not tell the time of the last
/// change at all: its stamps say too little.
pub(super) fn is_coarse(metadata: &Metadata) -> bool {
    super::fingerprint::changed_ns(metadata).is_none_or(|changed| changed % 1_000_000_000 == 0)
}
