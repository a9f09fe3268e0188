//! The bytes of a trace: plain or compressed, counted, hashed nowhere, never all in memory.
//!
//! Compression is told by the first bytes, never by the name. All members of a gzip file are read; zero
//! padding behind them is passed over. Damaged or cut compressed data ends the text early, and is told.

#![expect(
    clippy::disallowed_methods,
    reason = "the one place where gzip is unpacked, member by member and under a cap"
)]

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use veloq_core::ProgressSink;

/// Compressed bytes read at once.
const READ_BYTES: usize = 256 * 1024;

/// Text that is unpacked at once: what was unpacked is lost when damaged data follows within the same step. So
/// steps are an eighth of the text before them, at least the first number and at most the second, from which on
/// larger ones gain nothing.
const STEP_BYTES: (usize, usize) = (1 << 10, 32 << 10);

/// Unpacked text may be this large whatever the input's size.
const UNPACKED_FLOOR: u64 = 2 << 30;

/// Beyond [`UNPACKED_FLOOR`], text may be this many times the input. Traces pack to a tenth or a twentieth.
const UNPACKED_RATIO: u64 = 100;

/// How the bytes of a text ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The compressed data is cut or damaged.
    pub(crate) is_cut: bool,
    /// Something that is neither compressed data nor padding follows it.
    pub(crate) has_foreign_data: bool,
}

/// A file that counts what is read of it.
struct CountedFile<'p> {
    file: File,
    read_bytes: u64,
    total_bytes: u64,
    progress: Option<&'p dyn ProgressSink>,
}

impl Read for CountedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read_bytes += read as u64;
        if let Some(progress) = self.progress {
            progress.advance(self.read_bytes, self.total_bytes);
        }
        Ok(read)
    }
}

type Source<'p> = BufReader<CountedFile<'p>>;

enum State<'p> {
    Plain(Source<'p>),
    Member(Box<GzDecoder<Source<'p>>>),
    Ended,
}

/// The unpacked text of a file.
pub(crate) struct TextReader<'p> {
    state: State<'p>,
    ending: Ending,
    is_compressed: bool,
    stored_bytes: u64,
    unpacked_bytes: u64,
    unpacked_limit: u64,
}

/// The text unpacks to far more than any trace.
#[derive(Debug, thiserror::Error)]
#[error("the compressed data unpacks to more than {limit_bytes} bytes")]
pub(crate) struct UnpackedTooLarge {
    pub(crate) limit_bytes: u64,
}

impl<'p> TextReader<'p> {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be opened or read.
    pub(crate) fn open(path: &Path, progress: Option<&'p dyn ProgressSink>) -> io::Result<Self> {
        let file = File::open(path)?;
        let total_bytes = file.metadata()?.len();
        let counted = CountedFile {
            file,
            read_bytes: 0,
            total_bytes,
            progress,
        };
        let mut source = BufReader::with_capacity(READ_BYTES, counted);
        let is_compressed = source.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let state = if is_compressed {
            State::Member(Box::new(GzDecoder::new(source)))
        } else {
            State::Plain(source)
        };
        Ok(Self {
            state,
            ending: Ending::default(),
            is_compressed,
            stored_bytes: total_bytes,
            unpacked_bytes: 0,
            unpacked_limit: UNPACKED_FLOOR.max(total_bytes.saturating_mul(UNPACKED_RATIO)),
        })
    }

    /// Returns whether the file is compressed.
    pub(crate) fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// Returns the size of the file when it was opened.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// Returns how the text ended; meaningful once it has.
    pub(crate) fn ending(&self) -> Ending {
        self.ending
    }

