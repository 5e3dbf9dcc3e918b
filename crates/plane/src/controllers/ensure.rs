//! Objects that a plane creates itself.

use tracing::warn;

use crate::api::{Api, WriteOptions};
use crate::caller::Caller;

/// Creates an object for the plane itself; an existing one is fine.
pub(super) fn ensure(api: &Api, cluster: &str, namespace: &str, plural: &str, object: serde_json::Value) {
    let Some(scope) = api.scope(cluster, "", plural) else { return };
    let result = api.create(&Caller::system(), &scope.in_namespace(namespace), object, &WriteOptions::default());
    // A namespace that has just been deleted needs nothing any more.
    if let Err(status) = result
        && !matches!(status.reason.as_str(), "AlreadyExists" | "NotFound")
    {
        warn!(error = %status, cluster, namespace, plural, "cannot create a default object");
    }
}
