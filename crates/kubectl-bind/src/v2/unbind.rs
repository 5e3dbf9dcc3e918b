//! Unbinding a ClusterBinding or a Binding: the konnector deletes copies, CRDs and objects in that order; this waits for it.

use std::fmt::Write as _;

use carrick_bind_api::core::names::{DELETION_POLICY_ANNOTATION, ORPHAN};
use carrick_bind_api::core::schema::{CrdOwner, owner, synced_version};
use carrick_bind_api::core::{BINDING, CLUSTER_BINDING, ClusterBinding, Connection};
use carrick_client::{Client, DeleteOptions, ListOptions, Resource};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::bind::shown;
use super::known::Known;
use super::{At, V2Error, condition, crds, resource, until};
use crate::options;

/// Whether there is a binding of v2 that a request means.
pub async fn is_there(client: &Client, request: &options::Unbind) -> Result<bool, V2Error> {
    let namespace = request.namespace.as_deref();
    let kind = resource(if namespace.is_some() { BINDING } else { CLUSTER_BINDING });
    Ok(At { kind: &kind, namespace, name: &request.name }.get(client).await?.is_some())
}

/// Unbinds; returns what to print.
pub async fn run(client: &Client, request: &options::Unbind) -> Result<String, V2Error> {
    let namespace = request.namespace.as_deref();
    let kind = resource(if namespace.is_some() { BINDING } else { CLUSTER_BINDING });
    let at = At { kind: &kind, namespace, name: &request.name };
    let found = at.get(client).await?.ok_or_else(|| V2Error::Missing(at.to_string()))?;
    let known = Known::read(client).await?;
    // A Binding reads like a ClusterBinding.
    let read = ClusterBinding::deserialize(&found);
    let binding = read.map_err(|error| V2Error::Unreadable { what: at.to_string(), problem: error.to_string() })?;
    let connection = binding.connection();
    let is_deleting = found["metadata"]["deletionTimestamp"].is_string();
    if let Some(by) = known.connection(connection).filter(|it| is_automatic(&found, it) && !is_deleting) {
        return Err(V2Error::Automatic { name: request.name.clone(), connection: by.metadata.name.clone() });
    }
    // Only a ClusterBinding takes CRDs along, and only if copies go.
    let going = if namespace.is_some() || request.keep_copies {
        Vec::new()
    } else {
        crds_that_go(client, &known, &found, connection).await?
    };
    let mut said = String::new();
    for (crd, count) in &going {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(said, "customresourcedefinition/{crd} goes, and {count} objects with it");
    }
    let shown = shown(at);
    if request.dry_run {
        let copies = if request.keep_copies { "stay" } else { "go" };
        let _ = writeln!(said, "the copies on the provider {copies}\n{shown} goes");
        return Ok(said);
    }
    let some: Vec<_> = going.iter().filter(|(_, count)| *count > 0).collect();
    if !some.is_empty() && !request.delete_objects && !is_deleting {
        let what = some.iter().map(|(crd, count)| format!("{count} {crd}")).collect::<Vec<_>>().join(", ");
        return Err(V2Error::HasObjects(what));
    }
    end(client, at, &found, request.keep_copies).await?;
    let uid = found["metadata"]["uid"].clone();
    until(client, at, request.timeout, |it| is_gone(it, &uid)).await?;
    let _ = writeln!(said, "{shown} is gone");
    Ok(said)
}

/// Deletes a binding; with `keep` its copies stay on the provider.
pub(super) async fn end(client: &Client, at: At<'_>, found: &Value, keep: bool) -> Result<(), V2Error> {
    let failed = |source| V2Error::Server { what: at.to_string(), source };
    let uid = found["metadata"]["uid"].as_str().unwrap_or_default();
    if keep {
        let patch = json!({"metadata": {"uid": uid, "annotations": {DELETION_POLICY_ANNOTATION: ORPHAN}}});
        client.merge_patch(at.kind, at.namespace, at.name, &patch).await.map_err(failed)?;
    }
    let options = DeleteOptions { uid: Some(uid.to_owned()), ..DeleteOptions::default() };
    match client.delete(at.kind, at.namespace, at.name, &options).await {
        Err(error) if !error.is_not_found() => Err(failed(error)),
        _ => Ok(()),
    }
}

/// Whether an object is gone, or another one has its name; else what it says.
pub(super) fn is_gone(found: Option<&Value>, uid: &Value) -> Result<(), String> {
    let Some(found) = found.filter(|it| it["metadata"]["uid"] == *uid) else { return Ok(()) };
    let says = condition(found, "Ready").filter(|it| it["status"] != "True");
    let says = says.and_then(|it| it["message"].as_str());
    Err(says.unwrap_or("no konnector has said anything; is one running?").to_owned())
}

/// Whether a ClusterBinding was made for a Connection that binds everything.
fn is_automatic(binding: &Value, connection: &Connection) -> bool {
    let mut owners = binding["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    connection.spec.auto_bind && owners.any(|owner| owner["uid"] == connection.metadata.uid.as_str())
}

/// The CRDs that go with a ClusterBinding, and how many objects each has.
async fn crds_that_go(
    client: &Client,
    known: &Known,
    binding: &Value,
    connection: &str,
) -> Result<Vec<(String, usize)>, V2Error> {
    let mut all = Vec::new();
    let name = binding["metadata"]["name"].as_str().unwrap_or_default();
    for api in binding["spec"]["apis"].as_array().into_iter().flatten().filter_map(|api| api["name"].as_str()) {
        if !known.others_that_list(api, name).is_empty() {
            continue;
        }
        let Some(crd) = (At { kind: &crds(), namespace: None, name: api }).get(client).await? else { continue };
        if !matches!(owner(&crd), CrdOwner::Connection { name, .. } if name == connection) {
            continue;
        }
        all.push((api.to_owned(), objects(client, &crd).await?.len()));
    }
    Ok(all)
}

/// The kind that a CRD serves.
pub(super) fn kind_of(crd: &Value) -> Option<Resource> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &crd["spec"];
    let make = if spec["scope"] == "Namespaced" { Resource::namespaced } else { Resource::cluster_wide };
    let version = text(&synced_version(crd)?["name"]);
    Some(make(&text(&spec["group"]), &version, &text(&spec["names"]["kind"]), &text(&spec["names"]["plural"])))
}

/// All objects of a CRD.
pub(super) async fn objects(client: &Client, crd: &Value) -> Result<Vec<Value>, V2Error> {
    let Some(kind) = kind_of(crd) else { return Ok(Vec::new()) };
    match client.list(&kind, None, &ListOptions::default()).await {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        found => found.map_err(|source| V2Error::Server { what: format!("{}.{}", kind.plural, kind.group), source }),
    }
}
