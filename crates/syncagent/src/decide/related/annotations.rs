//! Annotations on the primary in kcp that tell the consumer where the service's related objects are.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use super::{KnownRelated, RelatedContext};
use crate::api::{Origin, RELATED_PREFIX};
use crate::decide::Step;
use crate::rules::metadata::{annotation, is_deleting};

/// The value of an annotation, and the object it refers to.
pub(super) struct Annotation {
    pub key: String,
    pub text: String,
}

/// How many bytes annotations about related objects may have together. Servers accept 256 KiB for all annotations of an object, and the
/// consumer has some of her own.
const BUDGET: usize = 128 << 10;

/// All annotations that the primary should have, by name. The number in a name is the position among the objects of an entry. Where there
/// are too many, the first ones are announced.
pub(super) fn wanted(all: &[KnownRelated<'_>]) -> BTreeMap<String, Annotation> {
    let mut wanted = BTreeMap::new();
    let mut index = 0;
    let (mut last_entry, mut spent) = (None, 0);
    for known in all {
        index = if last_entry == Some(known.seen.entry) { index + 1 } else { 0 };
        last_entry = Some(known.seen.entry);
        if known.rules.origin == Origin::Service && !is_deleting(&known.seen.origin) {
            let name = format!("{RELATED_PREFIX}{}.{index}", known.rules.identifier);
            let text = text(known);
            spent += name.len() + text.len();
            if spent <= BUDGET {
                wanted.insert(name, Annotation { key: known.key.clone(), text });
            }
        }
    }
    wanted
}

/// Whether the primary announces the copy of an object, at whatever position.
pub(super) fn announces(primary: &Value, known: &KnownRelated<'_>) -> bool {
    let (text, prefix) = (text(known), format!("{RELATED_PREFIX}{}.", known.rules.identifier));
    let annotations = primary["metadata"]["annotations"].as_object();
    annotations.into_iter().flatten().any(|(name, value)| name.starts_with(&prefix) && *value == text.as_str())
}

/// Writes one annotation, unless it exists already.
pub(super) fn write(context: &RelatedContext<'_>, name: &str, text: &str) -> Option<Step> {
    write_all(context, &Map::from_iter([(name.to_owned(), json!(text))]))
}

/// Writes annotations by one write, but for those that exist already.
pub(super) fn write_all(context: &RelatedContext<'_>, wanted: &Map<String, Value>) -> Option<Step> {
    let lacking = wanted.iter().filter(|(name, text)| annotation(context.primary, name) != text.as_str());
    let lacking: Map<String, Value> = lacking.map(|(name, text)| (name.clone(), text.clone())).collect();
    (!lacking.is_empty()).then(|| annotate(context, &lacking.into()))
}

/// Removes annotations whose object no longer exists; those of entries whose objects are not known stay.
pub(super) fn remove_stale(
    context: &RelatedContext<'_>,
    wanted: &BTreeMap<String, Annotation>,
    unknown: &HashSet<usize>,
) -> Option<Step> {
    let is_unknown = |identifier: &str| {
        let entry = context.related.iter().position(|rules| rules.identifier == identifier);
        entry.is_some_and(|entry| unknown.contains(&entry))
    };
    let annotations = context.primary["metadata"]["annotations"].as_object()?;
    let stale: Map<String, Value> = annotations
        .iter()
        .filter(|(name, text)| {
            let identifier = identifier(name, text);
            !wanted.contains_key(*name) && identifier.is_some_and(|identifier| !is_unknown(identifier))
        })
        .map(|(name, _)| (name.clone(), Value::Null))
        .collect();
    (!stale.is_empty()).then(|| annotate(context, &stale.into()))
}

/// Changes annotations of the very object that was seen, unless it has changed since: a new order of the same name has its own related
/// objects, and an older list must not replace a newer one.
fn annotate(context: &RelatedContext<'_>, annotations: &Value) -> Step {
    let metadata = &context.primary["metadata"];
    let (uid, version) = (&metadata["uid"], &metadata["resourceVersion"]);
    let patch = json!({"metadata": {"uid": uid, "resourceVersion": version, "annotations": annotations}});
    Step::Patch { at: context.primary_at.clone(), patch }
}

/// The identifier in the name of an annotation, if an agent wrote it.
fn identifier<'a>(name: &'a str, text: &Value) -> Option<&'a str> {
    let (identifier, index) = name.strip_prefix(RELATED_PREFIX)?.rsplit_once('.')?;
    let value: Map<String, Value> = serde_json::from_str(text.as_str()?).ok()?;
    let has = |key: &&str| value.get(*key).is_some_and(Value::is_string);
    let ours = index.parse::<usize>().is_ok() && ["name", "apiVersion", "kind"].iter().all(has);
    ours.then_some(identifier)
}

fn text(known: &KnownRelated<'_>) -> String {
    let (copy, kind) = (&known.record.copy, &known.record.origin.kind);
    let mut parts = Vec::new();
    if let Some(namespace) = &copy.namespace {
        parts.push(("namespace", namespace.clone()));
    }
    parts.extend([("name", copy.name.clone()), ("apiVersion", kind.api_version()), ("kind", kind.kind.clone())]);
    // Written by hand, because the order of the keys is part of the format.
    let fields: Vec<String> = parts.iter().map(|(key, value)| format!("{}:{}", json!(key), json!(value))).collect();
    format!("{{{}}}", fields.join(","))
}
