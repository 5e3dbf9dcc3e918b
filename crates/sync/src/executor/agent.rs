//! What differs between agents that execute the same steps.
#![allow(clippy::result_large_err)] // failures are rare, and reported at once

use std::time::Duration;

use carrick_client::Error;
use serde_json::Value;

use crate::executor::brake::Brake;
use crate::executor::error::StepError;
use crate::memory::PrimaryState;
use crate::{Adoption, ApiKind, Event, ObjectAddress, Role, Side, SourceKey, Step, Vocabulary};

/// How people can give way to a copy whose name is taken.
#[derive(Debug)]
pub struct Advice {
    /// If the object belongs to somebody who is known.
    pub foreign: &'static str,
    /// If it was there before, and nobody has offered it.
    pub refused: &'static str,
}

/// The agent that the steps for one object are executed for.
pub trait Agent: Sync {
    /// What the agent writes into metadata.
    fn vocabulary(&self) -> &'static Vocabulary;

    /// The field manager of applies, for the copy of an order or of a related object.
    fn field_manager(&self, primary: bool) -> String;

    /// Under which names it has written fields other than by an apply.
    fn writers(&self) -> &[&str];

    /// Whether fields that others have written so far become its own with the first apply, because it has adopted the object.
    fn takes_all_fields(&self) -> bool {
        false
    }

    /// Whether errors about objects of this kind must not quote the server.
    fn is_confidential(&self, kind: &ApiKind) -> bool;

    /// Whether another object had the name of the copy at the last attempt: it is read before it is written to.
    fn was_taken(&self) -> bool;

    /// What to do with an object in the place of a new copy.
    fn adopt(&self, existing: &Value, wanted: &Value) -> Adoption;

    /// How people can give way to a copy.
    fn advice(&self) -> &'static Advice;

    /// Whether a namespace is known to exist.
    fn has_namespace(&self, side: Side, name: &str) -> bool;

    /// Asks the provider's server whether a copy of the source is left; an error if one is.
    fn confirm_no_copy(&self) -> impl Future<Output = Result<(), StepError>> + Send;

    /// What is remembered about the object.
    fn memory(&self) -> PrimaryState;

    /// Changes what is remembered about the object.
    fn remember(&self, change: impl FnOnce(&mut PrimaryState) + Send)
    -> impl Future<Output = Result<(), Error>> + Send;

    /// Forgets everything about the object.
    fn forget(&self) -> impl Future<Output = Result<(), Error>> + Send;

    /// What is remembered, in words for errors.
    fn memory_at(&self) -> String;

    /// Reports an event about an object, with what a server said if it said something.
    fn report(&self, object: &Value, event: Event, detail: Option<&str>);

    /// Keeps writes that are undone again and again from being repeated at once; and whose writes they are: the source and its UID, because
    /// a new one of the same name starts from nothing.
    fn brake(&self) -> Option<(&Brake, (&SourceKey, &str))> {
        None
    }

    /// What to say about a status that was refused.
    fn refused_status(&self, at: &ObjectAddress) -> String;
}

/// Who is notified of every step.
pub trait Observer: Sync {
    /// What is known about a step that has begun.
    type Begun: Send;

    /// A step begins.
    fn begins(&self, step: &Step) -> Self::Begun;

    /// A step has ended.
    fn ended(&self, begun: Self::Begun, role: Option<Role>, took: Duration, result: Result<(), &StepError>);
}
