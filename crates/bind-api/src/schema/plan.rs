//! What to do with the CRD of a consumer: whose it is, whether it is as wanted, whether it can become so.

use serde_json::{Map, Value, json};

use crate::kinds::API_SERVICE_BINDING;
use crate::names::SOURCE_SPEC_HASH_ANNOTATION;
use crate::v1alpha2::ApiServiceBinding;

/// What to do with a CRD.
#[derive(Clone, Debug, PartialEq)]
pub enum CrdPlan {
    /// It is as wanted.
    Keep,
    /// Create it.
    Create(Value),
    /// Replace it with this one, which has the metadata of the old one, its resource version included.
    Replace(Value),
}

/// Why nothing is done with a CRD.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CrdProblem {
    /// It belongs to somebody else.
    #[error("it belongs to {0}")]
    Foreign(String),
    /// It is being deleted.
    #[error("it is being deleted; it is created again when it is gone")]
    Deleting,
    /// The scope of a CRD cannot be changed.
    #[error("its scope is {before} and would become {now}, which Kubernetes does not allow; unbind and bind again")]
    Scope {
        /// What it is.
        before: String,
        /// What it would be.
        now: String,
    },
    /// Objects may still be stored in a version that would go.
    #[error("version {0} would go, in which objects may still be stored; the provider must keep it")]
    StoredVersion(String),
}

/// What to do with a CRD, given the one that is there and the one that the binding wants.
pub fn plan(existing: Option<&Value>, wanted: &Value, binding: &ApiServiceBinding) -> Result<CrdPlan, CrdProblem> {
    let Some(existing) = existing else { return Ok(CrdPlan::Create(wanted.clone())) };
    if let Some(owner) = foreign_owner(existing, binding) {
        return Err(CrdProblem::Foreign(owner));
    }
    if existing["metadata"]["deletionTimestamp"].is_string() {
        return Err(CrdProblem::Deleting);
    }
    if is_as_wanted(existing, wanted) {
        return Ok(CrdPlan::Keep);
    }
    let scope = |crd: &Value| crd["spec"]["scope"].as_str().unwrap_or_default().to_owned();
    if scope(existing) != scope(wanted) {
        return Err(CrdProblem::Scope { before: scope(existing), now: scope(wanted) });
    }
    let versions: Vec<&Value> =
        wanted["spec"]["versions"].as_array().into_iter().flatten().map(|v| &v["name"]).collect();
    let stored = existing["status"]["storedVersions"].as_array().into_iter().flatten();
    if let Some(lost) = stored.into_iter().find(|stored| !versions.contains(stored)) {
        return Err(CrdProblem::StoredVersion(lost.as_str().unwrap_or_default().to_owned()));
    }
    let mut new = wanted.clone();
    let mut metadata = existing["metadata"].clone();
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    metadata["annotations"][SOURCE_SPEC_HASH_ANNOTATION] = hash_of(wanted).clone();
    if let Some(fields) = metadata.as_object_mut() {
        fields.remove("managedFields");
    }
    new["metadata"] = metadata;
    Ok(CrdPlan::Replace(new))
}

/// Who controls a CRD, unless it is the binding: by uid, because a binding that was created again does not own what its predecessor left.
fn foreign_owner(crd: &Value, binding: &ApiServiceBinding) -> Option<String> {
    let owners = crd["metadata"]["ownerReferences"].as_array();
    let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
    let Some(owner) = controller else { return Some("nobody".to_owned()) };
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    let is_binding = text("apiVersion").starts_with(&format!("{}/", API_SERVICE_BINDING.group))
        && text("kind") == API_SERVICE_BINDING.kind;
    let same = is_binding && text("name") == binding.metadata.name;
    match same {
        true if text("uid") == binding.metadata.uid => None,
        true => Some(format!("an earlier {} {}", API_SERVICE_BINDING.kind, text("name"))),
        false => Some(format!("{} {}", text("kind"), text("name"))),
    }
}

fn hash_of(crd: &Value) -> &Value {
    &crd["metadata"]["annotations"][SOURCE_SPEC_HASH_ANNOTATION]
}

/// Whether a CRD was made from the same schema and nobody has changed it since. Servers drop what they do not know from schemas, and fill in
/// names and the conversion: neither is a change, or it would be written for ever.
fn is_as_wanted(existing: &Value, wanted: &Value) -> bool {
    hash_of(existing) == hash_of(wanted) && covers(&with_defaults(&wanted["spec"]), &with_defaults(&existing["spec"]))
}

/// The spec of a CRD as a server completes it.
fn with_defaults(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if let Some(names) = spec["names"].as_object_mut() {
        fill(names, "singular", json!(kind.to_lowercase()));
        fill(names, "listKind", json!(format!("{kind}List")));
    }
    if let Some(spec) = spec.as_object_mut() {
        fill(spec, "conversion", json!({"strategy": "None"}));
    }
    without_nothing(&mut spec);
    spec
}

fn fill(fields: &mut Map<String, Value>, key: &str, value: Value) {
    let missing = fields.get(key).is_none_or(|known| known.is_null() || known == "");
    if missing {
        fields.insert(key.to_owned(), value);
    }
}

/// Drops nulls, `false` and what is empty in the parts of a CRD that a server encodes that way; schemas, where they mean something, are left alone.
fn without_nothing(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    for (key, inner) in fields.iter_mut() {
        match inner {
            Value::Array(items) if key == "versions" => items.iter_mut().for_each(without_nothing),
            inner if key != "schema" && key != "subresources" => without_nothing(inner),
            _ => {}
        }
    }
    fields.retain(|key, value| match value {
        Value::Null => false,
        Value::Bool(yes) => *yes || key == "served" || key == "storage",
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(inner) => !inner.is_empty(),
        Value::Number(_) => true,
    });
}

/// Whether everything that is there is also wanted, with the same value.
fn covers(wanted: &Value, there: &Value) -> bool {
    match (wanted, there) {
        (Value::Object(wanted), Value::Object(there)) => {
            there.iter().all(|(key, value)| wanted.get(key).is_some_and(|wanted| covers(wanted, value)))
        }
        (Value::Array(wanted), Value::Array(there)) => {
            wanted.len() == there.len() && wanted.iter().zip(there).all(|(wanted, there)| covers(wanted, there))
        }
        (wanted, there) => wanted == there,
    }
}
