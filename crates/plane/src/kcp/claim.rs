//! Permission claims: what a provider may see and do in a consumer's workspace.
//!
//! Every object that an accepted claim covers carries a label for the export; the export's virtual workspace shows exactly
//! the labelled objects. Admission sets the labels on each write, the controller on everything else.

use std::collections::BTreeMap;

use carrick_go::labels::{Requirement, Selector};
use carrick_kcp::apis::v1alpha2::{AcceptablePermissionClaim, PermissionClaim, ScopedPermissionClaim};
use carrick_kcp::condition::{Condition, Severity};
use carrick_kcp::hash::reflexive_claim_hash;
use carrick_kcp::names::EXPORT_LABEL;
use carrick_kcp::names::conditions::PERMISSION_CLAIMS_VALID;
use serde_json::{Value, json};

use super::data::{BINDINGS, Data, EXPORTS};
use super::object::{child, items, label, text};
pub use super::subject::Subject;
use crate::store::{Key, Kind};

const PREFIX: &str = carrick_kcp::CLAIM_LABEL_PREFIX;
const SHOWN: usize = 10;
const MISMATCHES_SHOWN: usize = 5;

/// The label key for an export's hash.
pub fn label_key(export_hash: &str) -> String {
    format!("{PREFIX}{export_hash}")
}

/// Whether a claim's selector covers an object with these labels.
pub fn selects(selector: &Value, object: &Value) -> bool {
    if selector["matchAll"] == true {
        return true;
    }
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| Some(Requirement::equals(key, value.as_str()?)));
    let expressions = items(selector, "/matchExpressions").iter().map(|expression| {
        let values = items(expression, "/values").iter().filter_map(Value::as_str).map(str::to_owned);
        Requirement::expression(text(expression, "/key"), text(expression, "/operator"), values.collect())
    });
    let compiled: Option<Selector> = labels.chain(expressions).collect();
    compiled.is_some_and(|selector| !selector.is_empty() && selector.matches(|key| label(object, key)))
}

/// The claim labels that an object of `kind` in a cluster has to carry.
pub fn wanted(data: &Data, cluster: &str, kind: &Kind, object: &Value) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    // kcp looks for the binding as it is stored, and for its export: a new one gets the label a moment later.
    if *kind == *BINDINGS
        && data.store.has(&Key::new(&BINDINGS, cluster, "", super::object::name(object)))
        && has_export(data, cluster, reference(object))
        && let Some(hash) = label(object, EXPORT_LABEL)
    {
        labels.insert(label_key(hash), reflexive_claim_hash());
    }
    for (_, bound) in data.bindings.in_cluster(&data.store, cluster) {
        let Some(hash) = &bound.export_hash else { continue };
        for (subject, selector) in &bound.granted {
            if subject.covers(kind)
                && selects(selector, object)
                && has_export(data, cluster, (&bound.path, &bound.export))
            {
                labels.insert(label_key(hash), subject.hash());
            }
        }
    }
    labels
}

/// Path and name of the export that a binding refers to.
fn reference(binding: &Value) -> (&str, &str) {
    (text(binding, "/spec/reference/export/path"), text(binding, "/spec/reference/export/name"))
}

/// Whether the export that a binding in a cluster refers to exists.
fn has_export(data: &Data, cluster: &str, (path, name): (&str, &str)) -> bool {
    let home = if path.is_empty() { Some(cluster.into()) } else { data.resolve(path) };
    home.is_some_and(|home| data.store.has(&Key::new(&EXPORTS, &home, "", name)))
}

/// The claim labels that an object carries.
pub fn present(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    labels
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.starts_with(PREFIX))
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// Puts exactly these claim labels on an object, and removes all others.
pub fn mark(object: &mut Value, wanted: &BTreeMap<String, String>) {
    if present(object) == *wanted {
        return;
    }
    let labels = child(object, &["metadata", "labels"]);
    labels.retain(|key, _| !key.starts_with(PREFIX));
    labels.extend(wanted.iter().map(|(key, value)| (key.clone(), json!(value))));
    if labels.is_empty() {
        child(object, &["metadata"]).remove("labels");
    }
}

/// The result of matching the claims of an export with the decisions of a binding.
#[derive(Debug, PartialEq)]
pub struct ClaimMatch {
    /// The claims in force, for the binding's status.
    pub applied: Vec<ScopedPermissionClaim>,
    /// The condition PermissionClaimsValid.
    pub valid: Condition,
}

