//! The manifest: whose tables these are, and what they must look like.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128;

use super::FORMAT_VERSION;
use super::fingerprint::{Fingerprint, Stamp};

/// What is stored about the tables of one input.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// The [`FORMAT_VERSION`] of the tables.
    pub(crate) format_version: u32,
    /// The version of veloq that wrote them; told, never decided on.
    pub(crate) veloq_version: String,
    /// The input they were made from.
    pub(crate) input: Fingerprint,
    /// The tables, in the order of [`TABLES`](super::TABLES).
    pub(crate) tables: Vec<TableFile>,
    /// What the writer of the tables wants to know of them without opening any.
    pub(crate) inventory: Box<RawValue>,
}

/// A table as it was when it was complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableFile {
    /// The table's name.
    pub(crate) name: String,
    /// Its file's name.
    pub(crate) file: String,
    /// Its rows.
    pub(crate) rows: u64,
    /// Its size on disk.
    pub(crate) bytes: u64,
    /// XXH3-64 of the whole file, in hexadecimal.
    pub(crate) checksum: String,
    /// XXH3-64 of the file's tail, which holds the Parquet footer and page indexes; see
    /// [`tail_bytes`](super::check::tail_bytes).
    pub(crate) tail_checksum: String,
    /// The file's stamp; `None` when it could not tell a later write from the last one of the build.
    pub(crate) stamp: Option<Stamp>,
}

/// The manifest's file is these three around a checksum and a body: JSON to every reader, and yet each bit of
/// it is accounted for.
const HEAD: &str = "{\"kind\":\"veloq sidecar\",\"checksum\":\"";
const NECK: &str = "\",\"manifest\":";
const TAIL: &str = "}\n";

/// Reads the file of a manifest; one of a size that no manifest has counts as empty.
pub(super) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(LARGEST_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST_BYTES {
        text.clear();
    }
    Ok(text)
}

/// Far above the size of any manifest, and small enough to be read.
const LARGEST_BYTES: u64 = 256 << 20;

/// Why a text is not a manifest to be believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotAManifest {
    /// Damaged, or something else.
    Damaged,
    /// Intact, of another format version.
    Version(u32),
}

impl Manifest {
    /// Returns the manifest as the text of its file.
    ///
    /// # Errors
    /// None that this type can cause: its parts all have a JSON form.
    pub(super) fn to_text(&self) -> serde_json::Result<String> {
        Ok(around(&serde_json::to_string(self)?))
    }

    /// Reads the text of a manifest's file.
    ///
    /// # Errors
    /// When the text is not what [`to_text`](Self::to_text) wrote to the bit, or is of another version.
    pub(super) fn from_text(text: &[u8]) -> Result<Self, NotAManifest> {
        let body = body(text).ok_or(NotAManifest::Damaged)?;
        let version: Version = serde_json::from_slice(body).map_err(|_| NotAManifest::Damaged)?;
        if version.format_version != FORMAT_VERSION {
            return Err(NotAManifest::Version(version.format_version));
        }
        serde_json::from_slice(body).map_err(|_| NotAManifest::Damaged)
    }
}

/// Returns the text of the file of a manifest with this body.
pub(super) fn around(body: &str) -> String {
    format!("{HEAD}{:032x}{NECK}{body}{TAIL}", xxh3_128(body.as_bytes()))
}

/// The one field that every version of the manifest has.
#[derive(Deserialize)]
struct Version {
    format_version: u32,
}

/// Returns the intact body of a manifest's file.
fn body(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(HEAD.as_bytes())?;
    let (checksum, rest) = rest.split_at_checked(32)?;
    let body = rest
        .strip_prefix(NECK.as_bytes())?
        .strip_suffix(TAIL.as_bytes())?;
    (checksum == format!("{:032x}", xxh3_128(body)).as_bytes()).then_some(body)
}

/// Returns whether a text is a manifest of veloq, of whatever version.
pub(super) fn is_manifest(text: &[u8]) -> bool {
    body(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("a.json");
        std::fs::write(&input, "[]").unwrap();
        Manifest {
            format_version: FORMAT_VERSION,
            veloq_version: "1.2.3".to_owned(),
            input: Fingerprint::of(&input).unwrap(),
            tables: Vec::new(),
            inventory: RawValue::from_string("{ \"a\": 1.50,\n \"b\": [9007199254740993] }".to_owned())
                .unwrap(),
        }
    }

    #[test]
    fn comes_back_as_it_was() {
        let written = manifest();
        let text = written.to_text().unwrap();
        let read = Manifest::from_text(text.as_bytes()).unwrap();
        assert_eq!(read.input, written.input);
        assert_eq!(read.inventory.get(), written.inventory.get());
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["manifest"]["veloq_version"], "1.2.3");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let text = manifest().to_text().unwrap().into_bytes();
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut flipped = text.clone();
                flipped[at] ^= 1 << bit;
                assert!(!is_manifest(&flipped), "bit {bit} of byte {at}");
            }
            assert!(!is_manifest(&text[..at]), "cut at {at}");
        }
    }

    #[test]
    fn another_version_is_told_apart_from_damage() {
        let mut future = manifest();
        future.format_version = 99;
        let text = future.to_text().unwrap();
        let error = Manifest::from_text(text.as_bytes()).unwrap_err();
        assert_eq!(error, NotAManifest::Version(99));
        assert!(is_manifest(text.as_bytes()));
    }
}
