//! What a PublishedResource with `spec.import` does about an object that it selects.

use serde_json::Value;

use super::link::marks;
use crate::api::{APPLIED_STATE, FIELD_MANAGER, IMPORTED, ON_DELETE, REMOTE_UID};
use crate::rules::metadata::{annotation, is_deleting};

/// What is to be done about an object that was selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportPolicy {
    /// It gets an order, or what is missing of that.
    Import,
    /// Nothing: it has its order, or had it.
    Leave,
    /// It is not imported, with the reason.
    Refused(&'static str),
}

/// What is to be done about an object as the service cluster has it, managed fields included. An object is imported once, and never because of
/// anything that a consumer has written: labels of orders reach their copies, and copies that were let go keep them.
pub fn policy(object: &Value) -> ImportPolicy {
    use ImportPolicy::{Import, Leave, Refused};
    let is_ours = annotation(object, IMPORTED).is_some();
    if is_deleting(object) {
        return Leave;
    }
    if marks(object).next().is_some() {
        // Linked by us, and the agent has not seen an order of it yet.
        let is_untouched = annotation(object, REMOTE_UID).is_none() && annotation(object, APPLIED_STATE).is_none();
        return if is_ours && is_untouched { Import } else { Leave };
    }
    if is_ours {
        return Leave;
    }
    if annotation(object, ON_DELETE).is_some() {
        return Refused(
            "its annotation syncagent.kcp.io/on-delete says that it was the copy of an order; remove that annotation, or use carrick import",
        );
    }
    if is_written_by_agents(object) {
        return Refused("it was the copy of an order, whose consumer may have written its labels; use carrick import");
    }
    Import
}

/// Whether an agent has written anything of an object but its own marks.
fn is_written_by_agents(object: &Value) -> bool {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let theirs = entries.filter(|entry| {
        let manager = entry["manager"].as_str().unwrap_or_default();
        entry["subresource"].as_str().unwrap_or_default().is_empty()
            && manager.strip_prefix(FIELD_MANAGER).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    theirs.flat_map(|entry| entry["fieldsV1"].as_object().into_iter().flatten()).any(|(field, below)| {
        if field != "f:metadata" {
            return field != "f:status";
        }
        let kept = ["f:labels", "f:annotations"].into_iter().filter_map(|field| below[field].as_object()).flatten();
        kept.into_iter().any(|(key, _)| key != "." && !key.starts_with("f:syncagent.kcp.io/"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::REMOTE_NAME;

    fn with(annotations: &Value) -> Value {
        json!({"metadata": {"name": "db", "labels": {"import": "yes"}, "annotations": annotations}})
    }

    #[test]
    fn an_object_is_imported_once_and_goes_on_where_that_was_stopped() {
        let mut going = with(&json!({}));
        going["metadata"]["deletionTimestamp"] = "now".into();
        for (object, wanted) in [
            (with(&json!({})), ImportPolicy::Import),
            (with(&json!({ IMPORTED: "t", REMOTE_NAME: "x" })), ImportPolicy::Import),
            (with(&json!({ IMPORTED: "t", REMOTE_NAME: "x", REMOTE_UID: "u" })), ImportPolicy::Leave),
            (with(&json!({ REMOTE_NAME: "x" })), ImportPolicy::Leave),
            // Its order has gone, or the import was taken back.
            (with(&json!({ IMPORTED: "t" })), ImportPolicy::Leave),
            (with(&json!({ IMPORTED: "t", ON_DELETE: "Keep" })), ImportPolicy::Leave),
            (going, ImportPolicy::Leave),
        ] {
            assert_eq!(policy(&object), wanted, "{object}");
        }
        assert!(matches!(policy(&with(&json!({ ON_DELETE: "Keep" }))), ImportPolicy::Refused(_)));
    }

    #[test]
    fn labels_that_came_from_an_order_import_nothing() {
        let written = |manager: &str, subresource: &str, fields: Value| {
            let mut object = with(&json!({}));
            object["metadata"]["managedFields"] =
                json!([{"manager": manager, "subresource": subresource, "fieldsV1": fields}]);
            policy(&object)
        };
        let label = json!({"f:metadata": {"f:labels": {".": {}, "f:import": {}}}});
        let spec = json!({"f:spec": {"f:size": {}}});
        for (manager, fields) in [("api-syncagent/a", &label), ("api-syncagent", &label), ("api-syncagent/b", &spec)] {
            assert!(matches!(written(manager, "", fields.clone()), ImportPolicy::Refused(_)), "{manager} {fields}");
        }
        let marks = json!({"f:metadata": {"f:labels": {"f:syncagent.kcp.io/agent-name": {}}, "f:annotations": {}}});
        for (manager, subresource, fields) in [
            ("kubectl", "", &label),
            ("api-syncagent-of-somebody", "", &label),
            ("api-syncagent/a", "", &marks),
            ("api-syncagent/a", "status", &json!({"f:status": {}})),
        ] {
            assert_eq!(written(manager, subresource, fields.clone()), ImportPolicy::Import, "{manager} {fields}");
        }
    }
}
