//! What runs while a provider edits: kcp, a service cluster, an agent, and a consumer who has bound the export.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use carrick_client::{Client, DeleteOptions, ListOptions, Overrides, Resource, Server};
use carrick_kcp::apis::v1alpha1::ApiExportEndpointSlice;
use carrick_kcp::apis::v1alpha2::{AcceptablePermissionClaim, ApiBinding, ApiExport, ExportReference};
use carrick_kcp::kinds::API_BINDING_V2;
use carrick_plane::{Mode, Plane};
use serde_json::{Value, json};

use super::applier::{Applier, LABEL};
use super::ledger::ObjectLocation;
use super::rivals;
use super::sources::Side;
use crate::demo::manifests::crds;
use crate::embedded::{self, AgentSetup, RunningAgent};
use crate::workspaces;

/// The export, its slice, and the binding.
pub const EXPORT: &str = "dev";
/// The provider's workspace, and the user that owns it.
pub const PROVIDER: (&str, &str) = ("root:provider", "provider");
/// The consumer's workspace, and the user that owns it.
pub const CONSUMER: (&str, &str) = ("root:consumer", "consumer");
const PAUSE: Duration = Duration::from_millis(20);
/// How long to wait for a state that depends on the servers alone.
const LIMIT: Duration = Duration::from_secs(30);

/// The service cluster: an embedded one, or one that existed before.
#[derive(Debug)]
pub enum Cluster {
    /// Stops with us.
    Embedded(Box<Plane>),
    /// Keeps running without us, and must be left as it was.
    Existing {
        /// Its namespaces before.
        before: Vec<String>,
        /// Whether it had the CRD of PublishedResources before.
        has_crd: bool,
    },
}

/// Everything that runs.
#[derive(Debug)]
pub struct Stage {
    /// kcp.
    pub kcp: Plane,
    /// The service cluster.
    pub cluster: Cluster,
    /// Where the service cluster answers.
    pub server: Server,
    /// Applies objects.
    pub applier: Applier,
    /// The agent, once it runs.
    pub agent: Option<RunningAgent>,
    provider: Client,
}

impl Stage {
    /// Starts servers and creates workspaces. Writes nothing to a cluster that existed before.
    pub async fn open(service: Option<&Path>, beside_others: bool) -> anyhow::Result<Self> {
        let run = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        let kcp = embedded::start(Mode::Kcp, &[PROVIDER.1, CONSUMER.1]).await?;
        let admin = Server::from_kubeconfig_yaml(&kcp.kubeconfig("kcp-admin", None)?)?;
        for (path, user) in [PROVIDER, CONSUMER] {
            workspaces::ensure(&admin, path).await?;
            workspaces::grant_admin(&admin, path, user).await?;
        }
        let client = |(path, user): (&str, &str)| -> anyhow::Result<Client> {
            Ok(Server::from_kubeconfig_yaml(&kcp.kubeconfig(user, Some(path))?)?.client())
        };
        let (provider, consumer) = (client(PROVIDER)?, client(CONSUMER)?);
        let (cluster, server) = match service {
            None => {
                let plane = embedded::start(Mode::Kube, &[]).await?;
                let server = Server::from_kubeconfig_yaml(&plane.kubeconfig("admin", None)?)?;
                (Cluster::Embedded(Box::new(plane)), server)
            }
            Some(file) => {
                let server = Server::from_kubeconfig(file, &Overrides::default())?;
                let client = server.client();
                let about = || format!("cannot read the cluster of --service-kubeconfig {}", file.display());
                let has_crd = client.get(&crds(), None, &agent_crd()?.0).await.with_context(about)?.is_some();
                if !beside_others {
                    rivals::refuse_others(&client, &run, has_crd).await?;
                }
                let found = client.list(&namespaces(), None, &ListOptions::default()).await.with_context(about)?;
                let before = found.iter().filter_map(|one| one["metadata"]["name"].as_str()).map(str::to_owned);
                (Cluster::Existing { before: before.collect(), has_crd }, server)
            }
        };
        let applier = Applier { service: server.client(), consumer, run };
        Ok(Self { kcp, cluster, server, applier, agent: None, provider })
    }

