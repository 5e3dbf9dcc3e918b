//! What can go wrong while compiling and while rendering.

use crate::limits;

/// Why a template text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The text is not a well-formed template.
    #[error("template line {line}, column {column}: {message}")]
    Syntax {
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// What was found and what would be right.
        message: String,
    },
    /// The text calls a function that neither Go templates nor sprig have.
    #[error("template line {line}, column {column}: function {name:?} does not exist")]
    UnknownFunction {
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// The name as written.
        name: String,
    },
    /// The text calls a sprig function that this engine does not offer.
    #[error(
        "template line {line}, column {column}: sprig function {name:?} is not supported here: making keys and certificates \
         takes too long; make them elsewhere"
    )]
    UnsupportedFunction {
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// The name as written.
        name: String,
    },
    /// In an HTML template, an action stands where its value cannot be made safe, or the text is not well-formed HTML.
    #[error("template line {line}, column {column}: {message}")]
    Html {
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// What was found.
        message: String,
    },
    /// The text is longer than [`limits::MAX_SOURCE_BYTES`].
    #[error("template has {bytes} bytes, at most {} are allowed", limits::MAX_SOURCE_BYTES)]
    TooLong {
        /// Length of the text.
        bytes: usize,
    },
}

/// Why a template could not be rendered with the given data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// An action failed: wrong type, missing root field, failing function.
    #[error("template line {line}, column {column}, at <{action}>: {message}")]
    Action {
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// The failing part of the template, shortened.
        action: String,
        /// What went wrong.
        message: String,
    },
    /// The template needs more time, memory, nesting or output than allowed.
    #[error("template needs more than {limit} {what}; make it simpler")]
    Limit {
        /// What ran out: `steps`, `bytes of memory`, `levels of nesting` or `bytes of output`.
        what: &'static str,
        /// The limit that was reached.
        limit: usize,
    },
}
