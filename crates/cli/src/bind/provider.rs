//! A plain cluster offers its service to workspaces of kcp.
//!
//! ```text
//!  team-a, team-b ──▶ APIExport in root:provider ──▶ konnector ──▶ plain cluster: contract namespace, copies
//! ```

use anyhow::Context;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::agent::init;
use carrick_client::{Client, ListOptions, Server};
use carrick_kcp::apis::v1alpha2::{AcceptablePermissionClaim, ApiBinding, ApiExport, ExportReference};
use carrick_kcp::kinds::API_BINDING;
use carrick_kubectl_bind::identity;
use carrick_plane::{Mode, Plane};
use serde_json::{Value, json};

use super::parts::{
    Background, GROUP, NAMESPACE, backend_config, bind_all, contract, crds, hand_over, names, operate, schema, until,
    until_object, widget, widgets,
};
use crate::ui::{Done, Failed, Step, Ui};
use crate::{embedded, workspaces};

const HOME: &str = "root:provider";
const TEAMS: [&str; 2] = ["root:team-a", "root:team-b"];

/// Everything of the story.
struct Story {
    ui: Ui,
    background: Background,
    cluster: Plane,
    plain: Client,
    kcp: Plane,
    admin: Server,
}

/// Plays the story.
pub async fn play(ui: &Ui) -> Result<(), Failed> {
    ui.heading("A plain cluster with a service");
    let mut story = Story::open(ui).await?;
    story.offer().await?;
    ui.heading("It becomes a provider in kcp");
    story.connect().await?;
    ui.heading("Two teams use it");
    story.bind().await?;
    story.order().await?;
    story.cancel().await?;
    story.background.end().await;
    Ok(())
}

impl Story {
    async fn open(ui: &Ui) -> Result<Self, Failed> {
        let step = Step::new("starting a cluster and kcp", "two servers that answer on loopback");
        ui.step(step, async |_| {
            let (cluster, kcp) = (embedded::start(Mode::Kube, &[]).await?, embedded::start(Mode::Kcp, &[]).await?);
            let plain = Server::from_kubeconfig_yaml(&cluster.kubeconfig("admin", None)?)?.client();
            let admin = Server::from_kubeconfig_yaml(&kcp.kubeconfig("kcp-admin", None)?)?;
            for path in [HOME, TEAMS[0], TEAMS[1]] {
                workspaces::ensure(&admin, path).await?;
            }
            let text = format!("a plain cluster answers at {}, kcp at {}", cluster.url(), kcp.url());
            let story = Self { ui: ui.clone(), background: Background::default(), cluster, plain, kcp, admin };
            Ok(Done::new(text).with(story))
        })
        .await
    }

    fn at(&self, workspace: &str) -> Client {
        self.admin.at_path(&format!("/clusters/{workspace}"))
    }

