//! The file a call is about: what it is, and which source it belongs to.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use veloq_core::{Detection, ErasedSource, ErrorClass, Explain, Probe, nearest};

use crate::usage::shell_word;

/// The bytes a source may look at to recognise a file.
const HEAD_BYTES: u64 = 4096;
/// How many entries of a folder are looked at to name the traces in it.
const LISTED_ENTRIES: usize = 10_000;
/// How many of them an error names.
const NAMED_TRACES: usize = 10;

/// Why a path is not a file that can be asked about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("`{}` does not exist", path.display())]
    NotFound { path: PathBuf, near: Option<String> },
    #[error("`{}` cannot be read", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{}` is a directory, not a trace", path.display())]
    Directory { path: PathBuf, traces: Vec<PathBuf> },
    #[error("`{}` is no regular file", path.display())]
    NotAFile { path: PathBuf },
    #[error("`{}` is not a file that source `{}` reads", path.display(), source_name)]
    NotAccepted {
        path: PathBuf,
        source_name: &'static str,
        about: &'static str,
    },
}

impl Explain for InputError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "input.not_found",
            Self::Unreadable { .. } => "input.unreadable",
            Self::Directory { .. } => "input.directory",
            Self::NotAFile { .. } => "input.not_a_file",
            Self::NotAccepted { .. } => "input.not_accepted",
        }
    }

    fn class(&self) -> ErrorClass {
        ErrorClass::Input
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { near, .. } => near
                .as_ref()
                .map(|near| format!("There is a `{near}` in the same folder.")),
            Self::Directory { path, traces } => Some(directory_hint(path, traces)),
            Self::NotAFile { .. } => {
                Some("Write the trace to a file first: it is read more than once.".to_owned())
            }
            Self::NotAccepted {
                source_name, about, ..
            } => Some(format!("`{source_name}` reads this: {about}")),
            Self::Unreadable { .. } => None,
        }
    }
}

fn directory_hint(path: &Path, traces: &[PathBuf]) -> String {
    if traces.is_empty() {
        return format!("No trace was found in `{}`; name a trace file.", path.display());
    }
    let named: Vec<String> = traces
        .iter()
        .take(NAMED_TRACES)
        .map(|trace| shell_word(&trace.to_string_lossy()))
        .collect();
    let rest = match traces.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("Choose one of the traces in it: {}{rest}.", named.join(", "))
}

/// What can be seen of a file without reading it.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) path: PathBuf,
    pub(crate) metadata: Metadata,
    /// The file's name, lossy where it is not UTF-8.
    name: String,
    head: Vec<u8>,
}

impl Look {
    /// Returns what a source says about the file.
    pub(crate) fn detect(&self, source: &dyn ErasedSource) -> Detection {
        source.detect(&Probe {
            name: &self.name,
            size_bytes: self.metadata.len(),
            head: &self.head,
        })
    }

    /// Returns how the file is compressed, going by its first bytes.
    pub(crate) fn compression(&self) -> Option<&'static str> {
        let magics: [(&[u8], &str); 5] = [
            (b"\x1f\x8b", "gzip"),
            (b"\x28\xb5\x2f\xfd", "zstd"),
            (b"\xfd7zXZ\0", "xz"),
            (b"BZh", "bzip2"),
            (b"PK\x03\x04", "zip"),
        ];
        magics
            .into_iter()
            .find(|(magic, _)| self.head.starts_with(magic))
            .map(|(_, name)| name)
    }
}

/// Looks at a regular file; its folder is not searched.
pub(crate) fn look(path: &Path) -> Result<Look, InputError> {
    let unreadable = |source: io::Error| InputError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => InputError::NotFound {
            path: path.to_owned(),
            near: nearest_neighbour(path),
        },
        _ => unreadable(error),
    })?;
    if !metadata.is_file() {
        return Err(InputError::NotAFile {
            path: path.to_owned(),
        });
    }
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head))
        .map_err(unreadable)?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok(Look {
        path: path.to_owned(),
        metadata,
        name: name.to_string_lossy().into_owned(),
        head,
    })
}

/// Looks at the trace of a call; a directory is refused, naming the traces in it: those that a source claims
/// or, when there is none, those that one can read.
pub(crate) fn look_at_trace(path: &Path, sources: &[&'static dyn ErasedSource]) -> Result<Look, InputError> {
    if !path.is_dir() {
        return look(path);
    }
    let traces = traces_in(path, sources).map_err(|source| InputError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let is_claimed = |look: &&Look| sources.iter().any(|source| look.detect(*source).is_claimed());
    let mut chosen: Vec<&Look> = traces.iter().filter(is_claimed).collect();
    if chosen.is_empty() {
        chosen.extend(&traces);
    }
    Err(InputError::Directory {
        path: path.to_owned(),
        traces: chosen.into_iter().map(|look| look.path.clone()).collect(),
    })
}

/// Returns the files of a folder that one of the sources can read, sorted by path.
pub(crate) fn traces_in(directory: &Path, sources: &[&'static dyn ErasedSource]) -> io::Result<Vec<Look>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)?.take(LISTED_ENTRIES) {
        paths.push(entry?.path());
    }
    paths.sort();
    // What cannot be looked at is no trace to choose.
    let mut looks: Vec<Look> = paths.iter().filter_map(|path| look(path).ok()).collect();
    looks.retain(|look| sources.iter().any(|source| look.detect(*source) != Detection::No));
    Ok(looks)
}

/// Returns the name in the same folder that may have been meant.
fn nearest_neighbour(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy();
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .take(LISTED_ENTRIES)
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    names.sort();
    nearest(&name, names.iter().map(String::as_str)).map(str::to_owned)
}
