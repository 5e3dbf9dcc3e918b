//! The kinds that clusters serve through kcp: its own ones, and those of bindings, compiled once per schema.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::data::{BINDINGS, BOUND_SCHEMAS, Data, ROOT, SCHEMAS, SHARDS};
use super::kinds;
use super::object::{deleting, items, text};
use crate::resource::Resource;

/// A list of kinds and the revision of the bindings it was made from.
type Served = (u64, Vec<Arc<Resource>>);

/// A kind, or why its schema cannot be served.
type Outcome = Result<Arc<Resource>, String>;
/// Outcomes by the uid of the schema and the identity.
type Compiled = HashMap<(String, String), Outcome>;

/// Compiled kinds.
pub struct Apis {
    system: Vec<Arc<Resource>>,
    /// The same for the root, which alone has shards.
    system_of_root: Vec<Arc<Resource>>,
    /// Schemas never change, so entries stay valid.
    compiled: Mutex<Compiled>,
    served: Mutex<HashMap<Arc<str>, Served>>,
}

impl Apis {
    /// Reads the system kinds.
    pub fn new() -> Self {
        let system_of_root = kinds::system();
        let everywhere = |resource: &&Arc<Resource>| resource.stored_kind() != *SHARDS;
        let system = system_of_root.iter().filter(everywhere).cloned().collect();
        Self { system, system_of_root, compiled: Mutex::default(), served: Mutex::default() }
    }

    /// A schema as a kind, or what is wrong with it.
    pub fn compile(&self, schema: &Value, identity: &str) -> Outcome {
        let key = (super::object::uid(schema).to_owned(), identity.to_owned());
        if let Some(known) = self.compiled.lock().get(&key) {
            return known.clone();
        }
        let compiled = Resource::from_schema(schema, identity).map(Arc::new).map_err(|error| error.to_string());
        self.compiled.lock().insert(key, compiled.clone());
        compiled
    }

    /// Everything that kcp serves in a cluster: system kinds come first and take precedence over bound ones.
    pub fn of_cluster(&self, data: &Data, cluster: &str) -> Vec<Arc<Resource>> {
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
        let mut all = system.clone();
        for (_, binding) in data.list(&BINDINGS, Some(cluster)) {
            for bound in items(&binding, "/status/boundResources") {
                let taken = |r: &Arc<Resource>| bound["group"] == *r.group && bound["resource"] == *r.plural;
                let copy = data.get(&SCHEMAS, BOUND_SCHEMAS, text(bound, "/schema/UID"));
                let Some(copy) = copy.filter(|_| !all.iter().any(taken)) else { continue };
                let Ok(mut resource) = self.compile(&copy, text(bound, "/schema/identityHash")) else { continue };
                if deleting(&binding) {
                    Arc::make_mut(&mut resource).terminating = true;
                }
                all.push(resource);
            }
        }
        self.served.lock().insert(cluster.into(), (touched, all.clone()));
        all
    }
}
