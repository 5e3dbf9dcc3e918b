//! Workspaces that move between shards whose versions differ, as kcp moves them with its feature `LogicalClusterMigration`.
//!
//! Shards of a real kcp cannot take a workspace back, and are not part of the other worlds: these play on planes of their own.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use carrick_client::ListOptions;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{Stage, Workspace, place};
use carrick_e2e_stage::world::{EmbeddedWorld, World};
use carrick_kcp::kinds::LOGICAL_CLUSTER;
use carrick_multicluster::providers::kcp::ApiExport;
use carrick_multicluster::{Action, Context, MultiClusterController, WatchConfig};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::fleet::{export_buckets, provider_client};
use super::owner::{credentials_are, furnish, furnished, settings_are, write_credentials, write_settings};

/// How often a workspace moves.
const MOVES: usize = 6;
/// So much is done at one time.
const AT_ONCE: usize = 16;

pub(super) async fn a_workspace_that_moves_to_a_shard_with_lower_versions_and_back_is_served_all_the_time(
    _: Arc<dyn World>,
) -> anyhow::Result<()> {
    let world = Arc::new(EmbeddedWorld::with_shards_apart(&[1_000_000, 0]).await?);
    let (stage, agent) = furnished(world.clone()).await?;
    let team = &stage.team_a;
    for round in 0..MOVES {
        stage.at_rest().await?;
        let before = copies(&stage).await?;
        let (cluster, shard) = home(team).await?;
        ensure!(world.kcp_plane().move_cluster(&cluster, 1 - shard), "{cluster} is not on shard {shard}");
        if round % 2 == 0 {
            // A move alone writes nothing to copies; on the other rounds everything goes on at once.
            stage.at_rest().await?;
            ensure!(copies(&stage).await? == before, "a move wrote: {:?}", copies(&stage).await?);
        }
        served(&stage, round).await.with_context(|| format!("after move {round}, from shard {shard}"))?;
        let after = copies(&stage).await?;
        for (name, (uid, _)) in &before {
            let now = after.get(name).with_context(|| format!("the copy of {name} is gone"))?;
            ensure!(now.0 == *uid, "the copy of {name} was made again");
        }
    }
    agent.stop().await
}

pub(super) async fn many_workspaces_move_together_and_back_and_nothing_is_made_again(
    _: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (workspaces, orders) = if std::env::var_os("CARRICK_WIDE").is_some() { (100, 10) } else { (6, 3) };
    let world = Arc::new(EmbeddedWorld::with_shards_apart(&[1_000_000, 0]).await?);
    let (stage, agent) = furnished(world.clone()).await?;
    let teams = many(workspaces, async |number| {
        let team = stage.team(&format!("moving-{number}")).await?;
        stage.bind(&team).await?;
        Ok(team)
    })
    .await?;
    let names: Vec<String> = (0..orders).map(|number| format!("order-{number}")).collect();
    many(teams.len() * orders, async |number| {
        furnish(&stage, &teams[number % teams.len()], &names[number / teams.len()]).await
    })
    .await?;
    for round in ["there", "back"] {
        stage.at_rest().await?;
        let before = copies(&stage).await?;
        ensure!(before.len() == teams.len() * orders + 2, "there are {} copies", before.len());
        for team in &teams {
            let (cluster, shard) = home(team).await?;
            ensure!(world.kcp_plane().move_cluster(&cluster, 1 - shard), "{cluster} is not on shard {shard}");
        }
        let moved = Instant::now();
        many(teams.len(), async |number| flows(&stage, &teams[number], &names[0], round).await).await?;
        println!(
            "{workspaces} workspaces × {orders} orders moved {round}: all flows {:?} after the move",
            moved.elapsed()
        );
        stage.at_rest().await?;
        let after = copies(&stage).await?;
        let edited = before.iter().filter(|(name, generation)| after.get(*name) != Some(*generation)).count();
        ensure!(
            edited == 0 && after.len() == before.len(),
            "{edited} copies were written or made again: {before:?} {after:?}"
        );
    }
    agent.stop().await
}

