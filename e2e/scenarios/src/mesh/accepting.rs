//! Which orders a broker may bring to a provider: the agent keeps the AcceptAPI.

use std::sync::Arc;

use anyhow::ensure;
use carrick_e2e_stage::stage::shown;
use carrick_e2e_stage::world::World;
use carrick_syncagent::api::DRAIN;
use serde_json::{Value, json};

use super::brokered::{Accepting, Market, accept_apis};
use super::examples::CERTIFICATES;
use super::word;

const KEPT: &str = "AcceptAPIKept";

fn suffix(suffix: &str) -> Value {
    json!([{ "key": "fqdn", "suffix": suffix }])
}

fn drain(value: &Value) -> Value {
    json!({ "metadata": { "annotations": { DRAIN: value } } })
}

fn accept(filters: &Value) -> Value {
    json!({ "spec": { "implements": { "accept": { "filters": filters } } } })
}

async fn open(world: Arc<dyn World>) -> anyhow::Result<Market> {
    let filters = [suffix(".internal.corp"), suffix(".corp.com")];
    Market::prepare(world, CERTIFICATES, (filters, Accepting::ByAgent), None).await
}

fn gvr(market: &Market) -> Value {
    let (group, version, plural) = (&*market.kind.group, &*market.kind.version, &*market.kind.plural);
    json!({ "group": group, "version": version, "resource": plural })
}

/// Name of the AcceptAPIs.
fn name(market: &Market) -> String {
    format!("{}.{}", market.kind.plural, market.kind.group)
}

async fn accept_api_is(
    market: &Market,
    what: &str,
    provider: usize,
    good: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    let client = &market.providers[provider].provider.client;
    market.platform.object(what, (client, &accept_apis(), None, &name(market)), good).await
}

async fn accept_api_is_gone(market: &Market, provider: usize) -> anyhow::Result<()> {
    let client = &market.providers[provider].provider.client;
    market.platform.gone("the AcceptAPI goes", (client, &accept_apis(), None, &name(market))).await
}

fn identity(object: &Value) -> (&Value, &Value) {
    (&object["metadata"]["uid"], &object["metadata"]["resourceVersion"])
}

pub(crate) async fn an_agent_keeps_what_says_which_orders_come(world: Arc<dyn World>) -> anyhow::Result<()> {
    let market = open(world).await?;
    let [first, second] = market.agents().await?;
    let provider = &market.providers[0].provider.client;
    let made = accept_api_is(&market, "it is made", 0, |it| it["spec"]["filters"] == suffix(".internal.corp")).await?;
    ensure!(made["spec"]["gvr"] == gvr(&market), "{}", shown(&made));
    ensure!(made["spec"]["apiExportName"] == market.providers[0].export_name(), "{}", shown(&made));
    market.says(0, KEPT, "Kept").await?;
    market.order("web", json!({ "fqdn": "web.internal.corp" })).await?;
    market.order_is("it is available", "web", |order| word(order) == "Available").await?;
    market.settled("web", 0).await?;

    // Whoever edits it is corrected, and the PublishedResource is followed.
    let edited = json!({ "spec": { "filters": suffix(".nobody"), "apiExportName": "other" } });
    provider.merge_patch(&accept_apis(), None, &name(&market), &edited).await?;
    accept_api_is(&market, "it is repaired", 0, |it| it["spec"] == made["spec"]).await?;
    market.edit(0, &accept(&suffix(".corp"))).await?;
    let kept = accept_api_is(&market, "it follows", 0, |it| it["spec"]["filters"] == suffix(".corp")).await?;
    ensure!(kept["metadata"]["uid"] == made["metadata"]["uid"], "it was made again: {}", shown(&kept));

    // A killed agent takes nothing back, and the next one finds nothing to do.
    first.kill().await?;
    market.order("later", json!({ "fqdn": "later.internal.corp" })).await?;
    let first = market.providers[0].start_agent()?;
    market.order_is("it is available", "later", |order| word(order) == "Available").await?;
    let after = accept_api_is(&market, "it is there", 0, |_| true).await?;
    ensure!(identity(&after) == identity(&kept), "{} became {}", shown(&kept), shown(&after));

    // Only by the words of the provider all orders go elsewhere.
    market.edit(1, &accept(&json!([]))).await?;
    accept_api_is(&market, "the second provider takes everything", 1, |it| it["spec"].get("filters").is_none()).await?;
    market.edit(0, &drain(&json!("true"))).await?;
    accept_api_is_gone(&market, 0).await?;
    market.says(0, KEPT, "Drained").await?;
    for name in ["web", "later"] {
        market.settled(name, 1).await?;
    }
    market.edit(0, &drain(&Value::Null)).await?;
    accept_api_is(&market, "it is made again", 0, |it| it["spec"]["filters"] == suffix(".corp")).await?;
    market.edit(0, &json!({ "spec": { "implements": { "accept": null } } })).await?;
    accept_api_is_gone(&market, 0).await?;
    market.says(0, KEPT, "NotAsked").await?;
    for name in ["web", "later"] {
        market.cancel(name).await?;
        market.ended(name).await?;
    }
    first.stop().await?;
    second.stop().await?;
    market.close().await
}

pub(crate) async fn what_others_accept_is_left_alone(world: Arc<dyn World>) -> anyhow::Result<()> {
    let market = open(world).await?;
    let provider = &market.providers[0].provider.client;
    let spec = json!({
        "gvr": gvr(&market), "apiExportName": market.providers[0].export_name(), "filters": suffix(".by.hand"),
    });
    let by_hand = json!({
        "apiVersion": accept_apis().api_version(), "kind": "AcceptAPI", "metadata": { "name": name(&market) }, "spec": spec,
    });
    market
        .platform
        .eventually("AcceptAPIs are served", async || match provider.create(&accept_apis(), None, &by_hand).await {
            Err(error) if !error.is_already_exists() => Err(error.into()),
            _ => Ok(()),
        })
        .await?;
    let before = accept_api_is(&market, "it is there", 0, |_| true).await?;
    let agents = market.agents().await?;
    let told = market.says(0, KEPT, "Foreign").await?;
    ensure!(
        told["status"] == "False" && told["message"].as_str().is_some_and(|it| it.contains("kubectl label")),
        "{told}"
    );
    // Not even a drain.
    market.edit(0, &drain(&json!("true"))).await?;
    market.says(0, KEPT, "Drained").await?;
    let after = accept_api_is(&market, "it is there", 0, |_| true).await?;
    ensure!(identity(&after) == identity(&before), "{} became {}", shown(&before), shown(&after));
    market.edit(0, &drain(&Value::Null)).await?;
    market.says(0, KEPT, "Foreign").await?;

    // Who has made it may hand it over.
    let label = json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": "api-syncagent" } } });
    provider.merge_patch(&accept_apis(), None, &name(&market), &label).await?;
    accept_api_is(&market, "it is the agent's", 0, |it| it["spec"]["filters"] == suffix(".internal.corp")).await?;
    market.says(0, KEPT, "Kept").await?;
    for agent in agents {
        agent.stop().await?;
    }
    market.close().await
}
