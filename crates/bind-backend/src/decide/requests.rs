//! APIServiceExportRequests: each becomes an export of its name.

use std::time::Duration;

use carrick_bind_api::carrick_kcp::apis::v1alpha1::ResourceScope;
use carrick_bind_api::claims::Claim;
use carrick_bind_api::conditions::{self, Condition, EXPORTS_READY, PERMISSION_CLAIM};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::names::{
    OWNER_LABEL, Owner, SOURCE_SPEC_HASH_ANNOTATION, WITHDRAWAL_FINALIZER, is_system_namespace,
};
use carrick_bind_api::problems::RequestProblem;
use carrick_bind_api::schema;
use carrick_bind_api::v1alpha2::{
    ApiServiceExport, ApiServiceExportRequest, ApiServiceNamespace, BoundSchema, ExportedResource, Isolation, Phase,
    SchemaUpdatePolicy,
};

use super::exports::POLICY_ANNOTATION;
use super::namespaces::assigned_name;
use super::objects::ContractObjects;
use super::offers::Offers;
use super::ordered;
use super::plan::Plan;
use super::terms::Terms;

/// How soon to look again at what no watch tells about.
const AGAIN: Duration = Duration::from_secs(10);

/// What stands in a request's way, and whether it does for good.
enum Verdict {
    Pending(RequestProblem),
    Failed(RequestProblem),
    Export { export: Box<ApiServiceExport>, schemas: Vec<BoundSchema> },
}

/// What to do about the requests of a contract.
pub fn decide(objects: &ContractObjects, offers: &Offers, terms: &Terms, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    // Two requests may ask for the same schema in one pass.
    let mut made: Vec<String> = Vec::new();
    for request in objects.requests.iter().filter(|request| !request.metadata.is_deleting()) {
        if matches!(request.status.phase, Phase::Succeeded | Phase::Failed) {
            continue;
        }
        one(request, objects, offers, terms, now, &mut made, &mut plan);
    }
    plan
}

fn one(
    request: &ApiServiceExportRequest,
    objects: &ContractObjects,
    offers: &Offers,
    terms: &Terms,
    now: Timestamp,
    made: &mut Vec<String>,
    plan: &mut Plan,
) {
    let mut after = request.clone();
    let status = &mut after.status;
    match verdict(request, objects, offers, terms) {
        Verdict::Pending(problem) => {
            status.phase = Phase::Pending;
            if matches!(problem, RequestProblem::NotOrdered { .. }) {
                // Nobody watches templates for this.
                plan.look_again_after(AGAIN);
            }
            conditions::set(&mut status.conditions, problem.condition(), now);
        }
        Verdict::Failed(problem) => {
            status.phase = Phase::Failed;
            status.terminal_message = problem.to_string();
            conditions::set(&mut status.conditions, problem.condition(), now);
        }
        Verdict::Export { export, schemas } => {
            for schema in schemas {
                if objects.schema(&schema.metadata.name).is_none() && !made.contains(&schema.metadata.name) {
                    made.push(schema.metadata.name.clone());
                    plan.create(&schema);
                }
            }
            if objects.export(&export.metadata.name).is_none() {
                plan.create(&*export);
            }
            for wanted in &request.spec.namespaces {
                if !objects.namespaces.iter().any(|it| it.metadata.name == wanted.name) {
                    let mut namespace = ApiServiceNamespace::new(&wanted.name);
                    namespace.metadata.namespace.clone_from(&objects.contract.namespace);
                    namespace.metadata.set_label(OWNER_LABEL, Owner::Provider.label());
                    plan.create(&namespace);
                }
            }
            status.phase = Phase::Succeeded;
            conditions::set(&mut status.conditions, Condition::holds(EXPORTS_READY), now);
            conditions::set(&mut status.conditions, Condition::holds(PERMISSION_CLAIM), now);
        }
    }
    conditions::summarize(&mut status.conditions, now);
    if after.status != request.status {
        plan.status(&after);
    }
}

