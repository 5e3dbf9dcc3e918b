//! APIBindings: the new state of a binding, given its export, the schemas and everything else in the workspace.
//!
//! `read` collects the facts, `decide` is a pure function from facts to the new binding, `reconcile` joins the two.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use carrick_kcp::apis::v1alpha2::{
    ApiBinding, ApiExport, BindingPhase, BoundApiResource, BoundApiResourceSchema, ExportReference,
};
use carrick_kcp::condition::{self, Condition, READY, Severity};
use carrick_kcp::hash::export_hash;
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use carrick_kcp::names::conditions::{
    API_EXPORT_VALID, BINDING_RESOURCE_DELETE_SUCCESS, BINDING_UP_TO_DATE, INITIAL_BINDING_COMPLETED,
    PERMISSION_CLAIMS_APPLIED,
};
use carrick_kcp::names::{BINDING_FINALIZER, EXPORT_LABEL, EXTRA_ANNOTATION_PREFIX, PATH_ANNOTATION};
use serde_json::json;

use super::apis::Apis;
use super::bound::Bound;
use super::claim;
use super::data::{BOUND_SCHEMAS, Data, SCHEMAS, now};
use super::facts::SchemaFacts;
use super::names::{Names, Owner, conflicts};
use super::object::{finalizers, uid};
use crate::store::{Key, Kind};

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
    NoIdentity(Arc<ApiExport>),
    /// The export names a schema that does not exist.
    NoSchema(Arc<ApiExport>, String),
    /// A schema cannot be served.
    BadSchema(Arc<ApiExport>, String),
    /// The APIs clash with others in the workspace.
    Conflict(Arc<ApiExport>, String),
    /// The APIs can be bound.
    Apis(Arc<ApiExport>, Vec<Arc<SchemaFacts>>),
}

/// Brings one binding up to date.
pub fn reconcile(data: &Data, apis: &Apis, cluster: &str, binding: &str) {
    let Some(found) = data.read::<ApiBinding>(cluster, binding) else { return };
    if found.metadata.is_deleting() {
        finalize(data, cluster, &found);
        return;
    }
    let facts = read(data, apis, cluster, &found);
    if let Offer::Apis(_, schemas) = &facts.offer {
        // A binding keeps serving after its schema is deleted, so it serves from a copy.
        for schema in schemas {
            let copy = Key::new(&SCHEMAS, BOUND_SCHEMAS, "", &schema.uid);
            let home = facts.home.as_deref().unwrap_or_default();
            if !data.store.has(&copy)
                && let Some(original) = data.get(&SCHEMAS, home, &schema.name).filter(|found| uid(found) == schema.uid)
            {
                let object = json!({"apiVersion": API_RESOURCE_SCHEMA.api_version(), "kind": API_RESOURCE_SCHEMA.kind,
                    "metadata": {"annotations": {"kcp.io/schema": schema.name}}, "spec": original["spec"]});
                data.create(&copy, object);
            }
        }
    }
    data.edit_as(cluster, binding, |binding| decide(binding, &facts, &now()));
}

fn read(data: &Data, apis: &Apis, cluster: &str, binding: &ApiBinding) -> Facts {
    let ExportReference { path, name, .. } = &binding.spec.reference.export;
    let home = if path.is_empty() { Some(cluster.into()) } else { data.resolve(path) };
    let export = home.as_deref().and_then(|home| data.read::<ApiExport>(home, name));
    let shown = if path.is_empty() { cluster } else { path };
    Facts {
        path: data.path_of(cluster),
        reference: format!("{shown}|{name}"),
        offer: match (&home, export) {
            (Some(home), Some(export)) => offer(data, apis, (cluster, &binding.metadata.name), home, Arc::new(export)),
            _ => Offer::Missing,
        },
        home: home.map(|home| home.to_string()),
    }
}

