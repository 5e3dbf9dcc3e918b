//! Clusters of kubeconfig files.
//!
//! Files are read again every few seconds and compared by content, instead of waiting for notifications of the file system: those do not
//! come through the links that mounted Secrets and ConfigMaps are made of, nor over network file systems, and a kubeconfig is small.

mod contexts;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;

use super::teller::{Servers, Teller, unusable};
use crate::endpoint::{ClusterKey, Endpoint};
use crate::event::{FleetEvent, Gone};
use crate::name::{ClusterName, EndpointId};
use crate::provider::Provider;
use contexts::{Contexts, Step};

/// Every context of the kubeconfigs in files and folders is a cluster, called `<path>+<context>`.
///
/// Of folders, these files count: `kubeconfig`, `kubeconfig.yaml`, `kubeconfig.yml`, and names that end in `.kubeconfig`, `.kubeconfig.yaml`
/// or `.kubeconfig.yml`. A path that does not exist is waited for. A file or context that cannot be used is told with [`FleetEvent::Failing`]
/// and tried again at every look; the clusters it had before stay. Other credentials for the same server are taken over without a new list.
#[derive(Clone, Debug)]
pub struct KubeconfigFiles {
    paths: Vec<PathBuf>,
    interval: Duration,
}

impl KubeconfigFiles {
    /// The kubeconfigs at these paths, files or folders.
    pub fn new(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), interval: Duration::from_secs(2) }
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
}

impl Provider for KubeconfigFiles {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let state = State {
            provider: self.clone(),
            contexts: Contexts::default(),
            teller: Teller::default(),
            servers: Servers::default(),
            failing: HashMap::new(),
            told: VecDeque::new(),
            first: true,
        };
        futures::stream::unfold(state, |mut state| async move {
            let event = state.next().await;
            Some((event, state))
        })
        .boxed()
    }
}

struct State {
    provider: KubeconfigFiles,
    contexts: Contexts,
    teller: Teller,
    servers: Servers,
    /// Clusters whose kubeconfig was read and cannot be used.
    failing: HashMap<ClusterName, Unusable>,
    told: VecDeque<FleetEvent>,
    first: bool,
}

/// A kubeconfig that cannot be used, or not yet: a file it refers to may be missing.
struct Unusable {
    kubeconfig: Arc<str>,
    /// What is wrong, as it was told.
    problem: String,
}

impl State {
    async fn next(&mut self) -> FleetEvent {
        loop {
            if let Some(event) = self.told.pop_front() {
                return event;
            }
            if !std::mem::take(&mut self.first) {
                tokio::time::sleep(self.provider.interval).await;
            }
            let paths = self.provider.paths.clone();
            // The one way for this to fail is a panic, and then the next look may do better.
            let Ok(found) = tokio::task::spawn_blocking(move || contexts::read(&paths)).await else { continue };
            // Those whose kubeconfig changes now are tried in its new form only.
            let failing: Vec<ClusterName> = self.failing.keys().cloned().collect();
            for step in self.contexts.on_found(found) {
                self.act(step);
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
                    self.told.push_back(FleetEvent::Recovered { source: name.to_arc() });
                }
                let Some(server) = server else { return };
                let (client, id) = (server.client(), EndpointId::new(name.to_arc()));
                let key = ClusterKey::Fixed(name.clone());
                let up = Endpoint { id: id.clone(), client: client.clone(), key };
                self.told.push_back(FleetEvent::EndpointUp(up));
                let engaged = self.teller.engage(name, id, client, None);
                self.told.push_back(engaged);
            }
            Err(error) => {
                let error = unusable(&name, &error);
                let problem = error.to_string();
                let known = self.failing.insert(name.clone(), Unusable { kubeconfig, problem: problem.clone() });
                if known.is_none_or(|known| known.problem != problem) {
                    self.told.push_back(FleetEvent::Failing { source: name.to_arc(), error });
                }
            }
        }
    }

    fn act(&mut self, step: Step) {
        match step {
            Step::Engage { path, context, kubeconfig } => {
                let Some(name) = name(&path, &context) else { return };
                self.engage(name, kubeconfig);
            }
            Step::Disengage { path, context } => {
                let Some(name) = name(&path, &context) else { return };
                if self.failing.remove(&name).is_some() {
                    self.told.push_back(FleetEvent::Recovered { source: name.to_arc() });
                }
                self.servers.forget(&name);
                if let Some(event) = self.teller.disengage(&name, Gone::Removed) {
                    self.told.push_back(event);
                    self.told.push_back(FleetEvent::EndpointDown(EndpointId::new(name.to_arc())));
                }
            }
            Step::Broken { path, problem } => {
                let source = shown(&path);
                let error = unusable(&source, &problem);
                self.told.push_back(FleetEvent::Failing { source, error });
            }
            Step::Mended { path } => self.told.push_back(FleetEvent::Recovered { source: shown(&path) }),
            Step::Synced => self.told.push_back(FleetEvent::Synced),
        }
    }
}

fn name(path: &Path, context: &str) -> Option<ClusterName> {
    ClusterName::new(format!("{}+{context}", path.display())).ok()
}

fn shown(path: &Path) -> Arc<str> {
    path.display().to_string().into()
}
