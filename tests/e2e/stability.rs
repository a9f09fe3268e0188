//! Equal inputs give equal bytes: cold or warm, whatever the threads, whoever else asks.

use crate::support::{Lab, examples};

#[test]
fn cold_and_warm_answers_are_equal_whatever_the_threads() {
    let lab = Lab::new();
    let trace = lab.training();
    for example in examples() {
        lab.run(&["clean", &trace]).answer();
        let cold = lab.run_example(example, &trace, &["--threads", "1"]);
        let warm = lab.run_example(example, &trace, &["--threads", "1"]);
        assert!(cold.stdout == warm.stdout, "{}", example.command);
        lab.run(&["clean", &trace]).answer();
        let other = lab.run_example(example, &trace, &["--threads", "4"]);
        assert!(cold.stdout == other.stdout, "{}", example.command);
    }
}

#[test]
fn answers_do_not_depend_on_where_the_trace_is() {
    let lab = Lab::new();
    let trace = lab.training();
    std::fs::create_dir(lab.path().join("below")).unwrap();
    std::fs::copy(lab.path().join(&trace), lab.path().join("below").join(&trace)).unwrap();
    let below = format!("below/{trace}");
    for example in examples() {
        let here = lab.run_example(example, &trace, &["--format", "json"]).answer();
        let there = lab.run_example(example, &below, &["--format", "json"]).answer();
        let text = there.to_string().replace(&below, &trace);
        let here = here.to_string();
        assert!(text == here, "{}", example.command);
    }
}

/// Two that open a trace at once both get the whole answer.
#[test]
fn calls_at_once_do_not_disturb_each_other() {
    let lab = Lab::new();
    let trace = lab.training();
    let expected = {
        let alone = Lab::new();
        alone.training();
        alone.run(&["search", &trace, "--limit", "0"]).stdout
    };
    for _ in 0..3 {
        let mut children: Vec<_> = (0..4)
            .map(|_| {
                let mut command = lab.command(["search", trace.as_str(), "--limit", "0"]);
                command.stdout(std::process::Stdio::piped()).spawn().unwrap()
            })
            .collect();
        while let Some(child) = children.pop() {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            let answer = String::from_utf8(output.stdout).unwrap();
            assert!(answer == expected, "{answer:.600}");
        }
        lab.run(&["clean", &trace]).answer();
    }
}

/// Another file under the same name is read anew.
#[test]
fn a_changed_trace_is_read_again() {
    let lab = Lab::new();
    let trace = |name: &str| {
        format!(
            r#"{{"traceEvents":[{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,"ts":1,"dur":2}}]}}"#
        )
    };
    lab.write("a.pt.trace.json", trace("before"));
    let name =
        |lab: &Lab| lab.run(&["search", "a.pt.trace.json"]).answer()["data"]["rows"][0]["name"].clone();
    assert_eq!(name(&lab), "before");
    lab.write("a.pt.trace.json", trace("after!"));
    assert_eq!(
        name(&lab),
        "after!",
        "of the same size, written within the same second"
    );
}
