//! What may happen to files while veloq works: whole processes, and answers compared byte for byte with those
//! of an undisturbed run.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::support::{Called, Lab, called};

/// The questions whose answers are compared: one from the manifest, and one from each kind of table.
const QUESTIONS: [&[&str]; 3] = [
    &["summary"],
    &["search", "--type", "all", "--limit", "0"],
    &["collectives", "--limit", "0"],
];

fn words<'a>(question: &[&'a str], trace: &'a str) -> Vec<&'a str> {
    let (verb, flags) = question.split_first().unwrap();
    [&[*verb, trace], flags].concat()
}

/// A trace in a folder of its own, and what an undisturbed run answers.
struct Guarded {
    lab: Lab,
    name: String,
    bytes: Vec<u8>,
    answers: Vec<String>,
}

/// Returns an answer without the one thing in it that tells where the tables are.
fn without_place(answer: &str) -> String {
    const KEY: &str = "\"artifact_dir\":\"";
    match answer.split_once(KEY) {
        Some((before, place)) => {
            let end = place.find('"').unwrap();
            format!("{before}{KEY}{}", &place[end..])
        }
        None => answer.to_owned(),
    }
}

/// Returns what an undisturbed run answers to all questions about a trace of this name and content.
fn undisturbed(name: &str, bytes: &[u8]) -> Vec<String> {
    let lab = Lab::new();
    lab.write(name, bytes);
    let answers = QUESTIONS.iter().map(|question| {
        let called = lab.run(&words(question, name));
        called.answer();
        without_place(&called.stdout)
    });
    answers.collect()
}

impl Guarded {
    fn new() -> Self {
        let lab = Lab::new();
        let name = lab.training();
        let bytes = fs::read(lab.path().join(&name)).unwrap();
        let answers = undisturbed(&name, &bytes);
        Self {
            lab,
            name,
            bytes,
            answers,
        }
    }

    fn input(&self) -> PathBuf {
        self.lab.path().join(&self.name)
    }

    /// The folder of what is derived from the trace.
    fn root(&self) -> PathBuf {
        self.lab.path().join(format!("{}.veloq", self.name))
    }

    /// The folder of the tables.
    fn tables(&self) -> PathBuf {
        self.root().join("pytorch")
    }

    fn cache(&self) -> PathBuf {
        self.lab.path().join("cache")
    }

    fn command(&self, question: &[&str]) -> Command {
        self.lab.command(words(question, &self.name))
    }

    fn run(&self, question: &[&str]) -> Called {
        self.lab.run(&words(question, &self.name))
    }

    /// Checks that nothing happened to the trace.
    fn assert_kept(&self, what: &str) {
        assert!(
            fs::read(self.input()).unwrap() == self.bytes,
            "{what}: the trace itself"
        );
    }

    /// Checks that a question is answered as in an undisturbed run.
    fn assert_answered(&self, at: usize, called: &Called, what: &str) {
        assert_eq!(
            called.status, 0,
            "{what}: {} {}{}",
            called.line, called.stdout, called.stderr
        );
        assert!(
            without_place(&called.stdout) == self.answers[at],
            "{what}: {}\n{}\ninstead of\n{}",
            called.line,
            called.stdout,
            self.answers[at]
        );
    }

    /// Asks all questions and checks that they are answered as in an undisturbed run.
    fn assert_right(&self, what: &str) {
        for (at, question) in QUESTIONS.iter().enumerate() {
            self.assert_answered(at, &self.run(question), what);
        }
        self.assert_kept(what);
    }

    /// Checks that a call that may fail gave either the right answer or one of these errors.
    fn assert_right_or(&self, at: usize, called: &Called, codes: &[&str], what: &str) {
        if called.status == 0 {
            return self.assert_answered(at, called, what);
        }
        let error = called.parsed();
        let code = error["error"]["code"].as_str().unwrap_or_default();
        assert!(
            codes.contains(&code),
            "{what}: {} {}{}",
            called.line,
            called.stdout,
            called.stderr
        );
        assert!(error["error"]["hint"].is_string(), "{what}: {error}");
        self.assert_kept(what);
    }

    /// Checks that nothing but whole tables is beside the trace, and nothing in the cache.
    fn assert_tidy(&self, what: &str) {
        let beside: Vec<_> = tree(&self.root()).into_keys().map(|path| top(&path)).collect();
        assert!(beside.iter().all(|name| name == "pytorch"), "{what}: {beside:?}");
        let cached = tree(&self.cache());
        assert!(cached.is_empty(), "{what}: {cached:?}");
    }
}

