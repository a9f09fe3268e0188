//! Whether a file is still the one it was, without reading all of it.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::error::Error;

/// What tells an input from another one under the same name.
///
/// Two fingerprints are compared for equality only: a clock that went back makes no difference. The time of
/// the last status change and the file's number catch what keeps size and modification time (`cp -p` over the
/// file, `touch -r`); the sample catches what file systems with coarse clocks miss. A copy of a trace
/// together with its tables therefore has its tables built again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fingerprint {
    /// Size on disk.
    pub(crate) size_bytes: u64,
    /// Identity and times of the file.
    pub(crate) stamp: Stamp,
    /// XXH3-128, in hexadecimal, of the size and of the whole file up to [`WHOLE_BYTES`], of the first and
    /// last [`EDGE_BYTES`] and of [`BLOCKS`] blocks evenly spaced between them otherwise.
    pub(crate) sample: String,
}

/// Files up to this size are sampled whole.
const WHOLE_BYTES: u64 = 1 << 20;
/// How much of each end of a larger file is sampled; holds the checksum at the end of gzip files.
const EDGE_BYTES: u64 = 64 << 10;
/// How many blocks between the ends are sampled.
const BLOCKS: u64 = 16;
/// The size of such a block.
const BLOCK_BYTES: u64 = 4 << 10;

impl Fingerprint {
    /// Returns the fingerprint of a regular file; symbolic links are followed.
    ///
    /// # Errors
    /// `input.missing`, `input.directory`, `input.not_a_file`, `input.unreadable`; `input.changed` when the
    /// file shrinks meanwhile.
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        // A pipe must not be opened: that waits until somebody writes to it.
        let metadata = fs::metadata(path).map_err(|error| Error::input(path, error))?;
        if metadata.is_dir() {
            return Err(Error::InputDirectory {
                path: path.to_owned(),
                traces: traces_in(path),
            });
        }
        if !metadata.is_file() {
            return Err(Error::InputNotAFile {
                path: path.to_owned(),
            });
        }
        let mut file = File::open(path).map_err(|error| Error::input(path, error))?;
        let metadata = file.metadata().map_err(|error| Error::input(path, error))?;
        let size_bytes = metadata.len();
        let sample = sample(&mut file, size_bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::InputChanged {
                path: path.to_owned(),
            },
            _ => Error::input(path, error),
        })?;
        Ok(Self {
            size_bytes,
            stamp: Stamp::of(&metadata),
            sample,
        })
    }
}

fn sample(file: &mut File, size_bytes: u64) -> io::Result<String> {
    let mut hasher = Xxh3::new();
    hasher.update(&size_bytes.to_le_bytes());
    let mut buffer = Vec::new();
    let mut take = |offset: u64, length: u64| {
        buffer.clear();
        file.seek(SeekFrom::Start(offset))?;
        if Read::by_ref(file).take(length).read_to_end(&mut buffer)? as u64 != length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        hasher.update(&buffer);
        Ok(())
    };
    if size_bytes <= WHOLE_BYTES {
        take(0, size_bytes)?;
    } else {
        take(0, EDGE_BYTES)?;
        let stride = (size_bytes - 2 * EDGE_BYTES) / BLOCKS;
        for block in 0..BLOCKS {
            take(EDGE_BYTES + block * stride, BLOCK_BYTES)?;
        }
        take(size_bytes - EDGE_BYTES, EDGE_BYTES)?;
    }
    Ok(format!("{:032x}", hasher.digest128()))
}

/// The identity of a file's present content as far as the file system tells it: differs after every ordinary
/// write to the file, and between two files.
///
/// The fields are decimal text, for they exceed 2^53 and are compared, never computed with. `None` where the
/// platform or the file system does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stamp {
    /// Time of the last modification, in ns since the Unix epoch; may be negative.
    modified_ns: Option<String>,
    /// Time of the last change of content or status, which no call can set; same unit.
    changed_ns: Option<String>,
    /// The file's number in its file system.
    inode: Option<String>,
}

impl Stamp {
    /// Returns the stamp of a file.
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            modified_ns: metadata
                .modified()
                .ok()
                .map(|time| since_epoch_ns(time).to_string()),
            changed_ns: changed_ns(metadata).map(|time| time.to_string()),
            inode: inode(metadata).map(|number| number.to_string()),
        }
    }
}

/// Returns nanoseconds since the Unix epoch, negative before it.
pub(super) fn since_epoch_ns(time: SystemTime) -> i128 {
    let ns = |duration: std::time::Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => ns(after),
        Err(before) => -ns(before.duration()),
    }
}

/// Returns the time of the last change of content or status, in ns since the Unix epoch.
#[cfg(unix)]
pub(super) fn changed_ns(metadata: &Metadata) -> Option<i128> {
    use std::os::unix::fs::MetadataExt;
    Some(i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec()))
}

