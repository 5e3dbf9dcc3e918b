//! Waiting for something to become true, and for nothing to happen any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::Context;
use carrick_client::{Client, ListOptions, Resource};
use carrick_kcp::kinds::{API_EXPORT, API_RESOURCE_SCHEMA};
use carrick_syncagent::api;
use serde_json::Value;

use super::{NAMESPACE, Stage, Workspace, place};
use crate::agent::Agent;
use crate::kinds;
use crate::world::{Pace, World};

/// Every object of a stage, with its version.
pub type Snapshot = BTreeMap<String, String>;

/// Where an object is.
pub type At<'a> = (&'a Client, &'a Resource, Option<&'a str>, &'a str);

/// Looks until the look succeeds; the last failure, which tells what was seen, is the error.
pub async fn eventually<T>(
    world: &dyn World,
    what: &str,
    mut look: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let Pace { patience, glance, .. } = world.pace();
    let started = Instant::now();
    loop {
        let last_seen = match look().await {
            Ok(found) => return Ok(found),
            Err(seen) => seen,
        };
        if started.elapsed() > patience {
            return Err(last_seen.context(format!("waited {} s in vain until {what}", patience.as_secs())));
        }
        tokio::time::sleep(glance).await;
    }
}

impl Stage {
    /// Looks until the look succeeds; the last failure, which tells what was seen, is the error.
    pub async fn eventually<T>(&self, what: &str, look: impl AsyncFnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
        eventually(&*self.world, what, look).await
    }

    /// Waits until an object exists and is as it should be.
    pub async fn object(
        &self,
        what: &str,
        (client, kind, namespace, name): At<'_>,
        good: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        self.eventually(what, async || {
            let object = client.get(kind, namespace, name).await?;
            let object = object.with_context(|| format!("{kind} {name} does not exist"))?;
            anyhow::ensure!(good(&object), "it is {}", shown(&object));
            Ok(object)
        })
        .await
    }

    /// Waits until an object does not exist.
    pub async fn gone(&self, what: &str, (client, kind, namespace, name): At<'_>) -> anyhow::Result<()> {
        self.eventually(what, async || {
            let object = client.get(kind, namespace, name).await?;
            anyhow::ensure!(object.is_none(), "it is {}", shown(&object.unwrap_or_default()));
            Ok(())
        })
        .await
    }

    /// Waits until a Bucket in a consumer's workspace is as it should be.
    pub async fn source_is(
        &self,
        what: &str,
        team: &Workspace,
        name: &str,
        good: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        self.object(what, (&team.client, &self.buckets(), Some(NAMESPACE), name), good).await
    }

    /// Waits until the copy of a Bucket is as it should be.
    pub async fn copy_is(
        &self,
        what: &str,
        team: &Workspace,
        name: &str,
        good: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        self.copy_of_kind_is(what, (&self.buckets(), team, name), good).await
    }

    /// Waits until the copy of an object of any of the stage's kinds is as it should be.
    pub async fn copy_of_kind_is(
        &self,
        what: &str,
        (kind, team, name): (&Resource, &Workspace, &str),
        good: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        self.eventually(what, async || {
            let copy = self.copy_of_kind(kind, team, name).await?;
            let copy = copy.with_context(|| format!("there is no copy of {name} of {}", team.path))?;
            anyhow::ensure!(good(&copy), "it is {}", shown(&copy));
            Ok(copy)
        })
        .await
    }

    /// Waits until an agent with probes says that it is ready.
    pub async fn ready(&self, agent: &Agent) -> anyhow::Result<()> {
        self.eventually("the agent is ready", async || {
            let answer = agent.ready().await?;
            anyhow::ensure!(answer.contains(" 200 "), "it says {answer}");
            Ok(())
        })
        .await
    }

    /// Waits until an agent with probes says that it is not ready and why, and sees that it has not given up.
    pub async fn not_ready(&self, agent: &Agent, cause: &str) -> anyhow::Result<String> {
        self.eventually(&format!("the agent is not ready because of {cause}"), async || {
            anyhow::ensure!(agent.is_running(), "it has given up");
            let answer = agent.ready().await?;
            anyhow::ensure!(answer.contains(" 503 ") && answer.contains(cause), "it says {answer}");
            Ok(answer)
        })
        .await
    }

