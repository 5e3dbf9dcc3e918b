//! What a process reads and writes: Leases of processes and slots.

use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Error, Object};
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::view::{Dead, LeaseStep, Living, Time, Timing, View};
use crate::coordination::lease::{self, Leases};

pub(super) const GROUP: &str = "carrick-multicluster/group";
const ROLE: &str = "carrick-multicluster/role";
const SLOT: &str = "carrick-multicluster/slot";
const SLOTS: &str = "carrick-multicluster/slots";
const WEIGHT: &str = "carrick-multicluster/weight";

/// One process of a group.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) leases: Leases,
    pub(super) group: Arc<str>,
    pub(super) id: Arc<str>,
    pub(super) weight: f64,
    pub(super) slots: usize,
    pub(super) duration: Duration,
}

/// How a step went.
pub(super) enum Done {
    Renewed {
        begun: Time,
        version: u64,
        living: Living,
    },
    NotRenewed(Option<Error>),
    Taken {
        slot: usize,
        life: u64,
        version: u64,
    },
    Released {
        slot: usize,
        version: u64,
    },
    /// The process a slot was to be taken from lives, or has gone altogether.
    Alive {
        slot: usize,
        process: Arc<str>,
        lease: Option<Value>,
    },
    /// The Lease of the slot does not exist.
    Missing {
        slot: usize,
    },
    Failed {
        slot: usize,
        error: Option<Error>,
    },
    Nothing,
}

impl Done {
    /// What went wrong, unless another process was just faster.
    pub(super) fn error(&self) -> Option<&Error> {
        match self {
            Self::NotRenewed(error) | Self::Failed { error, .. } => error.as_ref(),
            _ => None,
        }
    }

    pub(super) fn report(self, view: &mut View, me: &Arc<str>, now: Time) {
        match self {
            Self::Renewed { begun, version, living } => {
                view.on_process(me, version, Some(living), now);
                view.on_renewed(begun, now);
            }
            Self::NotRenewed(_) => view.on_not_renewed(now),
            Self::Taken { slot, life, version } => view.on_taken(slot, life, version, now),
            Self::Released { slot, version } => view.on_released(slot, version, now),
            Self::Alive { slot, process, lease } => {
                match lease.as_ref().and_then(Seen::of) {
                    Some(Seen { version, what: What::Process(id, living) }) => {
                        view.on_process(&id, version, Some(living), now);
                    }
                    _ => view.on_process(&process, u64::MAX, None, now),
                }
                view.on_failed(slot, now);
            }
            Self::Missing { slot } => {
                view.on_slot(slot, u64::MAX, None, now);
                view.on_failed(slot, now);
            }
            Self::Failed { slot, .. } => view.on_failed(slot, now),
            Self::Nothing => {}
        }
    }
}

/// A Lease of the group as somebody saw it.
pub(super) struct Seen {
    pub(super) version: u64,
    pub(super) what: What,
}

/// What a Lease of the group is about.
#[derive(Clone)]
pub(super) enum What {
    Process(Arc<str>, Living),
    /// A slot and who has it.
    Slot(usize, Arc<str>),
}

impl Seen {
    pub(super) fn of(lease: &Value) -> Option<Self> {
        let metadata = &lease["metadata"];
        let holder = lease::holder(lease);
        let what = match metadata["labels"][ROLE].as_str()? {
            "process" => {
                let text = |key: &str| metadata["annotations"][key].as_str().unwrap_or_default();
                let living = Living {
                    weight: text(WEIGHT).parse().ok().filter(|weight: &f64| weight.is_finite() && *weight > 0.0)?,
                    slots: text(SLOTS).parse().ok()?,
                    duration: lease::duration(lease)?,
                };
                What::Process(holder.into(), living)
            }
            "slot" => What::Slot(metadata["labels"][SLOT].as_str()?.parse().ok()?, holder.into()),
            _ => return None,
        };
        Some(Self { version: lease::version(lease), what })
    }

    pub(super) fn of_object(object: &Object) -> Option<Self> {
        Self::of(&object.value())
    }

    pub(super) fn report(&self, view: &mut View, now: Time) {
        match &self.what {
            What::Process(id, living) => view.on_process(id, self.version, Some(*living), now),
            What::Slot(slot, holder) => view.on_slot(*slot, self.version, Some(holder), now),
        }
    }

    pub(super) fn report_gone(&self, view: &mut View, now: Time) {
        match &self.what {
            What::Process(id, _) => view.on_process(id, self.version, None, now),
            What::Slot(slot, _) => view.on_slot(*slot, self.version, None, now),
        }
    }
}

impl Member {
    pub(super) fn timing(&self) -> Timing {
        Timing { duration: self.duration, deadline: self.duration * 2 / 3, interval: self.duration / 5 }
    }

    fn process_lease(&self, id: &str) -> String {
        format!("{}-process-{id}", self.group)
    }

    fn slot_lease(&self, slot: usize) -> String {
        format!("{}-slot-{slot}", self.group)
    }

