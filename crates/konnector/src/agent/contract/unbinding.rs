//! Unbinding: copies, then finalizers, then CRDs, then the binding.

use std::time::Duration;

use carrick_bind_api::conditions;
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::names::bound_schema_name;
use carrick_bind_api::problems::BindingProblem;
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceExport};
use carrick_client::{CLUSTER_ANNOTATION, Resource};
use serde_json::Value;

use super::bindings::wanted;
use super::bundles::written;
use super::heartbeat::ContractState;
use super::held;
use super::pace::PassResult;
use super::session::Session;
use crate::agent::context::Context;
use crate::agent::objects::SyncMode;
use crate::agent::resources;
use crate::agent::writer::Writer;
use crate::decide::Seen;
use crate::decide::binding::{Sync, unbound_export_status};
use crate::decide::pin::Pin;
use crate::decide::unbind::{BINDING_FINALIZER, KEEP_COPIES, Next, UnbindView, decide};

/// Objects and CRDs go without a word to us.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

impl Session {
    /// Goes one step further with a binding that is being deleted.
    pub async fn unbind(&mut self, binding: ApiServiceBinding, state: &ContractState, now: Timestamp) -> PassResult {
        let name = binding.metadata.name.clone();
        if !binding.metadata.has_finalizer(BINDING_FINALIZER) {
            self.wanted.remove(&name);
            return PassResult::default();
        }
        // A start takes a moment, and that is no reason to say anything.
        let provider = &self.provider;
        if [&provider.cluster_bindings, &provider.exports, &provider.schemas].iter().any(|cache| cache.is_pending()) {
            return PassResult::default();
        }
        let Ok(seen) = self.look(&binding, state).await else { return PassResult::failure() };
        let keeps = binding.metadata.annotation(KEEP_COPIES) == Some("true");
        let copies = match (&seen.pin, &seen.export) {
            (Ok(Pin::Other(change)), _) => Seen::Unknown(change.to_string()),
            (Err(why), _) | (Ok(_), Seen::Unknown(why)) => Seen::Unknown(why.clone()),
            // The provider has withdrawn the export: whatever is left there is its own business.
            (Ok(_), Seen::Absent) => Seen::Present(0),
            (Ok(_), Seen::Present(export)) => {
                let mode = if keeps { SyncMode::Release } else { SyncMode::Drain };
                let asked = self.wanted.get(&name).is_some_and(|wanted| wanted.mode == mode);
                let sync = self.decide(&binding, &seen, state, now).sync.unwrap_or_default();
                let entry = self.wanted.entry(name.clone());
                let entry = entry.or_insert_with(|| wanted(export, sync.clone(), mode));
                entry.mode = mode;
                // What was synced until now is what has to be drained, even if it could not be bound any more.
                if sync.apis.len() >= entry.sync.apis.len() {
                    entry.sync = sync;
                }
                let lost = self.context.local.crds_of(&binding);
                let lost = lost.present().into_iter().flatten().find(|(crd, _)| !is_synced(&entry.sync, crd));
                let told = self.told.borrow().bindings.get(&name).cloned();
                match (lost, told) {
                    (Some((crd, _)), _) => Seen::Unknown(format!("BoundSchema {crd} cannot be used any more")),
                    (None, Some(told)) if asked && told.drained => Seen::Present(0),
                    (None, Some(told)) if asked && !told.failing.is_empty() => Seen::Unknown(told.failing.join("; ")),
                    (None, _) => Seen::Present(1),
                }
            }
        };
        if !matches!(seen.export, Seen::Present(_)) {
            self.wanted.remove(&name);
        }
        let export = seen.export.present().map(|export| (&self.writer, export));
        step(&self.context, binding, copies, export, now).await
    }
}

/// Whether the objects of a CRD are synced.
fn is_synced(sync: &Sync, crd: &str) -> bool {
    sync.apis.iter().any(|bound| bound_schema_name(&bound.api.group, &bound.api.resource) == crd)
}

