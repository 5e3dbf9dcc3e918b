use serde_json::json;

use super::*;
use crate::v1alpha2::{ExportedResource, Isolation};

fn export(isolation: Isolation) -> ApiServiceExport {
    let mut export = ApiServiceExport::new("e");
    export.spec.resources = vec![ExportedResource::new("wild.io", "sheriffs", &["v1", "v2"])];
    export.spec.isolation = isolation;
    export
}

#[allow(clippy::needless_pass_by_value)] // callers have no more use for them
fn compile_in(isolation: Isolation, selector: Value) -> Claim {
    let claim = json!({"group": "", "resource": "secrets", "selector": selector});
    Claim::compile(&serde_json::from_value(claim).unwrap(), &export(isolation)).unwrap()
}

fn compile(selector: Value) -> Claim {
    compile_in(Isolation::Prefixed, selector)
}

#[allow(clippy::needless_pass_by_value)] // callers have no more use for them
fn object(namespace: &str, name: &str, labels: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}})
}

/// What these objects name by the first reference of a claim.
fn named(claim: &Claim, objects: &[Value]) -> NamedObjects {
    let mut named = NamedObjects::default();
    for object in objects {
        for (place, reference) in claim.references().iter().enumerate() {
            named.update(place, reference, &key_of(object).unwrap(), Some(object));
        }
    }
    named
}

#[test]
fn labels_and_names_select_as_in_kube_bind() {
    let labels = json!({"labelSelector": {"matchLabels": {"app": "test"}}});
    let name = |namespace: &str, name: &str| json!({"namedResources": [{"name": name, "namespace": namespace}]});
    let both = |value: &str, named: &str| json!({"labelSelector": {"matchLabels": {"app": value}}, "namedResources": [{"name": named, "namespace": "ns"}]});
    let several = json!({"namedResources": [{"name": "other", "namespace": "ns"}, {"name": "obj", "namespace": "ns"}]});
    let app = json!({"app": "test"});
    let cases = [
        (json!({}), app.clone(), None),
        (labels.clone(), app.clone(), Some(SelectedBy::Labels)),
        (json!({"labelSelector": {"matchLabels": {"app": "different"}}}), app.clone(), None),
        (json!({"labelSelector": {}}), json!({}), Some(SelectedBy::Labels)),
        (labels, Value::Null, None),
        (name("ns", "obj"), json!({}), Some(SelectedBy::Name)),
        (name("", "obj"), json!({}), Some(SelectedBy::Name)),
        (name("ns", "other"), json!({}), None),
        (name("other", "obj"), json!({}), None),
        (several, json!({}), Some(SelectedBy::Name)),
        (both("test", "obj"), app.clone(), Some(SelectedBy::Labels)),
        (both("different", "obj"), app.clone(), Some(SelectedBy::Name)),
        (both("test", "other"), app.clone(), Some(SelectedBy::Labels)),
        (both("different", "other"), app, None),
    ];
    for (selector, labels, wanted) in cases {
        let claim = compile(selector.clone());
        let selected = claim.selects(&object("ns", "obj", labels), &NamedObjects::default());
        assert_eq!(selected, wanted, "{selector}");
    }
}

#[test]
fn the_owner_label_selects_nothing() {
    let claim = compile(json!({"labelSelector": {"matchLabels": {"app": "test"}}}));
    for owner in ["provider", "consumer"] {
        let object = object("ns", "obj", json!({"kube-bind.io/owner": owner}));
        assert_eq!(claim.selects(&object, &NamedObjects::default()), None);
    }
}

#[test]
fn objects_of_the_provider_are_asked_for_by_the_namespace_that_theirs_stands_for() {
    let claim = compile(json!({"namedResources": [{"name": "obj", "namespace": "team"}]}));
    let mut assigned = crate::v1alpha2::ApiServiceNamespace::new("team");
    "c-1-team".clone_into(&mut assigned.status.namespace);
    let namespaces = ServiceNamespaces::new([&assigned]);
    let none = NamedObjects::default();
    let ask = |namespace: &str| claim.selects_on_provider(&object(namespace, "obj", json!({})), &namespaces, &none);
    assert_eq!(ask("c-1-team"), Some((ObjectKey::namespaced("team", "obj"), SelectedBy::Name)));
    assert_eq!(ask("team"), None, "a namespace that happens to have the same name");
    assert_eq!(ask("kube-system"), None);
}

fn references(name: &str, namespace: &str) -> Value {
    json!({"references": [{"group": "wild.io", "resource": "sheriffs", "jsonPath": {"name": name, "namespace": namespace}}]})
}

#[test]
fn references_select_what_objects_name() {
    let one =
        json!({"metadata": {"name": "s", "namespace": "own"}, "spec": {"ref": {"name": " a ", "namespace": "x"}}});
    let many = json!({"metadata": {"name": "s", "namespace": "own"},
        "spec": {"refs": [{"name": "a", "namespace": "x"}, {"name": "b", "namespace": "y"}]}});
    let cases = [
        (references("spec.ref.name", ""), &one, "any", "a", true),
        (references("spec.ref.name", "spec.ref.namespace"), &one, "x", "a", true),
        (references("spec.ref.name", "spec.ref.namespace"), &one, "any", "a", false),
        (references("spec.ref.name", "spec.ref.namespace"), &one, "x", "b", false),
        // The namespace is not said: the own one.
        (references("spec.ref.name", "spec.ref.missing"), &one, "own", "a", true),
        (references("spec.ref.name", "spec.ref.missing"), &one, "any", "a", false),
        (references("spec.missing", ""), &one, "any", "a", false),
        (references("spec.refs.#.name", ""), &many, "any", "b", true),
        // Any of the names with any of the namespaces, as kube-bind pairs them.
        (references("spec.refs.#.name", "spec.refs.#.namespace"), &many, "y", "a", true),
        (references("spec.refs.#.name", "spec.refs.#.namespace"), &many, "z", "a", false),
    ];
    for (selector, source, namespace, name, wanted) in cases {
        let claim = compile(selector.clone());
        assert_eq!(claim.problems(), []);
        let named = named(&claim, std::slice::from_ref(source));
        let selected = claim.selects(&object(namespace, name, json!({})), &named);
        assert_eq!(selected, wanted.then_some(SelectedBy::Reference), "{selector} {namespace}/{name}");
    }
}

