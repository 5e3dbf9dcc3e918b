//! An agent that may do what its documentation asks for, and nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_client::{Client, DeleteOptions, ListOptions, Server};
use carrick_kcp::kinds::API_EXPORT_ENDPOINT_SLICE;
use serde_json::{Value, json};

use super::related::{credentials, encoded, secret};
use crate::agent::{Agent, Setup};
use crate::stage::{NAMESPACE, Stage, condition, place};
use crate::world::{AGENT, User, World};
use crate::{fixtures, kinds};

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

/// Five seconds, and a little for a slow machine; pauses would be longer.
fn soon(granted: Instant) -> anyhow::Result<()> {
    let waited = granted.elapsed();
    println!("went on {waited:.1?} after the right was granted");
    ensure!(waited < Duration::from_secs(8), "only after {waited:?}");
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

/// On the service cluster.
pub(super) fn service_rules(group: &str) -> Value {
    json!([
        rule(&["apiextensions.k8s.io"], &["customresourcedefinitions"], "get list watch"),
        rule(&["syncagent.kcp.io"], &["publishedresources"], "get list watch"),
        rule(&["syncagent.kcp.io"], &["publishedresources/status"], "get update patch"),
        rule(&[""], &["namespaces"], "get list watch create"),
        rule(&[""], &["events"], "create update patch"),
        rule(&[""], &["secrets"], "get list watch create update"),
        rule(&[group], &["buckets"], "get list watch create update patch delete"),
    ])
}

/// In the workspace of the export.
pub(super) fn kcp_rules(export: &str) -> Value {
    let named = |mut rule: Value, name: &str| {
        rule["resourceNames"] = json!([name]);
        rule
    };
    json!([
        { "nonResourceURLs": ["/"], "verbs": ["access"] },
        named(rule(&["core.kcp.io"], &["logicalclusters"], "get"), "cluster"),
        named(rule(&["apis.kcp.io"], &["apiexportendpointslices"], "get list watch"), export),
        named(rule(&["apis.kcp.io"], &["apiexports"], "get list watch update patch"), export),
        named(rule(&["apis.kcp.io"], &["apiexports/content"], "*"), export),
        rule(&["apis.kcp.io"], &["apiresourceschemas"], "get list watch create"),
        rule(&[""], &["events"], "get create update patch"),
    ])
}

pub(super) fn rule(groups: &[&str], resources: &[&str], verbs: &str) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs.split(' ').collect::<Vec<_>>() })
}

/// Gives the rules to the agent's user.
pub(crate) async fn grant(stage: &Stage, client: &Client, rules: &Value) -> anyhow::Result<()> {
    let (api, name) = ("rbac.authorization.k8s.io", stage.agent_name());
    let api_version = format!("{api}/v1");
    let metadata = json!({ "name": name });
    let role = json!({ "apiVersion": api_version, "kind": "ClusterRole", "metadata": metadata, "rules": rules });
    client.create(&kinds::cluster_roles(), None, &role).await?;
    let binding = json!({
        "apiVersion": api_version,
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": { "apiGroup": api, "kind": "ClusterRole", "name": name },
        "subjects": [{ "apiGroup": api, "kind": "User", "name": AGENT }],
    });
    client.create(&kinds::cluster_role_bindings(), None, &binding).await?;
    Ok(())
}

/// Takes back what was granted: on real servers all scenarios share the agent's user.
pub(crate) async fn revoke(stage: &Stage, client: &Client) -> anyhow::Result<()> {
    let (name, everything) = (stage.agent_name(), DeleteOptions::default());
    client.delete(&kinds::cluster_role_bindings(), None, &name, &everything).await?;
    client.delete(&kinds::cluster_roles(), None, &name, &everything).await?;
    Ok(())
}

/// Waits until both servers know what the agent may do, which takes them a moment: its first request should not be refused.
pub(super) async fn are_known(stage: &Stage) -> anyhow::Result<()> {
    let kcp = stage.world.kcp_kubeconfig(User::Agent, &stage.provider.path);
    let kcp = Server::from_kubeconfig_yaml(&kcp)?.client();
    let service = Server::from_kubeconfig_yaml(&stage.world.service_kubeconfig(User::Agent))?.client();
    stage
        .eventually("the agent has its rights", async || {
            kcp.get(&kinds::kcp(&API_EXPORT_ENDPOINT_SLICE), None, stage.export_name()).await?;
            service.list(&kinds::published_resources(), None, &ListOptions::default()).await?;
            Ok(())
        })
        .await
}
