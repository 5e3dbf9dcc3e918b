//! A kind is withdrawn on a date that its consumers know.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, condition, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use carrick_syncagent::api::{FINALIZER, WITHDRAWAL};
use serde_json::{Value, json};

use super::gate::carrick;
use super::versions::warnings;

fn notice(source: &Value) -> Option<&str> {
    source["metadata"]["annotations"][WITHDRAWAL].as_str()
}

/// Runs `carrick withdraw Bucket` and reads its JSON.
async fn withdraw(stage: &Stage, arguments: &[&str]) -> anyhow::Result<Value> {
    let all: Vec<&str> = ["withdraw", "bucket", "-o", "json"].iter().chain(arguments).copied().collect();
    let (code, told) = carrick(stage, &all).await?;
    ensure!(code == Some(0), "{code:?} {told}");
    serde_json::from_str(&told).with_context(|| told.clone())
}

async fn published(stage: &Stage, what: &str, reason: &str) -> anyhow::Result<Value> {
    let (kind, name) = (kinds::published_resources(), stage.published_name("Bucket"));
    let is_so = |pr: &Value| condition(pr, "Withdrawn")["reason"] == reason;
    stage.object(what, (&stage.service, &kind, None, &name), is_so).await
}

/// Names of the kinds that the export lists, and of what it claims.
async fn listed(stage: &Stage) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let export = stage.export().await?;
    let texts = |list: &Value, text: fn(&Value) -> &Value| {
        let all = list.as_array().into_iter().flatten().filter_map(|one| text(one).as_str()).map(str::to_owned);
        all.collect::<Vec<_>>()
    };
    let schemas = texts(&export["spec"]["latestResourceSchemas"], |one| one);
    let kinds = schemas.iter().filter_map(|name| Some(name.split('.').nth(1)?.to_owned())).collect();
    Ok((kinds, texts(&export["spec"]["permissionClaims"], |one| &one["resource"])))
}

/// An order of this name, held and placed.
async fn placed(stage: &Stage, team: &Workspace, name: &str) -> anyhow::Result<()> {
    stage.order(team, name, json!({ "size": 1 })).await?;
    stage.copy_is("it is placed", team, name, |_| true).await?;
    Ok(())
}

