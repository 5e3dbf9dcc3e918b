//! PublishedResources with mistakes in them.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use serde_json::{Value, json};

use super::related::credentials;

/// A kind for each mistake, and the rules with the mistake.
fn mistakes() -> [(&'static str, Value); 3] {
    [
        ("Nowhere", json!({})),
        ("Queue", json!({ "naming": { "name": "{{ .Object.metadata.name " } })),
        ("Topic", json!({ "mutation": { "spec": [{ "cel": { "path": "spec.size", "expression": "value + + )" } }] } })),
    ]
}

async fn stage_with_mistakes(world: Arc<dyn World>) -> anyhow::Result<Stage> {
    let stage = Stage::bare(world).await?;
    for kind in ["Bucket", "Queue", "Topic"] {
        stage.install_crd(&fixtures::crd(&stage.group, kind)).await?;
    }
    stage.create_export().await?;
    // The broken ones are there first.
    for (kind, spec) in mistakes() {
        stage.publish(kind, spec).await?;
    }
    stage.publish("Bucket", json!({})).await?;
    futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
    Ok(stage)
}

/// Waits until a PublishedResource says whether its rules are valid, and returns the condition.
async fn rules_valid(stage: &Stage, kind: &str, valid: bool) -> anyhow::Result<Value> {
    let name = stage.published_name(kind);
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let status = if valid { "True" } else { "False" };
    let published = stage
        .object(&format!("{name} says that RulesValid is {status}"), at, |published| {
            let condition = condition(published, "RulesValid");
            condition["status"] == status && condition["observedGeneration"] == published["metadata"]["generation"]
        })
        .await?;
    Ok(condition(&published, "RulesValid").clone())
}

pub(super) async fn a_broken_published_resource_harms_only_itself_and_says_so(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = stage_with_mistakes(world).await?;
    let agent = stage.start_agent()?;
    for (kind, reason, word) in [
        ("Nowhere", "KindNotFound", "Nowhere"),
        ("Queue", "InvalidRules", "naming.name"),
        ("Topic", "InvalidRules", "mutation.spec"),
    ] {
        let condition = rules_valid(&stage, kind, false).await?;
        let message = condition["message"].as_str().unwrap_or_default();
        ensure!(condition["reason"] == reason && message.contains(word), "{kind}: {condition}");
    }
    rules_valid(&stage, "Bucket", true).await?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the good one works", team, "bucket", |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("its status returns", team, "bucket", |s| s["status"]["url"] == "here").await?;
    agent.stop().await
}

pub(super) async fn rules_that_are_not_valid_are_not_offered_to_consumers(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    for kind in ["Bucket", "Queue"] {
        stage.install_crd(&fixtures::crd(&stage.group, kind)).await?;
    }
    stage.create_export().await?;
    // Whoever accepted this claim would have given his Secrets away for nothing.
    let broken = json!({ "naming": { "name": "{{ nonsense }}" }, "related": [credentials()] });
    stage.publish("Queue", broken.clone()).await?;
    stage.publish("Bucket", json!({})).await?;
    let agent = stage.start_agent()?;
    let refused = rules_valid(&stage, "Queue", false).await?;
    let message = refused["message"].as_str().unwrap_or_default();
    ensure!(message.contains("naming.name") && message.contains("correct it"), "{refused}");
    let name = stage.published_name("Queue");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let schema_published = |published: &Value, status: &str, reason: &str| {
        let condition = condition(published, "SchemaPublished");
        condition["status"] == status && condition["reason"] == reason
    };
    let published = stage
        .object("it says that it is not published", at, |it| schema_published(it, "False", "InvalidRules"))
        .await?;
    ensure!(published["status"]["resourceSchemaName"].as_str().unwrap_or_default().is_empty(), "{}", shown(&published));

    let lists = async |wanted: &[&str], claims: &[&str]| {
        stage
            .eventually(&format!("the export lists {wanted:?} and claims {claims:?}"), async || {
                let export = stage.export().await?;
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let schemas = export["spec"]["latestResourceSchemas"].as_array().into_iter().flatten().map(text);
                let schemas: Vec<String> =
                    schemas.map(|name| name.split('.').nth(1).unwrap_or_default().to_owned()).collect();
                let claimed = export["spec"]["permissionClaims"].as_array().into_iter().flatten();
                let claimed: Vec<String> = claimed.map(|claim| text(&claim["resource"])).collect();
                ensure!(schemas == wanted && claimed == claims, "it is {}", shown(&export));
                Ok(())
            })
            .await
    };
    lists(&["buckets"], &["events"]).await?;
    let all = carrick_client::ListOptions::default();
    let schemas = stage.provider.client.list(&kinds::kcp(&API_RESOURCE_SCHEMA), None, &all).await?;
    ensure!(schemas.len() == 1, "there are {}", json!(schemas));

    // Repaired it is offered, and what was offered once stays whatever becomes of the rules.
    let resources = kinds::published_resources();
    let set = async |naming: &str| {
        let patch = json!({ "spec": { "naming": { "name": naming } } });
        stage.service.merge_patch(&resources, None, &name, &patch).await
    };
    set("{{ .Object.metadata.name }}").await?;
    rules_valid(&stage, "Queue", true).await?;
    lists(&["buckets", "queues"], &["events", "namespaces", "secrets"]).await?;
    set("{{ nonsense }}").await?;
    rules_valid(&stage, "Queue", false).await?;
    agent.stop().await?;
    let agent = stage.start_agent()?;
    stage.bind(&stage.team_a).await?;
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the other kind works", &stage.team_a, "bucket", |_| true).await?;
    lists(&["buckets", "queues"], &["events", "namespaces", "secrets"]).await?;
    stage.object("it stays published", at, |it| schema_published(it, "True", "Published")).await?;
    agent.stop().await
}

pub(super) async fn rules_that_name_what_cannot_be_there_say_so(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    let related = |identifier: &str, origin: &str, group: &str, resource: &str| {
        json!({
            "identifier": identifier, "origin": origin, "group": group, "version": "v1", "resource": resource,
            "object": { "template": { "template": "{{ .Object.metadata.name }}" } },
        })
    };
    let rules = json!({
        "naming": { "name": "{{ .Object.spec.sise }}-{{ .Object.metadata.name }}", "namespace": "here" },
        "related": [
            related("unserved", "service", &stage.group, "nowheres"),
            related("foreign", "kcp", "elsewhere.example.org", "things"),
        ],
    });
    stage.publish("Bucket", rules).await?;
    let agent = stage.start_agent()?;
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    let wanted = [
        "spec.naming.name: .Object.spec.sise cannot exist, because spec has no field sise",
        "spec.related[0]: the service cluster serves no nowheres.",
        "spec.related[0]: kcp lets nobody claim nowheres.",
        "spec.related[1]: kcp lets nobody claim things.elsewhere.example.org without the identity",
    ];
    let told = stage
        .object("it says what cannot work", at, |published| {
            let told = condition(published, "RulesPlausible");
            let message = told["message"].as_str().unwrap_or_default();
            told["status"] == "False" && message.contains("serves no nowheres") && message.contains("claim things")
        })
        .await?;
    let message = condition(&told, "RulesPlausible")["message"].as_str().unwrap_or_default();
    ensure!(wanted.iter().all(|wanted| message.contains(wanted)), "{message}");
    // The export is not spoiled by claims that kcp refuses.
    stage.object("it is published", at, |published| condition(published, "ExportUpdated")["status"] == "True").await?;
    // What is put right is not told any more.
    stage.install_crd(&fixtures::crd(&stage.group, "Nowhere")).await?;
    let mut served = related("served", "service", &stage.group, "nowheres");
    served["access"] = "Owned".into();
    let fixed = json!({ "spec": {
        "naming": { "name": "{{ .Object.spec.size }}-{{ .Object.metadata.name }}" },
        "related": [served],
    }});
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &fixed).await?;
    stage.publish("Nowhere", json!({ "synchronization": { "enabled": false } })).await?;
    stage
        .object("nothing is doubtful", at, |published| condition(published, "RulesPlausible")["status"] == "True")
        .await?;
    agent.stop().await
}

