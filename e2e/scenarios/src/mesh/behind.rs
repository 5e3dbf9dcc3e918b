//! Whose an order is that a broker has copied into a staging workspace.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::{Agent, Setup, config};
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace, place, shown};
use carrick_e2e_stage::world::World;
use carrick_syncagent::agent::explain::{Explained, Question, explain};
use carrick_syncagent::agent::platform_mesh::consumer::{CONSUMER_CLUSTER, StagingRoot};
use serde_json::{Value, json};

use super::brokered::{Accepting, Market};
use super::examples::CERTIFICATES;
use super::platform::{self, EXPORT};
use super::word;

/// What the agent that serves orders would do, for the orders of one workspace or consumer.
async fn explained(provider: &Stage, root: &StagingRoot, of: &str) -> anyhow::Result<Vec<Explained>> {
    let question = Question { workspace: Some(of.to_owned()), ..Question::default() };
    let mut config = config(provider)?;
    config.staging_root = Some(root.clone());
    let report = explain(config, &question).await?;
    Ok(report.published_resources.into_iter().flat_map(|published| published.objects).collect())
}

/// A page of the dashboard.
async fn page(agent: &Agent, path: &str) -> anyhow::Result<Value> {
    let answer = agent.dashboard(path).await?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
    serde_json::from_str(body).with_context(|| format!("{path} answered {answer}"))
}

/// Namespaces of copies.
async fn namespaces(market: &Market) -> anyhow::Result<BTreeSet<String>> {
    Ok(market.copies(0).await?.iter().map(|copy| place(copy).0.to_owned()).collect())
}

async fn counted(market: &Market, agent: &Agent, consumers: usize) -> anyhow::Result<()> {
    let wanted = format!("sync_agent_consumers{{publishedresource=\"{}\"}} {consumers}", market.published_name(0));
    let counted = async || {
        let metrics = agent.metrics().await?;
        ensure!(
            metrics.contains(&wanted),
            "{}",
            metrics.lines().filter(|it| it.contains("consumers")).collect::<String>()
        );
        Ok(())
    };
    market.platform.eventually(&wanted, counted).await
}

pub(crate) async fn consumers_behind_a_broker_count_as_themselves(world: Arc<dyn World>) -> anyhow::Result<()> {
    let filters = [".corp", ".nowhere"].map(|suffix| json!([{ "key": "fqdn", "suffix": suffix }]));
    let market = Market::prepare(world, CERTIFICATES, (filters, Accepting::ByHand), None).await?;
    let naming = json!({
        "namespace": "of-{{ .ConsumerCluster }}",
        "name": "c-{{ .Object.metadata.namespace | sha3short }}-{{ .Object.metadata.name | sha3short }}",
    });
    market.edit(0, &json!({ "spec": { "naming": naming, "limits": { "objectsPerWorkspace": 1 } } })).await?;
    let (platform, provider) = (&market.platform, &market.providers[0]);
    let third = platform.team("team-c").await?;
    platform::bind(platform, &third, (market.own(), EXPORT), &["secrets", "namespaces"]).await?;
    let staging = market.staging();
    let root = StagingRoot::at(&staging.path).map_err(anyhow::Error::msg)?;
    let agent = Agent::start_behind(provider, Setup { probes: true, ..Setup::default() }, root.clone())?;
    market.claimed(0).await?;

    // Three consumers, each of whom gets what one consumer may have, under her own name.
    let teams = [&platform.team_a, &platform.team_b, &third];
    let own: BTreeSet<String> = teams.iter().map(|team| format!("of-{}", team.cluster)).collect();
    for name in ["web", "more"] {
        for team in teams {
            platform.order_kind(&market.kind, team, name, json!({ "fqdn": format!("{name}.corp") })).await?;
        }
        let wanted = if name == "web" { "Available" } else { "Failed" };
        for team in teams {
            let at = (&team.client, &market.kind, Some(NAMESPACE), name);
            platform.object(&format!("{name} is {wanted}"), at, |order| word(order) == wanted).await?;
        }
    }
    let copies = market.copies(0).await?;
    ensure!(namespaces(&market).await? == own && copies.len() == 3, "{copies:?}");
    counted(&market, &agent, 3).await?;
    let explained_orders = explained(provider, &root, &third.cluster).await?;
    ensure!(explained_orders.len() == 2, "{explained_orders:?}");
    for order in &explained_orders {
        let is_staged = order.workspace.as_ref().is_some_and(|path| path.starts_with(&staging.path));
        ensure!(is_staged && order.consumer.as_ref() == Some(&third.cluster), "{order:?}");
    }
    let state = page(&agent, "/state.json").await?;
    let listed = state["workspaces"].as_array().context("no workspaces")?;
    let listed: BTreeSet<&str> = listed.iter().filter_map(|it| it["consumer"].as_str()).collect();
    ensure!(listed == teams.iter().map(|team| &*team.cluster).collect(), "{state:#}");
    let found = page(&agent, &format!("/find.json?q={}", third.cluster)).await?;
    ensure!(found["total"] == 2 && found["found"][0]["consumer"] == third.cluster.as_str(), "{found:#}");

    a_broker_is_believed_in_its_own_workspaces_only(&market, provider).await?;
    a_name_waits_for_the_broker(&market, (provider, &root), staging).await?;
    counted(&market, &agent, 4).await?;
    agent.stop().await?;
    market.close().await
}

