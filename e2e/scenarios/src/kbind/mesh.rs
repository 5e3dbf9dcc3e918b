//! What Platform Mesh's kbind-provider reads in a workspace, and the bundle that its portal prints.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_bind_api::clock;
use carrick_bind_api::core::{CLUSTER_BINDING, CONNECTION};
use carrick_bind_api::jiff::{SignedDuration, Timestamp};
use carrick_client::{Client, ListOptions, Resource};
use carrick_e2e_stage::contract::{Contract, apply, kind};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{Stage, condition};
use carrick_e2e_stage::world::World;
use serde_json::{Value, json};

use super::{Konnector, NAMESPACE, workspaces};

/// How old a heartbeat may be.
const FRESH: SignedDuration = SignedDuration::from_secs(120);

/// What kbind-provider writes into condition Connected of ConnectedCluster `name`: status and reason. The first Lease of namespace kbind with its name
/// in the annotation counts, if it says who holds it and for which cluster.
fn connected(leases: &[Value], name: &str, now: Timestamp) -> (bool, &'static str) {
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let found = leases.iter().find(|lease| {
        let annotations = &lease["metadata"]["annotations"];
        annotations["core.kbind.io/connection"] == name
            && text(&annotations["core.kbind.io/consumer-cluster-uid"])
            && text(&lease["spec"]["holderIdentity"])
    });
    let Some(lease) = found else { return (false, "LeaseNotFound") };
    let renewed = lease["spec"]["renewTime"].as_str().and_then(clock::read);
    if renewed.is_some_and(|at| now.duration_since(at) <= FRESH) {
        (true, "LeaseRenewed")
    } else {
        (false, "LeaseStale")
    }
}

async fn leases(provider: &Client) -> anyhow::Result<Vec<Value>> {
    let kind = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    Ok(provider.list(&kind, Some(NAMESPACE), &ListOptions::default()).await?)
}

/// The bundle of a portal for everything that a workspace has: Secret and Connection.
async fn paste(contract: &Contract<'_>, name: &str) -> anyhow::Result<()> {
    apply(&contract.consumer, &kinds::secrets(), &contract.secret(NAMESPACE, name)).await?;
    let connection = json!({ "apiVersion": CONNECTION.api_version(), "kind": CONNECTION.kind, "metadata": { "name": name },
        "spec": { "kubeconfigSecretRef": { "namespace": NAMESPACE, "name": name, "key": "kubeconfig" },
            "schema": { "source": "OpenAPI", "pullPolicy": "Bound", "updatePolicy": "Always" }, "autoBind": true } });
    apply(&contract.consumer, &kind(CONNECTION), &connection).await?;
    let at = (&contract.consumer, &kind(CONNECTION), None, name);
    contract.is("the Connection is ready", at, |it| condition(it, "Ready")["status"] == "True").await?;
    Ok(())
}

pub(crate) async fn a_mesh_finds_every_cluster_connected_by_its_own_lease_and_what_it_pastes_binds_nothing_of_kcp(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let contract = workspaces(&stage, false).await?;
    let konnector = Konnector::start(&stage)?;
    ensure!(connected(&leases(&contract.provider).await?, "mine", Timestamp::now()) == (false, "LeaseNotFound"));
    // Two ConnectedClusters of one workspace, from one cluster: each has to be found by its name.
    for name in ["mine", "other"] {
        paste(&contract, name).await?;
    }
    let now = Timestamp::now();
    let all = leases(&contract.provider).await?;
    for name in ["mine", "other"] {
        ensure!(connected(&all, name, now) == (true, "LeaseRenewed"), "{name}: {all:?}");
        ensure!(connected(&all, name, now + FRESH * 2) == (false, "LeaseStale"), "{name}: {all:?}");
    }
    ensure!(connected(&all, "yours", now) == (false, "LeaseNotFound"));
    let api = format!("sheriffs.{}", contract.group);
    let at = (&contract.consumer, &kind(CLUSTER_BINDING), None, "mine");
    contract.is("what the workspace has is bound", at, |it| condition(it, "Ready")["status"] == "True").await?;
    let binding = contract.consumer.get(&kind(CLUSTER_BINDING), None, "mine").await?.context("no ClusterBinding")?;
    ensure!(binding["spec"]["apis"] == json!([{ "name": api }]), "{}", binding["spec"]);
    konnector.stop().await
}
