//! What can go wrong with an input as a file, and with the places for its tables.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use veloq_core::{ErrorClass, Explain};

/// Why tables can be neither found nor stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// There is no such file.
    #[error("`{}` does not exist", path.display())]
    InputMissing { path: PathBuf },
    /// The path is a directory.
    #[error("`{}` is a directory", path.display())]
    InputDirectory {
        path: PathBuf,
        /// The trace files in it, the likeliest first.
        traces: Vec<PathBuf>,
    },
    /// The path is a pipe, a device or a socket.
    #[error("`{}` is not a regular file", path.display())]
    InputNotAFile { path: PathBuf },
    /// The file cannot be opened or read.
    #[error("`{}` cannot be read", path.display())]
    InputUnreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file was written or replaced while it was read.
    #[error("`{}` changed while it was read", path.display())]
    InputChanged { path: PathBuf },
    /// No place has room for the tables.
    #[error("no space left for the tables of the trace in `{}`", path.display())]
    DiskFull {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// No place can take the tables.
    #[error("no place for the tables of the trace{}", listed(obstacles))]
    NoPlace { obstacles: Vec<Obstacle> },
    /// One of veloq's own files could not be removed.
    #[error("`{}` cannot be removed", path.display())]
    NotRemoved {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A build ended without one of its tables.
    #[error("the table `{table}` was not written")]
    TableNotWritten { table: String },
}

impl Error {
    /// Returns the error of an input that cannot be looked at, opened or read.
    pub(super) fn input(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::InputMissing { path },
            _ => Self::InputUnreadable { path, source },
        }
    }

    /// Returns the error of places that were all tried in vain: a full disk, if that was the last to be met.
    pub(super) fn no_place(mut obstacles: Vec<Obstacle>) -> Self {
        let full = obstacles
            .iter()
            .rposition(|obstacle| matches!(&obstacle.reason, Reason::Io(source) if is_full(source)));
        match full.map(|index| obstacles.swap_remove(index)) {
            Some(Obstacle {
                path,
                reason: Reason::Io(source),
            }) => Self::DiskFull { path, source },
            _ => Self::NoPlace { obstacles },
        }
    }
}

impl Explain for Error {
    fn code(&self) -> &'static str {
        match self {
            Self::InputMissing { .. } => "input.missing",
            Self::InputDirectory { .. } => "input.directory",
            Self::InputNotAFile { .. } => "input.not_a_file",
            Self::InputUnreadable { .. } => "input.unreadable",
            Self::InputChanged { .. } => "input.changed",
            Self::DiskFull { .. } => "limit.disk_full",
            Self::NoPlace { .. } => "limit.no_place",
            Self::NotRemoved { .. } => "limit.not_removed",
            Self::TableNotWritten { .. } => "internal.table_not_written",
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::InputMissing { .. }
            | Self::InputDirectory { .. }
            | Self::InputNotAFile { .. }
            | Self::InputUnreadable { .. }
            | Self::InputChanged { .. } => ErrorClass::Input,
            Self::DiskFull { .. } | Self::NoPlace { .. } | Self::NotRemoved { .. } => ErrorClass::Limit,
            Self::TableNotWritten { .. } => ErrorClass::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::InputMissing { .. } => "Check the path; it is relative to the current folder.".to_owned(),
            Self::InputDirectory { traces, .. } => choose(traces),
            Self::InputNotAFile { .. } => "Write the trace to a file first.".to_owned(),
            Self::InputUnreadable { .. } => {
                "Check the permissions of the file and of the folders above it.".to_owned()
            }
            Self::InputChanged { .. } => "Ask again when the trace has been written completely.".to_owned(),
            Self::DiskFull { .. } => {
                "Free some space, or set VELOQ_CACHE_DIR to a folder that has some.".to_owned()
            }
            Self::NoPlace { .. } => "Set VELOQ_CACHE_DIR to a folder that can be written.".to_owned(),
            Self::NotRemoved { .. } => "Check the permissions of the folder it is in.".to_owned(),
            Self::TableNotWritten { .. } => return None,
        })
    }
}

/// How many trace files a hint names.
const NAMED_TRACES: usize = 5;

fn choose(traces: &[PathBuf]) -> String {
    if traces.is_empty() {
        return "There is no `.json` or `.json.gz` file in it; name a trace file.".to_owned();
    }
    let mut hint = "Choose one of the files in it: ".to_owned();
    for (index, trace) in traces.iter().take(NAMED_TRACES).enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        // Writing to a `String` cannot fail.
        let _ = write!(hint, "{comma}`{}`", trace.display());
    }
    if let Some(more) = traces.len().checked_sub(NAMED_TRACES).filter(|more| *more > 0) {
        let _ = write!(hint, " and {more} more");
    }
    hint.push('.');
    hint
}

/// Why a place cannot take tables.
#[derive(Debug, thiserror::Error)]
#[error("`{}` {reason}", path.display())]
pub(crate) struct Obstacle {
    /// What is in the way.
    pub(crate) path: PathBuf,
    #[source]
    pub(crate) reason: Reason,
}

/// What is wrong with a path in the way.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error("is a symbolic link, and is not followed")]
    SymbolicLink,
    #[error("is not a folder")]
    NotAFolder,
    #[error("is not a regular file")]
    NotAFile,
    #[error("was not made by veloq")]
    Foreign,
    #[error("keeps being changed by others")]
    Contended,
    #[error("cannot be written: {0}")]
    Io(#[source] io::Error),
}

impl Reason {
    /// Returns this as the obstacle a path is.
    pub(super) fn at(self, path: &Path) -> Obstacle {
        Obstacle {
            path: path.to_owned(),
            reason: self,
        }
    }
}

impl Obstacle {
    /// Returns the obstacle of a failed operation on a path.
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Reason::Io(source).at(path)
    }

    /// Returns whether something that had just been there is gone.
    pub(super) fn is_vanished(&self) -> bool {
        matches!(&self.reason, Reason::Io(source) if source.kind() == io::ErrorKind::NotFound)
    }
}

fn listed(obstacles: &[Obstacle]) -> String {
    let mut text = String::new();
    for (index, obstacle) in obstacles.iter().enumerate() {
        let _ = write!(text, "{} {obstacle}", if index == 0 { ":" } else { "," });
    }
    text
}

/// Returns whether a write failed for want of space.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
