//! What follows when a server does not do what it was asked for: one table for all agents. Pure.
//!
//! A [`Refusal`] is what came back, an [`Access`] what was attempted, and the side is where. The [`Ruling`] says what to try at once, what happens if that does not help either, and
//! who gets to know. `docs/reference/refusals.md` is this table.

#![allow(clippy::match_same_arms)] // each arm is a row of the table, with its reason

use carrick_client::Error;

use crate::Role;

/// What a server answered instead of doing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// 401: it does not know us.
    Unauthenticated,
    /// 403 in the words of the authorizer: we may not.
    LacksRight,
    /// 403 in other words: an admission webhook, a policy, a quota, or kcp itself does not want this.
    Denied,
    /// 404 about an object that it names: the one that was asked for, or the namespace of one that is created.
    NoObject,
    /// 404 about everything else: it does not serve the kind, or not yet, or not to us.
    NoKind,
    /// 409: the object has changed in between, or a precondition failed.
    Conflict,
    /// 409 `AlreadyExists`: the name is taken.
    Exists,
    /// 410: the version asked for is too old.
    Expired,
    /// 413: the request, or a patch, is too large.
    TooLarge,
    /// 422: the object is not valid, or the guard of a patch does not hold.
    Invalid,
    /// 429: it has too much to do.
    Throttled,
    /// 408, 500, 502, 503, 504: it does not work at the moment.
    Unavailable,
    /// No answer came: network, TLS, time limit.
    Unreachable,
    /// Any other code, or an answer that cannot be understood.
    Unusable,
}

/// What was attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Get, list, watch.
    Read,
    /// Creating an object, or the namespace for it.
    Create,
    /// Patching, replacing or applying an object, or its finalizers while it stays.
    Change,
    /// Writing a status.
    Status,
    /// Deleting an object.
    Delete,
    /// Taking a finalizer off, or deleting, what came along with an order that ends.
    LetGo,
}

/// Another way to the same end, tried at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// Ask discovery whether the kind is served: a 404 alone may come from anywhere.
    AskDiscovery,
    /// Read who has the name: an earlier attempt, an object that may be adopted, or somebody else.
    ReadOwner,
    /// Make its namespace again.
    MakeNamespace,
    /// Find out whether it exists already: who may not create it may have been given it.
    SeeWhetherItExists,
    /// Read it to tell a guard that does not hold from an object that is not valid.
    CheckGuard,
    /// Replace the whole object: patches are not granted, or too much changes for one.
    ReplaceWhole,
    /// Empty it instead.
    Empty,
    /// List again from the beginning.
    ListAgain,
}

/// What happens if there is no other way, or that one is refused as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Then {
    /// Nothing: what was wanted is so already.
    Done,
    /// Somebody else was faster, and nothing is wrong: it is observed and decided again.
    Reobserve,
    /// It is retried with growing pauses until the kind is served.
    AwaitKind,
    /// It is retried with growing pauses until the right is granted or the claim accepted.
    AwaitRight,
    /// It is retried with growing pauses, or after as long as the server asks for.
    Retry,
    /// It is not sent again: a status until it changes; what came along with an order that ends is left behind, once the binding is seen not to accept the
    /// claim, or the same refusal has lasted for a while.
    GiveUp,
}

/// Who gets to know, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inform {
    /// Nobody.
    Nobody,
    /// The provider: log, metrics, conditions. A consumer whose order waits for it learns that there is an issue on the provider's side, and nothing of its servers.
    Provider,
    /// The provider, and the consumer with the reason.
    Consumer,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ruling {
    /// What is tried at once.
    pub fallback: Option<Fallback>,
    /// What happens otherwise.
    pub then: Then,
    /// Who gets to know of that.
    pub inform: Inform,
}

