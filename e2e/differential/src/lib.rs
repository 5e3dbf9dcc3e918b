//! The same random requests to the plane and to the real servers, and the same answers.
//!
//! ```text
//!                                  ┌─▶ play on the plane ────────▶ normal form ─┐
//!   seed ─▶ generate ─▶ requests ──┤                                            ├─▶ equal, or the shortest sequence that tells them apart
//!                                  └─▶ play on the real server ──▶ normal form ─┘
//! ```
//!
//! `e2e/real differential` plays the same few seeds every time, `CARRICK_RUNS=100` as many new ones, `CARRICK_SEED=7` that one. With
//! `CARRICK_LIVE=FOLDER` the real servers are not started but found through the kubeconfigs `kube`, `kcp` and `kcp-agent` (in JSON) of a folder,
//! with `CARRICK_PLANE=FOLDER` so is the plane, and with `CARRICK_KEPT=FOLDER` what the real servers answer is kept there, so that only the plane
//! is asked when a sequence is played again.
//!
//! `goclients` tries clients written in Go on both.
#![allow(clippy::large_futures)] // whole flows are one future each, and there are few of them

mod admission;
mod corpus;
mod crds;
mod definitions;
mod dice;
mod encoding;
mod flow;
mod generate;
pub mod goclients;
mod hook;
mod kinds;
mod normal;
mod peer;
mod play;
mod request;
mod reviews;
pub mod shorter;
mod values;

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use carrick_e2e_stage::seed;
use carrick_e2e_stage::world::{EmbeddedWorld, User, World};
use futures::StreamExt;
use futures::future::{LocalBoxFuture, ready};
use serde_json::Value;
use tokio::sync::OnceCell;

use encoding::Encoding;
use peer::Peer;
use request::Request;

/// How many seeds, from the first on, are played every time on kube-apiserver and in kcp.
const SEEDS: u64 = 24;
/// How many seeds of a provider's requests are played every time.
const FLOW_SEEDS: u64 = 8;
/// How many seeds of CRDs are played every time.
const DEFINITIONS: u64 = 12;
/// How many sequences are played at a time.
const AT_ONCE: usize = 4;
/// The same of those that mostly wait for controllers.
const FLOWS_AT_ONCE: usize = 6;
/// How long what controllers write has to stay the same to be the last word, on a machine that has other things to do.
const STILL: Duration = Duration::from_millis(2500);
/// How many differing answers of a sequence are told.
const TOLD: usize = 12;

/// The folder of kubeconfigs of servers that run already, if there is one.
pub fn live() -> Option<PathBuf> {
    std::env::var_os("CARRICK_LIVE").map(PathBuf::from)
}

/// One comparison: a plane that plays a server, and that server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    /// kube-apiserver.
    Kube,
    /// A workspace of kcp.
    Kcp,
    /// kcp, about what a provider, its agent and its consumers ask.
    Flow,
    /// kube-apiserver, about CRDs and nothing else.
    Definitions,
    /// kube-apiserver, about CRDs and samples of public operators.
    Corpus,
    /// kube-apiserver, about policies and webhooks.
    Admission,
    /// A workspace of kcp, about policies and webhooks.
    KcpAdmission,
    /// kube-apiserver, about who may do what.
    KubeReviews,
    /// A workspace of kcp, about who may do what.
    KcpReviews,
}

impl Pair {
    fn is_kcp(self) -> bool {
        matches!(self, Self::Kcp | Self::Flow | Self::KcpAdmission | Self::KcpReviews)
    }

    fn name(self) -> &'static str {
        if self.is_kcp() { "kcp" } else { "kube" }
    }
}

/// All trials: their names and what they are about.
pub fn all() -> Vec<(&'static str, Pair)> {
    let mut all = vec![
        ("differential::the_plane_answers_as_kube_apiserver_does", Pair::Kube),
        ("differential::the_plane_answers_as_kcp_does", Pair::Kcp),
        ("differential::the_plane_judges_crds_as_kube_apiserver_does", Pair::Definitions),
        ("differential::policies_and_webhooks_decide_as_beside_kube_apiserver", Pair::Admission),
        ("differential::the_plane_reviews_access_as_kube_apiserver_does", Pair::KubeReviews),
        ("differential::the_plane_reviews_access_as_kcp_does", Pair::KcpReviews),
        ("differential::the_plane_answers_providers_as_kcp_does", Pair::Flow),
    ];
    if seed::is_wide() {
        // kcp 0.31 ends with a nil pointer when a policy's parameters are of a built-in kind.
        all.push(("differential::policies_and_webhooks_decide_as_in_kcp", Pair::KcpAdmission));
    }
    if carrick_e2e_stage::corpus::folder().is_some() {
        all.push(("corpus::the_plane_takes_crds_and_samples_of_public_operators_as_kube_apiserver_does", Pair::Corpus));
    }
    all
}

