//! CRDs: defaults, checks, and their conditions, which are set at once.

use serde_json::{Value, json};

use super::super::base::Api;
use super::names;
use crate::definition;
use crate::resource::Origin;
use crate::schema::Schema;
use crate::status::Cause;
use crate::time::now;

/// Holds a CRD until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The condition that says whether a kind in one of Kubernetes' own groups is approved.
const APPROVAL: &str = "KubernetesAPIApprovalPolicyConformant";

/// Computes the status.
pub(super) fn prepare(api: &Api, cluster: &str, crd: &mut Value, old: Option<&Value>) {
    crd["status"] = status(api, cluster, crd, old);
    crd["status"]["storedVersions"] = definition::stored_versions(crd, old);
}

fn status(api: &Api, cluster: &str, crd: &Value, old: Option<&Value>) -> Value {
    let empty = json!({});
    let before = old.map_or(&empty, |old| &old["status"]);
    let others = api.resources(cluster);
    let conflict = names::conflict(crd, &others);
    let was_established = is_true(before, "Established");
    let (names_accepted, established) = match &conflict {
        None => (
            ("True", "NoConflicts", "no conflicts found".to_owned()),
            ("True", "InitialNamesAccepted", "the initial names have been accepted".to_owned()),
        ),
        Some((reason, message)) => (
            ("False", *reason, message.clone()),
            if was_established {
                ("True", "InitialNamesAccepted", "the initial names have been accepted".to_owned())
            } else {
                ("False", "NotAccepted", "not all names are accepted".to_owned())
            },
        ),
    };
    let mut conditions =
        vec![condition(before, "NamesAccepted", &names_accepted), condition(before, "Established", &established)];
    let kept = before["conditions"].as_array().into_iter().flatten();
    let approval = definition::approval_condition(crd);
    let approval = approval.map(|found| condition(before, APPROVAL, &found));
    let foreign = |one: &&Value| {
        let kind = one["type"].as_str().unwrap_or_default();
        !(matches!(kind, "NamesAccepted" | "Established") || kind == APPROVAL && approval.is_some())
    };
    conditions.extend(kept.filter(foreign).cloned());
    conditions.extend(approval);
    let accepted = if conflict.is_none() { crd["spec"]["names"].clone() } else { before["acceptedNames"].clone() };
    let accepted = if accepted.is_object() { accepted } else { json!({"kind": "", "plural": ""}) };
    json!({"acceptedNames": accepted, "conditions": conditions})
}

fn is_true(status: &Value, kind: &str) -> bool {
    let conditions = status["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|one| one["type"] == kind && one["status"] == "True"))
}

fn condition(before: &Value, kind: &str, (status, reason, message): &(&str, &str, String)) -> Value {
    let old = before["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == kind);
    let time = match old {
        Some(old) if old["status"] == *status => old["lastTransitionTime"].clone(),
        _ => now().into(),
    };
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time})
}

/// Everything wrong with a CRD.
pub(super) fn validate(api: &Api, cluster: &str, crd: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = definition::faults(crd, old);
    let (group, plural) = (&crd["spec"]["group"], &crd["spec"]["names"]["plural"]);
    let taken = api.resources(cluster).iter().any(|other| {
        *group == *other.group && *plural == *other.plural && matches!(other.origin, Origin::Builtin | Origin::System)
    });
    if taken {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        causes.push(Cause::forbidden("spec.names.plural", &format!("{name} is served by the control plane itself")));
    }
    if causes.is_empty() {
        let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        let refused = versions.filter_map(|version| Schema::compile(&version["schema"]["openAPIV3Schema"]).err());
        causes.extend(
            refused.map(|error| Cause::new(error.reason, &format!("spec.validation.{}", error.field), error.message)),
        );
    }
    causes
}
