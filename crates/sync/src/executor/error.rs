//! Why a step could not be executed, and what follows from that.

use std::fmt;
use std::time::Duration;

use carrick_client::Error;
use thiserror::Error;

use crate::ObjectAddress;
use crate::executor::rate::Allowance;
use crate::executor::refusal::{Access, Refusal, is_race};

/// What was attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reading one object.
    Get,
    /// Reading several.
    List,
    /// Finding out whether a server has a kind.
    Find,
    /// Creating an object.
    Create,
    /// Turning an object that was there before into a copy.
    Adopt,
    /// Changing fields of a copy.
    Edit,
    /// Replacing a whole object.
    Replace,
    /// Server-side apply.
    Apply,
    /// Changing metadata.
    Patch,
    /// Giving a copy its labels again.
    Label,
    /// Holding an object, or letting it go.
    SetFinalizers,
    /// Writing a status.
    WriteStatus,
    /// Deleting an object.
    Delete,
    /// Writing what is remembered.
    Remember,
    /// Deleting what is remembered.
    Forget,
}

impl Verb {
    /// Whether the content of a source is written, so that a server that refuses it refuses what the consumer wants.
    pub fn places(self) -> bool {
        matches!(self, Self::Create | Self::Adopt | Self::Edit | Self::Replace | Self::Apply)
    }

    /// What it is to the table of refusals.
    pub fn access(self) -> Access {
        match self {
            Self::Get | Self::List | Self::Find => Access::Read,
            Self::Create => Access::Create,
            Self::WriteStatus => Access::Status,
            Self::Delete | Self::Forget => Access::Delete,
            Self::Adopt
            | Self::Edit
            | Self::Replace
            | Self::Apply
            | Self::Patch
            | Self::Label
            | Self::SetFinalizers
            | Self::Remember => Access::Change,
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Find => "look for",
            Self::Create => "create",
            Self::Adopt => "adopt",
            Self::Edit => "edit",
            Self::Replace => "replace",
            Self::Apply => "apply",
            Self::Patch => "patch",
            Self::Label => "label",
            Self::SetFinalizers => "set finalizers of",
            Self::WriteStatus => "write the status of",
            Self::Delete | Self::Forget => "delete",
            Self::Remember => "write",
        })
    }
}

/// On what something was attempted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// One object.
    Object(Box<ObjectAddress>),
    /// A namespace for copies.
    Namespace(String),
    /// What is remembered about a source, in words.
    Memory(String),
    /// Several objects, in words.
    Objects(String),
}

impl From<ObjectAddress> for Target {
    fn from(at: ObjectAddress) -> Self {
        Self::Object(Box::new(at))
    }
}

impl From<&ObjectAddress> for Target {
    fn from(at: &ObjectAddress) -> Self {
        Self::Object(Box::new(at.clone()))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(at) => at.fmt(f),
            Self::Namespace(name) => write!(f, "namespace {name}"),
            Self::Memory(words) | Self::Objects(words) => f.write_str(words),
        }
    }
}

/// The longest time that a server can make anybody wait.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// Why a step could not be executed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StepError {
    /// A server refused or did not answer.
    #[error("cannot {verb} {at}: {source}")]
    Write {
        /// What was attempted.
        verb: Verb,
        /// On what.
        at: Target,
        /// What the server answered.
        source: Error,
    },
    /// The name of a new copy is taken.
    #[error("{at} exists already and belongs to {owner}; {advice}")]
    Foreign {
        /// The object.
        at: ObjectAddress,
        /// Who owns it.
        owner: String,
        /// How its owner can give way.
        advice: &'static str,
    },
    /// The name of a new copy is taken by an object that nobody has offered.
    #[error("{at} was there before, and nobody said that it may become a copy; {advice}")]
    Refused {
        /// The object.
        at: ObjectAddress,
        /// How its owner can give way.
        advice: &'static str,
    },
    /// A status does not fit its schema. It is not sent again until it changes.
    #[error("{0}")]
    StatusRefused(String),
    /// Somebody else has written the copy since it was observed.
    #[error("{0} was written by somebody else meanwhile; it is reconciled again")]
    Stale(ObjectAddress),
    /// The same was written before, and something undoes it every time. It is written again later.
    #[error(
        "{at} is contested: what the agent writes was undone {times} times; find out who deletes it or sets it back"
    )]
    Undone {
        /// The object.
        at: ObjectAddress,
        /// How often it was written in vain.
        times: u32,
        /// How long the next attempt waits.
        wait: Duration,
    },
    /// The object had as many writes as it may have in a minute. What is then newest is written after that.
    #[error(
        "{at} changes too often: it is written {} times a minute at most ({}), and what is newest then follows",
        .allowed.most, .allowed.flag
    )]
    TooOften {
        /// The object. Boxed, because every result of a step is as large as its largest error.
        at: Box<ObjectAddress>,
        /// How many writes it may have.
        allowed: Allowance,
        /// How long the next attempt waits.
        wait: Duration,
    },
    /// A copy was not visible before.
    #[error("a copy is still there: {0}; it is reconciled again")]
    CopyLeft(ObjectAddress),
}