pub(super) async fn a_repaired_published_resource_works_without_a_restart(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = stage_with_mistakes(world).await?;
    let team = &stage.team_a;
    let agent = stage.start_agent()?;
    for (kind, _) in mistakes() {
        rules_valid(&stage, kind, false).await?;
    }

    let repair = async |kind: &str, patch: Value| {
        let name = stage.published_name(kind);
        stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await
    };
    stage.install_crd(&fixtures::crd(&stage.group, "Nowhere")).await?;
    repair("Queue", json!({ "spec": { "naming": { "name": "q-{{ .Object.metadata.name }}" } } })).await?;
    let fixed = json!([{ "cel": { "path": "spec.size", "expression": "self.spec.size * 2" } }]);
    repair("Topic", json!({ "spec": { "mutation": { "spec": fixed } } })).await?;
    for (kind, size) in [("Nowhere", 4), ("Queue", 4), ("Topic", 8)] {
        rules_valid(&stage, kind, true).await?;
        let resource = fixtures::kind(&stage.group, kind);
        stage.order_kind(&resource, team, "thing", json!({ "size": 4 })).await?;
        let what = format!("{kind} works");
        let sized = |copy: &Value| copy["spec"]["size"].as_f64() == Some(f64::from(size));
        let copy = stage.copy_of_kind_is(&what, (&resource, team, "thing"), sized).await?;
        ensure!(kind != "Queue" || copy["metadata"]["name"] == "q-thing", "{}", shown(&copy));
    }

    // Breaking it again leaves the last good rules at work.
    repair("Queue", json!({ "spec": { "naming": { "name": "{{ nonsense }}" } } })).await?;
    rules_valid(&stage, "Queue", false).await?;
    let queues = fixtures::kind(&stage.group, "Queue");
    stage.order_kind(&queues, team, "other", json!({ "size": 4 })).await?;
    let copy = stage.copy_of_kind_is("the old rules work", (&queues, team, "other"), |_| true).await?;
    ensure!(copy["metadata"]["name"] == "q-other", "{}", shown(&copy));
    let source = team.client.get(&queues, Some(NAMESPACE), "other").await?.context("the order is gone")?;
    ensure!(source["spec"]["size"] == 4, "{}", shown(&source));
    agent.stop().await
}

