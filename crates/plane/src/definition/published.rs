//! APIResourceSchemas: CRDs in other words, judged by the same rules.

use carrick_go::names;
use serde_json::{Value, json};

use super::faults::Faults;
use super::spec::{check_approval, check_names};
use super::value::{is_true, text};
use super::{decode, schema, shown, version};
use crate::status::Cause;

/// Groups of Kubernetes whose names are a single word.
const SINGLE_WORDS: [&str; 5] = ["apps", "batch", "extensions", "policy", "autoscaling"];

/// Everything that is wrong with an APIResourceSchema; `old` is `None` for a new one.
pub(crate) fn schema_faults(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut faults = Faults::default();
    let spec = &object["spec"];
    check_own_name(text(&object["metadata"], "name"), spec, &mut faults);
    check_approval(object, None, &mut faults);
    check_group(text(spec, "group"), &mut faults);
    check_versions(spec, &mut faults);
    check_names(&spec["names"], &mut faults);
    if old.is_some_and(|old| old["spec"] != *spec) {
        faults.shown("spec", &ordered(spec, &SPEC), "is immutable");
    }
    faults.0
}

fn check_own_name(name: &str, spec: &Value, faults: &mut Faults) {
    let (plural, group) = (text(&spec["names"], "plural"), text(spec, "group"));
    if plural.is_empty() {
        return;
    }
    let suffix = format!(".{plural}.{}", if group.is_empty() { "core" } else { group });
    let why = match name.strip_suffix(&suffix) {
        None => format!("must end in {suffix}"),
        Some(prefix) if !is_prefix(prefix) => format!("must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ in front of {suffix}"),
        Some(_) => return,
    };
    faults.invalid("metadata.name", &name.into(), &why);
}

fn is_prefix(prefix: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    prefix.starts_with(|letter: char| letter.is_ascii_lowercase())
        && prefix.chars().all(inner)
        && !prefix.ends_with('-')
}

fn check_group(group: &str, faults: &mut Faults) {
    let wrong = names::V1_34.dns1123_subdomain(group);
    let why = match group {
        "" => return,
        "core" => "must be empty string for the core group".to_owned(),
        _ if !wrong.is_empty() => wrong.join(","),
        _ if !group.contains('.') && !SINGLE_WORDS.contains(&group) => {
            "should be a domain with at least one dot".to_owned()
        }
        _ => return,
    };
    faults.invalid("spec.group", &group.into(), &why);
}

fn check_versions(spec: &Value, faults: &mut Faults) {
    let none = Vec::new();
    let all = spec["versions"].as_array().unwrap_or(&none);
    for (index, version) in all.iter().enumerate() {
        let place = format!("spec.versions[{index}]");
        let name = text(version, "name");
        let wrong = names::V1_34.dns1035_label(name);
        if !wrong.is_empty() {
            faults.invalid(&format!("{place}.name"), &name.into(), &wrong.join(","));
        }
        version::check_warning(version, &place, faults);
        check_schema(version, &format!("{place}.schema"), faults);
        version::check_subresources(&version["subresources"], &format!("{place}.subresources"), faults);
        version::check_columns(&version["additionalPrinterColumns"], &place, faults);
    }
    let names: Vec<&str> = all.iter().map(|version| text(version, "name")).collect();
    let mut reported = |why: &str| {
        let list: Vec<String> = all.iter().map(|version| ordered(version, &VERSION)).collect();
        faults.shown("spec.versions", &format!("[{}]", list.join(",")), why);
    };
    if names.iter().enumerate().any(|(index, name)| names[..index].contains(name)) {
        reported("must contain unique version names");
    }
    if all.iter().filter(|version| is_true(&version["storage"])).count() != 1 {
        reported("must have exactly one version marked as storage version");
    }
}

fn check_schema(version: &Value, place: &str, faults: &mut Faults) {
    let found = &version["schema"];
    if found.is_null() {
        return faults.required(place, "");
    }
    // A schema is read as that of a CRD is.
    let mut crd = json!({ "spec": { "versions": [{ "schema": { "openAPIV3Schema": found } }] } });
    if let Err(why) = decode(&mut crd, &mut Vec::new()) {
        return faults.invalid(place, &found.to_string().into(), &format!("invalid JSON: {why}"));
    }
    let status = version["subresources"]["status"].is_object();
    let before = faults.0.len();
    schema::check(crd.pointer("/spec/versions/0/schema"), status, place, faults);
    // The library that kcp is built on leaves the root of a default without a name.
    for fault in &mut faults.0[before..] {
        fault.message = fault.message.replace("<nil> in body", " in body");
    }
}

