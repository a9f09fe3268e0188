//! Places that take no tables: full, limited, read-only, without permission.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{Guarded, QUESTIONS, skipped, top, tree};
use crate::support::called;

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().metadata().unwrap().uid() == 0
}

/// A file system mounted on a folder of the lab until this is dropped.
struct Mount(PathBuf);

impl Mount {
    /// Returns `None`, said plainly, where mounting is not permitted.
    fn new(folder: &Path, arguments: &[&str]) -> Option<Self> {
        fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount").args(arguments).arg(folder).output();
        match mounted {
            Ok(Output { status, .. }) if status.success() => Some(Self(folder.to_owned())),
            other => {
                skipped(&format!("`mount {}`: {other:?}", arguments.join(" ")));
                None
            }
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

/// A file size limit is a full disk to the process, whether it is told by a signal or not.
#[cfg(unix)]
#[test]
fn file_size_limits_are_told_or_got_over() {
    let guarded = Guarded::new();
    for trap in ["", "trap '' XFSZ; "] {
        for blocks in [0, 1, 4, 16, 64, 4096] {
            let what = format!("{trap}ulimit -f {blocks}");
            let script = format!("{trap}ulimit -f {blocks}; exec \"$@\"");
            let veloq = guarded.command(QUESTIONS[1]);
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &script, "sh"])
                .arg(veloq.get_program())
                .args(veloq.get_args());
            shell
                .current_dir(guarded.lab.path())
                .env("VELOQ_CACHE_DIR", guarded.cache());
            // A pipe, as here, has no size.
            let called = called(&mut shell, &[&what]);
            guarded.assert_right_or(1, &called, &["limit.disk_full"], &what);
            guarded.assert_tidy(&what);
            guarded.run(&["clean"]).answer();
        }
    }
    guarded.assert_right("without a limit");
}

/// A disk that fills up at any point of the build: the tables go to the cache, or the error says so.
#[cfg(target_os = "linux")]
#[test]
fn full_disks_are_told_or_got_over() {
    let guarded = Guarded::new();
    let folder = guarded.lab.path().join("small");
    for kilobytes in [32, 48, 64, 128, 4096] {
        let size = format!("size={kilobytes}k");
        let Some(_mount) = Mount::new(&folder, &["-t", "tmpfs", "-o", &size, "none"]) else {
            return;
        };
        let input = folder.join(&guarded.name);
        fs::write(&input, &guarded.bytes).unwrap();
        for has_cache in [false, true] {
            let what = format!("{kilobytes} kB, {has_cache}");
            let cache = if has_cache {
                guarded.cache()
            } else {
                folder.join("cache")
            };
            for (at, question) in QUESTIONS.iter().enumerate() {
                let mut command = guarded.command(question);
                command
                    .current_dir(&folder)
                    .env("VELOQ_CACHE_DIR", cache.as_os_str());
                let called = called(&mut command, question);
                if has_cache {
                    guarded.assert_answered(at, &called, &what);
                } else {
                    guarded.assert_right_or(at, &called, &["limit.disk_full"], &what);
                }
                assert!(fs::read(&input).unwrap() == guarded.bytes, "{what}");
            }
        }
        let left = tree(&folder);
        let is_known = |path: &PathBuf| {
            let name = top(path);
            name == guarded.name || name == "cache" || path.iter().nth(1).is_none_or(|name| name == "pytorch")
        };
        assert!(left.keys().all(is_known), "{kilobytes} kB: {:?}", left.keys());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn read_only_folders_are_left_for_the_cache() {
    let guarded = Guarded::new();
    let folder = guarded.lab.path().join("fixed");
    let source = guarded.lab.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join(&guarded.name), &guarded.bytes).unwrap();
    let Some(mount) = Mount::new(&folder, &["--bind", source.to_str().unwrap()]) else {
        return;
    };
    let remounted = Command::new("mount")
        .args(["-o", "remount,bind,ro"])
        .arg(&mount.0)
        .status();
    if !remounted.is_ok_and(|status| status.success()) {
        return skipped("a bind mount cannot be made read-only");
    }
    let before = tree(&folder);
    for (at, question) in QUESTIONS.iter().enumerate() {
        let mut command = guarded.command(question);
        let nowhere = called(
            command
                .current_dir(&folder)
                .env("VELOQ_CACHE_DIR", folder.join("cache")),
            question,
        );
        nowhere.error(5, "limit.no_place");
        let answered = called(command.env("VELOQ_CACHE_DIR", guarded.cache()), question);
        guarded.assert_answered(at, &answered, "read-only");
    }
    assert_eq!(tree(&folder), before);
}

/// Permissions bind all but root; root's tests run veloq as nobody.
#[cfg(unix)]
#[test]
fn without_permission() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let guarded = Guarded::new();
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let as_nobody = |question: &[&str]| {
        let mut command = guarded.command(question);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    // Everybody may write to the cache folder, and nobody beside the trace.
    fs::create_dir(guarded.cache()).unwrap();
    mode(&guarded.cache(), 0o777);
    mode(guarded.lab.path(), 0o555);
    if let Err(error) = as_nobody(&["clean"]).output() {
        return skipped(&format!("veloq cannot be run as nobody: {error}"));
    }
    for (at, question) in QUESTIONS.iter().enumerate() {
        let called = called(&mut as_nobody(question), question);
        guarded.assert_answered(at, &called, "a folder without permission to write");
    }
    assert!(!guarded.root().exists());
    let nowhere = called(
        as_nobody(QUESTIONS[0]).env("VELOQ_CACHE_DIR", guarded.lab.path().join("none")),
        QUESTIONS[0],
    );
    nowhere.error(5, "limit.no_place");
    mode(&guarded.input(), 0o000);
    let unreadable = called(&mut as_nobody(QUESTIONS[0]), QUESTIONS[0]);
    unreadable.error(3, "input.unreadable");
    mode(&guarded.input(), 0o644);
    mode(guarded.lab.path(), 0o755);
    guarded.assert_kept("no permission");
}
