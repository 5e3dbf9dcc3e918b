//! Bindings: an export of the provider becomes CRDs here, and both sides are told how that went.

mod told;

use std::collections::BTreeMap;

use carrick_bind_api::claims::Claim;
use carrick_bind_api::conditions::{self, CONNECTED, Condition, PERMISSION_CLAIM, SCHEMA_IN_SYNC, SECRET_VALID};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::mapping::KeyMapping;
use carrick_bind_api::problems::BindingProblem;
use carrick_bind_api::schema::{self, CrdPlan, CrdProblem, SyncedApi};
use carrick_bind_api::secret::SecretError;
use carrick_bind_api::v1alpha2::{
    ApiServiceBinding, ApiServiceBindingStatus, ApiServiceExport, ApiServiceExportRequest, ApiServiceExportStatus,
    BoundSchema, BoundSchemaReference, BoundSchemaStatus, ExportedResource, Phase,
};
use serde_json::Value;

use super::Seen;

/// What a binding is decided on.
#[derive(Clone, Debug)]
pub struct BindingView<'a> {
    /// The binding.
    pub binding: &'a ApiServiceBinding,
    /// The contract namespace of its kubeconfig, or why that cannot be used.
    pub contract: Result<&'a str, SecretError>,
    /// What the provider calls itself.
    pub provider: Option<&'a str>,
    /// The export of the same name.
    pub export: Seen<&'a ApiServiceExport>,
    /// The request for it, if there still is one.
    pub request: Option<&'a ApiServiceExportRequest>,
    /// The BoundSchemas of the contract, by name.
    pub schemas: Seen<&'a BTreeMap<String, BoundSchema>>,
    /// The CRDs of this cluster that have the names of those schemas.
    pub crds: &'a BTreeMap<String, Value>,
    /// What time it is.
    pub now: Timestamp,
}

/// An API whose objects are synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundApi {
    /// Version, kind and scope.
    pub api: SyncedApi,
    /// Where copies are.
    pub mapping: KeyMapping,
}

/// What to do about a binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BindingPlan {
    /// CRDs to create.
    pub create: Vec<Value>,
    /// CRDs to replace, each with the resource version that was seen.
    pub replace: Vec<Value>,
    /// The status of the binding, if it has changed.
    pub status: Option<ApiServiceBindingStatus>,
    /// The status of the export, if it has changed.
    pub export_status: Option<ApiServiceExportStatus>,
    /// The statuses of BoundSchemas that have changed, by name.
    pub schema_statuses: BTreeMap<String, BoundSchemaStatus>,
    /// What is synced from now on; none if that is not known, and then what was synced goes on.
    pub sync: Option<Sync>,
}

/// What is synced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sync {
    /// The APIs whose CRDs are there and ours.
    pub apis: Vec<BoundApi>,
    /// The claims that can be followed.
    pub claims: Vec<Claim>,
}

/// Decides about a binding.
pub fn decide(view: &BindingView<'_>) -> BindingPlan {
    let mut plan = BindingPlan::default();
    let mut status = view.binding.status.clone();
    let secret_valid = match &view.contract {
        Ok(_) => Condition::holds(SECRET_VALID),
        Err(error) => error.clone().of_binding().condition(),
    };
    conditions::set(&mut status.conditions, secret_valid, view.now);
    if let Some(provider) = view.provider {
        provider.clone_into(&mut status.provider_pretty_name);
    }
    if let Ok(contract) = view.contract {
        match (&view.export, &view.schemas) {
            (Seen::Absent, _) => {
                let problem = missing(view);
                conditions::set(&mut status.conditions, problem.condition(), view.now);
                plan.sync = Some(Sync::default());
            }
            (Seen::Present(export), Seen::Present(schemas)) => {
                Pass { view, contract, export, schemas, plan: &mut plan, status: &mut status }.run();
            }
            // What was true stays so until somebody knows better.
            (Seen::Unknown(_), _) | (_, Seen::Unknown(_) | Seen::Absent) => {}
        }
    }
    conditions::summarize(&mut status.conditions, view.now);
    plan.status = (status != view.binding.status).then_some(status);
    plan
}

