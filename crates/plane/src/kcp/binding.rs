//! APIBindings: the new state of a binding, given its export, the schemas and everything else in the workspace.
//!
//! `read` collects the facts, `decide` is a pure function from facts to the new binding, `reconcile` joins the two.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_kcp::hash::export_hash;
use serde_json::{Value, json};

use super::apis::Apis;
use super::claim::{self, EXPORT_LABEL};
use super::condition::{self, Condition, Severity};
use super::data::{BINDINGS, BOUND_SCHEMAS, CRDS, Data, EXPORTS, SCHEMAS, now};
use super::names::{Names, Owner, conflicts};
use super::object::{
    annotate, child, deleting, finalizers, items, name, remove_finalizer, set_label, strings, text, uid,
};
use crate::store::{Key, Kind};

/// Holds a binding until all instances of its APIs are gone.
pub const FINALIZER: &str = "apis.kcp.io/apibinding-finalizer";
const EXTRA_ANNOTATIONS: &str = "extra.apis.kcp.io/";
const VALID: &str = "APIExportValid";
const UP_TO_DATE: &str = "BindingUpToDate";
const COMPLETED: &str = "InitialBindingCompleted";
const DELETED: &str = "BindingResourceDeleteSuccess";

/// Everything outside a binding that matters to it.
#[derive(Debug)]
pub struct Facts {
    /// Canonical path of the binding's own workspace.
    pub path: String,
    /// Logical cluster of the export, if the reference can be resolved.
    pub home: Option<String>,
    /// How messages name the export.
    pub reference: String,
    /// The export, and what binding it would mean.
    pub offer: Offer,
}

/// What an export has to offer.
#[derive(Debug)]
pub enum Offer {
    /// The export does not exist.
    Missing,
    /// The export has no identity yet.
    NoIdentity(Arc<Value>),
    /// The export names a schema that does not exist.
    NoSchema(Arc<Value>, String),
    /// A schema cannot be served.
    BadSchema(Arc<Value>, String),
    /// The APIs clash with others in the workspace.
    Conflict(Arc<Value>, String),
    /// The APIs can be bound.
    Apis(Arc<Value>, Vec<Arc<Value>>),
}

/// Brings one binding up to date.
pub fn reconcile(data: &Data, apis: &Apis, cluster: &str, binding: &str) {
    let key = Key::new(&BINDINGS, cluster, "", binding);
    let Some(found) = data.get(&BINDINGS, cluster, binding) else { return };
    if deleting(&found) {
        finalize(data, &key, &found);
        return;
    }
    let facts = read(data, apis, cluster, &found);
    if let Offer::Apis(_, schemas) = &facts.offer {
        // A binding keeps serving after its schema is deleted, so it serves from a copy.
        for schema in schemas {
            let copy = Key::new(&SCHEMAS, BOUND_SCHEMAS, "", uid(schema));
            if !data.store.has(&copy) {
                let object = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema",
                    "metadata": {"annotations": {"kcp.io/schema": name(schema)}}, "spec": schema["spec"]});
                data.create(&copy, object);
            }
        }
    }
    data.edit(&key, |binding| decide(binding, &facts, &now()));
}

fn read(data: &Data, apis: &Apis, cluster: &str, binding: &Value) -> Facts {
    let path = text(binding, "/spec/reference/export/path");
    let export_name = text(binding, "/spec/reference/export/name");
    let home = if path.is_empty() { Some(cluster.into()) } else { data.resolve(path) };
    let export = home.as_deref().and_then(|home| data.get(&EXPORTS, home, export_name));
    let shown = if path.is_empty() { cluster } else { path };
    Facts {
        path: data.path_of(cluster),
        reference: format!("{shown}|{export_name}"),
        offer: match (&home, export) {
            (Some(home), Some(export)) => offer(data, apis, (cluster, name(binding)), home, export),
            _ => Offer::Missing,
        },
        home: home.map(|home| home.to_string()),
    }
}

fn offer(data: &Data, apis: &Apis, binding: (&str, &str), home: &str, export: Arc<Value>) -> Offer {
    let identity = text(&export, "/status/identityHash");
    if identity.is_empty() {
        return Offer::NoIdentity(export);
    }
    let mut schemas = Vec::new();
    for resource in items(&export, "/spec/resources") {
        let wanted = text(resource, "/schema");
        let Some(schema) = data.get(&SCHEMAS, home, wanted) else {
            let missing = wanted.to_owned();
            return Offer::NoSchema(export, missing);
        };
        if let Err(error) = apis.compile(&schema, identity) {
            return Offer::BadSchema(export, error);
        }
        schemas.push(schema);
    }
    let wanted: Vec<Names> = schemas.iter().map(|schema| Names::of(&schema["spec"], Owner::Crd)).collect();
    match conflicts(&wanted, &taken(data, binding.0, binding.1)) {
        Some(problem) => Offer::Conflict(export, problem),
        None => Offer::Apis(export, schemas),
    }
}

