//! Which claims somebody on the consumer's side has accepted.
//!
//! Whoever creates a binding has chosen it, with all that it claims. A bundle binds what the provider likes to export later, so its claims need a word
//! of their own: the name of a resource, for whatever is claimed of it, or the mark of one claim, which does not fit any more once the claim changes.

use std::collections::BTreeSet;

use carrick_json::go;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::kinds::API_SERVICE_BINDING_BUNDLE;
use crate::names::ACCEPTED_CLAIMS_ANNOTATION;
use crate::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle, PermissionClaim, Selector};

/// The claims that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// All of them.
    All,
    /// Those that these words stand for.
    Words(BTreeSet<String>),
}

impl Accepted {
    /// What the values of annotations accept.
    ///
    /// ```
    /// use carrick_bind_api::claims::{Accepted, mark};
    /// use carrick_bind_api::v1alpha2::{PermissionClaim, Selector};
    ///
    /// let claim = PermissionClaim::new("", "secrets", Selector::default());
    /// assert!(Accepted::of_words(["configmaps, secrets"]).accepts(&claim));
    /// assert!(Accepted::of_words([mark(&claim).as_str()]).accepts(&claim));
    /// assert!(!Accepted::of_words(["configmaps"]).accepts(&claim));
    /// ```
    pub fn of_words<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let words =
            values.into_iter().flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty());
        Self::Words(words.map(str::to_owned).collect())
    }

    /// The accepted claims of a binding. Whoever has created it by hand has accepted all, unless the annotation says which ones; what a bundle has made
    /// accepts nothing by itself, because its provider alone has chosen it.
    pub fn of_binding(binding: &ApiServiceBinding, bundles: &[ApiServiceBindingBundle]) -> Self {
        let own = binding.metadata.annotation(ACCEPTED_CLAIMS_ANNOTATION);
        let mut owners = binding.metadata.owner_references.iter();
        let Some(owner) = owners.find(|owner| owner.controller && owner.kind == API_SERVICE_BINDING_BUNDLE.kind) else {
            return own.map_or(Self::All, |words| Self::of_words([words]));
        };
        let bundle = bundles.iter().find(|bundle| bundle.metadata.uid == owner.uid);
        let bundled = bundle.and_then(|bundle| bundle.metadata.annotation(ACCEPTED_CLAIMS_ANNOTATION));
        Self::of_words(own.into_iter().chain(bundled))
    }

    /// Whether a claim is accepted.
    pub fn accepts(&self, claim: &PermissionClaim) -> bool {
        match self {
            Self::All => true,
            Self::Words(words) => words.contains(&shown(&claim.group, &claim.resource)) || words.contains(&mark(claim)),
        }
    }
}

