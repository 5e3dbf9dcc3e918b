//! What a provider does not want is not placed, and its consumer learns why.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, ListOptions, Resource};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, condition, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::api::{PLACED_GENERATION, REFUSAL, WAITS_FOR};
use serde_json::{Value, json};

use super::related::{credentials, secret};

/// Changes the PublishedResource of Buckets.
async fn edit(stage: &Stage, spec: Value) -> anyhow::Result<()> {
    let name = stage.published_name("Bucket");
    stage.service.merge_patch(&kinds::published_resources(), None, &name, &json!({ "spec": spec })).await?;
    Ok(())
}

fn told<'a>(source: &'a Value, annotation: &str) -> Option<&'a str> {
    source["metadata"]["annotations"][annotation].as_str()
}

/// Waits until an order says why it was refused.
async fn refused(stage: &Stage, team: &Workspace, name: &str, words: &str) -> anyhow::Result<()> {
    let says_so = |source: &Value| told(source, REFUSAL).is_some_and(|why| why.contains(words));
    stage.source_is(&format!("{name} is told {words:?}"), team, name, says_so).await?;
    Ok(())
}

/// Waits until an order is placed and says so.
async fn placed(stage: &Stage, team: &Workspace, name: &str) -> anyhow::Result<()> {
    stage.copy_is(&format!("{name} is placed"), team, name, |_| true).await?;
    let says_so = |source: &Value| {
        let generation = source["metadata"]["generation"].as_i64().map(|number| number.to_string());
        told(source, PLACED_GENERATION) == generation.as_deref() && told(source, REFUSAL).is_none()
    };
    stage.source_is(&format!("{name} says that it is placed"), team, name, says_so).await?;
    Ok(())
}

pub(super) async fn above_the_limit_an_order_waits_until_another_one_goes(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    edit(&stage, json!({ "limits": { "objectsPerWorkspace": 2 }, "feedback": "Annotations" })).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    for name in ["one", "two"] {
        stage.order(team, name, json!({ "size": 1 })).await?;
        placed(&stage, team, name).await?;
    }
    stage.order(team, "three", json!({ "size": 1 })).await?;
    refused(&stage, team, "three", "in one workspace is 2").await?;
    // Every workspace has places of its own, and what is placed can be changed.
    stage.order(&stage.team_b, "one", json!({ "size": 1 })).await?;
    placed(&stage, &stage.team_b, "one").await?;
    stage.reorder(team, "one", json!({ "size": 5 })).await?;
    stage.copy_is("the change arrives", team, "one", |copy| copy["spec"]["size"] == 5).await?;
    placed(&stage, team, "one").await?;
    ensure!(stage.copy(team, "three").await?.is_none(), "three was placed");

    // A lower limit takes nothing away, not even after a restart.
    edit(&stage, json!({ "limits": { "objectsPerWorkspace": 1 } })).await?;
    refused(&stage, team, "three", "in one workspace is 1").await?;
    agent.stop().await?;
    let agent = stage.start_agent()?;
    stage.reorder(team, "two", json!({ "size": 6 })).await?;
    stage.copy_is("the change arrives", team, "two", |copy| copy["spec"]["size"] == 6).await?;
    placed(&stage, team, "two").await?;
    stage.cancel(team, "one").await?;
    stage.all_gone(team, "one").await?;
    refused(&stage, team, "three", "in one workspace is 1").await?;
    ensure!(stage.copy(team, "three").await?.is_none(), "three was placed");
    stage.cancel(team, "two").await?;
    placed(&stage, team, "three").await?;
    stage.all_gone(team, "two").await?;

    // And at rest nothing is written.
    stage.at_rest().await?;
    agent.stop().await
}

