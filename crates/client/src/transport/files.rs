//! The files behind a connection: credentials are renewed by replacing them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::connect::{Loaded, Source};

/// The files a connection was made from, and what they were like.
pub(super) struct Files {
    url: http::Uri,
    state: Mutex<FilesState>,
}

struct FilesState {
    source: Source,
    /// Whether credentials come from a plugin.
    plugin: bool,
    looked: Instant,
    paths: Vec<PathBuf>,
    seen: Vec<u64>,
}

impl Files {
    pub(super) fn new(source: Source, loaded: &Loaded) -> Self {
        Self { url: loaded.config.cluster_url.clone(), state: Mutex::new(FilesState::new(source, loaded)) }
    }

    /// Uses another source from now on.
    pub(super) fn replace(&self, source: Source, loaded: &Loaded) {
        *self.state() = FilesState::new(source, loaded);
    }

    /// Whether to read the files now, because nobody did for that long.
    pub(super) fn are_due(&self, interval: Duration) -> bool {
        let mut state = self.state();
        let due = !state.paths.is_empty() && state.looked.elapsed() >= interval;
        if due {
            state.looked = Instant::now();
        }
        due
    }

    /// Reads everything again if credentials come from a plugin. Blocks.
    pub(super) fn again_by_plugin(&self) -> Option<Loaded> {
        // What is wrong with the files is reported when they change.
        let source = Some(self.state()).filter(|state| state.plugin).map(|state| state.source.clone());
        source.and_then(|source| source.load().ok())
    }

    /// Reads everything again if a file has changed. Blocks.
    pub(super) fn changed(&self) -> Option<Loaded> {
        let (source, paths, seen) = {
            let state = self.state();
            (state.source.clone(), state.paths.clone(), state.seen.clone())
        };
        let now = fingerprints(&paths);
        if now == seen {
            return None;
        }
        let loaded = source.load();
        let mut state = self.state();
        state.seen = now;
        match loaded {
            Ok(loaded) => {
                tracing::info!(
                    origin = loaded.origin,
                    "the kubeconfig or its credentials have changed, using the new ones"
                );
                let (old, new) = (&self.url, &loaded.config.cluster_url);
                if old.path() != new.path() {
                    tracing::warn!(%old, %new, "the path of the server has changed, which needs a restart");
                }
                if loaded.files != state.paths {
                    state.seen = fingerprints(&loaded.files);
                    state.paths.clone_from(&loaded.files);
                }
                Some(loaded)
            }
            // Files are not always replaced all at once: the next change brings the rest.
            Err(error) => {
                tracing::warn!(%error, "changed credentials cannot be used, keeping the old ones");
                None
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, FilesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FilesState {
    fn new(source: Source, loaded: &Loaded) -> Self {
        let paths = loaded.files.clone();
        let seen = fingerprints(&paths);
        let plugin = loaded.config.auth_info.exec.is_some();
        Self { source, plugin, looked: Instant::now(), paths, seen }
    }
}

fn fingerprints(paths: &[PathBuf]) -> Vec<u64> {
    paths.iter().map(|path| fingerprint(path)).collect()
}

/// Modification times of files in a pod's volumes are not reliable, so the content decides.
fn fingerprint(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::fs::read(path).ok().hash(&mut hasher);
    hasher.finish()
}
