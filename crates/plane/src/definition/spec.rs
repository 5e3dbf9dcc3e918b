//! A CRD as a whole.

use carrick_go::names;
use serde_json::{Value, json};

use super::faults::Faults;
use super::fields::VERSION;
use super::value::{is_true, text};
use super::{conversion, decode, schema, shown, structural, version};
use crate::status::Cause;

/// Fields that all versions may have in common; errors in them are then reported for the spec.
const SHARED: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// Everything that is wrong with a complete CRD; `old` is `None` for a new one.
pub(crate) fn faults(crd: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut faults = Faults::default();
    let spec = hoisted(&crd["spec"]);
    if old.is_none() {
        for field in ["generateName", "name"] {
            check_own_name(field, &crd["metadata"], &spec, &mut faults);
        }
    }
    check(&spec, old, &mut faults);
    if let Some(old) = old {
        check_unchanged(&spec, old, &mut faults);
    }
    check_stored(&crd["status"]["storedVersions"], &spec, &mut faults);
    check_approval(crd, old, &mut faults);
    if is_true(&spec["preserveUnknownFields"]) && !old.is_some_and(|old| is_true(&old["spec"]["preserveUnknownFields"]))
    {
        let why =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        faults.invalid("spec.preserveUnknownFields", &true.into(), why);
    }
    faults.0
}

/// A spec in which everything that all versions have in common is moved from the versions to the spec.
fn hoisted(spec: &Value) -> Value {
    let mut tidied = json!({ "spec": spec });
    decode::tidy(&mut tidied);
    let tidied = tidied["spec"]["versions"].as_array().cloned().unwrap_or_default();
    let mut spec = spec.clone();
    let Some(first) = tidied.first() else { return spec };
    for (key, above) in SHARED {
        if tidied.iter().any(|version| version.get(key) != first.get(key)) {
            continue;
        }
        let mut common = None;
        for version in spec["versions"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            let found = version.remove(key);
            common = common.or(found);
        }
        if let Some(common) = common {
            spec[above] = common;
        }
    }
    spec
}

fn check_own_name(field: &str, metadata: &Value, spec: &Value, faults: &mut Faults) {
    let name = text(metadata, field);
    if name.is_empty() {
        return;
    }
    let place = format!("metadata.{field}");
    let masked = if field == "generateName" && name.len() > 1 && name.ends_with('-') {
        format!("{}a", &name[..name.len() - 1])
    } else {
        name.to_owned()
    };
    for why in names::V1_34.dns1123_subdomain(&masked) {
        faults.invalid(&place, &name.into(), &why);
    }
    if name != format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group")) {
        faults.invalid(&place, &name.into(), "must be spec.names.plural+\".\"+spec.group");
    }
}

fn check(spec: &Value, old: Option<&Value>, faults: &mut Faults) {
    let group = text(spec, "group");
    let wrong = names::V1_34.dns1123_subdomain(group);
    if group.is_empty() {
        faults.required("spec.group", "");
    } else if !wrong.is_empty() {
        faults.invalid("spec.group", &group.into(), &wrong.join(","));
    } else if !group.contains('.') {
        faults.invalid("spec.group", &group.into(), "should be a domain with at least one dot");
    }
    match text(spec, "scope") {
        "" => faults.required("spec.scope", ""),
        "Cluster" | "Namespaced" => {}
        other => faults.unsupported("spec.scope", &other.into(), &["Cluster", "Namespaced"]),
    }
    check_versions(spec, faults);
    check_names(&spec["names"], faults);
    let any_status = std::iter::once(spec).chain(versions(spec)).any(has_status);
    schema::check(spec.get("validation"), any_status, "spec.validation", faults);
    version::check_subresources(&spec["subresources"], "spec.subresources", faults);
    version::check_columns(&spec["additionalPrinterColumns"], "spec", faults);
    check_selectable(spec, spec.get("validation"), "spec", faults);
    let bundle_counts = old
        .is_some_and(|old| conversion::is_established(old) && !conversion::has_bad_bundle(&old["spec"]["conversion"]));
    conversion::check(&spec["conversion"], is_true(&spec["preserveUnknownFields"]), bundle_counts, faults);
}

fn versions(spec: &Value) -> impl Iterator<Item = &Value> {
    spec["versions"].as_array().into_iter().flatten()
}

fn has_status(holder: &Value) -> bool {
    holder["subresources"]["status"].is_object()
}

