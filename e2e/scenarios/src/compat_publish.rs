//! What the reference agent's own tests demand of export and schemas.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, ListOptions};
use carrick_e2e_stage::binary::{Binary, Launch};
use carrick_e2e_stage::stage::{Stage, shown};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{fixtures, kinds, ports};
use carrick_kcp::kinds::{API_EXPORT, API_RESOURCE_SCHEMA};
use carrick_syncagent::api;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::compat::{Suite, schemas};

pub(super) async fn the_export_claims_what_related_resources_need(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab, fixtures::backup]).await?;
    let stage = &suite.stage;
    suite.publish("CronTab", json!({})).await?;
    suite.publish("Backup", json!({})).await?;
    let _agent = suite.start().await?;
    exported(stage, &["backups", "crontabs"]).await?;
    let claims = stage.export().await?["spec"]["permissionClaims"].clone();
    ensure!(claims == claimed(&["events"]), "{claims}");

    let related = [reference("a", "kcp", "Secret", "spec.test"), reference("b", "service", "Secret", "spec.other")];
    suite.republish("CronTab", json!({ "related": [reference("c", "kcp", "ConfigMap", "spec.secret")] })).await?;
    suite.republish("Backup", json!({ "related": related })).await?;
    claims_become(stage, &["configmaps", "events", "namespaces", "secrets"]).await
}

pub(super) async fn claims_that_were_there_before_stay(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    edit_export(stage, json!({ "permissionClaims": claimed(&["configmaps"]) })).await?;
    suite.publish("CronTab", json!({ "related": [reference("a", "kcp", "Secret", "spec.test")] })).await?;
    let _agent = suite.start().await?;
    claims_become(stage, &["configmaps", "events", "namespaces", "secrets"]).await
}

pub(super) async fn schemas_of_others_stay_and_old_ones_are_replaced(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    let (foreign, old) = (format!("v1.fakes.{}", stage.group), format!("v0.crontabs.{}", stage.group));
    edit_export(stage, json!({ "latestResourceSchemas": [foreign, old] })).await?;
    let notes = json!({ "metadata": { "annotations": { "example.com/note": "mine" }, "labels": { "team": "mine" } } });
    stage.provider.client.merge_patch(&kinds::kcp(&API_EXPORT), None, stage.export_name(), &notes).await?;
    suite.publish("CronTab", json!({ "related": [reference("a", "kcp", "Secret", "spec.test")] })).await?;
    let _agent = suite.start().await?;
    stage
        .eventually("the old schema is replaced", async || {
            let now = schemas(stage).await?;
            ensure!(now.len() == 2 && now.contains(&foreign) && !now.contains(&old), "{now:?}");
            Ok(())
        })
        .await?;
    let metadata = stage.export().await?["metadata"].clone();
    let kept = metadata["annotations"]["example.com/note"] == "mine" && metadata["labels"]["team"] == "mine";
    ensure!(kept, "{metadata}");
    Ok(())
}

pub(super) async fn a_schema_outlives_what_published_it(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab, fixtures::backup]).await?;
    let stage = &suite.stage;
    suite.publish("CronTab", json!({ "related": [reference("a", "kcp", "Secret", "spec.test")] })).await?;
    let _agent = suite.start().await?;
    let first = exported(stage, &["crontabs"]).await?;
    let name = stage.published_name("CronTab");
    stage.service.delete(&kinds::published_resources(), None, &name, &DeleteOptions::default()).await?;
    suite.publish("Backup", json!({})).await?;
    let both = exported(stage, &["backups", "crontabs"]).await?;
    ensure!(both.contains(&first[0]), "{first:?} became {both:?}");
    Ok(())
}

pub(super) async fn another_scope_makes_another_schema(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    suite.publish("CronTab", json!({})).await?;
    let _agent = suite.start().await?;
    let before = exported(stage, &["crontabs"]).await?;
    suite.republish("CronTab", json!({ "projection": { "scope": "Cluster" } })).await?;
    stage
        .eventually("the schema is another one", async || {
            let after = exported(stage, &["crontabs"]).await?;
            ensure!(after != before, "it is {after:?}");
            Ok(())
        })
        .await
}

pub(super) async fn a_schema_is_never_changed(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    suite.publish("CronTab", json!({})).await?;
    let _agent = suite.start().await?;
    let before = exported(stage, &["crontabs"]).await?;
    ensure!(own_schemas(stage).await? == before, "a schema is missing or has no label");

    let mut crd = fixtures::crontab(&stage.group);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["command"] =
        json!({ "type": "string" });
    let name = format!("crontabs.{}", stage.group);
    stage.service.merge_patch(&kinds::crds(), None, &name, &json!({ "spec": crd["spec"] })).await?;
    stage
        .eventually("there is a second schema, and it is the one of the PublishedResource", async || {
            let all = own_schemas(stage).await?;
            let published = stage.published_name("CronTab");
            let published =
                stage.service.get(&kinds::published_resources(), None, &published).await?.unwrap_or_default();
            let now = published["status"]["resourceSchemaName"].as_str().unwrap_or_default();
            ensure!(all.len() == 2 && all.contains(&before[0]), "{all:?}");
            ensure!(now != before[0] && all.iter().any(|name| name == now), "it names {now}");
            Ok(())
        })
        .await
}

