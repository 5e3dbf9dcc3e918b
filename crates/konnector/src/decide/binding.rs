//! Bindings: an export of the provider becomes CRDs here, and both sides are told how that went.

mod export_status;

use std::collections::BTreeMap;

use carrick_bind_api::claims::{Accepted, Claim, described, mark};
use carrick_bind_api::conditions::{
    self, CONNECTED, Condition, EXISTING_OBJECTS, HEARTBEATING, INFORMERS_SYNCED, OBJECTS_SYNCED, PERMISSION_CLAIM,
    SCHEMA_IN_SYNC, SECRET_VALID,
};
use carrick_bind_api::existing::{Existing, ExistingError};
use carrick_bind_api::identity::ContractError;
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

pub use export_status::unbound_export_status;

/// What a binding is decided on.
#[derive(Clone, Debug)]
pub struct BindingView<'a> {
    /// The binding.
    pub binding: &'a ApiServiceBinding,
    /// The contract namespace of its kubeconfig, or why that cannot be used.
    pub contract: Result<&'a str, SecretError>,
    /// What the provider calls itself.
    pub provider: Option<&'a str>,
    /// Why the contract is not the one that the binding was made for.
    pub changed: Option<&'a ContractError>,
    /// How the last heartbeat went.
    pub heartbeat: Option<&'a Result<(), BindingProblem>>,
    /// What becomes of objects that the provider had before, or why nobody knows.
    pub existing: &'a Result<Existing, ExistingError>,
    /// The claims that somebody here has accepted.
    pub accepted: &'a Accepted,
    /// What is known of its objects.
    pub objects: Option<ObjectsView<'a>>,
    /// Whether its objects were let go, and none is held for the provider any more.
    pub released: bool,
    /// What the server said to CRDs that were written last time, by name.
    pub refused: &'a BTreeMap<String, BindingProblem>,
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

/// What is known of the objects of a binding.
#[derive(Clone, Copy, Debug)]
pub struct ObjectsView<'a> {
    /// Whether both sides have been read, or why not; nothing as long as that is no reason to worry.
    pub read: Option<Result<(), &'a str>>,
    /// Claimed objects that something stands in the way of.
    pub conflicts: &'a [String],
    /// Objects that cannot be synced, and why.
    pub failing: &'a [String],
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
    /// How far the withdrawal of its export has come.
    pub withdrawal: Withdrawal,
}

/// How far the withdrawal of an export has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Withdrawal {
    /// There is none.
    #[default]
    None,
    /// The binding has to say so before anything else happens.
    Tell,
    /// The binding says so: objects are let go.
    Release,
}

impl BindingPlan {
    /// Whether no CRD is about to be created, other than those that the server has refused before.
    pub fn has_all_crds(&self, refused: &BTreeMap<String, BindingProblem>) -> bool {
        let mut names = self.create.iter().map(|crd| crd["metadata"]["name"].as_str().unwrap_or_default());
        names.all(|name| refused.contains_key(name))
    }
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
    if let Some(change) = view.changed {
        // Nothing of this binding is to be written there, and nothing of it is deleted here.
        let problem = BindingProblem::ContractChanged { change: change.to_string() };
        conditions::set(&mut status.conditions, problem.condition(), view.now);
        plan.sync = Some(Sync::default());
    } else if let Ok(contract) = view.contract {
        match (&view.export, &view.schemas) {
            (Seen::Absent, _) => {
                let problem = missing(view);
                conditions::set(&mut status.conditions, problem.condition(), view.now);
                plan.sync = Some(Sync::default());
            }
            (Seen::Present(export), Seen::Present(schemas)) => {
                Pass { view, contract, export, schemas, plan: &mut plan, status: &mut status }.run();
                if export.metadata.is_deleting() {
                    withdraw(view, export, &mut plan, &mut status);
                }
            }
            // What was true stays so until somebody knows better.
            (Seen::Unknown(_), _) | (_, Seen::Unknown(_) | Seen::Absent) => {}
        }
    }
    if let Some(heartbeat) = view.heartbeat {
        let condition = heartbeat.as_ref().map_or_else(BindingProblem::condition, |()| Condition::holds(HEARTBEATING));
        conditions::set(&mut status.conditions, condition, view.now);
    }
    match view.existing {
        Ok(_) => conditions::remove(&mut status.conditions, EXISTING_OBJECTS),
        Err(error) => {
            let problem = BindingProblem::ExistingUnknown { problem: error.to_string() };
            conditions::set(&mut status.conditions, problem.condition(), view.now);
        }
    }
    objects(view, &mut status.conditions);
    summarize(&mut status.conditions, view.now);
    plan.status = (status != view.binding.status).then_some(status);
    plan
}