fn check_versions(spec: &Value, faults: &mut Faults) {
    let all: Vec<&Value> = versions(spec).collect();
    let has_schema = |holder: Option<&Value>| holder.is_some_and(|holder| holder["openAPIV3Schema"].is_object());
    if !has_schema(spec.get("validation")) {
        for (index, _) in all.iter().enumerate().filter(|(_, version)| !has_schema(version.get("schema"))) {
            faults.required(&format!("spec.versions[{index}].schema.openAPIV3Schema"), "");
        }
    }
    let schemas = std::iter::once(&spec["validation"]).chain(all.iter().map(|version| &version["schema"]));
    if is_true(&spec["preserveUnknownFields"])
        && schemas.into_iter().any(|holder| schema::has_defaults(&holder["openAPIV3Schema"]))
    {
        let why = "must be false in order to use defaults in the schema";
        faults.invalid("spec.preserveUnknownFields", &true.into(), why);
    }
    let per_version = all.iter().any(|version| version.get("subresources").is_some());
    for (index, version) in all.iter().enumerate() {
        let place = format!("spec.versions[{index}]");
        let name = text(version, "name");
        let wrong = names::V1_34.dns1035_label(name);
        if !wrong.is_empty() {
            faults.invalid(&format!("{place}.name"), &name.into(), &wrong.join(","));
        }
        // If several versions have the same name, the first one counts.
        let first = all.iter().find(|other| text(other, "name") == name).unwrap_or(version);
        let status = has_status(if per_version { first } else { spec });
        version::check_warning(version, &place, faults);
        schema::check(version.get("schema"), status, &format!("{place}.schema"), faults);
        version::check_subresources(&version["subresources"], &format!("{place}.subresources"), faults);
        version::check_columns(&version["additionalPrinterColumns"], &place, faults);
        check_selectable(version, version.get("schema"), &place, faults);
    }
    let names: Vec<&str> = all.iter().map(|version| text(version, "name")).collect();
    let mut reported = |why: &str| {
        let all = spec["versions"].as_array().map(|list| shown::list(list.iter(), &VERSION));
        faults.shown("spec.versions", all.as_deref().unwrap_or("null"), why);
    };
    if names.iter().enumerate().any(|(index, name)| names[..index].contains(name)) {
        reported("must contain unique version names");
    }
    if all.iter().filter(|version| is_true(&version["storage"])).count() != 1 {
        reported("must have exactly one version marked as storage version");
    }
    if let Some(first) = names.first().filter(|name| !name.is_empty() && !names::V1_34.dns1035_label(name).is_empty()) {
        faults.invalid("spec.version", &(*first).into(), &names::V1_34.dns1035_label(first).join(","));
    }
}

fn check_selectable(holder: &Value, validation: Option<&Value>, above: &str, faults: &mut Faults) {
    let fields = &holder["selectableFields"];
    if fields.as_array().is_none_or(Vec::is_empty) {
        return;
    }
    let place = format!("{above}.selectableFields");
    match validation {
        Some(validation) if validation["openAPIV3Schema"].is_object() => {
            let schema = &validation["openAPIV3Schema"];
            let unusable = structural::unsupported(schema);
            if let Some(why) = &unusable {
                faults.invalid(&format!("{above}.schema.openAPIV3Schema"), &"".into(), why);
            }
            let schema = if unusable.is_some() { &Value::Null } else { schema };
            version::check_selectable(fields, schema, &place, faults);
        }
        _ if above == "spec" => {
            faults.invalid(&place, &"".into(), "may only be set when validations.schema is included");
        }
        _ => {
            let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
            faults.invalid(&place, &"".into(), why);
        }
    }
}

pub(super) fn check_names(names: &Value, faults: &mut Faults) {
    let place = |key: &str| format!("spec.names.{key}");
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(names, key).is_empty() {
            faults.required(&place(key), "");
        }
    }
    for key in ["plural", "singular"] {
        let (name, wrong) = (text(names, key), names::V1_34.dns1035_label(text(names, key)));
        if !name.is_empty() && !wrong.is_empty() {
            faults.invalid(&place(key), &name.into(), &wrong.join(","));
        }
    }
    for key in ["kind", "listKind"] {
        let (name, wrong) = (text(names, key), names::V1_34.dns1035_label(&text(names, key).to_lowercase()));
        if !name.is_empty() && !wrong.is_empty() {
            let why = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            faults.invalid(&place(key), &name.into(), &why);
        }
    }
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        faults.invalid(&place("listKind"), &kind.into(), "kind and listKind may not be the same");
    }
    for key in ["shortNames", "categories"] {
        for (index, name) in names[key].as_array().into_iter().flatten().enumerate() {
            let wrong = names::V1_34.dns1035_label(name.as_str().unwrap_or_default());
            if !wrong.is_empty() {
                faults.invalid(&format!("{}[{index}]", place(key)), name, &wrong.join(","));
            }
        }
    }
}

