//! A generated trace in a folder of its own.

#![allow(
    dead_code,
    reason = "each bench is a program of its own, and uses what it needs"
)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;
use veloq_tracegen::{Size, Spec, generate};

const EVENTS: u64 = 100_000;

/// A training run of 100,000 events, about 24 MB of text.
pub(crate) struct Trace {
    folder: TempDir,
    path: PathBuf,
    /// Bytes of the text, unpacked.
    pub(crate) text_bytes: u64,
}

impl Trace {
    /// Writes the trace as plain text.
    pub(crate) fn plain() -> Self {
        Self::write("run.pt.trace.json", |file, spec| {
            let mut file = BufWriter::new(file);
            generate(spec, &mut file).unwrap();
            file.flush().unwrap();
        })
    }

    /// Writes the trace compressed.
    #[allow(
        dead_code,
        reason = "each bench is a program of its own, and uses what it needs"
    )]
    pub(crate) fn gzip() -> Self {
        let gzip = Self::write("run.pt.trace.json.gz", |file, spec| {
            let mut encoder = GzEncoder::new(BufWriter::new(file), Compression::default());
            generate(spec, &mut encoder).unwrap();
            encoder.finish().unwrap().flush().unwrap();
        });
        let text_bytes = Self::plain().text_bytes;
        Self { text_bytes, ..gzip }
    }

    fn write(name: &str, write: impl FnOnce(File, &Spec)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let spec = Spec {
            size: Size::Events(EVENTS),
            ..Spec::default()
        };
        write(File::create(&path).unwrap(), &spec);
        let text_bytes = path.metadata().unwrap().len();
        Self {
            folder,
            path,
            text_bytes,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}
