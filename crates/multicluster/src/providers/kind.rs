//! Clusters of kind.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use futures::stream::BoxStream;

use super::files::KubeconfigFiles;
use crate::event::FleetEvent;
use crate::provider::Provider;

/// How the contexts begin that kind writes.
const PREFIX: &str = "kind-";

/// The clusters of [kind](https://kind.sigs.k8s.io), Kubernetes in containers on the own machine, each by the name that `kind get clusters` shows.
///
/// `kind create cluster` adds the context `kind-<name>` to a kubeconfig and `kind delete cluster` removes it; the provider reads these contexts
/// every two seconds. Neither the `kind` program nor a container runtime is needed. A cluster whose kubeconfig was written elsewhere
/// (`kind create cluster --kubeconfig F`) is found with [`Kind::kubeconfigs`].
///
/// ```
/// # use carrick_multicluster::providers::Kind;
/// let all = Kind::new();
/// let of_this_test = Kind::new().name_prefix("e2e-");
/// ```
#[derive(Clone)]
pub struct Kind {
    files: KubeconfigFiles,
    name_prefix: String,
}

impl Kind {
    /// The clusters in the kubeconfigs that `kubectl` and `kind` use: those of `$KUBECONFIG`, or else `~/.kube/config`.
    pub fn new() -> Self {
        Self { files: KubeconfigFiles::infer(), name_prefix: String::new() }
    }

    /// The clusters in other kubeconfigs, files or folders as with [`KubeconfigFiles`].
    pub fn kubeconfigs(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { files: KubeconfigFiles::new(paths), name_prefix: String::new() }
    }

    /// Only clusters whose names begin like this.
    #[must_use]
    pub fn name_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.name_prefix = prefix.into();
        self
    }

    /// How often the kubeconfigs are read, every two seconds unless said otherwise.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.files = self.files.interval(interval);
        self
    }
}

impl Default for Kind {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind").field("files", &self.files).field("name_prefix", &self.name_prefix).finish()
    }
}

impl Provider for Kind {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let wanted = self.name_prefix.clone();
        let name = move |context: &str| {
            let name = context.strip_prefix(PREFIX)?;
            name.starts_with(&wanted).then(|| name.to_owned())
        };
        self.files.clone().names(move |_, context| name(context)).events()
    }
}