fn offer(data: &Data, apis: &Apis, binding: (&str, &str), home: &str, export: Arc<ApiExport>) -> Offer {
    if export.status.identity_hash.is_empty() {
        return Offer::NoIdentity(export);
    }
    let mut schemas = Vec::new();
    for resource in &export.spec.resources {
        let Some(schema) = apis.schema(data, home, &resource.schema) else {
            let missing = resource.schema.clone();
            return Offer::NoSchema(export, missing);
        };
        if let Err(error) = schema.kind(&export.status.identity_hash) {
            return Offer::BadSchema(export, error);
        }
        schemas.push(schema);
    }
    let wanted: Vec<Names> = schemas.iter().map(|schema| schema.names.clone()).collect();
    match conflicts(&wanted, &taken(data, apis, binding.0, binding.1)) {
        Some(problem) => Offer::Conflict(export, problem),
        None => Offer::Apis(export, schemas),
    }
}

/// The names that other bindings and CRDs of the workspace have taken.
fn taken(data: &Data, apis: &Apis, cluster: &str, except: &str) -> Vec<Names> {
    let mut all = apis.crd_names(data, cluster);
    let others = data.bindings.in_cluster(&data.store, cluster).into_iter().filter(|(key, _)| *key.name != *except);
    for (key, binding) in others {
        let path = if binding.path.is_empty() { cluster } else { &binding.path };
        for bound in &*binding.kinds {
            let owner = Owner::Binding { name: key.name.to_string(), export: format!("{path}:{}", binding.export) };
            if let Some(schema) = apis.copy(data, &bound.schema) {
                all.push(schema.names.taken_by(owner));
            }
        }
    }
    all
}

/// The new state of a binding that is not being deleted.
pub fn decide(binding: &mut ApiBinding, facts: &Facts, now: &str) {
    binding.metadata.annotate(PATH_ANNOTATION, facts.path.as_str());
    if let Some(home) = &facts.home {
        let hash = export_hash(home, &binding.spec.reference.export.name);
        binding.metadata.set_label(EXPORT_LABEL, hash);
    }
    if binding.status.phase == BindingPhase::Unset {
        binding.status.phase = BindingPhase::Binding;
        let message = "Waiting for API(s) to be established";
        set(
            binding,
            Condition::fails(INITIAL_BINDING_COMPLETED, Severity::Info, "WaitingForEstablished", message),
            now,
        );
    }
    let invalid =
        |severity, reason: &str, message: String| Condition::fails(API_EXPORT_VALID, severity, reason, message);
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
            (Some(export), Condition::holds(API_EXPORT_VALID))
        }
    };
    set(binding, valid, now);
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

fn set(binding: &mut ApiBinding, condition: Condition, now: &str) {
    condition::set(&mut binding.status.conditions, condition, now);
}

fn refuse(binding: &mut ApiBinding, reason: &str, problem: &str, now: &str) {
    let verdict = Condition::fails(BINDING_UP_TO_DATE, Severity::Error, reason, problem);
    if !condition::is_true(&binding.status.conditions, INITIAL_BINDING_COMPLETED) {
        set(binding, verdict.renamed(INITIAL_BINDING_COMPLETED), now);
    }
    set(binding, verdict, now);
}

/// Existing entries follow the export's new schemas; entries for resources it no longer exports stay.
fn bind(binding: &mut ApiBinding, export: &ApiExport, schemas: &[Arc<SchemaFacts>], now: &str) {
    let bound = &mut binding.status.bound_resources;
    let place = |(at, bound): (usize, &BoundApiResource)| ((bound.group.clone(), bound.resource.clone()), at);
    let places: HashMap<(String, String), usize> = bound.iter().enumerate().map(place).collect();
    for schema in schemas {
        let at = places.get(&(schema.group.clone(), schema.plural.clone())).copied();
        let mut versions = at.map(|at| bound[at].storage_versions.clone()).unwrap_or_default();
        for name in &schema.storage {
            if !versions.contains(name) {
                versions.push(name.clone());
            }
        }
        versions.sort();
        let source = BoundApiResourceSchema::new(&schema.name, &schema.uid, &export.status.identity_hash);
        let mut entry = BoundApiResource::new(&schema.group, &schema.plural, source);
        entry.storage_versions = versions;
        match at {
            Some(at) => bound[at] = entry,
            None => bound.push(entry),
        }
    }
    binding.status.phase = BindingPhase::Bound;
    set(binding, Condition::holds(BINDING_UP_TO_DATE), now);
    set(binding, Condition::holds(INITIAL_BINDING_COMPLETED), now);
}

