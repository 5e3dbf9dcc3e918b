//! Where an object is: the one address of objects on both sides, from what was observed to what is written.

use std::fmt;
use std::sync::Arc;

use crate::rules::ApiKind;
use crate::rules::metadata::SourceKey;

/// One of the two clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The consumer's workspace.
    Kcp,
    /// The service cluster.
    Service,
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
    pub fn of_source(kind: &ApiKind, key: &SourceKey) -> Self {
        Self {
            side: Side::Kcp,
            kind: Arc::new(kind.clone()),
            namespace: kind.namespaced.then(|| key.namespace.to_string()),
            name: key.name.to_string(),
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
        let side = match self.side {
            Side::Kcp => "kcp",
            Side::Service => "service",
        };
        write!(f, "{side} {} ", self.kind.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}
