//! One change of an existing object.

use serde_json::Value;

use super::scope::Scope;
use super::write::WriteOptions;
use crate::caller::Caller;

/// How the new state of an object was produced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeSource<'a> {
    /// A whole object was sent.
    Put,
    /// A merge patch or a JSON patch was applied.
    Patch,
    /// This strategic merge patch was applied.
    Strategic(&'a Value),
    /// Server-side apply; `managedFields` is final already.
    Apply,
}

/// What to change, by whom and how.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) caller: &'a Caller,
    pub(super) scope: &'a Scope,
    pub(super) name: &'a str,
    pub(super) subresource: &'a str,
    pub(super) options: &'a WriteOptions,
    pub(super) source: ChangeSource<'a>,
}
