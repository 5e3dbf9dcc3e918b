//! The Lease on the provider: by it a provider knows that a konnector is there.
//!
//! There are two spellings. rc4 has one Lease for all Connections of a cluster, in namespace `kbind`; later versions have one per Connection, in the
//! namespace of the kubeconfig's context. Both annotations are always written: readers such as Platform Mesh's find a Lease by them and not by name.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::names::{CONNECTION_ANNOTATION, CONSUMER_CLUSTER_UID, MANAGED_LABEL};

/// The namespace of Leases if the kubeconfig names none.
pub const NAMESPACE: &str = "kbind";
/// How long a Lease is valid, in seconds.
pub const DURATION_SECONDS: i64 = 60;
/// How often it is renewed, in seconds: whoever waits half its duration sees it.
pub const RENEWAL_SECONDS: u64 = 20;

/// Namespace and name of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasePlace {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Where the Lease of a Connection is. The spelling of rc4 is for the first Connection of a cluster to a provider, and only if its kubeconfig names no
/// namespace: two Connections would overwrite each other's annotation.
pub fn place(context_namespace: Option<&str>, connection: &str, local_uid: &str, is_first: bool) -> LeasePlace {
    let short: String = local_uid.chars().take(10).collect();
    match context_namespace {
        None if is_first => LeasePlace { namespace: NAMESPACE.to_owned(), name: format!("consumer-{local_uid}") },
        namespace => {
            LeasePlace { namespace: namespace.unwrap_or(NAMESPACE).to_owned(), name: format!("{connection}-{short}") }
        }
    }
}

/// A Lease as it is created or renewed, given the one that is there.
pub fn renewed(there: Option<&Value>, at: &LeasePlace, connection: &str, local_uid: &str, now: Timestamp) -> Value {
    let time = now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let mut lease = there.cloned().unwrap_or_else(|| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": at.namespace, "name": at.name}, "spec": {"acquireTime": time}})
    });
    lease["metadata"]["labels"][MANAGED_LABEL] = json!("true");
    lease["metadata"]["annotations"][CONSUMER_CLUSTER_UID] = json!(local_uid);
    lease["metadata"]["annotations"][CONNECTION_ANNOTATION] = json!(connection);
    lease["spec"]["holderIdentity"] = json!(local_uid);
    lease["spec"]["leaseDurationSeconds"] = json!(DURATION_SECONDS);
    lease["spec"]["renewTime"] = json!(time);
    lease
}
