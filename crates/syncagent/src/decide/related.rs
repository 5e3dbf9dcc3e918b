//! Related objects: the same decisions as for primaries, in either direction, without links and without status coming back.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::DecideError;
use super::pair::{Pair, Progress, StatusFlow, is_deleting};
use super::state::{State, entry_key};
use super::step::{Place, Side, Step};
use crate::api::{Origin, RELATED_PREFIX};
use crate::rules::ApiKind;
use crate::rules::metadata::{SourceKey, annotation, sha1_hex};
use crate::rules::related::Related;

/// One related object as it is seen on both sides.
#[derive(Debug, Clone)]
pub struct RelatedSeen {
    /// Position of the entry in `spec.related`.
    pub entry: usize,
    /// Kind on the origin side.
    pub origin_kind: Arc<ApiKind>,
    /// Kind on the destination side.
    pub destination_kind: Arc<ApiKind>,
    /// The object on the origin side.
    pub origin: Value,
    /// Namespace on the destination side.
    pub destination_namespace: String,
    /// Name on the destination side.
    pub destination_name: String,
    /// The object on the destination side, if it exists.
    pub destination: Option<Value>,
}

pub(super) struct Context<'a> {
    pub source: &'a SourceKey,
    pub primary: &'a Value,
    pub primary_at: &'a Place,
    pub related: &'a [Related],
    pub state: &'a State,
}

/// Keeps the destinations of all related objects in line. Returns whether anything is under way.
pub(super) fn keep(
    context: &Context<'_>,
    seen: &[RelatedSeen],
    steps: &mut Vec<Step>,
) -> Result<Progress, DecideError> {
    let mut progress = Progress::Settled;
    let mut index = 0;
    let mut last_entry = None;
    for (object, key) in seen.iter().zip(context.keys(seen)) {
        index = if last_entry == Some(object.entry) { index + 1 } else { 0 };
        last_entry = Some(object.entry);
        let Some(rules) = context.related.get(object.entry) else { continue };
        let pair = context.pair(rules, object, key);
        let gone = is_deleting(&object.origin);
        let step = if gone { pair.remove(steps) } else { pair.keep(steps)? };
        if step != Progress::Settled {
            progress = step;
        }
        if rules.origin == Origin::Service && !gone {
            context.annotate(rules, object, index, steps);
        }
    }
    Ok(progress)
}

/// Removes what must go before the primary goes. Returns whether anything is still under way.
pub(super) fn clean_up(context: &Context<'_>, seen: &[RelatedSeen], steps: &mut Vec<Step>) -> Progress {
    let mut progress = Progress::Settled;
    for (object, key) in seen.iter().zip(context.keys(seen)) {
        let Some(rules) = context.related.get(object.entry) else { continue };
        if rules.origin == Origin::Kcp || rules.cleanup {
            let pair = context.pair(rules, object, key);
            if pair.remove(steps) == Progress::Waiting {
                progress = Progress::Waiting;
            }
        }
    }
    progress
}

impl<'a> Context<'a> {
    fn pair(&self, rules: &'a Related, seen: &'a RelatedSeen, entry: String) -> Pair<'a>
    where
        Self: 'a,
    {
        let (origin_side, destination_side) = match rules.origin {
            Origin::Kcp => (Side::Kcp, Side::Service),
            Origin::Service => (Side::Service, Side::Kcp),
        };
        let (namespace, name) = origin_name(seen);
        let in_namespace = |kind: &ApiKind, namespace: String| kind.namespaced.then_some(namespace);
        Pair {
            source_at: Place {
                side: origin_side,
                kind: seen.origin_kind.clone(),
                namespace: in_namespace(&seen.origin_kind, namespace),
                name,
            },
            source: &seen.origin,
            copy: seen.destination.as_ref(),
            copy_at: Place {
                side: destination_side,
                kind: seen.destination_kind.clone(),
                namespace: in_namespace(&seen.destination_kind, seen.destination_namespace.clone()),
                name: seen.destination_name.clone(),
            },
            remembered: self.state.entry(&entry),
            entry,
            // Originals on the service cluster belong to the provider's operator and are never held.
            blocks: rules.origin == Origin::Kcp,
            link: None,
            subresources: if rules.sync_status { &["status"] } else { &[] },
            status: if rules.sync_status { StatusFlow::Forward } else { StatusFlow::None },
            mutation: &rules.mutation,
        }
    }

    /// Keys in the state Secret, one for each object. The reference's key knows no kind, so objects of the same name (the primary
    /// included) would share one memory; all but the first get a key of their own.
    fn keys(&self, seen: &[RelatedSeen]) -> Vec<String> {
        let mut taken = HashSet::from([entry_key(&self.source.cluster, &self.source.namespace, &self.source.name)]);
        let key = |object: &RelatedSeen| {
            let rules = self.related.get(object.entry);
            let from_kcp = rules.is_some_and(|rules| rules.origin == Origin::Kcp);
            let (namespace, name) = origin_name(object);
            let key = entry_key(if from_kcp { &self.source.cluster } else { "" }, &namespace, &name);
            if taken.insert(key.clone()) {
                return key;
            }
            sha1_hex(&format!("{key}/{}", rules.map(|rules| rules.identifier.as_str()).unwrap_or_default()))
        };
        seen.iter().map(key).collect()
    }

    /// Tells the consumer where the related object is, by an annotation on the primary.
    fn annotate(&self, rules: &Related, seen: &RelatedSeen, index: usize, steps: &mut Vec<Step>) {
        let key = format!("{RELATED_PREFIX}{}.{index}", rules.identifier);
        let mut parts = Vec::new();
        if seen.destination_kind.namespaced {
            parts.push(("namespace", seen.destination_namespace.clone()));
        }
        parts.push(("name", seen.destination_name.clone()));
        parts.push(("apiVersion", seen.origin_kind.api_version()));
        parts.push(("kind", seen.origin_kind.kind.clone()));
        // Written by hand, because the order of the keys is part of the format.
        let fields: Vec<String> = parts.iter().map(|(key, value)| format!("{}:{}", json!(key), json!(value))).collect();
        let value = format!("{{{}}}", fields.join(","));
        if annotation(self.primary, &key) != Some(&value) {
            let patch = json!({"metadata": {"annotations": {key: value}}});
            steps.push(Step::Patch { at: self.primary_at.clone(), patch });
        }
    }
}

/// Namespace and name on the origin side.
fn origin_name(seen: &RelatedSeen) -> (String, String) {
    let text = |key: &str| seen.origin["metadata"][key].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}
