//! Kinds of the rules, as the client wants them.

use carrick_client::Resource;
use carrick_syncagent::rules::ApiKind;

/// The resource of a kind.
pub fn resource(kind: &ApiKind) -> Resource {
    let ApiKind { group, version, kind: name, plural, namespaced } = kind;
    if *namespaced {
        Resource::namespaced(group, version, name, plural)
    } else {
        Resource::cluster_wide(group, version, name, plural)
    }
}
