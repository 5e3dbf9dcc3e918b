use serde_json::{Value, json};

use super::*;

/// The schema made from a model, given other models.
fn schema_of(model: Value, others: &Value) -> Result<Value, OpenApiError> {
    let mut definitions = others.clone();
    definitions["x.v1.Thing"] = model;
    definitions["x.v1.Thing"]["x-kubernetes-group-version-kind"] =
        json!([{"group": "x", "version": "v1", "kind": "Thing"}]);
    let models = BTreeMap::from([("v1".to_owned(), Models::of(json!({"definitions": definitions})))]);
    let crd = crd(&thing(), &models)?;
    Ok(serde_json::to_value(&crd.spec.versions[0].schema).unwrap()["openAPIV3Schema"].clone())
}

fn thing() -> Served {
    let names = Names { plural: "things".into(), kind: "Thing".into(), ..Names::default() };
    let versions = BTreeMap::from([("v1".to_owned(), true)]);
    Served { group: "x".into(), names, namespaced: true, preferred: "v1".into(), versions }
}

fn field(part: &Value, others: &Value) -> Value {
    let model = json!({"type": "object", "properties": {"f": part}});
    schema_of(model, others).unwrap()["properties"]["f"].clone()
}

#[test]
fn every_shape_becomes_what_other_agents_make_of_it() {
    let others = json!({
        "x.v1.Part": {"type": "object", "description": "a part", "required": ["b"], "properties": {
            "b": {"type": "integer", "format": "int32"}, "a": {"type": "string"}, "metadata": {"type": "string"}}},
        "x.v1.Word": {"type": "string", "description": "a word"},
    });
    let part = json!({"type": "object", "description": "a part", "required": ["b"], "properties": {
        "a": {"type": "string"}, "b": {"type": "integer", "format": "int32"}, "metadata": {"type": "string"}}});
    let own = |description: &str| {
        let mut part = part.clone();
        part["description"] = description.into();
        part
    };
    let keyed = |keys: &[&str]| {
        let mut part = part.clone();
        part["required"] = keys.into();
        part
    };
    let reference = json!({"$ref": "#/definitions/x.v1.Part"});
    let cases = [
        (
            json!({"type": "string", "description": "d", "enum": ["a"], "default": "a"}),
            json!({"type": "string", "description": "d"}),
        ),
        (reference.clone(), part.clone()),
        (json!({"$ref": "#/definitions/x.v1.Part", "description": "own"}), own("own")),
        // The same in OpenAPI v3.
        (
            json!({"allOf": [{"$ref": "#/components/schemas/x.v1.Part"}], "default": {}, "description": "own"}),
            own("own"),
        ),
        (json!({"$ref": "#/definitions/x.v1.Word"}), json!({"type": "string", "description": "a word"})),
        (
            json!({"type": "object", "additionalProperties": {"type": "string", "format": "byte", "description": "v"}}),
            json!({"type": "object", "description": "v",
                "additionalProperties": {"type": "string", "format": "byte", "description": "v"}}),
        ),
        (
            json!({"type": "object", "description": "anything"}),
            json!({"type": "object", "description": "anything",
                "additionalProperties": {"description": "anything", "x-kubernetes-preserve-unknown-fields": true}}),
        ),
        (
            json!({"description": "anything", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"description": "anything", "x-kubernetes-preserve-unknown-fields": true}),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"}),
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "replace"}),
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}),
        ),
        (
            json!({"type": "array", "items": reference, "x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "a"}),
            json!({"type": "array", "items": keyed(&["a", "b"]), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
        ),
        (
            json!({"type": "array", "items": reference, "x-kubernetes-patch-merge-key": "a"}),
            json!({"type": "array", "items": keyed(&["a", "b"]), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
        ),
        (
            json!({"type": "array", "items": reference, "x-kubernetes-list-type": "atomic", "x-kubernetes-patch-merge-key": "a"}),
            json!({"type": "array", "items": keyed(&["a", "b"]), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
        ),
        (
            json!({"type": "array", "items": reference, "x-kubernetes-list-type": "atomic", "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "a"}),
            json!({"type": "array", "items": keyed(&["a", "b"]), "x-kubernetes-list-type": "atomic"}),
        ),
        (
            json!({"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "description": "d"}),
            json!({"type": "object", "description": "d", "x-kubernetes-preserve-unknown-fields": true}),
        ),
        (
            json!({"$ref": "#/definitions/io.k8s.apimachinery.pkg.util.intstr.IntOrString"}),
            json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true}),
        ),
    ];
    for (given, wanted) in cases {
        assert_eq!(field(&given, &others), wanted, "{given}");
    }
}

#[test]
fn keys_of_a_list_that_have_a_default_are_not_required() {
    let port = json!({"type": "object", "properties": {"port": {"type": "integer"}, "protocol": {"type": "string"}}});
    let others = json!({"io.k8s.api.core.v1.ServicePort": port});
    let list = json!({"type": "array", "items": {"$ref": "#/definitions/io.k8s.api.core.v1.ServicePort"},
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"]});
    let items = &field(&list, &others)["items"];
    assert_eq!(items["required"], json!(["port"]));
    assert_eq!(items["properties"]["protocol"]["default"], "TCP");
}

#[test]
fn the_kinds_own_metadata_is_not_described_but_that_of_parts_is() {
    let model = json!({"type": "object", "properties": {"metadata": {"type": "string", "description": "d"}}});
    assert_eq!(schema_of(model, &json!({})).unwrap()["properties"]["metadata"], json!({"type": "object"}));
}

#[test]
fn what_no_schema_can_say_is_refused_with_the_model() {
    let loops = json!({"x.v1.Loop": {"type": "object", "properties": {"again": {"$ref": "#/definitions/x.v1.Loop"}}}});
    let referring =
        |name: &str| json!({"type": "object", "properties": {"f": {"$ref": format!("#/definitions/{name}")}}});
    let cases = [
        (referring("x.v1.Loop"), OpenApiError::Recursive("x.v1.Loop".into())),
        (referring("x.v1.Nothing"), OpenApiError::NoReference("x.v1.Nothing".into())),
        (
            json!({"type": "object", "properties": {"f": {"type": "array"}}}),
            OpenApiError::NoItems("x.v1.Thing.f".into()),
        ),
    ];
    for (model, wanted) in cases {
        assert_eq!(schema_of(model, &loops), Err(wanted));
    }
    let nothing = BTreeMap::from([("v1".to_owned(), Models::default())]);
    assert_eq!(crd(&thing(), &nothing), Err(OpenApiError::NoModel("x/v1, Kind=Thing".into())));
}

#[test]
fn names_scope_and_versions_come_from_discovery() {
    let model = |version: &str| {
        let mark = json!([{"group": "apps.k8s.io", "version": version, "kind": "Thing"}]);
        Models::of(
            json!({"components": {"schemas": {"a.Thing": {"type": "object", "properties": {}, "x-kubernetes-group-version-kind": mark}}}}),
        )
    };
    let served = Served {
        group: "apps.k8s.io".into(),
        namespaced: false,
        preferred: "v1".into(),
        versions: BTreeMap::from([("v1".into(), true), ("v1beta1".into(), false), ("v2".into(), false)]),
        ..thing()
    };
    let models = ["v1", "v1beta1", "v2"].map(|version| (version.to_owned(), model(version))).into();
    let crd = crd(&served, &models).unwrap();
    assert_eq!((crd.name.as_str(), crd.generation), ("things.apps.k8s.io", 0));
    assert!(crd.approved.is_some());
    assert_eq!((crd.spec.names.singular.as_str(), crd.spec.names.list_kind.as_str()), ("thing", "ThingList"));
    assert_eq!(crd.spec.scope, "Cluster");
    let versions: Vec<_> = crd.spec.versions.iter().map(|v| (v.name.as_str(), v.storage, v.has_status())).collect();
    assert_eq!(versions, [("v1beta1", false, false), ("v1", true, true), ("v2", false, false)]);
}

#[test]
fn protected_groups_are_those_of_kubernetes() {
    for (group, protected) in [
        ("k8s.io", true),
        ("rbac.authorization.k8s.io", true),
        ("x.kubernetes.io", true),
        ("notk8s.io", false),
        ("apps", false),
        ("", false),
    ] {
        assert_eq!(is_protected(group), protected, "{group}");
    }
}

#[test]
fn a_model_may_be_used_more_than_once() {
    let others = json!({"x.v1.Part": {"type": "object", "properties": {"a": {"type": "string"}}}});
    let reference = json!({"$ref": "#/definitions/x.v1.Part"});
    let model = json!({"type": "object", "properties": {"f": reference, "g": reference}});
    let schema = schema_of(model, &others).unwrap();
    assert_eq!(schema["properties"]["f"], schema["properties"]["g"]);
}
