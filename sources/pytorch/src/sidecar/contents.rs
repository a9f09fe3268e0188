//! Which files in a folder are veloq's own. Everything that removes a file asks here.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::TABLES;
use super::manifest;

/// The manifest's file.
pub(super) const MANIFEST_FILE: &str = "manifest.json";

/// The file that says who made a folder. Backup tools know it, and leave the folder out:
/// <https://bford.info/cachedir/>.
pub(super) const MARKER_FILE: &str = "CACHEDIR.TAG";

/// What is in it.
pub(super) const MARKER: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
    # Made by veloq from the trace beside this folder; `veloq clean` removes it, and it can be built again.\n";

/// Returns the name of a table's file.
pub(super) fn table_file(table: &str) -> String {
    format!("{table}.parquet")
}

/// What is in a folder that should be veloq's.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Files of veloq's names with their sizes, in the order in which they may be removed: the manifest first,
    /// so that nobody takes what is left for tables; the marker last, so that the rest stays recognisable.
    pub(super) own: Vec<(PathBuf, u64)>,
    /// Everything else, sorted by name: files of other names, folders, and links of whatever name.
    pub(super) foreign: Vec<PathBuf>,
    /// Whether veloq's marker or a manifest of veloq is there, intact.
    pub(super) is_ours: bool,
    /// Whether the folder holds at most the beginning of a marker, as when its maker was killed at once.
    pub(super) is_unborn: bool,
}

/// Looks through a folder, which must not be a link; no file but marker and manifest is opened.
///
/// # Errors
/// When the folder cannot be listed.
pub(super) fn survey(dir: &Path) -> io::Result<Survey> {
    let mut survey = Survey::default();
    let mut own = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // Neither of these follows links.
        let (kind, metadata) = (entry.file_type()?, entry.metadata()?);
        match own_rank(&entry.file_name()) {
            Some(rank) if kind.is_file() => own.push((rank, entry.path(), metadata.len())),
            _ => survey.foreign.push(entry.path()),
        }
    }
    own.sort();
    survey.foreign.sort();
    let has = |name: &str| own.iter().any(|(_, path, _)| path.ends_with(name));
    let marker = has(MARKER_FILE)
        .then(|| read_start(&dir.join(MARKER_FILE)))
        .transpose()?;
    survey.is_ours = marker.as_deref() == Some(MARKER.as_bytes())
        || has(MANIFEST_FILE) && manifest::is_manifest(&manifest::read_file(&dir.join(MANIFEST_FILE))?);
    survey.is_unborn = survey.foreign.is_empty()
        && match marker {
            None => own.is_empty(),
            Some(marker) => own.len() == 1 && MARKER.as_bytes().starts_with(&marker),
        };
    survey.own = own.into_iter().map(|(_, path, bytes)| (path, bytes)).collect();
    Ok(survey)
}

/// Returns a file's first bytes, a few more than a marker has.
fn read_start(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut start = Vec::new();
    fs::File::open(path)?
        .take(MARKER.len() as u64 + 1)
        .read_to_end(&mut start)?;
    Ok(start)
}

/// Returns when a file of this name is removed, if it is one of ours.
fn own_rank(name: &OsStr) -> Option<u8> {
    match name.to_str()? {
        MANIFEST_FILE => Some(0),
        MARKER_FILE => Some(2),
        name => TABLES.iter().any(|table| table_file(table) == name).then_some(1),
    }
}

/// What a removal came to.
#[derive(Debug, Default)]
pub(super) struct Removal {
    /// What was removed, with the bytes each held, in order.
    pub(super) removed: Vec<(PathBuf, u64)>,
    /// What is not ours and was left.
    pub(super) foreign: Vec<PathBuf>,
    /// What could not be removed.
    pub(super) failed: Vec<(PathBuf, io::Error)>,
}

/// Removes a surveyed folder's own files, then the folder if that leaves it empty.
pub(super) fn remove(dir: &Path, survey: Survey) -> Removal {
    let mut removal = Removal {
        foreign: survey.foreign,
        ..Removal::default()
    };
    for (path, bytes) in survey.own {
        match fs::remove_file(&path) {
            Ok(()) => removal.removed.push((path, bytes)),
            // Somebody else removes the same.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => removal.failed.push((path, error)),
        }
    }
    if removal.foreign.is_empty() && removal.failed.is_empty() {
        match fs::remove_dir(dir) {
            Ok(()) => removal.removed.push((dir.to_owned(), 0)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => removal.failed.push((dir.to_owned(), error)),
        }
    }
    removal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(folder.path().join(name), content).unwrap();
        }
        folder
    }

    #[test]
    fn knows_its_own_by_name_and_kind() {
        let dir = folder(&[
            ("CACHEDIR.TAG", MARKER),
            ("args.parquet", "12345"),
            ("manifest.json", "{}"),
            ("notes.txt", ""),
            ("other.parquet", ""),
        ]);
        fs::create_dir(dir.path().join("events.parquet")).unwrap();
        let survey = survey(dir.path()).unwrap();
        let at = |name: &str| dir.path().join(name);
        assert_eq!(
            survey.own,
            [
                (at("manifest.json"), 2),
                (at("args.parquet"), 5),
                (at("CACHEDIR.TAG"), MARKER.len() as u64)
            ]
        );
        assert_eq!(
            survey.foreign,
            [at("events.parquet"), at("notes.txt"), at("other.parquet")]
        );
        assert!(survey.is_ours && !survey.is_unborn);
    }

    #[test]
    fn a_folder_without_intact_marker_or_manifest_is_not_ours() {
        let longer = format!("{MARKER}!");
        for marker in ["", "Signature: 8a477f597d28d172789f06886806bc55\n", &longer] {
            let dir = folder(&[("CACHEDIR.TAG", marker), ("events.parquet", "")]);
            let survey = survey(dir.path()).unwrap();
            assert!(!survey.is_ours && !survey.is_unborn, "{marker}");
        }
    }

    #[test]
    fn a_folder_whose_maker_was_killed_at_once_is_unborn() {
        for files in [
            &[][..],
            &[("CACHEDIR.TAG", "")],
            &[("CACHEDIR.TAG", &MARKER[..20])],
        ] {
            assert!(survey(folder(files).path()).unwrap().is_unborn, "{files:?}");
        }
        for files in [&[("x", "")], &[("CACHEDIR.TAG", "x")], &[("events.parquet", "")]] {
            assert!(!survey(folder(files).path()).unwrap().is_unborn, "{files:?}");
        }
    }

    #[test]
    fn removes_the_folder_only_when_nothing_else_is_in_it() {
        let dir = folder(&[("CACHEDIR.TAG", MARKER), ("events.parquet", "1"), ("mine", "2")]);
        let removal = remove(dir.path(), survey(dir.path()).unwrap());
        assert_eq!(removal.removed.len(), 2);
        assert_eq!(removal.foreign, [dir.path().join("mine")]);
        assert_eq!(fs::read_to_string(dir.path().join("mine")).unwrap(), "2");
        fs::remove_file(dir.path().join("mine")).unwrap();
        let removal = remove(dir.path(), survey(dir.path()).unwrap());
        assert_eq!(removal.removed, [(dir.path().to_owned(), 0)]);
    }
}
