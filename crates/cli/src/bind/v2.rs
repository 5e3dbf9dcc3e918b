//! A workload cluster uses what its account in kcp has, by kube-bind v2: nothing of kube-bind runs in the account.
//!
//! ```text
//!  root:vendor: APIExport ──bound──▶ root:account: Widgets ◀── Connection ── konnector ──▶ workload cluster: Widgets
//! ```

use carrick_bind_api::core::names::CONNECTION_ANNOTATION;
use carrick_bind_api::core::{CLUSTER_BINDING, CONNECTION, crds as kinds};
use carrick_bind_api::kinds::Kind;
use carrick_client::{Client, DeleteOptions, ListOptions, Resource, Server};
use carrick_plane::{Mode, Plane};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::parts::{
    Background, GROUP, NAMESPACE, crds, namespaces, operate, secrets, until, until_gone, until_object, use_widgets,
    widget, widgets,
};
use crate::ui::{Done, Failed, Step, Ui};
use crate::{embedded, workspaces};

const VENDOR: &str = "root:vendor";
const ACCOUNT: &str = "root:account";
/// Name of the Connection, of its Secret and of the ClusterBinding.
const NAME: &str = "account";
/// Where Secrets and Leases are.
const KBIND: &str = "kbind";

/// Everything of the story.
struct Story {
    ui: Ui,
    background: Background,
    kcp: Plane,
    admin: Server,
    workload: Plane,
    local: Client,
}

/// Plays the story.
pub async fn play(ui: &Ui) -> Result<(), Failed> {
    ui.heading("An account in kcp");
    let mut story = Story::open(ui).await?;
    story.use_vendor().await?;
    ui.heading("A workload cluster connects");
    story.connect().await?;
    story.bind().await?;
    ui.heading("It uses the account");
    story.order().await?;
    story.keep().await?;
    ui.heading("And lets go of it");
    story.unbind().await?;
    story.background.end().await;
    Ok(())
}

/// A kind of v2.
fn of(kind: Kind) -> Resource {
    Resource::cluster_wide(kind.group, kind.version, kind.kind, kind.plural)
}

fn leases() -> Resource {
    Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases")
}

fn is_ready(object: &Value) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

fn is_established(crd: &Value) -> bool {
    let mut conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Established" && it["status"] == "True")
}

impl Story {
    async fn open(ui: &Ui) -> Result<Self, Failed> {
        let step = Step::new("starting kcp and a workload cluster", "two servers that answer on loopback");
        ui.step(step, async |_| {
            let (kcp, workload) = (embedded::start(Mode::Kcp, &[]).await?, embedded::start(Mode::Kube, &[]).await?);
            let admin = Server::from_kubeconfig_yaml(&kcp.kubeconfig("kcp-admin", None)?)?;
            let local = Server::from_kubeconfig_yaml(&workload.kubeconfig("admin", None)?)?.client();
            for path in [VENDOR, ACCOUNT] {
                workspaces::ensure(&admin, path).await?;
            }
            let text = format!("kcp answers at {}, a workload cluster at {}", kcp.url(), workload.url());
            let story = Self { ui: ui.clone(), background: Background::default(), kcp, admin, workload, local };
            Ok(Done::new(text).with(story))
        })
        .await
    }

    fn at(&self, workspace: &str) -> Client {
        self.admin.at_path(&format!("/clusters/{workspace}"))
    }

    /// The account binds somebody's API and has an object of it; the vendor's operator works.
    async fn use_vendor(&mut self) -> Result<(), Failed> {
        let (vendor, account) = (self.at(VENDOR), self.at(ACCOUNT));
        let background = &mut self.background;
        let step = Step::new("binding a vendor's API", "an account with a Widget");
        self.ui
            .step(step, async |seen| {
                use_widgets(seen, VENDOR, &vendor, &account).await?;
                background.task(operate(account.clone()));
                Ok(Done::new(format!("account {ACCOUNT} uses a vendor's Widgets and has one, first")))
            })
            .await
    }

