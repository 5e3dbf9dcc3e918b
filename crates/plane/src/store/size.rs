//! Size limits: requests that etcd, behind real servers, would refuse are refused here too.

use serde_json::Value;

use super::key::Key;

/// etcd's default limit for a request, in bytes.
pub(super) const LARGEST: usize = 1536 * 1024;

/// What a request has besides key and content: comparisons, a lease, headers. Measured, not computed.
const FRAME: usize = 150;

/// The size of the request that stores an object; `text` is its JSON.
pub(super) fn of_request(key: &Key, object: &Value, text: &str) -> usize {
    let place = key.kind.group.len() + key.kind.resource.len() + key.cluster.len() + key.namespace.len();
    let whole = FRAME + place + key.name.len() + text.len();
    if whole <= LARGEST {
        return whole;
    }
    // Kubernetes' own kinds are stored in a form with raw bytes instead of base64.
    let bytes = match (&*key.kind.group, &*key.kind.resource) {
        ("", "secrets") => "data",
        ("", "configmaps") => "binaryData",
        _ => return whole,
    };
    let encoded = object[bytes].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
    whole - encoded.map(|text| text.len() / 4).sum::<usize>()
}