pub(super) async fn of_many_orders_at_once_the_oldest_get_the_places(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    edit(&stage, json!({ "limits": { "objectsPerWorkspace": 3 }, "feedback": "Annotations" })).await?;
    let agent = stage.start_agent()?;
    let names: Vec<String> = (0..9).map(|number| format!("order-{number}")).collect();
    stage.order(team, &names[0], json!({ "size": 1 })).await?;
    placed(&stage, team, &names[0]).await?;
    agent.stop().await?;
    for name in &names[1..] {
        stage.order(team, name, json!({ "size": 1 })).await?;
    }
    let agent = stage.start_agent()?;
    for name in &names[..3] {
        placed(&stage, team, name).await?;
    }
    for name in &names[3..] {
        refused(&stage, team, name, "in one workspace is 3").await?;
        ensure!(stage.copy(team, name).await?.is_none(), "{name} was placed");
    }
    agent.stop().await
}

pub(super) async fn orders_say_what_they_wait_for_and_on_whom_their_deletion_waits(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let team = &stage.team_a;
    let mut entry = credentials();
    entry["required"] = true.into();
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({ "related": [entry], "feedback": "Annotations" })).await?;
    stage.bind(team).await?;
    let agent = stage.start_agent()?;
    stage.order(team, "one", json!({ "size": 1 })).await?;
    let waits =
        |words: &'static str| move |source: &Value| told(source, WAITS_FOR).is_some_and(|it| it.contains(words));
    stage
        .source_is("it waits for its Secret", team, "one", waits("(secrets), which the provider has not made"))
        .await?;
    placed(&stage, team, "one").await?;
    let copy = stage.copy_is("its copy is there", team, "one", |_| true).await?;
    let (namespace, name) = place(&copy);
    stage.service.create(&kinds::secrets(), Some(namespace), &secret(name, "word")).await?;
    stage.source_is("it waits no more", team, "one", |source| told(source, WAITS_FOR).is_none()).await?;

    // Somebody on the provider's side holds the copy.
    let held = json!({ "metadata": { "finalizers": ["example.com/backup"] } });
    stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &held).await?;
    team.client.delete(&stage.buckets(), Some(NAMESPACE), "one", &DeleteOptions::default()).await?;
    let source =
        stage.source_is("it says on whom it waits", team, "one", waits("the provider, whose operator")).await?;
    ensure!(!shown(&source).contains("example.com/backup"), "{}", shown(&source));
    let free = json!({ "metadata": { "finalizers": null } });
    stage.service.merge_patch(&stage.buckets(), Some(namespace), name, &free).await?;
    stage
        .eventually("it is gone", async || {
            let there = team.client.get(&stage.buckets(), Some(NAMESPACE), "one").await?;
            ensure!(there.is_none(), "{there:?}");
            Ok(())
        })
        .await?;
    agent.stop().await
}

