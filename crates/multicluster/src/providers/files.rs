//! Clusters of kubeconfig files.
//!
//! Files are read again every few seconds and compared by content, instead of waiting for notifications of the file system: those do not
//! come through the links that mounted Secrets and ConfigMaps are made of, nor over network file systems, and a kubeconfig is small.

mod contexts;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;

use super::engagements::Engagements;
use super::servers::{Servers, unusable};
use crate::endpoint::{ClusterKey, Endpoint};
use crate::event::{FleetEvent, Gone};
use crate::name::{ClusterName, EndpointId};
use crate::provider::Provider;
use contexts::{ContextChange, Contexts};

/// The name of the cluster of a context in a file; contexts without one are left out.
type NameFn = Arc<dyn Fn(&Path, &str) -> Option<ClusterName> + Send + Sync>;

/// Every context of the kubeconfigs in files and folders is a cluster, called `<path>+<context>`.
///
/// In a folder, these files are read: `kubeconfig`, `kubeconfig.yaml`, `kubeconfig.yml`, and names that end in `.kubeconfig`, `.kubeconfig.yaml`
/// or `.kubeconfig.yml`. A path that does not exist may come later. A file or context that cannot be used is reported with
/// [`FleetEvent::Failing`] and tried again every time the files are read; the clusters it had before stay. Other credentials for the same server
/// are used from then on without a new list.
///
/// ```
/// # use std::time::Duration;
/// # use carrick_multicluster::providers::KubeconfigFiles;
/// // The contexts that kubectl knows, those of production only, by their own names.
/// let clusters = KubeconfigFiles::infer()
///     .names(|_path, context| context.starts_with("prod-").then(|| context.to_owned()))
///     .interval(Duration::from_secs(10));
/// ```
#[derive(Clone)]
pub struct KubeconfigFiles {
    paths: Vec<PathBuf>,
    interval: Duration,
    name: NameFn,
}

impl KubeconfigFiles {
    /// The kubeconfigs at these paths, files or folders.
    pub fn new(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let name = |path: &Path, context: &str| ClusterName::new(format!("{}+{context}", path.display())).ok();
        let paths = paths.into_iter().map(Into::into).collect();
        Self { paths, interval: Duration::from_secs(2), name: Arc::new(name) }
    }

    /// The kubeconfigs that `kubectl` would use: those of `$KUBECONFIG`, or else `~/.kube/config`.
    pub fn infer() -> Self {
        match std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()) {
            Some(paths) => Self::new(std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty())),
            None => Self::new(std::env::home_dir().map(|home| home.join(".kube").join("config"))),
        }
    }

    /// How often the files are read, every two seconds unless said otherwise.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(Duration::from_millis(10));
        self
    }

    /// Names clusters by a function of file and context; contexts for which it returns `None` are left out. If several contexts get the same
    /// name, the one in the file whose path comes first in the alphabet counts.
    #[must_use]
    pub fn names(mut self, name: impl Fn(&Path, &str) -> Option<String> + Send + Sync + 'static) -> Self {
        self.name = Arc::new(move |path, context| ClusterName::new(name(path, context)?).ok());
        self
    }
}

impl fmt::Debug for KubeconfigFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { paths, interval, .. } = self;
        f.debug_struct("KubeconfigFiles").field("paths", paths).field("interval", interval).finish_non_exhaustive()
    }
}

impl Provider for KubeconfigFiles {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let events = Events {
            provider: self.clone(),
            contexts: Contexts::default(),
            engagements: Engagements::default(),
            servers: Servers::default(),
            failing: HashMap::new(),
            pending: VecDeque::new(),
            first: true,
        };
        futures::stream::unfold(events, |mut events| async move {
            let event = events.next().await;
            Some((event, events))
        })
        .boxed()
    }
}