/// The order in which fields are shown, and that of the fields below them.
struct Order(&'static [(&'static str, Option<&'static Order>)]);

static SPEC: Order = Order(&[
    ("group", None),
    ("names", Some(&NAMES)),
    ("scope", None),
    ("versions", Some(&VERSION)),
    ("nameValidation", None),
    ("conversion", Some(&CONVERSION)),
]);
static NAMES: Order = Order(&[
    ("plural", None),
    ("singular", None),
    ("shortNames", None),
    ("kind", None),
    ("listKind", None),
    ("categories", None),
]);
static VERSION: Order = Order(&[
    ("name", None),
    ("served", None),
    ("storage", None),
    ("deprecated", None),
    ("deprecationWarning", None),
    ("schema", None),
    ("subresources", Some(&SUBRESOURCES)),
    ("additionalPrinterColumns", Some(&COLUMN)),
]);
static SUBRESOURCES: Order = Order(&[("status", None), ("scale", Some(&SCALE))]);
static SCALE: Order = Order(&[("specReplicasPath", None), ("statusReplicasPath", None), ("labelSelectorPath", None)]);
static COLUMN: Order = Order(&[
    ("name", None),
    ("type", None),
    ("format", None),
    ("description", None),
    ("priority", None),
    ("jsonPath", None),
]);
static CONVERSION: Order = Order(&[("strategy", None), ("webhook", Some(&WEBHOOK))]);
static WEBHOOK: Order = Order(&[("clientConfig", Some(&CLIENT)), ("conversionReviewVersions", None)]);
static CLIENT: Order = Order(&[("url", None), ("caBundle", None)]);

/// A document as Go prints the type that it was read into.
fn ordered(value: &Value, order: &Order) -> String {
    match value {
        Value::Array(list) => {
            format!("[{}]", list.iter().map(|item| ordered(item, order)).collect::<Vec<_>>().join(","))
        }
        Value::Object(map) => {
            let fields = order.0.iter().filter_map(|(key, below)| {
                // Subresources are no pointer: they are always there.
                let absent = (*key == "subresources").then(|| json!({}));
                let found = map.get(*key).cloned().or(absent)?;
                let shown = below.map_or_else(|| shown::plain(&found), |below| ordered(&found, below));
                Some(format!("{key:?}:{shown}"))
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        other => shown::plain(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({
            "metadata": { "name": "v1.widgets.example.io" },
            "spec": {
                "group": "example.io", "scope": "Namespaced",
                "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                    "schema": { "type": "object", "properties": { "spec": { "type": "object" } } },
                }],
            },
        })
    }

    fn reported(object: &Value, old: Option<&Value>) -> Vec<String> {
        schema_faults(object, old).iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn a_good_schema_has_no_faults() {
        assert_eq!(reported(&object(), None), Vec::<String>::new());
    }

    #[test]
    fn faults_of_names_groups_and_schemas_are_told_together() {
        let mut bad = object();
        bad["metadata"]["name"] = "1v.widgets.example".into();
        bad["spec"]["group"] = "example".into();
        bad["spec"]["names"]["kind"] = "wi dget".into();
        bad["spec"]["versions"][0]["schema"]["properties"]["spec"] = json!({});
        let reported = reported(&bad, None);
        let expected = [
            "metadata.name: Invalid value: \"1v.widgets.example\": must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ in front of .widgets.example",
            "spec.group: Invalid value: \"example\": should be a domain with at least one dot",
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields",
        ];
        assert_eq!(reported[..3], expected);
        assert!(reported[3].starts_with("spec.names.kind: Invalid value: \"wi dget\""), "{reported:?}");
    }

    #[test]
    fn a_changed_spec_is_shown_as_go_prints_it() {
        let old = object();
        let mut new = old.clone();
        new["metadata"]["labels"] = json!({ "a": "b" });
        assert_eq!(reported(&new, Some(&old)), Vec::<String>::new());
        new["spec"]["scope"] = "Cluster".into();
        let reported = reported(&new, Some(&old));
        assert_eq!(reported.len(), 1);
        assert!(
            reported[0].starts_with(
                "spec: Invalid value: {\"group\":\"example.io\",\"names\":{\"plural\":\"widgets\",\"singular\":\"widget\",\"kind\":"
            ) && reported[0].ends_with(": is immutable"),
            "{reported:?}"
        );
    }
}
