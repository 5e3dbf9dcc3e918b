//! A changed CRD reaches consumers only if it harms none of them, or if somebody has approved it.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, shown};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{binary, kinds};
use carrick_syncagent::api::{APPROVED_SCHEMA, ROLLED_BACK};
use serde_json::{Value, json};
use tokio::process::Command;

/// Waits until the export lists this schema and no other.
async fn exports(stage: &Stage, schema: &str) -> anyhow::Result<()> {
    stage
        .eventually(&format!("the export lists {schema} only"), async || {
            let export = stage.export().await?;
            ensure!(export["spec"]["latestResourceSchemas"] == json!([schema]), "it is {}", shown(&export));
            Ok(())
        })
        .await
}

/// Changes the schema of one field of the spec.
async fn change(stage: &Stage, field: &str, schema: &Value) -> anyhow::Result<()> {
    let crd = format!("buckets.{}", stage.group);
    let mut changed = stage.service.get(&kinds::crds(), None, &crd).await?.context("the CRD is gone")?;
    let properties = &mut changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    properties["spec"]["properties"][field] = schema.clone();
    let patch = json!({ "spec": { "versions": changed["spec"]["versions"] } });
    stage.service.merge_patch(&kinds::crds(), None, &crd, &patch).await?;
    Ok(())
}

/// The PublishedResource once it is so.
async fn published(stage: &Stage, what: &str, is_so: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    let name = stage.published_name("Bucket");
    stage.object(what, (&stage.service, &kinds::published_resources(), None, &name), is_so).await
}

/// Name of the schema that represents the kind.
fn named(published: &Value) -> String {
    published["status"]["resourceSchemaName"].as_str().unwrap_or_default().to_owned()
}

/// Name of the schema that is held back, and everything that is said about it.
fn held(published: &Value) -> Option<(String, String)> {
    let told = condition(published, "SchemaHeld");
    let message = told["message"].as_str().filter(|_| told["status"] == "True")?;
    let name = message.strip_prefix("APIResourceSchema ")?.split(' ').next()?;
    Some((name.to_owned(), message.to_owned()))
}

/// Runs `carrick` with the flags of the stage's agent.
pub(super) async fn carrick(stage: &Stage, arguments: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
    let folder = Scratch::new()?;
    let service = folder.write("service.kubeconfig", &stage.world.service_kubeconfig(User::Admin))?;
    let kcp = folder.write("kcp.kubeconfig", &stage.world.kcp_kubeconfig(User::Admin, &stage.provider.path))?;
    let output = Command::new(binary::carrick().await?)
        .args(arguments)
        .arg(format!("--kubeconfig={}", service.display()))
        .arg(format!("--kcp-kubeconfig={}", kcp.display()))
        .arg(format!("--apiexportendpointslice-ref={}", stage.export_name()))
        .arg(format!("--published-resource-selector={}", stage.selector()))
        // Another stage of this world may have an agent in a namespace of its own.
        .arg(format!("--namespace={}", stage.agent_namespace()))
        .output()
        .await?;
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    Ok((output.status.code(), told))
}

/// A stage behind a gate with two orders, of which one is large.
async fn gated(world: Arc<dyn World>, updates: &str) -> anyhow::Result<Stage> {
    let stage = Stage::set(world).await?;
    let name = stage.published_name("Bucket");
    let patch = json!({ "spec": { "schemaUpdates": updates } });
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
    Ok(stage)
}

async fn orders(stage: &Stage) -> anyhow::Result<()> {
    for (team, name, size) in [(&stage.team_a, "small", 1), (&stage.team_b, "large", 9)] {
        stage.order(team, name, json!({ "size": size })).await?;
        stage.copy_is("the copy is there", team, name, |_| true).await?;
    }
    Ok(())
}