/// What its objects add to the conditions of a binding.
fn objects(view: &BindingView<'_>, conditions: &mut Vec<Condition>) {
    let Some(objects) = view.objects else { return };
    let read = objects.read.map(|read| match read {
        Ok(()) => Condition::holds(INFORMERS_SYNCED),
        Err(why) => {
            let what = view.binding.metadata.name.clone();
            BindingProblem::InformerSyncTimeout { what, problem: why.to_owned() }.condition()
        }
    });
    if let Some(read) = read {
        conditions::set(conditions, read, view.now);
    }
    // A claim that makes no sense, or waits, is worse than one whose objects are in the way.
    let invalid =
        conditions::find(conditions, PERMISSION_CLAIM).is_some_and(|it| OF_CLAIMS.contains(&it.reason.as_str()));
    match objects.conflicts {
        [] if invalid => {}
        [] => conditions::remove(conditions, PERMISSION_CLAIM),
        conflicts if !invalid => {
            let problem = BindingProblem::ClaimConflicts { problems: conflicts.join("; ") };
            conditions::set(conditions, problem.condition(), view.now);
        }
        _ => {}
    }
    match objects.failing {
        [] => conditions::remove(conditions, OBJECTS_SYNCED),
        failing => {
            let problem = BindingProblem::ObjectsFailing { problems: failing.join("; ") };
            conditions::set(conditions, problem.condition(), view.now);
        }
    }
}

/// The reasons of a claim that is not followed.
const OF_CLAIMS: [&str; 2] = ["InvalidPermissionClaim", "ClaimsNotAccepted"];

/// Sets `Ready`. One object that somebody has got wrong does not make a binding unusable for the others.
fn summarize(conditions: &mut Vec<Condition>, now: Timestamp) {
    let counted: Vec<Condition> =
        conditions.iter().filter(|condition| condition.type_ != OBJECTS_SYNCED).cloned().collect();
    if let Some(ready) = conditions::summary(&counted) {
        conditions::set(conditions, ready, now);
    }
}

/// An export that is about to go: the binding says so, then objects are let go, then the provider is told that nobody holds on to it.
fn withdraw(
    view: &BindingView<'_>,
    export: &ApiServiceExport,
    plan: &mut BindingPlan,
    status: &mut ApiServiceBindingStatus,
) {
    (plan.create, plan.replace) = (Vec::new(), Vec::new());
    let problem = BindingProblem::ExportWithdrawn { export: export.metadata.name.clone() };
    let is_told = is_withdrawn(view.binding);
    if let Some(told) = conditions::find(&view.binding.status.conditions, CONNECTED).filter(|_| is_told) {
        // As it was, with its time: what is bound otherwise must not look like a change.
        status.conditions.iter_mut().filter(|it| it.type_ == CONNECTED).for_each(|it| it.clone_from(told));
    }
    conditions::set(&mut status.conditions, problem.condition(), view.now);
    plan.withdrawal = if is_told { Withdrawal::Release } else { Withdrawal::Tell };
    let told = export_status::withdrawn_export_status(export, view.now);
    let released = view.released || plan.sync.as_ref().is_some_and(|sync| sync.apis.is_empty());
    plan.export_status = Some(told).filter(|told| is_told && released && *told != export.status);
}

/// Whether a binding says that its export is withdrawn.
pub fn is_withdrawn(binding: &ApiServiceBinding) -> bool {
    let withdrawn = BindingProblem::ExportWithdrawn { export: String::new() };
    conditions::find(&binding.status.conditions, CONNECTED)
        .is_some_and(|it| !it.is_true() && it.reason == withdrawn.reason())
}