    /// A CRD, its operator, and a backend.
    async fn offer(&mut self) -> Result<(), Failed> {
        let (plain, cluster, background) = (&self.plain, &self.cluster, &mut self.background);
        let step = Step::new("offering Widgets", "a CRD with the label that lets it be exported, and a backend");
        let offered = async |seen: &crate::ui::Observed| {
            let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("widgets.{GROUP}"), "labels": {"kube-bind.io/exported": "true"}},
                "spec": {"group": GROUP, "scope": "Namespaced", "names": names(), "versions": [{"name": "v1", "served": true,
                    "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema()}}]}});
            plain.create(&crds(), None, &crd).await?;
            init::crds(plain).await?;
            until(seen, async || Ok(plain.list(&widgets(), None, &ListOptions::default()).await?)).await?;
            background.task(operate(plain.clone()));
            let server = Server::from_kubeconfig_yaml(&cluster.kubeconfig("admin", None)?)?;
            background.backend(backend_config(cluster, server, InformerScope::Namespaced, Isolation::Prefixed));
            Ok(Done::new("the cluster has Widgets with an operator, and kube-bind-backend hands them out"))
        };
        self.ui.step(step, offered).await
    }

    /// A contract, and a konnector that turns what it hands over into an APIExport.
    async fn connect(&mut self) -> Result<(), Failed> {
        let home = self.at(HOME);
        let plain = &self.plain;
        let step = Step::new("asking for a contract", "a namespace on the cluster, with credentials for it alone");
        let (namespace, kubeconfig) = self
            .ui
            .step(step, async |seen| {
                let identity = identity::of(&home, NAMESPACE).await?;
                let (namespace, kubeconfig) = contract(seen, plain, &identity).await?;
                hand_over(seen, plain, &namespace, json!([])).await?;
                let text = format!("workspace {HOME} has contract {namespace}, which hands over Widgets");
                Ok(Done::new(text).with((namespace, kubeconfig)))
            })
            .await?;
        tracing::info!(namespace, "contract");
        let step = Step::new("starting a konnector for the workspaces of an APIExport", "an APIExport with Widgets");
        let server = self.kcp.kubeconfig("kcp-admin", Some(HOME));
        let background = &mut self.background;
        self.ui
            .step(step, async |seen| {
                home.create_kcp(&ApiExport::new(GROUP)).await?;
                background.konnector(Server::from_kubeconfig_yaml(&server?)?, Some(GROUP));
                bind_all(seen, &home, &kubeconfig, json!({})).await?;
                until(seen, async || {
                    let export: Option<ApiExport> = home.get_kcp(GROUP).await?;
                    let spec = export.map(|export| export.spec).unwrap_or_default();
                    anyhow::ensure!(!spec.resources.is_empty(), "APIExport {GROUP} offers nothing yet");
                    anyhow::ensure!(!spec.permission_claims.is_empty(), "APIExport {GROUP} claims nothing yet");
                    Ok(())
                })
                .await?;
                Ok(Done::new(format!("APIExport {GROUP} in {HOME} offers Widgets of the plain cluster")))
            })
            .await
    }

    async fn bind(&self) -> Result<(), Failed> {
        let step = Step::new("binding the APIExport", "two workspaces that serve Widgets");
        self.ui
            .step(step, async |seen| {
                let export: ApiExport = self.at(HOME).get_kcp(GROUP).await?.context("the APIExport is gone")?;
                for team in TEAMS {
                    let mut binding = ApiBinding::to_export("widgets", ExportReference::new(HOME, GROUP));
                    let claims = export.spec.permission_claims.iter();
                    binding.spec.permission_claims = claims.map(AcceptablePermissionClaim::accept).collect();
                    let client = self.at(team);
                    client.create_kcp(&binding).await?;
                    let at = (&client, &API_BINDING.into(), None, "widgets");
                    until_object(seen, at, |it| it["status"]["phase"] == "Bound").await?;
                }
                Ok(Done::new("team-a and team-b have bound it"))
            })
            .await
    }

    /// Copies on the plain cluster.
    async fn copies(&self) -> anyhow::Result<Vec<Value>> {
        Ok(self.plain.list(&widgets(), None, &ListOptions::default()).await?)
    }

    async fn order(&self) -> Result<(), Failed> {
        let step = Step::new("ordering a Widget of the same name in each", "two copies in namespaces of their own");
        self.ui
            .step(step, async |seen| {
                for (team, size) in TEAMS.iter().zip(["small", "large"]) {
                    let order = widget("mine", size);
                    until(seen, async || Ok(self.at(team).create(&widgets(), Some(NAMESPACE), &order).await?)).await?;
                }
                let copies = until(seen, async || {
                    let copies = self.copies().await?;
                    anyhow::ensure!(copies.len() == 2, "{} copies are on the plain cluster", copies.len());
                    Ok(copies)
                })
                .await?;
                let lines = copies.iter().map(|copy| {
                    let place = |field: &str| copy["metadata"][field].as_str().unwrap_or_default().to_owned();
                    format!(
                        "{}/{} ({})",
                        place("namespace"),
                        place("name"),
                        copy["spec"]["size"].as_str().unwrap_or_default()
                    )
                });
                let lines: Vec<String> = lines.collect();
                Ok(Done::new("both teams have ordered mine; the plain cluster has both, apart").details(lines))
            })
            .await?;
        let step = Step::new("waiting for the operator's answers", "a status in each workspace");
        self.ui
            .step(step, async |seen| {
                for (team, size) in TEAMS.iter().zip(["small", "large"]) {
                    let (client, wanted) = (self.at(team), format!("{size} and ready"));
                    let at = (&client, &widgets(), Some(NAMESPACE), "mine");
                    until_object(seen, at, |it| it["status"]["phase"] == wanted.as_str()).await?;
                }
                Ok(Done::new("each team reads its own status: small and ready, large and ready"))
            })
            .await
    }

    async fn cancel(&self) -> Result<(), Failed> {
        let step = Step::new("deleting team-a's", "one copy left, team-b's");
        self.ui
            .step(step, async |seen| {
                let options = carrick_client::DeleteOptions::default();
                self.at(TEAMS[0]).delete(&widgets(), Some(NAMESPACE), "mine", &options).await?;
                until(seen, async || {
                    let copies = self.copies().await?;
                    let sizes: Vec<_> = copies.iter().map(|copy| &copy["spec"]["size"]).collect();
                    anyhow::ensure!(sizes == ["large"], "the copies are {sizes:?}");
                    Ok(())
                })
                .await?;
                Ok(Done::new("team-a has deleted its Widget; its copy is gone, team-b's is not"))
            })
            .await
    }
}