fn check_unchanged(spec: &Value, old: &Value, faults: &mut Faults) {
    let fixed: &[&str] = if conversion::is_established(old) {
        &["/scope", "/names/kind", "/group", "/names/plural"]
    } else {
        &["/group", "/names/plural"]
    };
    for pointer in fixed {
        let find = |spec: &Value| spec.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        if find(spec) != find(&old["spec"]) {
            faults.invalid(&format!("spec{}", pointer.replace('/', ".")), &find(spec).into(), "field is immutable");
        }
    }
}

fn check_stored(stored: &Value, spec: &Value, faults: &mut Faults) {
    let place = "status.storedVersions";
    let names: Vec<&str> = stored.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() {
        return faults.invalid(place, stored, "must have at least one stored version");
    }
    let mut left: Vec<(usize, &str)> = names.iter().copied().enumerate().collect();
    for version in versions(spec) {
        let name = text(version, "name");
        if is_true(&version["storage"]) && !left.iter().any(|(_, other)| *other == name) {
            faults.invalid(place, stored, &format!("must have the storage version {name}"));
        }
        left.retain(|(_, other)| *other != name);
    }
    for (index, name) in left {
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a \
             storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        faults.invalid(&format!("{place}[{index}]"), &name.into(), &why);
    }
}

/// Annotation with the approval of an API in one of Kubernetes' own groups.
const APPROVED: &str = carrick_kcp::names::API_APPROVED_ANNOTATION;

#[derive(PartialEq, Eq)]
enum Approval {
    Missing,
    Bypassed,
    Given,
    Invalid,
}

fn approval(crd: &Value) -> Approval {
    match text(&crd["metadata"]["annotations"], APPROVED) {
        "" => Approval::Missing,
        note if note.starts_with("unapproved") => Approval::Bypassed,
        note if note.split_once("://").is_some_and(|(scheme, rest)| {
            !scheme.is_empty()
                && scheme.chars().all(char::is_alphanumeric)
                && !rest.is_empty()
                && !rest.starts_with('/')
        }) =>
        {
            Approval::Given
        }
        _ => Approval::Invalid,
    }
}

/// Whether a group belongs to Kubernetes itself.
fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owner| group.strip_suffix(owner).is_some_and(|before| before.is_empty() || before.ends_with('.')))
}

/// The condition that says whether a CRD in one of Kubernetes' own groups is approved: status, reason and message.
pub(crate) fn approval_condition(crd: &Value) -> Option<(&'static str, &'static str, String)> {
    if !is_protected(text(&crd["spec"], "group")) {
        return None;
    }
    let note = text(&crd["metadata"]["annotations"], APPROVED);
    let wanted = format!("protected groups must have approval annotation {APPROVED:?}");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    Some(match approval(crd) {
        Approval::Missing => ("False", "MissingAnnotation", format!("{wanted}, {see}")),
        Approval::Bypassed => ("False", "UnapprovedAnnotation", format!("not approved: {note:?}")),
        Approval::Given => ("True", "ApprovedAnnotation", format!("approved in {note}")),
        Approval::Invalid => {
            let why = format!("{wanted} with either a URL or a reason starting with \"unapproved\", {see}");
            ("False", "InvalidAnnotation", why)
        }
    })
}

pub(super) fn check_approval(crd: &Value, old: Option<&Value>, faults: &mut Faults) {
    let group = text(&crd["spec"], "group");
    if !is_protected(group) || old.is_some_and(|old| approval(old) == approval(crd)) {
        return;
    }
    let place = format!("metadata.annotations[{APPROVED}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match approval(crd) {
        Approval::Missing => {
            faults.required(&place, &format!("protected groups must have approval annotation {APPROVED:?}, {see}"));
        }
        Approval::Invalid => {
            let why = format!(
                "protected groups must have approval annotation {APPROVED:?} with either a URL or a reason starting with \
                 \"unapproved\", {see}"
            );
            faults.invalid(&place, &crd["metadata"]["annotations"][APPROVED], &why);
        }
        Approval::Bypassed | Approval::Given => {}
    }
}
