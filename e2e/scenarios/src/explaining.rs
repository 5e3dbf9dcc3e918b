//! What the agent would do, told without doing it.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::{Agent, Setup, config};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, condition, place};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::agent::explain::{Explained, Question, Report, explain};
use serde_json::{Value, json};

use super::dashboard::get;
use super::related::{credentials, encoded, secret};

pub(super) async fn what_would_be_done_is_told_without_doing_it(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let team = &stage.team_a;
    let agent = stage.start_agent()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is placed", team, "bucket", |copy| copy["spec"]["size"] == 1).await?;
    agent.stop().await?;
    let published = stage.published_name("Bucket");
    stage
        .eventually("everything is in line", async || {
            let report = ask(&stage, Question::default()).await?;
            let bucket = object(&report, "bucket")?;
            let plan = bucket.plan.as_ref().context("no plan")?;
            ensure!(report.export_changes.is_empty() && plan.steps.is_empty(), "{report}");
            ensure!(plan.why.starts_with("in line with service Bucket "), "{report}");
            ensure!(bucket.workspace.as_ref() == Some(&team.path), "{report}");
            Ok(())
        })
        .await?;

    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.order(team, "second", json!({ "size": 3 })).await?;
    let report = ask(&stage, Question { published_resource: Some(published), ..Question::default() }).await?;
    let changed = object(&report, "bucket")?.plan.as_ref().context("no plan")?;
    ensure!(changed.why.starts_with("not in line with service Bucket "), "{report}");
    ensure!(changed.steps.iter().any(|step| step.contains(": spec.size = 2")), "{report}");
    let second = object(&report, "second")?.plan.as_ref().context("no plan")?;
    ensure!(second.why == "it has no copy yet", "{report}");
    let held = format!("hold kcp Bucket {NAMESPACE}/second with the finalizer syncagent.kcp.io/cleanup");
    ensure!(second.steps.iter().any(|step| step.starts_with(&held)), "{report}");

    // Only what was asked for is told, and what does not exist is said so.
    let question = Question { object: Some(format!("{NAMESPACE}/second")), ..Question::default() };
    let one = ask(&stage, question).await?;
    ensure!(object(&one, "bucket").is_err() && object(&one, "second").is_ok(), "{one}");
    let nowhere = Question { object: Some("default/nothing".to_owned()), ..Question::default() };
    ensure!(ask(&stage, nowhere).await.is_err_and(|error| error.to_string().contains("no object default/nothing")));
    let unknown = Question { published_resource: Some("unheard-of".to_owned()), ..Question::default() };
    ensure!(ask(&stage, unknown).await.is_err_and(|error| error.to_string().contains("there are")));

    // Nothing of it has happened.
    let source = stage.source(team, "second").await?.context("the second bucket is gone")?;
    ensure!(source["metadata"]["finalizers"].is_null(), "{source}");
    ensure!(stage.copy(team, "second").await?.is_none(), "a copy was made");
    let copy = stage.copy(team, "bucket").await?.context("the copy is gone")?;
    ensure!(copy["spec"]["size"] == 1, "{copy}");
    Ok(())
}

