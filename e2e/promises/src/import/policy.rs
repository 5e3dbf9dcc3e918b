//! Objects that an agent imports by itself, because their provider has labelled them, while it is killed before and after every single write.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use carrick_client::{DeleteOptions, ListOptions};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::fixtures;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, shown};
use carrick_e2e_stage::world::EmbeddedWorld;
use carrick_syncagent::agent::Timing;
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::{NAMES, OWN, contents, unchanged};
use crate::kills::{sample, strikes};
use crate::lab::{CALM, PATIENCE, quick};
use crate::switch::{Moment, Switch};

/// What happens to the objects, over and over.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// They exist and are labelled, and get their orders.
    Imported,
    /// Their orders are deleted.
    Ended,
}

const ACTS: [Act; 2] = [Act::Imported, Act::Ended];

/// A world in which objects are imported, and the agent that does it.
struct Shop {
    world: Arc<EmbeddedWorld>,
    stage: Stage,
    switch: Arc<Switch>,
    timing: Timing,
    agent: Option<Agent>,
    /// UIDs of all orders that there have been since the objects were made.
    orders: BTreeSet<String>,
}

/// In each run the agent dies at one write of the import, and another one at one write of the end; in the first run at none.
pub async fn killed_at_every_write() -> anyhow::Result<String> {
    let mut shop = Shop::open().await?;
    let writes = shop.plays(None).await.context("undisturbed")?.writes;
    let (mut killed, mut missed) = (0, 0);
    for strike in strikes(writes.into_iter().max().unwrap_or_default()) {
        let story = shop.plays(Some(strike)).await.with_context(|| format!("killed {strike:?}"))?;
        killed += story.deaths;
        missed += writes.iter().filter(|writes| strike.0 <= **writes).count().saturating_sub(story.deaths);
    }
    ensure!(killed > 0 && missed <= 1 + killed / 5, "only {killed} kills, {missed} were armed in vain");
    shop.end_agent().await?;
    Ok(format!("{killed} kills, {missed} armed in vain, writes of {ACTS:?} {writes:?}; {}", sample()))
}

/// What came of one run.
struct Story {
    writes: [u64; 2],
    deaths: usize,
}

impl Shop {
    /// An agent that imports whatever is labelled, and nothing that is.
    async fn open() -> anyhow::Result<Self> {
        let world = Arc::new(EmbeddedWorld::start().await?);
        let switch = Switch::install([world.kcp_plane(), world.service_plane()]);
        let stage = Stage::bound(world.clone(), |group| fixtures::crd(group, "Bucket")).await?;
        let import = json!({
            "selector": { "matchLabels": { "import": "yes" } }, "to": stage.team_a.path, "without": ["import"],
        });
        stage.publish("Bucket", json!({ "import": import })).await?;
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": OWN } });
        stage.service.create(&kinds::namespaces(), None, &namespace).await?;
        let mut shop = Self { world, stage, switch, timing: quick(), agent: None, orders: BTreeSet::new() };
        shop.start_agent()?;
        shop.stage.order(&shop.stage.team_a, "probe", json!({ "size": 1 })).await?;
        shop.stage.copy_is("the probe is placed", &shop.stage.team_a, "probe", |_| true).await?;
        shop.stage.cancel(&shop.stage.team_a, "probe").await?;
        shop.stage.all_gone(&shop.stage.team_a, "probe").await?;
        Ok(shop)
    }

    fn start_agent(&mut self) -> anyhow::Result<()> {
        self.agent = Some(Agent::start(&self.stage, Setup { timing: self.timing, ..Setup::default() })?);
        Ok(())
    }

    async fn end_agent(&mut self) -> anyhow::Result<()> {
        match self.agent.take() {
            Some(agent) => agent.stop().await,
            None => Ok(()),
        }
    }

    /// Objects are made, imported, lose their orders, and are deleted by their provider.
    async fn plays(&mut self, strike: Option<(u64, Moment)>) -> anyhow::Result<Story> {
        let buckets = self.stage.buckets();
        self.orders.clear();
        let (mut story, mut before) = (Story { writes: [0; 2], deaths: 0 }, Vec::new());
        for (act, writes) in ACTS.into_iter().zip(0..) {
            self.switch.reset();
            if let Some((write, moment)) = strike {
                self.switch.arm(write, moment);
            }
            match act {
                Act::Imported => {
                    for name in NAMES {
                        let object = json!({
                            "apiVersion": buckets.api_version(), "kind": "Bucket",
                            "metadata": { "name": name, "labels": { "import": "yes" } },
                            "spec": { "size": 1, "region": "eu" },
                        });
                        self.stage.service.create(&buckets, Some(OWN), &object).await?;
                    }
                    before = contents(&self.stage).await?;
                }
                Act::Ended => {
                    for name in NAMES {
                        self.stage.cancel(&self.stage.team_a, name).await?;
                    }
                }
            }
            story.deaths += self.rests(act, &before).await.with_context(|| format!("{act:?}"))?;
            unchanged(&self.stage, &before).await?;
            story.writes[writes] = self.switch.writes();
        }
        ensure!(self.orders.len() == NAMES.len(), "{} orders for {} objects", self.orders.len(), NAMES.len());
        self.switch.reset();
        for name in NAMES {
            self.stage.service.delete(&buckets, Some(OWN), name, &DeleteOptions::default()).await?;
        }
        Ok(story)
    }

