//! Copies of related objects that are found by their marks, and what may not be reached any more.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_client::DeleteOptions;
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::rights::{are_known, grant, kcp_rules, revoke, rule, service_rules};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, place, shown};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::API_BINDING_V2;
use carrick_syncagent::agent::Timing;
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::related::encoded;

/// Secrets of the service that carry the name of the order as a label, and whose copies go with them.
fn matching() -> Value {
    json!({
        "identifier": "matching", "origin": "service", "kind": "Secret", "cleanupPolicy": "MatchOrigin",
        "object": { "selector": {
            "matchLabels": { "for": "{{ .RemoteObject.metadata.name }}" },
            "rewrite": { "template": { "template": "{{ .Value }}" } },
        } },
        "watch": { "bySelector": {} },
    })
}

/// A ConfigMap of the consumer that the order names.
fn named() -> Value {
    json!({
        "identifier": "named", "origin": "kcp", "kind": "ConfigMap", "cleanupPolicy": "OnPrimaryDeletion",
        "object": { "reference": { "path": "spec.owner" } },
    })
}

async fn set(world: Arc<dyn World>, related: Value) -> anyhow::Result<Stage> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({ "related": related })).await?;
    Ok(stage)
}

fn secret_for(order: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "labels": { "for": order } },
        "data": { "name": encoded(name) },
    })
}

fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" } })
}

pub(super) async fn what_is_absent_for_a_moment_keeps_its_copy(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world, json!([matching()])).await?;
    stage.bind(&stage.team_a).await?;
    // A moment is longer on a slow machine.
    let timing = Timing { grace: Duration::from_secs(12), ..Timing::default() };
    let agent = Agent::start(&stage, Setup { timing, ..Setup::default() })?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let namespace = place(&copy).0;
    let at = |name| (&team.client, &secrets, Some(NAMESPACE), name);
    stage.service.create(&secrets, Some(namespace), &secret_for("bucket", "first")).await?;
    let before = stage.object("the Secret reaches the consumer", at("first"), |_| true).await?;

    // The second one travels when it is known that the first one is gone.
    stage.service.delete(&secrets, Some(namespace), "first", &DeleteOptions::default()).await?;
    stage.service.create(&secrets, Some(namespace), &secret_for("bucket", "second")).await?;
    stage.object("another Secret reaches the consumer", at("second"), |_| true).await?;
    stage.service.create(&secrets, Some(namespace), &secret_for("bucket", "first")).await?;

    // What is gone for good is taken back in the end.
    stage.service.delete(&secrets, Some(namespace), "second", &DeleteOptions::default()).await?;
    stage.gone("the copy of the other one goes", at("second")).await?;
    let after = stage.object("that of the first one stays", at("first"), |_| true).await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew: {}", shown(&after));
    let prefix = "related-resources.syncagent.kcp.io/matching.";
    stage
        .source_is("the order names what is there", team, "bucket", |source| {
            let annotations = &source["metadata"]["annotations"];
            let named = |index: usize| annotations[format!("{prefix}{index}")].as_str();
            named(0).is_some_and(|text| text.contains("first")) && named(1).is_none()
        })
        .await?;
    agent.stop().await
}

