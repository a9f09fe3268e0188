//! Which source a file belongs to.

/// What detection may look at: never more than the name, the size and the first bytes.
#[derive(Debug, Clone, Copy)]
pub struct Probe<'a> {
    /// The file's name, without its folder; lossy where it is not UTF-8.
    pub name: &'a str,
    /// The file's size in bytes.
    pub size_bytes: u64,
    /// The first bytes as they are on disk, at most 4 KiB.
    pub head: &'a [u8],
}

/// A source's claim on a file, with the reason in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detection {
    /// Not a file of this source.
    No,
    /// The source can read it when asked by name, but does not claim it.
    Maybe(&'static str),
    /// A file of this source.
    Yes(&'static str),
}

impl Detection {
    /// Returns whether the source claims the file.
    pub fn is_claimed(&self) -> bool {
        matches!(self, Self::Yes(_))
    }
}