pub(super) async fn what_breaks_a_rule_is_refused_at_once_or_not_placed(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    edit(&stage, json!({ "feedback": "Annotations" })).await?;
    let agent = stage.start_agent()?;
    stage.order(team, "large", json!({ "size": 9 })).await?;
    placed(&stage, team, "large").await?;
    let name = stage.published_name("Bucket");
    let published = stage.service.get(&kinds::published_resources(), None, &name).await?.context("it is gone")?;
    let before = published["status"]["resourceSchemaName"].clone();

    let rules = json!([
        { "expression": "self.spec.size <= 5", "message": "at most 5" },
        { "expression": "self.metadata.?labels['blocked'].orValue('') != 'yes'", "message": "blocked orders wait" },
    ]);
    edit(&stage, json!({ "admission": rules })).await?;
    let changed =
        |pr: &Value| pr["status"]["resourceSchemaName"] != before && condition(pr, "ExportUpdated")["status"] == "True";
    stage
        .object("the rules are exported", (&stage.service, &kinds::published_resources(), None, &name), changed)
        .await?;
    // What a schema can express, kcp refuses at once.
    stage
        .eventually("kcp refuses what breaks the rule", async || {
            let object = json!({ "apiVersion": stage.buckets().api_version(), "kind": "Bucket",
                "metadata": { "name": "larger", "namespace": NAMESPACE }, "spec": { "size": 6 } });
            match team.client.create(&stage.buckets(), Some(NAMESPACE), &object).await {
                Err(error) if error.to_string().contains("at most 5") => Ok(()),
                Err(error) => anyhow::bail!("it says {error}"),
                Ok(_) => {
                    stage.cancel(team, "larger").await?;
                    anyhow::bail!("it was accepted")
                }
            }
        })
        .await?;
    // What was there before the rule can be labelled and gets its status, but is not changed for the worse.
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    team.client.merge_patch(&stage.buckets(), Some(NAMESPACE), "large", &labels).await?;
    let copy = stage.copy_is("the label arrives or is refused", team, "large", |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("its status comes back", team, "large", |source| source["status"]["url"] == "here").await?;
    let worse = stage.reorder(team, "large", json!({ "size": 10 })).await;
    ensure!(worse.as_ref().is_err_and(|error| error.to_string().contains("at most 5")), "{worse:?}");
    stage.reorder(team, "large", json!({ "size": 4 })).await?;
    stage.copy_is("it may become better", team, "large", |copy| copy["spec"]["size"] == 4).await?;
    placed(&stage, team, "large").await?;

    // What a schema cannot express is reported, and not placed.
    let blocked = json!({ "apiVersion": stage.buckets().api_version(), "kind": "Bucket", "spec": { "size": 1 },
        "metadata": { "name": "blocked", "namespace": NAMESPACE, "labels": { "blocked": "yes" } } });
    team.client.create(&stage.buckets(), Some(NAMESPACE), &blocked).await?;
    refused(&stage, team, "blocked", "blocked orders wait").await?;
    ensure!(stage.copy(team, "blocked").await?.is_none(), "it was placed");
    stage
        .eventually("an event says why", async || {
            let events = team.client.list(&kinds::events(), Some(NAMESPACE), &ListOptions::default()).await?;
            let about = |event: &&Value| event["involvedObject"]["name"] == "blocked" && event["reason"] == "NotPlaced";
            let event = events.iter().find(about).with_context(|| format!("there is none among {events:#?}"))?;
            ensure!(event["message"] == "Not placed: blocked orders wait", "{}", shown(event));
            Ok(())
        })
        .await?;
    let free = json!({ "metadata": { "labels": { "blocked": null } } });
    team.client.merge_patch(&stage.buckets(), Some(NAMESPACE), "blocked", &free).await?;
    placed(&stage, team, "blocked").await?;

    // All of them can end.
    for name in ["large", "blocked"] {
        stage.cancel(team, name).await?;
        stage.all_gone(team, name).await?;
    }
    agent.stop().await
}

pub(super) async fn a_mistake_in_a_rule_is_shown_with_its_place_and_harms_nobody_else(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    stage.install_crd(&carrick_e2e_stage::fixtures::crd(&stage.group, "Gadget")).await?;
    stage.publish("Gadget", json!({ "admission": [{ "expression": "self.spec.sise <= 5" }] })).await?;
    let agent = stage.start_agent()?;
    let name = stage.published_name("Gadget");
    let is_told = |pr: &Value| {
        let told = condition(pr, "RulesValid");
        let words = "undefined field 'sise'\n | self.spec.sise <= 5\n | .........^";
        told["status"] == "False" && told["message"].as_str().is_some_and(|message| message.contains(words))
    };
    stage.object("the mistake is told", (&stage.service, &kinds::published_resources(), None, &name), is_told).await?;
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("others work", &stage.team_a, "bucket", |_| true).await?;
    agent.stop().await
}

/// Lets a policy of the service cluster refuse Buckets, and waits until it does for the order `one`; what is returned takes it back.
async fn forbid<'a>(
    stage: &'a Stage,
    expression: &str,
    message: &str,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>> + use<'a>> {
    let group = "admissionregistration.k8s.io";
    let kind = |kind: &str, plural: &str| Resource::cluster_wide(group, "v1", kind, plural);
    let policies = kind("ValidatingAdmissionPolicy", "validatingadmissionpolicies");
    let bindings = kind("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings");
    let rules = json!([{ "apiGroups": [stage.group], "apiVersions": ["*"], "resources": ["buckets"], "operations": ["UPDATE"] }]);
    let policy = json!({ "apiVersion": policies.api_version(), "kind": &*policies.kind, "metadata": { "name": stage.id },
        "spec": { "matchConstraints": { "resourceRules": rules }, "validations": [{ "expression": expression, "message": message }] } });
    let binding = json!({ "apiVersion": bindings.api_version(), "kind": &*bindings.kind, "metadata": { "name": stage.id },
        "spec": { "policyName": stage.id, "validationActions": ["Deny"] } });
    stage.service.create(&policies, None, &policy).await?;
    stage.service.create(&bindings, None, &binding).await?;
    stage
        .eventually("the policy is enforced", async || {
            let copy = stage.copy(&stage.team_a, "one").await?.context("the copy is gone")?;
            // The last one that succeeds leaves another size than the one that is ordered next.
            let edited = stage.operator_edits(&copy, json!({ "size": 5 })).await;
            ensure!(edited.is_err(), "it is not");
            Ok(())
        })
        .await?;
    Ok(async move {
        stage.service.delete(&bindings, None, &stage.id, &DeleteOptions::default()).await?;
        Ok(stage.service.delete(&policies, None, &stage.id, &DeleteOptions::default()).await?)
    })
}