pub(super) async fn of_two_for_one_resource_the_first_is_published_and_the_other_says_so(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    let names = (stage.published_name("Bucket"), format!("second-{}", stage.id));
    let (first, second) = (names.0.as_str(), names.1.as_str());
    let resources = kinds::published_resources();
    let at = |name| (&stage.service, &resources, None, name);
    let settled = stage
        .object("the first one is published, exported and at work", at(first), |published| {
            ["RulesValid", "SchemaPublished", "ExportUpdated", "Syncing"]
                .iter()
                .all(|kind| condition(published, kind)["status"] == "True")
        })
        .await?;

    let rival = json!({
        "apiVersion": settled["apiVersion"],
        "kind": "PublishedResource",
        "metadata": { "name": second, "labels": { "stage": stage.id } },
        "spec": { "resource": settled["spec"]["resource"], "projection": { "scope": "Cluster" } },
    });
    stage.service.create(&resources, None, &rival).await?;
    let loser = stage
        .object("the second one names the first", at(second), |published| {
            condition(published, "RulesValid")["reason"] == "Conflict"
        })
        .await?;
    let message = condition(&loser, "RulesValid")["message"].as_str().unwrap_or_default().to_owned();
    ensure!(message.contains(first) && message.contains("spec.projection"), "{message}");
    ensure!(condition(&loser, "Syncing")["status"] == "False", "{}", shown(&loser));
    let export = stage.export().await?;
    ensure!(
        export["spec"]["latestResourceSchemas"] == json!([settled["status"]["resourceSchemaName"]]),
        "{}",
        shown(&export)
    );
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the first one goes on working", &stage.team_a, "bucket", |_| true).await?;

    // What the second one lacked was another name.
    let elsewhere = json!({ "spec": { "projection": { "plural": "vessels" } } });
    stage.service.merge_patch(&resources, None, second, &elsewhere).await?;
    stage
        .object("the second one is exported too", at(second), |published| {
            condition(published, "ExportUpdated")["status"] == "True"
        })
        .await?;
    let export = stage.export().await?;
    ensure!(export["spec"]["latestResourceSchemas"].as_array().is_some_and(|all| all.len() == 2), "{}", shown(&export));
    agent.stop().await
}