impl Refusal {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 14] = [
        Self::Unauthenticated,
        Self::LacksRight,
        Self::Denied,
        Self::NoObject,
        Self::NoKind,
        Self::Conflict,
        Self::Exists,
        Self::Expired,
        Self::TooLarge,
        Self::Invalid,
        Self::Throttled,
        Self::Unavailable,
        Self::Unreachable,
        Self::Unusable,
    ];

    /// What an error is.
    pub fn of(error: &Error) -> Self {
        let Some(status) = error.status() else {
            return if error.is_transient() { Self::Unreachable } else { Self::Unusable };
        };
        match status.code {
            401 => Self::Unauthenticated,
            403 if error.missing_right().is_some() => Self::LacksRight,
            403 => Self::Denied,
            404 if status.details.as_ref().is_some_and(|details| !details.name.is_empty()) => Self::NoObject,
            404 => Self::NoKind,
            409 if error.is_already_exists() => Self::Exists,
            409 => Self::Conflict,
            410 => Self::Expired,
            413 => Self::TooLarge,
            422 => Self::Invalid,
            429 => Self::Throttled,
            _ if error.is_transient() => Self::Unavailable,
            _ => Self::Unusable,
        }
    }

    /// The code and what it means, for people.
    pub fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::Unauthenticated => ("401", "the server does not know us"),
            Self::LacksRight => ("403", "a right is missing, or a claim is not accepted"),
            Self::Denied => {
                ("403, other words", "an admission webhook, a policy, a quota or kcp itself does not want it")
            }
            Self::NoObject => ("404 of an object", "the object, or the namespace for a new one, does not exist"),
            Self::NoKind => ("404 of a kind", "the kind is not served, or not yet, or not to us"),
            Self::Conflict => ("409", "somebody else has changed or replaced it"),
            Self::Exists => ("409 AlreadyExists", "the name is taken"),
            Self::Expired => ("410", "the version asked for is too old"),
            Self::TooLarge => ("413", "the request or the patch is too large"),
            Self::Invalid => ("422", "the object is not valid"),
            Self::Throttled => ("429", "the server has too much to do"),
            Self::Unavailable => ("408, 5xx", "the server does not work at the moment"),
            Self::Unreachable => ("no answer", "network, TLS or time limit"),
            Self::Unusable => ("anything else", "the answer cannot be used"),
        }
    }
}

impl Access {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Read, Self::Create, Self::Change, Self::Status, Self::Delete, Self::LetGo];

    /// What it is, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Create => "create",
            Self::Change => "change",
            Self::Status => "write a status",
            Self::Delete => "delete",
            Self::LetGo => "let go at the end of an order",
        }
    }
}

impl Fallback {
    /// What it is, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::AskDiscovery => "discovery is asked whether the kind is served",
            Self::ReadOwner => "it is read who has the name",
            Self::MakeNamespace => "its namespace is made again",
            Self::SeeWhetherItExists => "a namespace that exists already will do",
            Self::CheckGuard => "it is read, to tell a guard that does not hold from an invalid object",
            Self::ReplaceWhole => "the whole object is replaced instead of patched",
            Self::Empty => "a state Secret is emptied instead",
            Self::ListAgain => "everything is listed again",
        }
    }
}

impl Then {
    /// What it is, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Done => "nothing, it is as it should be",
            Self::Reobserve => "observed and decided anew",
            Self::AwaitKind => "retried until the kind is served",
            Self::AwaitRight => "retried until the right is granted or the claim accepted",
            Self::Retry => "retried with growing pauses, or when the server asks for it",
            Self::GiveUp => "given up",
        }
    }
}

impl Inform {
    /// Who it is.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Provider => "provider",
            Self::Consumer => "provider and consumer",
        }
    }
}

/// What follows when a server refuses.
pub fn ruling(refusal: Refusal, access: Access, side: Role) -> Ruling {
    Ruling { fallback: fallback(refusal, access), then: then(refusal, access), inform: inform(refusal, access, side) }
}

/// The same for an error.
pub fn follows(error: &Error, access: Access, side: Role) -> Ruling {
    ruling(Refusal::of(error), access, side)
}