fn top(path: &Path) -> String {
    path.iter().next().unwrap().to_string_lossy().into_owned()
}

/// Returns all there is in a folder: files with their content, links with what they lead to.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    fn walk(base: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            let what = if kind.is_symlink() {
                format!("link to {}", fs::read_link(&path).unwrap().display())
            } else if kind.is_dir() {
                walk(base, &path, found);
                "folder".to_owned()
            } else {
                format!("{:?}", fs::read(&path).unwrap())
            };
            found.insert(path.strip_prefix(base).unwrap().to_owned(), what);
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, folder, &mut found);
    found
}

/// Says plainly that a case could not be tried here.
fn skipped(why: &str) {
    // Unlike the print macros, this is shown when the test passes, too.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

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

/// `kill -9` at a hundred moments spread over a build, and a little beyond.
#[test]
fn killed_at_any_moment() {
    let guarded = Guarded::new();
    let began = Instant::now();
    guarded.run(&["prep", "--force"]).answer();
    let whole = began.elapsed();
    for moment in 0..100_u32 {
        // Every other time nothing is there yet: what a first build leaves differs from what a second does.
        if moment % 2 == 0 {
            guarded.run(&["clean"]).answer();
        }
        let mut child = guarded
            .command(&["prep", "--force"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(whole * moment / 90);
        child.kill().unwrap();
        child.wait().unwrap();
        let (at, what) = (
            moment as usize % QUESTIONS.len(),
            format!("killed at moment {moment}"),
        );
        guarded.assert_answered(at, &guarded.run(QUESTIONS[at]), &what);
        guarded.assert_kept(&what);
    }
    // The next build clears away what the killed ones left.
    guarded.run(&["prep", "--force"]).answer();
    guarded.assert_right("after all");
    guarded.assert_tidy("after all");
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

/// Tables cut, emptied, lengthened, flipped or gone: built anew.
#[test]
fn damaged_tables_are_built_anew() {
    let guarded = Guarded::new();
    guarded.assert_right("first");
    let names: Vec<PathBuf> = tree(&guarded.tables()).into_keys().collect();
    assert!(names.len() >= 6, "{names:?}");
    for (number, name) in names.iter().enumerate() {
        let path = guarded.tables().join(name);
        let whole = fs::read(&path).unwrap();
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            bytes
        };
        let mut cases = vec![
            ("emptied", Vec::new()),
            ("cut", whole[..whole.len() / 2].to_vec()),
            ("cut by one", whole[..whole.len() - 1].to_vec()),
            ("lengthened", [&whole[..], b"\0"].concat()),
        ];
        let places = [
            0,
            5,
            whole.len() / 3,
            whole.len() / 2,
            whole.len() - 9,
            whole.len() - 1,
        ];
        cases.extend(places.map(|at| ("flipped", flipped(at))));
        for (case, bytes) in cases {
            let what = format!("{} {case}", name.display());
            fs::write(&path, bytes).unwrap();
            let at = number % QUESTIONS.len();
            guarded.assert_answered(at, &guarded.run(QUESTIONS[at]), &what);
        }
        fs::remove_file(&path).unwrap();
        guarded.assert_right(&format!("{} removed", name.display()));
    }
    guarded.assert_tidy("after all");
}

/// Returns a trace of a fixed size whose rows have a given name.
fn trace_of(name: &str) -> Vec<u8> {
    let row = |at: u32| json!({ "ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10 * at, "dur": 5 });
    let rows: Vec<Value> = (0..200).map(row).collect();
    json!({ "schemaVersion": 1, "traceEvents": rows })
        .to_string()
        .into_bytes()
}

#[test]
fn a_trace_replaced_under_its_name_size_and_times_is_another() {
    let lab = Lab::new();
    let (name, before, after) = ("run.pt.trace.json", trace_of("aten::old"), trace_of("aten::new"));
    assert_eq!(before.len(), after.len());
    let path = lab.path().join(name);
    let answers = undisturbed(name, &after);
    for how in ["written over", "renamed over"] {
        lab.write(name, &before);
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(
            lab.run(&["search", name]).answer()["data"]["rows"][0]["name"],
            "aten::old"
        );
        if how == "written over" {
            fs::write(&path, &after).unwrap();
        } else {
            fs::write(lab.path().join("other"), &after).unwrap();
            fs::rename(lab.path().join("other"), &path).unwrap();
        }
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(modified)
            .unwrap();
        for (question, expected) in QUESTIONS.iter().zip(&answers) {
            let called = lab.run(&words(question, name));
            assert_eq!(without_place(&called.stdout), *expected, "{how}");
        }
        assert!(fs::read(&path).unwrap() == after, "{how}");
    }
}

/// Clocks that go wrong: files from the future, from long ago, and from before the epoch.
#[test]
fn no_clock_is_trusted() {
    let guarded = Guarded::new();
    guarded.assert_right("first");
    let (now, year) = (SystemTime::now(), Duration::from_secs(365 * 86_400));
    let times = [now + 50 * year, now - 50 * year, SystemTime::UNIX_EPOCH - year];
    let set = |path: &Path, time| {
        File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(time)
    };
    for time in times {
        if set(&guarded.input(), time).is_err() {
            skipped("the file system takes no such time");
            continue;
        }
        guarded.assert_right("the trace's time");
        for file in tree(&guarded.tables()).into_keys() {
            set(&guarded.tables().join(file), time).unwrap();
        }
        guarded.assert_right("the tables' times");
        guarded.run(&["clean"]).answer();
        guarded.assert_right("built then");
    }
    guarded.assert_tidy("after all");
}

fn finish(children: Vec<(usize, Child)>) -> Vec<(usize, Called)> {
    let ended = children.into_iter().map(|(at, child)| {
        let output = child.wait_with_output().unwrap();
        let called = Called {
            line: QUESTIONS[at].join(" "),
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        (at, called)
    });
    ended.collect()
}

fn start(guarded: &Guarded, many: usize) -> Vec<(usize, Child)> {
    let started = (0..many).map(|number| {
        let at = number % QUESTIONS.len();
        let mut command = guarded.command(QUESTIONS[at]);
        command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        (at, command.spawn().unwrap())
    });
    started.collect()
}

#[test]
fn two_and_twenty_at_once() {
    let guarded = Guarded::new();
    for many in [2, 20, 20] {
        for (at, called) in finish(start(&guarded, many)) {
            guarded.assert_answered(at, &called, &format!("{many} at once"));
        }
        guarded.assert_kept("at once");
        guarded.assert_tidy("at once");
        guarded.run(&["clean"]).answer();
    }
}

/// Others may clean, or build anew, while a question is answered.
#[test]
fn twenty_at_once_while_others_clean_and_rebuild() {
    let guarded = Guarded::new();
    for _ in 0..3 {
        let asked = start(&guarded, 20);
        let others: Vec<Child> = [
            &["clean"][..],
            &["prep", "--force"],
            &["clean"],
            &["prep", "--force"],
        ]
        .into_iter()
        .map(|question| {
            guarded
                .command(question)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
        for (at, called) in finish(asked) {
            guarded.assert_right_or(at, &called, &["input.changed"], "at once");
        }
        for mut other in others {
            other.wait().unwrap();
        }
        guarded.assert_right("afterwards");
    }
    guarded.assert_tidy("afterwards");
}

/// Links in place of the folders lead nowhere: they are neither followed nor removed.
#[cfg(unix)]
#[test]
fn links_in_place_of_folders_are_not_followed() {
    use std::os::unix::fs::symlink;
    let guarded = Guarded::new();
    let foreign = guarded.lab.path().join("foreign");
    fs::create_dir_all(foreign.join("pytorch")).unwrap();
    fs::write(foreign.join("pytorch/manifest.json"), "mine").unwrap();
    fs::write(foreign.join("events.parquet"), "mine too").unwrap();
    let file = guarded.lab.path().join("file");
    fs::write(&file, "a file").unwrap();
    let before = tree(&foreign);
    for target in [
        &foreign,
        &file,
        &guarded.lab.path().join("dangling"),
        &guarded.input(),
    ] {
        for is_inner in [false, true] {
            let what = format!("link to {}, inner: {is_inner}", target.display());
            let link = if is_inner {
                fs::create_dir(guarded.root()).unwrap();
                guarded.tables()
            } else {
                guarded.root()
            };
            symlink(target, &link).unwrap();
            guarded.assert_right(&what);
            guarded.run(&["clean"]).answer();
            assert_eq!(fs::read_link(&link).unwrap(), *target, "{what}");
            assert_eq!(tree(&foreign), before, "{what}");
            assert_eq!(fs::read_to_string(&file).unwrap(), "a file", "{what}");
            assert!(!guarded.lab.path().join("dangling").exists(), "{what}");
            fs::remove_file(&link).unwrap();
            let _ = fs::remove_dir(guarded.root());
        }
    }
}

/// `clean` takes what veloq made and nothing else, whatever it is called.
#[test]
fn clean_leaves_what_veloq_did_not_make() {
    let guarded = Guarded::new();
    let mine = guarded.tables();
    fs::create_dir_all(mine.join("events.parquet")).unwrap();
    for name in ["manifest.json", "args.parquet", "CACHEDIR.TAG", "notes.txt"] {
        fs::write(mine.join(name), format!("my {name}")).unwrap();
    }
    fs::write(guarded.root().join(".pytorch.lock"), "mine").unwrap();
    fs::create_dir(guarded.root().join(".pytorch.tmp-1-0123456789abcdef")).unwrap();
    fs::write(
        guarded
            .root()
            .join(".pytorch.tmp-1-0123456789abcdef/events.parquet"),
        "mine",
    )
    .unwrap();
    let before = tree(&guarded.root());
    let answer = guarded.run(&["clean"]).answer();
    let rows = answer["data"]["rows"].as_array().unwrap();
    assert!(
        rows.iter()
            .all(|row| row["removed"] == false && row["reason"].is_string()),
        "{answer}"
    );
    assert_eq!(tree(&guarded.root()), before);
    // Questions are answered from the cache, and leave it alone, too.
    guarded.assert_right("beside a foreign folder");
    assert_eq!(tree(&guarded.root()), before);
    guarded.run(&["clean"]).answer();
    assert_eq!(tree(&guarded.root()), before);
    assert!(tree(&guarded.cache()).is_empty());
    // The trace may be gone; `clean` then still finds only what is veloq's.
    fs::remove_file(guarded.input()).unwrap();
    guarded.run(&["clean"]).answer();
    assert_eq!(tree(&guarded.root()), before);
}

/// A trace that is still being written: an answer about a part of it or an error, and nothing of it is kept.
#[test]
fn a_trace_that_grows_is_never_taken_for_whole() {
    let lab = Lab::new();
    let name = "growing.pt.trace.json";
    let path = lab.path().join(name);
    let rows: Vec<String> = (0..40_000)
        .map(|at| {
            json!({ "ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 10 * at, "dur": 5 })
                .to_string()
        })
        .collect();
    let whole = format!("{{\"schemaVersion\":1,\"traceEvents\":[{}]}}", rows.join(","));
    let answers = undisturbed(name, whole.as_bytes());
    let start = whole.len() / 4;
    fs::write(&path, &whole[..start]).unwrap();
    let (ask, asked) = std::sync::mpsc::channel();
    let writer = thread::spawn({
        let (path, rest) = (path.clone(), whole.as_bytes()[start..].to_vec());
        move || {
            let mut file = File::options().append(true).open(path).unwrap();
            for part in rest.chunks(rest.len() / 100) {
                file.write_all(part).unwrap();
                ask.send(()).unwrap();
                thread::sleep(Duration::from_millis(20));
            }
        }
    });
    let mut last = 0;
    while asked.recv().is_ok() {
        let called = lab.run(&["summary", name]);
        let answer = called.parsed();
        if called.status == 0 {
            let count = answer["data"]["rows"][0]["event_count"].as_u64().unwrap();
            let findings = answer["data"]["auxiliary"]["trust"]["findings"].to_string();
            assert!(count >= last, "{count} after {last}");
            assert!(
                count == 40_000 || findings.contains("input.truncated"),
                "{count}: {findings}"
            );
            last = count;
        } else {
            assert_eq!(
                (called.status, answer["error"]["code"].as_str()),
                (3, Some("input.changed"))
            );
        }
        while asked.try_recv().is_ok() {}
    }
    writer.join().unwrap();
    for (question, expected) in QUESTIONS.iter().zip(&answers) {
        assert_eq!(without_place(&lab.run(&words(question, name)).stdout), *expected);
    }
    assert!(fs::read(&path).unwrap() == whole.as_bytes());
}
