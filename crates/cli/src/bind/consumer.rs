//! A workload cluster shows what its account in kcp has.
//!
//! ```text
//!  root:vendor: APIExport ──bound──▶ root:account: Widgets ◀── konnector ──▶ workload cluster: the same Widgets
//! ```

use anyhow::Context;
use carrick_bind_api::existing::EXISTING_OBJECTS_ANNOTATION;
use carrick_bind_api::kinds;
use carrick_bind_api::names::SERVICE_NAMESPACE_ANNOTATION;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::agent::{SchemaSource, init};
use carrick_client::{Client, Server};
use carrick_kcp::apis::ClaimState;
use carrick_kcp::apis::v1alpha1::{ApiBinding, ApiExport, ExportReference};
use carrick_kcp::kinds::API_BINDING;
use carrick_kubectl_bind::identity;
use carrick_plane::{Mode, Plane};
use serde_json::json;

use super::parts::{
    Background, NAMESPACE, backend_config, bind_all, contract, hand_over, namespaces, of, until_gone, until_object,
    use_widgets, widget, widgets,
};
use crate::ui::{Done, Failed, Step, Ui};
use crate::{embedded, workspaces};

const VENDOR: &str = "root:vendor";
const ACCOUNT: &str = "root:account";
/// Where the backend's APIExport is.
const BACKEND: &str = "root:kube-bind";
const BIND_EXPORT: &str = "kube-bind.io";

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
    story.run_backend().await?;
    ui.heading("A workload cluster joins the account");
    story.join().await?;
    ui.heading("Both see the same");
    story.see().await?;
    story.background.end().await;
    Ok(())
}

