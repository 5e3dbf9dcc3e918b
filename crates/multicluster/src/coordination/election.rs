//! Leader election with one Lease, compatible with client-go.
//!
//! Whoever's name is in the Lease leads, and renews it every two seconds. Others take over when they have seen no change for the
//! Lease's duration by their own clock; the time stamps in the object are for people. A leader that could not renew for ten seconds
//! stops, five seconds before anybody else may start.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Client, Error};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::Instant;

use super::lease::{Deadline, Leases, duration, holder, host, now, whole_seconds};

const LEASE_DURATION: Duration = Duration::from_secs(15);

/// Why leadership ended.
#[derive(Debug, Error)]
pub enum Lost {
    /// Another process has the Lease now.
    #[error("leader election lost: lease {lease} is held by {holder:?} now")]
    Taken {
        /// Namespace and name of the Lease.
        lease: String,
        /// Who has it.
        holder: String,
    },
    /// The Lease could not be renewed in time.
    #[error("leader election lost: lease {lease} could not be renewed for {} s: {problem}", .after.as_secs_f32())]
    Expired {
        /// Namespace and name of the Lease.
        lease: String,
        /// How long it was tried.
        after: Duration,
        /// What the last attempt said.
        problem: String,
    },
}

/// One candidate for one Lease.
#[derive(Debug)]
pub struct Election {
    leases: Leases,
    name: Arc<str>,
    identity: String,
    duration: Duration,
    seen: Option<Seen>,
    /// Whether a request for the Lease was sent whose answer is not known.
    unanswered: bool,
    /// When the last successful write was begun.
    renewed: Instant,
}

