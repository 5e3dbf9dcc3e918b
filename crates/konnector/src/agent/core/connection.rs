//! One Connection: with a Secret that can be used it has a session, otherwise it says why it has none.

use std::sync::Arc;

use carrick_bind_api::core::conditions;
use carrick_bind_api::core::names::CLEANUP_FINALIZER;
use carrick_bind_api::core::{CLUSTER_BINDING, Connection};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::secret;
use carrick_client::InlineKubeconfig;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::any_binding::AnyBinding;
use super::local::CoreLocal;
use super::session::ConnectionSession;
use super::unbinding;
use crate::agent::contract::bundles::written;
use crate::agent::contract::pace::{Pace, PassResult};
use crate::agent::contract::{held, wait};
use crate::agent::resources;
use crate::decide::Seen;
use crate::decide::core::autobind;
use crate::decide::core::connection::{Progress, findings};

/// Runs a Connection until told to stop.
pub(super) async fn run(local: Arc<CoreLocal>, name: String, stop: CancellationToken) {
    let mut changes = local.notifier.subscribe();
    let mut pace = Pace::default();
    while !stop.is_cancelled() {
        let Some(connection) = local.connection(&name) else { return };
        let opened = kubeconfig(&local, &connection).and_then(|found| {
            carrick_client::Server::from_inline(&found).map(|it| (found, it)).map_err(|it| it.to_string())
        });
        let again = match opened {
            Ok((kubeconfig, server)) => {
                ConnectionSession::new(Arc::clone(&local), &connection, kubeconfig, &server).run(stop.clone()).await;
                continue;
            }
            // Nothing is known yet: the watch has only just begun.
            Err(_) if is_pending(&local, &connection) => None,
            Err(problem) => pace.next(offline(&local, &connection, &problem).await),
        };
        wait(&mut changes, &stop, again).await;
    }
}

/// The kubeconfig of a Connection, or why there is none, without a word of its content.
pub(super) fn kubeconfig(local: &CoreLocal, connection: &Connection) -> Result<InlineKubeconfig, String> {
    let at = connection.secret();
    if let Some(refused) = local.refused_namespace(&at) {
        return Err(refused);
    }
    let shown = format!("{}/{}", at.namespace, at.name);
    let found = match local.secrets.get(&at) {
        Seen::Present(found) => found,
        Seen::Absent => return Err(format!("getting kubeconfig secret {shown}: it does not exist")),
        Seen::Unknown(why) => return Err(format!("getting kubeconfig secret {shown}: {why}")),
    };
    let text = match found["data"].get(&at.key) {
        None => return Err(format!("kubeconfig secret {shown} has no key {:?}", at.key)),
        Some(Value::String(text)) if text.is_empty() => {
            return Err(format!("kubeconfig secret {shown} key {:?} is empty", at.key));
        }
        Some(_) => secret::text(Some(&found), &at).map_err(|error| error.to_string())?,
    };
    InlineKubeconfig::parse(&text).map_err(|refused| format!("parsing kubeconfig: {refused}"))
}

fn is_pending(local: &CoreLocal, connection: &Connection) -> bool {
    let at = connection.secret();
    local.refused_namespace(&at).is_none() && local.secrets.is_pending(&at)
}

/// Says why a Connection has no session, and goes on with what ends without one.
async fn offline(local: &CoreLocal, connection: &Connection, problem: &str) -> PassResult {
    let now = Timestamp::now();
    let mut outcome = PassResult::default();
    for found in local.bindings_of(&connection.metadata.name) {
        outcome.add(if local.lets_go(&found) {
            unbinding::without_provider(local, &found, problem, now).await
        } else {
            found.report(&local.context.writer, &[found.waiting(true)], None, now).await
        });
    }
    if connection.metadata.is_deleting() {
        outcome.add(end(local, connection, now).await);
        return outcome;
    }
    if let Some(held) = hold(local, connection).await {
        outcome.add(held);
        return outcome;
    }
    outcome.add(report(local, connection, &Progress::NoSecret(problem.to_owned()), |_| {}, now).await);
    outcome
}

/// Writes what is known about a Connection, if that is new.
pub(super) async fn report(
    local: &CoreLocal,
    connection: &Connection,
    progress: &Progress,
    change: impl FnOnce(&mut Connection),
    now: Timestamp,
) -> PassResult {
    let mut new = connection.clone();
    change(&mut new);
    for finding in findings(progress) {
        conditions::set(&mut new.status.conditions, &finding, new.metadata.generation, now);
    }
    if new == *connection {
        return PassResult::default();
    }
    written(local.context.writer.status(&new).await, "Connection", &connection.metadata.name)
}

/// Puts the finalizer on the Secret and on the Connection; none if both have it.
pub(super) async fn hold(local: &CoreLocal, connection: &Connection) -> Option<PassResult> {
    let at = connection.secret();
    if local.refused_namespace(&at).is_none()
        && let Seen::Present(found) = local.secrets.get(&at)
        && found["metadata"]["deletionTimestamp"].is_null()
        && !held::is_held_by(&found, CLEANUP_FINALIZER)
    {
        let mut finalizers = found["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        finalizers.push(json!(CLEANUP_FINALIZER));
        let result = local.context.writer.finalizers(&resources::secrets(), &found, &finalizers).await;
        return Some(written(result, "Secret", &at.name));
    }
    if connection.metadata.has_finalizer(CLEANUP_FINALIZER) {
        return None;
    }
    let mut new = connection.clone();
    new.metadata.add_finalizer(CLEANUP_FINALIZER);
    Some(written(local.context.writer.metadata(&new).await, "Connection", &connection.metadata.name))
}

/// Goes one step further with a Connection that is being deleted: bindings first, then the Secret is let go, then the Connection.
pub(super) async fn end(local: &CoreLocal, connection: &Connection, now: Timestamp) -> PassResult {
    let (writer, name) = (&local.context.writer, &connection.metadata.name);
    if !connection.metadata.has_finalizer(CLEANUP_FINALIZER) {
        return PassResult::default();
    }
    let bindings = local.bindings_of(name);
    if !bindings.is_empty() || local.unknown_bindings().is_some() {
        let is_automatic = |it: &&AnyBinding| {
            it.namespace().is_none() && autobind::is_automatic(it, connection) && !it.metadata.is_deleting()
        };
        for it in bindings.iter().filter(is_automatic) {
            let deleted = writer.delete(&resources::of(CLUSTER_BINDING), &it.metadata.name, &it.metadata.uid).await;
            if written(deleted, "ClusterBinding", name).failed {
                return PassResult::failure();
            }
        }
        return report(local, connection, &Progress::Draining(bindings.len()), |_| {}, now).await;
    }
    let at = connection.secret();
    let others = local.connections();
    let mut others = others.iter().filter(|it| it.metadata.name != *name && !it.metadata.is_deleting());
    let is_shared =
        others.any(|it| (it.secret().namespace, it.secret().name) == (at.namespace.clone(), at.name.clone()));
    if let Seen::Present(found) = local.secrets.get(&at)
        && !is_shared
        && held::is_held_by(&found, CLEANUP_FINALIZER)
    {
        let released = held::release_of(writer, &resources::secrets(), &found, CLEANUP_FINALIZER).await;
        return written(released, "Secret", &at.name);
    }
    let mut new = connection.clone();
    new.metadata.remove_finalizer(CLEANUP_FINALIZER);
    tracing::info!(connection = name, "Nothing is left of a Connection.");
    written(writer.metadata(&new).await, "Connection", name)
}
