//! What becomes visible on both servers, and when: three watches that go around the agent's doors.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object, Resource};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::Stage;
use carrick_syncagent::api;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;

/// A copy, when it was first seen, and where it is.
#[derive(Debug, Clone)]
pub struct Copy {
    /// When it was first seen.
    pub seen: Instant,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// Everything seen so far. Names of sources are unique over all workspaces.
#[derive(Debug, Default)]
pub struct Seen {
    /// Copies by the name of their source.
    pub copies: HashMap<String, Copy>,
    /// When each source was first seen.
    pub sources: HashMap<String, Instant>,
    /// Sources that have the agent's finalizer.
    pub held: HashSet<String>,
    /// State Secrets.
    pub states: HashSet<Arc<str>>,
    /// The last status of each source, and when it was first seen.
    pub statuses: HashMap<String, (String, Instant)>,
}

impl Seen {
    /// How many objects are completely placed.
    pub fn placed(&self) -> usize {
        self.copies.len().min(self.held.len()).min(self.states.len())
    }
}

/// The watches; they end when dropped.
pub struct Sight {
    seen: Arc<Mutex<Seen>>,
    changed: channel::Receiver<()>,
    _tasks: JoinSet<()>,
}

impl Sight {
    /// Begins to watch a stage whose API is served already.
    pub fn open(stage: &Stage) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (tell, changed) = channel::channel(());
        let tell = Arc::new(tell);
        let mut tasks = JoinSet::new();
        let everywhere = WatchOptions { streaming_lists: false, ..WatchOptions::default() };
        let mine = WatchOptions::labels(format!("{}={}", api::AGENT_NAME, stage.agent_name()));
        let states = WatchOptions {
            namespace: Some(stage.agent_namespace()),
            ..WatchOptions::labels(format!("{}=true", api::OBJECT_STATE))
        };
        let sources = stage.world.kcp().at_path(&format!(
            "/services/apiexport/{}/{}/clusters/*",
            stage.provider.cluster,
            stage.export_name()
        ));
        let mut begin = |client: Client, kind: Resource, options: WatchOptions, note: fn(&mut Seen, &Object)| {
            let (seen, tell) = (seen.clone(), tell.clone());
            tasks.spawn(async move {
                let mut events = pin!(watch(client, kind, options));
                while let Some(event) = events.next().await {
                    if let Event::Listed(object) | Event::Applied(object) = event {
                        note(&mut seen.lock(), &object);
                        tell.send_replace(());
                    }
                }
            });
        };
        begin(sources, stage.buckets(), everywhere, source);
        begin(stage.service.clone(), stage.buckets(), mine, copy);
        begin(stage.service.clone(), kinds::secrets(), states, |seen, secret| {
            seen.states.insert(secret.name.clone());
        });
        Self { seen, changed, _tasks: tasks }
    }

    /// Looks at what was seen so far.
    pub fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.lock())
    }

    /// Waits until something is seen.
    pub async fn wait<T>(
        &self,
        what: &str,
        patience: Duration,
        mut found: impl FnMut(&Seen) -> Option<T>,
    ) -> anyhow::Result<T> {
        let mut changed = self.changed.clone();
        let found = async {
            loop {
                changed.borrow_and_update();
                if let Some(found) = self.look(&mut found) {
                    return Ok(found);
                }
                changed.changed().await?;
            }
        };
        let waited = tokio::time::timeout(patience, found).await;
        waited.unwrap_or_else(|_| {
            let placed = self.look(|seen| (seen.copies.len(), seen.held.len(), seen.states.len()));
            anyhow::bail!(
                "waited {} s in vain until {what}; copies, finalizers, states: {placed:?}",
                patience.as_secs()
            )
        })
    }
}

fn source(seen: &mut Seen, source: &Object) {
    let value = source.value();
    if !seen.sources.contains_key(&*source.name) {
        seen.sources.insert(source.name.to_string(), Instant::now());
    }
    let finalizers = value["metadata"]["finalizers"].as_array();
    if finalizers.is_some_and(|all| all.iter().any(|one| one == api::FINALIZER)) && !seen.held.contains(&*source.name) {
        seen.held.insert(source.name.to_string());
    }
    if let Some(token) = value["status"]["token"].as_str() {
        let known = seen.statuses.get(&*source.name).is_some_and(|(known, _)| known == token);
        if !known {
            seen.statuses.insert(source.name.to_string(), (token.to_owned(), Instant::now()));
        }
    }
}

fn copy(seen: &mut Seen, copy: &Object) {
    let Some(name) = copy.annotation(api::REMOTE_NAME) else { return };
    seen.copies.entry(name).or_insert_with(|| Copy {
        seen: Instant::now(),
        namespace: copy.namespace.clone(),
        name: copy.name.clone(),
    });
}
