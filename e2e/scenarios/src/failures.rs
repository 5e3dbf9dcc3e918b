//! Orders that cannot be served, and who is told of it.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::collateral::told_of_failure;

pub(super) async fn names_that_are_taken_or_not_valid_are_told_until_better_rules_come(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage =
        publish(world, json!({ "naming": { "name": "{{ .Object.spec.owner }}", "namespace": "$remoteNamespace" } }))
            .await?;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    let (a, b) = (&stage.team_a, &stage.team_b);
    // Namespaces of this name are on the service cluster of all stages, names are not.
    let owner = format!("owner-{}", stage.id);
    stage.order(a, "first", json!({ "owner": owner })).await?;
    let first = stage.copy_is("the first order has its copy", a, "first", |_| true).await?;
    objects_synced(&stage, "True", &[]).await?;

    stage.order(b, "second", json!({ "owner": owner })).await?;
    stage.order(b, "third", json!({ "owner": "Not Valid" })).await?;
    told_of_failure(&stage, b, "second").await?;
    told_of_failure(&stage, b, "third").await?;
    let words = [b.cluster.as_str(), "second", "first", "third", "Not Valid", "spec.naming.name", "2 objects"];
    objects_synced(&stage, "False", &words).await?;
    // Alert OrdersFail is about this gauge, however few they are and however long they fail.
    ensure!(failing(&agent).await? == 2, "{}", agent.metrics().await?);
    ensure!(stage.copy(b, "second").await?.is_none() && stage.copy(b, "third").await?.is_none(), "a name was guessed");

    let naming = json!({ "name": "{{ .ClusterName }}-{{ .Object.metadata.name }}", "namespace": null });
    patch_published(&stage, json!({ "spec": { "naming": naming } })).await?;
    for name in ["second", "third"] {
        stage.copy_is("better rules place it", b, name, |_| true).await?;
    }
    objects_synced(&stage, "True", &[]).await?;
    ensure!(failing(&agent).await? == 0, "{}", agent.metrics().await?);
    let still = stage.copy(a, "first").await?.context("the first copy is gone")?;
    ensure!(still["metadata"]["uid"] == first["metadata"]["uid"], "the first copy has moved: {}", shown(&still));
    agent.stop().await
}

/// How many orders fail, wait or are refused, as the agent's metrics say.
async fn failing(agent: &Agent) -> anyhow::Result<u64> {
    let page = agent.metrics().await?;
    let lines = page.lines().filter(|line| line.starts_with("sync_agent_failing_objects{"));
    lines.map(|line| Ok(line.rsplit(' ').next().context("no value")?.parse::<u64>()?)).sum()
}

pub(super) async fn two_originals_for_one_copy_are_told_and_the_first_stays(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let template = r#"{{ if eq .Side "kcp" }}{{ .Object.metadata.name }}-settings{{ else }}settings{{ end }}"#;
    let related = json!([{
        "identifier": "settings", "origin": "kcp", "kind": "ConfigMap", "object": { "template": { "template": template } },
    }]);
    let stage = publish(world, json!({ "related": related })).await?;
    let (team, config_maps) = (&stage.team_a, kinds::config_maps());
    let agent = stage.start_agent()?;
    let settings = (&stage.service, &config_maps, Some(team.cluster.as_str()), "settings");
    let order = async |name: &str| {
        let original = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": format!("{name}-settings") },
            "data": { "of": name },
        });
        team.client.create(&config_maps, Some(NAMESPACE), &original).await?;
        stage.order(team, name, json!({ "owner": name })).await
    };
    order("first").await?;
    stage.object("the first settings arrive", settings, |copy| copy["data"]["of"] == "first").await?;
    order("second").await?;
    told_of_failure(&stage, team, "second").await?;
    objects_synced(&stage, "False", &["settings", "first-settings", "second-settings", "1 object"]).await?;
    let copy = stage.service.get(&config_maps, Some(&team.cluster), "settings").await?.context("the copy is gone")?;
    ensure!(copy["data"]["of"] == "first", "{}", shown(&copy));
    let refused = team.client.get(&config_maps, Some(NAMESPACE), "second-settings").await?.context("gone")?;
    ensure!(refused["metadata"]["finalizers"].is_null(), "{}", shown(&refused));

    stage.cancel(team, "first").await?;
    stage.all_gone(team, "first").await?;
    stage.object("the second settings take the place", settings, |copy| copy["data"]["of"] == "second").await?;
    objects_synced(&stage, "True", &[]).await?;
    agent.stop().await
}

