//! Related objects of other shapes: cluster-scoped, shared by several PublishedResources, out of the agent's sight; and built-in kinds.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use carrick_client::{Client, DeleteOptions, Resource};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::rights::{grant, kcp_rules, revoke, service_rules};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, place, shown};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::agent::Timing;
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::related::{credentials, encoded, secret};

pub(super) async fn cluster_scoped_objects_travel_in_both_directions(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    for kind in ["Realm", "Zone"] {
        let mut crd = fixtures::crd(&stage.group, kind);
        crd["spec"]["scope"] = json!("Cluster");
        stage.install_crd(&crd).await?;
    }
    stage.create_export().await?;
    let related = |identifier: &str, origin: &str| {
        let template = r#"{{ if eq .Side "kcp" }}{{ .Object.metadata.name }}{{ else }}{{ .ClusterName }}{{ end }}"#;
        json!({
            "identifier": identifier, "origin": origin, "cleanup": true,
            "group": stage.group, "version": "v1", "resource": identifier,
            "object": { "template": { "template": template } },
        })
    };
    // They need to be known in kcp, but have no life of their own.
    for kind in ["Realm", "Zone"] {
        stage.publish(kind, json!({ "synchronization": { "enabled": false } })).await?;
    }
    stage.publish("Bucket", json!({ "related": [related("realms", "kcp"), related("zones", "service")] })).await?;
    stage.bind(&stage.team_a).await?;
    let agent = stage.start_agent()?;

    let team = &stage.team_a;
    let realms = Resource::cluster_wide(&stage.group, "v1", "Realm", "realms");
    let zones = Resource::cluster_wide(&stage.group, "v1", "Zone", "zones");
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let namespaces = namespaces(&stage).await?;
    create(&stage, &team.client, &realms, "bucket").await?;
    create(&stage, &stage.service, &zones, &team.cluster).await?;
    let realm = (&stage.service, &realms, None, team.cluster.as_str());
    let zone = (&team.client, &zones, None, "bucket");
    stage.object("the consumer's object reaches the service", realm, |copy| copy["spec"]["size"] == 1).await?;
    stage.object("the service's object reaches the consumer", zone, |copy| copy["spec"]["size"] == 1).await?;
    let annotation = json!({ "name": "bucket", "apiVersion": zones.api_version(), "kind": "Zone" });
    stage
        .source_is("the order names it without a namespace", team, "bucket", |source| {
            let text = &source["metadata"]["annotations"]["related-resources.syncagent.kcp.io/zones.0"];
            text.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok()) == Some(annotation.clone())
        })
        .await?;
    let patch = json!({ "spec": { "size": 2 } });
    team.client.merge_patch(&realms, None, "bucket", &patch).await?;
    stage.service.merge_patch(&zones, None, &team.cluster, &patch).await?;
    stage.object("a change arrives at the service", realm, |copy| copy["spec"]["size"] == 2).await?;
    stage.object("a change arrives at the consumer", zone, |copy| copy["spec"]["size"] == 2).await?;

    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    stage.gone("the copy at the service goes", realm).await?;
    stage.gone("the copy at the consumer goes", zone).await?;
    let original = (&team.client, &realms, None, "bucket");
    stage.object("the consumer's object is free", original, |o| o["metadata"]["finalizers"].is_null()).await?;
    ensure!(stage.service.get(&zones, None, &team.cluster).await?.is_some(), "the service's object is gone");
    let now = self::namespaces(&stage).await?;
    let new: Vec<_> = now.iter().filter(|name| name.contains(&team.cluster) && !namespaces.contains(name)).collect();
    ensure!(new.is_empty(), "namespaces were made for objects without one: {new:?}");
    agent.stop().await
}

pub(super) async fn what_orders_of_two_kinds_share_goes_with_the_last_of_them(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.create_export().await?;
    let related = json!([{
        "identifier": "settings", "origin": "kcp", "kind": "ConfigMap",
        "object": { "template": { "template": "shared" } },
    }]);
    for kind in ["Bucket", "Queue"] {
        stage.install_crd(&fixtures::crd(&stage.group, kind)).await?;
        stage.publish(kind, json!({ "related": related })).await?;
    }
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let agent = stage.start_agent()?;
    let (team, config_maps) = (&stage.team_a, kinds::config_maps());
    let shared =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "shared" }, "data": { "a": "1" } });
    team.client.create(&config_maps, Some(NAMESPACE), &shared).await?;
    let queues = fixtures::kind(&stage.group, "Queue");
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.order_kind(&queues, team, "queue", json!({ "size": 1 })).await?;
    stage.copy_is("the bucket is there", team, "bucket", |_| true).await?;
    stage.copy_of_kind_is("the queue is there", (&queues, team, "queue"), |_| true).await?;
    let original = (&team.client, &config_maps, Some(NAMESPACE), "shared");
    let copy = (&stage.service, &config_maps, Some(team.cluster.as_str()), "shared");
    stage.object("the settings arrive", copy, |copy| copy["data"] == shared["data"]).await?;
    stage.at_rest().await?;

    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    stage.at_rest().await?;
    let held = |original: &Value| original["metadata"]["finalizers"] == json!([api::FINALIZER]);
    stage.object("the queue still holds the settings", original, held).await?;
    let patch = json!({ "data": { "a": "2" } });
    team.client.merge_patch(&config_maps, Some(NAMESPACE), "shared", &patch).await?;
    stage.object("a change arrives", copy, |copy| copy["data"]["a"] == "2").await?;
    team.client.delete(&queues, Some(NAMESPACE), "queue", &DeleteOptions::default()).await?;
    stage.gone("the copy goes with the queue", copy).await?;
    stage.object("the settings are free", original, |original| !held(original)).await?;
    agent.stop().await
}

