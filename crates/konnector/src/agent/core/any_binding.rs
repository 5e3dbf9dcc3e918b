//! ClusterBindings and Bindings, which differ in nothing but their scope.

use std::ops::{Deref, DerefMut};

use carrick_bind_api::core::conditions::{self, Finding, RELATED_SYNCED};
use carrick_bind_api::core::names::{BOUND_BY_ANNOTATION, CLEANUP_FINALIZER};
use carrick_bind_api::core::{BINDING, BoundApi, CLUSTER_BINDING, ClusterBinding};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::kinds::Kind;
use carrick_client::Error;

use crate::agent::cache::Cache;
use crate::agent::contract::bundles::written;
use crate::agent::contract::pace::PassResult;
use crate::agent::writer::Writer;
use crate::decide::core::{binding, moves};

/// A ClusterBinding, or a Binding, which is read as one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AnyBinding(ClusterBinding);

impl Deref for AnyBinding {
    type Target = ClusterBinding;

    fn deref(&self) -> &ClusterBinding {
        &self.0
    }
}

impl DerefMut for AnyBinding {
    fn deref_mut(&mut self) -> &mut ClusterBinding {
        &mut self.0
    }
}

impl AnyBinding {
    /// All that there are in a cache of one of both kinds.
    pub fn all(cache: &Cache, kind: Kind) -> Vec<Self> {
        let named = |mut it: ClusterBinding| {
            kind.kind.clone_into(&mut it.kind);
            Self(it)
        };
        cache.all().into_iter().map(named).collect()
    }

    fn kind(&self) -> Kind {
        if self.namespace().is_none() { CLUSTER_BINDING } else { BINDING }
    }

    /// The namespace that it is for; none if for all.
    pub fn namespace(&self) -> Option<&str> {
        Some(self.metadata.namespace.as_str()).filter(|namespace| !namespace.is_empty())
    }

    /// The Connection that it names.
    pub fn named(&self) -> &str {
        &self.spec.connection_ref.name
    }

    /// Whether it names another Connection than the one that it belongs to.
    pub fn moves(&self) -> bool {
        self.connection() != self.named()
    }

    /// What it says while its Connection does not work.
    pub fn waiting(&self, exists: bool) -> Finding {
        if self.moves() {
            moves::stays(self.connection(), self.named())
        } else {
            binding::waiting(self.connection(), exists)
        }
    }

    /// The same with what has to stand on it before anything is synced for it; none if it does.
    pub fn begun(&self, is_used: impl FnOnce() -> bool) -> Option<Self> {
        let mut new = self.clone();
        new.metadata.add_finalizer(CLEANUP_FINALIZER);
        let mark = moves::mark(self.connection(), &self.metadata);
        if self.metadata.annotation(BOUND_BY_ANNOTATION) != Some(mark.as_str()) && is_used() {
            new.metadata.annotate(BOUND_BY_ANNOTATION, mark);
        }
        (new != *self).then_some(new)
    }

    /// Kind and name, for people and as a key.
    pub fn key(&self) -> String {
        let name = &self.metadata.name;
        self.namespace()
            .map_or_else(|| format!("ClusterBinding {name}"), |namespace| format!("Binding {namespace}/{name}"))
    }

    /// Whether it lists an API.
    pub fn lists(&self, api: &str) -> bool {
        self.spec.apis.iter().any(|listed| listed.name == api)
    }

    /// The same with these conditions and these bound APIs; none of the latter if they are not known now.
    pub async fn report(
        &self,
        writer: &Writer,
        findings: &[Finding],
        bound: Option<Vec<BoundApi>>,
        now: Timestamp,
    ) -> PassResult {
        let (mut new, generation) = (self.clone(), self.metadata.generation);
        if !findings.iter().any(|finding| finding.type_ == RELATED_SYNCED) {
            new.status.conditions.retain(|condition| condition.type_ != RELATED_SYNCED);
        }
        for finding in findings {
            conditions::set(&mut new.status.conditions, finding, generation, now);
        }
        if let Some(bound) = bound {
            new.status.bound_apis = bound;
        }
        if new == *self {
            return PassResult::default();
        }
        written(writer.status_of(self.kind(), &new.0).await, "binding", &self.key())
    }

    /// Writes its finalizers and annotations.
    pub async fn write_metadata(&self, writer: &Writer) -> Result<(), Error> {
        writer.metadata_of(self.kind(), &self.metadata).await
    }
}
