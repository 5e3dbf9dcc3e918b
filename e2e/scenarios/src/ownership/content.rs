//! Whatever the servers take is carried: large, deep, full of nulls; and what one of them refuses does no lasting harm.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::fixtures::beside_names;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, place, shown};
use carrick_e2e_stage::world::World;
use carrick_e2e_stage::{fixtures, kinds};
use serde_json::{Value, json};

use super::{ended, memories, put, same, warned};

const KIB: usize = 1024;

/// How many bytes of memory an order may cost that has a content of some 30 KiB.
const MODEST: usize = 200 * KIB;

/// Changes of the region that the service cluster refuses.
const REFUSED: usize = 30;

fn text(letter: &str, bytes: usize) -> String {
    letter.repeat(bytes)
}

/// How many bytes the agent keeps about an order, in Secrets and on its copy.
async fn kept(stage: &Stage, name: &str) -> anyhow::Result<usize> {
    let team = &stage.team_a;
    let size = |map: &Value| map.as_object().into_iter().flatten().map(|(_, v)| v.to_string().len()).sum::<usize>();
    let secrets: usize = memories(stage, team, name).await?.iter().map(|secret| size(&secret["data"])).sum();
    let copy = stage.copy(team, name).await?.context("there is no copy")?;
    Ok(secrets + size(&copy["metadata"]["annotations"]))
}

pub(crate) async fn thirty_refused_updates_are_forgotten_when_a_good_one_comes(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bound(world, fixtures::rigid).await?;
    // Only the service cluster sees the region change: in kcp it is always the same.
    let mutation = json!({ "spec": [{ "cel": { "path": "spec.region", "expression": "self.spec.owner" } }] });
    stage.publish("Bucket", json!({ "naming": beside_names(""), "mutation": mutation })).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    let spec = |owner: String, letter: &str, size: usize| json!({ "region": "x", "owner": owner, "blob": text(letter, 30 * KIB), "size": size });
    for name in ["bucket", "canary"] {
        stage.order(team, name, spec("first".to_owned(), "a", 0)).await?;
        stage.copy_is("the copy is there", team, name, |copy| copy["spec"]["region"] == "first").await?;
    }
    stage.at_rest().await?;
    for number in 1..=REFUSED {
        let letter = char::from(b'a' + u8::try_from(number % 26)?).to_string();
        stage.reorder(team, "bucket", spec(format!("other-{number}"), &letter, number)).await?;
        // By the time this one arrives, the other one has been tried.
        stage.reorder(team, "canary", json!({ "size": number })).await?;
        stage.copy_is("others are served", team, "canary", |copy| copy["spec"]["size"] == number).await?;
    }
    warned(&stage, team, "bucket", &["a region is for ever"]).await?;
    let bytes = kept(&stage, "bucket").await?;
    ensure!(bytes < MODEST, "{bytes} bytes are kept about an order of 30 KiB");
    stage.reorder(team, "bucket", spec("first".to_owned(), "z", 99)).await?;
    let copy = stage.copy_is("a valid change arrives", team, "bucket", |copy| copy["spec"]["size"] == 99).await?;
    ensure!(copy["spec"]["blob"].as_str().is_some_and(|blob| blob.starts_with('z')), "only half of it arrived");
    let bytes = kept(&stage, "bucket").await?;
    ensure!(bytes < MODEST, "{bytes} bytes are kept about an order of 30 KiB");
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    agent.stop().await
}

pub(crate) async fn an_order_of_700_kib_is_placed_and_updated(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bound(world, fixtures::roomy).await?;
    stage.publish("Bucket", json!({ "naming": beside_names("") })).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1, "blob": text("a", 700 * KIB) })).await?;
    let copy = stage.copy_is("it is placed", team, "bucket", |copy| copy["spec"]["size"] == 1).await?;
    stage.operator_edits(&copy, json!({ "region": "eu" })).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("a small change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    stage.reorder(team, "bucket", json!({ "size": 3, "blob": text("b", 700 * KIB) })).await?;
    let copy = stage.copy_is("a large change arrives", team, "bucket", |copy| copy["spec"]["size"] == 3).await?;
    ensure!(copy["spec"]["blob"].as_str().is_some_and(|blob| blob.starts_with('b')), "only half of it arrived");
    ensure!(copy["spec"]["region"] == "eu", "what only the operator had set is gone");
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |source| source["status"]["url"] == "here").await?;

    // An agent that starts now has as much to remember.
    agent.stop().await?;
    stage.reorder(team, "bucket", json!({ "size": 4 })).await?;
    let agent = stage.start_agent()?;
    stage.copy_is("a restart is no hindrance", team, "bucket", |copy| copy["spec"]["size"] == 4).await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    agent.stop().await
}

