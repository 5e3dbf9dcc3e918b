//! What can go wrong while compiling and while rendering.

use crate::{limits, position::Position};

/// Why a template text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The text is not a well-formed template.
    #[error("template {position}: {message}")]
    Syntax {
        /// Where in the text.
        position: Position,
        /// What was found and what would be right.
        message: String,
    },
    /// The text calls a function that neither Go templates nor sprig have.
    #[error("template {position}: function {name:?} does not exist")]
    UnknownFunction {
        /// Where in the text.
        position: Position,
        /// The name as written.
        name: String,
    },
    /// The text calls a function of sprig that gives another result at every rendering.
    #[error("template {position}: {}", refused(name, reason))]
    Refused {
        /// Where in the text.
        position: Position,
        /// The name as written.
        name: String,
        /// Why, and the way out.
        reason: &'static str,
    },
    /// The text is longer than [`limits::MAX_SOURCE_BYTES`].
    #[error("template has {bytes} bytes, at most {} are allowed", limits::MAX_SOURCE_BYTES)]
    TooLong {
        /// Length of the text.
        bytes: usize,
    },
}

impl CompileError {
    /// The faulty part of the text, for a caret below it.
    pub fn position(&self) -> Option<Position> {
        match self {
            CompileError::Syntax { position, .. }
            | CompileError::UnknownFunction { position, .. }
            | CompileError::Refused { position, .. } => Some(*position),
            CompileError::TooLong { .. } => None,
        }
    }

    /// What is wrong, without the position.
    pub fn message(&self) -> String {
        match self {
            CompileError::Syntax { message, .. } => message.clone(),
            CompileError::UnknownFunction { name, .. } => format!("function {name:?} does not exist"),
            CompileError::Refused { name, reason, .. } => refused(name, reason),
            CompileError::TooLong { .. } => self.to_string(),
        }
    }
}

fn refused(name: &str, reason: &str) -> String {
    format!("function {name:?} is refused: {reason}")
}

/// Why a template could not be rendered with the given data.
///
/// ```
/// use carrick_template::Template;
/// use serde_json::json;
///
/// let template = Template::compile("size: {{ lower .size }}")?;
/// let error = template.render_value(&json!({"size": 3})).unwrap_err();
/// assert_eq!(error.message(), "wrong type for value; expected string; got int64");
/// assert_eq!(error.position().map(|position| (position.line, position.column)), Some((1, 16)));
/// # Ok::<(), carrick_template::CompileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// An action failed: wrong type, missing root field, failing function.
    #[error("template {position}, at <{action}>: {message}")]
    Action {
        /// Where in the text.
        position: Position,
        /// The failing part of the template, shortened.
        action: String,
        /// What went wrong.
        message: String,
    },
    /// The template needs more time, memory, nesting or output than allowed.
    #[error("template needs more than {limit} {what}; make it simpler")]
    Limit {
        /// Where in the text the limit was reached; nowhere if the data itself is nested too deeply.
        position: Option<Position>,
        /// What ran out: `steps`, `bytes of memory`, `levels of nesting` or `bytes of output`.
        what: &'static str,
        /// The limit that was reached.
        limit: usize,
    },
}

impl RenderError {
    /// The faulty part of the text, for a caret below it.
    pub fn position(&self) -> Option<Position> {
        match self {
            RenderError::Action { position, .. } => Some(*position),
            RenderError::Limit { position, .. } => *position,
        }
    }

    /// What is wrong, without the position.
    pub fn message(&self) -> String {
        match self {
            RenderError::Action { message, .. } => message.clone(),
            RenderError::Limit { .. } => self.to_string(),
        }
    }
}