/// Compares the accepted claims of a binding with those of its export.
pub fn judge(exported: &[PermissionClaim], decided: &[AcceptablePermissionClaim]) -> ClaimMatch {
    let (mut applied, mut unexpected, mut mismatched) = (Vec::new(), Vec::new(), Vec::new());
    let mut accepted: Vec<_> = decided.iter().filter(|claim| claim.is_accepted()).collect();
    accepted.sort_by_key(|claim| {
        let Subject { group, resource, identity } = Subject::from(claim.key());
        (resource, group, identity)
    });
    for claim in accepted {
        let subject = Subject::from(claim.key());
        let Subject { group, resource, identity } = &subject;
        let Some(asked) = exported.iter().find(|asked| Subject::from(asked.key()) == subject) else {
            unexpected.push(format!("unexpected/invalid claim for {resource}.{group} (identity \"{identity}\")"));
            continue;
        };
        let mut reasons = Vec::new();
        let all = |verbs: &[String]| verbs.iter().any(|verb| verb == "*");
        if !all(&claim.verbs) && !all(&asked.verbs) && sorted(&claim.verbs) != sorted(&asked.verbs) {
            let (accepted, wanted) = (claim.verbs.join(" "), asked.verbs.join(" "));
            reasons.push(format!("verbs: accepted [{accepted}], exported [{wanted}]"));
        }
        if asked.default_selector.as_ref().is_some_and(|wanted| *wanted != claim.selector) {
            reasons.push("selector differs from defaultSelector".to_owned());
        }
        if !reasons.is_empty() {
            mismatched.push(format!("{resource}.{group} ({})", reasons.join("; ")));
        }
        applied.push(claim.scoped());
    }
    let valid = if !mismatched.is_empty() {
        let (count, shown) = (mismatched.len(), mismatched.len().min(MISMATCHES_SHOWN));
        let text = mismatched[..shown].join(", ");
        let message =
            format!("{count} permission claim(s) have mismatched verbs or selectors (showing first {shown}): {text}");
        Condition::fails(PERMISSION_CLAIMS_VALID, Severity::Warning, "PermissionClaimsMismatch", message)
    } else if !unexpected.is_empty() {
        let (count, shown) = (unexpected.len(), unexpected.len().min(SHOWN));
        let text = unexpected[..shown].join(", ");
        let text = if shown == 1 { text } else { format!("[{text}]") };
        let message = format!("{count} unexpected and/or invalid permission claims (showing first {shown}): {text}");
        Condition::fails(PERMISSION_CLAIMS_VALID, Severity::Error, "InvalidPermissionClaims", message)
    } else {
        Condition::holds(PERMISSION_CLAIMS_VALID)
    };
    ClaimMatch { applied, valid }
}

/// Whether a verb, or all verbs, are among those that the export asked for and the binding accepted. All verbs on one side only do not
/// help: kcp compares the lists word by word.
pub fn allows(exported: &[Value], decided: &[Value], subject: &Subject, verb: &str) -> bool {
    let verbs = |claim: &Value| items(claim, "/verbs").to_vec();
    let asked = exported.iter().find(|claim| Subject::of(claim) == *subject).map(verbs).unwrap_or_default();
    decided
        .iter()
        .filter(|claim| claim["state"] == "Accepted" && Subject::of(claim) == *subject)
        .flat_map(verbs)
        .any(|granted| (granted == "*" || granted == verb) && asked.contains(&granted))
}

fn sorted(verbs: &[String]) -> Vec<&String> {
    let mut verbs: Vec<_> = verbs.iter().collect();
    verbs.sort();
    verbs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_cover_what_they_name() {
        let object = json!({"metadata": {"labels": {"app": "db", "tier": "gold"}}});
        let cases = [
            (json!({"matchAll": true}), true),
            (json!({}), false),
            (json!({"matchLabels": {"app": "db"}}), true),
            (json!({"matchLabels": {"app": "web"}}), false),
            (json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]}), true),
            (json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gold"]}]}), false),
            (json!({"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}), true),
            (json!({"matchExpressions": [{"key": "none", "operator": "Exists"}]}), false),
        ];
        for (selector, covered) in cases {
            assert_eq!(selects(&selector, &object), covered, "{selector}");
        }
    }

    #[test]
    fn marking_replaces_forged_labels_and_leaves_others() {
        let mut object = json!({"metadata": {"labels": {"claimed.internal.apis.kcp.io/forged": "x", "app": "db"}}});
        mark(&mut object, &BTreeMap::from([(label_key("h"), "c".to_owned())]));
        assert_eq!(object["metadata"]["labels"], json!({"app": "db", "claimed.internal.apis.kcp.io/h": "c"}));
        let mut only = json!({"metadata": {"labels": {"claimed.internal.apis.kcp.io/forged": "x"}}});
        mark(&mut only, &BTreeMap::new());
        assert_eq!(only, json!({"metadata": {}}));
    }

    #[test]
    fn accepted_claims_are_applied_when_exported_and_reported_when_not() {
        let exported = [
            PermissionClaim::new("", "secrets", &["get", "list", "watch"]),
            PermissionClaim::new("", "events", &["*"]),
        ];
        let accept = |group: &str, resource: &str, identity: &str, verbs: &[&str]| {
            let mut claim = PermissionClaim::new(group, resource, verbs);
            identity.clone_into(&mut claim.identity_hash);
            AcceptablePermissionClaim::accept(&claim)
        };
        let message = |decided: &[AcceptablePermissionClaim]| judge(&exported, decided).valid.message;
        let events = accept("events.k8s.io", "events", "", &["*"]);
        assert_eq!(judge(&exported, std::slice::from_ref(&events)).applied.len(), 1);
        assert_eq!(message(&[events]), "");
        assert_eq!(
            message(&[accept("example.io", "widgets", "badbad", &["*"])]),
            "1 unexpected and/or invalid permission claims (showing first 1): unexpected/invalid claim for widgets.example.io (identity \"badbad\")"
        );
        assert_eq!(
            message(&[accept("", "secrets", "", &["get", "list"])]),
            "1 permission claim(s) have mismatched verbs or selectors (showing first 1): secrets. (verbs: accepted [get list], exported [get list watch])"
        );
    }

    #[test]
    fn a_verb_needs_both_sides() {
        let claim = |verbs: &[&str], state: &str| [json!({"resource": "secrets", "verbs": verbs, "state": state})];
        let subject = Subject::of(&claim(&[], "")[0]);
        let allowed = |asked: &[&str], granted: &[&str], verb: &str| {
            allows(&claim(asked, ""), &claim(granted, "Accepted"), &subject, verb)
        };
        assert!(allowed(&["*"], &["*"], "get"));
        assert!(allowed(&["get", "list"], &["get"], "get"));
        assert!(!allowed(&["get", "list"], &["get"], "list"));
        assert!(!allowed(&["*"], &["get"], "get"));
        assert!(!allowed(&["get"], &["*"], "get"));
        assert!(!allows(&claim(&["*"], ""), &claim(&["*"], "Rejected"), &subject, "get"));
    }
}
