//! The proof that an import changes nothing: what the agent itself would do with the order.

use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;

use super::link::link_patch;
use crate::decide::compare::changes;
use crate::decide::error::DecideError;
use crate::decide::state::PrimaryState;
use crate::decide::{Copies, NOBODY, PrimaryView, Step, decide};
use crate::rules::import::OnDelete;
use crate::rules::metadata::{SERVICE_SIDE, SourceKey};
use crate::rules::naming::Workspace;
use crate::rules::{Rules, Selection};

/// Why it is not known what the agent would do.
#[derive(Debug, Error)]
pub enum ProofError {
    /// The agent would leave the order alone.
    #[error("spec.filter of the PublishedResource does not select the order, so that nobody would carry it out")]
    NotSelected,
    /// The agent would refuse the order.
    #[error("its order would be refused: {0}")]
    Refused(#[from] DecideError),
}

/// A field of the object that the agent would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Where it is, such as `spec.region`.
    pub path: String,
    /// What the object has, as JSON; nothing if it has nothing, or if that is not shown.
    pub from: Option<String>,
    /// What the order makes of it.
    pub to: Option<String>,
}

/// What the agent would change on the object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proof {
    /// Fields that the caller has accepted by name.
    pub accepted: Vec<FieldChange>,
    /// All others: the import is refused if there are any.
    pub refused: Vec<FieldChange>,
}

/// Runs the rules forward, as the agent does, on an order as kcp stores it and on the object that is linked to it. Nothing is proven by
/// similarity: the object must be exactly what the rules make of the order.
pub fn prove(
    rules: &Rules,
    key: &SourceKey,
    workspace_path: Option<&str>,
    (order, namespace): (&Value, Option<&Value>),
    object: &Value,
    accept: &[String],
) -> Result<Proof, ProofError> {
    if rules.selects(order, namespace) != Selection::In {
        return Err(ProofError::NotSelected);
    }
    let mut linked = object.clone();
    carrick_json::merge::apply(&mut linked, &link_patch(rules, object, key, workspace_path, OnDelete::Keep));
    // What a dry run answers has no version.
    let mut order = order.clone();
    order["metadata"]["resourceVersion"] = "1".into();
    let state = PrimaryState::default();
    let seen = PrimaryView {
        key,
        workspace: Workspace { path: workspace_path, consumer: None },
        source: Some(&order),
        namespace,
        copies: Copies::One(&linked),
        state: &state,
        related: None,
        others: &[],
        released: false,
        ahead: 0,
        ended: false,
        former: &NOBODY,
        now: "",
        managed: None,
    };
    let plan = decide(rules, seen)?;
    let wanted = rules.mutation.spec(&order, Some(&linked)).map_err(DecideError::from)?;
    let confidential = rules.is_confidential(&rules.local) || rules.is_confidential(&rules.remote);
    let mut all: Vec<FieldChange> = changes(&wanted, &linked, &rules.subresources)
        .into_iter()
        .map(|(path, from, to)| {
            let shown = |text: Option<String>| text.filter(|_| !confidential);
            FieldChange { path, from: shown(from), to: shown(to) }
        })
        .collect();
    if all.is_empty() && plan.steps.iter().any(|step| writes(step, &linked)) {
        // The comparison must never be kinder than the agent.
        all.push(FieldChange { path: "metadata".to_owned(), from: None, to: None });
    }
    if let Some(owner) = controller_of(object) {
        let from = Some(json!([owner["kind"], owner["name"]]).to_string());
        all.push(FieldChange { path: "metadata.ownerReferences".to_owned(), from, to: None });
    }
    let (accepted, refused) = all.into_iter().partition(|change| is_accepted(&change.path, accept));
    Ok(Proof { accepted, refused })
}

/// Whether a step changes the object.
fn writes(step: &Step, linked: &Value) -> bool {
    match step {
        Step::Edit { at, edits, .. } => at.side == SERVICE_SIDE && !edits.is_empty(),
        Step::Replace { at, object } => at.side == SERVICE_SIDE && object != linked,
        Step::Apply { at, .. } | Step::Create { at, .. } | Step::Delete { at, .. } | Step::Patch { at, .. } => {
            at.side == SERVICE_SIDE
        }
        _ => false,
    }
}