pub(super) async fn what_the_service_cluster_refuses_is_told_on_the_order(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    edit(&stage, json!({ "feedback": "Annotations", "schemaUpdates": "Manual" })).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "one", json!({ "size": 1 })).await?;
    placed(&stage, team, "one").await?;
    // Consumers do not see the stricter CRD, but the service cluster has it.
    let crd = format!("buckets.{}", stage.group);
    let mut stricter = stage.service.get(&kinds::crds(), None, &crd).await?.context("the CRD is gone")?;
    let spec = &mut stricter["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["size"]["maximum"] = json!(5);
    let patch = json!({ "spec": { "versions": stricter["spec"]["versions"] } });
    stage.service.merge_patch(&kinds::crds(), None, &crd, &patch).await?;
    stage
        .eventually("the service cluster refuses large ones", async || {
            let copy = stage.copy(team, "one").await?.context("the copy is gone")?;
            let edited = stage.operator_edits(&copy, json!({ "size": 9 })).await;
            ensure!(edited.is_err(), "it does not");
            Ok(())
        })
        .await?;
    stage.reorder(team, "one", json!({ "size": 7 })).await?;
    refused(&stage, team, "one", "should be less than or equal to 5").await?;
    let source = stage.source(team, "one").await?.context("it is gone")?;
    let generation = source["metadata"]["generation"].as_i64().unwrap_or_default();
    ensure!(told(&source, PLACED_GENERATION) == Some(&*(generation - 1).to_string()), "{}", shown(&source));
    stage.reorder(team, "one", json!({ "size": 3 })).await?;
    placed(&stage, team, "one").await?;
    // A policy of the service cluster speaks for itself.
    let forget = forbid(&stage, "object.spec.size < 4", "no large ones this week").await?;
    stage.reorder(team, "one", json!({ "size": 4 })).await?;
    refused(&stage, team, "one", "no large ones this week").await?;
    forget.await?;
    placed(&stage, team, "one").await?;
    // Whoever does not want it any more takes it back.
    edit(&stage, json!({ "feedback": "None" })).await?;
    stage
        .source_is("nothing is told any more", team, "one", |source| told(source, PLACED_GENERATION).is_none())
        .await?;
    agent.stop().await
}