/// The names that other bindings and CRDs of the workspace have taken.
fn taken(data: &Data, cluster: &str, except: &str) -> Vec<Names> {
    let mut all: Vec<Names> =
        data.list(&CRDS, Some(cluster)).map(|(_, crd)| Names::of(&crd["spec"], Owner::Crd)).collect();
    for (key, binding) in data.list(&BINDINGS, Some(cluster)) {
        if *key.name == *except {
            continue;
        }
        let export = text(&binding, "/spec/reference/export/name");
        let path = text(&binding, "/spec/reference/export/path");
        let path = if path.is_empty() { cluster } else { path };
        for bound in items(&binding, "/status/boundResources") {
            let owner = Owner::Binding { name: key.name.to_string(), export: format!("{path}:{export}") };
            if let Some(schema) = data.get(&SCHEMAS, BOUND_SCHEMAS, text(bound, "/schema/UID")) {
                all.push(Names::of(&schema["spec"], owner));
            }
        }
    }
    all
}

/// The new state of a binding that is not being deleted.
pub fn decide(binding: &mut Value, facts: &Facts, now: &str) {
    annotate(binding, carrick_kcp::PATH_ANNOTATION, facts.path.as_str());
    if let Some(home) = &facts.home {
        let hash = export_hash(home, text(binding, "/spec/reference/export/name"));
        set_label(binding, EXPORT_LABEL, hash.as_str());
    }
    if text(binding, "/status/phase").is_empty() {
        child(binding, &["status"]).insert("phase".to_owned(), json!("Binding"));
        let message = "Waiting for API(s) to be established";
        condition::set(binding, &Condition::no(COMPLETED, Severity::Info, "WaitingForEstablished", message), now);
    }
    let invalid = |severity, reason: &str, message: String| Condition::no(VALID, severity, reason, message);
    let (export, valid) = match &facts.offer {
        Offer::Missing => {
            let message = format!("APIExport {} not found", facts.reference);
            (None, invalid(Severity::Error, "APIExportNotFound", message))
        }
        Offer::NoIdentity(export) => {
            let message = format!("APIExport {} is missing status.identityHash", facts.reference);
            (Some(export), invalid(Severity::Warning, "MissingIdentityHash", message))
        }
        Offer::NoSchema(export, schema) => {
            let message = format!(
                "Invalid APIExport. Please contact the APIExport owner to resolve: APIResourceSchema \"{schema}\" not found"
            );
            (Some(export), invalid(Severity::Error, "InternalError", message))
        }
        Offer::BadSchema(export, _) | Offer::Conflict(export, _) | Offer::Apis(export, _) => {
            (Some(export), Condition::yes(VALID))
        }
    };
    condition::set(binding, &valid, now);
    match &facts.offer {
        Offer::BadSchema(_, problem) => refuse(binding, "APIResourceSchemaInvalid", problem, now),
        Offer::Conflict(_, problem) => refuse(binding, "NamingConflicts", problem, now),
        Offer::Apis(export, schemas) => bind(binding, export, schemas, now),
        Offer::Missing | Offer::NoIdentity(_) | Offer::NoSchema(..) => {}
    }
    if let (Some(export), Some(home)) = (export, &facts.home) {
        follow(binding, export, home, now);
    }
    mirror_ready(binding, now);
}

fn refuse(binding: &mut Value, reason: &str, problem: &str, now: &str) {
    let verdict = Condition::no(UP_TO_DATE, Severity::Error, reason, problem);
    condition::set(binding, &verdict, now);
    if !condition::holds(binding, COMPLETED) {
        condition::set(binding, &verdict.renamed(COMPLETED), now);
    }
}

