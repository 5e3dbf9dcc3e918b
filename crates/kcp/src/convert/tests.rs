use super::*;
use proptest::prelude::*;

#[test]
fn an_export_of_the_agent_becomes_resources_and_claims_with_all_verbs() {
    let mut object = json!({"apiVersion": "apis.kcp.io/v1alpha1", "metadata": {"name": "e"}, "spec": {
        "latestResourceSchemas": ["v1.widgets.example.io", "v2.things.core"],
        "permissionClaims": [{"resource": "secrets", "all": true}]}});
    let v1 = object.clone();
    export(V1, V2, &mut object);
    assert_eq!(object["apiVersion"], "apis.kcp.io/v1alpha2");
    assert_eq!(
        object["spec"],
        json!({
            "resources": [
                {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io", "storage": {"crd": {}}},
                {"name": "things", "group": "", "schema": "v2.things.core", "storage": {"crd": {}}}],
            "permissionClaims": [{"group": "", "resource": "secrets", "identityHash": "", "verbs": ["*"]}]})
    );
    export(V2, V1, &mut object);
    assert_eq!(settled(object), v1);
}

#[test]
fn what_v1alpha1_cannot_say_is_listed_and_kept_in_annotations() {
    let mut object = json!({"apiVersion": "apis.kcp.io/v1alpha2", "metadata": {"name": "e"}, "spec": {
        "resources": [{"name": "w", "group": "g", "schema": "v1.w.g", "storage": {"virtual": {"x": 1}}}],
        "permissionClaims": [{"group": "", "resource": "secrets", "identityHash": "", "verbs": ["get"]}]}});
    let v2 = object.clone();
    export(V2, V1, &mut object);
    assert_eq!(object["spec"], json!({"permissionClaims": [{"resource": "secrets"}]}));
    let kept = |key: &str| object["metadata"]["annotations"].get(key).is_some();
    assert!(kept("apis.v1alpha2.kcp.io/resource-schemas"));
    assert!(kept("apis.v1alpha2.kcp.io/permission-claims"));
    export(V1, V2, &mut object);
    assert_eq!(settled(object), v2);
}

#[test]
fn what_is_kept_is_written_as_kcp_writes_it() {
    let mut object = json!({"apiVersion": "apis.kcp.io/v1alpha1", "metadata": {}, "spec": {
        "permissionClaims": [{"group": "", "resource": "secrets", "all": true}]}});
    export(V1, V2, &mut object);
    let kept = &object["metadata"]["annotations"]["apis.v1alpha2.kcp.io/v1alpha1-permission-claims"];
    assert_eq!(*kept, "[{\"resource\":\"secrets\",\"all\":true}]");
    let mut object = json!({"apiVersion": "apis.kcp.io/v1alpha1", "metadata": {}, "spec": {
        "permissionClaims": [{"group": "", "resource": "secrets", "all": true, "state": "Accepted"}]}});
    binding(V1, V2, &mut object);
    assert_eq!(object["metadata"], json!({}));
}

#[test]
fn what_is_empty_is_shown_as_kcp_shows_it() {
    let mut object = json!({"apiVersion": "apis.kcp.io/v1alpha2", "metadata": {}, "spec": {"permissionClaims": []}});
    binding(V2, V1, &mut object);
    assert_eq!(object, json!({"apiVersion": "apis.kcp.io/v1alpha1", "metadata": {}, "spec": {}, "status": {}}));
}

#[test]
fn a_claim_with_a_selector_claims_all_only_if_it_selects_all() {
    let claim = |selector: Value| json!({"group": "", "resource": "secrets", "identityHash": "", "verbs": ["*"], "selector": selector, "state": "Accepted"});
    for (selector, all) in [(json!({"matchAll": true}), json!(true)), (json!({"matchLabels": {"a": "b"}}), Value::Null)]
    {
        let mut object = json!({"metadata": {}, "spec": {"permissionClaims": [claim(selector.clone())]}});
        binding(V2, V1, &mut object);
        assert_eq!(object["spec"]["permissionClaims"][0]["all"], all);
        // Whoever says so in v1alpha1 does not get more than the selector of v1alpha2.
        object["spec"]["permissionClaims"][0]["all"] = json!(true);
        binding(V1, V2, &mut object);
        assert_eq!(object["spec"]["permissionClaims"][0]["selector"], selector);
    }
}

#[test]
fn the_decision_on_a_claim_can_be_changed_in_the_other_version() {
    let mut object = json!({"apiVersion": "apis.kcp.io/v1alpha2", "metadata": {}, "spec": {"permissionClaims": [
        {"group": "", "resource": "secrets", "identityHash": "", "verbs": ["get"], "selector": {"matchLabels": {"a": "b"}}, "state": "Accepted"}]}});
    binding(V2, V1, &mut object);
    object["spec"]["permissionClaims"][0]["state"] = json!("Rejected");
    binding(V1, V2, &mut object);
    let claim = &object["spec"]["permissionClaims"][0];
    assert_eq!((&claim["state"], &claim["verbs"]), (&json!("Rejected"), &json!(["get"])));
}

fn word() -> impl Strategy<Value = String> {
    "[a-z]{1,4}"
}

fn annotations() -> impl Strategy<Value = Value> {
    prop_oneof![Just(json!({"name": "x"})), Just(json!({"name": "x", "annotations": {"mine": "kept"}}))]
}

fn state(with: bool) -> impl Strategy<Value = Option<&'static str>> {
    if with { prop_oneof![Just(Some("Accepted")), Just(Some("Rejected"))].boxed() } else { Just(None).boxed() }
}

