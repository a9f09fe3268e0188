//! Reading in several ways that must come to the same; for tests and fuzzing.

use std::io::Write as _;

use super::*;
use crate::kineto::event::Event;
use crate::kineto::time::Time;

/// What is seen of an element: index, phase, name, start, args.
pub(crate) type Seen = (u64, char, String, Time, Option<String>);

#[derive(Default)]
struct Collected(Vec<Seen>);

impl BlockSink for Collected {
    fn event(&mut self, index: u64, _: u64, event: &Event<'_>) {
        let name = event.name.as_deref().unwrap_or("-").to_owned();
        self.0.push((
            index,
            char::from(event.phase),
            name,
            event.ts,
            event.args.map(str::to_owned),
        ));
    }
}

impl Collector for Collected {
    type Block = Self;

    fn block() -> Self {
        Self::default()
    }

    fn rows(&self) -> u64 {
        self.0.len() as u64
    }

    fn absorb(&mut self, block: Self, first: First) -> Result<(), ReadError> {
        let moved = |(index, phase, name, ts, args)| (index + first.index, phase, name, ts, args);
        self.0.extend(block.0.into_iter().map(moved));
        Ok(())
    }
}

/// Reads a text in blocks of a size; returns what was seen, or the error in words.
pub(crate) fn read_in(
    text: &[u8],
    block_bytes: usize,
    workers: usize,
) -> Result<(Vec<Seen>, Document), String> {
    let mut file = tempfile::NamedTempFile::new().expect("there is a folder for temporary files");
    file.write_all(text).expect("it takes a file");
    let mut collected = Collected::default();
    let options = ReadOptions {
        workers,
        block_bytes,
        ..ReadOptions::default()
    };
    let document = read(file.path(), options, &mut collected);
    match document {
        Ok(document) => Ok((collected.0, document)),
        Err(error) => Err(error.to_string().replace(&*file.path().to_string_lossy(), "FILE")),
    }
}

/// Reads a text in one block and in many; returns what was seen, or the error in words.
///
/// # Panics
/// When the blocks make a difference, or the `args` of an element are no JSON.
pub(crate) fn read_text(text: &[u8]) -> Result<(Vec<Seen>, Document), String> {
    let whole = read_in(text, 1 << 20, 1);
    for (block_bytes, workers) in [(1, 1), (7, 3), (64, 2), (200, 2)] {
        let pieces = read_in(text, block_bytes, workers);
        assert_eq!(
            pieces,
            whole,
            "in blocks of {block_bytes}: {}",
            String::from_utf8_lossy(text)
        );
    }
    for (.., args) in whole.iter().flat_map(|(seen, _)| seen) {
        if let Some(args) = args {
            serde_json::from_str::<&serde_json::value::RawValue>(args).expect("args are JSON");
        }
    }
    whole
}