impl Story {
    async fn open(ui: &Ui) -> Result<Self, Failed> {
        let step = Step::new("starting kcp and a workload cluster", "two servers that answer on loopback");
        ui.step(step, async |_| {
            let (kcp, workload) = (embedded::start(Mode::Kcp, &[]).await?, embedded::start(Mode::Kube, &[]).await?);
            let admin = Server::from_kubeconfig_yaml(&kcp.kubeconfig("kcp-admin", None)?)?;
            let local = Server::from_kubeconfig_yaml(&workload.kubeconfig("admin", None)?)?.client();
            for path in [VENDOR, ACCOUNT, BACKEND] {
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

    /// The account binds somebody's API and has an object of it.
    async fn use_vendor(&self) -> Result<(), Failed> {
        let step = Step::new("binding a vendor's API", "an account with a Widget");
        self.ui
            .step(step, async |seen| {
                use_widgets(seen, VENDOR, &self.at(VENDOR), &self.at(ACCOUNT)).await?;
                Ok(Done::new(format!("account {ACCOUNT} uses a vendor's Widgets and has one, first")))
            })
            .await
    }

    /// A backend that serves every workspace that binds its APIExport.
    async fn run_backend(&mut self) -> Result<(), Failed> {
        let (home, account) = (self.at(BACKEND), self.at(ACCOUNT));
        let (kcp, background) = (&self.kcp, &mut self.background);
        let step = Step::new("letting the account be shared", "a template of what the account has bound");
        self.ui
            .step(step, async |seen| {
                init::workspace(&home).await?;
                let server = Server::from_kubeconfig_yaml(&kcp.kubeconfig("kcp-admin", Some(BACKEND))?)?;
                let mut config = backend_config(kcp, server, InformerScope::Cluster, Isolation::None);
                (config.source, config.slice) = (SchemaSource::ApiResourceSchemas, Some(BIND_EXPORT.to_owned()));
                config.ignored_bindings =
                    ["kube-bind.io", "tenancy.kcp.io", "topology.kcp.io"].map(str::to_owned).to_vec();
                background.backend(config);
                let export: ApiExport =
                    home.get_kcp(BIND_EXPORT).await?.context("the backend's APIExport is missing")?;
                let mut binding = ApiBinding::to_export("kube-bind", ExportReference::new(BACKEND, BIND_EXPORT));
                let claims = export.spec.permission_claims.into_iter();
                binding.spec.permission_claims = claims.map(|claim| claim.decided(ClaimState::Accepted)).collect();
                account.create_kcp(&binding).await?;
                let at = (&account, &API_BINDING.into(), None, "kube-bind");
                until_object(seen, at, |it| it["status"]["phase"] == "Bound").await?;
                let templates = of(kinds::API_SERVICE_EXPORT_TEMPLATE);
                until_object(seen, (&account, &templates, None, "widgets-namespaced"), |_| true).await?;
                Ok(Done::new("kube-bind-backend serves the account; its catalogue has what the account has bound"))
            })
            .await
    }

    /// A contract, a konnector on the workload cluster, and one bundle.
    async fn join(&mut self) -> Result<(), Failed> {
        let account = self.at(ACCOUNT);
        let (local, workload, background) = (&self.local, &self.workload, &mut self.background);
        let step = Step::new("joining", "Widgets on the workload cluster");
        self.ui
            .step(step, async |seen| {
                let identity = identity::of(local, "kube-system").await?;
                let (namespace, kubeconfig) = contract(seen, &account, &identity).await?;
                background.konnector(Server::from_kubeconfig_yaml(&workload.kubeconfig("admin", None)?)?, None);
                bind_all(seen, local, &kubeconfig, json!({ EXISTING_OBJECTS_ANNOTATION: "Show" })).await?;
                // A namespace that was there before is the account's own: it has to say that it shares it.
                let shared = json!({"metadata": {"annotations": {SERVICE_NAMESPACE_ANNOTATION: format!("{namespace}/{NAMESPACE}")}}});
                account.merge_patch(&namespaces(), None, NAMESPACE, &shared).await?;
                hand_over(seen, &account, &namespace, json!([{"name": NAMESPACE}])).await?;
                let bindings = of(kinds::API_SERVICE_BINDING);
                let is_ready = |it: &serde_json::Value| {
                    let mut conditions = it["status"]["conditions"].as_array().into_iter().flatten();
                    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
                };
                until_object(seen, (local, &bindings, None, "widgets"), is_ready).await?;
                Ok(Done::new(format!(
                    "the workload cluster has contract {namespace}, a konnector and one bundle: Widgets are served"
                )))
            })
            .await
    }

    async fn see(&self) -> Result<(), Failed> {
        let (local, account) = (&self.local, self.at(ACCOUNT));
        let here = |name| (local, widgets(), Some(NAMESPACE), name);
        let step = Step::new("looking for what the account had before", "first on the workload cluster");
        self.ui
            .step(step, async |seen| {
                let (client, kind, namespace, name) = here("first");
                until_object(seen, (client, &kind, namespace, name), |it| it["spec"]["size"] == "small").await?;
                let patch = json!({"spec": {"size": "large"}});
                account.merge_patch(&widgets(), Some(NAMESPACE), "first", &patch).await?;
                until_object(seen, (client, &kind, namespace, name), |it| it["spec"]["size"] == "large").await?;
                Ok(Done::new("first has appeared on the workload cluster, and follows when the account changes it"))
            })
            .await?;
        let step = Step::new("creating second on the workload cluster", "second in the account");
        self.ui
            .step(step, async |seen| {
                local.create(&widgets(), Some(NAMESPACE), &widget("second", "tiny")).await?;
                let there = (&account, &widgets(), Some(NAMESPACE), "second");
                until_object(seen, there, |it| it["spec"]["size"] == "tiny").await?;
                local.delete(&widgets(), Some(NAMESPACE), "second", &carrick_client::DeleteOptions::default()).await?;
                until_gone(seen, there).await?;
                let first = account.get(&widgets(), Some(NAMESPACE), "first").await?;
                anyhow::ensure!(first.is_some(), "first is gone");
                Ok(Done::new(
                    "second, made on the workload cluster, reached the account, and went again when it was deleted",
                ))
            })
            .await
    }
}
