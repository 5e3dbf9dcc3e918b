//! Leader election over a Lease, compatible with other implementations of the same protocol.
//!
//! Whoever's name is in the Lease leads, and renews it every two seconds. Others take over when they have seen no change for the
//! Lease's duration by their own clock; the time stamps in the object are for people. A leader that could not renew for ten seconds
//! stops working, five seconds before anybody else may start.

use std::time::Duration;

use carrick_client::{Client, Error, Resource};
use jiff::Timestamp;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::health::Part;

const LEASE_DURATION: Duration = Duration::from_secs(15);
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// Why leadership ended.
#[derive(Debug, Error)]
pub enum LeaderError {
    /// Another process has the Lease now.
    #[error("leader election lost: lease {lease} is held by {holder:?} now")]
    Taken {
        /// Namespace and name of the Lease.
        lease: String,
        /// Who has it.
        holder: String,
    },
    /// The Lease could not be renewed in time.
    #[error("leader election lost: lease {lease} could not be renewed for 10 s: {problem}")]
    Expired {
        /// Namespace and name of the Lease.
        lease: String,
        /// What the last attempt said.
        problem: String,
    },
}

/// One candidate for one Lease.
#[derive(Debug)]
pub struct Election {
    client: LeaseClient,
    identity: String,
    seen: Option<Seen>,
}

#[derive(Debug)]
struct LeaseClient {
    client: Client,
    resource: Resource,
    namespace: String,
    name: String,
}

/// The Lease as last read, and when it was first seen like that.
#[derive(Debug)]
struct Seen {
    lease: Value,
    since: Instant,
}

/// What an attempt to get or keep the Lease led to.
enum Attempt {
    Leading,
    HeldBy(String),
}