pub(super) async fn a_schema_that_harms_orders_is_held_back_until_it_is_approved(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = gated(world, "Compatible").await?;
    let agent = stage.start_agent()?;
    let first = named(&published(&stage, "it is published", |it| !named(it).is_empty()).await?);
    exports(&stage, &first).await?;
    orders(&stage).await?;

    // What harms nobody passes by itself.
    change(&stage, "color", &json!({ "type": "string" })).await?;
    let second = named(&published(&stage, "a new field passes", |it| named(it) != first).await?);
    exports(&stage, &second).await?;

    change(&stage, "size", &json!({ "type": "integer", "maximum": 5 })).await?;
    let held_now = published(&stage, "the schema is held back", |it| held(it).is_some()).await?;
    let (third, told) = held(&held_now).context("it is not held")?;
    ensure!(named(&held_now) == second, "{}", shown(&held_now));
    for words in [
        "v1.spec.size: maximum 5 is new (tightening)",
        "1 of 2 orders in 1 workspace would be refused",
        "default/large",
    ] {
        ensure!(told.contains(words), "{words:?} is not in {told}");
    }
    exports(&stage, &second).await?;
    let schemas = kinds::kcp(&carrick_kcp::kinds::API_RESOURCE_SCHEMA);
    ensure!(stage.provider.client.get(&schemas, None, &third).await?.is_some(), "it does not exist");
    let (code, told) = carrick(&stage, &["diff", "--live"]).await?;
    ensure!(code == Some(3) && told.contains("default/large"), "{code:?} {told}");

    // An approval is for one schema: after another change it counts for nothing.
    change(&stage, "size", &json!({ "type": "integer", "maximum": 4 })).await?;
    let fourth =
        published(&stage, "the next one is held back", |it| held(it).is_some_and(|(name, _)| name != third)).await?;
    let (fourth, _) = held(&fourth).context("it is not held")?;
    let name = stage.published_name("Bucket");
    let stale = json!({ "metadata": { "annotations": { APPROVED_SCHEMA: third } } });
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &stale).await?;
    // Another harmless write shows that the agent has seen the annotation and kept the gate closed.
    change(&stage, "shade", &json!({ "type": "string" })).await?;
    let fifth =
        published(&stage, "the gate stays closed", |it| held(it).is_some_and(|(name, _)| name != fourth)).await?;
    let (fifth, _) = held(&fifth).context("it is not held")?;
    exports(&stage, &second).await?;

    let (code, told) = carrick(&stage, &["approve", &name, "--yes"]).await?;
    ensure!(code == Some(0) && told.contains("maximum 4 is new"), "{code:?} {told}");
    let open = |it: &Value| named(it) == fifth && condition(it, "SchemaHeld")["status"] == "False";
    published(&stage, "it is exported", open).await?;
    exports(&stage, &fifth).await?;

    // And back.
    let (code, told) = carrick(&stage, &["rollback", &name, "--yes", "--to", &second]).await?;
    ensure!(code == Some(0), "{code:?} {told}");
    exports(&stage, &second).await?;
    published(&stage, "the newer one is held back", |it| named(it) == second && held(it).is_some()).await?;
    agent.stop().await?;

    // A new agent finds everything as it is.
    let agent = stage.start_agent()?;
    stage.order(&stage.team_a, "next", json!({ "size": 3, "color": "blue" })).await?;
    stage
        .copy_is("orders of the older schema are placed", &stage.team_a, "next", |copy| copy["spec"]["size"] == 3)
        .await?;
    exports(&stage, &second).await?;
    agent.stop().await
}

pub(super) async fn behind_a_manual_gate_nothing_changes_unasked(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = gated(world, "Manual").await?;
    let agent = stage.start_agent()?;
    let first = named(&published(&stage, "it is published", |it| !named(it).is_empty()).await?);
    exports(&stage, &first).await?;
    change(&stage, "color", &json!({ "type": "string" })).await?;
    let waiting = published(&stage, "the schema is held back", |it| held(it).is_some()).await?;
    let (second, told) = held(&waiting).context("it is not held")?;
    ensure!(named(&waiting) == first && told.contains("no harmful change"), "{told}");
    exports(&stage, &first).await?;

    let name = stage.published_name("Bucket");
    let approved = json!({ "metadata": { "annotations": { APPROVED_SCHEMA: second } } });
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &approved).await?;
    published(&stage, "it is exported", |it| named(it) == second).await?;
    exports(&stage, &second).await?;

    // Without a gate, everything passes as ever.
    let open = json!({ "spec": { "schemaUpdates": "Always" } });
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &open).await?;
    change(&stage, "size", &json!({ "type": "string" })).await?;
    let third = named(&published(&stage, "it passes", |it| named(it) != second).await?);
    exports(&stage, &third).await?;
    agent.stop().await
}

/// What can be seen from outside while a schema is held back, approved and taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Created,
    Held,
    Exported,
    Named,
    TakenBack,
}

/// Names of the schemas that there are.
async fn schemas(stage: &Stage) -> anyhow::Result<Vec<String>> {
    let schemas = kinds::kcp(&carrick_kcp::kinds::API_RESOURCE_SCHEMA);
    let all = stage.provider.client.list(&schemas, None, &ListOptions::default()).await?;
    Ok(all.iter().filter_map(|it| it["metadata"]["name"].as_str().map(str::to_owned)).collect())
}

