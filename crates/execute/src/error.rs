//! Why a step could not be executed, and what follows from that.

use carrick_client::Error;
use thiserror::Error;

/// Why a step could not be executed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StepError {
    /// A server refused or did not answer.
    #[error("cannot {verb} {at}: {source}")]
    Write {
        /// What was tried.
        verb: &'static str,
        /// On which object.
        at: String,
        /// What the server said.
        source: Error,
    },
    /// The name of a new copy is taken.
    #[error("{at} exists already and belongs to {owner}; {advice}")]
    Foreign {
        /// The object.
        at: String,
        /// Who owns it.
        owner: String,
        /// How its owner can give way.
        advice: &'static str,
    },
    /// The name of a new copy is taken by an object that nobody has offered.
    #[error("{at} was there before, and nobody said that it may become a copy; {advice}")]
    Refused {
        /// The object.
        at: String,
        /// How its owner can give way.
        advice: &'static str,
    },
    /// A status does not fit its schema. It is not sent again until it changes.
    #[error("{0}")]
    StatusRefused(String),
    /// Somebody else has written the copy since it was observed.
    #[error("{0} was written by somebody else meanwhile; it is reconciled again")]
    Stale(String),
    /// A copy was not visible before.
    #[error("a copy is still there: {0}; it is reconciled again")]
    CopyLeft(String),
}

impl StepError {
    /// Whether somebody else was faster: nothing is wrong, the object is just decided anew.
    pub fn is_race(&self) -> bool {
        match self {
            Self::Write { source, .. } => source.is_conflict() || source.is_already_exists(),
            Self::Foreign { .. } | Self::Refused { .. } | Self::StatusRefused(_) => false,
            Self::CopyLeft(_) | Self::Stale(_) => true,
        }
    }

    /// What is wrong, if that is the consumer's business: the order itself is refused, or the name of its copy is taken.
    pub fn for_consumer(&self) -> Option<String> {
        match self {
            Self::Write { verb: "create" | "edit" | "replace", source, .. } if source.is_invalid() => {
                source.status().map(|status| status.message.clone())
            }
            Self::Foreign { .. } | Self::Refused { .. } => Some(self.to_string()),
            _ => None,
        }
    }

    /// Whether something else has the name of the copy, and keeps it until its owner does something about it.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Foreign { .. } | Self::Refused { .. })
    }

    /// Whether a server knows us and says no.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.is_forbidden())
    }

    /// The same without anything that a server may have quoted.
    #[must_use]
    pub fn discreet(self) -> Self {
        match self {
            Self::Write { verb, at, source } => Self::Write { verb, at, source: source.discreet() },
            other => other,
        }
    }

    /// The object, in words, that the agent may not write.
    pub fn refused(&self) -> Option<&str> {
        match self {
            Self::Write { at, source, .. } if source.is_forbidden() => Some(at),
            _ => None,
        }
    }

    /// Whether a server has too much to do.
    pub fn is_overload(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.is_overload())
    }

    /// Whether a server is at fault, so that it may work by itself later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.is_transient())
    }
}

#[cfg(test)]
mod tests {
    use carrick_client::Status;

    use super::*;

    fn answered(code: u16, reason: &str) -> StepError {
        let message = "spec.password: Hunter2 is too short".to_owned();
        let status = Status { code, reason: reason.to_owned(), message, ..Status::default() };
        StepError::Write { verb: "create", at: "service Secret ns/one".to_owned(), source: status.into() }
    }

    #[test]
    fn whoever_was_slower_has_not_failed() {
        assert!(answered(409, "Conflict").is_race() && answered(409, "AlreadyExists").is_race());
        assert!(StepError::Stale(String::new()).is_race() && StepError::CopyLeft(String::new()).is_race());
        let refused = StepError::Refused { at: String::new(), advice: "" };
        assert!(!answered(422, "Invalid").is_race() && !refused.is_race());
    }

    #[test]
    fn what_a_server_quotes_is_not_told() {
        assert!(answered(422, "Invalid").to_string().contains("Hunter2"));
        assert!(!answered(422, "Invalid").discreet().to_string().contains("Hunter2"));
    }
}