    /// Appends at least `at_least` bytes of text to `text`, fewer only at its end; returns whether it ended.
    ///
    /// # Errors
    /// When the file cannot be read, or unpacks to far more than any trace.
    pub(crate) fn append_to(&mut self, text: &mut Vec<u8>, at_least: usize) -> io::Result<bool> {
        let start = text.len();
        text.resize(start + at_least, 0);
        let mut filled = start;
        let mut has_ended = false;
        while filled < text.len() {
            let read = self.read_some(&mut text[filled..])?;
            if read == 0 {
                has_ended = true;
                break;
            }
            filled += read;
            self.unpacked_bytes += read as u64;
        }
        text.truncate(filled);
        if self.is_compressed && self.unpacked_bytes > self.unpacked_limit {
            return Err(io::Error::other(UnpackedTooLarge {
                limit_bytes: self.unpacked_limit,
            }));
        }
        Ok(has_ended)
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (least, most) = STEP_BYTES;
        let eighth = usize::try_from(self.unpacked_bytes / 8).unwrap_or(most);
        let step = eighth.clamp(least, most).min(buffer.len());
        loop {
            match &mut self.state {
                State::Plain(source) => return source.read(buffer),
                State::Ended => return Ok(0),
                State::Member(decoder) => match decoder.read(&mut buffer[..step]) {
                    Ok(0) => self.next_member()?,
                    Ok(read) => return Ok(read),
                    Err(error) if is_damage(&error) => {
                        self.ending.is_cut = true;
                        self.state = State::Ended;
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// Goes on to the next member, past zero padding.
    fn next_member(&mut self) -> io::Result<()> {
        let State::Member(decoder) = std::mem::replace(&mut self.state, State::Ended) else {
            return Ok(());
        };
        let mut source = decoder.into_inner();
        loop {
            let buffer = source.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            let padding = buffer.iter().take_while(|byte| **byte == 0).count();
            if padding < buffer.len() {
                let is_member = padding == 0 && buffer.starts_with(&[0x1f]);
                if is_member {
                    self.state = State::Member(Box::new(GzDecoder::new(source)));
                } else {
                    self.ending.has_foreign_data = true;
                }
                return Ok(());
            }
            source.consume(padding);
        }
    }
}

/// Returns whether an error of reading compressed data is the data's fault.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> (String, Ending) {
        read_in(bytes, 3)
    }

    fn read_in(bytes: &[u8], at_least: usize) -> (String, Ending) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut reader = TextReader::open(file.path(), None).unwrap();
        let mut text = Vec::new();
        while !reader.append_to(&mut text, at_least).unwrap() {}
        (String::from_utf8(text).unwrap(), reader.ending())
    }

    #[test]
    fn compression_is_told_by_the_first_bytes() {
        assert_eq!(read(b"plain"), ("plain".into(), Ending::default()));
        assert_eq!(read(&packed("packed")), ("packed".into(), Ending::default()));
        assert_eq!(read(b""), (String::new(), Ending::default()));
    }

    #[test]
    fn all_members_are_read_and_padding_is_passed_over() {
        let bytes = [packed("one "), packed("two"), vec![0; 600]].concat();
        assert_eq!(read(&bytes), ("one two".into(), Ending::default()));
    }

    #[test]
    fn foreign_data_and_cuts_are_told() {
        let ending = read(&[packed("one"), b"garbage".to_vec()].concat());
        assert_eq!(
            ending,
            (
                "one".into(),
                Ending {
                    has_foreign_data: true,
                    is_cut: false
                }
            )
        );
        let whole = packed(&"text ".repeat(1000));
        let (text, ending) = read(&whole[..whole.len() - 9]);
        assert!(ending.is_cut && "text ".repeat(1000).starts_with(&text));
    }

    #[test]
    fn text_before_damage_is_kept() {
        let text: String = (0..100_000).map(|number| format!("{number},")).collect();
        for length in [2_000, 50_000, text.len()] {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&text.as_bytes()[..length]).unwrap();
            encoder.flush().unwrap();
            let mut bytes = encoder.get_ref().clone();
            // A block of the one kind that there is not (RFC 1951, 3.2.3).
            bytes.extend([0b111; 100]);
            let (read, ending) = read_in(&bytes, 1 << 20);
            assert!(ending.is_cut && text.starts_with(&read));
            assert!(read.len() >= length / 2, "{} of {length} bytes", read.len());
        }
    }
}
