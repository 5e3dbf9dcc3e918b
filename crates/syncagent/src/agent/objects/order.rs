//! One order that is being reconciled.

use std::sync::Arc;

use carrick_client::{Client, Error, Object};
use carrick_json::TooDeep;
use carrick_multicluster::Cluster;
use serde_json::Value;
use tokio::time::Instant;

use super::error::ReconcileError;
use super::related::withheld::Reaching;
use super::shared::Shared;
use crate::rules::Rules;
use crate::rules::metadata::{SourceKey, is_deleting};

/// One order that is being reconciled: a consumer's object, and the rules of this moment.
pub(super) struct Order<'a> {
    pub shared: &'a Shared,
    pub rules: Arc<Rules>,
    pub key: &'a SourceKey,
    /// The consumer's workspace.
    pub cluster: &'a Cluster,
    /// The consumer's object.
    pub source: Value,
    /// How deep it nests, if that is too deep; then there is only its metadata.
    pub too_deep: Option<TooDeep>,
    /// How many bytes it takes, if its workspace has no room for them; then there is only its metadata, too.
    pub left_out: Option<usize>,
    /// Since when its change is known.
    pub since: Instant,
}

impl<'a> Order<'a> {
    /// The order of an object, under the rules of this moment.
    pub fn new(shared: &'a Shared, key: &'a SourceKey, cluster: &'a Cluster, source: &Object, since: Instant) -> Self {
        let (too_deep, left_out) = (source.too_deep(), source.left_out());
        Self { shared, rules: shared.rules(), key, cluster, source: source.value(), too_deep, left_out, since }
    }

    /// The client of the consumer's workspace.
    pub fn kcp(&self) -> &'a Client {
        self.cluster.json_client()
    }

    /// Whether the consumer has deleted it.
    pub fn is_deleting(&self) -> bool {
        is_deleting(&self.source)
    }

    /// Finds out what is out of reach in the consumer's workspace.
    pub fn reaching(&self) -> Reaching<'a> {
        Reaching { reach: &self.shared.reach, kcp: self.kcp(), order: self.key }
    }

    /// Something could not be read in the consumer's workspace.
    pub fn unreadable(&self, what: impl Into<String>, source: Error) -> ReconcileError {
        ReconcileError::Read { what: what.into(), cluster: self.key.cluster.to_string(), source }
    }
}