/// Existing entries follow the export's new schemas; entries for resources it no longer exports stay.
fn bind(binding: &mut Value, export: &Value, schemas: &[Arc<Value>], now: &str) {
    let mut bound = items(binding, "/status/boundResources").to_vec();
    for schema in schemas {
        let (group, resource) = (text(schema, "/spec/group"), text(schema, "/spec/names/plural"));
        let at = bound.iter().position(|b| b["group"] == group && b["resource"] == resource);
        let mut versions = at.map(|at| strings(&bound[at], "/storageVersions")).unwrap_or_default();
        for version in items(schema, "/spec/versions").iter().filter(|version| version["storage"] == true) {
            let name = text(version, "/name");
            if !versions.iter().any(|known| known == name) {
                versions.push(name.to_owned());
            }
        }
        versions.sort();
        let entry = json!({
            "group": group, "resource": resource, "storageVersions": versions,
            "schema": {"name": name(schema), "UID": uid(schema), "identityHash": text(export, "/status/identityHash")},
        });
        match at {
            Some(at) => bound[at] = entry,
            None => bound.push(entry),
        }
    }
    let status = child(binding, &["status"]);
    if !bound.is_empty() {
        status.insert("boundResources".to_owned(), bound.into());
    }
    status.insert("phase".to_owned(), json!("Bound"));
    condition::set(binding, &Condition::yes(UP_TO_DATE), now);
    condition::set(binding, &Condition::yes(COMPLETED), now);
}

/// Copies the export's cluster, claims and extra annotations.
fn follow(binding: &mut Value, export: &Value, home: &str, now: &str) {
    let exported = items(export, "/spec/permissionClaims").to_vec();
    let verdict = claim::judge(&exported, items(binding, "/spec/permissionClaims"));
    let status = child(binding, &["status"]);
    status.insert("apiExportClusterName".to_owned(), home.into());
    for (field, list) in [("exportPermissionClaims", exported), ("appliedPermissionClaims", verdict.applied)] {
        if list.is_empty() {
            status.remove(field);
        } else {
            status.insert(field.to_owned(), list.into());
        }
    }
    condition::set(binding, &verdict.valid, now);
    condition::set(binding, &Condition::yes("PermissionClaimsApplied"), now);
    let extra: BTreeMap<&String, &Value> = export
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.starts_with(EXTRA_ANNOTATIONS))
        .collect();
    let annotations = child(binding, &["metadata", "annotations"]);
    annotations.retain(|key, _| !key.starts_with(EXTRA_ANNOTATIONS) || extra.contains_key(key));
    for (key, value) in extra {
        annotations.insert(key.clone(), value.clone());
    }
}

fn mirror_ready(binding: &mut Value, now: &str) {
    let Some(completed) = condition::find(binding, COMPLETED) else { return };
    let ready = if completed["status"] == "True" {
        Condition::yes("Ready")
    } else {
        let severity = match text(completed, "/severity") {
            "Info" => Severity::Info,
            "Warning" => Severity::Warning,
            _ => Severity::Error,
        };
        Condition::no("Ready", severity, text(completed, "/reason"), text(completed, "/message"))
    };
    condition::set(binding, &ready, now);
}

/// Deletes all instances of the bound APIs; the binding is deleted when they are gone.
fn finalize(data: &Data, key: &Key, binding: &Value) {
    if !finalizers(binding).iter().any(|finalizer| finalizer == FINALIZER) {
        return;
    }
    let mut held: BTreeMap<String, usize> = BTreeMap::new();
    for kind in kinds(binding) {
        for (instance, _) in data.list(&kind, Some(&key.cluster)) {
            data.delete(&instance);
            if let Some(left) = data.store.get(&instance) {
                for finalizer in finalizers(&left.object) {
                    *held.entry(finalizer).or_default() += 1;
                }
            }
        }
    }
    if held.is_empty() {
        data.edit(key, |binding| remove_finalizer(binding, FINALIZER));
        return;
    }
    let list: Vec<String> = held.iter().map(|(f, count)| format!("{f} in {count} resource instances")).collect();
    let message = format!("Some content in the workspace has finalizers remaining: {}", list.join(", "));
    let stuck = Condition::no(DELETED, Severity::Error, "SomeFinalizersRemain", message);
    data.edit(key, |binding| condition::set(binding, &stuck, &now()));
}

/// Removes the copy of a schema unless a binding serves from it.
pub fn drop_copy(data: &Data, schema_uid: &str) {
    let used = |binding: &Value| {
        items(binding, "/status/boundResources").iter().any(|bound| text(bound, "/schema/UID") == schema_uid)
    };
    if !data.list(&BINDINGS, None).any(|(_, binding)| used(&binding)) {
        data.delete(&Key::new(&SCHEMAS, BOUND_SCHEMAS, "", schema_uid));
    }
}

/// The kinds that a binding serves, as they are stored.
pub fn kinds(binding: &Value) -> Vec<Kind> {
    items(binding, "/status/boundResources")
        .iter()
        .map(|bound| Kind {
            group: text(bound, "/group").into(),
            resource: text(bound, "/resource").into(),
            identity: text(bound, "/schema/identityHash").into(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
