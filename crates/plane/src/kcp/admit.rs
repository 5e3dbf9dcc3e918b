//! Admission: what kcp checks and completes on writes. Objects come as users sent them, before their schema is checked, and are
//! therefore read as JSON.

use std::collections::BTreeMap;

use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_kcp::convert;
use carrick_kcp::hash::export_hash;
use carrick_kcp::names::{
    BINDING_FINALIZER, EXPORT_LABEL, OWNER_ANNOTATION, PATH_ANNOTATION, REQUIRED_GROUPS_ANNOTATION,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::authorize::{is_master, permits};
use super::claim;
use super::data::{Data, EXPORTS, ROOT};
use super::object::{add_finalizer, annotate, child, flag, items, set_label, strings, text};
use super::{export, types};
use crate::caller::Caller;
use crate::definition;
use crate::extension::Review;
use crate::request::{Attributes, Operation};
use crate::schema::Schema;
use crate::status::{Cause, Status};

/// Checks and completes one write.
pub fn review(data: &Data, review: &mut Review<'_>) -> Result<(), Status> {
    let kind = (&*review.resource.group, &*review.resource.plural);
    match (kind, review.operation) {
        (("apis.kcp.io", "apiresourceschemas"), Operation::Create | Operation::Update) => schema(review)?,
        (("apis.kcp.io", "apiexports"), Operation::Create | Operation::Update) => api_export(data, review)?,
        (("apis.kcp.io", "apibindings"), Operation::Create) => new_binding(data, review)?,
        (("apis.kcp.io", "apibindings"), Operation::Update) => old_binding(data, review)?,
        (("apis.kcp.io", "apiexportendpointslices"), Operation::Create) => slice(data, review)?,
        (("core.kcp.io", "logicalclusters"), _) => logical_cluster(review)?,
        (("tenancy.kcp.io", "workspaces"), Operation::Create) => new_workspace(data, review)?,
        (("tenancy.kcp.io", "workspaces"), Operation::Update) => old_workspace(review)?,
        (("tenancy.kcp.io", "workspacetypes"), Operation::Create | Operation::Update) => workspace_type(data, review)?,
        _ => {}
    }
    if review.operation != Operation::Delete && review.subresource.is_empty() {
        let wanted = claim::wanted(data, review.cluster, &review.resource.stored_kind(), review.object);
        claim::mark(review.object, &wanted);
    }
    Ok(())
}

fn refuse(review: &Review<'_>, why: &str) -> Status {
    let name = super::object::name(review.object);
    Status::forbidden(&review.resource.group, &review.resource.plural, name, why)
}

/// Whether an object fits the schema of its kind. What does not is refused by that schema, before kcp would look at it.
fn fits(review: &Review<'_>) -> bool {
    let version = text(review.object, "/apiVersion").rsplit('/').next().unwrap_or_default();
    let schema = review.resource.version(version).and_then(|version| version.schema.as_ref());
    schema.is_none_or(|schema| schema.validate(review.object, review.old).is_empty())
}

fn schema(review: &Review<'_>) -> Result<(), Status> {
    if !fits(review) {
        return Ok(());
    }
    let faults = definition::schema_faults(review.object, review.old);
    if !faults.is_empty() {
        let faults: Vec<String> = faults.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        return Err(refuse(review, &format!("[{}]", faults.join(" "))));
    }
    for (at, version) in items(review.object, "/spec/versions").iter().enumerate().filter(|_| review.old.is_none()) {
        if let Err(error) = Schema::compile(&version["schema"]) {
            return Err(refuse(review, &format!("[spec.versions[{at}].schema.{error}]")));
        }
    }
    Ok(())
}

fn api_export(data: &Data, review: &mut Review<'_>) -> Result<(), Status> {
    if fits(review) {
        check_export(review)?;
    }
    annotate(review.object, PATH_ANNOTATION, data.path_of(review.cluster));
    Ok(())
}

fn check_export(review: &Review<'_>) -> Result<(), Status> {
    if let Some(kept) = duplicated(review.object) {
        let field = format!("metadata.annotations[{}]", convert::KEPT_RESOURCES);
        return Err(refuse(review, &format!("{field}: Invalid value: {kept:?}: duplicate resource schema")));
    }
    if let Some(kept) = mismatched(review.object) {
        let field = format!("metadata.annotations[{}]", convert::KEPT_CLAIMS);
        let why = "permission claims defined in annotation do not match permission claims defined in spec";
        return Err(refuse(review, &format!("{field}: Invalid value: {kept:?}: {why}")));
    }
    let mut names = items(review.object, "/spec/latestResourceSchemas").iter().filter_map(Value::as_str);
    if let Some(odd) = names.find(|name| name.split('.').count() < 3) {
        let why = format!("invalid schema {odd:?}: must have at least 3 dot-separated segments");
        return Err(Status::new(500, "", format!("failed to convert v1alpha1 APIExport to v1alpha2: {why}")));
    }
    let mut v2 = review.object.clone();
    let version = text(&v2, "/apiVersion").to_owned();
    convert::export(&version, "apis.kcp.io/v1alpha2", &mut v2);
    // What is no APIExport at all is refused by its schema.
    if let Some(why) = serde_json::from_value::<ApiExport>(v2).ok().and_then(|v2| export::check_export(&v2)) {
        return Err(refuse(review, &why));
    }
    Ok(())
}

/// What an export of v1alpha1 has kept of v1alpha2's resources, if kcp takes its schemas for duplicates.
///
/// kcp means to refuse names that are listed twice. But it counts an empty name for each ordinary schema as well, so beside resources that
/// v1alpha1 cannot express every second ordinary schema looks like a duplicate.
fn duplicated(export: &Value) -> Option<&str> {
    if !text(export, "/apiVersion").ends_with("/v1alpha1") {
        return None;
    }
    let kept = super::object::annotation(export, convert::KEPT_RESOURCES)?;
    let resources: Vec<Value> = serde_json::from_str(kept).ok()?;
    let ordinary: Vec<&str> = items(export, "/spec/latestResourceSchemas").iter().filter_map(Value::as_str).collect();
    let mut seen = std::collections::BTreeSet::new();
    let mut all = resources.iter().map(|resource| text(resource, "/schema")).chain(ordinary.iter().copied());
    let doubled = all.any(|schema| !seen.insert(schema));
    (doubled || ordinary.len() > 1).then_some(kept)
}

/// What an export of v1alpha1 has kept of v1alpha2's claims, if there are some that it does not make any more.
fn mismatched(export: &Value) -> Option<&str> {
    if !text(export, "/apiVersion").ends_with("/v1alpha1") {
        return None;
    }
    let kept = super::object::annotation(export, convert::KEPT_CLAIMS)?;
    let claims: Vec<Value> = serde_json::from_str(kept).ok()?;
    let made: Vec<claim::Subject> = items(export, "/spec/permissionClaims").iter().map(claim::Subject::of).collect();
    claims.iter().any(|claim| !made.contains(&claim::Subject::of(claim))).then_some(kept)
}

fn new_binding(data: &Data, review: &mut Review<'_>) -> Result<(), Status> {
    let (path, name) = reference(review.object, "/spec/reference/export");
    may_bind(data, review, &path, &name, "create APIBinding")?;
    add_finalizer(review.object, BINDING_FINALIZER);
    binding_metadata(data, review);
    Ok(())
}

fn old_binding(data: &Data, review: &mut Review<'_>) -> Result<(), Status> {
    let (path, name) = reference(review.object, "/spec/reference/export");
    if review.old.is_some_and(|old| reference(old, "/spec/reference/export") != (path.clone(), name.clone())) {
        may_bind(data, review, &path, &name, "update APIBinding")?;
    }
    binding_metadata(data, review);
    Ok(())
}

fn binding_metadata(data: &Data, review: &mut Review<'_>) {
    let (path, name) = reference(review.object, "/spec/reference/export");
    let home = if path.is_empty() { Some(review.cluster.into()) } else { data.resolve(&path) };
    if let Some(home) = home {
        set_label(review.object, EXPORT_LABEL, export_hash(&home, &name));
    }
    annotate(review.object, PATH_ANNOTATION, data.path_of(review.cluster));
    drop_empty(review.object);
}

/// kcp reads a binding into its Go type and writes it again, which drops empty fields. Therefore rules about changes do not find the claim
/// that they compare with, unless it is one of another export.
fn drop_empty(binding: &mut Value) {
    let is_v2 = text(binding, "/apiVersion").ends_with("/v1alpha2");
    let Some(Value::Object(spec)) = binding.get_mut("spec") else { return };
    if let Some(Value::Object(export)) = spec.get_mut("reference").and_then(|reference| reference.get_mut("export")) {
        export.retain(|field, value| field != "path" || *value != "");
    }
    spec.retain(|field, value| field != "permissionClaims" || value.as_array().is_some_and(|list| !list.is_empty()));
    let claims = spec.get_mut("permissionClaims").and_then(Value::as_array_mut).into_iter().flatten();
    for claim in claims.filter_map(Value::as_object_mut) {
        claim.retain(|field, value| !(matches!(&**field, "group" | "identityHash") && *value == ""));
        if is_v2 {
            claim.entry("selector").or_insert_with(|| json!({}));
            claim.entry("verbs").or_insert(Value::Null);
        }
    }
}

fn slice(data: &Data, review: &Review<'_>) -> Result<(), Status> {
    if !fits(review) {
        return Ok(());
    }
    let (path, name) = reference(review.object, "/spec/export");
    may_bind(data, review, &path, &name, "create APIExportEndpointSlice")
}

fn reference(object: &Value, pointer: &str) -> (String, String) {
    let field = |name: &str| text(object, &format!("{pointer}/{name}")).to_owned();
    (field("path"), field("name"))
}

/// A missing export and a missing permission give the same error, so that nobody can find out which exports exist.
fn may_bind(data: &Data, review: &Review<'_>, path: &str, name: &str, what: &str) -> Result<(), Status> {
    let unchecked = path == ROOT && data.get(&EXPORTS, ROOT, name).is_none();
    let home = if path.is_empty() { Some(review.cluster.into()) } else { data.resolve(path) };
    let exists = home.as_deref().is_some_and(|home| data.get(&EXPORTS, home, name).is_some());
    let bind = Attributes {
        verb: "bind".into(),
        group: "apis.kcp.io".into(),
        resource: "apiexports".into(),
        name: name.into(),
        ..Attributes::default()
    };
    let allowed = home.is_some_and(|home| permits(data, review.caller, &home, &bind));
    if allowed && (exists || path.is_empty() || unchecked) {
        return Ok(());
    }
    let shown = if path.is_empty() { name.to_owned() } else { format!("{path}:{name}") };
    Err(refuse(review, &format!("unable to {what}: no permission to bind to export {shown}")))
}

fn logical_cluster(review: &Review<'_>) -> Result<(), Status> {
    match review.operation {
        Operation::Create if super::object::name(review.object) != super::data::SELF => {
            let name = super::object::name(review.object);
            let cause = Cause::unsupported("metadata.name", &name.into(), &[super::data::SELF.into()]);
            Err(Status::invalid(&review.resource.group, &review.resource.kind, name, &[cause]))
        }
        Operation::Create => Err(refuse(review, "LogicalCluster cannot be created")),
        Operation::Delete if flag(review.object, "/spec/directlyDeletable") || is_master(review.caller) => Ok(()),
        Operation::Delete => Err(refuse(review, "LogicalCluster cannot be deleted")),
        Operation::Update => changed_cluster(review),
    }
}

fn changed_cluster(review: &Review<'_>) -> Result<(), Status> {
    let Some(old) = review.old else { return Ok(()) };
    for field in ["initializers", "terminators", "createdBy", "owner"] {
        let pointer = format!("/spec/{field}");
        if old.pointer(&pointer) != review.object.pointer(&pointer) {
            return Err(refuse(review, &format!("spec.{field} is immutable")));
        }
    }
    let (before, after) = (strings(old, "/status/initializers"), strings(review.object, "/status/initializers"));
    if before != after {
        if text(old, "/status/phase") != "Initializing" {
            return Err(refuse(review, "status.initializers is immutable after initialization has completed"));
        }
        if after.iter().any(|initializer| !before.contains(initializer)) {
            return Err(refuse(review, "status.initializers must not grow"));
        }
    }
    let (before, after) = (strings(old, "/status/terminators"), strings(review.object, "/status/terminators"));
    if after.iter().any(|terminator| !before.contains(terminator)) {
        return Err(refuse(review, "status.terminators must not grow"));
    }
    let rank = |object: &Value| {
        let order = ["", "Scheduling", "Initializing", "Ready", "Unavailable", "Inactive", "Terminating", "Deleting"];
        order.iter().position(|phase| *phase == text(object, "/status/phase"))
    };
    if rank(review.object) < rank(old) {
        let phases = (text(old, "/status/phase"), text(review.object, "/status/phase"));
        return Err(refuse(review, &format!("cannot transition from {:?} to {:?}", phases.0, phases.1)));
    }
    Ok(())
}

fn old_workspace(review: &Review<'_>) -> Result<(), Status> {
    let Some(old) = review.old else { return Ok(()) };
    for field in ["cluster", "URL"] {
        let pointer = format!("/spec/{field}");
        let (before, after) = (old.pointer(&pointer), review.object.pointer(&pointer));
        if before.is_none() && after.is_some() {
            return Err(refuse(review, &format!("spec.{field} is set by the system")));
        }
    }
    Ok(())
}

fn new_workspace(data: &Data, review: &mut Review<'_>) -> Result<(), Status> {
    let name = super::object::name(review.object);
    if !carrick_kcp::path::is_label(name) {
        let rule = "metadata.name in body should match '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'";
        let cause = Cause::invalid("metadata.name", &name.into(), rule);
        return Err(Status::invalid(&review.resource.group, &review.resource.kind, name, &[cause]));
    }
    for (field, shown) in [("cluster", "Cluster"), ("URL", "URL")] {
        if !text(review.object, &format!("/spec/{field}")).is_empty() {
            return Err(refuse(review, &format!("spec.{shown} can only be set by system privileged users")));
        }
    }
    let Some(parent) = data.read_cluster(review.cluster) else {
        return Err(refuse(review, "the workspace has no parent"));
    };
    // A mounted workspace is elsewhere and has no type.
    if review.object.pointer("/spec/mount").is_some() {
        annotate(review.object, OWNER_ANNOTATION, owner(review.caller));
        return Ok(());
    }
    let parent_type = types::of_cluster(data, &parent.metadata);
    if text(review.object, "/spec/type/name").is_empty() {
        let default = parent_type.as_ref().and_then(|kind| kind.object.spec.default_child_workspace_type.as_ref());
        let Some(default) = default else {
            return Err(refuse(review, "spec.defaultChildWorkspaceType of workspace type is not set"));
        };
        child(review.object, &["spec"]).insert("type".to_owned(), json!(default));
    }
    let (path, name) = reference(review.object, "/spec/type");
    let Some(found) = types::find(data, review.cluster, &path, &name) else {
        return Err(refuse(review, &format!("workspace type {name:?} cannot be resolved")));
    };
    child(review.object, &["spec", "type"]).insert("path".to_owned(), found.path.clone().into());
    let kinds = types::closure(data, found);
    for kind in &kinds {
        may_use(data, review, kind)?;
        for (key, value) in &kind.object.spec.additional_workspace_labels {
            set_label(review.object, key, value);
        }
    }
    if let Some(parent_type) = parent_type
        && let Some(why) = types::refuse_pair(&types::closure(data, parent_type), &kinds)
    {
        return Err(refuse(review, &why));
    }
    annotate(review.object, OWNER_ANNOTATION, owner(review.caller));
    if let Some(groups) = parent.metadata.annotation(REQUIRED_GROUPS_ANNOTATION) {
        annotate(review.object, REQUIRED_GROUPS_ANNOTATION, groups);
    }
    Ok(())
}

fn may_use(data: &Data, review: &Review<'_>, kind: &types::FoundType) -> Result<(), Status> {
    let name = kind.object.metadata.name.as_str();
    let attributes = Attributes {
        verb: "use".into(),
        group: "tenancy.kcp.io".into(),
        resource: "workspacetypes".into(),
        name: name.into(),
        ..Attributes::default()
    };
    if permits(data, review.caller, &kind.cluster, &attributes) {
        return Ok(());
    }
    Err(refuse(
        review,
        &format!("unable to create workspace: no permission to use workspace type {}", kind.full_name()),
    ))
}

/// The creator as Kubernetes describes users, in its order and without empty fields.
#[derive(Serialize)]
struct Owner<'a> {
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: &'a BTreeMap<String, Vec<String>>,
}

