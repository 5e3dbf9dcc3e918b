//! Metadata: names, identifiers, what is wrong with it.

use carrick_go::names::{self, Words};
use serde_json::Value;

use crate::go::{self, json_type};
use crate::resource::Resource;
use crate::status::Cause;

/// A random object id.
pub(super) fn uid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A name from `generateName`: five random letters appended.
pub(super) fn generated_name(prefix: &str) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let bytes = uuid::Uuid::new_v4().into_bytes();
    let suffix = bytes.iter().take(5).map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
    let keep = prefix.char_indices().nth(58).map_or(prefix.len(), |(index, _)| index);
    prefix[..keep].chars().chain(suffix).collect()
}

/// A list of texts in metadata, such as finalizers.
pub(crate) fn texts<'a>(object: &'a Value, key: &str) -> Vec<&'a str> {
    object["metadata"][key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// `metadata.name`.
pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Which rule a kind's names follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameRule {
    Label,
    /// A label that begins with a letter.
    ServiceLabel,
    Subdomain,
    PathSegment,
}

impl NameRule {
    /// The name rule that Kubernetes has for a kind.
    pub(super) fn of(group: &str, plural: &str) -> Self {
        match (group, plural) {
            ("", "namespaces") => Self::Label,
            ("", "services") => Self::ServiceLabel,
            ("rbac.authorization.k8s.io", _) => Self::PathSegment,
            _ => Self::Subdomain,
        }
    }
}

/// How many bytes all annotations of an object may have together.
const ANNOTATIONS: usize = 256 * 1024;

/// What is wrong with a name, if anything.
pub(super) fn check_name(rule: NameRule, name: &str) -> Option<Cause> {
    let value = Value::String(name.to_owned());
    let fault = |detail: &str| Some(Cause::invalid("metadata.name", &value, detail));
    match rule {
        NameRule::Label => names::V1_34.dns1123_label(name).first().and_then(|detail| fault(detail)),
        NameRule::ServiceLabel => names::V1_34.dns1035_label(name).first().and_then(|detail| fault(detail)),
        NameRule::Subdomain => names::V1_34.dns1123_subdomain(name).first().and_then(|detail| fault(detail)),
        NameRule::PathSegment if name == "." || name == ".." => fault(&format!("may not be '{name}'")),
        NameRule::PathSegment if name.contains('/') => fault("may not contain '/'"),
        NameRule::PathSegment if name.contains('%') => fault("may not contain '%'"),
        NameRule::PathSegment => None,
    }
}

/// What is wrong with the prefix of a generated name, if anything; it may end with a dash.
pub(super) fn check_generate_name(rule: NameRule, prefix: &str) -> Option<Cause> {
    let trimmed = if prefix.len() > 1 { prefix.strip_suffix('-').map(|text| format!("{text}a")) } else { None };
    let cause = check_name(rule, trimmed.as_deref().unwrap_or(prefix))?;
    let shown = Value::String(prefix.to_owned()).to_string();
    let checked = Value::String(trimmed.unwrap_or_else(|| prefix.to_owned())).to_string();
    Some(Cause::new(&cause.reason, "metadata.generateName", cause.message.replacen(&checked, &shown, 1)))
}

/// What is wrong with labels, annotations, finalizers and owner references.
pub(super) fn check_metadata(object: &Value, words: Words, strict_finalizers: bool) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut causes = Vec::new();
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        check_key("metadata.labels", key, key, words, &mut causes);
        let faults = value.as_str().map(|value| words.label_value(value)).unwrap_or_default();
        causes.extend(faults.iter().map(|fault| Cause::invalid("metadata.labels", value, fault)));
    }
    for (key, _) in metadata["annotations"].as_object().into_iter().flatten() {
        check_key("metadata.annotations", &key.to_lowercase(), key, words, &mut causes);
    }
    if annotations_size(metadata) > ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS));
    }
    let finalizers = texts(object, "finalizers");
    for name in &finalizers {
        check_key("metadata.finalizers", name, name, words, &mut causes);
    }
    for (index, name) in finalizers.iter().enumerate().filter(|(_, name)| strict_finalizers && is_plain(name)) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        causes.push(Cause::invalid(&format!("metadata.finalizers[{index}]"), &(*name).into(), detail));
    }
    if ["orphan", "foregroundDeletion"].iter().all(|name| finalizers.contains(name)) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid("metadata.finalizers", &metadata["finalizers"], detail));
    }
    check_owners(&metadata["ownerReferences"], &mut causes);
    causes
}