/// Reports how the election is going: well, or what is wrong.
pub type Report<'a> = &'a (dyn Fn(Result<(), &str>) + Send + Sync);

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
    /// A candidate for the Lease of that name in the client's default namespace, under a name that nobody else has.
    pub fn new(client: impl Into<Client>, name: &str) -> Self {
        Self {
            leases: Leases::new(client.into()),
            name: name.into(),
            identity: format!("{}_{}", host(), uuid::Uuid::new_v4()),
            duration: LEASE_DURATION,
            seen: None,
            unanswered: false,
            renewed: Instant::now(),
        }
    }

    /// Looks for the Lease in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.leases.namespace = namespace.into();
        self
    }

    /// The name of this candidate; no other may have it.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// How long the Lease lives without renewal, in whole seconds: 15 unless said otherwise. It is renewed seven times in that time, and
    /// given up when two thirds of it have passed without success.
    #[must_use]
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = whole_seconds(duration);
        self
    }

    /// Waits until this candidate leads, and returns until when it may do so without a renewal.
    pub async fn acquire(&mut self, report: Report<'_>) -> Leadership {
        let mut reported = None;
        loop {
            let started = Instant::now();
            match tokio::time::timeout(self.deadline(), self.attempt()).await {
                Ok(Ok(Attempt::Leading)) => {
                    report(Ok(()));
                    tracing::info!(lease = self.shown(), identity = self.identity, "Leading.");
                    self.renewed = started;
                    return Leadership(Arc::new(Deadline::at(started + self.deadline())));
                }
                Ok(Ok(Attempt::HeldBy(holder))) => {
                    report(Ok(()));
                    if reported.as_ref() != Some(&holder) {
                        tracing::info!(lease = self.shown(), holder, "Waiting for the lease.");
                        reported = Some(holder);
                    }
                }
                Ok(Err(error)) => report(Err(&format!("lease {}: {error}", self.shown()))),
                Err(_) => report(Err(&format!("lease {}: no answer", self.shown()))),
            }
            tokio::time::sleep(self.period()).await;
        }
    }

    /// Keeps the Lease; returns only when it is lost.
    pub async fn hold(&mut self, leadership: &Leadership, report: Report<'_>) -> Lost {
        match self.hold_while(leadership, report, std::future::pending::<Infallible>()).await {
            Ok(never) => match never {},
            Err(lost) => lost,
        }
    }

    /// Keeps the Lease while a future runs, and returns its result. When the Lease is lost, the future is dropped.
    pub async fn hold_while<T>(
        &mut self,
        leadership: &Leadership,
        report: Report<'_>,
        work: impl Future<Output = T>,
    ) -> Result<T, Lost> {
        let mut problem = "no answer".to_owned();
        let mut work = pin!(work);
        loop {
            let deadline = self.renewed + self.deadline();
            tokio::select! {
                done = &mut work => return Ok(done),
                () = tokio::time::sleep_until((Instant::now() + self.period()).min(deadline)) => {}
            }
            let started = Instant::now();
            let (attempt, done) = {
                let mut attempt = pin!(tokio::time::timeout_at(deadline, self.attempt()));
                tokio::select! {
                    attempt = &mut attempt => (attempt, None),
                    // A renewal that is under way is not aborted: it would conflict with the release of the Lease.
                    done = &mut work => (attempt.await, Some(done)),
                }
            };
            if let Some(done) = done {
                return Ok(done);
            }
            match attempt {
                Ok(Ok(Attempt::Leading)) => {
                    report(Ok(()));
                    self.renewed = started;
                    leadership.0.put_off(started + self.deadline());
                }
                Ok(Ok(Attempt::HeldBy(holder))) => return Err(Lost::Taken { lease: self.shown(), holder }),
                Ok(Err(error)) => problem = error.to_string(),
                Err(_) => {}
            }
            if self.renewed != started {
                report(Err(&format!("lease {}: {problem}", self.shown())));
            }
            if Instant::now() >= self.renewed + self.deadline() {
                return Err(Lost::Expired { lease: self.shown(), after: self.deadline(), problem });
            }
        }
    }

    /// Releases the Lease, so that a successor need not wait for it to expire. A failure only costs that wait. Call it also when
    /// [`Self::acquire`] was given up: its last request may have arrived.
    pub async fn release(&mut self) {
        if std::mem::take(&mut self.unanswered)
            && let Ok(Ok(Some(lease))) = tokio::time::timeout(self.period(), self.leases.get(&self.name)).await
        {
            self.see(lease);
        }
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
        match tokio::time::timeout(self.period(), self.leases.replace(&lease)).await {
            Ok(Ok(_)) => tracing::info!(lease = self.shown(), "Lease released."),
            Ok(Err(error)) => tracing::debug!(lease = self.shown(), %error, "Lease not released."),
            Err(_) => tracing::debug!(lease = self.shown(), "Lease not released in time."),
        }
    }

    /// How long renewals may fail.
    fn deadline(&self) -> Duration {
        self.duration * 2 / 3
    }

    /// How often the Lease is renewed or asked for.
    fn period(&self) -> Duration {
        self.duration * 2 / 15
    }

    fn shown(&self) -> String {
        format!("{}/{}", self.leases.namespace, self.name)
    }

    /// One attempt to get the Lease, or to renew it.
    async fn attempt(&mut self) -> Result<Attempt, Error> {
        self.unanswered = true;
        let attempt = self.ask().await;
        self.unanswered = attempt.is_err();
        attempt
    }

    async fn ask(&mut self) -> Result<Attempt, Error> {
        // The common case needs one request: write on top of what was written last.
        if let Some(seen) = &self.seen
            && holder(&seen.lease) == self.identity
        {
            match self.leases.replace(&self.mine(Some(&seen.lease))).await {
                Ok(lease) => {
                    self.see(lease);
                    return Ok(Attempt::Leading);
                }
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        let Some(lease) = self.leases.get(&self.name).await? else {
            let created = self.leases.create(&self.name, self.mine(None)).await?;
            self.see(created);
            return Ok(Attempt::Leading);
        };
        let since = self.see(lease.clone());
        let holder = holder(&lease);
        let duration = duration(&lease).unwrap_or(self.duration);
        if !holder.is_empty() && holder != self.identity && since + duration > Instant::now() {
            return Ok(Attempt::HeldBy(holder.to_owned()));
        }
        match self.leases.replace(&self.mine(Some(&lease))).await {
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
        let mut lease = current.cloned().unwrap_or_else(|| json!({ "spec": { "leaseTransitions": 0 } }));
        if holder(&lease) != self.identity {
            let transitions = lease["spec"]["leaseTransitions"].as_i64().unwrap_or_default();
            lease["spec"]["leaseTransitions"] = json!(transitions + i64::from(current.is_some()));
            lease["spec"]["acquireTime"] = json!(now);
        }
        lease["spec"]["holderIdentity"] = json!(self.identity);
        lease["spec"]["leaseDurationSeconds"] = json!(self.duration.as_secs());
        lease["spec"]["renewTime"] = json!(now);
        lease
    }
}

/// The right to lead, which ends by itself unless it is renewed.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<Deadline>);

impl Leadership {
    /// Whether it is still there. Ask before everything that only a leader may begin.
    pub fn lasts(&self) -> bool {
        self.0.is_ahead()
    }
}
