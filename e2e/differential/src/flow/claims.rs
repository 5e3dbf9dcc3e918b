//! Whether controllers are done with a binding. Those of kcp write to every object of every claimed kind before they report, which may take long.

use carrick_e2e_stage::stage::condition;
use serde_json::Value;

const KEPT: &str = "apis.v1alpha2.kcp.io";

/// Whether the claims in force of a binding are those that are accepted and exported; of anything else there are none.
pub(super) fn are_applied(binding: &Value) -> bool {
    let status = &binding["status"];
    if binding["kind"] != "APIBinding"
        || !binding["metadata"]["deletionTimestamp"].is_null()
        || status["phase"] != "Bound"
        || condition(binding, "APIExportValid")["status"] != "True"
    {
        return true;
    }
    let exported: Vec<[&str; 3]> = list(&status["exportPermissionClaims"]).map(key).collect();
    let wanted = |claims: &[Value]| -> Vec<Value> {
        let accepted = claims.iter().filter(|claim| claim["state"] == "Accepted" && exported.contains(&key(claim)));
        accepted.map(essence).collect()
    };
    let accepted: Vec<Value> = list(&binding["spec"]["permissionClaims"]).cloned().collect();
    let applied: Vec<Value> = list(&status["appliedPermissionClaims"]).map(essence).collect();
    let kept = |name: &str| -> Vec<Value> {
        let text = binding["metadata"]["annotations"][format!("{KEPT}/{name}")].as_str();
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    // What v1alpha1 cannot say is in annotations.
    let (kept_accepted, kept_applied) =
        (kept("acceptable-permission-claims"), kept("status-applied-permission-claims"));
    sorted(wanted(&accepted)) == sorted(applied)
        && sorted(wanted(&kept_accepted)) == sorted(kept_applied.iter().map(essence).collect())
}

/// Whether a binding waits for another schema to be served, which kcp begins with only five seconds after it has heard of it.
pub(super) fn are_awaited(binding: &Value) -> bool {
    binding["kind"] == "APIBinding"
        && binding["metadata"]["deletionTimestamp"].is_null()
        && condition(binding, "BindingUpToDate")["reason"] == "WaitingForEstablished"
}

/// Whether controllers have looked at a binding or a slice at all.
pub(super) fn are_seen(object: &Value) -> bool {
    !matches!(object["kind"].as_str(), Some("APIBinding" | "APIExportEndpointSlice"))
        || list(&object["status"]["conditions"]).next().is_some()
}

/// Whether the controller of endpoint slices has found the export that a slice was made for.
pub(super) fn are_found(slice: &Value) -> bool {
    slice["kind"] != "APIExportEndpointSlice"
        || slice["metadata"]["name"] != slice["spec"]["export"]["name"]
        || condition(slice, "APIExportValid")["status"] == "True"
}

/// Whether a binding that is being deleted may stay: a controller always tells why.
pub(super) fn may_stay(binding: &Value) -> bool {
    binding["metadata"]["deletionTimestamp"].is_null()
        || !condition(binding, "BindingResourceDeleteSuccess")["status"].is_null()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn key(claim: &Value) -> [&str; 3] {
    ["group", "resource", "identityHash"].map(|field| claim[field].as_str().unwrap_or_default())
}

/// A claim without the decision about it, and without empty fields.
fn essence(claim: &Value) -> Value {
    let mut claim = claim.clone();
    if let Some(map) = claim.as_object_mut() {
        map.retain(|field, value| field != "state" && *value != "");
    }
    claim
}

fn sorted(mut claims: Vec<Value>) -> Vec<Value> {
    claims.sort_by_key(ToString::to_string);
    claims
}
