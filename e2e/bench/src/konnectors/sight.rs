//! What becomes visible on both clusters, and when: two watches that go around the konnector's doors.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object};
use carrick_e2e_stage::contract::Contract;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;

use super::api::Api;

/// Everything seen so far.
#[derive(Debug, Default)]
struct Seen {
    /// Copies by their name.
    copies: HashMap<String, Instant>,
    /// Sources that know their copy.
    traced: HashSet<String>,
    /// Sources whose status tells their name.
    told: HashMap<String, Instant>,
}

/// The watches; they end when dropped.
pub struct Sight {
    seen: Arc<Mutex<Seen>>,
    changed: channel::Receiver<()>,
    _tasks: JoinSet<()>,
}

impl Sight {
    /// Begins to watch both sides of a contract.
    pub fn open(contract: &Contract<'_>, api: Api) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (tell, changed) = channel::channel(());
        let tell = Arc::new(tell);
        let mut tasks = JoinSet::new();
        let kind = contract.sheriffs();
        let mut begin = |client: Client, note: fn(Api, &mut Seen, &Object)| {
            let (seen, tell, kind) = (seen.clone(), tell.clone(), kind.clone());
            tasks.spawn(async move {
                let mut events = pin!(watch(client, kind, WatchOptions::default()));
                while let Some(event) = events.next().await {
                    if let Event::Listed(object) | Event::Applied(object) = event {
                        note(api, &mut seen.lock(), &object);
                        tell.send_replace(());
                    }
                }
            });
        };
        begin(contract.provider.clone(), |_, seen, copy| {
            seen.copies.entry(copy.name.to_string()).or_insert_with(Instant::now);
        });
        begin(contract.consumer.clone(), |api, seen, source| {
            if api.is_traced(&source.value()) {
                seen.traced.insert(source.name.to_string());
            }
            if source.value()["status"]["result"] == *source.name {
                seen.told.entry(source.name.to_string()).or_insert_with(Instant::now);
            }
        });
        Self { seen, changed, _tasks: tasks }
    }

    /// Waits until so many objects are completely placed.
    pub async fn placed(&self, count: usize, patience: Duration) -> anyhow::Result<()> {
        let is_placed = |seen: &Seen| (seen.copies.len().min(seen.traced.len()) >= count).then_some(());
        self.wait("objects are placed", patience, is_placed).await
    }

    /// When a copy was first seen.
    pub async fn copied(&self, copy: &str, patience: Duration) -> anyhow::Result<Instant> {
        self.wait("the copy is there", patience, |seen| seen.copies.get(copy).copied()).await
    }

    /// When a status was first seen.
    pub async fn told(&self, name: &str, patience: Duration) -> anyhow::Result<Instant> {
        self.wait("the status is back", patience, |seen| seen.told.get(name).copied()).await
    }

    async fn wait<T>(&self, what: &str, patience: Duration, found: impl Fn(&Seen) -> Option<T>) -> anyhow::Result<T> {
        let mut changed = self.changed.clone();
        let found = async {
            loop {
                changed.borrow_and_update();
                if let Some(found) = found(&self.seen.lock()) {
                    return Ok(found);
                }
                changed.changed().await?;
            }
        };
        let waited = tokio::time::timeout(patience, found).await;
        waited.unwrap_or_else(|_| anyhow::bail!("waited {} s in vain until {what}", patience.as_secs()))
    }
}
