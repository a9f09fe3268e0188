//! Removing what veloq stored of a trace, and nothing else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use veloq_core::CleanReport;

use super::Store;
use super::contents::{Removal, remove, survey};
use super::draft::leftover;
use super::error::Error;
use super::lock::{self, Attempt};
use super::place::{Folder, Place, folder_at};

impl Store {
    /// Removes the input's tables from all places, and what killed builds left there. The input may be gone.
    ///
    /// A build that runs meanwhile is left alone. Symbolic links are neither followed nor removed; foreign
    /// files, and the folders they are in, are kept and told.
    ///
    /// # Errors
    /// `limit.not_removed` for the first of veloq's own files that could not be removed, after all others
    /// were tried.
    pub(crate) fn clean(&self) -> Result<CleanReport, Error> {
        let mut cleaning = Cleaning::default();
        for place in &self.places {
            cleaning.place(place);
        }
        match cleaning.failed {
            Some((path, source)) => Err(Error::NotRemoved { path, source }),
            None => Ok(cleaning.report),
        }
    }
}

#[derive(Debug, Default)]
struct Cleaning {
    report: CleanReport,
    failed: Option<(PathBuf, io::Error)>,
}

const NOT_OURS: &str = "was not made by veloq";

impl Cleaning {
    fn place(&mut self, place: &Place) {
        match folder_at(place.root()) {
            Folder::Absent => return,
            Folder::Blocked(reason) => return self.keep(place.root(), &reason.to_string()),
            Folder::There => {}
        }
        let before = self.report.removed.len();
        self.tables(place);
        for dir in place.passing_dirs() {
            match leftover(&dir) {
                Some(leftover) => self.take(remove(&dir, leftover.survey)),
                None => self.keep(&dir, "belongs to a build that runs, or was not made by veloq"),
            }
        }
        self.lock(place);
        self.root(place, before);
    }

    fn tables(&mut self, place: &Place) {
        let dir = place.dir();
        match folder_at(&dir) {
            Folder::Absent => {}
            Folder::Blocked(reason) => self.keep(&dir, &reason.to_string()),
            Folder::There => match survey(&dir) {
                Ok(survey) if survey.is_ours => self.take(remove(&dir, survey)),
                Ok(_) => self.keep(&dir, NOT_OURS),
                Err(error) => self.fail(dir, error),
            },
        }
    }

    /// Removes the lock that a killed build left.
    fn lock(&mut self, place: &Place) {
        let path = place.lock_path();
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            return;
        };
        // Ours is a file with nothing in it.
        if !metadata.is_file() || metadata.len() > 0 {
            return self.keep(&path, NOT_OURS);
        }
        let attempt = fs::File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map(|file| lock::attempt(file, &path));
        match attempt {
            Ok(Attempt::Busy | Attempt::Replaced) => self.keep(&path, "belongs to a build that runs"),
            Ok(Attempt::Held(_) | Attempt::Unsupported(_)) | Err(_) => match fs::remove_file(&path) {
                Ok(()) => self.report.removed.push((path, 0)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.fail(path, error),
            },
        }
    }

    /// Removes the place's folder if it is empty after something of ours was removed from it.
    fn root(&mut self, place: &Place, before: usize) {
        let root = place.root();
        let entries = match fs::read_dir(root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.fail(root.to_owned(), error),
        };
        let mut left: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        left.sort();
        if left.is_empty() {
            if self.report.removed.len() == before {
                return self.keep(root, NOT_OURS);
            }
            match fs::remove_dir(root) {
                Ok(()) => self.report.removed.push((root.to_owned(), 0)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.fail(root.to_owned(), error),
            }
            return;
        }
        for path in left {
            let is_told = self.report.kept.iter().any(|(kept, _)| kept.starts_with(&path))
                || self
                    .failed
                    .as_ref()
                    .is_some_and(|(failed, _)| failed.starts_with(&path));
            if !is_told {
                self.keep(&path, NOT_OURS);
            }
        }
    }

    fn take(&mut self, removal: Removal) {
        self.report.removed.extend(removal.removed);
        for path in removal.foreign {
            self.keep(&path, NOT_OURS);
        }
        for (path, error) in removal.failed {
            self.fail(path, error);
        }
    }

    fn keep(&mut self, path: &Path, reason: &str) {
        self.report.kept.push((path.to_owned(), reason.to_owned()));
    }

    fn fail(&mut self, path: PathBuf, error: io::Error) {
        self.failed.get_or_insert((path, error));
    }
}