pub(super) async fn a_controller_of_the_library_follows_workspaces_that_move(_: Arc<dyn World>) -> anyhow::Result<()> {
    let (workspaces, orders) = if std::env::var_os("CARRICK_WIDE").is_some() { (100, 10) } else { (6, 3) };
    let world = Arc::new(EmbeddedWorld::with_shards_apart(&[1_000_000, 0]).await?);
    let stage = Stage::bare(world.clone()).await?;
    export_buckets(&stage).await?;
    let provider = ApiExport::new(provider_client(&stage)?, stage.export_name());
    let controller = MultiClusterController::compact(provider, WatchConfig::default(), stage.buckets());
    let (sizes, seen) = watch::channel(Sizes::default());
    let run = controller.run_keyed(
        async |request, bucket, context: Context<watch::Sender<Sizes>>| {
            let size = bucket.map(|bucket| bucket.value()["spec"]["size"].clone());
            let key = (request.cluster.to_string(), request.obj.name.clone());
            context.data.send_modify(|sizes| sizes.note(key, size));
            Ok::<_, Infallible>(Action::await_change())
        },
        |_, _, _| Action::backoff(),
        Arc::new(sizes),
    );
    let running = tokio::spawn(run.for_each(async |_| {}));

    let teams = many(workspaces, async |number| {
        let team = stage.team(&format!("moving-{number}")).await?;
        stage.bind(&team).await?;
        Ok(team)
    })
    .await?;
    let mut count = workspaces * orders;
    let name = |number: usize| format!("order-{}", number / workspaces);
    many(count, async |number| stage.order(&teams[number % workspaces], &name(number), json!({ "size": 1 })).await)
        .await?;
    for (round, size) in [("there", 2), ("back", 3)] {
        stage.eventually("the controller has seen all orders", async || seen.borrow().are(count, size - 1)).await?;
        for team in &teams {
            let (cluster, shard) = home(team).await?;
            ensure!(world.kcp_plane().move_cluster(&cluster, 1 - shard), "{cluster} is not on shard {shard}");
        }
        let moved = Instant::now();
        many(count, async |number| {
            stage.reorder(&teams[number % workspaces], &name(number), json!({ "size": size })).await
        })
        .await?;
        let new =
            async |number: usize| stage.order(&teams[number], &name(count + number), json!({ "size": size })).await;
        many(workspaces, new).await?;
        count += workspaces;
        stage.eventually("the controller sees every change", async || seen.borrow().are(count, size)).await?;
        println!("{workspaces} workspaces moved {round}: {count} orders seen {:?} after the move", moved.elapsed());
    }
    running.abort();
    Ok(())
}

/// The sizes of all orders as a controller has seen them last. Orders of a workspace on its way may be out of sight for a moment.
#[derive(Default)]
struct Sizes(BTreeMap<(String, String), Value>);

impl Sizes {
    fn note(&mut self, key: (String, String), size: Option<Value>) {
        match size {
            Some(size) => self.0.insert(key, size),
            None => self.0.remove(&key),
        };
    }

    /// Whether there are so many orders, all of this size.
    fn are(&self, count: usize, size: u64) -> anyhow::Result<()> {
        let fit = self.0.values().filter(|it| **it == size).count();
        ensure!(fit == count, "of {} orders {fit} have size {size}; {count} should", self.0.len());
        Ok(())
    }
}

/// Does something for so many numbers, a few at a time.
async fn many<T>(count: usize, act: impl AsyncFn(usize) -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
    futures::stream::iter(0..count).map(|number| act(number)).buffered(AT_ONCE).try_collect().await
}

/// Sees that status and related objects of both sides arrive.
async fn flows(stage: &Stage, team: &Workspace, name: &str, word: &str) -> anyhow::Result<()> {
    write_settings(team, name, word).await?;
    settings_are(stage, team, name, word).await?;
    let copy = stage.copy(team, name).await?.context("no copy")?;
    write_credentials(stage, &copy, word).await?;
    credentials_are(stage, team, name, word).await?;
    stage.operator_reports(&copy, json!({ "phase": word })).await?;
    stage.source_is("a status arrives", team, name, |source| source["status"]["phase"] == *word).await?;
    Ok(())
}

/// Sees that everything of a workspace that has just moved arrives.
async fn served(stage: &Stage, round: usize) -> anyhow::Result<()> {
    let (team, word, size) = (&stage.team_a, format!("round-{round}"), 10 + round);
    write_settings(team, "kept", &word).await?;
    stage.reorder(team, "kept", json!({ "size": size })).await?;
    let copy = stage.copy_is("an edit arrives", team, "kept", |copy| copy["spec"]["size"] == size).await?;
    settings_are(stage, team, "kept", &word).await?;
    write_credentials(stage, &copy, &word).await?;
    credentials_are(stage, team, "kept", &word).await?;
    stage.operator_reports(&copy, json!({ "phase": word })).await?;
    stage.source_is("a status arrives", team, "kept", |source| source["status"]["phase"] == *word).await?;
    furnish(stage, team, &word).await?;
    // What nobody has touched since it moved follows as well.
    write_settings(team, "noisy", &word).await?;
    settings_are(stage, team, "noisy", &word).await
}

/// The logical cluster of a workspace, and its shard.
async fn home(team: &Workspace) -> anyhow::Result<(String, usize)> {
    let cluster = team.client.get(&kinds::kcp(&LOGICAL_CLUSTER), None, "cluster").await?;
    let metadata = &cluster.context("no logical cluster")?["metadata"];
    let name = metadata["annotations"]["kcp.io/cluster"].as_str().context("no name")?.to_owned();
    let shard = metadata["annotations"]["core.kcp.io/shard"].as_str().context("no shard")?;
    Ok((name, shard.strip_prefix("shard-").map_or(Ok(0), str::parse)?))
}

/// UID and generation of all copies, by where they are.
async fn copies(stage: &Stage) -> anyhow::Result<BTreeMap<String, (Value, Value)>> {
    let all = stage.service.list(&stage.buckets(), None, &ListOptions::default()).await?;
    let copy = |copy: Value| {
        let (namespace, name) = place(&copy);
        (format!("{namespace}/{name}"), (copy["metadata"]["uid"].clone(), copy["metadata"]["generation"].clone()))
    };
    Ok(all.into_iter().map(copy).collect())
}
