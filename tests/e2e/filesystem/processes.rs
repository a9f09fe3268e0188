//! Processes that are killed, and many at once.

use std::process::{Child, Stdio};
use std::thread;
use std::time::Instant;

use super::{Guarded, QUESTIONS};
use crate::support::Called;

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
            .stdout(Stdio::null())
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
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
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
        .map(|question| guarded.command(question).stdout(Stdio::null()).spawn().unwrap())
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
