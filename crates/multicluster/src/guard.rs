//! Functions of users, which may panic: only the object at hand is affected.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A function that a user of this crate has handed in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Callback {
    /// Says whom an object of another kind concerns: [`crate::MultiClusterController::watches`].
    Mapper,
    /// Says whether a change counts: [`crate::MultiClusterController::predicate`].
    Predicate,
    /// Gives the values of an index of this name: [`crate::FleetStore::index`].
    Index(String),
    /// Says whether a cluster concerns a controller: [`crate::MultiClusterController::clusters`].
    ClusterFilter,
    /// Says which cluster an object belongs to: [`crate::ClusterKey::With`].
    ClusterKey,
    /// Says what to reconcile: [`crate::MultiClusterController::trigger`].
    Trigger,
}

impl fmt::Display for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mapper => f.write_str("mapper"),
            Self::Predicate => f.write_str("predicate"),
            Self::Index(name) => write!(f, "index {name:?}"),
            Self::ClusterFilter => f.write_str("cluster filter"),
            Self::ClusterKey => f.write_str("cluster key"),
            Self::Trigger => f.write_str("trigger"),
        }
    }
}

/// A function of the user has panicked. Only the object at hand is skipped; everything else goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    /// Which function.
    pub callback: Callback,
    /// For which object or cluster it was called.
    pub over: Option<String>,
    /// The message of the panic.
    pub message: String,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} panicked", self.callback)?;
        if let Some(over) = &self.over {
            write!(f, " over {over}")?;
        }
        let rest = match self.callback {
            Callback::Mapper => "what it concerns is not reconciled because of it",
            Callback::Predicate => "it counts as changed",
            Callback::Index(_) => "it is not found by that index",
            Callback::ClusterFilter => "that cluster is left alone",
            Callback::ClusterKey => "it is left out",
            Callback::Trigger => "it fires no more",
        };
        write!(f, ": {}; {rest}", self.message)
    }
}

impl std::error::Error for Panicked {}

/// Calls a function of a user; the error is the message of its panic.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panic_message(&*panic))
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
