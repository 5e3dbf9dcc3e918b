//! What there is of v2 on the consumer's cluster.

use std::sync::Arc;

use carrick_bind_api::claims::Guarded;
use carrick_bind_api::core::schema::{self, CrdOwner};
use carrick_bind_api::core::{BINDING, CLUSTER_BINDING, CONNECTION, Connection, PullPolicy};
use carrick_bind_api::kinds::Kind;
use carrick_bind_api::names::KONNECTOR_NAMESPACE;
use carrick_bind_api::v1alpha2::SecretKeyReference;
use carrick_client::watch::WatchOptions;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::any_binding::AnyBinding;
use super::identity;
use crate::agent::cache::Cache;
use crate::agent::config::CoreConfig;
use crate::agent::context::Context;
use crate::agent::notifier::Notifier;
use crate::agent::resources;
use crate::agent::secrets::Secrets;
use crate::decide::core::connection::Progress;
use crate::decide::core::crd;
use crate::decide::core::moves;
use crate::decide::core::rivals::{self, Claimant};

/// The namespace that upstream's documents put Secrets into.
const KBIND_NAMESPACE: &str = "kbind";

/// What there is of v2 on the consumer's cluster.
pub(super) struct CoreLocal {
    pub context: Arc<Context>,
    config: CoreConfig,
    /// Rings whenever something of v2, or a CRD, changes.
    pub notifier: Notifier,
    connections: Arc<Cache>,
    cluster_bindings: Arc<Cache>,
    bindings: Arc<Cache>,
    pub secrets: Secrets,
    uid: OnceCell<String>,
}

impl CoreLocal {
    /// Begins to watch.
    pub fn start(context: Arc<Context>, config: CoreConfig, stop: &CancellationToken) -> Arc<Self> {
        // The same as for 0.8: CRDs that change concern both.
        let notifier = context.local.notifier.clone();
        let client = context.local.client.clone();
        let follow = |what: &str, kind: Kind| {
            let cache = Cache::new(what, &notifier);
            let options = WatchOptions::default();
            tokio::spawn(Arc::clone(&cache).follow(client.clone(), resources::of(kind), options, stop.clone()));
            cache
        };
        Arc::new(Self {
            connections: follow("Connections", CONNECTION),
            cluster_bindings: follow("ClusterBindings", CLUSTER_BINDING),
            bindings: follow("Bindings", BINDING),
            secrets: Secrets::new(client.clone(), &notifier, stop),
            uid: OnceCell::new(),
            config,
            notifier,
            context,
        })
    }

    /// Whether everything was read once; before that nobody knows what is wanted.
    pub fn has_synced(&self) -> bool {
        [&self.connections, &self.cluster_bindings, &self.bindings].iter().all(|cache| cache.has_synced())
            && self.context.local.has_synced()
    }

    /// All Connections.
    pub fn connections(&self) -> Vec<Connection> {
        self.connections.all()
    }

    /// A Connection.
    pub fn connection(&self, name: &str) -> Option<Connection> {
        self.connections().into_iter().find(|connection| connection.metadata.name == name)
    }

    /// All bindings, those for the whole cluster first.
    pub fn all_bindings(&self) -> Vec<AnyBinding> {
        let both = [(&self.cluster_bindings, CLUSTER_BINDING), (&self.bindings, BINDING)];
        both.into_iter().flat_map(|(cache, kind)| AnyBinding::all(cache, kind)).collect()
    }

    /// The bindings of a Connection.
    pub fn bindings_of(&self, connection: &str) -> Vec<AnyBinding> {
        let mut all = self.all_bindings();
        all.retain(|binding| binding.connection() == connection);
        all
    }

    /// Whether a binding lets go of what its Connection holds for it: it is being deleted, or it moves to another one and says what becomes of copies.
    pub fn lets_go(&self, found: &AnyBinding) -> bool {
        let offers = |it: Connection| found.spec.apis.iter().all(|api| it.exports(&api.name));
        found.metadata.is_deleting()
            || found.moves() && moves::has_policy(&found.metadata) && self.connection(found.named()).is_some_and(offers)
    }

    /// The binding of another Connection that has the objects of an API before this one; only with a CRD on which nothing says so.
    pub fn ahead(&self, found: &AnyBinding, api: &str, there: Option<&Value>) -> Option<Claimant> {
        if !there.is_some_and(crd::is_nobodys) {
            return None;
        }
        let connections = self.connections();
        let offers = |name: &str| connections.iter().any(|it| it.metadata.name == name && it.exports(api));
        let claimant = |it: &AnyBinding| Claimant {
            key: it.key(),
            connection: it.connection().to_owned(),
            namespace: it.namespace().map(str::to_owned),
            is_bound: it.status.bound_apis.iter().any(|bound| bound.name == api),
            is_offered: offers(it.connection()),
            since: it.metadata.creation_timestamp.clone(),
        };
        let all: Vec<Claimant> = self.all_bindings().iter().filter(|it| it.lists(api)).map(claimant).collect();
        rivals::ahead(&claimant(found), &all).cloned()
    }

    /// Whether a CRD was installed for another Connection than this one, and nobody uses it there any more.
    pub fn is_abandoned(&self, crd: &Value, connection: &str) -> bool {
        let CrdOwner::Connection { name, .. } = schema::owner(crd) else { return false };
        let pulls_all = |it: Connection| it.spec.schema.pull_policy == PullPolicy::All;
        name != connection
            && self.unknown_bindings().is_none()
            && !self.bindings_of(&name).iter().any(|it| it.lists(schema::name(crd)))
            && !self.connection(&name).is_some_and(pulls_all)
    }

    /// Why bindings are not all known now.
    pub fn unknown_bindings(&self) -> Option<String> {
        self.cluster_bindings.unknown().or_else(|| self.bindings.unknown())
    }

    /// Watches the Secrets that Connections name, and no others.
    pub fn watch_secrets(&self, connections: &[Connection]) {
        let named: Vec<SecretKeyReference> = connections.iter().map(Connection::secret).collect();
        self.context.guard(named.iter().map(|at| (at.namespace.clone(), at.name.clone())).collect());
        let allowed: Vec<_> = named.into_iter().filter(|at| self.refused_namespace(at).is_none()).collect();
        self.secrets.watch(&allowed);
    }

    /// What goes to no provider and comes from none, whatever is selected.
    pub fn guarded(&self) -> Guarded {
        let mut guarded = self.context.guarded();
        guarded.namespaces.insert(KBIND_NAMESPACE.to_owned());
        guarded
    }

    /// Why a Secret is not used: it is where whoever may create Connections should not reach.
    pub fn refused_namespace(&self, at: &SecretKeyReference) -> Option<String> {
        let own = self.context.namespace.as_deref();
        let allowed = [KONNECTOR_NAMESPACE, KBIND_NAMESPACE].into_iter().chain(own);
        if self.config.secrets_anywhere || allowed.into_iter().any(|namespace| namespace == at.namespace) {
            return None;
        }
        Some(format!(
            "kubeconfig secret {}/{} is outside the konnector's namespaces; move it to {}, or start the konnector with --secrets-anywhere",
            at.namespace,
            at.name,
            own.unwrap_or(KBIND_NAMESPACE)
        ))
    }

    /// Who this cluster is.
    pub async fn uid(&self) -> Result<&str, Progress> {
        let client = &self.context.local.client;
        self.uid.get_or_try_init(|| identity::read(client)).await.map(String::as_str)
    }
}