pub(super) async fn what_others_have_changed_of_copies_is_told(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bound(world, |group| fixtures::crd(group, "Bucket")).await?;
    let mut down = credentials();
    (down["identifier"], down["origin"]) = (json!("settings"), json!("kcp"));
    down["object"] = json!({ "template": { "template": "{{ .Object.metadata.name }}-settings" } });
    stage.publish("Bucket", json!({ "related": [credentials(), down] })).await?;
    let team = &stage.team_a;
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is placed", team, "bucket", |copy| copy["spec"]["size"] == 1).await?;
    let (namespace, copy_name) = place(&copy);
    let mut settings = secret("bucket", "first");
    settings["metadata"]["name"] = json!("bucket-settings");
    team.client.create(&kinds::secrets(), Some(NAMESPACE), &settings).await?;
    let settings = format!("{copy_name}-settings");
    let at = (&stage.service, &kinds::secrets(), Some(namespace), settings.as_str());
    stage.object("the Secret reaches the service", at, |it| it["data"]["password"] == encoded("first")).await?;
    stage.service.create(&kinds::secrets(), Some(namespace), &secret(copy_name, "first")).await?;
    let at = (&team.client, &kinds::secrets(), Some(NAMESPACE), "bucket-credentials");
    stage.object("the Secret reaches the consumer", at, |it| it["data"]["password"] == encoded("first")).await?;
    changed_is(&stage, "in line with service Bucket ", &[]).await?;
    let overwritten = async |wanted: &[(&str, &str)]| {
        stage
            .eventually("the dashboard says what others have changed", async || {
                let found = get(&agent, "/find.json?q=default%2Fbucket").await?;
                let all = found["found"][0]["overwritten"].as_array().context("there is no such order")?;
                let is_it = |it: &Value, (identifier, end): (&str, &str)| {
                    it["identifier"] == identifier && it["copy"].as_str().is_some_and(|name| name.ends_with(end))
                };
                let are_they = all.iter().zip(wanted).all(|(it, wanted)| is_it(it, *wanted));
                ensure!(all.len() == wanted.len() && are_they, "{found:#}");
                let field =
                    |it: &Value| it["changed"].as_str().is_some_and(|it| it.contains("data.password. This stays"));
                ensure!(all.iter().all(field) && !found.to_string().contains(&encoded("other")), "{found:#}");
                Ok(())
            })
            .await
    };
    overwritten(&[]).await?;

    let edit = json!({ "spec": { "size": 7 } });
    stage.service.merge_patch(&stage.buckets(), Some(namespace), copy_name, &edit).await?;
    let edit = json!({ "data": { "password": encoded("other") } });
    team.client.merge_patch(&kinds::secrets(), Some(NAMESPACE), "bucket-credentials", &edit).await?;
    let fields = ["not as ordered: spec.size.", "bucket-credentials is not as its original: data.password."];
    changed_is(&stage, "placed as service Bucket ", &fields).await?;
    overwritten(&[("credentials", "default/bucket-credentials")]).await?;

    // The other way round it is the provider's side that somebody changes.
    stage.service.merge_patch(&kinds::secrets(), Some(namespace), &settings, &edit).await?;
    let here = format!("{settings} is not as its original: data.password.");
    changed_is(&stage, "placed as service Bucket ", &[fields[0], fields[1], &here]).await?;
    overwritten(&[("credentials", "default/bucket-credentials"), ("settings", &settings)]).await?;
    let query =
        format!("/trace.json?published={}&order={}%2Fdefault%2Fbucket", stage.published_name("Bucket"), team.cluster);
    let tree = get(&agent, &query).await?;
    let related =
        tree["children"].as_array().into_iter().flatten().filter(|it| it["place"] != "on the service cluster");
    let notes = related.filter(|it| it["notes"].to_string().contains("not as its original: data.password"));
    ensure!(notes.count() == 2, "{tree:#}");

    // Whoever puts it back is not named any more.
    let back = json!({ "data": { "password": encoded("first") } });
    team.client.merge_patch(&kinds::secrets(), Some(NAMESPACE), "bucket-credentials", &back).await?;
    stage.service.merge_patch(&kinds::secrets(), Some(namespace), &settings, &back).await?;
    overwritten(&[]).await?;
    agent.stop().await
}

/// Waits until it is told what others have changed, and nothing of Secrets with it.
async fn changed_is(stage: &Stage, why: &str, fields: &[&str]) -> anyhow::Result<()> {
    stage
        .eventually(why, async || {
            let report = ask(stage, Question::default()).await?;
            let plan = object(&report, "bucket")?.plan.as_ref().context("no plan")?;
            ensure!(plan.why.starts_with(why) && plan.steps.is_empty(), "{report}");
            ensure!(plan.changed.len() == fields.len(), "{report}");
            ensure!(fields.iter().zip(&plan.changed).all(|(field, text)| text.contains(field)), "{report}");
            ensure!(!report.to_string().contains(&encoded("other")), "{report}");
            Ok(())
        })
        .await
}

