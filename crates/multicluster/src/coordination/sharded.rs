//! Several processes share the clusters.
//!
//! ```text
//!   cluster ──hash──▶ slot ──rendezvous over the living──▶ process
//!
//!   Lease <group>-process-<id>   renewed by each process          "I live"
//!   Lease <group>-slot-<n>       written when it changes hands    "the slot is mine"
//!
//!   hand-over:  stop taking up work ─▶ wait until nothing runs ─▶ clear the Lease ─▶ the next owner writes itself in
//!   take-over:  no change of the process's Lease for its duration ─▶ read it again ─▶ write oneself into its slots
//! ```
//!
//! A thousand clusters cost as much as one: the number of writes depends on the number of processes, and on slots that change hands.

mod member;
mod slots;
mod view;

#[cfg(test)]
mod simulation;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Error};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::FuturesUnordered;
use futures::{StreamExt, pin_mut};
use parking_lot::Mutex;
use tokio::sync::watch as channel;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lease::{self, Deadline, Leases};
use super::{Coordinator, Ownership, note_drained};
use crate::name::ClusterName;
use member::{Done, GROUP, Member, Seen};
use slots::slot_of;
use view::{LeaseStep, View};

/// The clusters are divided into slots, and the slots among all processes of a group.
///
/// Where every cluster has an endpoint of its own, a process has watches and memory for its share only, and reads a cluster when it gets it.
/// Nobody sees what was deleted there earlier and not reconciled by the previous process: use finalizers, or
/// [`Sharded::watch_everything`]. Endpoints that serve many clusters, such as kcp's, are watched by all processes, and no deletion is lost.
///
/// All processes of a group must use the same number of slots; one that does not waits until the others are gone. Permissions needed:
/// `get`, `list`, `watch`, `create`, `patch` and `delete` on Leases of the namespace.
///
/// A process that cannot renew its Lease begins nothing new after two thirds of the Lease's duration; what still runs must end within
/// the last third, because others may start then.
///
/// ```no_run
/// # use carrick_multicluster::Fleet;
/// # use carrick_multicluster::coordination::Sharded;
/// # use carrick_multicluster::providers::KubeconfigFiles;
/// # fn fleet(home: kube::Client) -> Fleet {
/// // Every replica does the same.
/// Fleet::builder(KubeconfigFiles::infer()).coordinator(Sharded::new(home, "my-controller")).build()
/// # }
/// ```
#[derive(Debug)]
pub struct Sharded {
    member: Member,
    start: Instant,
    ownership: channel::Sender<Ownership>,
    drained: channel::Sender<u64>,
    stop: CancellationToken,
    /// Set while [`Coordinator::run`] runs.
    view: Arc<Mutex<Option<View>>>,
    watch_everything: bool,
}

impl Sharded {
    /// A process of a group, with Leases in the client's default namespace.
    pub fn new(client: impl Into<Client>, group: &str) -> Self {
        let mut random = uuid::Uuid::new_v4().simple().to_string();
        random.truncate(10);
        let member = Member {
            leases: Leases::new(client.into()),
            group: group.into(),
            id: format!("{}-{random}", dns_label(&lease::host())).into(),
            weight: 1.0,
            slots: 64,
            duration: Duration::from_secs(15),
        };
        Self {
            member,
            start: Instant::now(),
            ownership: channel::Sender::new(Ownership::none(0)),
            drained: channel::Sender::new(0),
            stop: CancellationToken::new(),
            view: Arc::default(),
            watch_everything: false,
        }
    }