/// Plays every seed on both servers of a pair.
pub fn compare(real: Option<&dyn World>, pair: Pair) -> LocalBoxFuture<'_, anyhow::Result<()>> {
    Box::pin(async move {
        let plane = EmbeddedWorld::start().await?;
        if matches!(pair, Pair::KubeReviews | Pair::KcpReviews) {
            let real = kubeconfigs(live(), real, pair).context("the real server")?;
            let plane = kubeconfigs(std::env::var_os("CARRICK_PLANE").map(PathBuf::from), Some(&plane), pair)?;
            return reviews::compare(&real[0], &plane[0], pair).await;
        }
        let arena = Arena::set(real, &plane, pair).await?;
        if pair == Pair::Corpus {
            let told = corpus::compare(arena.real().await?, &arena.plane).await?;
            anyhow::ensure!(told.is_empty(), "{}", told.join("\n"));
            return Ok(());
        }
        let seeds = seed::seeds(match pair {
            Pair::Kube | Pair::Kcp => SEEDS,
            Pair::Flow => FLOW_SEEDS,
            Pair::Definitions | Pair::Corpus => DEFINITIONS,
            Pair::Admission | Pair::KcpAdmission | Pair::KubeReviews | Pair::KcpReviews => 1,
        });
        let count = seeds.len();
        let told: Vec<String> = futures::stream::iter(seeds)
            .map(|seed| arena.about(seed))
            .buffer_unordered(if pair == Pair::Flow { FLOWS_AT_ONCE } else { AT_ONCE })
            .filter_map(|outcome| ready(outcome.unwrap_or_else(|error| Some(format!("{error:#}")))))
            .collect()
            .await;
        anyhow::ensure!(told.is_empty(), "{} of {count} sequences differ:\n{}", told.len(), told.join("\n"));
        Ok(())
    })
}

/// The kubeconfigs of a server's administrator and, in kcp, of a user without rights: from a folder, or else of a world.
fn kubeconfigs(folder: Option<PathBuf>, world: Option<&dyn World>, pair: Pair) -> anyhow::Result<[String; 2]> {
    if let Some(folder) = folder {
        let agent = if pair == Pair::Flow { std::fs::read_to_string(folder.join("kcp-agent"))? } else { String::new() };
        return Ok([std::fs::read_to_string(folder.join(pair.name()))?, agent]);
    }
    let world = world.context("no server")?;
    Ok([User::Admin, User::Agent].map(|user| match pair {
        _ if pair.is_kcp() => world.kcp_kubeconfig(user, "root"),
        _ => world.service_kubeconfig(user),
    }))
}

/// A server with a workspace and a kind for what is asked.
async fn prepared(mut peer: Peer, pair: Pair, id: &str) -> anyhow::Result<Peer> {
    if pair == Pair::Flow {
        return Ok(peer);
    }
    if pair == Pair::Kcp {
        peer.enter_workspace(&format!("differential-{id}")).await?;
    }
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let crd = kinds::crd();
    let path = format!("{crds}/{}", crd["metadata"]["name"].as_str().unwrap_or_default());
    if peer.must("GET", &path, &Value::Null).await.is_err() {
        // Another comparison may be quicker; whether it is there is seen below.
        let _ = peer.must("POST", crds, &crd).await;
    }
    let established = |crd: &Value| carrick_e2e_stage::stage::condition(crd, "Established")["status"] == "True";
    peer.until(&path, "the CRD is established", established).await?;
    for kind in kinds::watched() {
        peer.until(&kind.path.replace("{ns}", "default"), "the kind is served", |_| true).await?;
    }
    Ok(peer)
}

