//! What the reference agent's own tests demand of primary objects.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{ListOptions, Resource};
use carrick_e2e_stage::rights::{grant, rule};
use carrick_e2e_stage::stage::{NAMESPACE, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::API_EXPORT_ENDPOINT_SLICE;
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::compat::{Suite, crontab, ensure_namespace};

pub(super) async fn an_order_is_placed_where_its_rules_say(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    suite.publish("CronTab", suite.usual()).await?;
    let _agent = suite.start().await?;
    placed(&suite).await
}

pub(super) async fn an_order_is_placed_by_old_placeholders(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let mut spec = suite.usual();
    spec["naming"] =
        json!({ "name": "$remoteName", "namespace": format!("synced-{}-$remoteNamespace", suite.stage.id) });
    suite.publish("CronTab", spec).await?;
    let _agent = suite.start().await?;
    placed(&suite).await
}

pub(super) async fn a_second_slice_in_the_workspace_does_as_well(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    suite.publish("CronTab", suite.usual()).await?;
    let slices = kinds::kcp(&API_EXPORT_ENDPOINT_SLICE);
    stage.provider.client.create(&slices, None, &slice(&json!({ "name": stage.export_name() }))).await?;
    grant_more(&suite, &rule(&["apis.kcp.io"], &["apiexportendpointslices"], "get list watch")).await?;
    let _agent = suite.start_at(&stage.provider.cluster, "dummy").await?;
    placed(&suite).await
}

pub(super) async fn a_slice_in_another_workspace_does_as_well(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    suite.publish("CronTab", suite.usual()).await?;
    let other = &stage.team_b;
    let export = json!({ "path": stage.provider.path, "name": stage.export_name() });
    other.client.create(&kinds::kcp(&API_EXPORT_ENDPOINT_SLICE), None, &slice(&export)).await?;
    let named = |group: &str, resource: &str, verbs: &str, name: &str| {
        let mut rule = rule(&[group], &[resource], verbs);
        rule["resourceNames"] = json!([name]);
        rule
    };
    let rules = json!([
        { "nonResourceURLs": ["/"], "verbs": ["access"] },
        named("core.kcp.io", "logicalclusters", "get", "cluster"),
        named("apis.kcp.io", "apiexportendpointslices", "get list watch", "dummy"),
    ]);
    grant(stage, &other.client, &rules).await?;
    let _agent = suite.start_at(&other.cluster, "dummy").await?;
    placed(&suite).await
}

pub(super) async fn equal_orders_of_two_workspaces_make_two_copies(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    suite.publish("CronTab", json!({ "projection": { "group": suite.kcp_group() } })).await?;
    let _agent = suite.start().await?;
    let kind = suite.remote("CronTab");
    for team in [&stage.team_a, &stage.team_b] {
        suite.bound(team, &kind).await?;
        stage.order_kind(&kind, team, "my-crontab", crontab()).await?;
    }
    stage
        .eventually("there are two copies", async || {
            let copies = stage.service.list(&suite.local("CronTab"), None, &ListOptions::default()).await?;
            ensure!(copies.len() == 2, "there are {}", copies.len());
            Ok(())
        })
        .await
}

pub(super) async fn a_local_change_stays_until_the_order_changes_it(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    suite.publish("CronTab", suite.usual()).await?;
    let _agent = suite.start().await?;
    placed(&suite).await?;
    let (kind, local, namespace) = (suite.remote("CronTab"), suite.local("CronTab"), suite.synced());
    let at = (&stage.service, &local, Some(namespace.as_str()), "my-crontab");

    // Both writers replace the whole object as soon as they see it, so nobody may write to it once it is there.
    let mut copy = suite.arrives(&local, "my-crontab").await?;
    copy["spec"]["cronSpec"] = json!("local");
    stage.service.replace(&local, Some(&namespace), &copy).await?;
    let reorder = async |field: &str, value: &str| -> anyhow::Result<()> {
        let client = &stage.team_a.client;
        let mut order = client.get(&kind, Some(NAMESPACE), "my-crontab").await?.unwrap_or_default();
        order["spec"][field] = json!(value);
        client.replace(&kind, Some(NAMESPACE), &order).await?;
        Ok(())
    };
    reorder("image", "new").await?;
    let both = json!({ "cronSpec": "local", "image": "new" });
    stage.object("both changes are there", at, |copy| copy["spec"] == both).await?;
    reorder("cronSpec", "remote").await?;
    let both = json!({ "cronSpec": "remote", "image": "new" });
    stage.object("the change of the order wins", at, |copy| copy["spec"] == both).await?;
    Ok(())
}

pub(super) async fn a_filter_lets_only_labelled_orders_through(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    let mut spec = suite.usual();
    spec["filter"] = json!({ "resource": { "matchLabels": { "include": "me" } } });
    suite.publish("CronTab", spec).await?;
    let _agent = suite.start().await?;
    let (kind, client) = (suite.remote("CronTab"), &stage.team_a.client);
    suite.bound(&stage.team_a, &kind).await?;
    stage.order_kind(&kind, &stage.team_a, "ignored", crontab()).await?;
    // By the time the second one is placed, the first of all would have been, too.
    for name in ["included", "as-well"] {
        let mut order = object(&kind, name, &crontab());
        order["metadata"]["labels"] = json!({ "include": "me" });
        client.create(&kind, Some(NAMESPACE), &order).await?;
        suite.arrives(&suite.local("CronTab"), name).await?;
    }
    let ignored = stage.service.get(&suite.local("CronTab"), Some(&suite.synced()), "ignored").await?;
    ensure!(ignored.is_none(), "it is placed");
    Ok(())
}

pub(super) async fn a_very_long_name_is_no_hindrance(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    suite.publish("CronTab", suite.usual()).await?;
    let _agent = suite.start().await?;
    let (kind, team) = (suite.remote("CronTab"), &stage.team_a);
    suite.bound(team, &kind).await?;
    let (namespace, name) = ("yadda".repeat(3), "yotta".repeat(50));
    ensure_namespace(&team.client, &namespace).await?;
    let mut order = object(&kind, &name, &crontab());
    order["metadata"]["namespace"] = json!(namespace);
    stage
        .eventually("it can be ordered", async || Ok(team.client.create(&kind, Some(&namespace), &order).await?))
        .await?;
    let placed = format!("synced-{}-{namespace}", stage.id);
    stage
        .object("it is placed", (&stage.service, &suite.local("CronTab"), Some(placed.as_str()), &name), |_| true)
        .await?;
    Ok(())
}

pub(super) async fn a_copy_tells_the_path_of_its_workspace(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let mut spec = suite.usual();
    spec["enableWorkspacePaths"] = json!(true);
    suite.publish("CronTab", spec).await?;
    let _agent = suite.start().await?;
    placed(&suite).await?;
    let copy = suite.arrives(&suite.local("CronTab"), "my-crontab").await?;
    let path = &copy["metadata"]["annotations"][api::REMOTE_WORKSPACE_PATH];
    ensure!(*path == suite.stage.team_a.path, "{}", shown(&copy));
    Ok(())
}

pub(super) async fn a_kind_of_kubernetes_and_one_of_a_crd_share_an_export(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let (stage, group) = (&suite.stage, suite.kcp_group());
    suite.publish("CronTab", suite.usual()).await?;
    let mut spec = suite.usual();
    spec["resource"] = json!({ "apiGroup": "", "version": "v1", "kind": "ConfigMap" });
    spec["projection"] = json!({ "group": group, "kind": "KubeConfigMap" });
    suite.publish("ConfigMap", spec).await?;
    let _agent = suite.start().await?;
    placed(&suite).await?;
    let kind = Resource::namespaced(&group, "v1", "KubeConfigMap", "kubeconfigmaps");
    suite.bound(&stage.team_a, &kind).await?;
    let mut order = object(&kind, "settings", &Value::Null);
    order["data"] = json!({ "color": "blue" });
    let client = &stage.team_a.client;
    stage.eventually("it can be ordered", async || Ok(client.create(&kind, Some(NAMESPACE), &order).await?)).await?;
    let copy = suite.arrives(&kinds::config_maps(), "settings").await?;
    ensure!(copy["data"] == order["data"], "{}", shown(&copy));
    Ok(())
}

/// Orders a CronTab and waits for its copy.
async fn placed(suite: &Suite) -> anyhow::Result<()> {
    let kind = suite.remote("CronTab");
    suite.bound(&suite.stage.team_a, &kind).await?;
    suite.stage.order_kind(&kind, &suite.stage.team_a, "my-crontab", crontab()).await?;
    let copy = suite.arrives(&suite.local("CronTab"), "my-crontab").await?;
    ensure!(copy["spec"] == crontab(), "{}", shown(&copy));
    Ok(())
}

fn object(kind: &Resource, name: &str, spec: &Value) -> Value {
    let metadata = json!({ "name": name, "namespace": NAMESPACE });
    json!({ "apiVersion": kind.api_version(), "kind": &*kind.kind, "metadata": metadata, "spec": spec })
}

/// A slice called `dummy` for an export.
fn slice(export: &Value) -> Value {
    let kind = API_EXPORT_ENDPOINT_SLICE;
    json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": { "name": "dummy" }, "spec": { "export": export },
    })
}

/// Gives the agent one more right in the workspace of the export.
async fn grant_more(suite: &Suite, right: &Value) -> anyhow::Result<()> {
    let (client, kind, name) = (&suite.stage.provider.client, kinds::cluster_roles(), suite.stage.agent_name());
    let mut role = client.get(&kind, None, &name).await?.context("the agent has no rights")?;
    role["rules"].as_array_mut().context("the role has no rules")?.push(right.clone());
    client.replace(&kind, None, &role).await?;
    Ok(())
}