/// What comes next on the stream of the provider.
struct Events {
    provider: KubeconfigFiles,
    contexts: Contexts,
    engagements: Engagements,
    servers: Servers,
    /// Clusters whose kubeconfig was read and cannot be used.
    failing: HashMap<ClusterName, Unusable>,
    pending: VecDeque<FleetEvent>,
    /// Whether the files have not been read yet.
    first: bool,
}

/// A kubeconfig that cannot be used, or not yet: a file it refers to may be missing.
struct Unusable {
    kubeconfig: Arc<str>,
    /// What is wrong, as it was reported.
    problem: String,
}

impl Events {
    async fn next(&mut self) -> FleetEvent {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            if !std::mem::take(&mut self.first) {
                tokio::time::sleep(self.provider.interval).await;
            }
            let provider = self.provider.clone();
            let read = move || {
                let mut found = contexts::read(&provider.paths);
                contexts::keep_named(&mut found, &*provider.name);
                found
            };
            let found = match tokio::task::spawn_blocking(read).await {
                Ok(found) => found,
                // The one way for this to fail is a panic, and the next time may do better.
                Err(error) => {
                    tracing::warn!(%error, "cannot read kubeconfig files, trying again");
                    continue;
                }
            };
            // Those whose kubeconfig changes now are tried in its new form only.
            let failing: Vec<ClusterName> = self.failing.keys().cloned().collect();
            for change in self.contexts.on_found(found) {
                self.on_change(change);
            }
            for name in failing {
                if let Some(Unusable { kubeconfig, .. }) = self.failing.get(&name) {
                    let kubeconfig = kubeconfig.clone();
                    self.engage(name, kubeconfig);
                }
            }
        }
    }

    fn engage(&mut self, name: ClusterName, kubeconfig: Arc<str>) {
        match self.servers.open(&name, &kubeconfig) {
            Ok(server) => {
                if self.failing.remove(&name).is_some() {
                    self.pending.push_back(FleetEvent::Recovered { source: name.to_arc() });
                }
                let Some(server) = server else { return };
                let (client, id) = (server.client(), EndpointId::new(name.to_arc()));
                let key = ClusterKey::Fixed(name.clone());
                let up = Endpoint { id: id.clone(), client: client.clone(), key };
                self.pending.push_back(FleetEvent::EndpointUp(up));
                let engaged = self.engagements.engage(name, id, client, None);
                self.pending.push_back(engaged);
            }
            Err(error) => {
                let error = unusable(&name, &error);
                let problem = error.to_string();
                let known = self.failing.insert(name.clone(), Unusable { kubeconfig, problem: problem.clone() });
                if known.is_none_or(|known| known.problem != problem) {
                    self.pending.push_back(FleetEvent::Failing { source: name.to_arc(), error });
                }
            }
        }
    }

    fn on_change(&mut self, change: ContextChange) {
        match change {
            ContextChange::Engage { path, context, kubeconfig } => {
                let Some(name) = (self.provider.name)(&path, &context) else { return };
                self.engage(name, kubeconfig);
            }
            ContextChange::Disengage { path, context } => {
                let Some(name) = (self.provider.name)(&path, &context) else { return };
                if self.failing.remove(&name).is_some() {
                    self.pending.push_back(FleetEvent::Recovered { source: name.to_arc() });
                }
                self.servers.forget(&name);
                if let Some(event) = self.engagements.disengage(&name, Gone::Removed) {
                    self.pending.push_back(event);
                    self.pending.push_back(FleetEvent::EndpointDown(EndpointId::new(name.to_arc())));
                }
            }
            ContextChange::Failing { path, problem } => {
                let source = display(&path);
                let error = unusable(&source, &problem);
                self.pending.push_back(FleetEvent::Failing { source, error });
            }
            ContextChange::Recovered { path } => {
                self.pending.push_back(FleetEvent::Recovered { source: display(&path) });
            }
            ContextChange::Synced => self.pending.push_back(FleetEvent::Synced),
        }
    }
}

fn display(path: &Path) -> Arc<str> {
    path.display().to_string().into()
}
