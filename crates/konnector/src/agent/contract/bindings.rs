//! Bindings: CRDs, statuses on both sides, and what is synced.

use std::collections::BTreeMap;
use std::time::Duration;

use carrick_bind_api::claims::Accepted;
use carrick_bind_api::conditions;
use carrick_bind_api::existing::{Existing, ExistingError};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::names::BINDING_FINALIZER;
use carrick_bind_api::problems::BindingProblem;
use carrick_bind_api::v1alpha2::{
    ApiServiceBinding, ApiServiceBindingBundle, ApiServiceExport, ApiServiceExportRequest, BoundSchema,
    ExportedResource,
};
use serde_json::Value;
use tokio::time::Instant;

use super::bundles::written;
use super::events;
use super::heartbeat::ContractState;
use super::pace::PassResult;
use super::session::Session;
use crate::agent::objects::{SyncMode, WantedBinding};
use crate::agent::resources;
use crate::decide::Seen;
use crate::decide::binding::{BindingPlan, BindingView, ObjectsView, Sync, Withdrawal, decide};
use crate::decide::pin::{self, CONTRACT_PIN, Pin};

/// Objects that are not read within this time are worth a condition: every start takes a moment.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was seen of a binding.
pub(super) struct SeenBinding {
    pub pin: Result<Pin, String>,
    pub export: Seen<ApiServiceExport>,
    schemas: Seen<BTreeMap<String, BoundSchema>>,
    request: Option<ApiServiceExportRequest>,
    crds: BTreeMap<String, Value>,
    pub existing: Result<Existing, ExistingError>,
    accepted: Accepted,
}

impl Session {
    /// Looks at all bindings of this kubeconfig.
    pub async fn follow_bindings(&mut self, state: &ContractState, now: Timestamp) -> PassResult {
        let bindings = self.context.local.bindings_of(&self.at);
        let lives = |name: &String| bindings.iter().any(|binding| binding.metadata.name == *name);
        self.wanted.retain(|name, _| lives(name));
        self.refused.retain(|name, _| lives(name));
        self.unread.retain(|name, _| lives(name));
        let mut outcome = PassResult::default();
        for binding in bindings {
            let part = if binding.metadata.is_deleting() {
                self.unbind(binding, state, now).await
            } else {
                self.bind(binding, state, now).await
            };
            outcome.add(part);
        }
        self.tell_sync();
        outcome
    }

    /// Remembers since when objects of a binding could not be read; returns when to look at that again.
    fn note_unread(&mut self, name: &str) -> PassResult {
        let told = self.told.borrow().clone();
        if told.bindings.get(name).is_none_or(|told| told.informers_synced.is_ok()) {
            self.unread.remove(name);
            return PassResult::default();
        }
        let since = self.unread.entry(name.to_owned()).or_insert_with(Instant::now).elapsed();
        let left = PATIENCE.saturating_sub(since);
        if left.is_zero() { PassResult::default() } else { PassResult::after(left) }
    }

    async fn bind(&mut self, mut binding: ApiServiceBinding, state: &ContractState, now: Timestamp) -> PassResult {
        let seen = match self.look(&binding, state).await {
            Ok(seen) => seen,
            Err(problem) => return self.tell_unread(binding, problem, now).await,
        };
        if let Some(outcome) = self.pin(&binding, &seen).await {
            return outcome;
        }
        let mut outcome = self.note_unread(&binding.metadata.name);
        let plan = self.decide(&binding, &seen, state, now);
        let refused = self.write_crds(&plan).await;
        outcome.failed |= !refused.is_empty();
        let name = binding.metadata.name.clone();
        let plan = if self.refused.get(&name).cloned().unwrap_or_default() == refused {
            plan
        } else {
            self.refused.insert(name.clone(), refused);
            self.decide(&binding, &seen, state, now)
        };
        let ready = plan.has_all_crds(self.refused.get(&name).unwrap_or(&BTreeMap::new()));
        if plan.withdrawal == Withdrawal::Tell {
            // Before the condition, so that it is not forgotten if this process ends in between.
            events::withdrawn(&self.context.writer, &binding, now).await;
        }
        if let Some(status) = plan.status {
            binding.status = status;
            outcome.add(written(self.context.writer.status(&binding).await, "APIServiceBinding", &name));
        }
        let Seen::Present(export) = seen.export else {
            if plan.sync.is_some() {
                self.wanted.remove(&name);
            }
            return outcome;
        };
        if let Some(sync) = plan.sync {
            if sync.apis.is_empty() && sync.claims.is_empty() {
                self.wanted.remove(&name);
            } else if ready || self.wanted.contains_key(&name) {
                // A word that nobody knows changes nothing.
                let before = self.wanted.get(&name).map(|wanted| wanted.existing);
                let existing = seen.existing.as_ref().ok().copied().or(before).unwrap_or_default();
                let mode = if plan.withdrawal == Withdrawal::Release { SyncMode::Release } else { SyncMode::Keep };
                let wanted = WantedBinding { existing, ..wanted(&export, sync, mode) };
                self.wanted.insert(name.clone(), wanted);
            }
        }
        if let Some(status) = plan.export_status {
            let mut told = export;
            told.status = status;
            outcome.add(written(self.writer.status(&told).await, "APIServiceExport", &name));
        }
        if let Seen::Present(mut schemas) = seen.schemas {
            for (schema, status) in plan.schema_statuses {
                if let Some(mut told) = schemas.remove(&schema) {
                    told.status = status;
                    outcome.add(written(self.writer.status(&told).await, "BoundSchema", &schema));
                }
            }
        }
        outcome
    }

