//! Whatever was begun comes to an end: namespaces that go, copies that never were, rights that are small.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, ListOptions};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::fixtures::beside_names;
use carrick_e2e_stage::rights::{are_known, grant, kcp_rules, revoke, rule, service_rules};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, place, shown};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{fixtures, kinds};
use http::Request;
use serde_json::{Value, json};

use super::{is_free, publish, put, republish, same, warned};

/// What the controllers of a whole cluster do with a namespace that goes. An API server alone does not: there the scenario does it.
async fn carry_on(stage: &Stage, namespace: &Value) -> anyhow::Result<()> {
    let name = place(namespace).1;
    for kind in [stage.buckets(), kinds::secrets(), kinds::config_maps()] {
        for object in stage.service.list(&kind, Some(name), &ListOptions::default()).await? {
            if object["metadata"]["deletionTimestamp"].is_null() {
                match stage.service.delete(&kind, Some(name), place(&object).1, &DeleteOptions::default()).await {
                    Err(error) if !error.is_not_found() => return Err(error.into()),
                    _ => {}
                }
            }
        }
    }
    let left = stage.service.list(&stage.buckets(), Some(name), &ListOptions::default()).await?;
    ensure!(left.is_empty(), "{} copies are held", left.len());
    let mut finished = namespace.clone();
    finished["spec"]["finalizers"] = json!([]);
    let request = Request::put(format!("/api/v1/namespaces/{name}/finalize"))
        .header("content-type", "application/json")
        .body(finished.to_string().into_bytes())?;
    // Somebody else may have been faster.
    let _ = stage.service.kube().request_text(request).await;
    Ok(())
}

/// Waits until a namespace is gone, or there is another one of its name.
async fn namespace_ends(stage: &Stage, before: &Value) -> anyhow::Result<()> {
    let name = place(before).1;
    stage
        .eventually(&format!("namespace {name} is gone"), async || {
            let Some(now) = stage.service.get(&kinds::namespaces(), None, name).await? else { return Ok(()) };
            if now["metadata"]["uid"] != before["metadata"]["uid"] {
                return Ok(());
            }
            carry_on(stage, &now).await?;
            anyhow::bail!("it is {}", shown(&now))
        })
        .await
}

async fn delete_namespace(stage: &Stage, name: &str) -> anyhow::Result<Value> {
    let before = stage.service.get(&kinds::namespaces(), None, name).await?.context("there is no namespace")?;
    stage.service.delete(&kinds::namespaces(), None, name, &DeleteOptions::default()).await?;
    Ok(before)
}

pub(crate) async fn a_namespace_of_copies_that_somebody_deletes_comes_back_with_the_copies(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let settings = json!({
        "identifier": "settings", "origin": "kcp", "kind": "ConfigMap",
        "object": { "template": { "template": "{{ .Object.metadata.name }}-settings" } },
        "watch": { "bySelector": {} },
    });
    let stage = publish(world, json!({ "naming": beside_names(""), "related": [settings] })).await?;
    let mut agent = Some(stage.start_agent()?);
    let (team, maps) = (&stage.team_a, kinds::config_maps());
    put(&team.client, &maps, NAMESPACE, "one-settings", &json!({ "data": { "color": "red" } })).await?;
    for name in ["one", "two"] {
        stage.order(team, name, json!({ "size": 1 })).await?;
    }
    let at = (&stage.service, &maps, Some(team.cluster.as_str()), "one-settings");
    for running in [true, false] {
        let mut before = Vec::new();
        for name in ["one", "two"] {
            before.push(stage.copy_is("the copy is there", team, name, |_| true).await?);
        }
        let settings = stage.object("the settings are there", at, |map| map["data"]["color"] == "red").await?;
        stage.at_rest().await?;
        if let Some(agent) = agent.take_if(|_| !running) {
            agent.stop().await?;
        }
        let namespace = delete_namespace(&stage, &team.cluster).await?;
        namespace_ends(&stage, &namespace).await?;
        if agent.is_none() {
            agent = Some(stage.start_agent()?);
        }
        for (name, old) in ["one", "two"].into_iter().zip(&before) {
            let other = |copy: &Value| copy["metadata"]["uid"] != old["metadata"]["uid"];
            stage.copy_is("the copy is made again", team, name, other).await?;
        }
        let other = |map: &Value| map["metadata"]["uid"] != settings["metadata"]["uid"];
        stage.object("the settings are copied again", at, other).await?;
    }
    stage.reorder(team, "one", json!({ "size": 2 })).await?;
    let copy = stage.copy_is("changes arrive", team, "one", |copy| copy["spec"]["size"] == 2).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "one", |source| source["status"]["url"] == "here").await?;
    for name in ["one", "two"] {
        stage.cancel(team, name).await?;
        stage.all_gone(team, name).await?;
    }
    agent.context("no agent is running")?.stop().await
}

