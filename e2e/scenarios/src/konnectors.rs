//! A konnector between two workspaces of kcp, which are clusters like any other to it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_bind_api::kinds::{API_SERVICE_BINDING, API_SERVICE_EXPORT, CLUSTER_BINDING};
use carrick_client::{DeleteOptions, Server};
use carrick_e2e_stage::contract::{CONTRACT, Contract, EXPORT, kind, with_contract};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{Stage, condition};
use carrick_e2e_stage::world::{User, World};
use carrick_konnector::agent::{self, KonnectorConfig};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const FINALIZER: &str = "kubebind.io/syncer";

/// A running konnector.
struct Konnector {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Konnector {
    fn start(stage: &Stage) -> anyhow::Result<Self> {
        let kubeconfig = stage.world.kcp_kubeconfig(User::Admin, &stage.team_a.path);
        let server = Server::from_kubeconfig_yaml(&kubeconfig)?;
        let config = KonnectorConfig {
            server,
            lease: None,
            server_address: None,
            export: None,
            polling: Duration::from_secs(15),
            namespace: None,
            core: agent::CoreConfig::default(),
            budget: agent::Budget::default(),
        };
        let stop = CancellationToken::new();
        let told = stop.clone();
        let task = tokio::spawn(async move { Ok(agent::run(config, told).await?) });
        Ok(Self { stop, task })
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.task.await?.context("the konnector ended with an error")
    }
}

/// A contract in which team a consumes what the provider's workspace offers.
async fn contract(stage: &Stage) -> anyhow::Result<Contract<'_>> {
    let contract = Contract {
        world: &*stage.world,
        consumer: stage.team_a.client.clone(),
        provider: stage.provider.client.clone(),
        kubeconfig: with_contract(&stage.world.kcp_kubeconfig(User::Admin, &stage.provider.path))?,
        group: stage.group.clone(),
    };
    contract.offer().await?;
    Ok(contract)
}

fn holds(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|it| it == FINALIZER))
}

pub(super) async fn an_api_is_bound_and_its_objects_travel_both_ways(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let contract = contract(&stage).await?;
    let konnector = Konnector::start(&stage)?;
    contract.bind().await?;
    let told = (&contract.provider, &kind(API_SERVICE_EXPORT), Some(CONTRACT), EXPORT);
    contract.is("the provider is told", told, |it| condition(it, "ConsumerInSync")["status"] == "True").await?;
    let beats = (&contract.provider, &kind(CLUSTER_BINDING), Some(CONTRACT), "cluster");
    contract.is("it beats", beats, |it| it["status"]["lastHeartbeatTime"].is_string()).await?;

    let sheriffs = contract.sheriffs();
    contract.order("wyatt", "law").await?;
    let copy_name = Contract::copy_name("wyatt");
    let copy_at = (&contract.provider, &sheriffs, None, copy_name.as_str());
    let copy = contract.is("the copy is there", copy_at, |it| it["spec"]["intent"] == "law").await?;
    ensure!(copy["metadata"]["annotations"]["kube-bind.io/cluster-namespace"] == CONTRACT, "{copy}");
    let source_at = (&contract.consumer, &sheriffs, None, "wyatt");
    contract.is("the source is held", source_at, holds).await?;

    let change = json!({ "spec": { "intent": "order" } });
    contract.consumer.merge_patch(&sheriffs, None, "wyatt", &change).await?;
    contract.is("the change arrives", copy_at, |it| it["spec"]["intent"] == "order").await?;
    let status = json!({ "status": { "result": "peace" } });
    contract.provider.merge_patch_status(&sheriffs, None, &copy_name, &status).await?;
    contract.is("the status returns", source_at, |it| it["status"]["result"] == "peace").await?;

    contract.consumer.delete(&sheriffs, None, "wyatt", &DeleteOptions::default()).await?;
    contract.gone("the copy goes", &contract.provider, &sheriffs, &copy_name).await?;
    contract.gone("the source goes", &contract.consumer, &sheriffs, "wyatt").await?;
    konnector.stop().await
}

pub(super) async fn unbinding_takes_copies_away_before_the_api_goes(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let contract = contract(&stage).await?;
    let konnector = Konnector::start(&stage)?;
    contract.bind().await?;
    let sheriffs = contract.sheriffs();
    // One that the provider has made itself stays.
    let own =
        json!({ "apiVersion": format!("{}/v1", contract.group), "kind": "Sheriff", "metadata": { "name": "own" } });
    contract.provider.create(&sheriffs, None, &own).await?;
    for name in ["wyatt", "pat"] {
        contract.order(name, "law").await?;
        let copy = Contract::copy_name(name);
        contract.is("the copy is there", (&contract.provider, &sheriffs, None, &copy), |_| true).await?;
    }
    contract.consumer.delete(&kind(API_SERVICE_BINDING), None, EXPORT, &DeleteOptions::default()).await?;
    let crd = format!("sheriffs.{}", contract.group);
    contract.gone("the binding goes", &contract.consumer, &kind(API_SERVICE_BINDING), EXPORT).await?;
    contract.gone("the API goes", &contract.consumer, &kinds::crds(), &crd).await?;
    for name in ["wyatt", "pat"] {
        let left = contract.provider.get(&sheriffs, None, &Contract::copy_name(name)).await?;
        ensure!(left.is_none(), "a copy is left: {left:?}");
    }
    ensure!(contract.provider.get(&sheriffs, None, "own").await?.is_some(), "the provider's own object is gone");
    konnector.stop().await
}

pub(super) async fn what_happens_while_a_konnector_is_down_is_caught_up_with(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let contract = contract(&stage).await?;
    let konnector = Konnector::start(&stage)?;
    contract.bind().await?;
    let sheriffs = contract.sheriffs();
    let copy_at = |name: &str| Contract::copy_name(name);
    for name in ["changed", "cancelled", "lost"] {
        contract.order(name, "law").await?;
        contract.is("the copy is there", (&contract.provider, &sheriffs, None, &copy_at(name)), |_| true).await?;
        contract
            .is("the source knows its copy", (&contract.consumer, &sheriffs, None, name), |it| {
                it["metadata"]["annotations"]["kube-bind.io/provider-uid"].is_string()
            })
            .await?;
    }
    konnector.stop().await?;
    let change = json!({ "spec": { "intent": "order" } });
    contract.consumer.merge_patch(&sheriffs, None, "changed", &change).await?;
    contract.consumer.delete(&sheriffs, None, "cancelled", &DeleteOptions::default()).await?;
    contract.provider.delete(&sheriffs, None, &copy_at("lost"), &DeleteOptions::default()).await?;
    contract.order("new", "law").await?;

    let konnector = Konnector::start(&stage)?;
    let is = async |what: &str, name: &str, intent: &str| {
        let at = copy_at(name);
        contract.is(what, (&contract.provider, &sheriffs, None, &at), |it| it["spec"]["intent"] == intent).await
    };
    is("the change arrives", "changed", "order").await?;
    is("the new one is placed", "new", "law").await?;
    is("the lost copy is back", "lost", "law").await?;
    contract.gone("the cancelled one goes", &contract.consumer, &sheriffs, "cancelled").await?;
    ensure!(contract.provider.get(&sheriffs, None, &copy_at("cancelled")).await?.is_none(), "its copy is left");
    konnector.stop().await
}
