//! What the fuzz targets in `tests/fuzz` call: bytes nobody vouches for go in, and nothing may panic.
//!
//! Each function checks besides what must hold whatever the bytes are, and panics when it does not.

mod stored;

use std::io::Write as _;

use tempfile::NamedTempFile;

use crate::kineto::reader::testing::read_text;
use crate::kineto::root::{parse_head, parse_tail};
use crate::kineto::time::{Time, parse_microseconds};
use crate::open::{Ending, TextReader};
use crate::sidecar::TABLES;
use crate::sidecar::forge::Forgery;

use stored::ask_forged;

/// Opens a file with these bytes, plain or compressed, and looks at its beginning and its end.
///
/// # Panics
/// When the text depends on the size of reads, or plain text is not what is in the file.
pub fn opener(bytes: &[u8]) {
    let mut file = NamedTempFile::new().expect("there is a folder for temporary files");
    file.write_all(bytes).expect("it takes a file");
    let read = |at_least| {
        let mut reader = TextReader::open(file.path(), None).expect("the file is there");
        let mut text = Vec::new();
        while !reader.append_to(&mut text, at_least).expect("it can be read") {}
        (text, reader.ending(), reader.is_compressed())
    };
    let (text, ending, is_compressed) = read(64 << 10);
    let (in_pieces, ending_in_pieces, _) = read(700);
    assert_eq!(ending, ending_in_pieces, "the size of reads matters");
    // How much of the text before damage is saved depends on the steps in which it was unpacked.
    let shared = text.len().min(in_pieces.len());
    assert_eq!(text[..shared], in_pieces[..shared], "the size of reads matters");
    assert!(
        ending.is_cut || text.len() == in_pieces.len(),
        "the size of reads matters"
    );
    if !is_compressed {
        assert_eq!((text.as_slice(), ending), (bytes, Ending::default()));
    }
    let text = String::from_utf8_lossy(&text);
    for is_last in [false, true] {
        parse_head(&text, is_last);
    }
    parse_tail(&text);
}

/// Reads a plain text as a trace, in blocks of several sizes.
///
/// # Panics
/// When the blocks make a difference, or the `args` of an element are no JSON.
pub fn reader(bytes: &[u8]) {
    // Where damage cuts compressed text depends on the steps in which it is unpacked; see `opener`.
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        let _ = read_text(bytes);
    }
}

/// Reads a text as a time of a trace and as what a user may type.
///
/// # Panics
/// When a time written exactly is not read back, or is far from what a float makes of the text.
pub fn time_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Time::Ns(ns) = parse_microseconds(text) {
        let sign = if ns < 0 { "-" } else { "" };
        let (whole, rest) = (ns.unsigned_abs() / 1000, ns.unsigned_abs() % 1000);
        let exact = format!("{sign}{whole}.{rest:03}");
        assert_eq!(parse_microseconds(&exact), Time::Ns(ns), "{text}");
        if let Ok(float) = text.parse::<f64>() {
            #[expect(
                clippy::cast_precision_loss,
                reason = "it is compared as closely as floats allow"
            )]
            let off = (float * 1000.0 - ns as f64).abs();
            assert!(off <= 1.0 + float.abs() * 1e-12, "{text} is not {ns} ns");
        }
    }
    if let Ok(ns) = veloq_core::parse_time(text) {
        assert_eq!(veloq_core::parse_time(&format!("{ns}ns")), Ok(ns), "{text}");
    }
    if let Ok((Some(low), Some(high))) = veloq_core::parse_duration_filter(text) {
        assert!(low <= high, "{text}");
    }
}

/// Puts bytes in the place of something that is stored of a trace, and asks every verb.
///
/// The first byte tells what is replaced: the file of the manifest, what the manifest says, or one of the
/// tables. Checksums are made to agree.
///
/// # Panics
/// When a verb does.
pub fn sidecar(bytes: &[u8]) {
    let Some((what, content)) = bytes.split_first() else {
        return;
    };
    let at = usize::from(*what) % (2 + TABLES.len());
    match (at, std::str::from_utf8(content)) {
        (0, _) => drop(ask_forged(Forgery::ManifestFile(content))),
        (1, Ok(body)) => drop(ask_forged(Forgery::Manifest(body))),
        (1, Err(_)) => {}
        _ => drop(ask_forged(Forgery::Table(at - 2, content))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// What fuzzing found worth keeping goes through the very functions that it called.
    #[test]
    fn corpora_are_replayed() {
        type Target = fn(&[u8]);
        let targets: [(&str, Target); 4] = [
            ("opener", opener),
            ("reader", reader),
            ("time_text", time_text),
            ("sidecar", sidecar),
        ];
        for (name, target) in targets {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../tests/fuzz/corpus")
                .join(name);
            let mut files: Vec<_> = fs::read_dir(&folder)
                .unwrap()
                .map(|file| file.unwrap().path())
                .collect();
            files.sort();
            assert!(files.len() > 1, "{} is a corpus", folder.display());
            for file in files {
                let bytes = fs::read(&file).unwrap();
                std::panic::catch_unwind(|| target(&bytes)).unwrap_or_else(|_| panic!("{}", file.display()));
            }
        }
    }
}
