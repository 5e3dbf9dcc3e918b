//! Why the store refuses something.

/// Why a write was refused.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The object exists although it was expected to be absent.
    #[error("the object exists already")]
    Exists,
    /// The object does not exist although a state was expected.
    #[error("the object does not exist")]
    Missing,
    /// The object was written since the expected revision.
    #[error("the object is at revision {0}, not at the expected one")]
    Stale(u64),
    /// The object is larger than a database accepts; the size is that of the request to it.
    #[error("a request of {0} bytes is too large")]
    TooLarge(usize),
    /// The data folder could not be written; nothing was changed.
    #[error("cannot write the data folder: {0}")]
    Disk(#[from] std::io::Error),
}

/// The revision is older than the log reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct Expired {
    /// The revision asked for.
    pub asked: u64,
    /// The oldest revision a watch may start after.
    pub oldest: u64,
}
