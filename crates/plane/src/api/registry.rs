//! Which kinds a cluster has; CRDs are compiled once per change.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::plane::Mode;
use crate::resource::{Resource, builtin};
use crate::store::{Kind, Store};

#[derive(Default)]
struct Cached {
    touched: u64,
    /// Revision of the CRD and what it compiles to, by CRD name.
    compiled: HashMap<Arc<str>, (u64, Option<Arc<Resource>>)>,
    all: Arc<Vec<Arc<Resource>>>,
}

pub(super) struct Registry {
    builtins: Vec<Arc<Resource>>,
    crds: Kind,
    cache: Mutex<HashMap<Arc<str>, Cached>>,
}

impl Registry {
    pub(super) fn new(mode: Mode) -> Self {
        let crds = Kind::new("apiextensions.k8s.io", "customresourcedefinitions");
        Self { builtins: builtin::builtins(mode), crds, cache: Mutex::default() }
    }

    pub(super) fn builtins(&self) -> &[Arc<Resource>] {
        &self.builtins
    }

    /// The kinds defined by the CRDs of a cluster.
    pub(super) fn custom(&self, store: &Store, cluster: &str) -> Arc<Vec<Arc<Resource>>> {
        let touched = store.touched(&self.crds, cluster);
        if touched == 0 {
            return Arc::default();
        }
        let mut cache = self.cache.lock();
        let cached = cache.entry(cluster.into()).or_default();
        if cached.touched == touched {
            return cached.all.clone();
        }
        let (revision, crds) = store.list(&self.crds, Some(cluster), None);
        let mut compiled = HashMap::new();
        let mut all = Vec::new();
        for (key, crd) in crds {
            let resource = match cached.compiled.get(&key.name) {
                Some((seen, resource)) if *seen == crd.revision() => resource.clone(),
                // CRDs are checked when they are written; one that does not compile is simply not served.
                _ => Resource::from_crd(&crd.value()).ok().map(Arc::new),
            };
            all.extend(resource.clone());
            compiled.insert(key.name, (crd.revision(), resource));
        }
        *cached = Cached { touched: touched.min(revision), compiled, all: Arc::new(all) };
        cached.all.clone()
    }
}