pub(crate) async fn orders_deleted_while_the_namespace_of_their_copies_goes_come_to_an_end(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = publish(world, json!({ "naming": beside_names("") })).await?;
    let agent = stage.start_agent()?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    for name in ["held", "dropped", "kept"] {
        stage.order(team, name, json!({ "size": 1 })).await?;
        stage.copy_is("the copy is there", team, name, |_| true).await?;
    }
    stage.at_rest().await?;
    // The operator holds one copy, and with it the namespace.
    let hold = json!({ "metadata": { "finalizers": ["example.com/backup"] } });
    stage.service.merge_patch(&buckets, Some(&team.cluster), "held", &hold).await?;
    let namespace = delete_namespace(&stage, &team.cluster).await?;
    stage
        .eventually("the namespace waits for one copy", async || {
            let now = stage.service.get(&kinds::namespaces(), None, &team.cluster).await?.context("it is gone")?;
            carry_on(&stage, &now).await.err().context("nothing is held")?;
            let left = stage.service.list(&buckets, Some(&team.cluster), &ListOptions::default()).await?;
            ensure!(left.len() == 1, "{} copies are left", left.len());
            Ok(())
        })
        .await?;
    for name in ["held", "dropped"] {
        stage.cancel(team, name).await?;
    }
    stage.gone("an order without a copy goes", (&team.client, &buckets, Some(NAMESPACE), "dropped")).await?;
    ensure!(stage.source(team, "held").await?.is_some(), "an order went before its copy");
    // New orders wait, and are told why.
    stage.order(team, "new", json!({ "size": 1 })).await?;
    warned(&stage, team, "new", &[&team.cluster]).await?;
    let free = json!({ "metadata": { "finalizers": null } });
    stage.service.merge_patch(&buckets, Some(&team.cluster), "held", &free).await?;
    namespace_ends(&stage, &namespace).await?;
    stage.gone("the held order goes", (&team.client, &buckets, Some(NAMESPACE), "held")).await?;
    for name in ["kept", "new"] {
        stage.copy_is("those who stay have copies again", team, name, |_| true).await?;
    }
    agent.stop().await
}

pub(crate) async fn switched_off_after_copies_could_not_be_made_it_lets_orders_go(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    for (running, deleted) in [(true, false), (false, false), (true, true), (false, true)] {
        let stage = Stage::bound(Arc::clone(&world), fixtures::rigid).await?;
        // No copy can be made: what becomes of the region is too long for the service cluster.
        let expression = format!("'{}'", "x".repeat(200));
        let mutation = json!({ "spec": [{ "cel": { "path": "spec.region", "expression": expression } }] });
        stage.publish("Bucket", json!({ "naming": beside_names(""), "mutation": mutation })).await?;
        let mut agent = stage.start_agent()?;
        let team = &stage.team_a;
        for name in ["staying", "going"] {
            stage.order(team, name, json!({ "size": 1 })).await?;
            warned(&stage, team, name, &["spec.region"]).await?;
            stage.source_is("the order is held", team, name, |source| !is_free(source)).await?;
        }
        let told = format!("running {running}, deleted {deleted}");
        let end = async || {
            let name = stage.published_name("Bucket");
            if deleted {
                let everything = DeleteOptions::default();
                stage.service.delete(&kinds::published_resources(), None, &name, &everything).await?;
                anyhow::Ok(())
            } else {
                republish(&stage, json!({ "synchronization": { "enabled": false } })).await
            }
        };
        if running {
            end().await?;
        } else {
            agent.stop().await?;
            end().await?;
            stage.cancel(team, "going").await?;
            agent = stage.start_agent()?;
        }
        stage.source_is("the order is let go", team, "staying", is_free).await.with_context(|| told.clone())?;
        if running {
            stage.cancel(team, "going").await?;
        }
        let at = (&team.client, &stage.buckets(), Some(NAMESPACE), "going");
        stage.gone("the other one can go", at).await.with_context(|| told.clone())?;
        agent.stop().await?;
    }
    Ok(())
}

