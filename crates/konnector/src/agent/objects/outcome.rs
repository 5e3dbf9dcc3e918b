//! How a piece of work ends.

use std::time::Duration;

use carrick_client::Error;
use carrick_sync::executor::refusal::is_unserved;
use carrick_sync::executor::{StepError, Verb};

/// How a piece of work ends, if it does not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agent) enum Outcome {
    /// There is nothing more to do until something changes.
    Settled,
    /// What was done makes the next step possible.
    Again,
    /// Not all is known that a decision needs. A watch tells when it is.
    Unknown,
}

/// Why a piece of work does not end well.
#[derive(Debug)]
pub(in crate::agent) enum Trouble {
    /// Somebody else has the object, or the name of its copy; a watch tells when that ends.
    Conflict(String),
    /// Somebody else has to do something first, and a watch tells when that is done.
    Pending(String),
    /// It is tried again: what is wrong, and what others fail for as well.
    Failed {
        /// What is wrong.
        words: String,
        /// What others fail for as well.
        cause: Option<String>,
    },
    /// Something undoes what is written, every time, or it changes too often: it is written again after this time.
    Contested {
        /// What is undone or changes.
        words: String,
        /// How long to wait.
        wait: Duration,
    },
    /// Somebody else was faster: nothing is wrong, it is decided again.
    Race,
}

impl Trouble {
    /// Something that is tried again and that nobody else fails for.
    pub fn failed(words: impl Into<String>) -> Self {
        Self::Failed { words: words.into(), cause: None }
    }

    /// A request that failed.
    pub fn request(error: &Error) -> Self {
        Self::Failed { words: error.to_string(), cause: error.shared_cause() }
    }
}

impl From<StepError> for Trouble {
    fn from(error: StepError) -> Self {
        // A kind that is gone by now ends with its binding, which a watch brings.
        let is_unserved =
            matches!(&error, StepError::Write { verb, source, .. } if *verb != Verb::Create && is_unserved(source));
        if error.is_race() || is_unserved {
            return Self::Race;
        }
        if let Some(wait) = error.pause() {
            return Self::Contested { words: error.to_string(), wait };
        }
        if error.is_taken() {
            return Self::Conflict(error.to_string());
        }
        let cause = if let StepError::Write { source, .. } = &error { source.shared_cause() } else { None };
        // A status that was refused is not sent again before it changes.
        if matches!(error, StepError::StatusRefused(_)) {
            return Self::Pending(error.to_string());
        }
        Self::Failed { words: error.to_string(), cause }
    }
}

/// What is wrong with a piece of work, as others see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::agent) struct Problem {
    /// Whether somebody else has the object.
    pub is_conflict: bool,
    /// Whether something undoes what is written, or changes it too often.
    pub is_contested: bool,
    /// What is wrong.
    pub words: String,
}