/// A resource as people read it.
pub(super) fn shown(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// What stands for exactly this claim: its resource, and a hash of what it selects.
pub fn mark(claim: &PermissionClaim) -> String {
    // By way of a value, whose keys are sorted: the order in which a server sends fields means nothing.
    let mut value = serde_json::to_value(claim).unwrap_or_default();
    fill(&mut value);
    let hash = Sha256::digest(go::to_line(&value).unwrap_or_default().as_bytes());
    let hash: String = HEXLOWER.encode(&hash).chars().take(32).collect();
    format!("{}-{hash}", shown(&claim.group, &claim.resource))
}

/// Says what may be left out: Go's programs leave empty fields out, and servers add defaults. Labels stay as they are, because one with an empty
/// value selects less than none.
fn fill(claim: &mut Value) {
    or_insert(claim, "group", &json!(""));
    let Some(selector) = claim.get_mut("selector") else { return };
    if let Some(fields) = selector.as_object_mut() {
        fields.retain(|field, value| field != "labelSelector" || !value.is_null());
    }
    for field in ["namedResources", "references"] {
        or_insert(selector, field, &json!([]));
        for element in selector[field].as_array_mut().into_iter().flatten() {
            if field == "namedResources" {
                or_insert(element, "namespace", &json!(""));
                continue;
            }
            or_insert(element, "group", &json!(""));
            or_insert(element, "versions", &json!([]));
            if let Some(path) = element.get_mut("jsonPath") {
                or_insert(path, "name", &json!(""));
                or_insert(path, "namespace", &json!(""));
            }
        }
    }
}

fn or_insert(object: &mut Value, field: &str, value: &Value) {
    if let Some(fields) = object.as_object_mut() {
        let there = fields.entry(field).or_insert(Value::Null);
        if there.is_null() {
            there.clone_from(value);
        }
    }
}

/// A claim in words, for whoever has to accept it.
pub fn described(claim: &PermissionClaim) -> String {
    let Selector { label_selector, named_resources, references, .. } = &claim.selector;
    let mut parts = Vec::new();
    if let Some(labels) = label_selector {
        let text = serde_json::to_value(labels).unwrap_or_default();
        let is_empty = |field: &str| text[field].as_object().is_none_or(serde_json::Map::is_empty);
        if is_empty("matchLabels") && text["matchExpressions"].as_array().is_none_or(Vec::is_empty) {
            return format!("ALL {} of this cluster", claim.resource);
        }
        parts.push(format!("with labels {text}"));
    }
    for named in named_resources {
        let at = if named.namespace.is_empty() { "any namespace" } else { &named.namespace };
        parts.push(format!("named {} in {at}", named.name));
    }
    parts.extend(references.iter().map(|it| format!("that {} refer to", shown(&it.group, &it.resource))));
    let parts = if parts.is_empty() { "none".to_owned() } else { parts.join(", or ") };
    format!("{} ({parts})", shown(&claim.group, &claim.resource))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrick_kcp::meta::OwnerReference;

    fn claim(selector: &Value) -> PermissionClaim {
        serde_json::from_value(json!({"group": "", "resource": "secrets", "selector": selector})).unwrap()
    }

    #[test]
    fn a_mark_fits_one_claim_only() {
        let (narrow, wide) = (claim(&json!({"namedResources": [{"name": "a"}]})), claim(&json!({"labelSelector": {}})));
        assert_eq!(mark(&narrow), mark(&narrow));
        assert_ne!(mark(&narrow), mark(&wide));
        let accepted = Accepted::of_words([mark(&narrow).as_str()]);
        assert!(accepted.accepts(&narrow) && !accepted.accepts(&wide));
        assert!(Accepted::All.accepts(&wide) && !Accepted::of_words([""]).accepts(&wide));
    }

    #[test]
    fn a_mark_is_the_same_for_what_go_leaves_out_and_servers_add() {
        let short = json!({"resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"app": "x"}},
            "namedResources": [{"name": "a"}],
            "references": [{"resource": "things", "jsonPath": {"name": "spec.a"}}]}});
        let long = json!({"group": "", "resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"app": "x"}},
            "namedResources": [{"name": "a", "namespace": ""}],
            "references": [{"group": "", "resource": "things", "versions": [], "jsonPath": {"name": "spec.a", "namespace": ""}}]}});
        let mark = |claim: &Value| mark(&serde_json::from_value(claim.clone()).unwrap());
        assert_eq!(mark(&short), mark(&long));
        let bare = json!({"resource": "secrets", "selector": {}});
        let nulls = json!({"group": "", "resource": "secrets",
            "selector": {"labelSelector": null, "namedResources": null, "references": []}});
        assert_eq!(mark(&bare), mark(&nulls));
        // What selects something else is another claim.
        let labels =
            |labels: Value| json!({"resource": "secrets", "selector": {"labelSelector": {"matchLabels": labels}}});
        assert_ne!(mark(&labels(json!({"app": ""}))), mark(&labels(json!({}))));
        assert_ne!(mark(&bare), mark(&json!({"resource": "secrets", "selector": {"labelSelector": {}}})));
        assert_ne!(mark(&short), mark(&bare));
    }

    #[test]
    fn people_are_told_what_is_claimed() {
        assert_eq!(described(&claim(&json!({"labelSelector": {}}))), "ALL secrets of this cluster");
        let some = claim(&json!({"labelSelector": {"matchLabels": {"app": "x"}}, "namedResources": [{"name": "a"}],
            "references": [{"group": "g.io", "resource": "things"}]}));
        let words = "secrets (with labels {\"matchLabels\":{\"app\":\"x\"}}, or named a in any namespace, or that things.g.io refer to)";
        assert_eq!(described(&some), words);
        assert_eq!(described(&claim(&json!({}))), "secrets (none)");
    }

    #[test]
    fn a_bundle_accepts_nothing_unless_somebody_says_so() {
        let claim = PermissionClaim::new("", "secrets", Selector::default());
        let mut binding = ApiServiceBinding::new("b");
        assert!(Accepted::of_binding(&binding, &[]).accepts(&claim), "somebody has created it");
        binding.metadata.annotate(ACCEPTED_CLAIMS_ANNOTATION, "configmaps");
        assert!(!Accepted::of_binding(&binding, &[]).accepts(&claim), "and has said which claims are meant");
        let mut bundle = ApiServiceBindingBundle::new("all");
        "u".clone_into(&mut bundle.metadata.uid);
        let mut binding = ApiServiceBinding::new("b");
        let mut owner = OwnerReference::to(&bundle);
        owner.controller = true;
        binding.metadata.owner_references.push(owner);
        for bundles in [vec![], vec![bundle.clone()]] {
            assert!(!Accepted::of_binding(&binding, &bundles).accepts(&claim));
        }
        bundle.metadata.annotate(ACCEPTED_CLAIMS_ANNOTATION, "secrets");
        assert!(Accepted::of_binding(&binding, &[bundle.clone()]).accepts(&claim));
        assert!(!Accepted::of_binding(&binding, &[]).accepts(&claim), "a bundle that is not known says nothing");
        binding.metadata.annotate(ACCEPTED_CLAIMS_ANNOTATION, "secrets");
        assert!(Accepted::of_binding(&binding, &[]).accepts(&claim));
    }
}