pub(super) async fn a_crash_at_any_visible_step_of_the_gate_is_made_good(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = gated(world, "Compatible").await?;
    let mut agent = stage.start_agent()?;
    let first = named(&published(&stage, "it is published", |it| !named(it).is_empty()).await?);
    exports(&stage, &first).await?;
    orders(&stage).await?;
    let name = stage.published_name("Bucket");
    let uids = async || -> anyhow::Result<Vec<Value>> {
        let mut uids = Vec::new();
        for (team, name) in [(&stage.team_a, "small"), (&stage.team_b, "large")] {
            let copy = stage.copy_is("the copy can be read", team, name, |_| true).await?;
            uids.push(copy["metadata"]["uid"].clone());
        }
        Ok(uids)
    };
    let before = uids().await?;
    let all = [Sight::Created, Sight::Held, Sight::Exported, Sight::Named, Sight::TakenBack];
    for (crash_at, maximum) in all.into_iter().zip(3..) {
        let mut crash = |sight: Sight| -> anyhow::Result<()> {
            if sight == crash_at {
                std::mem::replace(&mut agent, stage.start_agent()?).crash();
            }
            Ok(())
        };
        let known = schemas(&stage).await?;
        change(&stage, "size", &json!({ "type": "integer", "maximum": maximum })).await?;
        stage
            .eventually("the next schema is there", async || {
                ensure!(schemas(&stage).await?.len() > known.len(), "there is none");
                Ok(())
            })
            .await?;
        crash(Sight::Created)?;
        let is_new = |it: &Value| held(it).is_some_and(|(name, _)| !known.contains(&name));
        let waiting = published(&stage, "it is held back", is_new).await?;
        crash(Sight::Held)?;
        let (next, _) = held(&waiting).context("it is not held")?;
        exports(&stage, &first).await?;

        let (code, told) = carrick(&stage, &["approve", &name, "--yes"]).await?;
        ensure!(code == Some(0), "{crash_at:?}: {code:?} {told}");
        exports(&stage, &next).await?;
        crash(Sight::Exported)?;
        let open = |it: &Value| named(it) == next && condition(it, "SchemaHeld")["status"] == "False";
        published(&stage, "it is exported", open).await?;
        crash(Sight::Named)?;

        let (code, told) = carrick(&stage, &["rollback", &name, "--yes", "--to", &first]).await?;
        ensure!(code == Some(0), "{crash_at:?}: {code:?} {told}");
        exports(&stage, &first).await?;
        crash(Sight::TakenBack)?;
        published(&stage, "it is held back again", |it| named(it) == first && held(it).is_some()).await?;
        exports(&stage, &first).await?;
    }
    ensure!(uids().await? == before, "a copy was made anew");
    agent.stop().await
}

/// The reference agent knows no gate: it names every new schema in the status and in the export. Here its writes are played, because it
/// cannot be had as a module.
pub(super) async fn what_the_reference_agent_exports_meanwhile_is_where_this_one_goes_on(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = gated(world, "Compatible").await?;
    let agent = stage.start_agent()?;
    let first = named(&published(&stage, "it is published", |it| !named(it).is_empty()).await?);
    exports(&stage, &first).await?;
    orders(&stage).await?;
    change(&stage, "size", &json!({ "type": "integer", "maximum": 20 })).await?;
    let waiting = published(&stage, "the schema is held back", |it| held(it).is_some()).await?;
    let (second, _) = held(&waiting).context("it is not held")?;
    let before = [(&stage.team_a, "small"), (&stage.team_b, "large")];
    let mut copies = Vec::new();
    for (team, name) in before {
        // An API server refuses reads for a moment after a CRD has changed.
        copies.push(stage.copy_is("the copy can be read", team, name, |_| true).await?);
    }
    agent.stop().await?;

    let name = stage.published_name("Bucket");
    let status = json!({ "status": { "resourceSchemaName": second } });
    stage.service.merge_patch_status(&kinds::published_resources(), None, &name, &status).await?;
    let listed = json!({ "spec": { "latestResourceSchemas": [second] } });
    let export = kinds::kcp(&carrick_kcp::kinds::API_EXPORT);
    stage.provider.client.merge_patch(&export, None, stage.export_name(), &listed).await?;
    stage.order(&stage.team_a, "meanwhile", json!({ "size": 12 })).await?;

    let agent = stage.start_agent()?;
    stage
        .copy_is("orders of that time are placed", &stage.team_a, "meanwhile", |copy| copy["spec"]["size"] == 12)
        .await?;
    let open = |it: &Value| named(it) == second && condition(it, "SchemaHeld")["status"] == "False";
    published(&stage, "nothing is held back any more", open).await?;
    exports(&stage, &second).await?;
    for ((team, name), before) in before.into_iter().zip(copies) {
        let now = stage.copy_is("the copy is still there", team, name, |_| true).await?;
        ensure!(now["metadata"]["uid"] == before["metadata"]["uid"], "another copy: {}", shown(&now));
        ensure!(now["spec"] == before["spec"], "it has changed: {}", shown(&now));
    }
    // And the gate is closed again for what comes next.
    change(&stage, "size", &json!({ "type": "integer", "maximum": 3 })).await?;
    published(&stage, "the next one is held back", |it| held(it).is_some() && named(it) == second).await?;
    agent.stop().await
}

