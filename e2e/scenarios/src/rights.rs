//! An agent that may do what its documentation asks for, and nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::rights::{are_known, grant, kcp_rules, revoke, rule, service_rules};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, place};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{fixtures, kinds};
use serde_json::{Value, json};

use super::related::{credentials, encoded, secret};

pub(super) async fn the_documented_rights_are_enough_for_an_order_with_a_secret(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({ "related": [credentials()] })).await?;
    grant(&stage, &stage.service, &service_rules(&stage.group)).await?;
    grant(&stage, &stage.provider.client, &kcp_rules(stage.export_name())).await?;
    are_known(&stage).await?;
    let agent = Agent::start(&stage, Setup { user: User::Agent, probes: true, ..Setup::default() })?;
    stage.bind(&stage.team_a).await?;

    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, copy_name) = place(&copy);
    stage.service.create(&kinds::secrets(), Some(namespace), &secret(copy_name, "first")).await?;
    let at = (&team.client, &kinds::secrets(), Some(NAMESPACE), "bucket-credentials");
    stage
        .object("the Secret reaches the consumer", at, |secret| secret["data"]["password"] == encoded("first"))
        .await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("a change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |s| s["status"]["url"] == "here").await?;
    stage.ready(&agent).await?;

    // The documented rights do not include deleting Secrets, so what is remembered stays, without content.
    stage.cancel(team, "bucket").await?;
    stage.gone("the order is gone", (&team.client, &stage.buckets(), Some(NAMESPACE), "bucket")).await?;
    ensure!(stage.copy(team, "bucket").await?.is_none(), "the copy is left");
    let remembered = stage.remembered_of(team, "bucket").await?.context("nothing is remembered")?;
    ensure!(remembered["data"].as_object().is_none_or(serde_json::Map::is_empty), "something is remembered");
    stage.order(team, "bucket", json!({ "size": 3 })).await?;
    stage.copy_is("the next order is placed", team, "bucket", |copy| copy["spec"]["size"] == 3).await?;

    let log = agent.log();
    let refused: Vec<_> = log.iter().filter(|line| line.contains("forbidden")).collect();
    ensure!(refused.len() == 1 && refused[0].contains("delete"), "what the agent may not do: {refused:#?}");
    agent.stop().await?;
    revoke(&stage, &stage.service).await
}

/// The role of the reference agent's documentation has neither `patch` nor `delete` for the published kind.
pub(super) async fn what_a_role_lacks_is_said_before_the_first_order_and_work_goes_on_when_it_is_granted(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    let policy = json!({
        "identifier": "policy", "origin": "kcp", "kind": "ConfigMap",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-policy" } },
    });
    stage.publish("Bucket", json!({ "related": [policy] })).await?;
    let mut rules = service_rules(&stage.group);
    let of_buckets = rules.as_array_mut().and_then(Vec::pop);
    ensure!(of_buckets.is_some_and(|rule| rule["resources"] == json!(["buckets"])), "which rule is it?");
    grant(&stage, &stage.service, &rules).await?;
    grant(&stage, &stage.provider.client, &kcp_rules(stage.export_name())).await?;
    are_known(&stage).await?;
    let agent = Agent::start(&stage, Setup { user: User::Agent, probes: true, ..Setup::default() })?;
    let published = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, published.as_str());
    let rights = |published: &Value, status: &str| condition(published, "RightsGranted")["status"] == status;
    let words = |published: &Value, words: &str| {
        rights(published, "False") && condition(published, "RightsGranted")["message"].to_string().contains(words)
    };
    stage.bind(&stage.team_a).await?;
    let team = &stage.team_a;
    stage
        .object("that copies cannot be seen is told", at, |it| {
            words(it, "may not get, list, watch, create, update, delete buckets")
        })
        .await?;
    refused(&stage, &agent, "rest_client_requests_total{", "code=\"403\"", 8).await?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let granted =
        add(&stage, &mut rules, [rule(&[&stage.group], &["buckets"], "get list watch create update")]).await?;
    stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    soon(granted)?;

    let told =
        stage.object("that copies cannot be deleted is told", at, |it| words(it, "may not delete buckets")).await?;
    let message = condition(&told, "RightsGranted")["message"].as_str().unwrap_or_default();
    let missing: Vec<Value> = pasted(message)?;
    let wanted = json!([
        { "apiGroups": [stage.group], "resources": ["buckets"], "verbs": ["delete"] },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "update", "delete"] },
    ]);
    ensure!(json!(missing) == wanted, "{message}");

    stage.cancel(team, "bucket").await?;
    refused(&stage, &agent, "sync_agent_errors_total{", "Forbidden", 12).await?;
    let granted = add(&stage, &mut rules, missing).await?;
    stage.gone("the order is gone", (&team.client, &stage.buckets(), Some(NAMESPACE), "bucket")).await?;
    soon(granted)?;
    stage.object("all is granted", at, |it| rights(it, "True")).await?;
    agent.stop().await?;
    revoke(&stage, &stage.service).await
}

/// Adds rules to the agent's role; from now on nobody should wait.
async fn add(stage: &Stage, rules: &mut Value, more: impl IntoIterator<Item = Value>) -> anyhow::Result<Instant> {
    rules.as_array_mut().context("no rules")?.extend(more);
    let role = json!({ "rules": rules });
    stage.service.merge_patch(&kinds::cluster_roles(), None, &stage.agent_name(), &role).await?;
    Ok(Instant::now())
}

/// Five seconds, and twice that for a slow machine; pauses would be longer.
fn soon(granted: Instant) -> anyhow::Result<()> {
    let waited = granted.elapsed();
    println!("went on {waited:.1?} after the right was granted");
    ensure!(waited < Duration::from_secs(15), "only after {waited:?}");
    Ok(())
}

/// Waits until so much was refused that the pauses between attempts are longer than anybody should wait.
async fn refused(stage: &Stage, agent: &Agent, family: &str, label: &str, wanted: u64) -> anyhow::Result<()> {
    stage
        .eventually("the agent was refused many times", async || {
            let metrics = agent.metrics().await?;
            let lines = metrics.lines().filter(|line| line.starts_with(family) && line.contains(label));
            let errors: u64 = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
            ensure!(errors >= wanted, "{errors} times: {metrics}");
            Ok(())
        })
        .await
}

/// The rules of a message, as somebody would paste them into a role.
fn pasted(message: &str) -> anyhow::Result<Vec<Value>> {
    let rules = message.split("- {").skip(1).filter_map(|rest| rest.split_once('}'));
    rules.map(|(rule, _)| Ok(serde_saphyr::from_str(&format!("{{{rule}}}"))?)).collect()
}