    /// Waits until neither a Bucket nor anything made for it is left.
    pub async fn all_gone(&self, team: &Workspace, name: &str) -> anyhow::Result<()> {
        self.eventually(&format!("nothing is left of {name} of {}", team.path), async || {
            let source = self.source(team, name).await?;
            anyhow::ensure!(source.is_none(), "the source is there: {}", shown(&source.unwrap_or_default()));
            let copy = self.copy(team, name).await?;
            anyhow::ensure!(copy.is_none(), "the copy is there: {}", shown(&copy.unwrap_or_default()));
            let remembered = self.remembered_of(team, name).await?;
            anyhow::ensure!(remembered.is_none(), "remembered: {}", shown(&remembered.unwrap_or_default()));
            Ok(())
        })
        .await
    }

    /// The version of every object that the agent could write to, and of every event.
    pub async fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let mut snapshot = Snapshot::new();
        let all = ListOptions::default();
        let mut take = |at: &str, kind: &Resource, objects: Vec<Value>| {
            for object in objects {
                let (namespace, name) = place(&object);
                snapshot.insert(format!("{at}: {kind} {namespace}/{name}"), version(kind, &object));
            }
        };
        let service = &self.service;
        take("service", &self.buckets(), service.list(&self.buckets(), None, &all).await?);
        let published = kinds::published_resources();
        let own = ListOptions::labels(self.selector());
        take("service", &published, service.list(&published, None, &own).await?);
        let secrets = kinds::secrets();
        take("service", &secrets, service.list(&secrets, Some(&self.agent_namespace()), &all).await?);
        for kind in [kinds::kcp(&API_EXPORT), kinds::kcp(&API_RESOURCE_SCHEMA), kinds::events()] {
            take("provider", &kind, self.provider.client.list(&kind, None, &all).await?);
        }
        for team in [&self.team_a, &self.team_b] {
            for kind in [self.buckets(), kinds::secrets(), kinds::events()] {
                take(&team.path, &kind, team.client.list(&kind, None, &all).await?);
            }
        }
        Ok(snapshot)
    }

    /// Waits until nothing has changed for a while, and returns what is there then.
    pub async fn at_rest(&self) -> anyhow::Result<Snapshot> {
        let Pace { glance, rest, patience } = self.world.pace();
        let started = Instant::now();
        let mut last = self.snapshot().await?;
        let mut since = Instant::now();
        while since.elapsed() < rest {
            tokio::time::sleep(glance).await;
            let now = self.snapshot().await?;
            if now != last {
                anyhow::ensure!(started.elapsed() < patience, "no rest: {:?}", changes(&last, &now));
                last = now;
                since = Instant::now();
            }
        }
        Ok(last)
    }

    /// The Secret in which the agent remembers what it did for a Bucket.
    pub async fn remembered_of(&self, team: &Workspace, name: &str) -> anyhow::Result<Option<Value>> {
        let hash = carrick_syncagent::rules::metadata::sha1_hex(name);
        let labels = format!(
            "{}=true,{}={},{}={hash}",
            api::OBJECT_STATE,
            api::REMOTE_CLUSTER,
            team.cluster,
            api::REMOTE_NAME_HASH
        );
        let secrets = kinds::secrets();
        let mut found =
            self.service.list(&secrets, Some(&self.agent_namespace()), &ListOptions::labels(labels)).await?;
        Ok(found.pop())
    }
}

/// The version of an object. That of exports and PublishedResources is their content: agents note there that they work, and how many
/// objects there are, some seconds after that has changed; nothing but that may change at rest.
fn version(kind: &Resource, object: &Value) -> String {
    if *kind.kind != *API_EXPORT.kind && *kind.kind != *kinds::published_resources().kind {
        return object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    }
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| !["resourceVersion", "managedFields"].contains(&key.as_str()));
    }
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|key, _| ![api::KEEPER, api::LAST_SEEN].contains(&key.as_str()));
    }
    if let Some(status) = object["status"].as_object_mut() {
        status.remove("objects");
    }
    object.to_string()
}

/// What differs between two snapshots.
pub fn changes(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let shown = |version: Option<&String>| version.cloned().unwrap_or_else(|| "absent".to_owned());
    keys.into_iter()
        .filter(|key| before.get(*key) != after.get(*key))
        .map(|key| format!("{key}: {} -> {}", shown(before.get(key)), shown(after.get(key))))
        .collect()
}

/// An object in one line, without what nobody reads.
pub fn shown(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object.to_string()
}
