//! kube-bind's provider side in kcp: a backend that serves workspaces, an account whose objects show elsewhere, and a plain cluster that offers its service.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_bind_api::kinds::{
    API_SERVICE_BINDING, API_SERVICE_EXPORT, API_SERVICE_EXPORT_REQUEST, API_SERVICE_EXPORT_TEMPLATE,
    BINDABLE_RESOURCES_REQUEST, GROUP,
};
use carrick_bind_api::response::BindingResponse;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::agent::{BackendConfig, SchemaSource, init};
use carrick_bind_backend::backend;
use carrick_bind_backend::decide::terms::{Address, Logins, Terms};
use carrick_client::{Client, DeleteOptions, ListOptions, Resource, Server};
use carrick_e2e_stage::contract::{Contract, EXPORT, KONNECTOR, apply, kind, with_contract};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{Stage, Workspace, condition};
use carrick_e2e_stage::world::{AGENT, User, World};
use carrick_kcp::apis::ClaimState;
use carrick_kcp::apis::v1alpha1::{ApiBinding, ApiExport, ExportReference};
use carrick_kcp::kinds::{API_BINDING, API_EXPORT_V2, API_RESOURCE_SCHEMA};
use carrick_konnector::agent::{self, KonnectorConfig};
use data_encoding::BASE64;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const RBAC: &str = "rbac.authorization.k8s.io";
/// The consumer's name for itself.
const IDENTITY: &str = "the same consumer";

/// A running backend or konnector, which ends with the scenario.
pub(super) struct Running {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    /// A backend.
    pub(super) fn backend(config: BackendConfig) -> Self {
        let stop = CancellationToken::new();
        let told = stop.clone();
        Self { stop, task: tokio::spawn(async move { Ok(backend::run(config, None, told).await?) }) }
    }

    /// A konnector.
    pub(super) fn konnector(kubeconfig: &str, export: Option<String>) -> anyhow::Result<Self> {
        let config = KonnectorConfig {
            server: Server::from_kubeconfig_yaml(kubeconfig)?,
            lease: None,
            server_address: None,
            export,
            polling: Duration::from_secs(15),
            namespace: None,
            core: agent::CoreConfig::default(),
            budget: agent::Budget::default(),
        };
        let stop = CancellationToken::new();
        let told = stop.clone();
        Ok(Self { stop, task: tokio::spawn(async move { Ok(agent::run(config, told).await?) }) })
    }

    /// Ends it, and says how it went.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await?.context("it ended with an error")
    }
}

/// Where kcp is, and who has signed its certificate.
pub(super) fn address(world: &dyn World, workspace: &str) -> anyhow::Result<Address> {
    let config: Value = serde_json::from_str(&world.kcp_kubeconfig(User::Admin, workspace))?;
    let cluster = &config["clusters"][0]["cluster"];
    let authority = cluster["certificate-authority-data"].as_str().context("no authority")?;
    Ok(Address {
        server: cluster["server"].as_str().context("no server")?.to_owned(),
        authority: Some(String::from_utf8(BASE64.decode(authority.as_bytes())?)?),
        authority_given: true,
        server_name: None,
    })
}

/// A backend in a workspace of its own, set up by somebody who owns that workspace and nothing else.
async fn start_backend(stage: &Stage, home: &Workspace, source: SchemaSource) -> anyhow::Result<Running> {
    for (name, role) in [("owner", "cluster-admin"), ("owner-access", "system:kcp:workspace:access")] {
        let object = json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": name },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": role },
            "subjects": [{ "apiGroup": RBAC, "kind": "User", "name": AGENT }] });
        home.client.create(&kinds::cluster_role_bindings(), None, &object).await?;
    }
    let owner = Server::from_kubeconfig_yaml(&stage.world.kcp_kubeconfig(User::Agent, &home.path))?.client();
    // kcp takes note of rights a moment after they were granted.
    let written = stage.eventually("the owner may set up", async || Ok(init::workspace(&owner).await?)).await?;
    ensure!(!written.is_empty(), "nothing was written");
    let again = init::workspace(&owner).await?;
    ensure!(again.is_empty(), "once is enough: {again:?}");
    let own = address(&*stage.world, &home.path)?;
    let kubeconfig = init::account(&owner, &own, KONNECTOR).await?.context("no token came")?;
    let mut front = own;
    let end = front.server.find("/clusters/").context("no workspace in the address")?;
    front.server.truncate(end);
    let terms = Terms {
        namespace_prefix: "kube-bind-".to_owned(),
        pretty_name: "Account".to_owned(),
        informer_scope: InformerScope::Cluster,
        isolation: Isolation::None,
        address: front,
        cluster_wide_claims: false,
        shared_namespaces: false,
        logins: Logins::default(),
        workspace: None,
        most_namespaces: carrick_bind_backend::decide::terms::MOST_NAMESPACES,
    };
    let config = BackendConfig {
        // As the account that was made for it, not as the owner.
        server: Server::from_kubeconfig_yaml(&kubeconfig)?,
        terms,
        source,
        slice: Some(GROUP.to_owned()),
        ignored_bindings: [GROUP, "tenancy.kcp.io", "topology.kcp.io"].map(str::to_owned).to_vec(),
        lease: None,
        listen_address: None,
        namespace: KONNECTOR.to_owned(),
    };
    Ok(Running::backend(config))
}