fn missing(view: &BindingView<'_>) -> BindingProblem {
    let export = view.binding.metadata.name.clone();
    match view.request.filter(|request| request.status.phase == Phase::Failed) {
        Some(request) => BindingProblem::ExportFailed { export, problem: request.status.terminal_message.clone() },
        None => BindingProblem::ExportNotFound { export },
    }
}

/// One look at a binding whose export is there.
struct Pass<'a, 'b> {
    view: &'b BindingView<'a>,
    contract: &'a str,
    export: &'a ApiServiceExport,
    schemas: &'a BTreeMap<String, BoundSchema>,
    plan: &'b mut BindingPlan,
    status: &'b mut ApiServiceBindingStatus,
}

impl Pass<'_, '_> {
    fn run(&mut self) {
        let (mut sync, mut problems, mut bound) = (Sync::default(), Vec::new(), Vec::new());
        for resource in &self.export.spec.resources {
            match self.bind(resource) {
                Ok(api) => {
                    bound.push(BoundSchemaReference::new(&resource.group, &resource.resource));
                    sync.apis.extend(api);
                }
                // The others go on.
                Err(problem) => problems.push(problem),
            }
        }
        let now = self.view.now;
        for type_ in [CONNECTED, SCHEMA_IN_SYNC] {
            let problem = problems.iter().find(|problem| problem.condition_type() == type_);
            let condition = problem.map_or_else(|| Condition::holds(type_), BindingProblem::condition);
            conditions::set(&mut self.status.conditions, condition, now);
        }
        self.claims(&mut sync);
        self.status.bound_schemas = bound;
        self.status.permission_claims.clone_from(&self.export.spec.permission_claims);
        let told = told::export_status(self.export, &self.status.conditions, now);
        self.plan.export_status = (told != self.export.status).then_some(told);
        self.plan.sync = Some(sync);
    }

    /// Makes or keeps the CRD of a resource. Its objects are synced as soon as it is there.
    fn bind(&mut self, resource: &ExportedResource) -> Result<Option<BoundApi>, BindingProblem> {
        let name = resource.bound_schema_name();
        let unusable = |problem: String| BindingProblem::SchemaFetchFailed { schema: name.clone(), problem };
        let found = self.schemas.get(&name).ok_or_else(|| unusable("it does not exist".to_owned()))?;
        let wanted = schema::crd(found, self.view.binding).map_err(|error| unusable(error.to_string()))?;
        let api = SyncedApi::of(&found.spec).map_err(|error| unusable(error.to_string()))?;
        let mapping = KeyMapping::of_schema(found, self.export.isolation(), self.contract);
        let mapping = mapping.map_err(|error| unusable(error.to_string()))?;
        let existing = self.view.crds.get(&name);
        match schema::plan(existing, &wanted, self.view.binding) {
            Ok(CrdPlan::Create(crd)) => {
                self.plan.create.push(crd);
                return Ok(None);
            }
            Ok(CrdPlan::Replace(crd)) => self.plan.replace.push(crd),
            Ok(CrdPlan::Keep) => {}
            Err(CrdProblem::Foreign(owner)) => return Err(BindingProblem::ForeignCrd { crd: name, owner }),
            Err(problem) => return Err(BindingProblem::SchemaBroken { crd: name, problem: problem.to_string() }),
        }
        if let Some(crd) = existing {
            let mut status = found.status.clone();
            schema::consumer_status(&mut status, crd, self.view.now);
            if status != found.status {
                self.plan.schema_statuses.insert(name, status);
            }
        }
        Ok(Some(BoundApi { api, mapping }))
    }

    fn claims(&mut self, sync: &mut Sync) {
        let mut problem = None;
        for claim in &self.export.spec.permission_claims {
            let resource = claim.resource.clone();
            let invalid = |problem: String| BindingProblem::ClaimInvalid { resource, problem };
            match Claim::compile(claim, self.export) {
                Ok(compiled) => {
                    if let Some(part) = compiled.problems().first() {
                        problem.get_or_insert(invalid(part.to_string()));
                    }
                    sync.claims.push(compiled);
                }
                Err(error) => {
                    problem.get_or_insert(invalid(error.to_string()));
                }
            }
        }
        match problem {
            Some(problem) => conditions::set(&mut self.status.conditions, problem.condition(), self.view.now),
            None => conditions::remove(&mut self.status.conditions, PERMISSION_CLAIM),
        }
    }
}

#[cfg(test)]
mod tests;
