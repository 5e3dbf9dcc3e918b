//! A Connection whose Secret can be used: everything that goes over one kubeconfig, until the Secret says something else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::core::names::{EXPORTED_LABEL, FIELD_MANAGER};
use carrick_bind_api::core::{Connection, ExportedApi, SchemaSource, lease, schema};
use carrick_bind_api::jiff::Timestamp;
use carrick_client::watch::WatchOptions;
use carrick_client::{Client, InlineKubeconfig, Server};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::connection::{self, kubeconfig};
use super::hub::Hub;
use super::identity;
use super::lease::Heartbeat;
use super::local::CoreLocal;
use super::openapi::OpenApi;
use crate::agent::cache::Cache;
use crate::agent::contract::pace::{Pace, PassResult};
use crate::agent::notifier::Notifier;
use crate::agent::resources;
use crate::agent::task::Task;
use crate::agent::writer::Writer;
use crate::decide::core::connection::Progress;

/// How long the sync may take to end.
const GRACE: Duration = Duration::from_secs(8);

/// What is known of a Connection in one pass.
pub(super) struct ConnectionState {
    pub progress: Progress,
    /// Where schemas come from: CRD or OpenAPI.
    source: &'static str,
    /// What the provider offers: as it says now, or as it said last.
    pub exports: Vec<ExportedApi>,
    /// The provider's CRDs that are known, by name.
    pub offered: BTreeMap<String, Value>,
    /// Whether the answer is complete: only then something is not offered that is not in it.
    pub is_complete: bool,
}

/// A Connection whose Secret can be used.
pub(super) struct ConnectionSession {
    pub local: Arc<CoreLocal>,
    pub name: String,
    uid: String,
    kubeconfig: InlineKubeconfig,
    provider: Client,
    /// Writes to the provider.
    writer: Writer,
    /// Where schemas come from, as the Connection says.
    source: SchemaSource,
    /// The provider's CRDs with the label, unless OpenAPI documents take their place.
    crds: Option<Arc<Cache>>,
    openapi: OpenApi,
    /// Rings whenever something changes that is not on the consumer.
    notifier: Notifier,
    /// Who the provider is.
    remote: Option<String>,
    heartbeat: Heartbeat,
    hub: Option<(Arc<Hub>, Task)>,
    stop: CancellationToken,
}

impl ConnectionSession {
    /// Connects, and begins to watch.
    pub fn new(local: Arc<CoreLocal>, connection: &Connection, kubeconfig: InlineKubeconfig, server: &Server) -> Self {
        let (stop, notifier) = (CancellationToken::new(), Notifier::default());
        let provider = server.client();
        let name = connection.metadata.name.clone();
        let source = connection.spec.schema.source.clone();
        let crds = (source != SchemaSource::OpenAPI).then(|| {
            let cache =
                Cache::new(format!("CustomResourceDefinitions of the provider of Connection {name}"), &notifier);
            let options = WatchOptions::labels(format!("{EXPORTED_LABEL}=true"));
            tokio::spawn(Arc::clone(&cache).follow(provider.clone(), resources::crds(), options, stop.clone()));
            cache
        });
        tracing::info!(connection = name, provider = kubeconfig.server(), "Connecting to a provider.");
        Self {
            writer: Writer::new(provider.clone(), "provider", Arc::clone(&local.context.metrics)),
            uid: connection.metadata.uid.clone(),
            remote: None,
            heartbeat: Heartbeat::default(),
            hub: None,
            local,
            name,
            kubeconfig,
            provider,
            crds,
            source,
            openapi: OpenApi::default(),
            notifier,
            stop,
        }
    }

    /// Looks at everything whenever something has changed, until told to stop or the Secret says something else.
    pub async fn run(mut self, stop: CancellationToken) {
        let (mut local, mut remote) = (self.local.notifier.subscribe(), self.notifier.subscribe());
        let mut pace = Pace::default();
        while !stop.is_cancelled() {
            let Some(connection) = self.local.connection(&self.name).filter(|it| it.metadata.uid == self.uid) else {
                break;
            };
            if self.is_outdated(&connection) {
                break;
            }
            let outcome = self.pass(&connection).await;
            let beat = self.remote.as_ref().map_or(Duration::MAX, |_| self.heartbeat.due_in());
            let beat = beat.min(self.openapi.due_in());
            let again = pace.next(outcome).map_or(beat, |again| again.min(beat));
            tokio::select! {
                () = stop.cancelled() => {}
                () = local.changed() => {}
                () = remote.changed() => {}
                () = tokio::time::sleep(again) => {}
            }
        }
        self.stop.cancel();
        if let Some((_, mut sync)) = self.hub.take() {
            sync.ended_within(GRACE, &self.name).await;
        }
    }

    /// Whether the Secret says something else than what this session works with. One that cannot be read now says nothing else.
    fn is_outdated(&self, connection: &Connection) -> bool {
        if connection.spec.schema.source != self.source {
            return true;
        }
        let unread = matches!(self.local.secrets.get(&connection.secret()), crate::decide::Seen::Unknown(_));
        !unread && kubeconfig(&self.local, connection).as_ref() != Ok(&self.kubeconfig)
    }

    /// What is synced, once it is known who the provider is.
    pub fn hub(&self) -> Option<&Arc<Hub>> {
        self.hub.as_ref().map(|(hub, _)| hub)
    }