/// What else makes the object, and would undo what its order says.
fn controller_of(object: &Value) -> Option<&Value> {
    object["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["controller"] == true)
}

/// Whether a field, or one that it is a part of, was accepted by name.
fn is_accepted(path: &str, accept: &[String]) -> bool {
    accept.iter().any(|name| {
        path.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::import::order;
    use crate::rules::tests::{crontab, published};

    fn key() -> SourceKey {
        SourceKey { cluster: "c1".into(), namespace: "team".into(), name: "mine".into() }
    }

    fn object() -> Value {
        json!({
            "apiVersion": "example.com/v1", "kind": "CronTab",
            "metadata": {"name": "theirs", "namespace": "prod", "uid": "u", "resourceVersion": "7", "generation": 3,
                "labels": {"app": "x"}},
            "spec": {"cronSpec": "* * *", "image": "nginx", "list": [1, 2]}, "status": {"ready": true},
        })
    }

    /// The names of what is accepted and of what is not, for an order that kcp stores in another way.
    fn proven(rules: &Rules, stored: impl Fn(&mut Value), object: &Value, accept: &[&str]) -> (String, String) {
        let mut order = order(rules, object, &key(), &[]).unwrap();
        order["metadata"]["uid"] = "o".into();
        order["metadata"]["generation"] = 1.into();
        stored(&mut order);
        let accept: Vec<String> = accept.iter().map(|name| (*name).to_owned()).collect();
        let proof = prove(rules, &key(), None, (&order, None), object, &accept).unwrap();
        let names = |all: &[FieldChange]| all.iter().map(|it| it.path.as_str()).collect::<Vec<_>>().join(" ");
        (names(&proof.accepted), names(&proof.refused))
    }

    fn rules(spec: Value) -> Rules {
        let mut crd = crontab();
        crd.spec.versions[0].subresources = serde_json::from_value(json!({"status": {}})).unwrap();
        Rules::compile(&published(spec), &crd, "agent").unwrap()
    }

    #[test]
    fn an_object_that_its_order_gives_back_exactly_is_imported() {
        let mutated = |spec: Value| json!({"mutation": {"spec": [spec]}});
        for spec in [
            json!({}),
            json!({"projection": {"group": "orders.io", "kind": "Job"}}),
            json!({"enableWorkspacePaths": true}),
            // Rules that find nothing left to do.
            mutated(json!({"template": {"path": "spec.image", "template": "nginx"}})),
            mutated(json!({"delete": {"path": "spec.suspend"}})),
        ] {
            for apply in [false, true] {
                let mut rules = rules(spec.clone());
                rules.apply = apply;
                assert_eq!(proven(&rules, |_| (), &object(), &[]), (String::new(), String::new()), "{spec}");
            }
        }
    }

    #[test]
    fn every_field_that_would_change_is_named_and_accepted_by_name_alone() {
        let mirror =
            json!({"mutation": {"spec": [{"regex": {"path": "spec.image", "pattern": "^", "replacement": "m/"}}]}});
        let none: fn(&mut Value) = |_| ();
        let drops: fn(&mut Value) = |order| drop(order["spec"].as_object_mut().unwrap().remove("list"));
        let empties: fn(&mut Value) = |order| drop(order.as_object_mut().unwrap().remove("spec"));
        let defaults: fn(&mut Value) = |order| order["spec"]["size"] = 1.into();
        for (spec, stored, accept, accepted, refused) in [
            (mirror.clone(), none, &[][..], "", "spec.image"),
            (mirror.clone(), none, &["spec.image"][..], "spec.image", ""),
            (mirror.clone(), none, &["spec"][..], "spec.image", ""),
            (mirror, none, &["spec.im", "image"][..], "", "spec.image"),
            (json!({}), drops, &[][..], "", "spec.list[0] spec.list[1]"),
            (json!({}), drops, &["spec.list"][..], "spec.list[0] spec.list[1]", ""),
            (json!({}), empties, &[][..], "", "spec.cronSpec spec.image spec.list[0] spec.list[1]"),
            (json!({}), defaults, &["spec.list"][..], "", "spec.size"),
        ] {
            let found = proven(&rules(spec), stored, &object(), accept);
            assert_eq!(found, (accepted.to_owned(), refused.to_owned()), "{accept:?}");
        }
    }

    #[test]
    fn what_something_else_makes_is_not_handed_over_unasked() {
        let mut object = object();
        object["metadata"]["ownerReferences"] = json!([{"kind": "Fleet", "name": "f", "controller": true}]);
        let found = proven(&rules(json!({})), |_| (), &object, &[]);
        assert_eq!(found.1, "metadata.ownerReferences");
        assert_eq!(proven(&rules(json!({})), |_| (), &object, &["metadata.ownerReferences"]).1, "");
        object["metadata"]["ownerReferences"][0]["controller"] = false.into();
        assert_eq!(proven(&rules(json!({})), |_| (), &object, &[]).1, "");
        // Of several owners the one that makes it is named.
        let controller = json!({"kind": "Team", "name": "t", "controller": true});
        object["metadata"]["ownerReferences"] = json!([object["metadata"]["ownerReferences"][0], controller]);
        let order = order(&rules(json!({})), &object, &key(), &[]).unwrap();
        let proof = prove(&rules(json!({})), &key(), None, (&order, None), &object, &[]).unwrap();
        assert_eq!(proof.refused[0].from.as_deref(), Some(r#"["Team","t"]"#));
    }

    #[test]
    fn an_order_that_nobody_would_carry_out_is_refused() {
        let rules = rules(json!({"filter": {"resource": {"matchLabels": {"app": "y"}}}}));
        let order = order(&rules, &object(), &key(), &[]).unwrap();
        let refused = prove(&rules, &key(), None, (&order, None), &object(), &[]);
        assert!(matches!(refused, Err(ProofError::NotSelected)));
    }

    #[test]
    fn no_secret_value_is_in_a_proof() {
        let mut rules = rules(json!({}));
        (rules.local.group, rules.local.plural) = (String::new(), "secrets".to_owned());
        let mut order = order(&rules, &object(), &key(), &[]).unwrap();
        order["spec"]["image"] = "hunter2".into();
        let proof = prove(&rules, &key(), None, (&order, None), &object(), &[]).unwrap();
        let hidden = FieldChange { path: "spec.image".to_owned(), from: None, to: None };
        assert_eq!(proof.refused, [hidden]);
    }
}
