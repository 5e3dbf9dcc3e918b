//! CRDs: defaults, checks, and their conditions, which are set at once.

use serde_json::{Value, json};

use super::super::{Api, now};
use super::names;
use crate::resource::Origin;
use crate::schema::{Schema, shape};
use crate::status::{Cause, Status};

/// Holds a CRD until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills in names and conversion, and computes the status.
pub(super) fn prepare(api: &Api, cluster: &str, crd: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    if !crd["spec"].is_object() || !crd["spec"]["names"].is_object() {
        let cause = Cause::required("spec.names", "");
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        return Err(Status::invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, &[cause]));
    }
    let names = &mut crd["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    for (key, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names[key].as_str().is_none_or(str::is_empty) {
            names[key] = value.into();
        }
    }
    if !crd["spec"]["conversion"].is_object() {
        crd["spec"]["conversion"] = json!({"strategy": "None"});
    }
    crd["status"] = status(api, cluster, crd, old);
    Ok(())
}

fn status(api: &Api, cluster: &str, crd: &Value, old: Option<&Value>) -> Value {
    let empty = json!({});
    let before = old.map_or(&empty, |old| &old["status"]);
    let mut stored: Vec<Value> = before["storedVersions"].as_array().cloned().unwrap_or_default();
    let storage = storage_version(crd);
    if !storage.is_null() && !stored.contains(&storage) {
        stored.push(storage);
    }
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
    conditions.extend(kept.filter(|one| one["type"] != "NamesAccepted" && one["type"] != "Established").cloned());
    let accepted = if conflict.is_none() { crd["spec"]["names"].clone() } else { before["acceptedNames"].clone() };
    let accepted = if accepted.is_object() { accepted } else { json!({"kind": "", "plural": ""}) };
    json!({"acceptedNames": accepted, "conditions": conditions, "storedVersions": stored})
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

fn storage_version(crd: &Value) -> Value {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    versions
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .next()
        .unwrap_or(Value::Null)
}

/// Everything wrong with a CRD.
pub(super) fn validate(api: &Api, cluster: &str, crd: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &crd["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural, kind) = (text(&spec["group"]), text(&spec["names"]["plural"]), text(&spec["names"]["kind"]));
    for (field, value) in [("spec.group", &group), ("spec.names.plural", &plural), ("spec.names.kind", &kind)] {
        if value.is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    if !group.is_empty() && !group.contains('.') {
        causes.push(Cause::invalid("spec.group", &group.clone().into(), "should be a domain with at least one dot"));
    }
    let expected = format!("{plural}.{group}");
    if crd["metadata"]["name"] != *expected {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &crd["metadata"]["name"], detail));
    }
    match spec["scope"].as_str() {
        Some("Namespaced" | "Cluster") => {}
        None | Some("") => causes.push(Cause::required("spec.scope", "")),
        Some(_) => {
            causes.push(Cause::unsupported("spec.scope", &spec["scope"], &[json!("Cluster"), json!("Namespaced")]));
        }
    }
    if let Some(old) = old
        && old["spec"]["scope"] != spec["scope"]
    {
        causes.push(Cause::invalid("spec.scope", &spec["scope"], "field is immutable"));
    }
    let taken = api.resources(cluster).into_iter().any(|other| {
        *other.group == *group && *other.plural == *plural && matches!(other.origin, Origin::Builtin | Origin::System)
    });
    if taken {
        causes
            .push(Cause::forbidden("spec.names.plural", &format!("{expected} is served by the control plane itself")));
    }
    versions(spec, &mut causes);
    if crd["status"]["storedVersions"].as_array().is_none_or(Vec::is_empty) {
        let detail = "must have at least one stored version";
        causes.push(Cause::invalid("status.storedVersions", &Value::Null, detail));
    }
    causes
}

fn versions(spec: &Value, causes: &mut Vec<Cause>) {
    let versions: &[Value] = spec["versions"].as_array().map_or(&[], Vec::as_slice);
    if versions.is_empty() {
        causes.push(Cause::required("spec.versions", "must have exactly one version marked as storage version"));
        return;
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid_text("spec.versions", &told(versions), detail));
    }
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    // Kubernetes reports schemas that are equal in all versions at their common place.
    let same = versions.iter().all(|version| schema(version) == schema(&versions[0]));
    for (index, version) in versions.iter().enumerate() {
        let field = format!("spec.versions[{index}]");
        let name = version["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(Cause::required(&format!("{field}.name"), ""));
        }
        if versions[..index].iter().any(|other| other["name"] == name) {
            let detail = "must contain unique version names";
            causes.push(Cause::invalid_text("spec.versions", &told(versions), detail));
        }
        if !schema(version).is_object() {
            causes.push(Cause::required(&format!("{field}.schema.openAPIV3Schema"), "schemas are required"));
            continue;
        }
        if same && index > 0 {
            continue;
        }
        let prefix = if same { "spec.validation".to_owned() } else { format!("{field}.schema") };
        let mut faults = shape::faults(&schema(version));
        if faults.is_empty() {
            faults.extend(Schema::compile(&schema(version)).err());
        }
        let faults = faults.into_iter();
        causes
            .extend(faults.map(|fault| Cause::new(fault.reason, &format!("{prefix}.{}", fault.field), fault.message)));
    }
}

/// Versions as Kubernetes' messages show them: its internal type, in which a schema that all versions share is elsewhere.
fn told(versions: &[Value]) -> String {
    let same = |key: &str| versions.iter().all(|version| version[key] == versions[0][key]);
    let own = |version: &Value, key: &str| if same(key) { Value::Null } else { version[key].clone() };
    let shown = versions.iter().map(|version| {
        // By hand: the order of the fields is that of the type.
        let fields = [
            ("Name", version["name"].clone()),
            ("Served", (version["served"] == true).into()),
            ("Storage", (version["storage"] == true).into()),
            ("Deprecated", (version["deprecated"] == true).into()),
            ("DeprecationWarning", version["deprecationWarning"].clone()),
            ("Schema", own(version, "schema")),
            ("Subresources", own(version, "subresources")),
            ("AdditionalPrinterColumns", own(version, "additionalPrinterColumns")),
            ("SelectableFields", own(version, "selectableFields")),
        ];
        let fields = fields.map(|(name, value)| format!("{name:?}:{value}"));
        format!("{{{}}}", fields.join(","))
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(","))
}
