//! From a CRD on the service cluster to a kind in consumers' workspaces.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::discovery::find_kind;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::{API_BINDING_V2, API_RESOURCE_SCHEMA};
use carrick_syncagent::api;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

/// The name the reference agent gives to the schema of its CronTab fixture.
const CRONTAB_SCHEMA: &str = "v0595d221.crontabs.example.com";

pub(super) async fn a_crd_is_published_under_its_well_known_name_and_can_be_bound(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare_with_group(world, Some("example.com")).await?;
    stage.install_crd(&fixtures::crontab("example.com")).await?;
    stage.create_export().await?;
    stage.publish("CronTab", json!({})).await?;
    let agent = stage.start_agent()?;

    let name = stage.published_name("CronTab");
    stage
        .object(
            "the PublishedResource names its schema",
            (&stage.service, &kinds::published_resources(), None, &name),
            |published| published["status"]["resourceSchemaName"] == CRONTAB_SCHEMA,
        )
        .await?;
    let schemas = kinds::kcp(&API_RESOURCE_SCHEMA);
    let schema = stage.provider.client.get(&schemas, None, CRONTAB_SCHEMA).await?.context("the schema is missing")?;
    let metadata = &schema["metadata"];
    ensure!(metadata["labels"][api::AGENT_NAME] == stage.agent_name(), "{}", shown(&schema));
    ensure!(metadata["annotations"][api::AGENT_NAME] == stage.agent_name(), "{}", shown(&schema));
    ensure!(metadata["annotations"][api::SOURCE_GENERATION] == "1", "{}", shown(&schema));
    exports_exactly(&stage, CRONTAB_SCHEMA).await?;
    let claims = stage.export().await?["spec"]["permissionClaims"].clone();
    ensure!(claims == json!([{ "resource": "events", "all": true }]), "{claims}");

    stage.bind(&stage.team_a).await?;
    let at = (&stage.team_a.client, &kinds::kcp(&API_BINDING_V2), None, stage.export_name());
    let binding = stage
        .object("the binding serves CronTabs", at, |binding| binding["status"]["boundResources"][0].is_object())
        .await?;
    let bound = &binding["status"]["boundResources"][0];
    ensure!(bound["resource"] == "crontabs" && bound["schema"]["name"] == CRONTAB_SCHEMA, "{bound}");
    let found = stage
        .eventually("discovery of team-a lists CronTabs", async || {
            find_kind(&stage.team_a.client, "example.com", "CronTab").await?.context("it does not")
        })
        .await?;
    ensure!(found.plural == "crontabs" && found.short_names == ["ct"] && found.namespaced, "{found:?}");
    agent.stop().await
}

/// kube-apiserver answers 100 requests at a time on one connection, and every watch is one.
pub(super) async fn more_kinds_than_a_connection_carries_watches_are_published_and_served(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    const KINDS: usize = 110;
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    let install = |number: usize| {
        let (stage, kind) = (&stage, format!("Thing{number}"));
        async move {
            stage.install_crd(&fixtures::crd(&stage.group, &kind)).await?;
            stage.publish(&kind, json!({})).await.map(drop)
        }
    };
    stream::iter(0..KINDS).map(install).buffer_unordered(8).try_collect::<()>().await?;
    // One by one: as long as there are more of them, it goes on.
    for wanted in 1..=KINDS + 1 {
        stage
            .eventually("all kinds are exported", async || {
                let listed = stage.export().await?["spec"]["latestResourceSchemas"].as_array().map_or(0, Vec::len);
                ensure!(listed >= wanted, "{listed} are");
                Ok(())
            })
            .await?;
    }
    for number in [0, KINDS / 2, KINDS - 1] {
        let (kind, name) = (fixtures::kind(&stage.group, &format!("Thing{number}")), format!("thing-{number}"));
        stage.order_kind(&kind, &stage.team_a, &name, json!({ "size": 1 })).await?;
        stage.copy_of_kind_is("its order is placed", (&kind, &stage.team_a, &name), |_| true).await?;
    }
    agent.stop().await
}

pub(super) async fn a_changed_crd_yields_a_new_schema_beside_the_old_one(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    let old = schema_name(&stage, "").await?;
    exports_exactly(&stage, &old).await?;
    stage.order(&stage.team_a, "before", json!({ "size": 1 })).await?;
    stage.copy_is("the first copy is there", &stage.team_a, "before", |_| true).await?;

    let crd = format!("buckets.{}", stage.group);
    let mut changed = stage.service.get(&kinds::crds(), None, &crd).await?.context("the CRD is gone")?;
    let properties = &mut changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    properties["spec"]["properties"]["color"] = json!({ "type": "string" });
    stage.service.merge_patch(&kinds::crds(), None, &crd, &json!({ "spec": changed["spec"] })).await?;

    let new = schema_name(&stage, &old).await?;
    exports_exactly(&stage, &new).await?;
    let schemas = kinds::kcp(&API_RESOURCE_SCHEMA);
    for name in [&old, &new] {
        ensure!(stage.provider.client.get(&schemas, None, name).await?.is_some(), "schema {name} is missing");
    }

    // Consumers who were bound before get the new field, and it travels.
    stage
        .eventually("team-a can set the new field", async || {
            let after = stage.reorder(&stage.team_a, "before", json!({ "color": "blue" })).await?;
            ensure!(after["spec"]["color"] == "blue", "it is {}", shown(&after));
            Ok(())
        })
        .await?;
    stage
        .copy_is("the new field arrives", &stage.team_a, "before", |copy| {
            copy["spec"] == json!({ "size": 1, "color": "blue" })
        })
        .await?;
    agent.stop().await
}

