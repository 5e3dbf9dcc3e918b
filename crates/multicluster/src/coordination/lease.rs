//! Leases of one namespace, and what all users of Leases need.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use carrick_client::{Client, DeleteOptions, Error, Resource};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The Leases of one namespace.
#[derive(Clone, Debug)]
pub(super) struct Leases {
    pub(super) client: Client,
    pub(super) resource: Resource,
    pub(super) namespace: Arc<str>,
}

impl Leases {
    /// The Leases of the client's default namespace.
    pub(super) fn new(client: Client) -> Self {
        let resource = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
        let namespace = client.default_namespace().into();
        Self { client, resource, namespace }
    }

    pub(super) async fn get(&self, name: &str) -> Result<Option<Value>, Error> {
        self.client.get(&self.resource, Some(&self.namespace), name).await
    }

    pub(super) async fn create(&self, name: &str, mut lease: Value) -> Result<Value, Error> {
        lease["apiVersion"] = json!("coordination.k8s.io/v1");
        lease["kind"] = json!("Lease");
        lease["metadata"]["name"] = json!(name);
        lease["metadata"]["namespace"] = json!(*self.namespace);
        self.client.create(&self.resource, Some(&self.namespace), &lease).await
    }

    pub(super) async fn replace(&self, lease: &Value) -> Result<Value, Error> {
        self.client.replace(&self.resource, Some(&self.namespace), lease).await
    }

    /// Changes a Lease; with a version, only if it still has it.
    pub(super) async fn patch(&self, name: &str, version: Option<u64>, mut patch: Value) -> Result<Value, Error> {
        if let Some(version) = version {
            patch["metadata"]["resourceVersion"] = json!(version.to_string());
        }
        self.client.merge_patch(&self.resource, Some(&self.namespace), name, &patch).await
    }

    /// Deletes a Lease; with a version, only if it still has it.
    pub(super) async fn delete(&self, name: &str, version: Option<u64>) -> Result<(), Error> {
        let resource_version = version.map(|version| version.to_string());
        let options = DeleteOptions { resource_version, ..DeleteOptions::default() };
        self.client.delete(&self.resource, Some(&self.namespace), name, &options).await
    }
}

/// Who has the Lease; empty if nobody.
pub(super) fn holder(lease: &Value) -> &str {
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default()
}

/// After which time without change the Lease counts as given up.
pub(super) fn duration(lease: &Value) -> Option<Duration> {
    lease["spec"]["leaseDurationSeconds"].as_u64().map(|seconds| whole_seconds(Duration::from_secs(seconds)))
}

/// A duration as a Lease can hold it: at least a second, at most what fits into 32 bits.
pub(super) fn whole_seconds(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs().clamp(1, i32::MAX.unsigned_abs().into()))
}

/// The version of the object. API servers number their changes, so that a later one is a larger number.
pub(super) fn version(lease: &Value) -> u64 {
    lease["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// Now, as Leases write it. For people only: clocks of other machines are never trusted.
pub(super) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// The name of this machine, or of this pod.
pub(super) fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.trim() {
        "" => "localhost".to_owned(),
        host => host.to_owned(),
    }
}

/// A deadline after which nothing may be begun. It can be extended. Everybody checks it before they begin, so a process that was suspended for a
/// while cannot go on with what others have taken over meanwhile.
#[derive(Debug)]
pub(super) struct Deadline {
    start: Instant,
    /// Milliseconds after the start.
    end: AtomicU64,
}

impl Deadline {
    pub(super) fn at(end: Instant) -> Self {
        let deadline = Self { start: Instant::now(), end: AtomicU64::new(0) };
        deadline.put_off(end);
        deadline
    }

    pub(super) fn put_off(&self, end: Instant) {
        let millis = end.saturating_duration_since(self.start).as_millis();
        self.end.store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn is_ahead(&self) -> bool {
        self.start.elapsed() < Duration::from_millis(self.end.load(Ordering::Relaxed))
    }
}