/// An order that has no broker behind it, whatever its owner writes.
async fn a_broker_is_believed_in_its_own_workspaces_only(market: &Market, provider: &Stage) -> anyhow::Result<()> {
    let (team, victim) = (&provider.team_a, &market.platform.team_a.cluster);
    provider.bind(team).await?;
    let order = claimed_order(market, "mine", Some(victim));
    market.platform.eventually("the API is served", async || create(market, team, &order).await).await?;
    let wanted = format!("of-{}", team.cluster);
    market
        .platform
        .eventually("its copy is with those of its workspace", async || {
            let found = namespaces(market).await?;
            ensure!(found.contains(&wanted), "{found:?}");
            Ok(())
        })
        .await?;
    Ok(team.client.delete(&market.kind, Some(NAMESPACE), "mine", &carrick_client::DeleteOptions::default()).await?)
}

/// An order that the broker has not annotated yet.
async fn a_name_waits_for_the_broker(
    market: &Market,
    (provider, root): (&Stage, &StagingRoot),
    staging: &Workspace,
) -> anyhow::Result<()> {
    let workspace = market.platform.below(staging, "staging-by-hand").await?;
    provider.bind(&workspace).await?;
    let order = claimed_order(market, "early", None);
    market.platform.eventually("the API is served", async || create(market, &workspace, &order).await).await?;
    market
        .platform
        .eventually("it waits for the broker", async || {
            let found = explained(provider, root, &workspace.cluster).await?;
            let error = found.first().and_then(|order| order.error.as_deref()).unwrap_or_default();
            ensure!(error.contains(CONSUMER_CLUSTER), "{found:?}");
            Ok(())
        })
        .await?;
    let waiting = workspace.client.get(&market.kind, Some(NAMESPACE), "early").await?.context("the order is gone")?;
    ensure!(word(&waiting) != "Failed", "{}", shown(&waiting));
    let found = namespaces(market).await?;
    ensure!(!found.contains(&format!("of-{}", workspace.cluster)), "it has a copy: {found:?}");
    let annotations = json!({ "metadata": { "annotations": { CONSUMER_CLUSTER: format!("{EXPORT}#byhand") } } });
    workspace.client.merge_patch(&market.kind, Some(NAMESPACE), "early", &annotations).await?;
    market
        .platform
        .eventually("it is placed under her name", async || {
            let found = namespaces(market).await?;
            ensure!(found.contains("of-byhand"), "{found:?}");
            Ok(())
        })
        .await
}

fn claimed_order(market: &Market, name: &str, consumer: Option<&str>) -> Value {
    let annotations = consumer.map(|consumer| json!({ CONSUMER_CLUSTER: format!("{EXPORT}#{consumer}") }));
    json!({
        "apiVersion": market.kind.api_version(), "kind": &*market.kind.kind,
        "metadata": { "name": name, "namespace": NAMESPACE, "annotations": annotations },
        "spec": { "fqdn": "x.corp" },
    })
}

async fn create(market: &Market, team: &Workspace, order: &Value) -> anyhow::Result<()> {
    match team.client.create(&market.kind, Some(NAMESPACE), order).await {
        Err(error) if !error.is_already_exists() => Err(error.into()),
        _ => Ok(()),
    }
}