    /// Tells that it cannot be read what is here. A server that does not answer would not take that either; an export that is missing is told.
    async fn tell_unread(&self, mut binding: ApiServiceBinding, problem: String, now: Timestamp) -> PassResult {
        let mut outcome = PassResult::failure();
        if self.context.local.export.is_none() {
            return outcome;
        }
        let before = binding.status.clone();
        let condition = BindingProblem::ExportUnavailable { problem }.condition();
        conditions::set(&mut binding.status.conditions, condition, now);
        conditions::summarize(&mut binding.status.conditions, now);
        if binding.status != before {
            let name = binding.metadata.name.clone();
            outcome.add(written(self.context.writer.status(&binding).await, "APIServiceBinding", &name));
        }
        outcome
    }

    /// What is known of a binding, or why this cluster does not tell what is here.
    pub async fn look(&self, binding: &ApiServiceBinding, state: &ContractState) -> Result<SeenBinding, String> {
        let name = &binding.metadata.name;
        let pin = state.contract.as_ref().map(|contract| pin::decide(binding, contract)).map_err(Clone::clone);
        let cache = &self.provider.exports;
        let export = match (&pin, cache.get(&self.kubeconfig.contract, name)) {
            (Err(why), _) => Seen::Unknown(why.clone()),
            (Ok(Pin::Other(change)), _) => Seen::Unknown(change.to_string()),
            (Ok(_), Seen::Present(object)) => match object.decode::<ApiServiceExport>() {
                Ok(export) => Seen::Present(export),
                Err(error) => Seen::Unknown(format!("APIServiceExport {name} cannot be read: {error}")),
            },
            (Ok(_), Seen::Absent) => Seen::Absent,
            (Ok(_), Seen::Unknown(why)) => Seen::Unknown(why),
        };
        let request = match self.provider.requests.get(&self.kubeconfig.contract, name) {
            Seen::Present(object) => self.provider.requests.read(&object),
            _ => None,
        };
        let resources = export.present().map(|export| export.spec.resources.as_slice()).unwrap_or_default();
        let names: Vec<String> = resources.iter().map(ExportedResource::bound_schema_name).collect();
        let schemas = self.schemas(&names);
        let crds = self.context.local.crds(names).await;
        let crds = crds.inspect_err(|error| tracing::warn!(binding = name, %error, "CRDs could not be read."))?;
        let bundles = self.context.local.bundles_of(&self.at);
        let accepted = Accepted::of_binding(binding, &bundles);
        let existing = Existing::of_binding(binding, &bundles);
        let existing = existing.and_then(|existing| match &self.context.local.export {
            Some(_) if existing.makes_objects() => Err(ExistingError::ManyConsumers(existing.to_string())),
            _ => Ok(existing),
        });
        Ok(SeenBinding { pin, export, schemas, request, crds, existing, accepted })
    }

    /// Those of these BoundSchemas that exist. Others are not read: schemas are large, and a contract may have hundreds.
    fn schemas(&self, names: &[String]) -> Seen<BTreeMap<String, BoundSchema>> {
        let cache = &self.provider.schemas;
        if let Some(why) = cache.unknown() {
            return Seen::Unknown(why);
        }
        let read = |name: &String| match cache.get(&self.kubeconfig.contract, name) {
            Seen::Present(object) => Some((name.clone(), cache.read(&object)?)),
            Seen::Absent | Seen::Unknown(_) => None,
        };
        Seen::Present(names.iter().filter_map(read).collect())
    }