pub(super) async fn a_schema_has_the_chosen_versions(world: Arc<dyn World>) -> anyhow::Result<()> {
    for (choice, versions) in
        [(json!({ "version": "v1" }), json!(["v1"])), (json!({ "versions": ["v2", "v1"] }), json!(["v1", "v2"]))]
    {
        let suite = Suite::set(Arc::clone(&world), &[fixtures::crontab_in_two_versions]).await?;
        let stage = &suite.stage;
        let mut resource = choice;
        resource["apiGroup"] = json!(stage.group);
        resource["kind"] = json!("CronTab");
        suite.publish("CronTab", json!({ "resource": resource })).await?;
        let _agent = suite.start().await?;
        let schema = schema_of(stage, &exported(stage, &["crontabs"]).await?[0]).await?;
        let names: Vec<_> =
            schema["spec"]["versions"].as_array().into_iter().flatten().map(|v| v["name"].clone()).collect();
        ensure!(json!(names) == versions, "{}", shown(&schema));
    }
    Ok(())
}

pub(super) async fn every_name_of_a_kind_can_be_projected(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab]).await?;
    let stage = &suite.stage;
    let projection = json!({
        "version": "v6", "scope": "Cluster", "kind": "CronusTabulatus", "plural": "cronustabulati", "shortNames": ["cront"],
        "categories": null,
    });
    suite.publish("CronTab", json!({ "projection": projection })).await?;
    let _agent = suite.start().await?;
    let schema = schema_of(stage, &exported(stage, &["cronustabulati"]).await?[0]).await?;
    let spec = &schema["spec"];
    ensure!(spec["versions"][0]["name"] == "v6" && spec["versions"][1].is_null(), "{}", shown(&schema));
    let names = json!({
        "plural": "cronustabulati", "singular": "cronustabulatus", "kind": "CronusTabulatus",
        "listKind": "CronusTabulatusList", "shortNames": ["cront"],
    });
    ensure!(spec["scope"] == "Cluster" && spec["names"] == names, "{}", shown(&schema));
    Ok(())
}

pub(super) async fn a_kind_of_kubernetes_is_published(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[]).await?;
    let stage = &suite.stage;
    let resource = json!({ "apiGroup": "rbac.authorization.k8s.io", "version": "v1", "kind": "Role" });
    suite.publish("Role", json!({ "resource": resource, "projection": { "group": stage.group } })).await?;
    let _agent = suite.start().await?;
    schema_of(stage, &exported(stage, &["roles"]).await?[0]).await.map(drop)
}

pub(super) async fn a_metric_counts_published_resources(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite::set(world, &[fixtures::crontab, fixtures::backup]).await?;
    let stage = &suite.stage;
    suite.publish("CronTab", json!({})).await?;
    let launch = Launch { user: User::Agent, workspace: &stage.provider.cluster, slice: stage.export_name() };
    let [port] = ports::free()?;
    let address = format!("127.0.0.1:{port}");
    let _agent = Binary::as_in_the_reference_tests(stage, &launch).await?.start_with_metrics(&address)?;
    let counts = async |number: usize| {
        stage
            .eventually(&format!("the metric is {number}"), async || {
                let metrics = get(&address, "/metrics").await?;
                let line = metrics.lines().find(|line| line.starts_with("sync_agent_published_resource "));
                ensure!(line == Some(&format!("sync_agent_published_resource {number}")), "it says {line:?}");
                Ok(())
            })
            .await
    };
    counts(1).await?;
    suite.publish("Backup", json!({})).await?;
    counts(2).await?;
    let name = stage.published_name("CronTab");
    stage.service.delete(&kinds::published_resources(), None, &name, &DeleteOptions::default()).await?;
    counts(1).await
}