pub(super) async fn an_order_that_could_not_be_placed_is_let_go_like_any_other(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage =
        publish(world, json!({ "naming": { "name": "{{ .Object.spec.owner }}", "namespace": "$remoteNamespace" } }))
            .await?;
    let agent = stage.start_agent()?;
    let owner = format!("owner-{}", stage.id);
    stage.order(&stage.team_a, "first", json!({ "owner": owner })).await?;
    stage.copy_is("the first order has its copy", &stage.team_a, "first", |_| true).await?;
    stage.order(&stage.team_b, "second", json!({ "owner": owner })).await?;
    told_of_failure(&stage, &stage.team_b, "second").await?;
    let held = |source: &Value| source["metadata"]["finalizers"] == json!([api::FINALIZER]);
    stage.source_is("the second order is held", &stage.team_b, "second", held).await?;
    agent.stop().await?;

    patch_published(&stage, json!({ "spec": { "synchronization": { "enabled": false } } })).await?;
    let agent = stage.start_agent()?;
    for (team, name) in [(&stage.team_a, "first"), (&stage.team_b, "second")] {
        stage.source_is(&format!("{name} is let go"), team, name, |source| !held(source)).await?;
    }
    agent.stop().await
}

pub(super) async fn a_rule_that_fails_on_one_order_harms_only_that_one(world: Arc<dyn World>) -> anyhow::Result<()> {
    let rule = json!([
        { "cel": { "path": "spec.size", "expression": "self.spec.size * 2" } },
        { "regex": { "path": "spec.region", "pattern": "^(..)-.*$", "replacement": "$1" } },
    ]);
    let stage = publish(world, json!({ "mutation": { "spec": rule } })).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "bad", json!({ "region": "eu-west" })).await?;
    stage.order(team, "good", json!({ "region": "eu-west", "size": 21 })).await?;
    let expected = json!({ "region": "eu", "size": 42 });
    stage.copy_is("the good one is served", team, "good", |copy| copy["spec"] == expected).await?;
    told_of_failure(&stage, team, "bad").await?;
    objects_synced(&stage, "False", &["1 object ", "bad", "spec.mutation.spec[0]", "spec.size"]).await?;
    ensure!(stage.copy(team, "bad").await?.is_none(), "half of the rules were applied");

    stage.reorder(team, "bad", json!({ "size": 1 })).await?;
    stage.copy_is("corrected, it is served too", team, "bad", |copy| copy["spec"]["size"] == 2).await?;
    objects_synced(&stage, "True", &[]).await?;
    stage.at_rest().await?;
    agent.stop().await
}

async fn publish(world: Arc<dyn World>, spec: Value) -> anyhow::Result<Stage> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", spec).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    Ok(stage)
}

async fn patch_published(stage: &Stage, patch: Value) -> anyhow::Result<()> {
    let name = stage.published_name("Bucket");
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
    Ok(())
}

/// Waits until the PublishedResource says whether all objects are synchronized, in these words.
async fn objects_synced(stage: &Stage, status: &str, words: &[&str]) -> anyhow::Result<()> {
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    stage
        .object(&format!("{name} says that ObjectsSynced is {status} with {words:?}"), at, |published| {
            let condition = condition(published, "ObjectsSynced");
            let message = condition["message"].as_str().unwrap_or_default();
            condition["status"] == status && words.iter().all(|word| message.contains(word))
        })
        .await?;
    Ok(())
}