/// Binds an export with all its claims.
async fn bind_export(stage: &Stage, home: &Workspace, name: &str, team: &Workspace) -> anyhow::Result<()> {
    let export: ApiExport = home.client.get_kcp(name).await?.context("no export")?;
    let mut binding = ApiBinding::to_export(name, ExportReference::new(&home.path, name));
    let claims = export.spec.permission_claims.into_iter();
    binding.spec.permission_claims = claims.map(|claim| claim.decided(ClaimState::Accepted)).collect();
    stage
        .eventually(&format!("{name} can be bound"), async || match team.client.create_kcp(&binding).await {
            Err(error) if !error.is_already_exists() => Err(error.into()),
            _ => Ok(()),
        })
        .await?;
    let at = (&team.client, &kinds::kcp(&API_BINDING), None, name);
    let bound =
        |it: &Value| it["status"]["phase"] == "Bound" && condition(it, "PermissionClaimsApplied")["status"] == "True";
    stage.object(&format!("{name} is bound"), at, bound).await?;
    Ok(())
}

/// Asks for a contract in a workspace: its namespace and kubeconfig.
async fn contract(stage: &Stage, team: &Workspace) -> anyhow::Result<(String, String)> {
    let request = json!({ "apiVersion": BINDABLE_RESOURCES_REQUEST.api_version(), "kind": BINDABLE_RESOURCES_REQUEST.kind,
        "metadata": { "name": "r", "namespace": "default" },
        "spec": { "clusterIdentity": { "identity": IDENTITY }, "author": "jane" } });
    let requests = kind(BINDABLE_RESOURCES_REQUEST);
    stage
        .eventually("requests are served", async || {
            Ok(team.client.create(&requests, Some("default"), &request).await?)
        })
        .await?;
    let at = (&team.client, &requests, Some("default"), "r");
    let done = stage.object("the request succeeds", at, |it| it["status"]["phase"] == "Succeeded").await?;
    let secret =
        team.client.get(&kinds::secrets(), Some("default"), "r-binding-response").await?.context("no answer")?;
    let text = BASE64.decode(secret["data"]["binding-response"].as_str().unwrap_or_default().as_bytes())?;
    let answer = BindingResponse::parse(std::str::from_utf8(&text)?)?;
    let namespace = done["status"]["namespace"].as_str().context("no namespace")?;
    Ok((namespace.to_owned(), answer.kubeconfig_text()?))
}

/// A consumer asks for an export, as itself, and gets it.
async fn ask(stage: &Stage, consumer: &Client, namespace: &str, resources: &Value) -> anyhow::Result<()> {
    let request = json!({ "apiVersion": API_SERVICE_EXPORT_REQUEST.api_version(), "kind": API_SERVICE_EXPORT_REQUEST.kind,
        "metadata": { "name": EXPORT }, "spec": { "resources": resources } });
    let requests = kind(API_SERVICE_EXPORT_REQUEST);
    stage
        .eventually("the consumer may ask", async || Ok(consumer.create(&requests, Some(namespace), &request).await?))
        .await?;
    let at = (consumer, &requests, Some(namespace), EXPORT);
    stage.object("the export is granted", at, |it| it["status"]["phase"] == "Succeeded").await?;
    Ok(())
}

