//! What is needed to know of an APIResourceSchema. Schemas are the largest objects there are, so each is read once.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::names::{Names, Owner};
use super::object::{items, text};
use crate::resource::Resource;

/// An APIResourceSchema, as far as bindings and requests are concerned.
#[derive(Debug)]
pub struct SchemaFacts {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// API group.
    pub group: String,
    /// Plural name of the kind.
    pub plural: String,
    /// The names that the kind takes.
    pub names: Names,
    /// The versions that objects are stored in; one, unless the schema is wrong.
    pub storage: Vec<String>,
    /// The kind without an identity, or why it cannot be served.
    kind: Result<Resource, String>,
    /// The kind with each identity that was asked for.
    bound: Mutex<Vec<Arc<Resource>>>,
}

impl SchemaFacts {
    /// Reads a schema.
    pub fn of(schema: &Value) -> Self {
        let storage = items(schema, "/spec/versions").iter().filter(|version| version["storage"] == true);
        Self {
            name: super::object::name(schema).to_owned(),
            uid: super::object::uid(schema).to_owned(),
            group: text(schema, "/spec/group").to_owned(),
            plural: text(schema, "/spec/names/plural").to_owned(),
            names: Names::of(&schema["spec"], Owner::Crd),
            storage: storage.map(|version| text(version, "/name").to_owned()).collect(),
            kind: Resource::from_schema(schema, "").map_err(|error| error.to_string()),
            bound: Mutex::default(),
        }
    }

    /// The kind that this schema defines, bound with an identity, or why it cannot be served.
    pub fn kind(&self, identity: &str) -> Result<Arc<Resource>, String> {
        let kind = self.kind.as_ref().map_err(Clone::clone)?;
        let mut bound = self.bound.lock();
        if let Some(known) = bound.iter().find(|known| *known.identity == *identity) {
            return Ok(known.clone());
        }
        let new = Arc::new(Resource { identity: identity.into(), ..kind.clone() });
        bound.push(new.clone());
        Ok(new)
    }
}
