//! The session in the README, byte for byte.

use crate::support::{Lab, called, root, shell_words};

/// A command of the README and what it shows as its output.
fn session(readme: &str) -> Vec<(&str, String)> {
    let blocks = readme
        .split("```console\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"));
    blocks
        .map(|(block, _)| {
            let (command, output) = block.split_once('\n').unwrap();
            (command.strip_prefix("$ veloq ").unwrap(), output.to_owned())
        })
        .collect()
}

#[test]
fn the_session_of_the_readme_can_be_repeated() {
    let lab = Lab::new();
    let folder = lab.path().join("fixtures/pytorch");
    std::fs::create_dir_all(&folder).unwrap();
    let fixture = "cuda_training.pt.trace.json.gz";
    std::fs::copy(
        root().join("fixtures/pytorch").join(fixture),
        folder.join(fixture),
    )
    .unwrap();
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let session = session(&readme);
    assert!(session.len() >= 5);
    for (command, output) in session {
        let words = shell_words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let shown = called(&mut lab.command(words.iter().copied()), &words);
        assert_eq!(shown.stdout, output, "veloq {command}");
    }
}