/// Returns nothing: only Unix tells it.
#[cfg(not(unix))]
pub(super) fn changed_ns(_: &Metadata) -> Option<i128> {
    None
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    Some(metadata.ino())
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> Option<u64> {
    None
}

/// Returns the trace files of a folder: those named as the profiler names them first, then by name.
fn traces_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut traces: Vec<(bool, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let stem = name.strip_suffix(".gz").unwrap_or(&name);
            (stem.ends_with(".json") && entry.path().is_file())
                .then(|| (!stem.ends_with(".pt.trace.json"), entry.path()))
        })
        .collect();
    traces.sort();
    traces.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use veloq_core::Explain;

    fn code(path: &Path) -> &'static str {
        Fingerprint::of(path).expect_err("not a trace").code()
    }

    #[test]
    fn tells_what_is_not_a_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(code(&folder.path().join("none.json")), "input.missing");
        assert_eq!(code(Path::new("")), "input.missing");
        let file = folder.path().join("a.json");
        fs::write(&file, "{}").unwrap();
        assert_eq!(code(&file.join("b.json")), "input.missing");
        assert_eq!(code(folder.path()), "input.directory");
        if cfg!(target_os = "linux") {
            assert_eq!(code(Path::new("/dev/null")), "input.not_a_file");
        }
        #[cfg(unix)]
        {
            let circle = folder.path().join("circle.json");
            std::os::unix::fs::symlink(&circle, &circle).unwrap();
            assert_eq!(code(&circle), "input.unreadable");
        }
    }

    #[test]
    fn a_directory_error_names_the_likeliest_traces_first() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "z.pt.trace.json.gz",
            "m.pt.trace.json",
            "a.json",
            "b.json.gz",
            "c.txt",
        ];
        for name in names {
            fs::write(folder.path().join(name), "{}").unwrap();
        }
        fs::create_dir(folder.path().join("d.json")).unwrap();
        let error = Fingerprint::of(folder.path()).unwrap_err();
        let at = |name: &str| folder.path().join(name).display().to_string();
        assert_eq!(
            error.hint().unwrap(),
            format!(
                "Choose one of the files in it: `{}`, `{}`, `{}`, `{}`.",
                at("m.pt.trace.json"),
                at("z.pt.trace.json.gz"),
                at("a.json"),
                at("b.json.gz")
            )
        );
        for index in 0..4 {
            fs::write(folder.path().join(format!("e{index}.json")), "{}").unwrap();
        }
        let hint = Fingerprint::of(folder.path()).unwrap_err().hint().unwrap();
        assert!(
            hint.ends_with("`e0.json` and 3 more.") || hint.ends_with(" and 3 more."),
            "{hint}"
        );
    }

    /// A file above the size that is sampled whole.
    fn large() -> Vec<u8> {
        (0..3_000_000_u32).map(|index| (index % 251) as u8).collect()
    }

    #[test]
    fn equal_content_in_another_file_is_another_input() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, large()).unwrap();
        let before = Fingerprint::of(&path).unwrap();
        assert_eq!(before, Fingerprint::of(&path).unwrap());
        let other = folder.path().join("b.json");
        fs::write(&other, large()).unwrap();
        fs::rename(&other, &path).unwrap();
        let after = Fingerprint::of(&path).unwrap();
        assert_eq!(before.sample, after.sample);
        assert_ne!(before, after);
    }

    #[test]
    fn a_kept_size_and_modification_time_do_not_hide_a_replacement() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        fs::write(&path, large()).unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let before = Fingerprint::of(&path).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        // In place, outside of every sampled block.
        let mut content = large();
        content[100_000] ^= 1;
        fs::write(&path, content).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(modified)
            .unwrap();
        let after = Fingerprint::of(&path).unwrap();
        assert_eq!(
            (before.size_bytes, &before.stamp.modified_ns),
            (after.size_bytes, &after.stamp.modified_ns)
        );
        assert_eq!(before.sample, after.sample);
        if cfg!(unix) {
            assert_ne!(before, after);
        }
    }

    #[test]
    fn the_sample_sees_both_ends_and_all_of_a_small_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let sample_of = |content: &[u8]| {
            fs::write(&path, content).unwrap();
            Fingerprint::of(&path).unwrap().sample
        };
        let flipped = |content: &[u8], at: usize| {
            let mut content = content.to_vec();
            content[at] ^= 4;
            content
        };
        let large = large();
        let whole = sample_of(&large);
        for at in [0, 65_535, 65_536, large.len() - 65_536, large.len() - 1] {
            assert_ne!(whole, sample_of(&flipped(&large, at)), "{at}");
        }
        let small = &large[..1 << 20];
        let whole = sample_of(small);
        for at in (0..small.len()).step_by(99_991) {
            assert_ne!(whole, sample_of(&flipped(small, at)), "{at}");
        }
        assert_ne!(sample_of(b""), sample_of(b"\0"));
    }

    #[test]
    fn times_before_the_epoch_are_negative() {
        let before = UNIX_EPOCH - std::time::Duration::from_nanos(7);
        assert_eq!(since_epoch_ns(before), -7);
    }
}
