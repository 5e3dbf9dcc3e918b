//! A lab: one world with one stage, one flow published on it, and an agent that is killed and started again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use carrick_client::{DeleteOptions, ListOptions};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Stage, Workspace};
use carrick_e2e_stage::world::{ADMIN_AGENT, EmbeddedWorld};
use carrick_plane::faults::RequestInfo;
use carrick_syncagent::agent::Timing;
use carrick_syncagent::rules::access::Budget;
use serde_json::Value;

use super::audit::Audit;
use super::deed::Team;
use super::flow::Flow;
use super::meddling::Meddling;
use super::state::{Eyes, State};
use super::switch::Switch;

/// How long to wait for a state before giving up; retries after faults have growing pauses, and machines may be slow. Whatever agents here do now and then they
/// do every [`PERIOD`], so patience hides nothing.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// For how long nothing may happen before a lab counts as being at rest.
pub const CALM: Duration = Duration::from_millis(350);
/// The same for a state that others are compared with, which must not be taken too early.
pub const LONG_CALM: Duration = Duration::from_secs(1);
/// How many pages an agent has to answer before it counts as being at rest, one after the other.
const ANSWERS: usize = 10;
/// How often agents here look at what no watch reports.
pub const PERIOD: Duration = Duration::from_millis(150);

/// Timing of agents that do often what no event asks for.
pub fn quick() -> Timing {
    Timing {
        requeue: PERIOD,
        grace: PERIOD,
        resync: PERIOD,
        absent_kind: PERIOD,
        known_kind: PERIOD,
        count: PERIOD,
        token: PERIOD,
        // The one write at rest has a trial of its own; all others would have to look away from it.
        heartbeat: Duration::from_hours(1),
        heartbeat_old: Duration::from_hours(2),
    }
}

/// One world, one flow, one agent at a time.
pub struct Lab {
    /// The world.
    pub world: Arc<EmbeddedWorld>,
    /// The stage on it.
    pub stage: Stage,
    /// What is played.
    pub flow: Flow,
    /// Kills agents.
    pub switch: Arc<Switch>,
    /// Reads states.
    pub eyes: Eyes,
    /// Watches all that is written.
    pub audit: Audit,
    /// How often agents do what no event asks for.
    pub timing: Timing,
    /// What agents grant one workspace.
    pub budget: Budget,
    agent: Option<Agent>,
    /// What dead agents have said.
    logs: Vec<String>,
}

/// What has been done to an agent at its death.
#[derive(Debug, Default)]
pub struct Death {
    /// The write at which it died.
    pub write: String,
    /// Whether the meddling found something to meddle with.
    pub meddled: bool,
    /// The copy of the order when the agent died; null if there was none.
    pub copy: Value,
    /// Whether the agent remembered anything about the order when it died.
    pub remembered: bool,
}

impl Lab {
    /// Sets everything up, with a running agent.
    pub async fn open(flow: Flow) -> anyhow::Result<Self> {
        Self::open_on(EmbeddedWorld::start().await?, flow).await
    }

    /// The same on a given world.
    pub async fn open_on(world: EmbeddedWorld, flow: Flow) -> anyhow::Result<Self> {
        Self::open_in(world, flow, None).await
    }

    /// The same with a given API group.
    pub async fn open_in(world: EmbeddedWorld, flow: Flow, group: Option<&str>) -> anyhow::Result<Self> {
        let mut lab = Self::bare(world, flow, group).await?;
        lab.flow.publish(&lab.stage).await?;
        lab.start_agent()?;
        lab.settle().await?;
        Ok(lab)
    }

    /// What the first order of all brings along, such as namespaces, stays: from then on every run begins with the same state.
    pub async fn settle(&mut self) -> anyhow::Result<()> {
        for team in Team::BOTH {
            self.create_source(team.of(self), "first", &self.flow.first.clone()).await?;
        }
        self.until("the first orders are placed", None, |state| {
            ["team-a", "team-b"].iter().all(|team| !state.copy(team, "first").is_null())
        })
        .await?;
        for team in Team::BOTH {
            self.delete_source(team.of(self), "first").await?;
        }
        self.until("the first orders are gone", None, |state| !state.has("/first")).await?;
        self.rest().await?;
        Ok(())
    }