pub(super) async fn marked_copies_of_which_nothing_is_remembered_are_taken_back(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = set(world, json!([matching()])).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let agent = stage.start_agent()?;
    let (team, secrets) = (&stage.team_a, kinds::secrets());
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let namespace = place(&copy).0;
    let at = |name| (&team.client, &secrets, Some(NAMESPACE), name);
    for name in ["first", "second", "third"] {
        stage.service.create(&secrets, Some(namespace), &secret_for("bucket", name)).await?;
    }
    let mut found = Vec::new();
    for name in ["first", "second", "third"] {
        found.push(stage.object("the Secret reaches the consumer", at(name), |_| true).await?);
    }
    let labels = &found[0]["metadata"]["labels"];
    let keys = [api::RELATED_OWNER, api::RELATED_IDENTIFIER, api::AGENT_NAME];
    ensure!(keys.iter().all(|key| labels[*key].is_string()), "no marks: {}", shown(&found[0]));
    stage.at_rest().await?;
    agent.stop().await?;

    // Somebody loses the memory, and the service loses a Secret. What others have made is not theirs to lose.
    let memory = stage.remembered_of(team, "bucket").await?.context("nothing is remembered")?;
    let everything = DeleteOptions::default();
    stage.service.delete(&secrets, Some(&stage.agent_namespace()), place(&memory).1, &everything).await?;
    stage.service.delete(&secrets, Some(namespace), "first", &everything).await?;
    for (name, key, value) in [
        ("unmarked", "app", "other"),
        ("other-agent", api::AGENT_NAME, "other"),
        ("other-order", api::RELATED_OWNER, "other"),
        ("other-entry", api::RELATED_IDENTIFIER, "other"),
        ("from-manifest", "app", "other"),
    ] {
        let mut object = secret_for("nobody", name);
        if name != "unmarked" {
            object["metadata"]["labels"] = keys.iter().map(|key| ((*key).to_owned(), labels[*key].clone())).collect();
        }
        object["metadata"]["labels"][key] = value.into();
        team.client.create(&secrets, Some(NAMESPACE), &object).await?;
    }
    let agent = stage.start_agent()?;
    stage.gone("the copy of what is gone goes", at("first")).await?;
    let second = stage.object("the others stay", at("second"), |_| true).await?;
    ensure!(second["metadata"]["uid"] == found[1]["metadata"]["uid"], "it was made anew: {}", shown(&second));

    // The same once more, when the order goes: nobody has seen that the original is gone.
    stage.at_rest().await?;
    agent.stop().await?;
    let memory = stage.remembered_of(team, "bucket").await?.context("nothing is remembered")?;
    stage.service.delete(&secrets, Some(&stage.agent_namespace()), place(&memory).1, &everything).await?;
    stage.service.delete(&secrets, Some(namespace), "second", &everything).await?;
    stage.cancel(team, "bucket").await?;
    let agent = stage.start_agent()?;
    stage.gone("the order is gone", (&team.client, &stage.buckets(), Some(NAMESPACE), "bucket")).await?;
    for name in ["second", "third"] {
        ensure!(team.client.get(&secrets, Some(NAMESPACE), name).await?.is_none(), "{name} is left");
    }
    for name in ["unmarked", "other-agent", "other-order", "other-entry", "from-manifest"] {
        ensure!(team.client.get(&secrets, Some(NAMESPACE), name).await?.is_some(), "{name} was deleted");
    }
    let third = (&stage.service, &secrets, Some(namespace), "third");
    stage.object("the original stays", third, |_| true).await?;
    agent.stop().await
}

