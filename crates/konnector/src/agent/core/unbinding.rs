//! Ends of bindings: copies, then finalizers, then CRDs that were installed for the Connection, then the binding. One that goes on with another Connection
//! lets go in the same way, and its CRDs stay for the other one.

use std::time::Duration;

use carrick_bind_api::core::conditions::{DRAINING, Finding, READY};
use carrick_bind_api::core::names::{
    BOUND_BY_ANNOTATION, CLEANUP_FINALIZER, DELETION_POLICY_ANNOTATION, ORPHAN, SYNCER_FINALIZER,
};
use carrick_bind_api::core::{PullPolicy, schema};
use carrick_bind_api::jiff::Timestamp;
use serde_json::Value;

use super::any_binding::AnyBinding;
use super::bindings::{Look, keeps_copies, write_crd};
use super::local::CoreLocal;
use super::session::ConnectionSession;
use crate::agent::contract::bundles::written;
use crate::agent::contract::held;
use crate::agent::contract::pace::PassResult;
use crate::agent::resources;
use crate::decide::core::connection::Progress;
use crate::decide::core::{binding, crd, moves};

/// CRDs go without a word to us.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

impl ConnectionSession {
    /// Goes one step further with a binding that lets go.
    pub async fn unbind(&self, found: &AnyBinding, look: &Look<'_>) -> PassResult {
        let Look { connection, state, crds, now } = look;
        let now = *now;
        if !found.metadata.has_finalizer(CLEANUP_FINALIZER) {
            return PassResult::default();
        }
        let Some(hub) = self.hub() else {
            let why = match &state.progress {
                Progress::Unreachable(why) | Progress::Forbidden(why) | Progress::NoSecret(why) => why.clone(),
                Progress::OtherCluster { .. } => "the kubeconfig leads to another cluster than before".to_owned(),
                Progress::Ready | Progress::Draining(_) => "the provider is not known yet".to_owned(),
            };
            return without_provider(&self.local, found, &why, now).await;
        };
        let unneeded = unneeded(&self.local, found, |_| true);
        for name in binding::names(&found.spec.apis) {
            let Some(crd) = crds.get(name).filter(|crd| has_objects(&self.local, found, crd)) else { continue };
            let waits = if hub.wanted().contains_key(name) {
                hub.held(name, found.namespace())
            } else {
                match held_objects(&self.local, crd, found.namespace()).await {
                    Ok(held) if held.is_empty() => None,
                    Ok(held) => Some(format!(
                        "{} object(s) of {name}, whose CustomResourceDefinition is not the provider's any more",
                        held.len()
                    )),
                    Err(error) => Some(error),
                }
            };
            if let Some(waits) = waits {
                return say(&self.local, found, &waits, now).await;
            }
        }
        if !keeps_copies(found)
            && let Some(waits) = hub.left(found, None)
        {
            return say(&self.local, found, &waits, now).await;
        }
        if !found.metadata.is_deleting() {
            // What has begun before the binding let go may still be written.
            if let Some(busy) = binding::names(&found.spec.apis).into_iter().find(|name| hub.is_busy(name)) {
                return say(&self.local, found, &format!("objects of {busy} are being decided about"), now).await;
            }
            return hand_over(&self.local, found).await;
        }
        if found.namespace().is_none() && connection.spec.schema.pull_policy != PullPolicy::All && !keeps_copies(found)
        {
            for name in &unneeded {
                let Some(crd) = crds.get(name).filter(|crd| crd::is_ours(crd, &self.name)) else { continue };
                let uid = crd["metadata"]["uid"].as_str().unwrap_or_default();
                let deleted = self.local.context.writer.delete(&resources::crds(), name, uid).await;
                return match deleted {
                    Ok(()) => {
                        say(&self.local, found, &format!("CustomResourceDefinition {name} is being deleted"), now).await
                    }
                    Err(error) => fail(&self.local, found, &error.to_string(), now).await,
                };
            }
        }
        finish(&self.local, found).await
    }

    /// Takes a CRD over that was installed for another Connection, unless objects are held for copies there.
    pub async fn inherit(&self, crd: &Value) -> Option<String> {
        match held_objects(&self.local, crd, None).await {
            Ok(held) if held.is_empty() => {
                write_crd(&self.local.context.writer, Some(&crd::handed_over(crd, &self.name))).await
            }
            held => held.err(),
        }
    }
}

/// Writes what a binding waits for.
async fn say(local: &CoreLocal, found: &AnyBinding, waits: &str, now: Timestamp) -> PassResult {
    let finding = Finding::no(READY, DRAINING, format!("waiting: {waits}"));
    let mut outcome = PassResult::after(LOOK_AGAIN);
    outcome.add(found.report(&local.context.writer, &[finding], None, now).await);
    outcome
}

/// The same for what has failed.
async fn fail(local: &CoreLocal, found: &AnyBinding, why: &str, now: Timestamp) -> PassResult {
    let mut outcome = say(local, found, why, now).await;
    outcome.add(PassResult::failure());
    outcome
}