pub(crate) async fn three_related_config_maps_of_300_kib_are_placed_and_updated(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bound(world, fixtures::roomy).await?;
    let parts = ["a", "b", "c"];
    let related = parts.map(|part| {
        let name = format!("{{{{ .Object.metadata.name }}}}-{part}");
        json!({
            "identifier": part, "origin": "kcp", "kind": "ConfigMap", "object": { "template": { "template": name } },
            "watch": { "bySelector": {} },
        })
    });
    stage.publish("Bucket", json!({ "naming": beside_names(""), "related": related })).await?;
    let agent = stage.start_agent()?;
    let (team, maps) = (&stage.team_a, kinds::config_maps());
    let large = |letter: &str| json!({ "data": { "letter": letter, "text": text(letter, 300 * KIB) } });
    for part in parts {
        put(&team.client, &maps, NAMESPACE, &format!("bucket-{part}"), &large("x")).await?;
    }
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    let namespace = place(&copy).0;
    let mut made = Vec::new();
    for part in parts {
        let name = format!("bucket-{part}");
        let at = (&stage.service, &maps, Some(namespace), name.as_str());
        made.push(stage.object("each one is placed", at, |map| map["data"]["letter"] == "x").await?);
    }
    for (part, before) in parts.into_iter().zip(&made) {
        let name = format!("bucket-{part}");
        team.client.merge_patch(&maps, Some(NAMESPACE), &name, &large("y")).await?;
        let at = (&stage.service, &maps, Some(namespace), name.as_str());
        let now = stage.object("each one is updated", at, |map| map["data"]["letter"] == "y").await?;
        same(&now, before)?;
    }
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("the order is updated", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    stage.cancel(team, "bucket").await?;
    stage.all_gone(team, "bucket").await?;
    for part in parts {
        let name = format!("bucket-{part}");
        stage.gone("its copy goes", (&stage.service, &maps, Some(namespace), name.as_str())).await?;
        let at = (&team.client, &maps, Some(NAMESPACE), name.as_str());
        stage.object("the original is free", at, super::is_free).await?;
    }
    agent.stop().await
}

pub(crate) async fn values_that_become_nulls_do_so_on_the_copy_too(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bound(world, fixtures::roomy).await?;
    stage.publish("Bucket", json!({ "naming": beside_names("") })).await?;
    let agent = super::quick_agent(&stage)?;
    let (team, buckets) = (&stage.team_a, stage.buckets());
    let specs = [
        json!({ "size": 1, "nick": "x", "free": { "a": 1, "b": { "c": 2 }, "list": [1, 2, 3] } }),
        json!({ "size": 2, "nick": null, "free": { "a": null, "b": { "c": null }, "list": [null, { "d": null }] } }),
        json!({ "size": 3, "nick": null, "free": { "a": 1, "b": null, "list": [] } }),
        json!({ "size": 4, "nick": "y", "free": { "b": { "e": null }, "list": null } }),
        json!({ "size": 5, "free": {} }),
    ];
    stage.order(team, "bucket", specs[0].clone()).await?;
    let first = stage.copy_is("the copy is there", team, "bucket", |_| true).await?;
    for spec in &specs[1..] {
        stage
            .eventually("the order can be replaced", async || {
                let mut order = stage.source(team, "bucket").await?.context("the order is gone")?;
                order["spec"] = spec.clone();
                team.client.replace(&buckets, Some(NAMESPACE), &order).await?;
                Ok(())
            })
            .await?;
        let stored = stage.source(team, "bucket").await?.context("the order is gone")?["spec"].clone();
        let copy = stage.copy_is("the copy is equal", team, "bucket", |copy| copy["spec"] == stored).await?;
        same(&copy, &first)?;
        super::silent(&stage, &agent).await?;
    }
    // New orders may begin with nulls.
    stage.order(team, "second", specs[1].clone()).await?;
    let stored = stage.source(team, "second").await?.context("the order is gone")?["spec"].clone();
    stage.copy_is("the copy is equal", team, "second", |copy| copy["spec"] == stored).await?;
    agent.stop().await
}

pub(crate) async fn an_order_of_great_depth_is_placed_and_updated(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bound(world, fixtures::roomy).await?;
    stage.publish("Bucket", json!({ "naming": beside_names("") })).await?;
    let agent = stage.start_agent()?;
    let team = &stage.team_a;
    let deep = |end: i64| {
        let lists = (0..100).fold(json!({ "end": end }), |inner, _| json!([inner]));
        (0..100).fold(lists, |inner, _| json!({ "in": inner }))
    };
    stage.order(team, "bucket", json!({ "size": 1, "free": deep(1) })).await?;
    let copy = stage.copy_is("it is placed", team, "bucket", |copy| copy["spec"]["free"] == deep(1)).await?;
    stage.reorder(team, "bucket", json!({ "size": 2 })).await?;
    stage.copy_is("a shallow change arrives", team, "bucket", |copy| copy["spec"]["size"] == 2).await?;
    stage.reorder(team, "bucket", json!({ "free": deep(2) })).await?;
    stage.copy_is("a deep change arrives", team, "bucket", |copy| copy["spec"]["free"] == deep(2)).await?;
    stage.operator_reports(&copy, json!({ "deep": deep(3) })).await?;
    let source = stage.source_is("the status returns", team, "bucket", |s| s["status"]["deep"] == deep(3)).await?;
    ensure!(source["spec"]["free"] == deep(2), "{}", shown(&source));
    stage.cancel(team, "bucket").await?;
    ended(&stage, &stage.buckets(), team, "bucket").await?;
    agent.stop().await
}
