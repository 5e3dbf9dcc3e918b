//! The ground that a backend works on: a workspace with the kinds of a provider and some APIs to export, and a door that counts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use carrick_bind_api::kinds::{API_SERVICE_EXPORT_TEMPLATE, Kind, is_namespaced};
use carrick_bind_api::names::EXPORTED_LABEL;
use carrick_client::{Client, Resource, Web, WebTrust};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::Stage;
use carrick_e2e_stage::world::{EmbeddedWorld, RealWorld, User, World};
use http::Request;
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::Servers;
use crate::door::{Counts, Door};
use crate::field::servers_folder;
use crate::process::Process;

/// The group of the APIs that are exported.
const GROUP: &str = "bench.example.io";

/// The ground of one backend.
pub struct Ground {
    stage: Stage,
    door: Door,
    folder: Scratch,
}

impl Ground {
    /// Starts fresh servers, with so many APIs to export.
    pub async fn prepare(servers: Servers, apis: usize) -> anyhow::Result<Self> {
        let world: Arc<dyn World> = match servers {
            Servers::Embedded => Arc::new(EmbeddedWorld::start().await?),
            Servers::Real => Arc::new(RealWorld::start(Path::new(&servers_folder()?)).await?),
        };
        let stage = Stage::bare(world).await?;
        let world = &stage.world;
        let kubeconfig = world.kcp_kubeconfig(User::Admin, &stage.provider.path);
        world.kcp_cable().cut().await?;
        let door = Door::open(world.kcp_cable().near(), world.kcp().url(), &kubeconfig).await?;
        let folder = Scratch::new()?;
        folder.write("provider.kubeconfig", &door.kubeconfig(&kubeconfig)?)?;
        let ground = Self { stage, door, folder };
        ground.offer(apis).await?;
        Ok(ground)
    }

    /// The provider, not through the door.
    pub fn client(&self) -> &Client {
        &self.stage.provider.client
    }

    /// The door.
    pub fn door(&self) -> &Door {
        &self.door
    }

    /// What was asked since this was asked last.
    pub fn requests(&self) -> Counts {
        self.door.take()
    }

    async fn offer(&self, apis: usize) -> anyhow::Result<()> {
        let kind = Resource::cluster_wide(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        );
        let wanted: Vec<Value> = carrick_bind_api::crds::provider().into_iter().chain((0..apis).map(crd)).collect();
        for crd in &wanted {
            self.client().create(&kind, None, crd).await?;
        }
        for crd in &wanted {
            let name = crd["metadata"]["name"].as_str().unwrap_or_default();
            self.stage
                .object("the CRD is served", (self.client(), &kind, None, name), |crd| {
                    let mut conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
                    conditions.any(|it| it["type"] == "Established" && it["status"] == "True")
                })
                .await?;
        }
        let template = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportTemplate",
            "metadata": {"name": "bench"}, "spec": {"scope": "Namespaced", "resources": [resource(0)]}});
        let templates = of(API_SERVICE_EXPORT_TEMPLATE);
        let made = self
            .stage
            .eventually("templates are served", async || Ok(self.client().create(&templates, None, &template).await?));
        made.await.map(drop)
    }

    /// Starts a backend with a front of its own, and waits until people may log in; its process and its URL.
    pub async fn start(&self, program: &Path) -> anyhow::Result<(Process, String)> {
        // Somebody else might take the port in between; then the backend says so and ends.
        let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
        let url = format!("http://{address}");
        let file = |name: &str| self.folder.path().join(name);
        let arguments = [
            format!("--kubeconfig={}", file("provider.kubeconfig").display()),
            format!("--listen-address={address}"),
            "--oidc-type=embedded".to_owned(),
            format!("--oidc-issuer-url={url}/oidc"),
            format!("--oidc-callback-url={url}/api/callback"),
            "--lease-namespace=default".to_owned(),
        ];
        let mut process = Process::start(program, &arguments, file("backend.log"))?;
        let web = Web::new(&WebTrust::default())?;
        let patience = tokio::time::Instant::now() + Duration::from_mins(1);
        loop {
            process.check()?;
            let health = Request::get(format!("{url}/healthz")).body(Bytes::new())?;
            if web.send(health).await.is_ok_and(|answer| answer.status().is_success()) {
                break;
            }
            anyhow::ensure!(tokio::time::Instant::now() < patience, "the backend does not answer at {url}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // It grants this when it begins to serve the cluster.
        let roles =
            Resource::cluster_wide("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings");
        let at = (self.client(), &roles, None, "kube-bind-oidc-user");
        self.stage.object("people may log in", at, |_| true).await.context("the backend grants nothing")?;
        Ok((process, url))
    }
}

/// A kind of kube-bind.
pub fn of(kind: Kind) -> Resource {
    let make = if is_namespaced(kind) { Resource::namespaced } else { Resource::cluster_wide };
    make(kind.group, kind.version, kind.kind, kind.plural)
}

/// An API as requests name it.
pub fn resource(number: usize) -> Value {
    json!({"group": GROUP, "resource": format!("benches{number}"), "versions": ["v1"]})
}

fn crd(number: usize) -> Value {
    let (plural, kind) = (format!("benches{number}"), format!("Bench{number}"));
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}"), "labels": {EXPORTED_LABEL: "true"}},
        "spec": {"group": GROUP, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "string"}}},
                    "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}}]}})
}