/// Takes our finalizer off a binding of which nothing is left.
async fn finish(local: &CoreLocal, found: &AnyBinding) -> PassResult {
    let mut new = found.clone();
    new.metadata.remove_finalizer(CLEANUP_FINALIZER);
    tracing::info!(binding = found.key(), "Nothing is left of a binding.");
    written(new.write_metadata(&local.context.writer).await, "binding", &found.key())
}

/// Gives a binding of which nothing is left to the Connection that it names.
async fn hand_over(local: &CoreLocal, found: &AnyBinding) -> PassResult {
    let (from, to, mut new) = (found.connection(), found.named(), found.clone());
    new.metadata.annotate(BOUND_BY_ANNOTATION, moves::mark(to, &found.metadata));
    tracing::info!(binding = found.key(), from, to, "A binding goes on with another Connection.");
    written(new.write_metadata(&local.context.writer).await, "binding", &found.key())
}

/// Goes one step further with a binding whose provider cannot be reached: whoever gives its copies up says so.
pub(super) async fn without_provider(local: &CoreLocal, found: &AnyBinding, why: &str, now: Timestamp) -> PassResult {
    if !found.metadata.has_finalizer(CLEANUP_FINALIZER) {
        return PassResult::default();
    }
    if keeps_copies(found) {
        return release(local, found, now).await;
    }
    let words = format!(
        "the copies on the provider cannot be deleted: {why}; to leave them there, annotate this binding with \
         {DELETION_POLICY_ANNOTATION}={ORPHAN}"
    );
    say(local, found, &words, now).await
}

/// Lets the objects of a binding go without their copies, and then the binding. CRDs stay, and with them the objects.
async fn release(local: &CoreLocal, found: &AnyBinding, now: Timestamp) -> PassResult {
    // What bindings of other Connections list is not held for them.
    let is_own = |other: &AnyBinding| other.connection() == found.connection();
    let crds = match local.context.local.crds(unneeded(local, found, is_own)).await {
        Ok(crds) => crds,
        Err(error) => return say(local, found, &error, now).await,
    };
    for crd in crds.values().filter(|crd| has_objects(local, found, crd)) {
        if let Err(error) = release_objects(local, crd, found.namespace()).await {
            return fail(local, found, &error, now).await;
        }
    }
    if found.metadata.is_deleting() { finish(local, found).await } else { hand_over(local, found).await }
}

/// The APIs of a binding that no other living one lists, of those that count.
fn unneeded(local: &CoreLocal, found: &AnyBinding, counts: impl Fn(&AnyBinding) -> bool) -> Vec<String> {
    let living = local.all_bindings();
    let is_other = |other: &&AnyBinding| other.key() != found.key() && !other.metadata.is_deleting() && counts(other);
    let mut names = binding::names(&found.spec.apis);
    names.retain(|name| !living.iter().filter(is_other).any(|other| other.lists(name)));
    names.into_iter().map(str::to_owned).collect()
}

/// Whether objects of a CRD can be held for a binding: those of another Connection, or of 0.8, are no business of its end.
fn has_objects(local: &CoreLocal, found: &AnyBinding, crd: &Value) -> bool {
    crd::may_hold(crd, found.connection()) && local.ahead(found, schema::name(crd), Some(crd)).is_none()
}

async fn release_objects(local: &CoreLocal, crd: &Value, namespace: Option<&str>) -> Result<(), String> {
    for (resource, object) in held_objects(local, crd, namespace).await? {
        let released = held::release_of(&local.context.writer, &resource, &object, SYNCER_FINALIZER).await;
        released.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The objects of a CRD that are held for copies.
async fn held_objects(
    local: &CoreLocal,
    crd: &Value,
    namespace: Option<&str>,
) -> Result<Vec<(carrick_client::Resource, Value)>, String> {
    let held = held::held_by(&local.context.local.client, crd, SYNCER_FINALIZER).await;
    let mut held = held.map_err(|error| format!("the objects here could not be read: {error}"))?;
    held.retain(|(_, object)| namespace.is_none_or(|namespace| object["metadata"]["namespace"] == namespace));
    Ok(held)
}

/// Looks at bindings whose Connection is not there: they wait for it, or go without it.
pub(super) async fn unconnected(local: &CoreLocal) -> PassResult {
    let now = Timestamp::now();
    let mut outcome = PassResult::default();
    let connections = local.connections();
    for found in local.all_bindings() {
        if connections.iter().any(|connection| connection.metadata.name == found.connection()) {
            continue;
        }
        outcome.add(if local.lets_go(&found) {
            if !found.metadata.has_finalizer(CLEANUP_FINALIZER) {
                continue;
            }
            release(local, &found, now).await
        } else {
            found.report(&local.context.writer, &[found.waiting(false)], None, now).await
        });
    }
    outcome
}