pub(super) async fn what_another_agent_held_and_made_is_let_go_and_taken_back(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let mut related = named();
    related["cleanupPolicy"] = json!("MatchOrigin");
    let stage = set(world, json!([related])).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    let agent = stage.start_agent()?;
    let (team, secrets, config_maps) = (&stage.team_a, kinds::secrets(), kinds::config_maps());
    for name in ["one", "two"] {
        team.client.create(&config_maps, Some(NAMESPACE), &config_map(name)).await?;
    }
    stage.order(team, "bucket", json!({ "owner": "one" })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let namespace = place(&copy).0;
    let at = (&team.client, &config_maps, Some(NAMESPACE), "one");
    let copied = |name| (&stage.service, &config_maps, Some(namespace), name);
    stage.object("the ConfigMap arrives", copied("one"), |_| true).await?;
    stage.object("it is held", at, |map| map["metadata"]["finalizers"] == json!([api::FINALIZER])).await?;
    stage.at_rest().await?;
    agent.stop().await?;

    // The reference agent keeps no records, and would have let the order name something else without a word.
    let memory = stage.remembered_of(team, "bucket").await?.context("nothing is remembered")?;
    let keys = memory["data"].as_object().into_iter().flatten().map(|(key, _)| key);
    let records: Value = keys.filter(|key| key.contains(".at")).map(|key| (key.clone(), Value::Null)).collect();
    ensure!(records.as_object().is_some_and(|records| records.len() == 1), "{records}");
    let patch = json!({ "data": records });
    stage.service.merge_patch(&secrets, Some(&stage.agent_namespace()), place(&memory).1, &patch).await?;
    stage.reorder(team, "bucket", json!({ "owner": "two" })).await?;
    let agent = stage.start_agent()?;
    stage.object("the other one arrives", copied("two"), |_| true).await?;
    stage.gone("the copy of the first one goes", copied("one")).await?;
    stage.object("the first one is free", at, |map| map["metadata"]["finalizers"].is_null()).await?;
    agent.stop().await
}

/// Lets a team accept no claims but that for events.
async fn accept_only_events(stage: &Stage, team: &Workspace) -> anyhow::Result<()> {
    let claim = json!({
        "group": "", "resource": "events", "verbs": ["*"], "selector": { "matchAll": true }, "state": "Accepted",
    });
    let patch = json!({ "spec": { "permissionClaims": [claim] } });
    team.client.merge_patch(&kinds::kcp(&API_BINDING_V2), None, stage.export_name(), &patch).await?;
    Ok(())
}

pub(super) async fn an_order_ends_although_its_claims_are_not_accepted(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = set(world, json!([matching(), named()])).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    accept_only_events(&stage, &stage.team_b).await?;
    let agent = stage.start_agent()?;
    let (secrets, config_maps) = (kinds::secrets(), kinds::config_maps());
    let mut namespaces = Vec::new();
    for team in [&stage.team_a, &stage.team_b] {
        team.client.create(&config_maps, Some(NAMESPACE), &config_map("mine")).await?;
        stage.order(team, "bucket", json!({ "owner": "mine" })).await?;
        let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
        let namespace = place(&copy).0.to_owned();
        stage.service.create(&secrets, Some(&namespace), &secret_for("bucket", "theirs")).await?;
        namespaces.push(namespace);
    }
    let team = &stage.team_a;
    stage.object("the Secret arrives", (&team.client, &secrets, Some(NAMESPACE), "theirs"), |_| true).await?;
    let copied = (&stage.service, &config_maps, Some(namespaces[0].as_str()), "mine");
    stage.object("the ConfigMap arrives", copied, |_| true).await?;
    stage.at_rest().await?;

    // One team has never accepted them, the other one takes them back.
    accept_only_events(&stage, &stage.team_a).await?;
    for team in [&stage.team_a, &stage.team_b] {
        stage.cancel(team, "bucket").await?;
    }
    for team in [&stage.team_a, &stage.team_b] {
        stage.gone("the order is gone", (&team.client, &stage.buckets(), Some(NAMESPACE), "bucket")).await?;
        ensure!(stage.copy(team, "bucket").await?.is_none(), "its copy is left");
    }
    stage.gone("the copy of the ConfigMap is gone", copied).await?;
    let said = |line: &String| line.contains("must accept the claim for secrets");
    ensure!(agent.log().iter().any(said), "nobody says what is missing");
    agent.stop().await
}

pub(super) async fn an_order_ends_although_marked_copies_may_not_be_listed(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = set(world, json!([named()])).await?;
    let mut rules = service_rules(&stage.group);
    if let Some(rules) = rules.as_array_mut() {
        rules.push(rule(&[""], &["configmaps"], "get create update patch delete"));
    }
    grant(&stage, &stage.service, &rules).await?;
    grant(&stage, &stage.provider.client, &kcp_rules(stage.export_name())).await?;
    are_known(&stage).await?;
    let agent = Agent::start(&stage, Setup { user: User::Agent, ..Setup::default() })?;
    stage.bind(&stage.team_a).await?;
    let (team, config_maps) = (&stage.team_a, kinds::config_maps());
    team.client.create(&config_maps, Some(NAMESPACE), &config_map("mine")).await?;
    stage.order(team, "bucket", json!({ "owner": "mine" })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let copied = (&stage.service, &config_maps, Some(place(&copy).0), "mine");
    stage.object("the ConfigMap arrives", copied, |_| true).await?;
    stage.cancel(team, "bucket").await?;
    stage.gone("the order is gone", (&team.client, &stage.buckets(), Some(NAMESPACE), "bucket")).await?;
    ensure!(stage.service.get(&config_maps, copied.2, "mine").await?.is_none(), "the copy of the ConfigMap is left");
    let said = |line: &String| line.contains("condition RightsGranted") && line.contains("configmaps");
    ensure!(agent.log().iter().any(said), "nobody says which right is missing");
    agent.stop().await?;
    revoke(&stage, &stage.service).await
}