/// Whether a server does not serve a kind, or not yet: nothing is known of its objects then, and that is no failure.
pub fn is_unserved(error: &Error) -> bool {
    Refusal::of(error) == Refusal::NoKind
}

/// Whether somebody else was faster: nothing is wrong, it is observed and decided again.
pub fn is_race(error: &Error, access: Access) -> bool {
    then(Refusal::of(error), access) == Then::Reobserve
}

/// Whether what was wanted is so already.
pub fn is_done(error: &Error, access: Access) -> bool {
    then(Refusal::of(error), access) == Then::Done
}

/// Whether a write is settled although a server refused it: it is so already, or somebody else was faster and a watch brings what is there now.
pub fn is_settled(error: &Error, access: Access) -> bool {
    matches!(then(Refusal::of(error), access), Then::Done | Then::Reobserve)
}

fn fallback(refusal: Refusal, access: Access) -> Option<Fallback> {
    use Access::{Change, Create, Delete, Read};
    use Refusal::{Denied, Exists, Expired, Invalid, LacksRight, NoKind, NoObject, TooLarge};
    Some(match (refusal, access) {
        (NoKind, Read) => Fallback::AskDiscovery,
        (Expired, Read) => Fallback::ListAgain,
        (Exists, Create) => Fallback::ReadOwner,
        (NoObject | NoKind, Create) => Fallback::MakeNamespace,
        (LacksRight | Denied, Create) => Fallback::SeeWhetherItExists,
        (Invalid, Change) => Fallback::CheckGuard,
        (LacksRight | Denied | TooLarge, Change) => Fallback::ReplaceWhole,
        (LacksRight | Denied, Delete) => Fallback::Empty,
        _ => return None,
    })
}

fn then(refusal: Refusal, access: Access) -> Then {
    use Access::{Change, Create, Delete, LetGo, Read, Status};
    match (refusal, access) {
        (Refusal::NoObject, Read) | (Refusal::NoObject | Refusal::NoKind, Delete | LetGo) => Then::Done,
        (Refusal::NoObject, Change | Status) => Then::Reobserve,
        (Refusal::NoObject, Create) => Then::Retry,
        (Refusal::NoKind, Read | Create | Change | Status) => Then::AwaitKind,
        (Refusal::Conflict | Refusal::Exists, Create | Change | Status | Delete | LetGo) => Then::Reobserve,
        (Refusal::LacksRight | Refusal::Denied, LetGo) | (Refusal::Invalid, Status) => Then::GiveUp,
        (Refusal::LacksRight, _) | (Refusal::Denied, Read) => Then::AwaitRight,
        (Refusal::Denied, Create | Change | Status | Delete)
        | (Refusal::Invalid, Read | Create | Change | Delete | LetGo)
        | (Refusal::Conflict | Refusal::Exists, Read)
        | (
            Refusal::Unauthenticated
            | Refusal::Expired
            | Refusal::TooLarge
            | Refusal::Throttled
            | Refusal::Unavailable
            | Refusal::Unreachable
            | Refusal::Unusable,
            _,
        ) => Then::Retry,
    }
}

fn inform(refusal: Refusal, access: Access, side: Role) -> Inform {
    use Access::{Change, Create, LetGo, Read, Status};
    match (refusal, access) {
        _ if matches!(then(refusal, access), Then::Done | Then::Reobserve) => Inform::Nobody,
        (Refusal::Expired, Read) => Inform::Nobody,
        // Nobody but the consumer can accept a claim; a right on the service cluster is the provider's business.
        (Refusal::LacksRight | Refusal::Denied, Read) if side == Role::Consumer => Inform::Consumer,
        (Refusal::NoKind, Read) => Inform::Consumer,
        // It is her order that is refused.
        (Refusal::Denied, Create | Change) | (Refusal::Invalid, Create | Change | Status) => Inform::Consumer,
        (Refusal::LacksRight | Refusal::Denied, LetGo) => Inform::Consumer,
        _ => Inform::Provider,
    }
}

#[cfg(test)]
mod tests;