impl StepError {
    /// Whether somebody else was faster: nothing is wrong, the object is just decided again.
    pub fn is_race(&self) -> bool {
        match self {
            Self::Write { verb, source, .. } => is_race(source, verb.access()),
            Self::Foreign { .. }
            | Self::Refused { .. }
            | Self::StatusRefused(_)
            | Self::Undone { .. }
            | Self::TooOften { .. } => false,
            Self::CopyLeft(_) | Self::Stale(_) => true,
        }
    }

    /// What is wrong, if that is the consumer's business: the order itself is refused, or the name of its copy is taken.
    pub fn for_consumer(&self) -> Option<String> {
        match self {
            Self::Write { verb, source, .. } if verb.places() && Refusal::of(source) == Refusal::Invalid => {
                source.status().map(|status| status.message.clone())
            }
            Self::Foreign { .. } | Self::Refused { .. } | Self::TooOften { .. } => Some(self.to_string()),
            _ => None,
        }
    }

    /// Whether something else has the name of the copy, and keeps it until its owner does something about it.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Foreign { .. } | Self::Refused { .. })
    }

    /// How long the next attempt has to wait, because something undoes what is written, or because it is written too often.
    pub fn pause(&self) -> Option<Duration> {
        match self {
            Self::Undone { wait, .. } | Self::TooOften { wait, .. } => Some(*wait),
            _ => None,
        }
    }

    /// How long a server that has too much to do asks to wait before the next attempt.
    pub fn asks_to_wait(&self) -> Option<Duration> {
        match self {
            Self::Write { source, .. } => asks_to_wait(source),
            _ => None,
        }
    }

    /// Whether a server knows us and says no.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.is_forbidden())
    }

    /// What it is about, unless it is about a status.
    pub fn target(&self) -> Option<Target> {
        match self {
            Self::Write { at, .. } => Some(at.clone()),
            Self::Foreign { at, .. }
            | Self::Refused { at, .. }
            | Self::Undone { at, .. }
            | Self::Stale(at)
            | Self::CopyLeft(at) => Some(at.into()),
            Self::TooOften { at, .. } => Some((&**at).into()),
            Self::StatusRefused(_) => None,
        }
    }

    /// The same without anything that a server may have quoted.
    #[must_use]
    pub fn discreet(self) -> Self {
        match self {
            Self::Write { verb, at, source } => Self::Write { verb, at, source: source.discreet() },
            other => other,
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

/// How long a server that has too much to do asks to wait. One that names no time leaves that to whoever asks; more than a day is a mistake.
pub fn asks_to_wait(error: &Error) -> Option<Duration> {
    let wait = error.status().filter(|status| status.code == 429)?.retry_after.filter(|wait| !wait.is_zero())?;
    Some(wait.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use carrick_client::{Status, StatusDetails};
    use serde_json::json;

    use super::*;
    use crate::{ApiKind, Side};

    fn answered(code: u16, reason: &str) -> StepError {
        let message = "spec.password: Hunter2 is too short".to_owned();
        let status = Status { code, reason: reason.to_owned(), message, ..Status::default() };
        StepError::Write { verb: Verb::Create, at: at().into(), source: status.into() }
    }

    fn at() -> ObjectAddress {
        let (group, version) = (String::new(), "v1".to_owned());
        let kind = ApiKind { group, version, kind: "Secret".into(), plural: "secrets".into(), namespaced: true };
        let object = json!({"metadata": {"namespace": "ns", "name": "one"}});
        ObjectAddress::of_object(Side::provider("service"), &kind, &object)
    }

    #[test]
    fn whoever_was_slower_has_not_failed() {
        assert!(answered(409, "Conflict").is_race() && answered(409, "AlreadyExists").is_race());
        assert!(StepError::Stale(at()).is_race() && StepError::CopyLeft(at()).is_race());
        let refused = StepError::Refused { at: at(), advice: "" };
        assert!(!answered(422, "Invalid").is_race() && !refused.is_race());
        let gone = |verb| {
            let details = Some(Box::new(StatusDetails { name: "one".to_owned(), ..StatusDetails::default() }));
            let status = Status { code: 404, details, ..Status::default() };
            StepError::Write { verb, at: at().into(), source: status.into() }
        };
        assert!(gone(Verb::Edit).is_race() && gone(Verb::SetFinalizers).is_race(), "the watch says that it is gone");
        assert!(!gone(Verb::Create).is_race(), "its namespace is missing");
    }

    #[test]
    fn only_a_server_that_has_too_much_to_do_makes_others_wait() {
        let waits = |code, seconds: Option<u64>| {
            let retry_after = seconds.map(Duration::from_secs);
            let status = Status { code, retry_after, ..Status::default() };
            let error = StepError::Write { verb: Verb::Create, at: at().into(), source: status.into() };
            error.asks_to_wait().map(|wait| wait.as_secs())
        };
        assert_eq!((waits(429, Some(300)), waits(429, Some(u64::MAX))), (Some(300), Some(86_400)));
        assert_eq!([waits(429, None), waits(429, Some(0)), waits(503, Some(300))], [None; 3]);
    }

    #[test]
    fn what_a_server_quotes_is_not_told() {
        assert!(answered(422, "Invalid").to_string().contains("Hunter2"));
        assert!(!answered(422, "Invalid").discreet().to_string().contains("Hunter2"));
    }
}
