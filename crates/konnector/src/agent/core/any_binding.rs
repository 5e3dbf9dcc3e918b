//! ClusterBindings and Bindings, which differ in nothing but their scope.

use carrick_bind_api::carrick_kcp::meta::ObjectMeta;
use carrick_bind_api::core::conditions::{self, Finding, RELATED_SYNCED};
use carrick_bind_api::core::names::{BOUND_BY_ANNOTATION, CLEANUP_FINALIZER};
use carrick_bind_api::core::{Binding, BindingSpec, BindingStatus, ClusterBinding};
use carrick_bind_api::jiff::Timestamp;
use carrick_client::Error;

use crate::agent::contract::bundles::written;
use crate::agent::contract::pace::PassResult;
use crate::agent::writer::Writer;
use crate::decide::core::{binding, moves};

/// A ClusterBinding or a Binding.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AnyBinding {
    Cluster(ClusterBinding),
    Namespaced(Binding),
}

impl AnyBinding {
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Cluster(it) => &it.metadata,
            Self::Namespaced(it) => &it.metadata,
        }
    }

    pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Cluster(it) => &mut it.metadata,
            Self::Namespaced(it) => &mut it.metadata,
        }
    }

    pub fn spec(&self) -> &BindingSpec {
        match self {
            Self::Cluster(it) => &it.spec,
            Self::Namespaced(it) => &it.spec,
        }
    }

    pub fn status(&self) -> &BindingStatus {
        match self {
            Self::Cluster(it) => &it.status,
            Self::Namespaced(it) => &it.status,
        }
    }

    pub fn status_mut(&mut self) -> &mut BindingStatus {
        match self {
            Self::Cluster(it) => &mut it.status,
            Self::Namespaced(it) => &mut it.status,
        }
    }

    /// The namespace that it is for; none if for all.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Cluster(_) => None,
            Self::Namespaced(it) => Some(&it.metadata.namespace),
        }
    }

    /// The Connection that it belongs to: the one that has bound it, whatever it names now.
    pub fn connection(&self) -> &str {
        moves::owner(self.metadata(), self.named())
    }

    /// The Connection that it names.
    pub fn named(&self) -> &str {
        &self.spec().connection_ref.name
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
        new.metadata_mut().add_finalizer(CLEANUP_FINALIZER);
        let mark = moves::mark(self.connection(), self.metadata());
        if self.metadata().annotation(BOUND_BY_ANNOTATION) != Some(mark.as_str()) && is_used() {
            new.metadata_mut().annotate(BOUND_BY_ANNOTATION, mark);
        }
        (new != *self).then_some(new)
    }

    /// Kind and name, for people and as a key.
    pub fn key(&self) -> String {
        match self {
            Self::Cluster(it) => format!("ClusterBinding {}", it.metadata.name),
            Self::Namespaced(it) => format!("Binding {}/{}", it.metadata.namespace, it.metadata.name),
        }
    }

    /// Whether it lists an API.
    pub fn lists(&self, api: &str) -> bool {
        self.spec().apis.iter().any(|listed| listed.name == api)
    }

    /// The same with these conditions and these bound APIs; none of the latter if they are not known now.
    pub async fn report(
        &self,
        writer: &Writer,
        findings: &[Finding],
        bound: Option<Vec<carrick_bind_api::core::BoundApi>>,
        now: Timestamp,
    ) -> PassResult {
        let mut new = self.clone();
        let generation = new.metadata().generation;
        if !findings.iter().any(|finding| finding.type_ == RELATED_SYNCED) {
            new.status_mut().conditions.retain(|condition| condition.type_ != RELATED_SYNCED);
        }
        for finding in findings {
            conditions::set(&mut new.status_mut().conditions, finding, generation, now);
        }
        if let Some(bound) = bound
            && new.status_mut().bound_apis != bound
        {
            new.status_mut().bound_apis = bound;
        }
        if new == *self {
            return PassResult::default();
        }
        let result = match &new {
            Self::Cluster(it) => writer.status(it).await,
            Self::Namespaced(it) => writer.status(it).await,
        };
        written(result, "binding", &self.key())
    }

    /// Writes its finalizers and annotations.
    pub async fn write_metadata(&self, writer: &Writer) -> Result<(), Error> {
        match self {
            Self::Cluster(it) => writer.metadata(it).await,
            Self::Namespaced(it) => writer.metadata(it).await,
        }
    }
}