    /// Keeps the Leases in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.member.leases.namespace = namespace.into();
        self
    }

    /// The number of slots, 64 unless said otherwise: some times the number of processes, so that all get about the same share.
    #[must_use]
    pub fn slots(mut self, slots: usize) -> Self {
        self.member.slots = slots.max(1);
        self
    }

    /// The share of this process, 1 unless said otherwise: one of weight 2 gets twice as many slots as one of weight 1.
    #[must_use]
    pub fn weight(mut self, weight: f64) -> Self {
        self.member.weight = if weight.is_finite() && weight > 0.0 { weight } else { 1.0 };
        self
    }

    /// How long a process that died keeps its clusters, in whole seconds: 15 unless said otherwise.
    #[must_use]
    pub fn duration(mut self, duration: Duration) -> Self {
        self.member.duration = lease::whole_seconds(duration);
        self
    }

    /// Watches all clusters, also those of other processes, so that it can take over at once and knows what was deleted there.
    #[must_use]
    pub fn watch_everything(mut self) -> Self {
        self.watch_everything = true;
        self
    }

    /// The name of this process in its Lease; no other may have it. Lower-case letters, digits and `-`.
    #[must_use]
    pub fn identity(mut self, id: &str) -> Self {
        self.member.id = dns_label(id).into();
        self
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    async fn share(&self) {
        let member = &self.member;
        let mut options = WatchOptions::labels(format!("{GROUP}={}", member.group));
        options.namespace = Some(member.leases.namespace.to_string());
        let leases = watch(member.leases.client.clone(), member.leases.resource.clone(), options);
        pin_mut!(leases);
        let mut list = List::default();
        let mut drained = self.drained.subscribe();
        let mut going: FuturesUnordered<BoxFuture<'_, Done>> = FuturesUnordered::new();
        let mut rights = Rights::new(self.start);
        let mut outage = Outage::default();
        loop {
            let now = self.now();
            let (steps, life, look) = self.with_view(|view| {
                let steps = view.steps(now);
                rights.follow(view, self.start);
                (steps, view.life(), view.next_look(now))
            });
            for step in steps {
                match step {
                    LeaseStep::Publish { version, working } => self.publish(version, working, &rights.deadline),
                    step => going.push(member.act(step, life, now).boxed()),
                }
            }
            tokio::select! {
                Some(event) = leases.next() => {
                    let now = self.now();
                    match event {
                        Event::Failing(error) => outage.fails(&error),
                        Event::Recovered => outage.works(),
                        event => self.with_view(|view| list.take_in(event, view, now)),
                    }
                }
                Some(done) = going.next() => {
                    let now = self.now();
                    if let Some(error) = done.error() {
                        outage.fails(error);
                    } else if matches!(done, Done::Renewed { .. }) {
                        outage.works();
                    }
                    self.with_view(|view| done.report(view, &member.id, now));
                }
                Ok(()) = drained.changed() => {
                    let version = *drained.borrow_and_update();
                    self.with_view(|view| view.on_drained(version));
                }
                () = tokio::time::sleep_until(self.start + look) => {}
            }
            let now = self.now();
            outage.misfit(self.with_view(|view| view.misfit(now).cloned()));
        }
    }

    /// Calls with what is known; that exists while [`Coordinator::run`] runs.
    fn with_view<T>(&self, f: impl FnOnce(&mut View) -> T) -> T {
        let mut view = self.view.lock();
        let member = &self.member;
        f(view.get_or_insert_with(|| View::new(member.id.clone(), member.slots, member.timing())))
    }

    fn publish(&self, version: u64, working: Vec<bool>, deadline: &Arc<Deadline>) {
        let count = working.iter().filter(|working| **working).count();
        let Member { group, id, slots, .. } = &self.member;
        tracing::info!(group = &**group, process = &**id, slots = count, of = slots, "Sharing the clusters.");
        let (deadline, slots) = (deadline.clone(), *slots);
        let working = Arc::new(working);
        let watched = working.clone();
        let owns = move |cluster: &ClusterName| working[slot_of(cluster, slots)] && deadline.is_ahead();
        // A deadline that lapses is no reason to stop watching: most are met again.
        let everything = self.watch_everything;
        let watches = move |cluster: &ClusterName| everything || watched[slot_of(cluster, slots)];
        self.ownership.send_replace(Ownership::new(version, owns).watching(watches));
    }
}

impl Coordinator for Sharded {
    fn ownership(&self) -> channel::Receiver<Ownership> {
        self.ownership.subscribe()
    }

    fn drained(&self, version: u64) {
        note_drained(&self.drained, version);
    }

    fn run(self: Arc<Self>) -> BoxFuture<'static, ()> {
        async move {
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = self.share() => {}
            }
        }
        .boxed()
    }

    fn release(&self) -> BoxFuture<'static, ()> {
        self.stop.cancel();
        let version = self.ownership.borrow().version() + 1;
        self.ownership.send_replace(Ownership::none(version));
        let held = self.view.lock().as_ref().map(View::held).unwrap_or_default();
        let member = self.member.clone();
        async move { member.leave(held).await }.boxed()
    }
}

/// Until when this process may work; one for each of its lives, so that what was owned in an earlier one does not come back.
struct Rights {
    life: u64,
    deadline: Arc<Deadline>,
}

impl Rights {
    fn new(start: Instant) -> Self {
        Self { life: 0, deadline: Arc::new(Deadline::at(start)) }
    }

    fn follow(&mut self, view: &View, start: Instant) {
        let end = start + view.works_until().unwrap_or_default();
        if view.life() == self.life {
            self.deadline.put_off(end);
        } else {
            *self = Self { life: view.life(), deadline: Arc::new(Deadline::at(end)) };
        }
    }
}

/// The Leases that a watch has shown.
#[derive(Default)]
struct List {
    /// Each with the list that last held it.
    seen: HashMap<Arc<str>, (Seen, u64)>,
    generation: u64,
}

impl List {
    fn take_in(&mut self, event: Event, view: &mut View, now: Duration) {
        match event {
            Event::Begin => self.generation += 1,
            Event::Listed(object) | Event::Applied(object) => {
                let Some(seen) = Seen::of_object(&object) else { return };
                seen.report(view, now);
                self.seen.insert(object.name.clone(), (seen, self.generation));
            }
            Event::Deleted(object) => {
                self.seen.remove(&object.name);
                if let Some(seen) = Seen::of_object(&object) {
                    seen.report_gone(view, now);
                }
            }
            Event::Synced => {
                let generation = self.generation;
                for (_, (seen, _)) in self.seen.extract_if(|_, (_, last)| *last < generation) {
                    seen.report_gone(view, now);
                }
                view.on_synced();
            }
            Event::WentBack { .. } => view.on_went_back(),
            Event::Failing(_) | Event::Recovered => {}
        }
    }
}

/// Logs once what is wrong, and once that it works again.
#[derive(Default)]
struct Outage {
    failing: bool,
    misfit: Option<Arc<str>>,
}

impl Outage {
    fn fails(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(%error, "Cannot keep up with the leases of the group.");
        }
    }

    fn works(&mut self) {
        if std::mem::take(&mut self.failing) {
            tracing::info!("The leases of the group are reachable again.");
        }
    }

    fn misfit(&mut self, process: Option<Arc<str>>) {
        if let Some(process) = &process
            && self.misfit.is_none()
        {
            tracing::error!(
                process = &**process,
                "A process of the group uses another number of slots; waiting until it is gone."
            );
        }
        self.misfit = process;
    }
}

/// A text as part of the name of an object.
fn dns_label(text: &str) -> String {
    let text = text.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let text = text.trim_matches('-');
    text[..text.len().min(40)].trim_end_matches('-').to_owned()
}
