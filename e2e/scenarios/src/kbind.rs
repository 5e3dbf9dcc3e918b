//! kube-bind v2 between two workspaces of kcp: the provider has an API and nothing of kube-bind.

mod mesh;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_bind_api::core::{CLUSTER_BINDING, CONNECTION, crds};
use carrick_client::{DeleteOptions, ListOptions, Resource, Server};
use carrick_e2e_stage::contract::{Contract, apply, kind};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{Stage, condition};
use carrick_e2e_stage::world::{User, World};
use carrick_konnector::agent::{self, CoreConfig, KonnectorConfig};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(super) use mesh::a_mesh_finds_every_cluster_connected_by_its_own_lease_and_what_it_pastes_binds_nothing_of_kcp;

/// Name of the Connection, of its Secret and of the ClusterBinding.
const NAME: &str = "west";
const NAMESPACE: &str = "kbind";

/// A running konnector.
struct Konnector {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Konnector {
    fn start(stage: &Stage) -> anyhow::Result<Self> {
        let kubeconfig = stage.world.kcp_kubeconfig(User::Admin, &stage.team_a.path);
        let config = KonnectorConfig {
            server: Server::from_kubeconfig_yaml(&kubeconfig)?,
            lease: None,
            server_address: None,
            export: None,
            polling: Duration::from_secs(15),
            namespace: None,
            core: CoreConfig::default(),
            budget: agent::Budget::default(),
        };
        let stop = CancellationToken::new();
        let token = stop.clone();
        let task = tokio::spawn(async move { Ok(agent::run(config, token).await?) });
        Ok(Self { stop, task })
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await?.context("the konnector ended with an error")
    }
}

/// Two workspaces: team a's with the kinds of v2, and the provider's with a CRD, which is offered by its label or by its presence alone.
async fn workspaces(stage: &Stage, is_labelled: bool) -> anyhow::Result<Contract<'_>> {
    let contract = Contract {
        world: &*stage.world,
        consumer: stage.team_a.client.clone(),
        provider: stage.provider.client.clone(),
        kubeconfig: stage.world.kcp_kubeconfig(User::Admin, &stage.provider.path),
        group: stage.group.clone(),
    };
    let mut crd = contract.crd();
    crd["metadata"]["labels"] = if is_labelled { json!({ "core.kbind.io/exported": "true" }) } else { json!({}) };
    contract.install(&contract.provider, &crd).await?;
    for crd in crds::all() {
        contract.install(&contract.consumer, &crd).await?;
    }
    Ok(contract)
}

/// One apply: Secret, Connection, ClusterBinding.
async fn bind(contract: &Contract<'_>, source: &str) -> anyhow::Result<()> {
    let api = format!("sheriffs.{}", contract.group);
    let binding = json!({ "apiVersion": CLUSTER_BINDING.api_version(), "kind": CLUSTER_BINDING.kind, "metadata": { "name": NAME },
        "spec": { "connectionRef": { "name": NAME }, "apis": [{ "name": api }] } });
    apply(&contract.consumer, &kind(CLUSTER_BINDING), &binding).await?;
    let connection = json!({ "apiVersion": CONNECTION.api_version(), "kind": CONNECTION.kind, "metadata": { "name": NAME },
        "spec": { "kubeconfigSecretRef": { "namespace": NAMESPACE, "name": NAME }, "schema": { "source": source } } });
    apply(&contract.consumer, &kind(CONNECTION), &connection).await?;
    apply(&contract.consumer, &kinds::secrets(), &contract.secret(NAMESPACE, NAME)).await?;
    let at = (&contract.consumer, &kind(CLUSTER_BINDING), None, NAME);
    contract.is("the binding is ready", at, |it| condition(it, "Ready")["status"] == "True").await?;
    let at = (&contract.consumer, &kinds::crds(), None, api.as_str());
    contract.is("the API is served", at, |it| condition(it, "Established")["status"] == "True").await?;
    Ok(())
}

/// The Lease that Platform Mesh's kbind-provider finds for a ConnectedCluster: by namespace and annotation, with a holder, renewed recently.
fn is_found_by_a_mesh(lease: &Value) -> bool {
    lease["metadata"]["annotations"]["core.kbind.io/connection"] == NAME
        && lease["metadata"]["annotations"]["core.kbind.io/consumer-cluster-uid"] == lease["spec"]["holderIdentity"]
        && lease["spec"]["holderIdentity"].is_string()
        && lease["spec"]["renewTime"].is_string()
}