    /// A lab where nothing is published and no agent runs. The API group may be given.
    pub async fn bare(world: EmbeddedWorld, flow: Flow, group: Option<&str>) -> anyhow::Result<Self> {
        let world = Arc::new(world);
        let stage = Stage::bare_with_group(world.clone(), group).await?;
        let switch = Switch::install([world.kcp_plane(), world.service_plane()]);
        let eyes = Eyes::new(&world, &stage)?;
        let audit = Audit::begin(&world, &stage, &flow);
        let timing = quick();
        let budget = Budget::default();
        Ok(Self { world, stage, flow, switch, eyes, audit, timing, budget, agent: None, logs: Vec::new() })
    }

    /// All that agents have said so far, dead ones included.
    pub fn logs(&self) -> Vec<String> {
        let running = self.agent.iter().flat_map(Agent::log);
        self.logs.iter().cloned().chain(running).collect()
    }

    /// Starts an agent.
    pub fn start_agent(&mut self) -> anyhow::Result<()> {
        let (timing, budget) = (self.timing, self.budget);
        let setup = Setup { probes: true, timing, budget, apply: self.flow.apply, ..Setup::default() };
        self.agent = Some(Agent::start(&self.stage, setup)?);
        Ok(())
    }

    /// The running agent.
    pub fn agent(&self) -> anyhow::Result<&Agent> {
        self.agent.as_ref().context("no agent is running")
    }

    /// Kills the agent, and waits until it is gone, and its last writes are done or will never be.
    pub async fn kill_agent(&mut self) -> anyhow::Result<()> {
        if let Some(agent) = self.agent.take() {
            self.logs.extend(agent.log());
            agent.kill().await?;
            self.world.kcp_plane().faults().idle().await;
            self.world.service_plane().faults().idle().await;
        }
        Ok(())
    }

    /// Waits until the agent says that it is ready, and watches all that it has to.
    pub async fn ready(&self) -> anyhow::Result<()> {
        self.stage.ready(self.agent()?).await?;
        let (kcp, service) = (self.world.kcp_plane().faults(), self.world.service_plane().faults());
        let (source, copy) = (self.source_kind(), self.copy_kind());
        self.stage
            .eventually("the agent watches both sides", async || {
                for (side, kind) in [(kcp, &source), (service, &copy)] {
                    let of_agent = |ask: &RequestInfo| ask.user == ADMIN_AGENT && *ask.resource == *kind.plural;
                    ensure!(side.open_watches().iter().any(of_agent), "nobody watches {kind}");
                }
                Ok(())
            })
            .await
    }

    /// If the agent was killed: meddles, and starts another one.
    pub async fn attend(&mut self, meddling: Option<(Meddling, &Value)>) -> anyhow::Result<Option<Death>> {
        if !self.switch.is_dead() {
            return Ok(None);
        }
        self.kill_agent().await?;
        let mut death = Death::default();
        if let Some((meddling, before)) = meddling {
            death.copy = self.eyes.look().copy("team-a", "one").clone();
            death.remembered = self.stage.remembered_of(&self.stage.team_a, "one").await?.is_some();
            death.meddled = meddling.act(self, "one", before).await.with_context(|| format!("{meddling:?}"))?;
        }
        death.write = self.switch.reset().unwrap_or_default();
        self.start_agent()?;
        Ok(Some(death))
    }

    /// Waits until the state is as it should be, with a new agent whenever one is killed. Tells about the death, if there was one.
    pub async fn until(
        &mut self,
        what: &str,
        meddling: Option<(Meddling, &Value)>,
        good: impl Fn(&State) -> bool,
    ) -> anyhow::Result<Option<Death>> {
        let started = Instant::now();
        let mut death = None;
        loop {
            if let Some(died) = self.attend(meddling).await? {
                death = Some(died);
            }
            let revisions = self.eyes.revisions();
            // Meddling needs a death; without one the wait would end before it.
            if (meddling.is_none() || death.is_some()) && good(&self.eyes.look()) {
                return Ok(death);
            }
            if started.elapsed() > self.patience() {
                bail!("waited {} s in vain until {what}", self.patience().as_secs());
            }
            tokio::select! {
                () = self.eyes.changed(revisions) => {}
                () = self.switch.killed() => {}
                () = tokio::time::sleep(CALM) => {}
            }
        }
    }

    /// Waits until the state is the expected one; tells the difference if it does not become so.
    pub async fn becomes(&mut self, what: &str, expected: &State) -> anyhow::Result<Option<Death>> {
        let reached = self.until(what, None, |state| state == expected).await;
        reached.map_err(|error| error.context(format!("difference: {}", self.eyes.look().difference(expected))))
    }

    /// Waits until nothing has been written for a while, and returns what is there then.
    pub async fn rest(&self) -> anyhow::Result<State> {
        self.rest_for(CALM).await
    }