fn missing(view: &BindingView<'_>) -> BindingProblem {
    let export = view.binding.metadata.name.clone();
    if is_withdrawn(view.binding) {
        return BindingProblem::ExportWithdrawn { export };
    }
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

impl<'a> Pass<'a, '_> {
    fn run(&mut self) {
        let (mut sync, mut problems, mut bound) = (Sync::default(), Vec::new(), Vec::new());
        for resource in &self.export.spec.resources {
            let (api, problem) = self.bind(resource);
            if problem.is_none() || api.is_some() {
                bound.push(BoundSchemaReference::new(&resource.group, &resource.resource));
            }
            sync.apis.extend(api);
            // The others go on.
            problems.extend(problem);
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
        let told = export_status::export_status(self.export, &self.status.conditions, now);
        self.plan.export_status = (told != self.export.status).then_some(told);
        self.plan.sync = Some(sync);
    }

    /// Makes or keeps the CRD of a resource: what is synced from now on, and what is wrong. Both is possible: objects are synced as long as the CRD
    /// that is there will do, whatever the provider would like it to become.
    fn bind(&mut self, resource: &ExportedResource) -> (Option<BoundApi>, Option<BindingProblem>) {
        let name = resource.bound_schema_name();
        let (found, wanted, bound) = match self.read(&name) {
            Ok(read) => read,
            Err(problem) => return (None, Some(BindingProblem::SchemaFetchFailed { schema: name, problem })),
        };
        let existing = self.view.crds.get(&name);
        let refused = self.view.refused.get(&name).cloned();
        let problem = match schema::plan(existing, &wanted, self.view.binding) {
            Ok(CrdPlan::Create(crd)) => {
                self.plan.create.push(crd);
                return (None, refused);
            }
            Ok(CrdPlan::Replace(crd)) => {
                self.plan.replace.push(crd);
                refused
            }
            Ok(CrdPlan::Keep) => None,
            Err(CrdProblem::Foreign(owner)) => return (None, Some(BindingProblem::ForeignCrd { crd: name, owner })),
            Err(problem) => Some(BindingProblem::SchemaBroken { crd: name.clone(), problem: problem.to_string() }),
        };
        let Some(crd) = existing else { return (None, problem) };
        let mut status = found.status.clone();
        schema::consumer_status(&mut status, crd, self.view.now);
        if status != found.status {
            self.plan.schema_statuses.insert(name, status);
        }
        (serves(crd, &bound.api).then_some(bound), problem)
    }

    /// A BoundSchema with the CRD and the sync that it stands for, or why it cannot be used.
    fn read(&self, name: &str) -> Result<(&'a BoundSchema, Value, BoundApi), String> {
        let found = self.schemas.get(name).ok_or("it does not exist")?;
        let wanted =
            schema::crd(found, self.view.binding, self.view.crds.get(name)).map_err(|error| error.to_string())?;
        let api = SyncedApi::of(&found.spec).map_err(|error| error.to_string())?;
        let mapping = KeyMapping::of_schema(found, self.export.isolation(), self.contract);
        let mapping = mapping.map_err(|error| error.to_string())?;
        Ok((found, wanted, BoundApi { api, mapping }))
    }

    fn claims(&mut self, sync: &mut Sync) {
        let (mut problem, mut waiting) = (None, Vec::new());
        let claims = &self.export.spec.permission_claims;
        for claim in claims {
            if !self.view.accepted.accepts(claim) {
                waiting.push(described(claim));
                continue;
            }
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
        if !waiting.is_empty() {
            let marks: Vec<String> = claims.iter().map(mark).collect();
            problem = Some(BindingProblem::ClaimsNotAccepted {
                claims: waiting.join("; "),
                binding: self.view.binding.metadata.name.clone(),
                marks: marks.join(","),
            });
        }
        let conditions = &mut self.status.conditions;
        if let Some(problem) = problem {
            conditions::set(conditions, problem.condition(), self.view.now);
        } else {
            // Objects that are in the way are told elsewhere.
            conditions.retain(|it| it.type_ != PERMISSION_CLAIM || !OF_CLAIMS.contains(&it.reason.as_str()));
        }
    }
}

/// Whether objects of an API can be read and written under a CRD as it is. One that is being deleted still has objects, whose copies have to go.
fn serves(crd: &Value, api: &SyncedApi) -> bool {
    let scope = if api.is_namespaced { "Namespaced" } else { "Cluster" };
    let mut versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    crd["spec"]["scope"] == scope
        && versions.any(|version| version["name"] == api.version.as_str() && version["served"] == true)
}

#[cfg(test)]
mod tests;