/// A password is copied into kinds that are no Secrets; one of them refuses it, and the server says which value it refuses.
pub(super) async fn values_of_secrets_are_hidden_whatever_becomes_of_them(world: Arc<dyn World>) -> anyhow::Result<()> {
    let (first, second) = ("plAnted-hunter2", "plAnted-hunter3");
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.install_crd(&vaults(&stage.group)).await?;
    stage.create_export().await?;
    stage.bind(&stage.team_a).await?;
    let name =
        |suffix: &str| json!({ "template": { "template": format!("{{{{ .Object.metadata.name }}}}-{suffix}") } });
    let related = json!([
        {
            "identifier": "up", "origin": "service", "version": "v1", "resource": "secrets",
            "projection": { "resource": "configmaps" }, "object": name("up"),
        },
        {
            "identifier": "down", "origin": "kcp", "version": "v1", "resource": "secrets",
            "projection": { "group": stage.group, "version": "v1", "resource": "vaults" }, "object": name("down"),
        },
    ]);
    stage.publish("Bucket", json!({ "related": related })).await?;
    let (team, published) = (&stage.team_a, stage.published_name("Bucket"));
    let agent = Agent::start(&stage, Setup { probes: true, ..Setup::default() })?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let (namespace, copy_name) = place(&copy);
    let secret = |name: &str, password: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
            "data": { "password": encoded(password) },
        })
    };
    let (up, secrets) = (format!("{copy_name}-up"), kinds::secrets());
    stage.service.create(&secrets, Some(namespace), &secret(&up, first)).await?;
    let at = (&team.client, &kinds::config_maps(), Some(NAMESPACE), "bucket-up");
    stage.object("it becomes a ConfigMap", at, |map| map["data"]["password"] == encoded(first)).await?;

    // The other way round it is refused.
    team.client.create(&secrets, Some(NAMESPACE), &secret("bucket-down", first)).await?;
    let at = (&stage.service, &kinds::published_resources(), None, published.as_str());
    let told = stage
        .object("the refusal is told", at, |published| condition(published, "ObjectsSynced")["status"] == "False")
        .await?;
    let message = condition(&told, "ObjectsSynced")["message"].as_str().unwrap_or_default();
    ensure!(message.contains("422") && message.contains("data.password"), "{message}");
    let pages = [agent.ready().await?, agent.metrics().await?, agent.dashboard("/state.json").await?];
    let mut texts = pages.to_vec();
    texts.extend(agent.log());
    agent.stop().await?;

    // A dry run shows what would change, and not what it would become.
    let patch = json!({ "data": { "password": encoded(second) } });
    stage.service.merge_patch(&secrets, Some(namespace), &up, &patch).await?;
    let report = ask(&stage, Question::default()).await?;
    let steps = &object(&report, "bucket")?.plan.as_ref().context("no plan")?.steps;
    ensure!(
        steps.iter().any(|step| step.ends_with("change kcp ConfigMap default/bucket-up: data.password")),
        "{report}"
    );
    texts.extend([report.to_string(), serde_json::to_string(&report)?, told.to_string()]);
    for text in texts {
        for planted in [first, second, &encoded(first), &encoded(second)] {
            ensure!(!text.contains(planted), "a password is told: {text}");
        }
    }
    Ok(())
}

/// A kind that looks like a Secret and refuses what is in one.
fn vaults(group: &str) -> Value {
    let mut crd = fixtures::crd(group, "Vault");
    let passwords = json!({ "type": "string", "pattern": "^[0-9]+$" });
    let data = json!({ "type": "object", "additionalProperties": passwords });
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
        json!({ "data": data, "type": { "type": "string" } });
    crd
}

async fn ask(stage: &Stage, question: Question) -> anyhow::Result<Report> {
    Ok(explain(config(stage)?, &question).await?)
}

fn object<'a>(report: &'a Report, name: &str) -> anyhow::Result<&'a Explained> {
    let wanted = format!("{NAMESPACE}/{name}");
    let mut objects = report.published_resources.iter().flat_map(|published| &published.objects);
    objects.find(|object| object.object == wanted).with_context(|| format!("{wanted} is not in {report}"))
}
