//! What bindings want, and what they are told.

use std::collections::BTreeMap;

use carrick_bind_api::claims::Guarded;
use carrick_bind_api::existing::Existing;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};

use crate::decide::binding::Sync;
use crate::decide::objects::SyncMode;

/// What bindings want, by name of the binding, which is the name of its export.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// All bindings of the contract.
    pub bindings: BTreeMap<String, WantedBinding>,
    /// What goes to no provider, whatever is claimed.
    pub guarded: Guarded,
}

/// What one binding wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedBinding {
    /// The uid of its export, which owns what is asked for.
    pub export_uid: String,
    /// How consumers are kept apart.
    pub isolation: Isolation,
    /// What may be watched on the provider.
    pub informer_scope: InformerScope,
    /// What is synced.
    pub sync: Sync,
    /// What becomes of the objects.
    pub mode: SyncMode,
    /// What becomes of those that the provider had before.
    pub existing: Existing,
}

/// What bindings are told, by name of the binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncReport {
    /// All bindings of the contract.
    pub bindings: BTreeMap<String, BindingReport>,
}

/// What one binding is told.
#[derive(Clone, Debug, PartialEq)]
pub struct BindingReport {
    /// Whether all that it needs to know is known, or what is not.
    pub informers_synced: Result<(), String>,
    /// Objects that are not synced because somebody else has them; not all, if there are many.
    pub conflicts: Vec<String>,
    /// Objects that cannot be synced, and why; not all, if there are many.
    pub failing: Vec<String>,
    /// Whether there is nothing left to be deleted or released.
    pub drained: bool,
}
