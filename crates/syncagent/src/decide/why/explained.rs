//! Drift, field by field, as people are shown it.

use carrick_sync::drift::DriftedCopy;
use serde::Serialize;
use serde_json::Value;

use super::super::{Copies, Plan, PrimaryView, compare};
use crate::rules::Rules;
use crate::rules::drift::keys;

/// What others have changed of one copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedDrift {
    /// The copy.
    pub copy: String,
    /// Its fields.
    pub fields: Vec<ExplainedField>,
}

/// A field that somebody else has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedField {
    /// Where it is, such as `spec.size`.
    pub path: String,
    /// Who changed it, as the server records it; nothing if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
    /// What is done about it.
    pub state: DriftState,
    /// What was ordered, as JSON; nothing if it is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordered: Option<String>,
    /// What is there instead; nothing if it is gone, or not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// What is done about a field that somebody else has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftState {
    /// It is reported, and stays.
    Reported,
    /// It is set back.
    Reverting,
    /// It, or another field of the same copy, was set back too often, and stays for now.
    Contested,
}

/// What others have changed of all copies; nothing if nobody looks for it.
pub(super) fn drift(rules: &Rules, seen: PrimaryView<'_>, plan: &Plan) -> Option<Vec<ExplainedDrift>> {
    if !rules.watches_drift() {
        return None;
    }
    let copies = plan.drift.as_ref().into_iter().flatten();
    let explained =
        copies.map(|copy| ExplainedDrift { copy: copy.at.to_string(), fields: fields_of(rules, seen, copy) });
    Some(explained.filter(|copy| !copy.fields.is_empty()).collect())
}

/// The fields of an order's own copy that others have changed.
pub(super) fn fields(rules: &Rules, plan: &Plan) -> Vec<String> {
    let is_own = |copy: &&DriftedCopy| *copy.at.kind == rules.local;
    let own = plan.drift.iter().flatten().filter(is_own);
    own.flat_map(|copy| {
        copy.fields.iter().map(|(path, manager)| match manager.as_str() {
            "" => path.clone(),
            manager => format!("{path} (by {manager})"),
        })
    })
    .collect()
}

fn fields_of(rules: &Rules, seen: PrimaryView<'_>, copy: &DriftedCopy) -> Vec<ExplainedField> {
    let staying = if copy.contested { DriftState::Contested } else { DriftState::Reported };
    let both = copy.fields.iter().map(|field| (field, staying));
    let both = both.chain(copy.reverted.iter().map(|field| (field, DriftState::Reverting)));
    let values = values(rules, seen).filter(|_| *copy.at.kind == rules.local);
    both.map(|((path, manager), state)| {
        let value = |object: &Value| Some(compare::shown(path, at(object, path)?));
        let (ordered, found) = values.as_ref().map_or((None, None), |(wanted, there)| (value(wanted), value(there)));
        let manager = Some(manager.clone()).filter(|manager| !manager.is_empty());
        ExplainedField { path: path.clone(), manager, state, ordered, found }
    })
    .collect()
}

/// What is wanted of the copy and what is there, unless it may be secret.
fn values<'a>(rules: &Rules, seen: PrimaryView<'a>) -> Option<(Value, &'a Value)> {
    let (Some(source), Copies::One(copy)) = (seen.source, seen.copies) else { return None };
    if rules.is_confidential(&rules.local) || rules.is_confidential(&rules.remote) {
        return None;
    }
    Some((rules.mutation.spec(source, Some(copy)).ok()?, copy))
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    keys(path)?.iter().try_fold(object, |object, key| object.get(key))
}
