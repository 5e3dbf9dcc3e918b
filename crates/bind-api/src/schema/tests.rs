use serde_json::json;

use super::*;
use crate::kinds::ApiObject;
use crate::names::{CONVERSION_WEBHOOK_ANNOTATION, SOURCE_SPEC_HASH_ANNOTATION};
use crate::v1alpha2::{ApiServiceBinding, BoundSchema, InformerScope, Isolation, SchemaUpdatePolicy};

fn source() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.io"},
        "spec": {
            "group": "example.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["w"]},
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
                "url": "https://convert.example.io", "caBundle": "Q0E=", "service": {"name": "s", "namespace": "n"}}}},
            "versions": [
                {"name": "v0", "served": false, "storage": false, "deprecated": true, "deprecationWarning": "old",
                    "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "default": {}}}}},
                    "selectableFields": [{"jsonPath": ".spec.size"}],
                    "additionalPrinterColumns": [{"name": "Size", "type": "string", "jsonPath": ".spec.size"}]}]}})
}

fn bound() -> BoundSchema {
    from_crd(&source(), InformerScope::Cluster, &Isolation::Prefixed).unwrap()
}

fn binding() -> ApiServiceBinding {
    let mut binding = ApiServiceBinding::new("b");
    "u1".clone_into(&mut binding.metadata.uid);
    binding
        .metadata
        .annotations
        .insert(CONVERSION_WEBHOOK_ANNOTATION.to_owned(), "https://convert.example.io".to_owned());
    binding
}

#[test]
fn a_webhook_that_the_consumer_has_not_agreed_to_is_not_called() {
    let (schema, agreed) = (bound(), binding());
    let mut unasked = binding();
    unasked.metadata.annotations.clear();
    let mut elsewhere = binding();
    elsewhere
        .metadata
        .annotations
        .insert(CONVERSION_WEBHOOK_ANNOTATION.to_owned(), "https://other.example.io".to_owned());
    for binding in [&unasked, &elsewhere] {
        let made = crd(&schema, binding, None).unwrap();
        assert_eq!((made["spec"].get("conversion"), made["spec"]["versions"].as_array().unwrap().len()), (None, 1));
    }
    let there = crd(&schema, &agreed, None).unwrap();
    assert!(there["spec"]["conversion"].is_object());
    assert_eq!(crd(&schema, &unasked, Some(&there)).unwrap()["spec"], there["spec"], "what is there stays");
}

#[test]
fn a_crd_survives_the_way_to_the_consumer() {
    let schema = bound();
    assert_eq!(schema.metadata.name, "widgets.example.io");
    let crd = crd(&schema, &binding(), None).unwrap();
    let mut wanted = source()["spec"].clone();
    wanted["conversion"]["webhook"]["clientConfig"].as_object_mut().unwrap().remove("service");
    assert_eq!(crd["spec"], wanted);
    assert_eq!(
        crd["metadata"]["ownerReferences"],
        json!([{"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": "b", "uid": "u1", "controller": true}])
    );
}

#[test]
fn a_webhook_that_cannot_be_called_leaves_the_version_that_is_synced() {
    let mut source = source();
    source["spec"]["versions"][0]["served"] = json!(true);
    source["spec"]["conversion"]["webhook"]["clientConfig"] = json!({"service": {"name": "s", "namespace": "n"}});
    let schema = from_crd(&source, InformerScope::Cluster, &Isolation::Prefixed).unwrap();
    assert_eq!(schema.spec.versions.len(), 2, "the provider's schema is complete");
    let crd = crd(&schema, &binding(), None).unwrap();
    let [only] = &crd["spec"]["versions"].as_array().unwrap()[..] else { panic!("{crd}") };
    assert_eq!((&only["name"], &only["served"], &only["storage"]), (&json!("v0"), &json!(true), &json!(true)));
    assert_eq!(only["name"], SyncedApi::of(&schema.spec).unwrap().version.as_str());
    assert_eq!(crd["spec"].get("conversion"), None);
}

#[test]
fn schemas_are_read_wrapped_and_bare() {
    let mut schema = bound();
    let bare = schema.spec.versions[1].schema["openAPIV3Schema"].clone();
    let wrapped = crd(&schema, &binding(), None).unwrap();
    schema.spec.versions[1].schema = bare;
    assert_eq!(crd(&schema, &binding(), None).unwrap()["spec"], wrapped["spec"]);
    for nothing in [Value::Null, json!({}), json!("text"), json!({"openAPIV3Schema": null})] {
        schema.spec.versions[1].schema = nothing.clone();
        let error = crd(&schema, &binding(), None).unwrap_err();
        assert_eq!(error.to_string(), "version v1 of widgets.example.io has no schema", "{nothing}");
    }
}

