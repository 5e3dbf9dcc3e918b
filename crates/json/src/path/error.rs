//! Why a path is refused.

use std::fmt;

/// The longest array that a path may pad with nulls.
pub(super) const MAX_PADDING: usize = 65_536;

/// A refused path: what is wrong, and where in the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError {
    /// What is wrong.
    pub problem: Problem,
    /// The byte in the path at which it shows, if it shows at one place.
    pub position: Option<usize>,
}

/// What can be wrong with a path, its value or the operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The path is the empty string.
    #[error("path cannot be empty")]
    Empty,
    /// The path names a key inside an array.
    #[error("cannot set array element for non-numeric key '{0}'")]
    NonNumericKey(String),
    /// The path to delete has wildcards, queries, pipes or modifiers.
    #[error("cannot delete value from a complex path")]
    ComplexDelete,
    /// The path would pad an array with an absurd number of nulls.
    #[error("array index '{0}' is too large: arrays are padded with at most {MAX_PADDING} nulls")]
    IndexTooLarge(String),
    /// The path nests too deeply, or following it takes too much work.
    #[error("the path is nested too deeply or takes too much work")]
    TooMuchWork,
    /// What the path makes of the document is nested too deeply to be read back.
    #[error("the path would make a document that is nested too deeply: {0}")]
    TooDeep(String),
    /// The value to set is not JSON.
    #[error("the value to set is not JSON: {0}")]
    Value(String),
    /// The operation is none of those that exist.
    #[error("unknown operation '{0}'; known are gjson (get), sjsonset (set) and sjsondel (delete)")]
    Operation(String),
}

impl Problem {
    /// The error of this problem at a byte of the path.
    pub(super) fn at(self, position: usize) -> PathError {
        PathError { problem: self, position: Some(position) }
    }

    /// The error of this problem, which shows at no place of the path.
    pub(super) fn anywhere(self) -> PathError {
        PathError { problem: self, position: None }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for PathError {}