impl Election {
    /// A candidate under a name that nobody else has.
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = match host.trim() {
            "" => "localhost",
            host => host,
        };
        let resource = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
        let client = LeaseClient { client, resource, namespace: namespace.to_owned(), name: name.to_owned() };
        Self { client, identity: format!("{host}_{}", uuid::Uuid::new_v4()), seen: None }
    }

    /// Waits until this candidate leads; false if it was told to stop before.
    pub async fn acquire(&mut self, part: &Part, stop: &CancellationToken) -> bool {
        let mut told = None;
        loop {
            let attempt = tokio::select! {
                () = stop.cancelled() => return false,
                attempt = tokio::time::timeout(RENEW_DEADLINE, self.attempt()) => attempt,
            };
            match attempt {
                Ok(Ok(Attempt::Leading)) => {
                    part.works();
                    tracing::info!(lease = self.client.shown(), identity = self.identity, "Leading.");
                    return true;
                }
                Ok(Ok(Attempt::HeldBy(holder))) => {
                    // A healthy stand-by is ready: otherwise no roll-out with two replicas would ever finish.
                    part.works();
                    if told.as_ref() != Some(&holder) {
                        tracing::info!(lease = self.client.shown(), holder, "Waiting for the lease.");
                        told = Some(holder);
                    }
                }
                Ok(Err(error)) => part.fails(&format!("lease {}: {error}", self.client.shown())),
                Err(_) => part.fails(&format!("lease {}: no answer within 10 s", self.client.shown())),
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(RETRY_PERIOD) => {}
            }
        }
    }

    /// Keeps the Lease; returns only when it is lost.
    pub async fn hold(&mut self, part: &Part) -> LeaderError {
        let mut renewed = Instant::now();
        let mut problem = String::new();
        loop {
            let deadline = renewed + RENEW_DEADLINE;
            tokio::time::sleep_until((Instant::now() + RETRY_PERIOD).min(deadline)).await;
            let started = Instant::now();
            match tokio::time::timeout_at(deadline, self.attempt()).await {
                Ok(Ok(Attempt::Leading)) => {
                    part.works();
                    renewed = started;
                }
                Ok(Ok(Attempt::HeldBy(holder))) => return LeaderError::Taken { lease: self.client.shown(), holder },
                Ok(Err(error)) => problem = error.to_string(),
                Err(_) if problem.is_empty() => "no answer".clone_into(&mut problem),
                Err(_) => {}
            }
            if renewed != started {
                part.fails(&format!("lease {}: {problem}", self.client.shown()));
            }
            if Instant::now() >= renewed + RENEW_DEADLINE {
                return LeaderError::Expired { lease: self.client.shown(), problem };
            }
        }
    }

    /// Gives the Lease up, so that a successor need not wait for it to expire. A failure only costs that wait.
    pub async fn release(mut self) {
        let Some(seen) = self.seen.take() else { return };
        if holder(&seen.lease) != self.identity {
            return;
        }
        let mut lease = seen.lease;
        let now = now();
        lease["spec"]["holderIdentity"] = json!("");
        lease["spec"]["leaseDurationSeconds"] = json!(1);
        lease["spec"]["acquireTime"] = json!(now);
        lease["spec"]["renewTime"] = json!(now);
        match tokio::time::timeout(RETRY_PERIOD, self.client.replace(&lease)).await {
            Ok(Ok(_)) => tracing::info!(lease = self.client.shown(), "Lease released."),
            Ok(Err(error)) => tracing::debug!(lease = self.client.shown(), %error, "Lease not released."),
            Err(_) => tracing::debug!(lease = self.client.shown(), "Lease not released in time."),
        }
    }

    /// One attempt to get the Lease, or to renew it.
    async fn attempt(&mut self) -> Result<Attempt, Error> {
        // The common case needs one request: write on top of what was written last.
        if let Some(seen) = &self.seen
            && holder(&seen.lease) == self.identity
        {
            match self.client.replace(&self.mine(Some(&seen.lease))).await {
                Ok(lease) => {
                    self.see(lease);
                    return Ok(Attempt::Leading);
                }
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        let Some(lease) = self.client.get().await? else {
            let created = self.client.create(&self.mine(None)).await?;
            self.see(created);
            return Ok(Attempt::Leading);
        };
        let since = self.see(lease.clone());
        let holder = holder(&lease);
        if !holder.is_empty() && holder != self.identity && since + duration(&lease) > Instant::now() {
            return Ok(Attempt::HeldBy(holder.to_owned()));
        }
        match self.client.replace(&self.mine(Some(&lease))).await {
            Ok(lease) => {
                self.see(lease);
                Ok(Attempt::Leading)
            }
            // Somebody was faster; the next attempt will see who.
            Err(error) if error.is_conflict() && holder != self.identity => {
                Ok(Attempt::HeldBy("another candidate".to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// Remembers the Lease; returns since when its content is what it is.
    fn see(&mut self, lease: Value) -> Instant {
        let since = match &self.seen {
            Some(seen) if seen.lease["spec"] == lease["spec"] => seen.since,
            _ => Instant::now(),
        };
        self.seen = Some(Seen { lease, since });
        since
    }

    /// The Lease with this candidate as its holder.
    fn mine(&self, current: Option<&Value>) -> Value {
        let now = now();
        let mut lease = current.cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": self.client.name, "namespace": self.client.namespace },
                "spec": { "leaseTransitions": 0 },
            })
        });
        if holder(&lease) != self.identity {
            let transitions = lease["spec"]["leaseTransitions"].as_i64().unwrap_or_default();
            lease["spec"]["leaseTransitions"] = json!(transitions + i64::from(current.is_some()));
            lease["spec"]["acquireTime"] = json!(now);
        }
        lease["spec"]["holderIdentity"] = json!(self.identity);
        lease["spec"]["leaseDurationSeconds"] = json!(LEASE_DURATION.as_secs());
        lease["spec"]["renewTime"] = json!(now);
        lease
    }
}

impl LeaseClient {
    fn shown(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    async fn get(&self) -> Result<Option<Value>, Error> {
        self.client.get(&self.resource, Some(&self.namespace), &self.name).await
    }

    async fn create(&self, lease: &Value) -> Result<Value, Error> {
        self.client.create(&self.resource, Some(&self.namespace), lease).await
    }

    async fn replace(&self, lease: &Value) -> Result<Value, Error> {
        self.client.replace(&self.resource, Some(&self.namespace), lease).await
    }
}

fn holder(lease: &Value) -> &str {
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default()
}

fn duration(lease: &Value) -> Duration {
    let seconds = lease["spec"]["leaseDurationSeconds"].as_u64();
    seconds.map_or(LEASE_DURATION, Duration::from_secs)
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