/// Two servers that are asked the same.
struct Arena {
    /// The real server as it was found, and ready to be asked, once it is needed: whose answers are kept does not even have to run.
    outside: Peer,
    inside: OnceCell<Peer>,
    plane: Peer,
    /// The agent's tokens, in kcp and on the plane.
    agents: [String; 2],
    /// The workspaces of a provider and its consumers, in kcp and on the plane, once they are needed.
    stages: [OnceCell<flow::Stage>; 2],
    pair: Pair,
    id: String,
    /// Where answers of the real server are kept.
    kept: Option<PathBuf>,
    played: AtomicUsize,
}

impl Arena {
    async fn set(real: Option<&dyn World>, plane: &dyn World, pair: Pair) -> anyhow::Result<Self> {
        let real = kubeconfigs(live(), real, pair).context("the real server")?;
        let plane = kubeconfigs(std::env::var_os("CARRICK_PLANE").map(PathBuf::from), Some(plane), pair)?;
        let agents = [&real, &plane].map(|[_, agent]| peer::token(agent).unwrap_or_default());
        let id = unique();
        let (real, plane) = (Peer::new("real server", &real[0])?, Peer::new("plane", &plane[0])?);
        let plane = prepared(plane, pair, &id).await?;
        let kept = std::env::var_os("CARRICK_KEPT").map(PathBuf::from);
        let (inside, stages, played) = Default::default();
        Ok(Self { outside: real, inside, plane, agents, stages, pair, id, kept, played })
    }

    /// The real server, ready to be asked.
    async fn real(&self) -> anyhow::Result<&Peer> {
        self.inside.get_or_try_init(|| prepared(self.outside.clone(), self.pair, &self.id)).await
    }

    /// Plays a sequence on both; where and how they differ first.
    async fn play(&self, sequence: &[Request]) -> anyhow::Result<Option<Difference>> {
        let number = self.played.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("d{}-{number}", self.id);
        let (real, plane) =
            futures::try_join!(self.play_real(sequence, &namespace), play::play(&self.plane, sequence, &namespace),)?;
        let differs = real.into_iter().zip(plane).enumerate().find(|(_, (real, plane))| real != plane);
        Ok(differs.map(|(step, (real, plane))| Difference { step, real, plane }))
    }

    /// Plays a sequence on the real server, unless its answers were kept.
    async fn play_real(&self, sequence: &[Request], namespace: &str) -> anyhow::Result<Vec<Value>> {
        let played = async { play::play(self.real().await?, sequence, namespace).await };
        self.keep(&format!("{sequence:?}"), played).await
    }

    /// The kept answers to a sequence, or those that it gets now.
    async fn keep(
        &self,
        sequence: &str,
        play: impl Future<Output = anyhow::Result<Vec<Value>>>,
    ) -> anyhow::Result<Vec<Value>> {
        let Some(folder) = &self.kept else { return play.await };
        let mut hasher = DefaultHasher::new();
        sequence.hash(&mut hasher);
        let file = folder.join(format!("{}-{:016x}.json", self.pair.name(), hasher.finish()));
        if let Ok(text) = std::fs::read(&file) {
            return Ok(serde_json::from_slice(&text)?);
        }
        let answers = play.await?;
        std::fs::write(&file, serde_json::to_vec(&answers)?)?;
        Ok(answers)
    }

    /// Plays a seed; tells how the servers differ, if they do.
    async fn about(&self, seed: u64) -> anyhow::Result<Option<String>> {
        if self.pair == Pair::Definitions {
            let token = format!("d{}-{seed}", self.id);
            return definitions::compare(self.real().await?, &self.plane, seed, &token).await;
        }
        if self.pair == Pair::Flow {
            return self.flow(seed).await.with_context(|| seed::replay(seed));
        }
        if matches!(self.pair, Pair::Admission | Pair::KcpAdmission) {
            let token = format!("a{}-{seed}", self.id);
            return admission::compare(self.real().await?, &self.plane, seed, &token).await;
        }
        self.seed(seed).await
    }

    /// Plays the sequence of a seed in every encoding; tells how the servers differ, if they do.
    async fn seed(&self, seed: u64) -> anyhow::Result<Option<String>> {
        for encoding in Encoding::ALL {
            let sequence = encoding.of(generate::sequence(seed));
            if let Some(first) = self.play(&sequence).await.with_context(|| seed::replay(seed))? {
                return self.tell(seed, encoding, sequence, first).await.map(Some);
            }
        }
        Ok(None)
    }