    /// How long to wait for anything.
    fn patience(&self) -> Duration {
        if self.flow.heavy { 4 * PATIENCE } else { PATIENCE }
    }

    /// Waits until nothing has been written for a given time, and returns what is there then.
    pub async fn rest_for(&self, calm: Duration) -> anyhow::Result<State> {
        // Between two writes of large objects it is calm, too.
        let calm = if self.flow.heavy { calm * 4 } else { calm };
        let started = Instant::now();
        loop {
            let before = (self.eyes.revisions(), self.switch.writes());
            tokio::time::sleep(calm).await;
            self.answers().await;
            if before == (self.eyes.revisions(), self.switch.writes()) {
                return Ok(self.eyes.look());
            }
            if started.elapsed() > self.patience() {
                bail!("no rest within {} s; last written: {:#?}", self.patience().as_secs(), self.audit.last(20));
            }
        }
    }

    /// Lets the agent have its turn: one that has work to do and no processor to do it on is not at rest, however calm it is. What is ready to go on when a page
    /// is asked for goes on before the answer.
    async fn answers(&self) {
        let Some(agent) = &self.agent else { return };
        for _ in 0..ANSWERS {
            // One that has ended has nothing to do.
            if agent.ready().await.is_err() {
                return;
            }
        }
    }

    /// Cancels everything, takes back what was put beside it, and waits until all is as it was at the start.
    pub async fn clear(&mut self, start: &State) -> anyhow::Result<()> {
        let all = ListOptions::default();
        let (source, namespace) = (self.source_kind(), self.source_namespace());
        for team in Team::BOTH {
            let client = team.of(self).client.clone();
            for object in client.list(&source, namespace, &all).await? {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                client.delete(&source, namespace, name, &DeleteOptions::default()).await.or_else(gone)?;
            }
        }
        let of_orders = format!(" {} ", source.plural);
        self.until("all orders are gone", None, |state| {
            !state.places().any(|place| place.starts_with("team-") && place.contains(&of_orders))
        })
        .await
        .map_err(|error| error.context(format!("left: {}", self.eyes.look().difference(start))))?;
        // What belongs to users is theirs to remove.
        let kinds =
            [kinds::secrets(), kinds::config_maps(), carrick_e2e_stage::fixtures::kind(&self.stage.group, "Gadget")];
        let gadgets = self.flow.has_gadgets;
        for kind in kinds.into_iter().take(if gadgets { 3 } else { 2 }) {
            let extra: Vec<String> = self.extra(start, &kind.plural);
            for place in extra {
                self.remove(&kind, &place).await.with_context(|| place.clone())?;
            }
        }
        let expected = start.after_haste();
        let restored = |state: &State| state.after_haste() == expected;
        let done = self.until("everything is as it was at the start", None, restored).await;
        done.map_err(|error| error.context(format!("difference: {}", self.eyes.look().difference(start))))?;
        Ok(())
    }

    /// Places of a kind that were not there at the start and are no state of the agent.
    fn extra(&self, start: &State, plural: &str) -> Vec<String> {
        let kind = format!(" {plural} ");
        let now = self.eyes.look();
        let extra = now.places().filter(|place| place.contains(&kind) && start.at(place).is_null());
        extra.filter(|place| !place.contains("/obj-state-")).map(str::to_owned).collect()
    }

    async fn remove(&self, kind: &carrick_client::Resource, place: &str) -> anyhow::Result<()> {
        let at = |team: &Workspace| (team.client.clone(), NAMESPACE.to_owned());
        let name = place.rsplit('/').next().unwrap_or_default();
        let (client, namespace) = match place.split(' ').next().unwrap_or_default() {
            "team-a" => at(&self.stage.team_a),
            "team-b" => at(&self.stage.team_b),
            _ => {
                let namespace = place.rsplit(' ').next().and_then(|at| at.split('/').next()).unwrap_or_default();
                let namespace = namespace
                    .replace("team-a", &self.stage.team_a.cluster)
                    .replace("team-b", &self.stage.team_b.cluster);
                (self.stage.service.clone(), namespace)
            }
        };
        client.delete(kind, Some(&namespace), name, &DeleteOptions::default()).await.or_else(gone)
    }

    /// Ends the agent as it should end.
    pub async fn close(mut self) -> anyhow::Result<()> {
        self.audit.check(&self)?;
        match self.agent.take() {
            Some(agent) => agent.stop().await,
            None => Ok(()),
        }
    }
}

fn gone(error: carrick_client::Error) -> anyhow::Result<()> {
    if error.is_not_found() { Ok(()) } else { Err(error.into()) }
}