    /// What to do about a binding.
    pub fn decide(
        &self,
        binding: &ApiServiceBinding,
        seen: &SeenBinding,
        state: &ContractState,
        now: Timestamp,
    ) -> BindingPlan {
        let name = &binding.metadata.name;
        let told = self.told.borrow().clone();
        // Only what is wanted is told about.
        let told = told.bindings.get(name).filter(|_| self.wanted.contains_key(name));
        let nothing = BTreeMap::new();
        decide(&BindingView {
            binding,
            contract: Ok(&self.kubeconfig.contract),
            provider: state.provider.as_deref(),
            changed: match &seen.pin {
                Ok(Pin::Other(change)) => Some(change),
                _ => None,
            },
            heartbeat: self.heartbeat.as_ref(),
            existing: &seen.existing,
            accepted: &seen.accepted,
            objects: told.map(|told| ObjectsView {
                read: match &told.informers_synced {
                    Ok(()) => Some(Ok(())),
                    Err(why) if self.unread.get(name).is_some_and(|since| since.elapsed() >= PATIENCE) => {
                        Some(Err(why))
                    }
                    Err(_) => None,
                },
                conflicts: &told.conflicts,
                failing: &told.failing,
            }),
            released: told.is_some_and(|told| told.drained),
            refused: self.refused.get(name).unwrap_or(&nothing),
            export: seen.export.as_ref(),
            request: seen.request.as_ref(),
            schemas: seen.schemas.as_ref(),
            crds: &seen.crds,
            now,
        })
    }

    /// Remembers the contract and puts the finalizer on, before anything else happens; the outcome if that was done.
    async fn pin(&self, binding: &ApiServiceBinding, seen: &SeenBinding) -> Option<PassResult> {
        let text = match &seen.pin {
            Ok(Pin::Remember(text)) => Some(text),
            Ok(Pin::Same) if !binding.metadata.has_finalizer(BINDING_FINALIZER) => None,
            _ => return None,
        };
        let mut new = binding.clone();
        if let Some(text) = text {
            new.metadata.annotate(CONTRACT_PIN, text);
        }
        new.metadata.add_finalizer(BINDING_FINALIZER);
        Some(written(self.context.writer.metadata(&new).await, "APIServiceBinding", &binding.metadata.name))
    }

    /// Writes CRDs, or lists schemas in their place; what the server said to those that it refused.
    async fn write_crds(&self, plan: &BindingPlan) -> BTreeMap<String, BindingProblem> {
        let contract = &self.kubeconfig.contract;
        let mut refused = BTreeMap::new();
        for object in &plan.create {
            let crd = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            match self.write_crd(object, true).await {
                Ok(()) => tracing::info!(crd, contract, "Created a CustomResourceDefinition."),
                Err(problem) => {
                    refused.insert(crd.clone(), BindingProblem::CrdCreateFailed { crd, problem });
                }
            }
        }
        for object in &plan.replace {
            let crd = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            match self.write_crd(object, false).await {
                Ok(()) => tracing::info!(crd, contract, "A CustomResourceDefinition follows its provider."),
                Err(problem) => {
                    refused.insert(crd.clone(), BindingProblem::CrdUpdateFailed { crd, problem });
                }
            }
        }
        refused
    }

    async fn write_crd(&self, object: &Value, is_new: bool) -> Result<(), String> {
        let (writer, resource) = (&self.context.writer, resources::crds());
        if let Some(export) = &self.context.local.export {
            return export.list(writer, object).await;
        }
        let written = if is_new {
            writer.create(&resource, object).await.map(drop)
        } else {
            writer.replace(&resource, object).await
        };
        match written {
            // A newer one is on its way.
            Err(error) if error.is_conflict() && !is_new => Ok(()),
            written => written.map_err(|error| error.to_string()),
        }
    }

    /// Claims in the export what its providers claim, if workspaces are the consumers.
    pub async fn follow_claims(&self) -> PassResult {
        let Some(export) = &self.context.local.export else { return PassResult::default() };
        if self.context.local.bindings.unknown().is_some() {
            return PassResult::default();
        }
        let bindings = self.context.local.bindings.all::<ApiServiceBinding>();
        let bundles = self.context.local.bundles.all::<ApiServiceBindingBundle>();
        match export.claim(&self.context.writer, &bindings, &bundles).await {
            Ok(()) => PassResult::default(),
            Err(problem) => {
                tracing::warn!(problem, "The claims of the APIExport cannot be written, trying again.");
                PassResult::failure()
            }
        }
    }
}

/// What is wanted of the sync for an export.
pub(super) fn wanted(export: &ApiServiceExport, sync: Sync, mode: SyncMode) -> WantedBinding {
    WantedBinding {
        export_uid: export.metadata.uid.clone(),
        isolation: export.isolation().clone(),
        informer_scope: export.spec.informer_scope.clone(),
        sync,
        mode,
        existing: Existing::Leave,
    }
}