pub(super) async fn a_kind_leaves_on_its_date_and_takes_nothing_with_it(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let related = json!([{ "identifier": "creds", "origin": "service", "kind": "Secret",
        "object": { "template": { "template": "creds" } } }]);
    let (kind, name) = (kinds::published_resources(), stage.published_name("Bucket"));
    let patch = json!({ "spec": { "related": related } });
    stage.service.merge_patch(&kind, None, &name, &patch).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Gadget")).await?;
    stage.publish("Gadget", json!({})).await?;
    let agent = stage.start_agent()?;
    placed(&stage, &stage.team_a, "one").await?;
    stage
        .eventually("both kinds are exported", async || {
            let (kinds, claims) = listed(&stage).await?;
            ensure!(kinds == ["buckets", "gadgets"] && claims.contains(&"secrets".to_owned()), "{kinds:?} {claims:?}");
            Ok(())
        })
        .await?;

    // Who uses it?
    let used = withdraw(&stage, &[]).await?;
    let workspaces = used["workspaces"].as_array().context("no workspaces")?;
    ensure!(workspaces.len() == 2 && used["withdrawAt"].is_null(), "{used:#}");
    let by_a = workspaces.iter().find(|one| one["workspace"] == stage.team_a.path).context("team-a is missing")?;
    ensure!(
        by_a["objects"] == json!(["default/one"]) && by_a["bindings"].as_array().is_some_and(|it| it.len() == 1),
        "{by_a}"
    );

    // A date, told to those who have orders and to those who order later; and taken back.
    let told = withdraw(&stage, &["--in", "30d", "--message", "use Vaults", "--yes"]).await?;
    let date = told["withdrawAt"].as_str().context("no date")?.to_owned();
    let announced = format!("{date}: use Vaults");
    let source =
        stage.source_is("the order is told", &stage.team_a, "one", |source| notice(source) == Some(&announced)).await?;
    let uid = &source["metadata"]["uid"];
    stage
        .eventually("there is an event", async || {
            let events = stage.team_a.client.list(&kinds::events(), Some(NAMESPACE), &ListOptions::default()).await?;
            let about = |event: &&Value| event["involvedObject"]["uid"] == *uid && event["reason"] == "Withdrawal";
            let event = events.iter().find(about).context("there is none")?;
            ensure!(
                event["message"].as_str().is_some_and(|message| message.contains("use Vaults")),
                "{}",
                shown(event)
            );
            Ok(())
        })
        .await?;
    published(&stage, "the PublishedResource says so", "Announced").await?;
    for team in [&stage.team_a, &stage.team_b] {
        stage
            .eventually("kubectl warns", async || {
                let warnings = warnings(&stage, team, "v1").await?;
                ensure!(warnings.iter().any(|warning| warning.contains(&announced)), "{warnings:?}");
                Ok(())
            })
            .await?;
    }
    placed(&stage, &stage.team_b, "two").await?;
    stage
        .source_is("later orders are told too", &stage.team_b, "two", |source| notice(source) == Some(&announced))
        .await?;
    stage.at_rest().await?;
    let undone = withdraw(&stage, &["--undo"]).await?;
    ensure!(undone["withdrawAt"].is_null(), "{undone:#}");
    for (team, name) in [(&stage.team_a, "one"), (&stage.team_b, "two")] {
        stage.source_is("the notice is gone", team, name, |source| notice(source).is_none()).await?;
    }
    published(&stage, "nobody withdraws it", "Offered").await?;
    stage
        .eventually("kubectl is silent again", async || {
            let warnings = warnings(&stage, &stage.team_a, "v1").await?;
            ensure!(warnings.is_empty(), "{warnings:?}");
            Ok(())
        })
        .await?;

    // And in earnest.
    withdraw(&stage, &["--in", "1s", "--yes"]).await?;
    published(&stage, "it is withdrawn", "Withdrawn").await?;
    stage
        .eventually("the export does not list it", async || {
            let (kinds, claims) = listed(&stage).await?;
            ensure!(kinds == ["gadgets"] && claims == ["events"], "{kinds:?} {claims:?}");
            Ok(())
        })
        .await?;
    for (team, name) in [(&stage.team_a, "one"), (&stage.team_b, "two")] {
        let source = stage.source(team, name).await?.context("the order is gone")?;
        let finalizers = source["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        ensure!(!finalizers.contains(&json!(FINALIZER)), "{}", shown(&source));
        ensure!(notice(&source).is_some(), "{}", shown(&source));
        ensure!(stage.copy(team, name).await?.is_some(), "the copy of {name} is gone");
    }
    // It is too late now, and a new agent leaves everything as it is.
    let (code, told) = carrick(&stage, &["withdraw", "bucket", "--undo"]).await?;
    ensure!(code == Some(1) && told.contains("is withdrawn already"), "{code:?} {told}");
    agent.stop().await?;
    let before = stage.snapshot().await?;
    let agent = stage.start_agent()?;
    let gadgets = fixtures::kind(&stage.group, "Gadget");
    stage.order_kind(&gadgets, &stage.team_a, "other", json!({ "size": 1 })).await?;
    stage.copy_of_kind_is("other kinds are served", (&gadgets, &stage.team_a, "other"), |_| true).await?;
    let (kinds_now, claims) = listed(&stage).await?;
    ensure!(kinds_now == ["gadgets"] && claims == ["events"], "{kinds_now:?} {claims:?}");
    let changed = carrick_e2e_stage::stage::changes(&before, &stage.at_rest().await?);
    ensure!(!changed.iter().any(|change| change.contains("apiexports")), "{changed:?}");

    // Without the annotation it is offered again, with the same copies.
    let offer = json!({ "metadata": { "annotations": { carrick_syncagent::api::WITHDRAW_AT: null } } });
    stage.service.merge_patch(&kind, None, &name, &offer).await?;
    published(&stage, "it is offered again", "Offered").await?;
    stage
        .eventually("the change arrives", async || {
            stage.reorder(&stage.team_a, "one", json!({ "size": 8 })).await?;
            let copy = stage.copy(&stage.team_a, "one").await?.context("the copy is gone")?;
            ensure!(copy["spec"]["size"] == 8, "it is {}", shown(&copy));
            Ok(())
        })
        .await?;
    agent.stop().await
}

pub(super) async fn a_date_that_comes_while_no_agent_runs_is_kept_later(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    placed(&stage, &stage.team_a, "one").await?;
    agent.stop().await?;
    withdraw(&stage, &["--in", "0s", "--yes"]).await?;
    let (kinds_now, _) = listed(&stage).await?;
    ensure!(kinds_now == ["buckets"], "{kinds_now:?}");
    let agent = stage.start_agent()?;
    published(&stage, "it is withdrawn", "Withdrawn").await?;
    let source = stage.source(&stage.team_a, "one").await?.context("the order is gone")?;
    ensure!(source["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty), "{}", shown(&source));
    // Its consumer can delete what is left.
    stage.cancel(&stage.team_a, "one").await?;
    let at = (&stage.team_a.client, &stage.buckets(), Some(NAMESPACE), "one");
    stage.gone("the order can be deleted", at).await?;
    agent.stop().await
}