fn v1_claim(stated: bool) -> impl Strategy<Value = Value> {
    let scope = prop_oneof![
        Just(json!({"all": true})),
        word().prop_map(|n| json!({"resourceSelector": [{"name": n, "namespace": "ns"}]}))
    ];
    (word(), prop::option::of(word()), prop::option::of(word()), scope, state(stated)).prop_map(
        |(resource, group, identity, mut claim, state)| {
            claim["resource"] = json!(resource);
            for (field, value) in [("group", group), ("identityHash", identity)] {
                if let Some(value) = value {
                    claim[field] = json!(value);
                }
            }
            if let Some(state) = state {
                claim["state"] = json!(state);
            }
            claim
        },
    )
}

fn v2_claim(selector: &'static str, required: bool, stated: bool) -> impl Strategy<Value = Value> {
    let verbs = prop_oneof![Just(json!(["*"])), Just(json!(["get", "list"]))];
    let labels = word().prop_map(|l| json!({"matchLabels": {"l": l}}));
    let chosen = if required {
        prop_oneof![Just(Some(json!({"matchAll": true}))), labels.prop_map(Some)].boxed()
    } else {
        prop::option::of(labels).boxed()
    };
    (word(), "[a-z]{0,2}", "[a-z]{0,2}", verbs, chosen, state(stated)).prop_map(
        move |(resource, group, identity, verbs, chosen, state)| {
            let mut claim = json!({"resource": resource, "group": group, "identityHash": identity, "verbs": verbs});
            if let Some(chosen) = chosen {
                claim[selector] = chosen;
            }
            if let Some(state) = state {
                claim["state"] = json!(state);
            }
            claim
        },
    )
}

fn list<S: Strategy<Value = Value>>(claim: S) -> impl Strategy<Value = Vec<Value>> {
    // The API server refuses two claims with one key.
    prop::collection::vec(claim, 0..4).prop_map(|mut all| {
        all.sort_by_key(|c| format!("{:?}", key(c)));
        all.dedup_by_key(|c| format!("{:?}", key(c)));
        all
    })
}

