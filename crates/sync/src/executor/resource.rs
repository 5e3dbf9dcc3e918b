//! Kinds as the client addresses them.

use carrick_client::Resource;

use crate::ApiKind;

/// A kind as the client addresses it.
pub fn resource(kind: &ApiKind) -> Resource {
    Resource {
        group: kind.group.as_str().into(),
        version: kind.version.as_str().into(),
        kind: kind.kind.as_str().into(),
        plural: kind.plural.as_str().into(),
        namespaced: kind.namespaced,
    }
}