#[test]
fn schemas_of_kcp_are_taken_over_too() {
    let source = json!({"metadata": {"name": "v1.widgets.example.io"}, "spec": {"group": "example.io", "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}}]}});
    let schema =
        from_api_resource_schema(&serde_json::from_value(source).unwrap(), InformerScope::Cluster, &Isolation::None);
    let crd = crd(&schema, &binding(), None).unwrap();
    assert_eq!(crd["spec"]["versions"][0]["schema"], json!({"openAPIV3Schema": {"type": "object"}}));
    assert_eq!(crd["spec"].get("conversion"), None);
}

#[test]
fn isolation_namespaced_shows_namespaced_kinds_as_cluster_scoped() {
    for (isolation, scope) in
        [(Isolation::Namespaced, "Cluster"), (Isolation::Prefixed, "Namespaced"), (Isolation::None, "Namespaced")]
    {
        let schema = from_crd(&source(), InformerScope::Cluster, &isolation).unwrap();
        assert_eq!(schema.spec.scope.as_str(), scope);
        assert_eq!(SyncedApi::of(&schema.spec).unwrap().is_namespaced, scope == "Namespaced");
    }
}

#[test]
fn what_makes_no_crd_says_why() {
    type Spoil = fn(&mut BoundSchema);
    let cases: Vec<(Spoil, &str)> = vec![
        (|schema| schema.spec.versions[1].served = false, "no version of widgets.example.io is served"),
        (|schema| schema.spec.versions.clear(), "no version of widgets.example.io is served"),
        (|schema| schema.spec.versions[0].storage = true, "widgets.example.io has 2 storage versions instead of one"),
        (
            |schema| "v1".clone_into(&mut schema.spec.versions[0].name),
            "version v1 of widgets.example.io is listed twice",
        ),
        (
            |schema| "gadgets".clone_into(&mut schema.spec.names.plural),
            "it is called widgets.example.io and describes gadgets.example.io",
        ),
        (
            |schema| {
                schema.spec.group.clear();
                "widgets.core".clone_into(&mut schema.metadata.name);
            },
            "widgets is in the core group",
        ),
    ];
    for (spoil, wanted) in cases {
        let mut schema = bound();
        spoil(&mut schema);
        let error = crd(&schema, &binding(), None).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
    let error = from_crd(&json!({"spec": {"versions": 1}}), InformerScope::Cluster, &Isolation::None).unwrap_err();
    assert!(error.to_string().starts_with("it is not a CustomResourceDefinition: versions:"), "{error}");
}

#[test]
fn objects_are_synced_in_the_first_served_version() {
    let api = SyncedApi::of(&bound().spec).unwrap();
    assert_eq!((api.version.as_str(), api.has_status, api.is_namespaced), ("v1", true, true));
    let mut schema = bound();
    schema.spec.versions[0].served = true;
    let api = SyncedApi::of(&schema.spec).unwrap();
    assert_eq!((api.version.as_str(), api.has_status), ("v0", false));
}

/// A CRD as a server returns it.
fn served(crd: &Value) -> Value {
    let mut crd = crd.clone();
    crd["metadata"]["uid"] = json!("u2");
    crd["metadata"]["resourceVersion"] = json!("7");
    crd["status"] = json!({"storedVersions": ["v1"], "acceptedNames": {"plural": "widgets", "kind": "Widget"}});
    crd
}

#[test]
fn a_crd_is_created_kept_or_replaced() {
    let binding = binding();
    let mut schema = bound();
    // What a server fills in and what it drops.
    schema.spec.conversion = None;
    schema.spec.names.singular.clear();
    schema.spec.names.list_kind.clear();
    schema.spec.versions[1].schema["openAPIV3Schema"]["x-unknown"] = json!(true);
    let wanted = crd(&schema, &binding, None).unwrap();
    assert_eq!(plan(None, &wanted, &binding), Ok(CrdPlan::Create(wanted.clone())));
    let mut there = served(&wanted);
    there["spec"]["names"]["singular"] = json!("widget");
    there["spec"]["names"]["listKind"] = json!("WidgetList");
    there["spec"]["conversion"] = json!({"strategy": "None"});
    there["spec"]["versions"][1]["schema"]["openAPIV3Schema"].as_object_mut().unwrap().remove("x-unknown");
    assert_eq!(plan(Some(&there), &wanted, &binding), Ok(CrdPlan::Keep));

    for (case, change) in [
        (
            "somebody has changed it",
            &(|crd: &mut Value| crd["spec"]["versions"][1]["served"] = json!(false)) as &dyn Fn(&mut Value),
        ),
        ("somebody has added to it", &|crd: &mut Value| crd["spec"]["names"]["categories"] = json!(["all"])),
        ("it is of another schema", &|crd: &mut Value| crd["metadata"]["annotations"] = Value::Null),
    ] {
        let mut changed = there.clone();
        change(&mut changed);
        let Ok(CrdPlan::Replace(new)) = plan(Some(&changed), &wanted, &binding) else { panic!("{case}") };
        assert_eq!(new["spec"], wanted["spec"], "{case}");
        assert_eq!((&new["metadata"]["uid"], &new["metadata"]["resourceVersion"]), (&json!("u2"), &json!("7")));
        assert_eq!(plan(Some(&served(&new)), &wanted, &binding), Ok(CrdPlan::Keep), "{case}: once is enough");
    }
}

#[test]
fn crds_of_others_are_left_alone() {
    let wanted = crd(&bound(), &binding(), None).unwrap();
    let owned = |owners: Value| {
        let mut crd = served(&wanted);
        crd["metadata"]["ownerReferences"] = owners;
        plan(Some(&crd), &wanted, &binding()).unwrap_err().to_string()
    };
    let binding = |name: &str, uid: &str| json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": name, "uid": uid, "controller": true});
    assert_eq!(owned(Value::Null), "it belongs to nobody");
    assert_eq!(owned(json!([binding("other", "u1")])), "it belongs to APIServiceBinding other");
    assert_eq!(owned(json!([binding("b", "u0")])), "it belongs to an earlier APIServiceBinding b");
    let mut another_group = binding("b", "u1");
    another_group["apiVersion"] = json!("evil.io/v1");
    assert_eq!(owned(json!([another_group])), "it belongs to APIServiceBinding b");
    let mut no_controller = binding("b", "u1");
    no_controller["controller"] = json!(false);
    assert_eq!(owned(json!([no_controller])), "it belongs to nobody");
}

#[test]
fn what_a_crd_cannot_follow_is_told() {
    let binding = binding();
    let there = served(&crd(&bound(), &binding, None).unwrap());
    let mut schema = bound();
    schema.spec.scope = ResourceScope::Cluster;
    let error = plan(Some(&there), &crd(&schema, &binding, None).unwrap(), &binding).unwrap_err();
    assert!(matches!(error, CrdProblem::Scope { .. }), "{error}");
    let mut schema = bound();
    schema.spec.versions.remove(1);
    (schema.spec.versions[0].served, schema.spec.versions[0].storage) = (true, true);
    let error = plan(Some(&there), &crd(&schema, &binding, None).unwrap(), &binding).unwrap_err();
    assert_eq!(error, CrdProblem::StoredVersion("v1".to_owned()));
    let mut deleting = there;
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(plan(Some(&deleting), &deleting, &binding), Err(CrdProblem::Deleting));
}

#[test]
fn only_policy_always_follows_the_source() {
    let (existing, mut changed) = (bound(), source());
    changed["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["description"] = json!("new");
    let changed = from_crd(&changed, InformerScope::Cluster, &Isolation::Prefixed).unwrap();
    let mut stored = existing.clone();
    "7".clone_into(&mut stored.metadata.resource_version);
    for policy in
        [SchemaUpdatePolicy::Never, SchemaUpdatePolicy::Unset, SchemaUpdatePolicy::Other("Sometimes".to_owned())]
    {
        assert_eq!(refresh(&stored, &changed, &policy), Refresh::Keep, "{policy}");
    }
    assert_eq!(refresh(&stored, &existing, &SchemaUpdatePolicy::Always), Refresh::Keep);
    let Refresh::Replace(new) = refresh(&stored, &changed, &SchemaUpdatePolicy::Always) else {
        panic!("it has changed")
    };
    assert_eq!((&new.spec, new.metadata.resource_version.as_str()), (&changed.spec, "7"));
    assert_eq!(new.metadata().annotation(SOURCE_SPEC_HASH_ANNOTATION), Some(hash([&changed.spec]).as_str()));
    assert_eq!(refresh(&new, &changed, &SchemaUpdatePolicy::Always), Refresh::Keep);
}

#[test]
fn the_provider_learns_what_became_of_the_crd() {
    let now = Timestamp::from_second(1).unwrap();
    let mut crd = served(&crd(&bound(), &binding(), None).unwrap());
    crd["status"]["conditions"] = json!([
        {"type": "NamesAccepted", "status": "False", "reason": "ListKindConflict", "message": "\"WidgetList\" is taken",
            "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let mut status = BoundSchemaStatus::default();
    consumer_status(&mut status, &crd, now);
    assert_eq!(
        serde_json::to_value(&status).unwrap(),
        json!({"acceptedNames": {"plural": "widgets", "kind": "Widget"}, "storedVersions": ["v1"], "conditions": [
            {"type": "Ready", "status": "False", "severity": "Error", "reason": "ListKindConflict", "message": "\"WidgetList\" is taken",
                "lastTransitionTime": "1970-01-01T00:00:01Z"},
            {"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "lastTransitionTime": "1970-01-01T00:00:01Z"},
            {"type": "NamesAccepted", "status": "False", "severity": "Error", "reason": "ListKindConflict",
                "message": "\"WidgetList\" is taken", "lastTransitionTime": "1970-01-01T00:00:01Z"}]})
    );
    let before = status.clone();
    consumer_status(&mut status, &crd, Timestamp::from_second(2).unwrap());
    assert_eq!(status, before, "nothing new, nothing written");
}
