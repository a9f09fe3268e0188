//! Several at once, and some that are killed.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::*;

const INPUT: &str = "VELOQ_TEST_SIDECAR_INPUT";
const MODE: &str = "VELOQ_TEST_SIDECAR_MODE";

/// Is run by the tests below in a process of its own.
#[test]
#[ignore = "the child of other tests"]
fn child() {
    let Some(input) = std::env::var_os(INPUT).map(PathBuf::from) else {
        return;
    };
    let store = Store::with_cache(&input, None);
    match std::env::var(MODE).unwrap().as_str() {
        "once" => {
            let built = obtain(&store, false).built;
            let mut log = fs::File::options()
                .append(true)
                .open(input.with_file_name("log"))
                .unwrap();
            log.write_all(if built { b"built\n" } else { b"reused\n" })
                .unwrap();
        }
        _ => loop {
            fs::write(input.with_file_name("started"), "").unwrap();
            obtain(&store, true);
            store.clean().unwrap();
            obtain(&store, false);
        },
    }
}

fn spawn(input: &Path, mode: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "sidecar::tests::processes::child",
            "--ignored",
            "--nocapture",
        ])
        .env(INPUT, input)
        .env(MODE, mode)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

#[test]
fn of_twenty_processes_one_builds() {
    let trace = Fixture::new();
    let log = trace.input().with_file_name("log");
    fs::write(&log, "").unwrap();
    let children: Vec<Child> = (0..20).map(|_| spawn(trace.input(), "once")).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let log = fs::read_to_string(log).unwrap();
    let count = |word: &str| log.lines().filter(|line| *line == word).count();
    assert_eq!((count("built"), count("reused")), (1, 19));
    assert_eq!(trace.listing().len(), 12);
}

#[test]
fn of_twenty_threads_one_builds() {
    let trace = Fixture::new();
    let built: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..20)
            .map(|_| scope.spawn(|| usize::from(trace.build().built)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(built, 1);
    assert_eq!(trace.listing().len(), 11);
}

#[test]
fn twenty_that_do_not_wait_for_each_other_do_no_harm() {
    let trace = Fixture::new();
    let hasty = Store {
        patience: Some(Duration::ZERO),
        ..trace.store.clone()
    };
    thread::scope(|scope| {
        for index in 0..20 {
            let hasty = &hasty;
            scope.spawn(move || {
                // Another thread may replace these tables at any time: then they cannot be opened any more.
                let obtained = hasty
                    .obtain(index % 2 == 0, |draft| write_tables(&hasty.input, draft))
                    .unwrap();
                let content = fs::read(&hasty.input).unwrap();
                for table in TABLES {
                    match obtained.sidecar.open(table) {
                        Ok(mut file) => {
                            let mut read = Vec::new();
                            io::Read::read_to_end(&mut file, &mut read).unwrap();
                            assert!(read == table_content(&content, table));
                        }
                        Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
                    }
                }
            });
        }
    });
    let obtained = trace.build();
    assert_is_right(&obtained.sidecar, trace.input());
    trace.store.clean().unwrap();
    assert!(!trace.root().exists());
}

#[test]
fn whoever_is_killed_at_any_moment_does_no_harm() {
    let trace = Fixture::new();
    let mut leftovers = 0;
    let started = trace.input().with_file_name("started");
    for round in 0..30_u64 {
        let mut child = spawn(trace.input(), "for ever");
        while !started.exists() {
            assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
            thread::sleep(Duration::from_millis(1));
        }
        // A round of the child takes some tens of milliseconds.
        thread::sleep(Duration::from_micros(round * 7_919 % 41_000));
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(&started).unwrap();
        match trace.store.find().unwrap() {
            Found::Ready(sidecar) => assert_is_right(&sidecar, trace.input()),
            Found::Missing => {}
            found => panic!("round {round}: {found:?}"),
        }
        leftovers += usize::from(
            trace
                .listing()
                .iter()
                .any(|path| path.rsplit('/').next().is_some_and(is_passing_name)),
        );
        if round % 3 == 0 {
            trace.build();
        }
    }
    assert!(leftovers > 0, "no child was killed in the middle of a build");
    assert!(obtain(&trace.store, true).built);
    assert_eq!(trace.listing().len(), 11, "{:?}", trace.listing());
    assert_eq!(fs::read_to_string(trace.input()).unwrap(), "the trace");
    trace.store.clean().unwrap();
    assert_eq!(trace.listing(), ["traces", "traces/run.json.gz"]);
}

#[test]
fn what_a_killed_build_left_is_swept_up_and_what_a_running_one_has_is_not() {
    let trace = Fixture::new();
    let hasty = Store {
        patience: Some(Duration::ZERO),
        ..trace.store.clone()
    };
    trace
        .store
        .obtain(false, |draft| {
            let contents = write_tables(trace.input(), draft);
            assert!(obtain(&hasty, true).built);
            assert!(draft.path("events").exists());
            contents
        })
        .unwrap();
    let dead = trace.store.places[0].passing_dir(super::super::place::Passing::Draft);
    let unborn = trace.store.places[0].passing_dir(super::super::place::Passing::Old);
    fs::create_dir(&unborn).unwrap();
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("CACHEDIR.TAG"), super::super::contents::MARKER).unwrap();
    fs::write(dead.join("events.parquet"), "half").unwrap();
    obtain(&trace.store, true);
    assert_eq!(trace.listing().len(), 11);
}