pub(super) async fn after_a_rollback_copies_keep_what_kcp_does_not_show_any_more(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    for apply in [false, true] {
        rolled_back(world.clone(), apply).await.with_context(|| format!("apply is {apply}"))?;
    }
    Ok(())
}

async fn rolled_back(world: Arc<dyn World>, apply: bool) -> anyhow::Result<()> {
    let stage = gated(world, "Compatible").await?;
    let start = || Agent::start(&stage, Setup { probes: true, apply, ..Setup::default() });
    let agent = start()?;
    let first = named(&published(&stage, "it is published", |it| !named(it).is_empty()).await?);
    change(&stage, "color", &json!({ "type": "string" })).await?;
    let second = named(&published(&stage, "a new field passes", |it| named(it) != first).await?);
    exports(&stage, &second).await?;
    let orders = [(&stage.team_a, "one"), (&stage.team_b, "two")];
    let colored = |copy: &Value| copy["spec"]["color"] == "blue";
    for (team, name) in orders {
        stage.order(team, name, json!({ "size": 1 })).await?;
        // kcp serves the field a moment after the schema was exported.
        let patch = json!({ "spec": { "color": "blue" } });
        stage
            .eventually("kcp knows the field", async || {
                let source = team.client.merge_patch(&stage.buckets(), Some(NAMESPACE), name, &patch).await?;
                ensure!(colored(&source), "{}", shown(&source));
                Ok(())
            })
            .await?;
        stage.copy_is("the copy has it", team, name, colored).await?;
    }

    // Once while an agent runs, and once before it starts.
    let name = stage.published_name("Bucket");
    let (code, told) = carrick(&stage, &["rollback", &name, "--yes", "--to", &first]).await?;
    ensure!(code == Some(0) && told.contains("keep what orders have"), "{code:?} {told}");
    exports(&stage, &first).await?;
    for (team, name) in orders {
        stage.source_is("kcp does not show the field", team, name, |it| it["spec"]["color"].is_null()).await?;
    }
    agent.stop().await?;
    let agent = start()?;
    for (team, name) in orders {
        stage.copy_is("its copy keeps it", team, name, colored).await?;
    }
    published(&stage, "the loss is told", |it| {
        let told = &condition(it, "ObjectsSynced")["message"];
        told.as_str().is_some_and(|told| told.contains("kcp does not show spec.color of this order"))
    })
    .await?;
    for (team, name) in orders {
        let copy = stage.copy_is("its copy keeps it", team, name, colored).await?;
        stage.operator_reports(&copy, json!({ "url": "here" })).await?;
        stage.source_is("the status returns", team, name, |it| it["status"]["url"] == "here").await?;
        stage.copy_is("its copy still keeps it", team, name, colored).await?;
    }
    stage.order(&stage.team_a, "late", json!({ "size": 3 })).await?;
    stage.copy_is("others are served", &stage.team_a, "late", |copy| copy["spec"]["size"] == 3).await?;

    // Whoever changes the order loses the field in kcp, and so does the copy.
    stage.reorder(&stage.team_a, "one", json!({ "size": 2 })).await?;
    let changed = |copy: &Value| copy["spec"]["size"] == 2 && copy["spec"]["color"].is_null();
    stage.copy_is("a change arrives as it is in kcp", &stage.team_a, "one", changed).await?;
    let (code, told) = carrick(&stage, &["approve", &name, "--yes"]).await?;
    ensure!(code == Some(0), "{code:?} {told}");
    exports(&stage, &second).await?;
    stage.order(&stage.team_b, "last", json!({ "size": 4 })).await?;
    stage.copy_is("the newer schema is at work", &stage.team_b, "last", |copy| copy["spec"]["size"] == 4).await?;
    stage.copy_is("nothing was lost", &stage.team_b, "two", colored).await?;
    // Its status was written meanwhile, which has dropped the field from kcp for good: somebody has to say that the copy may follow.
    let released = json!({ "metadata": { "annotations": { ROLLED_BACK: null } } });
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &released).await?;
    stage.copy_is("the copy follows", &stage.team_b, "two", |copy| copy["spec"]["color"].is_null()).await?;
    agent.stop().await
}
