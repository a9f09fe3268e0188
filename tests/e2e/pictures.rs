//! Pictures of traces: files that browsers can show, equal for equal questions, and never over other files.

use std::fs;

use crate::support::{Lab, fixtures, is_lookalike};

fn shapes(svg: &str) -> usize {
    svg.matches("<rect ").count()
}

/// Checks that elements are closed in the order in which they were opened, and that text is escaped.
fn assert_well_formed(svg: &str, what: &str) {
    let mut open = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece
            .split_once('>')
            .unwrap_or_else(|| panic!("{what}: `<{piece}`"));
        assert!(!text.contains('>'), "{what}: `{text}`");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{what}");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
    }
    assert!(open.is_empty(), "{what}: {open:?}");
    assert!(!svg.chars().any(|c| c.is_control() && c != '\n'), "{what}");
}

#[test]
fn every_fixture_can_be_drawn_twice_the_same() {
    for fixture in fixtures("pytorch")
        .into_iter()
        .filter(|fixture| !is_lookalike(fixture))
    {
        let lab = Lab::new();
        let name = lab.copy(&fixture);
        for verb in ["timeline", "slices"] {
            let draw = |file: &str| {
                let called = lab.run(&[
                    "pytorch",
                    verb,
                    &name,
                    "--all-ranks",
                    "--limit",
                    "1",
                    "--svg",
                    file,
                ]);
                assert!(
                    matches!(called.status, 0 | 4),
                    "{}: {}",
                    called.line,
                    called.stdout
                );
                (called.status == 0).then(|| fs::read_to_string(lab.path().join(file)).unwrap())
            };
            let Some(svg) = draw("a.svg") else { continue };
            assert_well_formed(&svg, &name);
            assert!(shapes(&svg) < 10_000, "{name}: {}", shapes(&svg));
            assert_eq!(draw("b.svg"), Some(svg), "{name}: {verb}");
            fs::remove_file(lab.path().join("a.svg")).unwrap();
        }
    }
}

#[test]
fn a_picture_shows_ranges_kernels_and_communication_and_is_told_of() {
    let lab = Lab::new();
    let trace = lab.training();
    let timeline = lab
        .run(&["timeline", &trace, "--limit", "1", "--svg", "timeline.svg"])
        .answer();
    let picture = &timeline["data"]["auxiliary"]["picture"];
    let svg = fs::read_to_string(lab.path().join("timeline.svg")).unwrap();
    assert_eq!(picture["bytes"], svg.len());
    for shown in [
        "ProfilerStep#2",
        "stream 7",
        "stream 20",
        ">communication<",
        ">kernels<",
        "aten::item",
    ] {
        assert!(svg.contains(shown), "{shown}");
    }
    // Of one step: its ranges, and the device rows it launched.
    lab.run(&[
        "slices", &trace, "--type", "step", "--step", "2", "--svg", "step.svg",
    ])
    .answer();
    let svg = fs::read_to_string(lab.path().join("step.svg")).unwrap();
    assert!(svg.contains("ProfilerStep#2") && svg.contains("stream 20"));
    assert!(!svg.contains("ProfilerStep#1") && !svg.contains("aten::item"));
}

#[test]
fn a_picture_replaces_pictures_only() {
    let lab = Lab::new();
    let trace = lab.training();
    let before = fs::read(lab.path().join(&trace)).unwrap();
    let refused = lab.run(&["timeline", &trace, "--svg", &trace]);
    assert_eq!(
        (refused.status, refused.parsed()["error"]["code"].as_str()),
        (2, Some("usage.output_exists"))
    );
    assert_eq!(fs::read(lab.path().join(&trace)).unwrap(), before);
    let nowhere = lab.run(&["timeline", &trace, "--svg", "none/a.svg"]);
    assert_eq!(nowhere.status, 5, "{}", nowhere.stdout);
}
