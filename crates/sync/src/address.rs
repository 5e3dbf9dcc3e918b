//! Where an object is: the one address of objects on both sides, from what was observed to what is written.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::key::SourceKey;
use crate::kind::ApiKind;

/// Which part a cluster plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Consumers create their objects there.
    Consumer,
    /// A provider serves them there.
    Provider,
}

/// One of the two clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Side {
    /// Its part.
    pub role: Role,
    /// One word for it, in messages.
    pub name: &'static str,
}

impl Side {
    /// The consumers' side.
    pub const fn consumer(name: &'static str) -> Self {
        Self { role: Role::Consumer, name }
    }

    /// The provider's side.
    pub const fn provider(name: &'static str) -> Self {
        Self { role: Role::Provider, name }
    }

    /// Whether it is the consumers' side.
    pub fn is_consumer(self) -> bool {
        self.role == Role::Consumer
    }
}

/// The address of an object that exists or will be created.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectAddress {
    /// Which cluster.
    pub side: Side,
    /// Which kind.
    pub kind: Arc<ApiKind>,
    /// Namespace, if the kind is namespaced.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl ObjectAddress {
    /// The address of a source of a kind.
    pub fn of_source(side: Side, kind: &ApiKind, key: &SourceKey) -> Self {
        Self {
            side,
            kind: Arc::new(kind.clone()),
            namespace: kind.namespaced.then(|| key.namespace.to_string()),
            name: key.name.to_string(),
        }
    }

    /// The address of an object of a kind.
    pub fn of_object(side: Side, kind: &ApiKind, object: &Value) -> Self {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        Self {
            side,
            kind: Arc::new(kind.clone()),
            namespace: kind.namespaced.then(|| text("namespace")),
            name: text("name"),
        }
    }

    /// Whether both refer to the same object, in whichever API version.
    pub fn is_same_object(&self, other: &Self) -> bool {
        self.side == other.side
            && self.kind.group == other.kind.group
            && self.kind.plural == other.kind.plural
            && self.namespace == other.namespace
            && self.name == other.name
    }
}

impl fmt::Display for ObjectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.side.name, self.kind.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}