pub(super) async fn a_workspace_is_a_provider_by_its_discovery_alone_and_a_mesh_finds_the_lease(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let contract = workspaces(&stage, false).await?;
    let konnector = Konnector::start(&stage)?;
    bind(&contract, "OpenAPI").await?;
    let connection = contract.consumer.get(&kind(CONNECTION), None, NAME).await?.context("no Connection")?;
    let logical = Resource::cluster_wide("core.kcp.io", "v1alpha1", "LogicalCluster", "logicalclusters");
    for (client, field) in [(&contract.provider, "remoteClusterUID"), (&contract.consumer, "localClusterUID")] {
        let cluster = client.get(&logical, None, "cluster").await?.context("no LogicalCluster")?;
        ensure!(connection["status"][field] == cluster["metadata"]["uid"], "{field}: {connection}");
    }
    let leases = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    let all = contract.provider.list(&leases, Some(NAMESPACE), &ListOptions::default()).await?;
    ensure!(all.iter().filter(|lease| is_found_by_a_mesh(lease)).count() == 1, "{all:?}");

    let sheriffs = contract.sheriffs();
    contract.order("wyatt", "law").await?;
    let copy_at = (&contract.provider, &sheriffs, None, "wyatt");
    contract.is("the copy is there", copy_at, |it| it["spec"]["intent"] == "law").await?;
    let status = json!({ "status": { "result": "peace" } });
    contract.provider.merge_patch_status(&sheriffs, None, "wyatt", &status).await?;
    let source_at = (&contract.consumer, &sheriffs, None, "wyatt");
    contract.is("the status returns", source_at, |it| it["status"]["result"] == "peace").await?;
    contract.consumer.delete(&sheriffs, None, "wyatt", &DeleteOptions::default()).await?;
    contract.gone("the copy goes", &contract.provider, &sheriffs, "wyatt").await?;
    contract.gone("the source goes", &contract.consumer, &sheriffs, "wyatt").await?;
    konnector.stop().await
}

pub(super) async fn unbinding_takes_copies_along_and_leaves_what_the_provider_had_before(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let contract = workspaces(&stage, true).await?;
    let konnector = Konnector::start(&stage)?;
    bind(&contract, "CRD").await?;
    let sheriffs = contract.sheriffs();
    let own =
        json!({ "apiVersion": format!("{}/v1", contract.group), "kind": "Sheriff", "metadata": { "name": "own" } });
    contract.provider.create(&sheriffs, None, &own).await?;
    contract.order("own", "law").await?;
    let annotation = "core.kbind.io/conflict";
    let is_refused = |it: &Value| it["metadata"]["annotations"][annotation] == "ForeignObjectExists";
    contract.is("the conflict is told", (&contract.consumer, &sheriffs, None, "own"), is_refused).await?;
    contract.order("wyatt", "law").await?;
    contract.is("the copy is there", (&contract.provider, &sheriffs, None, "wyatt"), |_| true).await?;
    contract.consumer.delete(&kind(CLUSTER_BINDING), None, NAME, &DeleteOptions::default()).await?;
    contract.gone("the binding goes", &contract.consumer, &kind(CLUSTER_BINDING), NAME).await?;
    let crd = format!("sheriffs.{}", contract.group);
    ensure!(contract.consumer.get(&kinds::crds(), None, &crd).await?.is_none(), "the API is left");
    ensure!(contract.provider.get(&sheriffs, None, "wyatt").await?.is_none(), "a copy is left");
    ensure!(contract.provider.get(&sheriffs, None, "own").await?.is_some(), "the provider's own object is gone");
    contract.consumer.delete(&kind(CONNECTION), None, NAME, &DeleteOptions::default()).await?;
    contract.gone("the Connection goes", &contract.consumer, &kind(CONNECTION), NAME).await?;
    konnector.stop().await
}

/// An entry of a binding, for objects with the label `app: law`.
fn entry(resource: &str, direction: &str) -> Value {
    json!({ "resource": resource, "direction": direction, "selector": { "labelSelector": { "matchLabels": { "app": "law" } } } })
}