/// Keys and values of all annotations together.
fn annotations_size(metadata: &Value) -> usize {
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    annotations.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}

fn check_owners(owners: &Value, causes: &mut Vec<Cause>) {
    const FIELD: &str = "metadata.ownerReferences";
    let owners = owners.as_array().map(Vec::as_slice).unwrap_or_default();
    for owner in owners {
        let text = |key: &str| owner[key].as_str().unwrap_or_default();
        let version = text("apiVersion");
        if version.is_empty() || version.split('/').count() > 2 {
            causes.push(Cause::invalid(&format!("{FIELD}.apiVersion"), &version.into(), "version must not be empty"));
        }
        for key in ["kind", "name", "uid"].into_iter().filter(|key| text(key).is_empty()) {
            causes.push(Cause::invalid(&format!("{FIELD}.{key}"), &"".into(), "must not be empty"));
        }
        if version == "v1" && text("kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid_text(FIELD, &owner_text(owner), detail));
        }
    }
    let mut controllers = owners.iter().filter(|owner| owner["controller"] == true);
    let name = |owner: &Value| format!("{}/{}", go::plain(&owner["kind"]), go::plain(&owner["name"]));
    let first = controllers.next().map(name).unwrap_or_default();
    for other in controllers {
        let all: Vec<String> = owners.iter().map(owner_text).collect();
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            first,
            name(other)
        );
        causes.push(Cause::invalid_text(FIELD, &format!("[{}]", all.join(",")), &detail));
    }
}

/// An owner as Go writes it.
fn owner_text(owner: &Value) -> String {
    let always = ["apiVersion", "kind", "name", "uid"].into_iter().map(|key| {
        let text = owner[key].as_str().unwrap_or_default();
        format!("{key:?}:{}", Value::from(text))
    });
    let set = ["controller", "blockOwnerDeletion"].into_iter().filter(|key| !owner[key].is_null());
    let all: Vec<String> = always.chain(set.map(|key| format!("{key:?}:{}", owner[key]))).collect();
    format!("{{{}}}", all.join(","))
}

/// Drops owners that are listed twice, and returns the warning about them. A patch is checked only after it has been applied.
pub(super) fn dedup_owners(object: &mut Value, patched: bool) -> Option<String> {
    let Some(Value::Array(owners)) = object["metadata"].get_mut("ownerReferences") else { return None };
    let mut twice = Vec::new();
    let mut kept: Vec<Value> = Vec::new();
    for owner in std::mem::take(owners) {
        if kept.contains(&owner) {
            twice.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    let when = if patched { " after mutating admission happens" } else { "" };
    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may \
             reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    })
}

/// Whether a finalizer is neither one of Kubernetes' own nor has a domain.
fn is_plain(finalizer: &str) -> bool {
    !finalizer.contains('/') && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion")
}