pub(super) async fn every_entry_of_one_kind_follows_its_own_objects(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    let entry = |identifier: &str, watch: Value| {
        let template = format!("{{{{ .Object.metadata.name }}}}-{identifier}");
        json!({
            "identifier": identifier, "origin": "kcp", "version": "v1", "resource": "configmaps",
            "object": { "template": { "template": template } }, "watch": watch,
        })
    };
    let related = [
        entry("owned", json!({ "byOwner": {} })),
        entry("labelled", json!({ "bySelector": { "matchLabels": { "never": "there" } } })),
        entry("any", json!({ "bySelector": {} })),
    ];
    stage.publish("Bucket", json!({ "related": related })).await?;
    stage.bind(&stage.team_a).await?;
    let agent = stage.start_agent()?;
    let (team, config_maps) = (&stage.team_a, kinds::config_maps());
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, copy_name) = place(&copy);
    for identifier in ["owned", "labelled", "any"] {
        let (name, copied) = (format!("bucket-{identifier}"), format!("{copy_name}-{identifier}"));
        let map =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } });
        team.client.create(&config_maps, Some(NAMESPACE), &map).await?;
        let at = (&stage.service, &config_maps, Some(namespace), copied.as_str());
        stage.object(&format!("{name} arrives"), at, |copy| copy["data"]["a"] == "1").await?;
        let patch = json!({ "data": { "a": "2" } });
        team.client.merge_patch(&config_maps, Some(NAMESPACE), &name, &patch).await?;
        stage.object(&format!("a change of {name} arrives"), at, |copy| copy["data"]["a"] == "2").await?;
    }
    agent.stop().await
}

pub(super) async fn what_the_agent_may_not_watch_it_looks_at_now_and_then(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({ "related": [credentials()] })).await?;
    let mut rules = service_rules(&stage.group);
    for rule in rules.as_array_mut().into_iter().flatten().filter(|rule| rule["resources"] == json!(["secrets"])) {
        rule["verbs"] = json!(["get", "list", "create", "update", "delete"]);
    }
    grant(&stage, &stage.service, &rules).await?;
    grant(&stage, &stage.provider.client, &kcp_rules(stage.export_name())).await?;
    let timing = Timing { resync: Duration::from_secs(3), ..Timing::default() };
    let agent = Agent::start(&stage, Setup { user: User::Agent, timing, ..Setup::default() })?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;

    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, copy_name) = place(&copy);
    stage.at_rest().await?;
    stage.service.create(&kinds::secrets(), Some(namespace), &secret(copy_name, "first")).await?;
    let at = (&team.client, &kinds::secrets(), Some(NAMESPACE), "bucket-credentials");
    stage.object("the Secret is found", at, |secret| secret["data"]["password"] == encoded("first")).await?;
    let patch = json!({ "data": { "password": encoded("second") } });
    let name = format!("{copy_name}-credentials");
    stage.service.merge_patch(&kinds::secrets(), Some(namespace), &name, &patch).await?;
    stage.object("a change is found", at, |secret| secret["data"]["password"] == encoded("second")).await?;
    let said = |line: &String| line.contains("Cannot watch related objects") && line.contains("secrets");
    ensure!(agent.log().iter().any(said), "nobody says that watching Secrets is not allowed");
    agent.stop().await?;
    revoke(&stage, &stage.service).await
}

pub(super) async fn the_status_of_a_kind_of_kubernetes_returns(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let published = json!({
        "apiVersion": format!("{}/{}", api::GROUP, api::VERSION),
        "kind": "PublishedResource",
        "metadata": { "name": format!("room-{}", stage.id), "labels": { "stage": stage.id } },
        "spec": {
            "resource": { "apiGroup": "", "kind": "Namespace" },
            "projection": { "group": stage.group, "kind": "Room" },
            "naming": { "name": "{{ .Object.metadata.name }}-{{ .ClusterName }}" },
        },
    });
    stage.service.create(&kinds::published_resources(), None, &published).await?;
    let agent = stage.start_agent()?;
    let (team, rooms) = (&stage.team_a, Resource::cluster_wide(&stage.group, "v1", "Room", "rooms"));
    create(&stage, &team.client, &rooms, "lobby").await?;
    let at = (&team.client, &rooms, None, "lobby");
    let room = stage.object("the status returns", at, |room| room["status"]["phase"] == "Active").await?;
    let copy = stage.service.get(&kinds::namespaces(), None, &format!("lobby-{}", team.cluster)).await?;
    ensure!(copy.is_some_and(|copy| copy["status"] == room["status"]), "{}", shown(&room));
    stage.at_rest().await?;
    let still = team.client.get(&rooms, None, "lobby").await?.unwrap_or_default();
    ensure!(still["metadata"]["resourceVersion"] == room["metadata"]["resourceVersion"], "{}", shown(&still));
    agent.stop().await
}

async fn create(stage: &Stage, client: &Client, kind: &Resource, name: &str) -> anyhow::Result<()> {
    // Kinds that have no size ignore it.
    let object = json!({
        "apiVersion": kind.api_version(), "kind": &*kind.kind, "metadata": { "name": name }, "spec": { "size": 1 },
    });
    stage
        .eventually(&format!("{name} of {} can be created", kind.plural), async || {
            match client.create(kind, None, &object).await {
                Err(error) if !error.is_already_exists() => Err(error.into()),
                _ => Ok(()),
            }
        })
        .await
}

/// Names of all namespaces on the service cluster.
async fn namespaces(stage: &Stage) -> anyhow::Result<Vec<String>> {
    let all = stage.service.list(&kinds::namespaces(), None, &carrick_client::ListOptions::default()).await?;
    Ok(all.iter().filter_map(|namespace| namespace["metadata"]["name"].as_str().map(str::to_owned)).collect())
}