pub(super) async fn workspaces_that_bind_the_export_of_a_backend_are_served_each_on_its_own(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let running = start_backend(&stage, &stage.provider, SchemaSource::Crds).await?;
    let mut parties = Vec::new();
    for team in [&stage.team_a, &stage.team_b] {
        bind_export(&stage, &stage.provider, GROUP, team).await?;
        let crd = Contract {
            world: &*stage.world,
            consumer: team.client.clone(),
            provider: team.client.clone(),
            kubeconfig: String::new(),
            group: stage.group.clone(),
        }
        .crd();
        team.client.create(&kinds::crds(), None, &crd).await?;
        let (namespace, kubeconfig) = contract(&stage, team).await?;
        ensure!(kubeconfig.contains(&format!("/clusters/{}\"", team.cluster)), "the address of {}", team.cluster);
        let consumer = Server::from_kubeconfig_yaml(&kubeconfig)?.client();
        let resources = json!([{ "group": stage.group, "resource": "sheriffs", "versions": ["v1"] }]);
        ask(&stage, &consumer, &namespace, &resources).await?;
        parties.push((namespace, consumer));
    }
    // The same identity has the same namespace in both, and one consumer's credentials are worth nothing in the other workspace.
    ensure!(parties[0].0 == parties[1].0, "{} and {}", parties[0].0, parties[1].0);
    let url = parties[1].1.url().to_owned();
    let stranger = parties[0].1.at_url(&url)?;
    let refused = stranger.get(&kind(API_SERVICE_EXPORT), Some(&parties[1].0), EXPORT).await;
    let status = refused.as_ref().err().and_then(carrick_client::Error::status).map(|status| status.code);
    ensure!(matches!(status, Some(401 | 403)), "{refused:?}");
    // One unbinds, and is not held up by what it has exported.
    let bindings = kinds::kcp(&API_BINDING);
    stage.team_a.client.delete(&bindings, None, GROUP, &DeleteOptions::default()).await?;
    stage.gone("the binding goes", (&stage.team_a.client, &bindings, None, GROUP)).await?;
    let left = parties[1].1.get(&kind(API_SERVICE_EXPORT), Some(&parties[1].0), EXPORT).await?;
    ensure!(left.is_some(), "the other one has lost its export");
    running.stop().await
}

pub(super) async fn what_an_account_has_already_shows_on_its_workload_cluster(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let (vendor, account, workload) = (&stage.provider, &stage.team_a, &stage.team_b);
    // Somebody offers an API, which the account has bound and uses.
    let schema = json!({ "apiVersion": API_RESOURCE_SCHEMA.api_version(), "kind": API_RESOURCE_SCHEMA.kind,
        "metadata": { "name": format!("v1.sheriffs.{}", stage.group) },
        "spec": { "group": stage.group, "scope": "Cluster",
            "names": { "plural": "sheriffs", "singular": "sheriff", "kind": "Sheriff", "listKind": "SheriffList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": { "intent": { "type": "string" } } },
                    "status": { "type": "object", "properties": { "result": { "type": "string" } } } } } }] } });
    vendor.client.create(&kinds::kcp(&API_RESOURCE_SCHEMA), None, &schema).await?;
    let mut export = ApiExport::new(stage.export_name());
    export.spec.latest_resource_schemas = vec![format!("v1.sheriffs.{}", stage.group)];
    vendor.client.create_kcp(&export).await?;
    stage.bind(account).await?;
    let sheriffs = Resource::cluster_wide(&stage.group, "v1", "Sheriff", "sheriffs");
    let order = json!({ "apiVersion": format!("{}/v1", stage.group), "kind": "Sheriff", "metadata": { "name": "wyatt" },
        "spec": { "intent": "peace" } });
    stage
        .eventually("the account has an object", async || Ok(account.client.create(&sheriffs, None, &order).await?))
        .await?;

    // Its backend offers what it has.
    let home = stage.team("backend").await?;
    let running = start_backend(&stage, &home, SchemaSource::ApiResourceSchemas).await?;
    bind_export(&stage, &home, GROUP, account).await?;
    let name = format!("{}-cluster", stage.export_name());
    let at = (&account.client, &kind(API_SERVICE_EXPORT_TEMPLATE), None, name.as_str());
    let template = stage.object("what is bound is in the catalogue", at, |_| true).await?;
    let (namespace, kubeconfig) = contract(&stage, account).await?;
    let consumer = Server::from_kubeconfig_yaml(&kubeconfig)?.client();
    ask(&stage, &consumer, &namespace, &template["spec"]["resources"]).await?;

    // The workload cluster wants to see it.
    let konnector = Running::konnector(&stage.world.kcp_kubeconfig(User::Admin, &workload.path), None)?;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "account", "namespace": KONNECTOR },
        "data": { "kubeconfig": BASE64.encode(kubeconfig.as_bytes()) } });
    apply(&workload.client, &kinds::secrets(), &secret).await?;
    let binding = json!({ "apiVersion": API_SERVICE_BINDING.api_version(), "kind": API_SERVICE_BINDING.kind,
        "metadata": { "name": EXPORT, "annotations": { "kube-bind.io/existing-objects": "Show" } },
        "spec": { "kubeconfigSecretRef": { "namespace": KONNECTOR, "name": "account", "key": "kubeconfig" } } });
    stage
        .eventually("bindings are served", async || apply(&workload.client, &kind(API_SERVICE_BINDING), &binding).await)
        .await?;
    let shown = (&workload.client, &sheriffs, None, "wyatt");
    stage.object("the object shows", shown, |it| it["spec"]["intent"] == "peace").await?;
    let change = json!({ "spec": { "intent": "order" } });
    account.client.merge_patch(&sheriffs, None, "wyatt", &change).await?;
    stage.object("the account changes it", shown, |it| it["spec"]["intent"] == "order").await?;
    account.client.delete(&sheriffs, None, "wyatt", &DeleteOptions::default()).await?;
    stage.gone("it goes with the account's", shown).await?;
    konnector.stop().await?;
    running.stop().await
}