fn v1_export() -> impl Strategy<Value = Value> {
    let names = prop::collection::vec((word(), word()).prop_map(|(r, g)| format!("v1.{r}.{g}.io")), 0..4);
    (annotations(), names, list(v1_claim(false))).prop_map(|(metadata, names, claims)| {
        json!({"apiVersion": "apis.kcp.io/v1alpha1", "metadata": metadata,
            "spec": {"latestResourceSchemas": names, "permissionClaims": claims}})
    })
}

fn v2_export() -> impl Strategy<Value = Value> {
    let crd = prop::collection::vec((word(), word()).prop_map(|(r, g)| resource_of(&format!("v1.{r}.{g}.io"))), 0..3);
    let other = prop::collection::vec(
        word()
            .prop_map(|r| json!({"name": r, "group": "g", "schema": format!("v1.{r}.g"), "storage": {"virtual": {}}})),
        0..3,
    );
    (annotations(), crd, other, list(v2_claim("defaultSelector", false, false))).prop_map(
        |(metadata, crd, other, claims)| {
            let resources = [crd, other].concat();
            json!({"apiVersion": "apis.kcp.io/v1alpha2", "metadata": metadata,
                "spec": {"resources": resources, "permissionClaims": claims}})
        },
    )
}

fn v1_binding() -> impl Strategy<Value = Value> {
    (annotations(), list(v1_claim(true)), list(v1_claim(false)), list(v1_claim(false))).prop_map(
        |(metadata, claims, exported, applied)| {
            json!({"apiVersion": "apis.kcp.io/v1alpha1", "metadata": metadata, "spec": {"permissionClaims": claims},
                "status": {"exportPermissionClaims": exported, "appliedPermissionClaims": applied}})
        },
    )
}

fn v2_binding() -> impl Strategy<Value = Value> {
    let accepted = list(v2_claim("selector", true, true));
    let exported = list(v2_claim("defaultSelector", false, false));
    let applied = list(v2_claim("selector", true, false));
    (annotations(), accepted, exported, applied).prop_map(|(metadata, claims, exported, applied)| {
        json!({"apiVersion": "apis.kcp.io/v1alpha2", "metadata": metadata, "spec": {"permissionClaims": claims},
            "status": {"exportPermissionClaims": exported, "appliedPermissionClaims": applied}})
    })
}

fn there_and_back(convert: fn(&str, &str, &mut Value), from: &str, to: &str, object: &Value) -> Value {
    let mut moved = object.clone();
    convert(from, to, &mut moved);
    assert_eq!(moved["apiVersion"], format!("apis.kcp.io/{to}"));
    convert(to, from, &mut moved);
    settled(moved)
}

/// An object without empty lists, which do not survive, and without what kcp notes for the next way back.
fn settled(mut object: Value) -> Value {
    for part in ["spec", "status"] {
        if let Some(Value::Object(fields)) = object.get_mut(part) {
            fields.retain(|_, value| *value != json!([]));
        }
    }
    if object["status"] == json!({}) {
        map(&mut object).remove("status");
    }
    for list in BINDING_CLAIMS.iter().chain([&EXPORT_CLAIMS]) {
        take(&mut object, list.v1_rest);
    }
    object
}

proptest! {
    #[test]
    fn exports_survive_the_way_through_v1alpha2(object in v1_export()) {
        prop_assert_eq!(there_and_back(export, V1, V2, &object), settled(object));
    }

    #[test]
    fn exports_survive_the_way_through_v1alpha1(object in v2_export()) {
        prop_assert_eq!(there_and_back(export, V2, V1, &object), settled(object));
    }

    #[test]
    fn bindings_survive_the_way_through_v1alpha2(object in v1_binding()) {
        prop_assert_eq!(there_and_back(binding, V1, V2, &object), settled(object));
    }

    #[test]
    fn bindings_survive_the_way_through_v1alpha1(object in v2_binding()) {
        prop_assert_eq!(there_and_back(binding, V2, V1, &object), settled(object));
    }
}