fn owner(caller: &Caller) -> String {
    let Caller { user, uid, groups, extra, .. } = caller;
    // Texts and lists of texts always become JSON.
    serde_json::to_string(&Owner { username: user, uid, groups, extra }).unwrap_or_default()
}

fn workspace_type(data: &Data, review: &mut Review<'_>) -> Result<(), Status> {
    if super::object::name(review.object) == ROOT && review.cluster != ROOT {
        return Err(refuse(review, "root workspace type can only be created in root cluster"));
    }
    let child_type = review.object.pointer("/spec/defaultChildWorkspaceType");
    if child_type.is_some_and(|child_type| text(child_type, "/path").is_empty()) {
        return Err(refuse(review, ".spec.defaultChildWorkspaceType.path must be set"));
    }
    for limit in ["limitAllowedChildren", "limitAllowedParents"] {
        let types = items(review.object, &format!("/spec/{limit}/types"));
        if let Some(index) = types.iter().position(|wanted| text(wanted, "/path").is_empty()) {
            return Err(refuse(review, &format!(".spec.{limit}.types[{index}].path must be set")));
        }
    }
    let known = review.old.map_or(&[][..], |old| items(old, "/spec/defaultAPIBindings"));
    for wanted in items(review.object, "/spec/defaultAPIBindings").iter().filter(|wanted| !known.contains(wanted)) {
        may_bind(data, review, text(wanted, "/path"), text(wanted, "/export"), "create or update WorkspaceType")?;
    }
    annotate(review.object, PATH_ANNOTATION, data.path_of(review.cluster));
    if review.object.pointer("/spec/defaultChildWorkspaceType").is_none() {
        let default = json!({"name": "universal", "path": ROOT});
        child(review.object, &["spec"]).insert("defaultChildWorkspaceType".to_owned(), default);
    }
    Ok(())
}