pub(crate) async fn without_the_right_to_patch_changes_arrive_by_update(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bound(world, |group| fixtures::crd(group, "Bucket")).await?;
    stage.publish("Bucket", json!({ "naming": beside_names("") })).await?;
    let mut rules = service_rules(&stage.group);
    let published = rules.as_array_mut().and_then(|rules| rules.last_mut()).context("there are no rules")?;
    *published = rule(&[&stage.group], &["buckets"], "get list watch create update delete");
    grant(&stage, &stage.service, &rules).await?;
    grant(&stage, &stage.provider.client, &kcp_rules(stage.export_name())).await?;
    are_known(&stage).await?;
    let agent = Agent::start(&stage, Setup { user: User::Agent, probes: true, ..Setup::default() })?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1, "owner": "me" })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    stage.operator_edits(&copy, json!({ "region": "eu" })).await?;
    stage.at_rest().await?;
    let patch = json!({ "size": 2, "owner": null });
    stage.reorder(team, "bucket", patch).await?;
    let wanted = json!({ "size": 2, "region": "eu" });
    let changed = stage.copy_is("a change arrives", team, "bucket", |copy| copy["spec"] == wanted).await?;
    same(&changed, &copy)?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |source| source["status"]["url"] == "here").await?;
    stage.cancel(team, "bucket").await?;
    let at = (&team.client, &stage.buckets(), Some(NAMESPACE), "bucket");
    stage.gone("the order goes", at).await?;
    ensure!(stage.copy(team, "bucket").await?.is_none(), "its copy is left");
    agent.stop().await?;
    revoke(&stage, &stage.service).await
}

pub(crate) async fn without_the_right_to_delete_it_says_so_before_the_first_order_and_goes_on_when_it_has_it(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bound(world, |group| fixtures::crd(group, "Bucket")).await?;
    stage.publish("Bucket", json!({ "naming": beside_names("") })).await?;
    // Exactly the role of the getting-started page.
    let with = |verbs: &str| -> anyhow::Result<Value> {
        let mut rules = service_rules(&stage.group);
        let published = rules.as_array_mut().and_then(|rules| rules.last_mut()).context("there are no rules")?;
        *published = rule(&[&stage.group], &["buckets"], verbs);
        Ok(rules)
    };
    grant(&stage, &stage.service, &with("get list watch create update")?).await?;
    grant(&stage, &stage.provider.client, &kcp_rules(stage.export_name())).await?;
    are_known(&stage).await?;
    let agent = Agent::start(&stage, Setup { user: User::Agent, probes: true, ..Setup::default() })?;
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());
    stage
        .object("the missing right is told", at, |published| {
            let conditions = published["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let told = |condition: &Value| {
                let message = condition["message"].as_str().unwrap_or_default();
                message.contains("delete") && message.contains("buckets") && message.contains(&stage.group)
            };
            conditions.iter().any(told)
        })
        .await?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("orders are placed all the same", team, "bucket", |_| true).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("and changed", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    stage.cancel(team, "bucket").await?;
    warned(&stage, team, "bucket", &["delete"]).await?;
    let patch = json!({ "rules": with("get list watch create update delete")? });
    stage.service.merge_patch(&kinds::cluster_roles(), None, &stage.agent_name(), &patch).await?;
    let gone = (&team.client, &stage.buckets(), Some(NAMESPACE), "bucket");
    stage.gone("with the right it goes on", gone).await?;
    stage
        .object("nothing is missing any more", at, |published| {
            let conditions = published["status"]["conditions"].as_array().cloned().unwrap_or_default();
            !conditions.iter().any(|c| c["message"].as_str().unwrap_or_default().contains("delete"))
                && condition(published, "ObjectsSynced")["status"] != "False"
        })
        .await?;
    agent.stop().await?;
    revoke(&stage, &stage.service).await
}