fn verdict(request: &ApiServiceExportRequest, objects: &ContractObjects, offers: &Offers, terms: &Terms) -> Verdict {
    let spec = &request.spec;
    let contract = &objects.contract.namespace;
    let mut resources: Vec<ExportedResource> = Vec::new();
    for resource in &spec.resources {
        if resource.versions.is_empty() {
            return Verdict::Failed(RequestProblem::NoVersions { resource: resource.bound_schema_name() });
        }
        if !resources.iter().any(|known| known.bound_schema_name() == resource.bound_schema_name()) {
            resources.push(resource.clone());
        }
    }
    let mut export = ApiServiceExport::new(&request.metadata.name);
    export.metadata.namespace.clone_from(contract);
    export.metadata.add_finalizer(WITHDRAWAL_FINALIZER);
    export.spec.resources = resources;
    export.spec.permission_claims.clone_from(&spec.permission_claims);
    export.spec.informer_scope = terms.informer_scope.clone();
    export.spec.isolation = terms.isolation.clone();
    if spec.schema_update_policy == SchemaUpdatePolicy::Always {
        export.metadata.annotate(POLICY_ANNOTATION, SchemaUpdatePolicy::Always.as_str());
    }
    let mut claimed = Vec::new();
    for claim in &spec.permission_claims {
        let resource = carrick_bind_api::names::bound_schema_name(&claim.group, &claim.resource);
        if let Err(problem) = Claim::compile(claim, &export) {
            return Verdict::Failed(RequestProblem::InvalidClaim { resource, problem: problem.to_string() });
        }
        if claimed.contains(&resource) {
            return Verdict::Failed(RequestProblem::DuplicateClaim { resource });
        }
        claimed.push(resource);
    }
    for namespace in &spec.namespaces {
        let (namespace, problem) = (namespace.name.clone(), assigned_name(contract, &namespace.name, &terms.isolation));
        let problem = match problem {
            _ if is_system_namespace(&namespace) => "it belongs to the cluster itself".to_owned(),
            Err(problem) => problem,
            Ok(_) => continue,
        };
        return Verdict::Failed(RequestProblem::InvalidNamespace { namespace, problem });
    }
    if let Some(there) = objects.export(&export.metadata.name) {
        let names = |export: &ApiServiceExport| {
            let mut names: Vec<_> = export.spec.resources.iter().map(ExportedResource::bound_schema_name).collect();
            names.sort();
            names
        };
        if names(there) != names(&export) || there.spec.permission_claims != export.spec.permission_claims {
            return Verdict::Failed(RequestProblem::OtherExport { export: export.metadata.name });
        }
    }
    if let Some(ordered) = &objects.contract.ordered
        && let Some(what) = ordered::missing(spec, &objects.templates)
    {
        // The order may be on its way, or come later.
        return Verdict::Pending(RequestProblem::NotOrdered { what, templates: ordered.join(", ") });
    }
    let mut schemas = Vec::new();
    for resource in &export.spec.resources {
        let name = resource.bound_schema_name();
        let schema = offers.schema(&name, &terms.informer_scope, &terms.isolation);
        let Some(mut schema) = schema.or_else(|| objects.schema(&name).cloned()) else {
            return Verdict::Pending(RequestProblem::SchemaNotFound { schema: name });
        };
        if terms.isolation == Isolation::Namespaced && offers.scope(&name) == Some(ResourceScope::Cluster) {
            return Verdict::Pending(RequestProblem::NotNamespaced { schema: name });
        }
        schema.metadata.namespace.clone_from(contract);
        schemas.push(schema);
    }
    let of_scope = |scope: &ResourceScope| schemas.iter().find(|it| it.spec.scope == *scope);
    if let (Some(cluster), Some(namespaced)) = (of_scope(&ResourceScope::Cluster), of_scope(&ResourceScope::Namespaced))
    {
        let (cluster, namespaced) = (cluster.metadata.name.clone(), namespaced.metadata.name.clone());
        return Verdict::Pending(RequestProblem::DifferentScopes { cluster, namespaced });
    }
    let hash = schema::hash(schemas.iter().map(|schema| &schema.spec));
    export.metadata.annotate(SOURCE_SPEC_HASH_ANNOTATION, hash);
    Verdict::Export { export: Box::new(export), schemas }
}

#[cfg(test)]
mod tests;
