//! APIServiceExports and their BoundSchemas: who owns them, whether they follow the provider.

use carrick_bind_api::carrick_kcp::apis::v1alpha1::ResourceScope;
use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_bind_api::conditions::{self, Condition, PROVIDER_IN_SYNC};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::names::{SOURCE_SPEC_HASH_ANNOTATION, WITHDRAWAL_FINALIZER};
use carrick_bind_api::problems::ExportProblem;
use carrick_bind_api::schema::{self, Refresh};
use carrick_bind_api::v1alpha2::{ApiServiceExport, BoundSchema, ExportedResource, Isolation, SchemaUpdatePolicy};

use super::breaking::breaks;
use super::objects::ContractObjects;
use super::offers::Offers;
use super::plan::Plan;
use super::withdrawal;

/// Annotation of an export: its policy for schemas, because its request may be gone.
pub const POLICY_ANNOTATION: &str = "backend.kube-bind.io/schema-update-policy";

/// What to do about the exports of a contract.
pub fn decide(objects: &ContractObjects, offers: &Offers, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let mut after: Vec<BoundSchema> = Vec::new();
    let mut held_back = Vec::new();
    for schema in &objects.schemas {
        let users: Vec<&ApiServiceExport> = objects.exports.iter().filter(|it| uses(it, schema)).collect();
        if users.is_empty() {
            // Made for a request that has gone before its export came.
            let asked = objects.requests.iter().any(|request| names(&request.spec.resources, schema));
            if !asked && schema.metadata.owner_references.is_empty() && !schema.metadata.is_deleting() {
                plan.delete(schema);
            }
            continue;
        }
        let mut new = schema.clone();
        own(&mut new, &users);
        let follows = users.iter().any(|export| export.metadata.annotation(POLICY_ANNOTATION) == Some("Always"));
        let source = offers.schema(&schema.metadata.name, &schema.spec.informer_scope, users[0].isolation());
        if let Some(source) = source.filter(|_| follows)
            && let Refresh::Replace(next) = schema::refresh(&new, &source, &SchemaUpdatePolicy::Always)
        {
            match breaks(&schema.spec, &next.spec) {
                None => new = *next,
                Some(problem) => held_back.push((schema.metadata.name.clone(), problem)),
            }
        }
        if new != *schema && !schema.metadata.is_deleting() {
            plan.replace(&new);
        }
        after.push(new);
    }
    let (leaving, staying): (Vec<_>, Vec<_>) = objects.exports.iter().partition(|it| it.metadata.is_deleting());
    for export in leaving {
        plan.add(withdrawal::decide(export, objects.cluster_binding.as_ref(), now));
    }
    for export in staying {
        one(export, objects, offers, &after, &held_back, now, &mut plan);
    }
    plan
}

fn one(
    export: &ApiServiceExport,
    objects: &ContractObjects,
    offers: &Offers,
    schemas: &[BoundSchema],
    held_back: &[(String, String)],
    now: Timestamp,
    plan: &mut Plan,
) {
    let (mut found, mut problem) = (Vec::new(), None);
    for name in export.spec.resources.iter().map(ExportedResource::bound_schema_name) {
        if let Some(schema) = schemas.iter().find(|schema| schema.metadata.name == name) {
            found.push(&schema.spec);
        } else {
            // Somebody has deleted it.
            if let Some(mut schema) = offers.schema(&name, &export.spec.informer_scope, export.isolation()) {
                schema.metadata.namespace.clone_from(&objects.contract.namespace);
                own(&mut schema, &[export]);
                plan.create(&schema);
            }
            problem = Some(ExportProblem::SchemaMissing { schema: name });
        }
    }
    if problem.is_none() {
        let held =
            held_back.iter().find(|(name, _)| export.spec.resources.iter().any(|it| it.bound_schema_name() == *name));
        problem = held
            .map(|(schema, change)| ExportProblem::SchemaHeldBack { schema: schema.clone(), change: change.clone() });
        let hash = schema::hash(found);
        let has_hash = export.metadata.annotation(SOURCE_SPEC_HASH_ANNOTATION) == Some(&hash);
        if !has_hash || !export.metadata.has_finalizer(WITHDRAWAL_FINALIZER) {
            let mut new = export.clone();
            new.metadata.annotate(SOURCE_SPEC_HASH_ANNOTATION, hash);
            new.metadata.add_finalizer(WITHDRAWAL_FINALIZER);
            plan.replace(&new);
            // The status follows with the version that this write makes.
            return;
        }
    }
    if let Some(why) = objects.unguarded.as_ref().filter(|_| problem.is_none()) {
        let is_cluster_wide = |it: &&BoundSchema| it.spec.scope == ResourceScope::Cluster && uses(export, it);
        let schema = schemas.iter().find(is_cluster_wide).filter(|_| *export.isolation() != Isolation::Namespaced);
        problem = schema
            .map(|schema| ExportProblem::WritesRefused { schema: schema.metadata.name.clone(), problem: why.clone() });
    }
    let mut new = export.clone();
    let condition = problem.map_or_else(|| Condition::holds(PROVIDER_IN_SYNC), |problem| problem.condition());
    conditions::set(&mut new.status.conditions, condition, now);
    conditions::summarize(&mut new.status.conditions, now);
    if new.status != export.status {
        plan.status(&new);
    }
}

fn uses(export: &ApiServiceExport, schema: &BoundSchema) -> bool {
    names(&export.spec.resources, schema)
}

fn names(resources: &[ExportedResource], schema: &BoundSchema) -> bool {
    resources.iter().any(|resource| resource.bound_schema_name() == schema.metadata.name)
}

/// Makes a schema belong to all exports that use it; it goes with the last one. One of them is its controller.
fn own(schema: &mut BoundSchema, users: &[&ApiServiceExport]) {
    let owners = &mut schema.metadata.owner_references;
    for export in users {
        if !owners.iter().any(|owner| owner.uid == export.metadata.uid) {
            owners.push(OwnerReference::to(*export));
        }
    }
    let live = |owner: &OwnerReference| users.iter().any(|export| export.metadata.uid == owner.uid);
    for owner in owners.iter_mut().filter(|owner| !live(owner)) {
        // An export that has gone; the server forgets it in its own time.
        owner.controller = false;
    }
    if !owners.iter().any(|owner| owner.controller)
        && let Some(first) = owners.iter_mut().find(|owner| live(owner))
    {
        first.controller = true;
    }
}