    /// A kubeconfig in a Secret, and a Connection.
    async fn connect(&mut self) -> Result<(), Failed> {
        let account = self.at(ACCOUNT);
        let (local, kcp, workload, background) = (&self.local, &self.kcp, &self.workload, &mut self.background);
        let step = Step::new("connecting", "a Connection that is ready, and its Lease in the account");
        self.ui
            .step(step, async |seen| {
                background.konnector(Server::from_kubeconfig_yaml(&workload.kubeconfig("admin", None)?)?, None);
                for crd in kinds::all() {
                    local.apply(&crds(), None, &crd, "carrick").await?;
                    let name = crd["metadata"]["name"].as_str().unwrap_or_default();
                    until_object(seen, (local, &crds(), None, name), is_established).await?;
                }
                let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KBIND}});
                local.apply(&namespaces(), None, &namespace, "carrick").await?;
                let kubeconfig = kcp.kubeconfig("kcp-admin", Some(ACCOUNT))?;
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME},
                    "data": {"kubeconfig": BASE64.encode(kubeconfig.as_bytes())}});
                local.create(&secrets(), Some(KBIND), &secret).await?;
                let connection = json!({"apiVersion": CONNECTION.api_version(), "kind": CONNECTION.kind, "metadata": {"name": NAME},
                    "spec": {"kubeconfigSecretRef": {"namespace": KBIND, "name": NAME}, "schema": {"source": "OpenAPI"}}});
                local.create(&of(CONNECTION), None, &connection).await?;
                until_object(seen, (local, &of(CONNECTION), None, NAME), is_ready).await?;
                // By this annotation Platform Mesh finds out that a cluster is connected.
                let leases = account.list(&leases(), Some(KBIND), &ListOptions::default()).await?;
                let of_us = |it: &&Value| it["metadata"]["annotations"][CONNECTION_ANNOTATION] == NAME;
                anyhow::ensure!(leases.iter().filter(of_us).count() == 1, "the Leases of the account are {leases:?}");
                Ok(Done::new("a kubeconfig and a Connection: the account has the konnector's Lease, and nothing else of kube-bind"))
            })
            .await
    }

    async fn bind(&self) -> Result<(), Failed> {
        let local = &self.local;
        let step = Step::new("binding Widgets", "Widgets on the workload cluster");
        self.ui
            .step(step, async |seen| {
                let binding = json!({"apiVersion": CLUSTER_BINDING.api_version(), "kind": CLUSTER_BINDING.kind, "metadata": {"name": NAME},
                    "spec": {"connectionRef": {"name": NAME}, "apis": [{"name": format!("widgets.{GROUP}")}]}});
                local.create(&of(CLUSTER_BINDING), None, &binding).await?;
                until_object(seen, (local, &of(CLUSTER_BINDING), None, NAME), is_ready).await?;
                let crd = format!("widgets.{GROUP}");
                until_object(seen, (local, &crds(), None, &crd), is_established).await?;
                Ok(Done::new("one ClusterBinding: the workload cluster serves Widgets as the account does"))
            })
            .await
    }

    async fn order(&self) -> Result<(), Failed> {
        let (local, account) = (&self.local, self.at(ACCOUNT));
        let step = Step::new("creating second on the workload cluster", "second in the account, and its status");
        self.ui
            .step(step, async |seen| {
                let second = widget("second", "tiny");
                until(seen, async || Ok(local.create(&widgets(), Some(NAMESPACE), &second).await?)).await?;
                let there = (&account, &widgets(), Some(NAMESPACE), "second");
                until_object(seen, there, |it| it["spec"]["size"] == "tiny").await?;
                let here = (local, &widgets(), Some(NAMESPACE), "second");
                until_object(seen, here, |it| it["status"]["phase"] == "tiny and ready").await?;
                Ok(Done::new("second reached the account under its own name, and its status came back: tiny and ready"))
            })
            .await
    }

    /// What the account had before is not taken over.
    async fn keep(&self) -> Result<(), Failed> {
        let (local, account) = (&self.local, self.at(ACCOUNT));
        let step = Step::new("creating first, which the account has already", "a conflict, and first as it was");
        self.ui
            .step(step, async |seen| {
                local.create(&widgets(), Some(NAMESPACE), &widget("first", "huge")).await?;
                let here = (local, &widgets(), Some(NAMESPACE), "first");
                let annotation = "core.kbind.io/conflict";
                until_object(seen, here, |it| it["metadata"]["annotations"][annotation] == "ForeignObjectExists")
                    .await?;
                let there = (&account, &widgets(), Some(NAMESPACE), "first");
                until_object(seen, there, |it| it["spec"]["size"] == "small").await?;
                local.delete(&widgets(), Some(NAMESPACE), "first", &DeleteOptions::default()).await?;
                until_gone(seen, here).await?;
                Ok(Done::new("first of the account stayed as it was, and the object here says why it is not synced"))
            })
            .await
    }

    async fn unbind(&self) -> Result<(), Failed> {
        let (local, account) = (&self.local, self.at(ACCOUNT));
        let step = Step::new("deleting the ClusterBinding and the Connection", "the account as it was before");
        self.ui
            .step(step, async |seen| {
                for kind in [CLUSTER_BINDING, CONNECTION] {
                    local.delete(&of(kind), None, NAME, &DeleteOptions::default()).await?;
                    until_gone(seen, (local, &of(kind), None, NAME)).await?;
                }
                let left = account.list(&widgets(), None, &ListOptions::default()).await?;
                let names: Vec<_> = left.iter().map(|it| &it["metadata"]["name"]).collect();
                anyhow::ensure!(names == ["first"], "the account has {names:?}");
                anyhow::ensure!(
                    local.get(&crds(), None, &format!("widgets.{GROUP}")).await?.is_none(),
                    "the API is left"
                );
                Ok(Done::new("the copy went first, then the API here; the account has first, as before"))
            })
            .await
    }
}