pub(super) async fn kinds_that_come_with_kubernetes_are_published_without_a_crd(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.create_export().await?;
    stage.bind(&stage.team_a).await?;
    let group = stage.group.as_str();
    for (name, api_group, kind, projection) in [
        ("role", "rbac.authorization.k8s.io", "Role", json!({ "group": group })),
        ("config", "", "ConfigMap", json!({ "group": group, "kind": "KubeConfigMap" })),
    ] {
        let published = json!({
            "apiVersion": format!("{}/{}", api::GROUP, api::VERSION),
            "kind": "PublishedResource",
            "metadata": { "name": format!("{name}-{}", stage.id), "labels": { "stage": stage.id } },
            "spec": { "resource": { "apiGroup": api_group, "kind": kind }, "projection": projection },
        });
        stage.service.create(&kinds::published_resources(), None, &published).await?;
    }
    let agent = stage.start_agent()?;
    stage
        .eventually("the export lists both kinds", async || {
            let export = stage.export().await?;
            let names = export["spec"]["latestResourceSchemas"].as_array().cloned().unwrap_or_default();
            let ends = |name: &Value, end: &str| name.as_str().is_some_and(|name| name.ends_with(end));
            for end in [format!(".roles.{group}"), format!(".kubeconfigmaps.{group}")] {
                ensure!(names.iter().any(|name| ends(name, &end)), "{end} is not in {names:?}");
            }
            Ok(())
        })
        .await?;

    let kind = carrick_client::Resource::namespaced(group, "v1", "KubeConfigMap", "kubeconfigmaps");
    let order = json!({
        "apiVersion": kind.api_version(), "kind": "KubeConfigMap",
        "metadata": { "name": "settings", "namespace": NAMESPACE }, "data": { "colour": "blue" },
    });
    let team = &stage.team_a;
    stage
        .eventually("a KubeConfigMap can be created", async || {
            Ok(team.client.create(&kind, Some(NAMESPACE), &order).await?)
        })
        .await?;
    let config_maps = carrick_client::Resource::namespaced("", "v1", "ConfigMap", "configmaps");
    let copy = stage
        .copy_of_kind_is("the ConfigMap is there", (&config_maps, team, "settings"), |copy| {
            copy["data"] == json!({ "colour": "blue" })
        })
        .await?;
    ensure!(copy["apiVersion"] == "v1", "{}", shown(&copy));
    agent.stop().await
}

pub(super) async fn a_schema_of_another_kcp_is_not_exported(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    // The PublishedResource was an agent's before, for another group in another kcp.
    let name = stage.published_name("Bucket");
    let status = json!({ "status": { "resourceSchemaName": format!("v1.buckets.old.{}", stage.group) } });
    stage.service.merge_patch_status(&kinds::published_resources(), None, &name, &status).await?;
    let agent = stage.start_agent()?;
    // One schema that does not exist would spoil the export for every consumer.
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", &stage.team_a, "bucket", |_| true).await?;
    let now = schema_name(&stage, "").await?;
    exports_exactly(&stage, &now).await?;
    agent.stop().await
}

/// CRDs of Cluster API have such columns. Kubernetes takes them, kcp does not.
pub(super) async fn a_crd_with_two_columns_of_one_name_is_published(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let column = |name: &str, path: &str| json!({ "name": name, "type": "string", "jsonPath": path });
    let mut crd = fixtures::crd(&stage.group, "Bucket");
    crd["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([column("Region", ".spec.region"), column("Owner", ".spec.owner"), column("Region", ".status.region")]);
    stage.install_crd(&crd).await?;
    stage.create_export().await?;
    stage.bind(&stage.team_a).await?;
    stage.publish("Bucket", json!({})).await?;
    let agent = stage.start_agent()?;
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is there", &stage.team_a, "bucket", |_| true).await?;
    let name = schema_name(&stage, "").await?;
    let schemas = kinds::kcp(&API_RESOURCE_SCHEMA);
    let schema = stage.provider.client.get(&schemas, None, &name).await?.context("the schema is gone")?;
    let columns = &schema["spec"]["versions"][0]["additionalPrinterColumns"];
    ensure!(*columns == json!([column("Region", ".spec.region"), column("Owner", ".spec.owner")]), "{columns}");
    agent.stop().await
}

/// The schema that represents Buckets, once it is another one than `other`.
async fn schema_name(stage: &Stage, other: &str) -> anyhow::Result<String> {
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let published = stage
        .object("the PublishedResource names its schema", at, |published| {
            published["status"]["resourceSchemaName"].as_str().is_some_and(|name| !name.is_empty() && name != other)
        })
        .await?;
    Ok(published["status"]["resourceSchemaName"].as_str().unwrap_or_default().to_owned())
}

/// Waits until the export lists this schema and no other.
async fn exports_exactly(stage: &Stage, schema: &str) -> anyhow::Result<Value> {
    stage
        .eventually(&format!("the export lists {schema} only"), async || {
            let export = stage.export().await?;
            ensure!(export["spec"]["latestResourceSchemas"] == json!([schema]), "it is {}", shown(&export));
            Ok(export)
        })
        .await
}