pub(super) async fn related_objects_travel_either_way_and_go_with_their_binding(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let contract = workspaces(&stage, true).await?;
    let konnector = Konnector::start(&stage)?;
    bind(&contract, "CRD").await?;
    let (consumer, provider, namespace) = (&contract.consumer, &contract.provider, Some("default"));
    let entries = json!({ "spec": { "relatedResources": [entry("secrets", "FromProvider"), entry("configmaps", "FromConsumer")] } });
    consumer.merge_patch(&kind(CLUSTER_BINDING), None, NAME, &entries).await?;
    let metadata = |name: &str| json!({ "name": name, "namespace": "default", "labels": { "app": "law" } });
    let secret =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata("badge"), "data": { "number": "NDI=" } });
    apply(provider, &kinds::secrets(), &secret).await?;
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("town"), "data": { "name": "Tombstone" } });
    apply(consumer, &kinds::config_maps(), &map).await?;
    let (badge, town) =
        ((consumer, &kinds::secrets(), namespace, "badge"), (provider, &kinds::config_maps(), namespace, "town"));
    contract.is("the Secret comes", badge, |it| it["data"]["number"] == "NDI=").await?;
    contract.is("the ConfigMap goes", town, |it| it["data"]["name"] == "Tombstone").await?;
    // What changes while nobody runs is caught up with, and what is not selected any more goes.
    konnector.stop().await?;
    let data = json!({ "data": { "number": "NDM=" } });
    provider.merge_patch(&kinds::secrets(), namespace, "badge", &data).await?;
    let label = json!({ "metadata": { "labels": { "app": null } } });
    consumer.merge_patch(&kinds::config_maps(), namespace, "town", &label).await?;
    let konnector = Konnector::start(&stage)?;
    contract.is("the Secret follows", badge, |it| it["data"]["number"] == "NDM=").await?;
    let is_gone = async || {
        ensure!(provider.get(&kinds::config_maps(), namespace, "town").await?.is_none(), "it is there");
        Ok(())
    };
    contract.eventually("the copy goes with its label", is_gone).await?;
    consumer.delete(&kind(CLUSTER_BINDING), None, NAME, &DeleteOptions::default()).await?;
    contract.gone("the binding goes", consumer, &kind(CLUSTER_BINDING), NAME).await?;
    ensure!(consumer.get(&kinds::secrets(), namespace, "badge").await?.is_none(), "a related copy is left");
    ensure!(provider.get(&kinds::secrets(), namespace, "badge").await?.is_some(), "the provider's Secret is gone");
    ensure!(
        consumer.get(&kinds::config_maps(), namespace, "town").await?.is_some(),
        "the consumer's ConfigMap is gone"
    );
    konnector.stop().await
}

pub(super) async fn labels_that_vanish_from_the_provider_delete_nothing(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let contract = workspaces(&stage, true).await?;
    let konnector = Konnector::start(&stage)?;
    bind(&contract, "CRD").await?;
    let (consumer, api, sheriffs) = (&contract.consumer, format!("sheriffs.{}", contract.group), contract.sheriffs());
    let binding_at = (consumer, &kind(CLUSTER_BINDING), None, NAME);
    consumer.delete(&kind(CLUSTER_BINDING), None, NAME, &DeleteOptions::default()).await?;
    contract.gone("the binding goes", consumer, &kind(CLUSTER_BINDING), NAME).await?;
    consumer.merge_patch(&kind(CONNECTION), None, NAME, &json!({ "spec": { "autoBind": true } })).await?;
    contract.is("everything is bound", binding_at, |it| condition(it, "Ready")["status"] == "True").await?;
    contract
        .is("the API is served", (consumer, &kinds::crds(), None, api.as_str()), |it| {
            condition(it, "Established")["status"] == "True"
        })
        .await?;
    contract.order("wyatt", "law").await?;
    contract.is("the copy is there", (&contract.provider, &sheriffs, None, "wyatt"), |_| true).await?;
    let before = consumer.get(&sheriffs, None, "wyatt").await?.context("no order")?;
    let label = json!({ "metadata": { "labels": { "core.kbind.io/exported": null } } });
    contract.provider.merge_patch(&kinds::crds(), None, &api, &label).await?;
    let is_missed = |it: &Value| condition(it, "Ready")["reason"] == "APINotExported";
    contract.is("it says that nothing is offered", binding_at, is_missed).await?;
    let after = consumer.get(&sheriffs, None, "wyatt").await?.context("the order is gone")?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was made again: {after}");
    ensure!(after["metadata"]["deletionTimestamp"].is_null(), "it is being deleted: {after}");
    ensure!(contract.provider.get(&sheriffs, None, "wyatt").await?.is_some(), "the copy is gone");
    let label = json!({ "metadata": { "labels": { "core.kbind.io/exported": "true" } } });
    contract.provider.merge_patch(&kinds::crds(), None, &api, &label).await?;
    contract.is("it is offered again", binding_at, |it| condition(it, "Ready")["status"] == "True").await?;
    contract.provider.merge_patch_status(&sheriffs, None, "wyatt", &json!({ "status": { "result": "peace" } })).await?;
    contract
        .is("the status returns", (consumer, &sheriffs, None, "wyatt"), |it| it["status"]["result"] == "peace")
        .await?;
    konnector.stop().await
}
