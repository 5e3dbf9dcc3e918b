//! WorkspaceTypes: finding them, what they extend, and which may be children of which.

use std::sync::Arc;

use carrick_kcp::condition::{self, Condition, READY};
use carrick_kcp::meta::ObjectMeta;
use carrick_kcp::names::conditions::VIRTUAL_WORKSPACE_URLS_READY;
use carrick_kcp::names::{BINDINGS_INITIALIZER, TYPE_ANNOTATION};
use carrick_kcp::tenancy::v1alpha1::{VirtualWorkspace, WorkspaceType, WorkspaceTypeSelector, WorkspaceTypeSpec};

use super::data::{Data, ROOT, now};

/// A type and where it is defined.
#[derive(Debug, Clone)]
pub struct FoundType {
    /// Logical cluster of the type.
    pub cluster: Arc<str>,
    /// Canonical path of that cluster.
    pub path: String,
    /// The WorkspaceType.
    pub object: WorkspaceType,
}

impl FoundType {
    fn new(data: &Data, cluster: &str, name: &str) -> Option<Self> {
        let object = data.read(cluster, name)?;
        Some(Self { cluster: cluster.into(), path: data.path_of(cluster), object })
    }

    /// `root:organization`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.path, self.object.metadata.name)
    }

    /// The initializer or terminator of this type: the cluster's name and the type's.
    pub fn hook(&self) -> String {
        format!("{}:{}", self.cluster, self.object.metadata.name)
    }
}

/// Finds a type by path, or without one in this workspace, its ancestors and the root.
pub fn find(data: &Data, here: &str, path: &str, name: &str) -> Option<FoundType> {
    if !path.is_empty() {
        return FoundType::new(data, &data.resolve(path)?, name);
    }
    let mut cluster = here.to_owned();
    loop {
        if let Some(found) = FoundType::new(data, &cluster, name) {
            return Some(found);
        }
        let parent = data.read_cluster(&cluster).and_then(|object| Some(object.spec.owner?.cluster));
        match parent {
            Some(parent) if !parent.is_empty() => cluster = parent,
            _ if cluster != ROOT => ROOT.clone_into(&mut cluster),
            _ => return None,
        }
    }
}

/// The type of an existing workspace, given the metadata of its LogicalCluster.
pub fn of_cluster(data: &Data, cluster: &ObjectMeta) -> Option<FoundType> {
    let (path, name) = cluster.annotation(TYPE_ANNOTATION)?.rsplit_once(':')?;
    find(data, ROOT, path, name)
}

/// A type and everything it extends, itself first.
pub fn closure(data: &Data, first: FoundType) -> Vec<FoundType> {
    let mut all = vec![first];
    let mut at = 0;
    while at < all.len() {
        let current = all[at].clone();
        for reference in &current.object.spec.extend.with {
            if let Some(found) = find(data, &current.cluster, &reference.path, &reference.name)
                && !all.iter().any(|known| known.hook() == found.hook())
            {
                all.push(found);
            }
        }
        at += 1;
    }
    all
}

/// The initializers of workspaces of these types.
pub fn initializers(types: &[FoundType]) -> Vec<String> {
    let mut all = hooks(types, |spec| spec.initializer);
    if types.iter().any(|kind| !kind.object.spec.default_api_bindings.is_empty()) {
        all.push(BINDINGS_INITIALIZER.to_owned());
    }
    all
}

/// The terminators of workspaces of these types.
pub fn terminators(types: &[FoundType]) -> Vec<String> {
    hooks(types, |spec| spec.terminator)
}

fn hooks(types: &[FoundType], has: fn(&WorkspaceTypeSpec) -> bool) -> Vec<String> {
    types.iter().filter(|kind| has(&kind.object.spec)).map(FoundType::hook).collect()
}

/// Why a workspace of type `child` may not be created below one of type `parent`, if it may not.
pub fn refuse_pair(parent: &[FoundType], child: &[FoundType]) -> Option<String> {
    child
        .iter()
        .find_map(|kind| refuse(kind, kind.object.spec.limit_allowed_parents.as_ref()?, "parent", parent))
        .or_else(|| {
            let limit =
                |kind: &FoundType| refuse(kind, kind.object.spec.limit_allowed_children.as_ref()?, "child", child);
            parent.iter().find_map(limit)
        })
}

fn refuse(kind: &FoundType, limit: &WorkspaceTypeSelector, role: &str, other: &[FoundType]) -> Option<String> {
    let implemented: Vec<String> = other.iter().map(FoundType::full_name).collect();
    let other_name = implemented.first().cloned().unwrap_or_default();
    if limit.none {
        let other = if role == "parent" { "parent" } else { "children" };
        return Some(format!("workspace type {} cannot have any {other}", kind.full_name()));
    }
    let allowed: Vec<String> = limit
        .types
        .iter()
        .map(|reference| {
            let path = if reference.path.is_empty() { &kind.path } else { &reference.path };
            format!("{path}:{}", reference.name)
        })
        .collect();
    if allowed.is_empty() || implemented.iter().any(|name| allowed.contains(name)) {
        return None;
    }
    Some(format!(
        "workspace type {} only allows [{}] {role} workspaces, but {role} type {other_name} only implements [{}]",
        kind.full_name(),
        allowed.join(" "),
        implemented.join(" ")
    ))
}

/// Keeps the status of one type up to date.
pub fn reconcile(data: &Data, cluster: &str, type_name: &str) {
    let url = |shard: usize, service: &str| {
        format!("{}/services/{service}/{cluster}:{type_name}", data.shards.virtual_url(shard))
    };
    data.edit_as(cluster, type_name, |object: &mut WorkspaceType| {
        let pair = |shard: usize| {
            [
                VirtualWorkspace::new("initializing", url(shard, "initializingworkspaces")),
                VirtualWorkspace::new("terminating", url(shard, "terminatingworkspaces")),
            ]
        };
        object.status.virtual_workspaces = (0..data.shards.count()).flat_map(pair).collect();
        for type_ in [READY, VIRTUAL_WORKSPACE_URLS_READY] {
            condition::set(&mut object.status.conditions, Condition::holds(type_), &now());
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kind(name: &str, spec: &Value) -> FoundType {
        let object = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        FoundType { cluster: ROOT.into(), path: ROOT.into(), object }
    }

    #[test]
    fn limits_are_checked_over_everything_a_type_extends() {
        let universal = || kind("universal", &json!({}));
        let organization = || {
            let limits = json!({"limitAllowedParents": {"types": [{"name": "root", "path": "root"}]},
                "limitAllowedChildren": {"types": [{"name": "universal", "path": "root"}]}});
            vec![kind("organization", &limits), universal()]
        };
        let root = vec![kind("root", &json!({"limitAllowedParents": {"none": true}})), universal()];
        let team = vec![kind("team", &json!({})), universal()];
        let cases = [
            (&root, organization(), None),
            (&organization(), team.clone(), None),
            (
                &vec![universal()],
                organization(),
                Some(
                    "workspace type root:organization only allows [root:root] parent workspaces, but parent type root:universal only implements [root:universal]",
                ),
            ),
            (
                &organization(),
                vec![kind("bare", &json!({}))],
                Some(
                    "workspace type root:organization only allows [root:universal] child workspaces, but child type root:bare only implements [root:bare]",
                ),
            ),
            (&team, root.clone(), Some("workspace type root:root cannot have any parent")),
        ];
        for (parent, child, message) in cases {
            assert_eq!(refuse_pair(parent, &child).as_deref(), message);
        }
    }
}