pub(super) async fn a_plain_cluster_offers_its_service_to_workspaces(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.create_export().await?;
    let contract = Contract {
        world: &*stage.world,
        consumer: stage.provider.client.clone(),
        provider: stage.service.clone(),
        kubeconfig: with_contract(&stage.world.service_kubeconfig(User::Admin))?,
        group: stage.group.clone(),
    };
    contract.offer().await?;
    let kubeconfig = stage.world.kcp_kubeconfig(User::Admin, &stage.provider.path);
    let konnector = Running::konnector(&kubeconfig, Some(stage.export_name().to_owned()))?;
    contract.bind().await?;
    let at = (&stage.provider.client, &kinds::kcp(&API_EXPORT_V2), None, stage.export_name());
    stage
        .object("the export offers it", at, |it| it["spec"]["resources"].as_array().is_some_and(|all| all.len() == 1))
        .await?;
    let sheriffs = contract.sheriffs();
    for (team, intent) in [(&stage.team_a, "law"), (&stage.team_b, "order")] {
        stage.bind(team).await?;
        let object = json!({ "apiVersion": format!("{}/v1", stage.group), "kind": "Sheriff",
            "metadata": { "name": "wyatt" }, "spec": { "intent": intent } });
        stage.eventually("it can be ordered", async || Ok(team.client.create(&sheriffs, None, &object).await?)).await?;
    }
    // Equal names stay apart.
    let copies = async || -> anyhow::Result<Vec<Value>> {
        Ok(stage.service.list(&sheriffs, None, &ListOptions::default()).await?)
    };
    for (team, intent) in [(&stage.team_a, "law"), (&stage.team_b, "order")] {
        let copy = stage
            .eventually("the copy is there", async || {
                let of_team = copies().await?.into_iter().find(|it| it["spec"]["intent"] == intent);
                of_team.context("there is none")
            })
            .await?;
        let name = copy["metadata"]["name"].as_str().context("no name")?;
        let status = json!({ "status": { "result": intent } });
        stage.service.merge_patch_status(&sheriffs, None, name, &status).await?;
        let at = (&team.client, &sheriffs, None, "wyatt");
        stage.object("its status returns", at, |it| it["status"]["result"] == intent).await?;
    }
    for team in [&stage.team_a, &stage.team_b] {
        team.client.delete(&sheriffs, None, "wyatt", &DeleteOptions::default()).await?;
        stage.gone("the order goes", (&team.client, &sheriffs, None, "wyatt")).await?;
    }
    ensure!(copies().await?.is_empty(), "a copy is left");
    konnector.stop().await
}
