//! The kinds that clusters serve through kcp: its own ones, and those of bindings, read once per schema.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::Value;

use super::data::{BINDINGS, BOUND_SCHEMAS, CRDS, Data, ROOT, SCHEMAS, SHARDS};
use super::derived::Derived;
use super::facts::SchemaFacts;
use super::kinds;
use super::names::{Names, Owner};
use crate::resource::Resource;
use crate::store::Key;

/// A list of kinds. Clusters with the same kinds share one.
type Kinds = Arc<Vec<Arc<Resource>>>;

/// Compiled kinds.
pub struct Apis {
    system: Kinds,
    /// The same for the root, which alone has shards.
    system_of_root: Kinds,
    schemas: Derived<SchemaFacts>,
    crds: Derived<Names>,
    /// What each cluster serves, and the revision of the bindings it was made from.
    served: Mutex<HashMap<Arc<str>, (u64, Kinds)>>,
    shared: Mutex<Shared>,
}

/// Lists in use, by the addresses of the kinds in them, which they keep alive.
#[derive(Default)]
struct Shared {
    lists: HashMap<Vec<usize>, Weak<Vec<Arc<Resource>>>>,
    /// With more of them than this, those that nobody uses any more are removed.
    limit: usize,
}

impl Apis {
    /// Reads the system kinds.
    pub fn new() -> Self {
        let system_of_root = kinds::system();
        let everywhere = |resource: &&Arc<Resource>| resource.stored_kind() != *SHARDS;
        let system = system_of_root.iter().filter(everywhere).cloned().collect();
        Self {
            system: Arc::new(system),
            system_of_root: Arc::new(system_of_root),
            schemas: Derived::default(),
            crds: Derived::default(),
            served: Mutex::default(),
            shared: Mutex::default(),
        }
    }

    /// An APIResourceSchema, if it exists.
    pub fn schema(&self, data: &Data, cluster: &str, name: &str) -> Option<Arc<SchemaFacts>> {
        self.schemas.at(&data.store, &Key::new(&SCHEMAS, cluster, "", name), SchemaFacts::of)
    }

    /// The copy of a schema that bindings serve from, by the uid of the schema.
    pub fn copy(&self, data: &Data, uid: &str) -> Option<Arc<SchemaFacts>> {
        self.schema(data, BOUND_SCHEMAS, uid)
    }

    /// The names that the CRDs of a cluster have taken.
    pub fn crd_names(&self, data: &Data, cluster: &str) -> Vec<Names> {
        let all = data.store.list(&CRDS, Some(cluster), None).1.into_iter();
        let read = |crd: &Value| Names::of(&crd["spec"], Owner::Crd);
        all.map(|(key, crd)| Names::clone(&self.crds.of(&data.store, &key, &crd, read))).collect()
    }

    /// Everything that kcp serves in a cluster: system kinds come first and take precedence over bound ones.
    pub fn of_cluster(&self, data: &Data, cluster: &str) -> Kinds {
        let system = if cluster == ROOT { &self.system_of_root } else { &self.system };
        let touched = data.store.touched(&BINDINGS, cluster);
        if touched == 0 {
            return system.clone();
        }
        if let Some((at, served)) = self.served.lock().get(cluster)
            && *at == touched
        {
            return served.clone();
        }
        let mut all = Vec::clone(system);
        let mut taken: HashSet<_> = all.iter().map(|kind| (kind.group.clone(), kind.plural.clone())).collect();
        for (_, binding) in data.bindings.in_cluster(&data.store, cluster) {
            for bound in &*binding.kinds {
                let name = (bound.kind.group.clone(), bound.kind.resource.clone());
                let copy = if taken.contains(&name) { None } else { self.copy(data, &bound.schema) };
                let Some(Ok(mut kind)) = copy.map(|copy| copy.kind(&bound.kind.identity)) else { continue };
                if binding.deleting {
                    Arc::make_mut(&mut kind).terminating = true;
                }
                taken.insert(name);
                all.push(kind);
            }
        }
        let all = self.shared.lock().list(all);
        self.served.lock().insert(cluster.into(), (touched, all.clone()));
        all
    }
}

impl Shared {
    /// The same kinds in a list that is in use already, if there is one.
    fn list(&mut self, all: Vec<Arc<Resource>>) -> Kinds {
        let addresses: Vec<usize> = all.iter().map(|kind| Arc::as_ptr(kind).addr()).collect();
        if let Some(known) = self.lists.get(&addresses).and_then(Weak::upgrade) {
            return known;
        }
        let all = Arc::new(all);
        self.lists.insert(addresses, Arc::downgrade(&all));
        if self.lists.len() > self.limit {
            self.lists.retain(|_, list| list.strong_count() > 0);
            self.limit = self.lists.len() * 2 + 16;
        }
        all
    }
}
