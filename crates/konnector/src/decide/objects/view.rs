//! What an object is decided on.

use std::sync::Arc;

use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_bind_api::existing::Existing;
use carrick_bind_api::mapping::ObjectKey;
use carrick_sync::{ApiKind, ObjectAddress, Side};
use serde_json::Value;

use super::plan::Noted;
use super::words::{CONSUMER, PROVIDER};

/// What becomes of the objects of a binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SyncMode {
    /// They are synced.
    #[default]
    Keep,
    /// Copies are deleted, then finalizers are taken off.
    Drain,
    /// Finalizers are taken off; copies stay.
    Release,
}

/// The two kinds of one API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKinds {
    /// On the consumer.
    pub consumer: Arc<ApiKind>,
    /// On the provider.
    pub provider: Arc<ApiKind>,
}

/// What an object is decided on.
#[derive(Clone, Debug)]
pub struct ObjectView<'a> {
    /// Its kinds.
    pub kinds: &'a ApiKinds,
    /// Whether there is a status to be carried back.
    pub has_status: bool,
    /// The contract.
    pub contract: &'a str,
    /// The owner of copies, if they have one.
    pub owner: Option<&'a OwnerReference>,
    /// Its key on the consumer.
    pub key: &'a ObjectKey,
    /// The key of its copy.
    pub copy_key: &'a ObjectKey,
    /// The object.
    pub source: Option<&'a Value>,
    /// What is in the place of its copy.
    pub copy: Option<&'a Value>,
    /// The logical cluster of the object, if there are many.
    pub cluster: Option<&'a str>,
    /// What becomes of objects that the provider had before.
    pub existing: Existing,
    /// Whether that is derived from the copy of another object: operators like to copy annotations, ours included.
    pub derived: bool,
    /// What becomes of it.
    pub mode: SyncMode,
    /// What is remembered.
    pub noted: &'a Noted,
}

/// Why an object is not synced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectProblem {
    /// The provider has an object of its own in the place of the copy.
    #[error(
        "{copy} was there before and is none of this contract's copies; the provider has to delete or rename it, or choose another name here"
    )]
    Foreign {
        /// Where.
        copy: String,
    },
    /// The copy of another contract is in the place of the copy.
    #[error(
        "{copy} belongs to contract {contract}; another consumer has an object of this name, so choose another name here"
    )]
    OtherContract {
        /// Where.
        copy: String,
        /// Whose it is.
        contract: String,
    },
}

impl ObjectView<'_> {
    /// Where the source is.
    pub fn source_at(&self) -> ObjectAddress {
        address(CONSUMER, &self.kinds.consumer, self.key)
    }

    /// Where the copy is, or would be.
    pub fn copy_at(&self) -> ObjectAddress {
        address(PROVIDER, &self.kinds.provider, self.copy_key)
    }
}

/// The address of an object.
pub fn address(side: Side, kind: &Arc<ApiKind>, key: &ObjectKey) -> ObjectAddress {
    ObjectAddress { side, kind: Arc::clone(kind), namespace: key.namespace.clone(), name: key.name.clone() }
}
