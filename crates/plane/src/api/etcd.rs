//! Where the real servers would store an object, which some of their errors tell.

use crate::config::Mode;
use crate::resource::{Origin, Resource};
use crate::status::Status;
use crate::store::Key;

/// The refusal of an object whose UID is not the one that a client has seen last, or, without an object, at all.
pub(super) fn other_uid(mode: Mode, resource: &Resource, key: &Key, wanted: &str, found: &str) -> Status {
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
         precondition: {wanted}, UID in object meta: {found}",
        place(mode, resource, key)
    );
    Status::conflict(&resource.group, &resource.plural, &key.name, &why)
}

fn place(mode: Mode, resource: &Resource, key: &Key) -> String {
    let (group, plural) = (&*resource.group, &*resource.plural);
    let mut parts = vec!["/registry"];
    match (mode, resource.origin) {
        (Mode::Kcp, Origin::Builtin) => parts.extend([if group.is_empty() { "core" } else { group }, plural]),
        (Mode::Kcp, _) if key.kind.identity.is_empty() => parts.extend([group, plural, "customresources"]),
        (Mode::Kcp, _) => parts.extend([group, plural, &key.kind.identity]),
        (Mode::Kube, Origin::Builtin) => match plural {
            "nodes" => parts.push("minions"),
            "services" => parts.push("services/specs"),
            "endpoints" => parts.push("services/endpoints"),
            "ingresses" => parts.push("ingress"),
            "customresourcedefinitions" => parts.extend([group, plural]),
            plural => parts.push(plural),
        },
        (Mode::Kube, _) => parts.extend([group, plural]),
    }
    if mode == Mode::Kcp {
        parts.push(&key.cluster);
    }
    parts.extend([&*key.namespace, &*key.name].into_iter().filter(|part| !part.is_empty()));
    parts.join("/")
}