    /// One look at everything.
    async fn pass(&mut self, connection: &Connection) -> PassResult {
        let now = Timestamp::now();
        let is_deleting = connection.metadata.is_deleting();
        if !is_deleting && let Some(held) = connection::hold(&self.local, connection).await {
            return held;
        }
        let Some(state) = self.connect(connection).await else { return PassResult::default() };
        let mut outcome = PassResult::default();
        // Before anybody is told that the Connection works.
        if state.progress == Progress::Ready {
            self.beat(connection, now).await;
        } else if !is_deleting {
            outcome.add(PassResult::failure());
        }
        if is_deleting {
            outcome.add(self.follow_bindings(connection, &state, now).await);
            outcome.add(connection::end(&self.local, connection, now).await);
            return outcome;
        }
        let (remote, uid) = (self.remote.clone(), self.hub().map(|hub| hub.cluster_uid.clone()));
        let change = |new: &mut Connection| {
            if let Some(uid) = uid {
                new.status.remote_cluster_uid = remote.unwrap_or_default();
                new.status.local_cluster_uid = uid;
            }
            if state.progress == Progress::Ready {
                state.source.clone_into(&mut new.status.active_schema_source);
                if new.status.exported_apis != state.exports {
                    new.status.exported_apis.clone_from(&state.exports);
                }
            }
        };
        outcome.add(connection::report(&self.local, connection, &state.progress, change, now).await);
        if state.progress == Progress::Ready && state.is_complete {
            outcome.add(self.auto_bind(connection, &state, now).await);
            outcome.add(self.pull_all(connection, &state).await);
        }
        outcome.add(self.follow_bindings(connection, &state, now).await);
        outcome
    }

    /// How far the Connection has come; nothing if that is about to be known.
    async fn connect(&mut self, connection: &Connection) -> Option<ConnectionState> {
        let progress = match self.identify(connection).await {
            Err(progress) => progress,
            Ok(()) if self.reads_openapi(connection) => {
                let read = self.openapi.refresh(&self.provider, &self.notifier).await;
                read.map_or_else(|error| undiscovered(error.to_string(), error.is_forbidden()), |()| Progress::Ready)
            }
            Ok(()) => {
                let crds = self.crds.as_ref()?;
                match crds.unknown() {
                    _ if crds.is_pending() => return None,
                    None => Progress::Ready,
                    Some(why) => undiscovered(why, crds.is_forbidden()),
                }
            }
        };
        let source = if self.reads_openapi(connection) { "OpenAPI" } else { "CRD" };
        let (offered, is_whole) = match &self.crds {
            Some(crds) if source == "CRD" => {
                (crds.objects().iter().map(|crd| (crd.name.to_string(), crd.value())).collect(), true)
            }
            _ => (self.openapi.offered.clone(), self.openapi.is_complete),
        };
        let is_complete = progress == Progress::Ready && is_whole;
        // The keys are sorted already.
        let mut exports: Vec<ExportedApi> = offered.values().filter_map(schema::exported).collect();
        if !is_complete {
            let is_known = |api: &&ExportedApi| offered.contains_key(&api.name);
            exports.extend(connection.status.exported_apis.iter().filter(|api| !is_known(api)).cloned());
            exports.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Some(ConnectionState { progress, source, exports, offered, is_complete })
    }

    /// Whether OpenAPI documents say what is offered. Auto decides that once, by a complete and empty list of CRDs: a provider that takes its labels
    /// away later would otherwise offer everything it has.
    fn reads_openapi(&self, connection: &Connection) -> bool {
        let Some(crds) = &self.crds else { return true };
        let is_open = self.source == SchemaSource::Auto || self.source == SchemaSource::Unset;
        match connection.status.active_schema_source.as_str() {
            _ if !is_open => false,
            "OpenAPI" => true,
            "CRD" => false,
            _ => crds.has_synced() && crds.unknown().is_none() && crds.objects().is_empty(),
        }
    }

    /// Finds out who both clusters are, once, and engages if the provider is who it was.
    async fn identify(&mut self, connection: &Connection) -> Result<(), Progress> {
        if self.remote.is_none() {
            self.remote = Some(identity::read(&self.provider).await?);
        }
        let (pinned, found) = (&connection.status.remote_cluster_uid, self.remote.clone().unwrap_or_default());
        if !pinned.is_empty() && *pinned != found {
            return Err(Progress::OtherCluster { pinned: pinned.clone(), found });
        }
        if self.hub.is_none() {
            // What was pinned stands on copies.
            let pinned = connection.status.local_cluster_uid.as_str();
            let uid = if pinned.is_empty() { self.local.uid().await? } else { pinned }.to_owned();
            let hub = Arc::new(Hub::new(
                self.local.context.local.client.writing_as(FIELD_MANAGER),
                self.provider.writing_as(FIELD_MANAGER),
                uid,
                Arc::clone(&self.local.context.metrics),
                self.notifier.clone(),
                self.local.context.budget.allowance(),
            ));
            let task = Task::spawn(Arc::clone(&hub).run(self.stop.child_token()));
            self.hub = Some((hub, task));
        }
        Ok(())
    }

    /// Renews the Lease on the provider, if it is time.
    async fn beat(&mut self, connection: &Connection, now: Timestamp) {
        let Some(uid) = self.hub().map(|hub| hub.cluster_uid.clone()) else { return };
        let remote = self.remote.as_deref().unwrap_or_default();
        let age = |it: &Connection| (it.metadata.creation_timestamp.clone(), it.metadata.name.clone());
        let mut others = self.local.connections().into_iter().filter(|it| it.status.remote_cluster_uid == remote);
        let is_first = others.all(|it| age(&it) >= age(connection));
        let place = lease::place(self.kubeconfig.namespace(), &self.name, &uid, is_first);
        self.heartbeat.beat(&self.writer, place, &self.name, &uid, now).await;
    }
}

/// Why it is not known what the provider offers.
fn undiscovered(why: String, forbidden: bool) -> Progress {
    if forbidden {
        return Progress::Forbidden(format!("discovery is forbidden by provider RBAC: {why}"));
    }
    Progress::Unreachable(why)
}

impl Drop for ConnectionSession {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
