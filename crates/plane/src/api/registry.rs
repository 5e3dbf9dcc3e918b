//! Which kinds a cluster has; CRDs are compiled once per change, and clusters with the same kinds share one catalog.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::config::Mode;
use crate::resource::{Catalog, Resource, builtin};
use crate::store::{Kind, Store};

/// A list of kinds; whoever has the same pointer has the same kinds.
type Kinds = Arc<Vec<Arc<Resource>>>;

#[derive(Default)]
struct Cached {
    touched: u64,
    /// Revision of the CRD and what it compiles to, by CRD name.
    compiled: HashMap<Arc<str>, (u64, Option<Arc<Resource>>)>,
    all: Kinds,
}

/// A catalog and the lists it was made from, which it keeps alive so that their addresses stay theirs.
struct Made {
    extended: Kinds,
    custom: Kinds,
    catalog: Catalog,
}

/// Catalogs by the addresses of the lists they were made from.
#[derive(Default)]
struct Catalogs {
    made: HashMap<(usize, usize), Made>,
    /// With more of them than this, those whose lists nobody else uses are removed.
    limit: usize,
}

pub(super) struct Registry {
    builtins: Vec<Arc<Resource>>,
    crds: Kind,
    none: Kinds,
    cache: Mutex<HashMap<Arc<str>, Cached>>,
    catalogs: Mutex<Catalogs>,
}

impl Registry {
    pub(super) fn new(mode: Mode) -> Self {
        let crds = Kind::new("apiextensions.k8s.io", "customresourcedefinitions");
        Self {
            builtins: builtin::builtins(mode),
            crds,
            none: Kinds::default(),
            cache: Mutex::default(),
            catalogs: Mutex::default(),
        }
    }

    /// All kinds of a cluster: built-ins, then those of the extension, then CRDs whose names are not taken.
    pub(super) fn catalog(&self, store: &Store, cluster: &str, extended: Option<Kinds>) -> Catalog {
        let extended = extended.unwrap_or_else(|| self.none.clone());
        let custom = self.custom(store, cluster);
        let lists = (Arc::as_ptr(&extended).addr(), Arc::as_ptr(&custom).addr());
        let mut catalogs = self.catalogs.lock();
        if let Some(made) = catalogs.made.get(&lists) {
            return made.catalog.clone();
        }
        let first: Vec<Arc<Resource>> = self.builtins.iter().chain(extended.iter()).cloned().collect();
        let taken = Catalog::from(first.clone());
        let free = custom.iter().filter(|custom| taken.named(&custom.group, &custom.plural).is_none()).cloned();
        let catalog: Catalog = first.into_iter().chain(free).collect();
        if catalogs.made.len() >= catalogs.limit {
            let used = |made: &Made| Arc::strong_count(&made.extended) > 1 && Arc::strong_count(&made.custom) > 1;
            catalogs.made.retain(|_, made| used(made));
            catalogs.limit = catalogs.made.len() * 2 + 16;
        }
        catalogs.made.insert(lists, Made { extended, custom, catalog: catalog.clone() });
        catalog
    }

    /// The kinds defined by the CRDs of a cluster.
    fn custom(&self, store: &Store, cluster: &str) -> Kinds {
        let touched = store.touched(&self.crds, cluster);
        if touched == 0 {
            return self.none.clone();
        }
        let mut cache = self.cache.lock();
        let cached = cache.entry(cluster.into()).or_default();
        if cached.touched == touched {
            return cached.all.clone();
        }
        let (_, crds) = store.list(&self.crds, Some(cluster), None);
        let mut compiled = HashMap::new();
        let mut all = Vec::new();
        for (key, crd) in crds {
            let resource = match cached.compiled.get(&key.name) {
                Some((seen, resource)) if *seen == crd.serial() => resource.clone(),
                // CRDs are checked when they are written; one that does not compile is simply not served.
                _ => Resource::from_crd(&crd.value()).ok().map(Arc::new),
            };
            all.extend(resource.clone());
            compiled.insert(key.name, (crd.serial(), resource));
        }
        *cached = Cached { touched, compiled, all: Arc::new(all) };
        cached.all.clone()
    }
}