/// Warnings about finalizers without a domain, for custom kinds.
pub(super) fn finalizer_warnings(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
    words: Words,
) -> Vec<String> {
    if !resource.is_custom() {
        return Vec::new();
    }
    let known = old.map(|old| texts(old, "finalizers")).unwrap_or_default();
    let new = texts(object, "finalizers").into_iter().filter(|name| !known.contains(name));
    new.flat_map(|name| {
        let advice = is_plain(name).then(|| {
            let path = if name.contains('.') { " including a path (/)" } else { "" };
            format!(
                "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            )
        });
        let faults = words.label_key(name).into_iter().chain(advice);
        faults.map(move |fault| format!("metadata.finalizers: {name:?}: {fault}")).collect::<Vec<_>>()
    })
    .collect()
}

fn check_key(field: &str, key: &str, shown: &str, words: Words, causes: &mut Vec<Cause>) {
    causes.extend(words.label_key(key).iter().map(|fault| Cause::invalid(field, &shown.into(), fault)));
}

/// Checks the types inside metadata, as decoding into Kubernetes' own struct would.
pub(super) fn decode_metadata(object: &Value, custom: bool) -> Result<(), String> {
    let misfit = |value: &Value, place: &str, wanted: &str| {
        Err(format!("json: cannot unmarshal {} into Go struct field {place} of type {wanted}", json_type(value)))
    };
    let metadata = match &object["metadata"] {
        Value::Null => return Ok(()),
        Value::Object(metadata) => metadata,
        other if custom => {
            return Err(format!("json: cannot unmarshal {} into Go value of type v1.ObjectMeta", json_type(other)));
        }
        other => {
            return misfit(
                other,
                &format!("{}.metadata", object["kind"].as_str().unwrap_or_default()),
                "v1.ObjectMeta",
            );
        }
    };
    for (key, value) in metadata {
        let place = if custom { format!("ObjectMeta.{key}") } else { format!("ObjectMeta.metadata.{key}") };
        match (key.as_str(), value) {
            (_, Value::Null) => {}
            ("labels" | "annotations", Value::Object(map)) => {
                if let Some(other) = map.values().find(|value| !value.is_string() && !value.is_null()) {
                    return misfit(other, &place, "string");
                }
            }
            ("labels" | "annotations", other) => return misfit(other, &place, "map[string]string"),
            ("finalizers", Value::Array(list)) => {
                if let Some(other) = list.iter().find(|value| !value.is_string() && !value.is_null()) {
                    return misfit(other, &place, "string");
                }
            }
            ("finalizers", other) => return misfit(other, &place, "[]string"),
            ("ownerReferences", Value::Array(list)) if list.iter().all(Value::is_object) => {}
            ("ownerReferences", other) => return misfit(other, &place, "[]v1.OwnerReference"),
            ("managedFields", Value::Array(list)) if list.iter().all(Value::is_object) => {}
            ("managedFields", other) => return misfit(other, &place, "[]v1.ManagedFieldsEntry"),
            ("generation" | "deletionGracePeriodSeconds", value) if !value.is_i64() => {
                return misfit(value, &place, "int64");
            }
            ("creationTimestamp" | "deletionTimestamp", Value::String(text))
                if text.parse::<jiff::Timestamp>().is_err() =>
            {
                return Err(format!(
                    "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
                ));
            }
            ("creationTimestamp" | "deletionTimestamp", Value::String(_)) => {}
            ("creationTimestamp" | "deletionTimestamp", other) => return misfit(other, &place, "string"),
            ("uid", other) if !other.is_string() => return misfit(other, &place, "types.UID"),
            ("name" | "generateName" | "namespace" | "selfLink" | "resourceVersion", other) if !other.is_string() => {
                return misfit(other, &place, "string");
            }
            // Unknown fields are dropped or refused later, whatever they contain.
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::release::Release;

    #[test]
    fn services_begin_with_a_letter() {
        let refused = |plural: &str| check_name(NameRule::of("", plural), "2747-rw").map(|cause| cause.message);
        assert_eq!([refused("namespaces"), refused("secrets")], [None, None]);
        assert!(refused("services").is_some_and(|why| why.contains("a DNS-1035 label must")));
    }

    #[test]
    fn releases_have_their_own_words_about_labels() {
        let long = "a".repeat(64);
        let object = json!({"metadata": {
            "labels": {"a/b/c": "x", long.clone(): long}, "finalizers": ["a/b/c"], "annotations": {"a/b/c": "x"},
        }});
        let reported = |release: Release| {
            let causes = check_metadata(&object, release.label_words(), false);
            causes.into_iter().map(|cause| cause.message).collect::<Vec<_>>()
        };
        let count = |reported: &[String], text: &str| reported.iter().filter(|message| message.contains(text)).count();
        let (older, newer) = (reported(Release::V1_34), reported(Release::V1_35));
        assert_eq!([count(&older, "a qualified name must"), count(&newer, "a qualified name must")], [3, 0]);
        assert_eq!([count(&older, "a valid label key must"), count(&newer, "a valid label key must")], [0, 3]);
        assert_eq!([count(&older, "no more than 63 characters"), count(&newer, "no more than 63 characters")], [2, 0]);
        assert_eq!([count(&older, "no more than 63 bytes"), count(&newer, "no more than 63 bytes")], [0, 2]);
    }
}