pub(super) async fn a_related_resource_must_be_named_in_one_way(world: Arc<dyn World>) -> anyhow::Result<()> {
    let suite = Suite { stage: Stage::bare(world).await? };
    let group = "example.com";
    let cases = [
        (true, json!({ "kind": "ConfigMap" })),
        (false, json!({ "kind": "Service" })),
        (false, json!({ "kind": "ConfigMap", "group": "core" })),
        (false, json!({ "kind": "ConfigMap", "resource": "configmaps" })),
        (false, json!({ "kind": "ConfigMap", "version": "v1" })),
        (false, json!({ "kind": "ConfigMap", "identityHash": "abc123" })),
        (true, json!({ "resource": "configmaps", "version": "v1" })),
        (false, json!({ "resource": "configmaps" })),
        (true, json!({ "group": group, "resource": "things", "version": "v1" })),
        (false, json!({ "group": group, "version": "v1" })),
        (false, json!({ "group": group, "resource": "things" })),
        (true, json!({ "group": group, "resource": "things", "version": "v1", "identityHash": "abc123" })),
        (false, json!({ "resource": "things", "version": "v1", "identityHash": "abc123" })),
        (false, json!({ "group": group, "version": "v1", "identityHash": "abc123" })),
        (false, json!({ "group": group, "resource": "things", "identityHash": "abc123" })),
        (false, json!({ "resource": "things", "version": "v1", "syncStatus": true })),
        (true, json!({ "resource": "things", "version": "v1", "syncStatus": true, "watch": { "byOwner": {} } })),
        (true, json!({ "origin": "kcp", "resource": "things", "version": "v1", "syncStatus": true })),
        (false, json!({ "kind": "Secret", "cleanupPolicy": "MatchOrigin" })),
        (true, json!({ "kind": "Secret", "cleanupPolicy": "MatchOrigin", "watch": { "byOwner": {} } })),
        (true, json!({ "origin": "kcp", "kind": "Secret", "cleanupPolicy": "MatchOrigin" })),
        (false, json!({ "kind": "Secret", "cleanup": true, "cleanupPolicy": "Orphan" })),
        (true, json!({ "kind": "Secret", "cleanup": true, "cleanupPolicy": "OnPrimaryDeletion" })),
        (true, json!({ "kind": "Secret", "cleanup": false, "cleanupPolicy": "Orphan" })),
        (false, json!({ "kind": "Secret", "cleanupPolicy": "" })),
        (false, json!({ "kind": "Secret", "cleanupPolicy": "Never" })),
    ];
    for (number, (valid, mut related)) in cases.into_iter().enumerate() {
        if related["origin"].is_null() {
            related["origin"] = json!("service");
        }
        related["identifier"] = json!("");
        related["object"] = json!({});
        let spec = json!({ "resource": { "apiGroup": "", "kind": "" }, "related": [related] });
        let answer = suite.publish(&format!("Case{number}"), spec.clone()).await;
        ensure!(answer.is_ok() == valid, "{spec}: {answer:?}");
    }
    Ok(())
}

/// A related resource that is found by a field of its primary.
fn reference(identifier: &str, origin: &str, kind: &str, path: &str) -> Value {
    json!({
        "identifier": identifier,
        "origin": origin,
        "kind": kind,
        "object": {
            "reference": { "path": format!("{path}.name") },
            "namespace": { "reference": { "path": format!("{path}.namespace") } },
        },
    })
}

/// Waits until the export lists schemas of these resources and no others, and returns their names.
async fn exported(stage: &Stage, resources: &[&str]) -> anyhow::Result<Vec<String>> {
    let what = format!("the export lists {resources:?}");
    stage
        .eventually(&what, async || {
            let names = schemas(stage).await?;
            let found: Vec<_> = names.iter().map(|name| name.split('.').nth(1).unwrap_or_default()).collect();
            ensure!(found == resources, "it lists {names:?}");
            Ok(names)
        })
        .await
}

/// Claims for all objects of kinds of the core group.
fn claimed(resources: &[&str]) -> Value {
    resources.iter().map(|resource| json!({ "resource": resource, "all": true })).collect()
}

async fn claims_become(stage: &Stage, resources: &[&str]) -> anyhow::Result<()> {
    stage
        .eventually(&format!("the export claims {resources:?}"), async || {
            let claims = stage.export().await?["spec"]["permissionClaims"].clone();
            ensure!(claims == claimed(resources), "it claims {claims}");
            Ok(())
        })
        .await
}

async fn edit_export(stage: &Stage, spec: Value) -> anyhow::Result<()> {
    let patch = json!({ "spec": spec });
    stage.provider.client.merge_patch(&kinds::kcp(&API_EXPORT), None, stage.export_name(), &patch).await?;
    Ok(())
}

/// The names of all schemas that carry the label of the stage's agent.
async fn own_schemas(stage: &Stage) -> anyhow::Result<Vec<String>> {
    let labels = ListOptions::labels(format!("{}={}", api::AGENT_NAME, stage.agent_name()));
    let all = stage.provider.client.list(&kinds::kcp(&API_RESOURCE_SCHEMA), None, &labels).await?;
    Ok(all.iter().filter_map(|schema| schema["metadata"]["name"].as_str().map(str::to_owned)).collect())
}

async fn schema_of(stage: &Stage, name: &str) -> anyhow::Result<Value> {
    let schema = stage.provider.client.get(&kinds::kcp(&API_RESOURCE_SCHEMA), None, name).await?;
    schema.with_context(|| format!("the schema {name} does not exist"))
}

/// What a plain HTTP server answers.
async fn get(address: &str, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
