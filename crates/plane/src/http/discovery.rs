//! Discovery documents: which APIs are served.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::Digest;

use super::root::ApiRoot;
use crate::api::Api;
use crate::config::Mode;
use crate::resource::{Resource, Version, api_version, version_rank};
use crate::status::Status;

/// `/api`.
pub(super) fn versions(api: &Api) -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": api.url.trim_start_matches("https://")}],
    })
}

fn listed(resources: &[Arc<Resource>]) -> impl Iterator<Item = &Arc<Resource>> {
    resources.iter().filter(|resource| resource.established)
}

/// Groups (without core) and their served versions in order of preference.
fn group_versions(resources: &[Arc<Resource>]) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for resource in listed(resources).filter(|resource| !resource.group.is_empty()) {
        let versions = groups.entry(resource.group.to_string()).or_default();
        for version in resource.versions.iter().filter(|version| version.served) {
            if !versions.iter().any(|known| *known == *version.name) {
                versions.push(version.name.to_string());
            }
        }
    }
    for versions in groups.values_mut() {
        versions.sort_by_key(|version| version_rank(version));
    }
    groups.retain(|_, versions| !versions.is_empty());
    groups
}

fn api_group(name: &str, versions: &[String]) -> Value {
    let entry = |version: &String| json!({"groupVersion": api_version(name, version), "version": version});
    let all: Vec<Value> = versions.iter().map(entry).collect();
    json!({"name": name, "preferredVersion": all.first(), "versions": all})
}