/// Goes one step further, given what is known of the copies, and the export with whoever may write its status.
pub(super) async fn step(
    context: &Context,
    mut binding: ApiServiceBinding,
    copies: Seen<usize>,
    export: Option<(&Writer, &ApiServiceExport)>,
    now: Timestamp,
) -> PassResult {
    let name = binding.metadata.name.clone();
    let owned = context.local.crds_of(&binding);
    let names: Seen<Vec<String>> = match &owned {
        Seen::Present(owned) => Seen::Present(owned.iter().map(|(name, _)| name.clone()).collect()),
        Seen::Absent => Seen::Absent,
        Seen::Unknown(why) => Seen::Unknown(why.clone()),
    };
    // Without a CRD there was never an object, nor a copy of one.
    let copies = if names.present().is_some_and(Vec::is_empty) { Seen::Present(0) } else { copies };
    let held = match all_held(context, names.present().map(Vec::as_slice).unwrap_or_default()).await {
        Ok(held) => held,
        Err(error) => {
            let problem = format!("the objects here could not be read: {error}");
            return say(context, binding, BindingProblem::DrainBlocked { problem }, now).await;
        }
    };
    let crds = match &names {
        Seen::Present(names) => Seen::Present(names.as_slice()),
        Seen::Absent => Seen::Absent,
        Seen::Unknown(why) => Seen::Unknown(why.clone()),
    };
    let next = decide(&UnbindView { binding: &binding, copies, held: Seen::Present(held.len()), crds });
    let done = match &next {
        Next::AddFinalizer | Next::Nothing => return PassResult::default(),
        Next::RemoveFinalizer if context.local.export.as_ref().is_some_and(|it| it.has_schemas_of(&binding)) => {
            let gone = delete_crds(context, &binding, &[]).await;
            gone.map(|()| "its APIResourceSchemas are being deleted".to_owned())
        }
        Next::RemoveFinalizer => {
            // Nobody here may know this provider any more once the last binding is gone.
            if let Some((writer, export)) = export {
                let mut told = export.clone();
                told.status = unbound_export_status(export, now);
                if told.status != export.status {
                    let outcome = written(writer.status(&told).await, "APIServiceExport", &name);
                    if outcome != PassResult::default() {
                        return outcome;
                    }
                }
            }
            binding.metadata.remove_finalizer(BINDING_FINALIZER);
            tracing::info!(binding = name, "Nothing is left of an APIServiceBinding.");
            return written(context.writer.metadata(&binding).await, "APIServiceBinding", &name);
        }
        Next::Wait(why) => {
            return say(context, binding, BindingProblem::DrainBlocked { problem: why.clone() }, now).await;
        }
        Next::DeleteCopies(_) => Ok("the copies on the provider are being deleted".to_owned()),
        Next::ReleaseObjects(count) => {
            let count = *count;
            release_all(&held).await.map(|()| format!("{count} objects here are being released"))
        }
        Next::DeleteCrds(_) => {
            let owned = owned.present().map(Vec::as_slice).unwrap_or_default();
            delete_crds(context, &binding, owned)
                .await
                .map(|()| "its CustomResourceDefinitions are being deleted".to_owned())
        }
    };
    match done {
        Ok(progress) => say(context, binding, BindingProblem::Draining { progress }, now).await,
        Err(error) => say(context, binding, BindingProblem::DrainBlocked { problem: error }, now).await,
    }
}

/// The objects that our finalizer holds, each with who may let it go.
async fn all_held(context: &Context, crds: &[String]) -> Result<Vec<(Writer, Resource, Value)>, String> {
    let mut all = Vec::new();
    let Some(export) = &context.local.export else {
        for crd in context.local.crds(crds.iter().cloned()).await?.values() {
            let held = held::held(context.writer.client(), crd).await.map_err(|error| error.to_string())?;
            all.extend(held.into_iter().map(|(resource, object)| (context.writer.clone(), resource, object)));
        }
        return Ok(all);
    };
    if let Some(problem) = export.workspaces.problem() {
        return Err(problem);
    }
    for crd in context.local.crds(crds.iter().cloned()).await?.values() {
        for (_, client) in export.workspaces.endpoints() {
            for (resource, object) in held::held(&client, crd).await.map_err(|error| error.to_string())? {
                let cluster = object["metadata"]["annotations"][CLUSTER_ANNOTATION].as_str().unwrap_or_default();
                let client = export.workspaces.client(cluster);
                let client = client.ok_or_else(|| format!("workspace {cluster} cannot be reached"))?;
                all.push((context.writer.at(client), resource, object));
            }
        }
    }
    Ok(all)
}

/// Whether a binding still has objects here, or in some workspace.
pub(super) async fn has_objects(context: &Context, binding: &ApiServiceBinding) -> Result<bool, String> {
    let owned = match context.local.crds_of(binding) {
        Seen::Present(owned) => owned.into_iter().map(|(name, _)| name),
        Seen::Absent => return Ok(false),
        Seen::Unknown(why) => return Err(why),
    };
    let clients: Vec<_> = match &context.local.export {
        None => vec![context.writer.client().clone()],
        Some(export) => match export.workspaces.problem() {
            Some(problem) => return Err(problem),
            None => export.workspaces.endpoints().into_iter().map(|(_, client)| client).collect(),
        },
    };
    for crd in context.local.crds(owned).await?.values() {
        for client in &clients {
            if !held::all(client, crd).await.map_err(|error| error.to_string())?.is_empty() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

async fn release_all(held: &[(Writer, Resource, Value)]) -> Result<(), String> {
    for (writer, resource, object) in held {
        held::release(writer, resource, object).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

async fn delete_crds(context: &Context, binding: &ApiServiceBinding, owned: &[(String, String)]) -> Result<(), String> {
    if let Some(export) = &context.local.export {
        return export.withdraw(&context.writer, binding).await;
    }
    for (name, uid) in owned {
        context.writer.delete(&resources::crds(), name, uid).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Writes what is waited for into the conditions.
async fn say(context: &Context, mut binding: ApiServiceBinding, problem: BindingProblem, now: Timestamp) -> PassResult {
    let before = binding.status.clone();
    conditions::set(&mut binding.status.conditions, problem.condition(), now);
    conditions::summarize(&mut binding.status.conditions, now);
    let mut outcome = PassResult::after(LOOK_AGAIN);
    if binding.status != before {
        let name = binding.metadata.name.clone();
        outcome.add(written(context.writer.status(&binding).await, "APIServiceBinding", &name));
    }
    outcome
}