    /// Releases everything this process has.
    pub(super) async fn leave(&self, held: Vec<(usize, u64)>) {
        let slots = futures::stream::iter(held);
        let all = slots.for_each_concurrent(8, async |(slot, version)| {
            if let Err(error) = self.let_go(slot, version).await {
                tracing::debug!(slot, %error, "Slot not released; others take it when the lease has expired.");
            }
        });
        // A shutdown must not hang.
        let _ = tokio::time::timeout(self.duration, all).await;
        let _ = tokio::time::timeout(self.duration / 3, self.leases.delete(&self.process_lease(&self.id), None)).await;
    }

    /// Executes a step, within the time in which it makes sense.
    pub(super) async fn act(&self, step: LeaseStep, life: u64, begun: Time) -> Done {
        let limit = self.timing().deadline / 2;
        let failed = match &step {
            LeaseStep::Take { slot, .. } | LeaseStep::Release { slot, .. } => Some(*slot),
            _ => None,
        };
        let done = match step {
            LeaseStep::Renew => {
                let lease = tokio::time::timeout(limit, self.renew()).await;
                return match lease {
                    Ok(Ok(lease)) => Done::Renewed { begun, version: lease::version(&lease), living: self.living() },
                    Ok(Err(error)) => Done::NotRenewed(Some(error)),
                    Err(_) => Done::NotRenewed(None),
                };
            }
            LeaseStep::Take { slot, version, after } => self.take(slot, version, after, life).boxed(),
            LeaseStep::Release { slot, version } => self.let_go(slot, version).boxed(),
            LeaseStep::Forget { process, version } => {
                let forget = async move { self.leases.delete(&self.process_lease(&process), Some(version)).await };
                forget.map(|_| Ok(Done::Nothing)).boxed()
            }
            LeaseStep::Publish { .. } => return Done::Nothing,
        };
        match (tokio::time::timeout(limit, done).await, failed) {
            (Ok(Ok(done)), _) => done,
            (Ok(Err(error)), Some(slot)) => Done::Failed { slot, error: Some(error) },
            (_, Some(slot)) => Done::Failed { slot, error: None },
            (_, None) => Done::Nothing,
        }
    }

    fn living(&self) -> Living {
        Living { weight: self.weight, slots: self.slots, duration: self.duration }
    }

    async fn renew(&self) -> Result<Value, Error> {
        let name = self.process_lease(&self.id);
        let mut lease = json!({
            "metadata": {
                "labels": { GROUP: *self.group, ROLE: "process" },
                "annotations": { WEIGHT: self.weight.to_string(), SLOTS: self.slots.to_string() },
            },
            "spec": {
                "holderIdentity": *self.id,
                "leaseDurationSeconds": self.duration.as_secs(),
                "renewTime": lease::now(),
            },
        });
        match self.leases.patch(&name, None, lease.clone()).await {
            Err(error) if error.is_not_found() => {
                lease["spec"]["acquireTime"] = lease["spec"]["renewTime"].clone();
                self.leases.create(&name, lease).await
            }
            answer => answer,
        }
    }

    async fn take(&self, slot: usize, version: Option<u64>, after: Option<Dead>, life: u64) -> Result<Done, Error> {
        if let Some(dead) = after {
            // What was seen through the watch may be old: the process may live, and only its renewals have not arrived here.
            let lease = self.leases.get(&self.process_lease(&dead.process)).await?;
            if lease.as_ref().map(lease::version) != dead.version {
                return Ok(Done::Alive { slot, process: dead.process, lease });
            }
        }
        let name = self.slot_lease(slot);
        let now = lease::now();
        let lease = json!({
            "metadata": { "labels": { GROUP: *self.group, ROLE: "slot", SLOT: slot.to_string() } },
            "spec": { "holderIdentity": *self.id, "acquireTime": now, "renewTime": now },
        });
        let lease = match version {
            None => self.leases.create(&name, lease).await,
            Some(_) => self.leases.patch(&name, version, lease).await,
        };
        match lease {
            Ok(lease) => Ok(Done::Taken { slot, life, version: lease::version(&lease) }),
            Err(error) if error.is_not_found() => Ok(Done::Missing { slot }),
            Err(error) if error.is_conflict() || error.is_already_exists() => Ok(Done::Failed { slot, error: None }),
            Err(error) => Err(error),
        }
    }

    async fn let_go(&self, slot: usize, version: u64) -> Result<Done, Error> {
        let patch = json!({ "spec": { "holderIdentity": "", "renewTime": lease::now() } });
        match self.leases.patch(&self.slot_lease(slot), Some(version), patch).await {
            Ok(lease) => Ok(Done::Released { slot, version: lease::version(&lease) }),
            Err(error) if error.is_not_found() => Ok(Done::Missing { slot }),
            Err(error) if error.is_conflict() => Ok(Done::Failed { slot, error: None }),
            Err(error) => Err(error),
        }
    }
}
