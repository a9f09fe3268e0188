//! Gzip bytes that depend on the input alone: no file name, modification time 0.

use std::io::{self, Write};

use flate2::{Compression, GzBuilder, write::GzEncoder};

/// Wraps `out` in a gzip encoder whose header is always the same.
pub fn gzip_writer<W: Write>(out: W) -> GzEncoder<W> {
    GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(out, Compression::new(6))
}

/// Compresses `bytes` as one complete gzip member.
///
/// # Errors
/// Only what the encoder reports; writing to memory gives none in practice.
pub fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = gzip_writer(Vec::new());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Compresses `bytes` and stops as a killed writer does: everything can be read back, then the stream ends
/// with neither a final block nor a trailer.
///
/// # Errors
/// Only what the encoder reports; writing to memory gives none in practice.
pub fn gzip_cut(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = gzip_writer(Vec::new());
    encoder.write_all(bytes)?;
    encoder.flush()?;
    Ok(encoder.get_ref().clone())
}
