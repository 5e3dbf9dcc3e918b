//! The Lease on the provider: one request every twenty seconds, and the only one at rest.

use std::time::Duration;

use carrick_bind_api::core::lease::{self, LeasePlace, RENEWAL_SECONDS};
use carrick_bind_api::core::names::MANAGED_LABEL;
use carrick_bind_api::jiff::Timestamp;
use carrick_client::{Error, Resource};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::agent::resources;
use crate::agent::writer::Writer;

/// The heartbeat of one Connection.
#[derive(Default)]
pub(super) struct Heartbeat {
    last: Option<Instant>,
    /// The Lease as it was written last, so that it need not be read.
    there: Option<(LeasePlace, Value)>,
}

fn leases() -> Resource {
    Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases")
}

impl Heartbeat {
    /// How long it is until the next one.
    pub fn due_in(&self) -> Duration {
        let interval = Duration::from_secs(RENEWAL_SECONDS);
        self.last.map_or(Duration::ZERO, |last| interval.saturating_sub(last.elapsed()))
    }

    /// Renews the Lease if it is time. What goes wrong is logged and changes nothing: the provider will notice.
    pub async fn beat(&mut self, writer: &Writer, at: LeasePlace, connection: &str, uid: &str, now: Timestamp) {
        if !self.due_in().is_zero() && self.there.as_ref().is_none_or(|(place, _)| *place == at) {
            return;
        }
        self.last = Some(Instant::now());
        let known = self.there.take().filter(|(place, _)| *place == at).map(|(_, lease)| lease);
        match renew(writer, known, &at, connection, uid, now).await {
            Ok(lease) => self.there = Some((at, lease)),
            Err(error) => tracing::info!(connection, %error, "The Lease on the provider could not be renewed."),
        }
    }
}

async fn renew(
    writer: &Writer,
    known: Option<Value>,
    at: &LeasePlace,
    connection: &str,
    uid: &str,
    now: Timestamp,
) -> Result<Value, Error> {
    let (client, kind, namespace) = (writer.client(), leases(), Some(at.namespace.as_str()));
    if let Some(known) = known {
        match client.replace(&kind, namespace, &lease::renewed(Some(&known), at, connection, uid, now)).await {
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            written => return written,
        }
    }
    let there = client.get(&kind, namespace, &at.name).await?;
    let wanted = lease::renewed(there.as_ref(), at, connection, uid, now);
    if there.is_some() {
        return client.replace(&kind, namespace, &wanted).await;
    }
    match client.create(&kind, namespace, &wanted).await {
        Err(error) if error.is_not_found() => {}
        created => return created,
    }
    let namespace_object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": at.namespace, "labels": {MANAGED_LABEL: "true"}}});
    // Without the right to make it somebody else has to.
    let _ = writer.create(&resources::namespaces(), &namespace_object).await;
    client.create(&kind, namespace, &wanted).await
}