    /// The agent's namespace on the service cluster.
    pub fn namespace(&self) -> String {
        format!("carrick-dev-{}", self.applier.run)
    }

    /// Which PublishedResources the agent serves.
    pub fn selector(&self) -> String {
        format!("{LABEL}={}", self.applier.run)
    }

    /// Creates the export, starts the agent, and binds the consumer to it.
    pub async fn prepare(&mut self) -> anyhow::Result<()> {
        self.provider.create_newest(&ApiExport::new(EXPORT)).await?;
        for (kind, object) in bind_rights() {
            self.provider.create(&kind, None, &object).await?;
        }
        let service = &self.applier.service;
        let (name, crd) = agent_crd()?;
        if !matches!(self.cluster, Cluster::Existing { has_crd: true, .. }) {
            service.create(&crds(), None, &crd).await.context("cannot install the CRD of PublishedResources")?;
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace()}});
        service.create(&namespaces(), None, &namespace).await.context("cannot create a namespace for the agent")?;
        let ready = async || -> anyhow::Result<bool> {
            let crd = service.get(&crds(), None, &name).await?.unwrap_or_default();
            let conditions = crd["status"]["conditions"].as_array();
            let established = conditions.is_some_and(|all| {
                all.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
            });
            Ok(established && self.provider.get_kcp::<ApiExportEndpointSlice>(EXPORT).await?.is_some())
        };
        until("the CRD of PublishedResources and the endpoint slice are served", ready).await?;
        let agent = RunningAgent::start(AgentSetup {
            local: self.server.clone(),
            kcp: Server::from_kubeconfig_yaml(&self.kcp.kubeconfig(PROVIDER.1, Some(PROVIDER.0))?)?,
            namespace: self.namespace(),
            name: EXPORT,
            export: EXPORT,
            selector: self.selector(),
        })?;
        self.agent = Some(agent);
        Ok(())
    }

    /// Binds the consumer to the export and accepts whatever it claims, which changes with the PublishedResources.
    pub async fn accept(&self) -> anyhow::Result<()> {
        let export: ApiExport = self.provider.get_newest(EXPORT).await?.unwrap_or_default();
        let claims: Vec<AcceptablePermissionClaim> =
            export.spec.permission_claims.iter().map(AcceptablePermissionClaim::accept).collect();
        let consumer = &self.applier.consumer;
        match consumer.get_newest::<ApiBinding>(EXPORT).await? {
            None => {
                let mut binding = ApiBinding::to_export(EXPORT, ExportReference::new(PROVIDER.0, EXPORT));
                binding.spec.permission_claims = claims;
                consumer.create_newest(&binding).await?;
            }
            Some(binding) if binding.spec.permission_claims != claims => {
                let patch = json!({"spec": {"permissionClaims": claims}});
                consumer.merge_patch(&API_BINDING_V2.into(), None, EXPORT, &patch).await?;
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Deletes all objects of bound kinds in the consumer's workspace, so that the agent deletes their copies.
    pub async fn delete_orders(&self) -> anyhow::Result<()> {
        let consumer = &self.applier.consumer;
        let binding: ApiBinding = consumer.get_newest(EXPORT).await?.unwrap_or_default();
        for bound in &binding.status.bound_resources {
            let version = bound.storage_versions.first().map_or("", String::as_str);
            let kind = Resource::namespaced(&bound.group, version, "", &bound.resource);
            for object in consumer.list_compact(&kind, None, &ListOptions::default()).await? {
                let namespace = Some(&*object.namespace).filter(|namespace| !namespace.is_empty());
                match consumer.delete(&kind, namespace, &object.name, &DeleteOptions::default()).await {
                    Err(error) if !error.is_not_found() => return Err(error.into()),
                    _ => {}
                }
            }
            let gone = async || Ok(consumer.list(&kind, None, &ListOptions::default()).await?.is_empty());
            let what = format!("all {} of the consumer are gone", kind.plural);
            until(&what, gone).await.context("does an operator's finalizer hold their copies?")?;
        }
        Ok(())
    }

    /// What was created for the agent on a cluster that existed before, and the namespaces that the agent created for copies.
    pub fn own(&self, used: &BTreeSet<String>) -> Vec<(ObjectLocation, String)> {
        let Cluster::Existing { before, has_crd } = &self.cluster else { return Vec::new() };
        let place = |resource: Resource| ObjectLocation { resource, namespace: None, ours: true };
        let made = used.iter().filter(|name| !before.contains(name)).cloned().chain([self.namespace()]);
        let mut all: Vec<(ObjectLocation, String)> = made.map(|name| (place(namespaces()), name)).collect();
        if !has_crd && let Ok((name, _)) = agent_crd() {
            all.push((place(crds()), name));
        }
        all
    }

    /// Deletes objects from the service cluster, waits until they are gone, and returns those that could not be deleted and those that are
    /// not gone yet.
    pub async fn remove(&self, mut all: Vec<(ObjectLocation, String)>) -> (Vec<String>, Vec<String>) {
        let mut left = Vec::new();
        for (place, name) in &all {
            if let Err(error) = self.applier.remove(Side::Service, place, name).await {
                left.push(format!("{} {name}: {error}", place.resource.kind));
            }
        }
        let deadline = Instant::now() + LIMIT;
        while !all.is_empty() && left.is_empty() && Instant::now() < deadline {
            let mut there = Vec::new();
            for (place, name) in all {
                let found = self.applier.service.get(&place.resource, place.namespace.as_deref(), &name).await;
                if !matches!(found, Ok(None)) {
                    there.push((place, name));
                }
            }
            all = there;
            tokio::time::sleep(PAUSE).await;
        }
        let slow = all.iter().map(|(place, name)| format!("{} {name}", place.resource.kind));
        (left, slow.collect())
    }

    /// Stops everything that we started.
    pub async fn stop(self) -> anyhow::Result<()> {
        let ended = match self.agent {
            Some(agent) => agent.stop().await,
            None => Ok(()),
        };
        match self.cluster {
            Cluster::Embedded(plane) => drop(tokio::join!(self.kcp.stop(), plane.stop())),
            Cluster::Existing { .. } => self.kcp.stop().await,
        }
        ended
    }
}

/// Polls until `look` succeeds.
async fn until(what: &str, look: impl AsyncFn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let looking = async {
        while !look().await? {
            tokio::time::sleep(PAUSE).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(LIMIT, looking).await.with_context(|| format!("not within {} s: {what}", LIMIT.as_secs()))?
}

fn namespaces() -> Resource {
    Resource::cluster_wide("", "v1", "Namespace", "namespaces")
}

/// The CRD of PublishedResources, with its name.
fn agent_crd() -> anyhow::Result<(String, Value)> {
    let crd = carrick_syncagent::api::crd();
    let name = crd["metadata"]["name"].as_str().context("the CRD of PublishedResources has no name")?;
    Ok((name.to_owned(), crd))
}

/// RBAC that lets everybody bind the export.
fn bind_rights() -> [(Resource, Value); 2] {
    const RBAC: &str = "rbac.authorization.k8s.io";
    let api_version = format!("{RBAC}/v1");
    [
        (
            Resource::cluster_wide(RBAC, "v1", "ClusterRole", "clusterroles"),
            json!({
                "apiVersion": api_version, "kind": "ClusterRole", "metadata": {"name": "bind-dev"},
                "rules": [{"apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "resourceNames": [EXPORT], "verbs": ["bind"]}],
            }),
        ),
        (
            Resource::cluster_wide(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings"),
            json!({
                "apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": {"name": "bind-dev"},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "bind-dev"},
                "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "system:authenticated"}],
            }),
        ),
    ]
}
