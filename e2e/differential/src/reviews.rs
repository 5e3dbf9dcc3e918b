//! Access reviews over random RBAC: who may do what must have the same answer everywhere.
//!
//! ```text
//!   seed ─▶ roles and bindings, stored on both servers ─▶ questions about users, groups and service accounts ─▶ equal answers
//! ```
//!
//! Some questions are about others (SubjectAccessReview), some are asked by those they are about, whom the administrator impersonates. In kcp each
//! seed has two workspaces: the one that is asked, and another one, whose service accounts are strangers there.

mod questions;
mod setup;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use carrick_e2e_stage::seed;
use futures::{StreamExt, TryStreamExt};
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::Pair;
use super::peer::Peer;
use questions::Question;
use setup::Setup;

/// How many seeds are played every time, and how much is asked in each.
const SEEDS: u64 = 9;
const QUESTIONS: usize = 60;
/// How many seeds are played at a time, where each has workspaces of its own.
const AT_ONCE: usize = 4;
/// How often a server is asked again that answers with any of several bindings.
const AGAIN: usize = 40;

/// How long a server may take to notice what is stored, and how long to wait between two looks.
const PATIENCE: Duration = Duration::from_mins(1);
const GLANCE: Duration = Duration::from_millis(50);

/// Plays every seed on both servers.
pub async fn compare(real: &str, plane: &str, pair: Pair) -> anyhow::Result<()> {
    let id = uuid::Uuid::new_v4().simple().to_string()[..6].to_owned();
    let seeds = seed::seeds(SEEDS);
    let count = seeds.len();
    // Workspaces take kcp long; on kube-apiserver, all share one set of cluster-wide bindings.
    let at_once = if pair == Pair::KcpReviews { AT_ONCE } else { 1 };
    let id = &id;
    let play = |seed| async move {
        review(real, plane, pair, seed, &format!("r{id}-{seed}")).await.with_context(|| seed::replay(seed))
    };
    let told: Vec<Vec<String>> = futures::stream::iter(seeds).map(play).buffer_unordered(at_once).try_collect().await?;
    let told: Vec<String> = told.into_iter().flatten().collect();
    let asked = count * QUESTIONS;
    anyhow::ensure!(told.is_empty(), "{} of {asked} answers to {count} seeds differ:\n{}", told.len(), told.join("\n"));
    println!("{asked} questions in {count} set-ups: no difference");
    Ok(())
}

/// Asks about the set-up of a seed; tells every answer that differs.
async fn review(real: &str, plane: &str, pair: Pair, seed: u64, token: &str) -> anyhow::Result<Vec<String>> {
    let setup = Setup::of(seed, pair);
    let (real, plane) = (Peer::new("real server", real)?, Peer::new("plane", plane)?);
    let (real, plane) =
        futures::try_join!(Table::lay(real, pair, &setup, token), Table::lay(plane, pair, &setup, token))?;
    let mut told = Vec::new();
    let stored = (real.stored(&setup).await?, plane.stored(&setup).await?);
    if stored.0 != stored.1 {
        told.push(format!("== {}\n  stored: {}\n   plane: {}", seed::replay(seed), stored.0, stored.1));
    }
    for question in &questions::questions(seed, pair, QUESTIONS) {
        let (expected, found) = futures::try_join!(real.ask(question), plane.ask(question))?;
        if expected != found && !real.may_answer(question, &found).await? {
            let question = format!("{} {} as {:?}", question.path, question.spec, question.headers);
            told.push(format!("== {}\n  {question}\n    real: {expected}\n   plane: {found}", seed::replay(seed)));
        }
    }
    // Nobody else enters a seed's workspaces.
    if pair == Pair::KubeReviews {
        futures::try_join!(real.clear(&setup), plane.clear(&setup))?;
    }
    Ok(told)
}

