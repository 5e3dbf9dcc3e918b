//! Why nothing can be decided for a pair.

use thiserror::Error;

/// Why nothing can be decided for a pair.
#[derive(Debug, Error)]
pub enum PairError<E> {
    /// An object that existed before is in the place of the copy.
    #[error("{0} is in the place of the copy and belongs to somebody else")]
    Taken(String),
    /// The copy must be replaced, because what changes cannot be changed, but it was there before and is never deleted.
    #[error("{0} cannot be changed in place, and it is not deleted, because it was there before it became a copy")]
    Immutable(String),
    /// The source or its status cannot be transformed.
    #[error(transparent)]
    Transform(E),
}