    /// The shortest sequence that tells the servers apart, and how.
    async fn tell(
        &self,
        seed: u64,
        encoding: Encoding,
        sequence: Vec<Request>,
        first: Difference,
    ) -> anyhow::Result<String> {
        let (sequence, difference) = self.shrink(sequence, first).await?;
        let mut told = format!("== {} ({encoding:?})\n", seed::replay(seed));
        for (index, request) in sequence.iter().enumerate() {
            writeln!(told, "  {} {request}", index + 1)?;
        }
        let what = match sequence.get(difference.step) {
            Some(_) => format!("answer {}", difference.step + 1),
            None => difference.real["watch"].to_string(),
        };
        writeln!(told, "  {what} differs:")?;
        for line in normal::differences(&difference.real, &difference.plane) {
            writeln!(told, "    {line}")?;
        }
        Ok(told)
    }

    /// Plays what a provider and its consumers ask; tells every answer that differs. Controllers take too long for looking for the
    /// shortest sequence.
    async fn flow(&self, seed: u64) -> anyhow::Result<Option<String>> {
        let sequence = flow::sequence(seed);
        let token = format!("d{}-{}", self.id, self.played.fetch_add(1, Ordering::Relaxed));
        let play = async |index: usize| {
            let peer = [&self.outside, &self.plane][index];
            let own;
            let stage = if sequence.is_alone() {
                own = flow::Stage::alone(peer, &unique(), &sequence).await?;
                &own
            } else {
                self.stages[index].get_or_try_init(|| flow::Stage::set(peer, &self.id)).await?
            };
            let party = flow::Party { peer, agent: &self.agents[index], still: STILL, stage };
            flow::play(&party, &sequence, &token).await
        };
        let asked = format!("{sequence:?}");
        let (real, plane) = futures::try_join!(self.keep(&asked, play(0)), play(1))?;
        let sequence = &sequence.steps;
        let mut told = String::new();
        let comparable = |answers: Vec<Value>| -> Vec<Value> {
            let from_view = |index: usize| sequence.get(index).is_none_or(flow::Step::is_virtual);
            answers.into_iter().enumerate().map(|(i, answer)| flow::comparable(answer, from_view(i))).collect()
        };
        let (real, plane) = (comparable(real), comparable(plane));
        let differing = real.iter().zip(&plane).enumerate().filter(|(_, (real, plane))| real != plane);
        for (index, (real, plane)) in differing.take(TOLD) {
            match sequence.get(index) {
                Some(step) => writeln!(told, "  {} {step}", index + 1)?,
                None => writeln!(told, "  {}", real["what"])?,
            }
            for line in normal::differences(real, plane) {
                writeln!(told, "    {line}")?;
            }
        }
        Ok((!told.is_empty()).then(|| format!("== {}\n{told}", seed::replay(seed))))
    }

    /// Drops requests as long as the servers still differ.
    async fn shrink(&self, sequence: Vec<Request>, first: Difference) -> anyhow::Result<(Vec<Request>, Difference)> {
        let (mut sequence, mut difference) = (sequence, first);
        sequence.truncate(difference.step + 1);
        // What has to be waited for goes first.
        let quick: Vec<Request> = sequence.iter().filter(|request| !request.waits()).cloned().collect();
        if quick.len() < sequence.len()
            && let Some(found) = self.play(&quick).await?
        {
            (sequence, difference) = (quick, found);
            sequence.truncate(difference.step + 1);
        }
        let mut index = sequence.len();
        while index > 0 {
            index -= 1;
            if index == difference.step {
                continue;
            }
            let Some(mut shorter) = shorter::without(&sequence, index) else { continue };
            if let Some(found) = self.play(&shorter).await?
                && (found.step < shorter.len()) == (difference.step < sequence.len())
            {
                shorter.truncate(found.step + 1);
                index = index.min(shorter.len());
                (sequence, difference) = (shorter, found);
            }
        }
        Ok((sequence, difference))
    }
}

/// Six digits that nobody has used yet.
fn unique() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..6].to_owned()
}

struct Difference {
    step: usize,
    real: Value,
    plane: Value,
}