#[test]
fn with_isolation_namespaced_only_the_namespace_of_the_naming_object_counts() {
    let source = json!({"metadata": {"name": "s", "namespace": "own"}, "spec": {"name": "a"}});
    let claim = compile_in(Isolation::Namespaced, references("spec.name", ""));
    let known = named(&claim, &[source]);
    assert!(claim.selects(&object("own", "a", json!({})), &known).is_some());
    assert!(claim.selects(&object("other", "a", json!({})), &known).is_none());
    let cluster_scoped = json!({"metadata": {"name": "s"}, "spec": {"name": "a"}});
    assert_eq!(named(&claim, &[cluster_scoped]).iter().count(), 0);
}

#[test]
fn changes_of_naming_objects_tell_what_to_look_at() {
    let claim = compile(references("spec.names", ""));
    let [reference] = claim.references() else { panic!("one reference") };
    let source = |name: &str, names: Value| {
        (ObjectKey::cluster(name), json!({"metadata": {"name": name}, "spec": {"names": names}}))
    };
    let mut all = NamedObjects::default();
    let mut update = |(key, object): (ObjectKey, Value), gone: bool| {
        let changed = all.update(0, reference, &key, (!gone).then_some(&object));
        changed.into_iter().map(|named| named.name).collect::<Vec<_>>()
    };
    assert_eq!(update(source("s", json!(["a", "b"])), false), ["a", "b"]);
    assert_eq!(update(source("s", json!(["a", "b"])), false), [""; 0]);
    assert_eq!(update(source("t", json!("b")), false), [""; 0], "it is named already");
    assert_eq!(update(source("s", json!(["b", "c"])), false), ["a", "c"]);
    assert_eq!(update(source("s", json!([])), true), ["c"], "the other one still names b");
    assert_eq!(update(source("t", json!("b")), true), ["b"]);
    assert_eq!(all, NamedObjects::default());
}

#[test]
fn references_say_what_to_watch() {
    let claim = compile(references("spec.name", ""));
    let [reference] = claim.references() else { panic!("one reference") };
    assert_eq!((reference.group(), reference.resource(), reference.version()), ("wild.io", "sheriffs", "v1"));
    let mut other = references("spec.name", "");
    other["references"][0]["versions"] = json!(["v2"]);
    assert_eq!(compile(other).references()[0].version(), "v2");
}

#[test]
fn parts_that_make_no_sense_are_told_and_the_others_stand() {
    let foreign =
        json!({"group": "other.io", "resource": "things", "versions": ["v1"], "jsonPath": {"name": "spec.name"}});
    let cases = [
        (json!({}), "its selector is empty"),
        (
            json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}),
            "\"Near\" is not a label selector operator",
        ),
        (json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}), "needs at least one value"),
        (
            json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}),
            "needs no values",
        ),
        (json!({"labelSelector": {"matchLabels": {"-": "b"}}}), "\"-\" is not the key of a label"),
        (json!({"labelSelector": {"matchLabels": {"a": "b c"}}}), "\"b c\" is not the value of a label"),
        (json!({"namedResources": [{"namespace": "ns"}]}), "has no name"),
        (json!({"references": [foreign.clone()]}), "the export does not have it"),
        (references("", ""), "it has no jsonPath.name"),
        (references("$.spec.name", ""), "is not a gjson path"),
        (references("spec.items[*].name", ""), "is not a gjson path"),
    ];
    for (selector, wanted) in cases {
        let mut with_name = selector.clone();
        let claim = compile(selector);
        let problems: Vec<String> = claim.problems().iter().map(ToString::to_string).collect();
        assert!(problems.len() == 1 && problems[0].contains(wanted), "{problems:?}");
        assert_eq!(claim.selects(&object("ns", "obj", json!({})), &NamedObjects::default()), None);
        if with_name.get("namedResources").is_none() {
            with_name["namedResources"] = json!([{"name": "obj"}]);
            assert!(compile(with_name).selects(&object("ns", "obj", json!({})), &NamedObjects::default()).is_some());
        }
    }
    assert_eq!(compile_in(Isolation::None, json!({"references": [foreign]})).problems(), []);
    let mut without_version = references("spec.name", "");
    without_version["references"][0]["resource"] = json!("things");
    let problem = compile_in(Isolation::None, without_version).problems()[0].to_string();
    assert!(problem.ends_with("neither it nor the export says a version"), "{problem}");
}

#[test]
fn only_three_kinds_can_be_claimed() {
    for (group, resource) in [("", "pods"), ("rbac.authorization.k8s.io", "roles"), ("apps", "secrets")] {
        let claim = PermissionClaim::new(group, resource, crate::v1alpha2::Selector::default());
        let error = Claim::compile(&claim, &export(Isolation::None)).unwrap_err().to_string();
        assert!(error.ends_with("cannot be claimed; claims are for configmaps, secrets, serviceaccounts"), "{error}");
    }
    for api in CLAIMABLE {
        let claim = PermissionClaim::new(api.group, api.resource, crate::v1alpha2::Selector::default());
        assert_eq!(Claim::compile(&claim, &export(Isolation::None)).unwrap().api(), api);
    }
}