/// `/apis`.
pub(super) fn groups(api: &Api, root: &ApiRoot) -> Value {
    let groups = group_versions(&root.resources(api));
    let all: Vec<Value> = groups.iter().map(|(name, versions)| api_group(name, versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": all})
}

/// `/apis/<group>`.
pub(super) fn group(api: &Api, root: &ApiRoot, name: &str) -> Result<Value, Status> {
    let groups = group_versions(&root.resources(api));
    let versions = groups.get(name).ok_or_else(Status::page_not_found)?;
    let mut value = api_group(name, versions);
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Ok(value)
}

/// `/api/v1` and `/apis/<group>/<version>`.
pub(super) fn resources(api: &Api, root: &ApiRoot, group: &str, version: &str) -> Result<Value, Status> {
    let mut all = Vec::new();
    for resource in listed(&root.resources(api)).filter(|resource| *resource.group == *group) {
        if let Some(found) = resource.version(version).filter(|found| found.served) {
            entries(resource, found, root.is_virtual(), &mut all);
        }
    }
    let core = group.is_empty() && version == "v1" && !root.is_virtual();
    // kcp returns an empty list for unknown versions, except in virtual workspaces.
    let tolerant = api.mode == Mode::Kcp && !root.is_virtual();
    if all.is_empty() && !core && !tolerant {
        return Err(Status::page_not_found());
    }
    let plural = |entry: &Value| entry["name"].as_str().and_then(|name| name.split('/').next()).map(str::to_owned);
    all.sort_by_key(plural);
    let mut list = json!({"kind": "APIResourceList", "groupVersion": api_version(group, version), "resources": all});
    // Virtual workspaces show the first version of the core group as the first servers did.
    if !root.is_virtual() || !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Ok(list)
}

const VIEW_VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The verbs of custom kinds in the order of Kubernetes.
const CUSTOM_VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

fn entries(resource: &Resource, version: &Version, is_virtual: bool, all: &mut Vec<Value>) {
    let mut entry = json!({
        "name": &*resource.plural, "singularName": &*resource.singular, "namespaced": resource.namespaced,
        "kind": &*resource.kind, "verbs": resource.verbs,
    });
    // A virtual workspace does not know what the server behind it refuses.
    let is_writable = resource.verbs.contains(&"create");
    if is_virtual && is_writable {
        entry["verbs"] = json!(VIEW_VERBS);
    }
    if resource.is_custom() && !is_virtual {
        // In Kubernetes' order, so that documents can be compared.
        let rank = |verb: &&str| CUSTOM_VERBS.iter().position(|known| known == verb);
        let mut verbs = resource.verbs.clone();
        if resource.terminating {
            verbs.retain(|verb| !matches!(*verb, "create" | "patch" | "update"));
        }
        verbs.sort_by_key(rank);
        entry["verbs"] = json!(verbs);
    }
    if let Some(storage) = resource.storage_version().filter(|_| is_virtual || !resource.is_review()) {
        let about = format!("{}/{}/{}", resource.stored_group, storage.name, resource.kind);
        let hash = sha2::Sha256::digest(about.as_bytes());
        entry["storageVersionHash"] = data_encoding::BASE64.encode(&hash[..8]).into();
    }
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    all.push(entry);
    let sub = |name: &str, kind: &str, verbs: &[&str]| {
        json!({
            "name": format!("{}/{name}", resource.plural), "singularName": "", "namespaced": resource.namespaced,
            "kind": kind, "verbs": verbs,
        })
    };
    if resource.group.is_empty() && &*resource.plural == "namespaces" && !is_virtual {
        all.push(sub("finalize", "Namespace", &["update"]));
    }
    if is_virtual {
        // One for each version, whichever is asked for.
        for _ in resource.versions.iter().filter(|version| version.status) {
            let mut entry = sub("status", &resource.kind, &["get", "patch", "update"]);
            if !is_writable {
                entry["verbs"] = Value::Null;
            }
            all.push(entry);
        }
    } else if version.status {
        all.push(sub("status", &resource.kind, &["get", "patch", "update"]));
    }
    if version.scale.is_some() && !is_virtual {
        let mut entry = sub("scale", "Scale", &["get", "patch", "update"]);
        entry["group"] = "autoscaling".into();
        entry["version"] = "v1".into();
        all.push(entry);
    }
    if resource.group.is_empty() && &*resource.plural == "pods" && !is_virtual {
        all.push(sub("binding", "Binding", &["create"]));
        let mut entry = sub("eviction", "Eviction", &["create"]);
        entry["group"] = "policy".into();
        entry["version"] = "v1".into();
        all.push(entry);
    }
    if resource.group.is_empty() && &*resource.plural == "serviceaccounts" && !is_virtual {
        let mut entry = sub("token", "TokenRequest", &["create"]);
        entry["group"] = "authentication.k8s.io".into();
        entry["version"] = "v1".into();
        all.push(entry);
    }
}

/// `/api` or `/apis` with everything below it in one document.
pub(super) fn aggregated(api: &Api, root: &ApiRoot, core: bool) -> Value {
    let resources = root.resources(api);
    let mut groups = group_versions(&resources);
    if core {
        groups = BTreeMap::from([(String::new(), vec!["v1".to_owned()])]);
    }
    let items: Vec<Value> = groups
        .iter()
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let kinds = listed(&resources).filter(|resource| *resource.group == **group);
                    let kinds = kinds.filter_map(|resource| {
                        let found = resource.version(version).filter(|found| found.served)?;
                        Some(aggregated_resource(resource, found))
                    });
                    json!({"version": version, "freshness": "Current", "resources": kinds.collect::<Vec<_>>()})
                })
                .collect();
            let metadata = if core {
                json!({"creationTimestamp": null})
            } else {
                json!({"name": group, "creationTimestamp": null})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(resource: &Resource, version: &Version) -> Value {
    let mut all = Vec::new();
    entries(resource, version, false, &mut all);
    let mut entries = all.into_iter();
    let Some(main) = entries.next() else { return Value::Null };
    let kind = |entry: &Value| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        json!({"group": text("group"), "version": text("version"), "kind": entry["kind"]})
    };
    let mut shown = json!({
        "resource": main["name"], "responseKind": kind(&main), "verbs": main["verbs"],
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" }, "singularResource": main["singularName"],
    });
    for key in ["shortNames", "categories"] {
        if !main[key].is_null() {
            shown[key] = main[key].clone();
        }
    }
    let subresources: Vec<Value> = entries
        .map(|entry| {
            let name = entry["name"].as_str().and_then(|name| name.split_once('/')).map_or("", |(_, name)| name);
            json!({"subresource": name, "responseKind": kind(&entry), "verbs": entry["verbs"]})
        })
        .collect();
    if !subresources.is_empty() {
        shown["subresources"] = subresources.into();
    }
    shown
}

/// Every group version served, as `api/v1` and `apis/<group>/<version>`.
pub(super) fn group_version_paths(resources: &[Arc<Resource>]) -> Vec<String> {
    let mut paths = vec!["api/v1".to_owned()];
    for (group, versions) in group_versions(resources) {
        paths.extend(versions.iter().map(|version| format!("apis/{group}/{version}")));
    }
    paths
}

/// The paths shown at the root.
pub(super) fn paths(api: &Api, root: &ApiRoot) -> Vec<String> {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    paths.extend(group_version_paths(&root.resources(api)).into_iter().map(|path| format!("/{path}")));
    paths.extend(["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"].map(str::to_owned));
    paths
}