    /// Waits until an act has led where it should and nothing more is written, and revives the agent meanwhile. Counts its deaths.
    async fn rests(&mut self, act: Act, before: &[Value]) -> anyhow::Result<usize> {
        let (started, mut deaths) = (Instant::now(), 0);
        let mut calm = (self.switch.writes(), Instant::now());
        loop {
            if self.switch.is_dead() {
                deaths += 1;
                self.revive().await?;
                calm.1 = Instant::now();
            }
            unchanged(&self.stage, before).await?;
            let missing = self.missing(act).await?;
            if calm.0 != self.switch.writes() || missing.is_some() {
                calm = (self.switch.writes(), Instant::now());
            }
            if missing.is_none() && calm.1.elapsed() >= CALM {
                return Ok(deaths);
            }
            if started.elapsed() > PATIENCE {
                bail!("in vain waited for {act:?}: {}", missing.unwrap_or_else(|| "no rest".to_owned()));
            }
            tokio::select! {
                () = self.switch.killed() => {}
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
        }
    }

    async fn revive(&mut self) -> anyhow::Result<()> {
        if let Some(agent) = self.agent.take() {
            agent.kill().await?;
        }
        self.world.kcp_plane().faults().idle().await;
        self.world.service_plane().faults().idle().await;
        self.switch.reset();
        self.start_agent()
    }

    /// What an act has not led to yet.
    async fn missing(&mut self, act: Act) -> anyhow::Result<Option<String>> {
        let (stage, all) = (&self.stage, ListOptions::default());
        let buckets = stage.buckets();
        let strangers = stage.team_b.client.list(&buckets, None, &all).await?;
        ensure!(strangers.is_empty(), "an order in a workspace that nobody has named: {strangers:?}");
        let orders = stage.team_a.client.list(&buckets, None, &all).await?;
        for order in &orders {
            let metadata = &order["metadata"];
            let is_named = NAMES.iter().any(|name| metadata["name"] == *name) && metadata["namespace"] == NAMESPACE;
            ensure!(is_named, "an order that belongs to no object: {}", shown(order));
            self.orders.insert(metadata["uid"].as_str().unwrap_or_default().to_owned());
        }
        ensure!(self.orders.len() <= NAMES.len(), "an object got more than one order: {orders:?}");
        let objects = stage.service.list(&buckets, Some(OWN), &all).await?;
        ensure!(objects.len() == NAMES.len(), "an object is gone: {objects:?}");
        let annotation = |object: &Value, key: &str| object["metadata"]["annotations"][key].clone();
        for (object, name) in objects.iter().zip(NAMES) {
            let order = orders.iter().find(|order| order["metadata"]["name"] == name);
            let (metadata, remembered) = (&object["metadata"], stage.remembered_of(&stage.team_a, name).await?);
            let missing = match (act, order) {
                (Act::Imported, None) => Some("there is no order"),
                (Act::Imported, Some(_)) if annotation(object, api::REMOTE_NAME) != name => {
                    Some("the object does not name its order")
                }
                (Act::Imported, Some(order)) if order["metadata"]["finalizers"].is_null() => {
                    Some("the order is not held")
                }
                (Act::Imported, Some(_)) if remembered.is_none() => Some("nothing is remembered"),
                (Act::Ended, Some(_)) => Some("the order is still there"),
                (Act::Ended, None) if remembered.is_some() => Some("it is remembered"),
                (Act::Ended, None) if annotation(object, api::IMPORTED).is_null() => {
                    // Without it the order would come back.
                    bail!("nothing says that it was imported: {}", shown(object))
                }
                (Act::Ended, None) if metadata["labels"] != json!({ "import": "yes" }) => Some("it is linked"),
                _ => None,
            };
            if let Some(missing) = missing {
                return Ok(Some(format!("{missing}: {}", shown(object))));
            }
        }
        Ok(None)
    }
}