/// A server with a set-up.
struct Table {
    peer: Peer,
    /// Texts that stand for what differs between servers, and what they stand for.
    names: Vec<(&'static str, String)>,
}

impl Table {
    async fn lay(mut peer: Peer, pair: Pair, setup: &Setup, token: &str) -> anyhow::Result<Self> {
        let mut names = vec![("{token}", token.to_owned())];
        if pair == Pair::KcpReviews {
            let there = peer.new_workspace(&format!("{token}-there")).await?;
            peer.enter_workspace(&format!("{token}-here")).await?;
            names.push(("{here}", peer.cluster.clone()));
            names.push(("{there}", there));
        }
        let table = Self { peer, names };
        for (path, object) in setup.objects() {
            let object = serde_json::from_str(&table.named(&object.to_string()))?;
            table.peer.must("POST", &table.named(&path), &object).await?;
        }
        table.noticed(setup, true).await?;
        Ok(table)
    }

    fn named(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (short, name)| text.replace(short, name))
    }

    fn unnamed(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (short, name)| text.replace(name, short))
    }

    /// Waits until the server has noticed all that was stored, or deleted: what the markers are about comes last.
    async fn noticed(&self, setup: &Setup, allowed: bool) -> anyhow::Result<()> {
        for marker in setup.markers() {
            let look = async {
                while self.ask(&marker).await?["body"]["status"]["allowed"] != allowed {
                    tokio::time::sleep(GLANCE).await;
                }
                anyhow::Ok(())
            };
            let why = || format!("{}: the set-up is not noticed: {}", self.peer.name, marker.spec);
            tokio::time::timeout(PATIENCE, look).await.with_context(why)??;
        }
        Ok(())
    }

    async fn ask(&self, question: &Question) -> anyhow::Result<Value> {
        let kind = question.kind();
        let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": question.spec });
        let body = Bytes::from(self.named(&review.to_string()));
        let headers: Vec<(&str, String)> =
            question.headers.iter().map(|(name, value)| (*name, self.named(value))).collect();
        let answer = self.peer.ask_as("POST", &self.named(&question.path), &headers, body).await?;
        let text = self.unnamed(&String::from_utf8_lossy(&answer.body));
        let mut body = serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text));
        // Who wrote what into a review that is not stored is of no use to anybody.
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| key != "managedFields");
        }
        if let Some(status) = body.get_mut("status").filter(|status| status.is_object()) {
            sort(status);
        }
        Ok(json!({ "code": answer.code, "body": body }))
    }

    /// Whether this is another answer of the same server: which of several bindings it names, and in which order, is random.
    async fn may_answer(&self, question: &Question, wanted: &Value) -> anyhow::Result<bool> {
        if !wanted["body"]["status"]["reason"].as_str().is_some_and(|reason| reason.starts_with("RBAC: ")) {
            return Ok(false);
        }
        for _ in 0..AGAIN {
            if self.ask(question).await? == *wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rules of the aggregated roles, as they are stored.
    async fn stored(&self, setup: &Setup) -> anyhow::Result<Value> {
        let mut all = Vec::new();
        for path in setup.aggregated() {
            let role = self.peer.must("GET", &self.named(&path), &Value::Null).await?;
            all.push(serde_json::from_str(&self.unnamed(&role["rules"].to_string()))?);
        }
        Ok(Value::Array(all))
    }

    async fn clear(&self, setup: &Setup) -> anyhow::Result<()> {
        for (path, object) in setup.objects() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            // Namespaces take long to end, and nobody else uses them.
            if object["kind"] != "Namespace" {
                self.peer.must("DELETE", &self.named(&format!("{path}/{name}")), &Value::Null).await?;
            }
        }
        self.noticed(setup, false).await
    }
}

/// Puts what has no order into one.
fn sort(status: &mut Value) {
    for key in ["resourceRules", "nonResourceRules"] {
        if let Some(rules) = status[key].as_array_mut() {
            rules.sort_by_key(ToString::to_string);
        }
    }
    for key in ["reason", "evaluationError"] {
        let Some(text) = status[key].as_str() else { continue };
        if let (Some(start), true) = (text.find('['), text.ends_with(']')) {
            let parts: BTreeSet<&str> = text[start + 1..text.len() - 1].split(", ").collect();
            let parts: Vec<&str> = parts.into_iter().collect();
            status[key] = format!("{}[{}]", &text[..start], parts.join(", ")).into();
        }
    }
    if let Some(map) = status.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
}