/// Copies the export's cluster, claims and extra annotations.
fn follow(binding: &mut ApiBinding, export: &ApiExport, home: &str, now: &str) {
    let exported = &export.spec.permission_claims;
    let verdict = claim::judge(exported, &binding.spec.permission_claims);
    let status = &mut binding.status;
    home.clone_into(&mut status.api_export_cluster_name);
    status.export_permission_claims.clone_from(exported);
    status.applied_permission_claims = verdict.applied;
    set(binding, verdict.valid, now);
    set(binding, Condition::holds(PERMISSION_CLAIMS_APPLIED), now);
    let is_extra = |key: &str| key.starts_with(EXTRA_ANNOTATION_PREFIX);
    let offered = &export.metadata.annotations;
    let annotations = &mut binding.metadata.annotations;
    annotations.retain(|key, _| !is_extra(key) || offered.contains_key(key));
    let extra = offered.iter().filter(|(key, _)| is_extra(key));
    annotations.extend(extra.map(|(key, value)| (key.clone(), value.clone())));
}

fn mirror_ready(binding: &mut ApiBinding, now: &str) {
    let Some(completed) = condition::find(&binding.status.conditions, INITIAL_BINDING_COMPLETED) else { return };
    let ready = if completed.is_true() { Condition::holds(READY) } else { completed.renamed(READY) };
    set(binding, ready, now);
}

/// Deletes all instances of the bound APIs; the binding is deleted when they are gone.
fn finalize(data: &Data, cluster: &str, binding: &ApiBinding) {
    if !binding.metadata.has_finalizer(BINDING_FINALIZER) {
        return;
    }
    let mut held: BTreeMap<String, usize> = BTreeMap::new();
    for bound in &binding.status.bound_resources {
        for (instance, _) in data.list(&kind(bound), Some(cluster)) {
            data.delete(&instance);
            if let Some(left) = data.store.get(&instance) {
                for finalizer in finalizers(&left.object) {
                    *held.entry(finalizer).or_default() += 1;
                }
            }
        }
    }
    let name = &binding.metadata.name;
    if held.is_empty() {
        data.edit_as(cluster, name, |binding: &mut ApiBinding| binding.metadata.remove_finalizer(BINDING_FINALIZER));
        return;
    }
    let list: Vec<String> = held.iter().map(|(f, count)| format!("{f} in {count} resource instances")).collect();
    let message = format!("Some content in the workspace has finalizers remaining: {}", list.join(", "));
    let stuck = Condition::fails(BINDING_RESOURCE_DELETE_SUCCESS, Severity::Error, "SomeFinalizersRemain", message);
    data.edit_as(cluster, name, |binding| set(binding, stuck.clone(), &now()));
}

/// The kind that a bound API is stored as.
fn kind(bound: &BoundApiResource) -> Kind {
    Kind {
        group: bound.group.as_str().into(),
        resource: bound.resource.as_str().into(),
        identity: bound.schema.identity_hash.as_str().into(),
    }
}

/// Removes the copy of a schema unless a binding serves from it.
pub fn drop_copy(data: &Data, schema_uid: &str) {
    let used = |binding: &Bound| binding.kinds.iter().any(|bound| *bound.schema == *schema_uid);
    if !data.bindings.everywhere(&data.store).iter().any(|(_, binding)| used(binding)) {
        data.delete(&Key::new(&SCHEMAS, BOUND_SCHEMAS, "", schema_uid));
    }
}

#[cfg(test)]
mod tests;
