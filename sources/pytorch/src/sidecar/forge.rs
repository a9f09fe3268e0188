//! Stored tables that lie: whatever is put in their place, their checksums agree. For tests and fuzzing.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::TABLES;
use super::check::{checksum_of_last, tail_bytes};
use super::contents::{MANIFEST_FILE, table_file};
use super::manifest::{Manifest, around};

/// What is put in the place of something that is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Forgery<'a> {
    /// The whole file of the manifest.
    ManifestFile(&'a [u8]),
    /// What the manifest says, under a good checksum.
    Manifest(&'a str),
    /// The file of a table, which the manifest says is right.
    Table(usize, &'a [u8]),
}

/// Changes the tables in a folder.
///
/// # Errors
/// When the folder cannot be written, or holds no manifest.
pub(crate) fn forge(dir: &Path, forgery: Forgery<'_>) -> io::Result<()> {
    let manifest_path = dir.join(MANIFEST_FILE);
    match forgery {
        Forgery::ManifestFile(content) => fs::write(manifest_path, content),
        Forgery::Manifest(body) => fs::write(manifest_path, around(body)),
        Forgery::Table(at, content) => {
            let path = dir.join(table_file(TABLES[at]));
            fs::write(&path, content)?;
            let no_manifest = || io::Error::new(io::ErrorKind::InvalidData, "not a manifest");
            let mut manifest = Manifest::from_text(&fs::read(&manifest_path)?).map_err(|_| no_manifest())?;
            let bytes = content.len() as u64;
            let mut file = File::open(&path)?;
            let table = &mut manifest.tables[at];
            table.bytes = bytes;
            table.checksum = checksum_of_last(&mut file, bytes)?;
            table.tail_checksum = checksum_of_last(&mut file, tail_bytes(bytes))?;
            table.stamp = None;
            fs::write(manifest_path, manifest.to_text()?)
        }
    }
}
