use serde_json::Value;

use super::*;

fn export(claims: &Value) -> Arc<ApiExport> {
    let export = json!({
        "metadata": {"name": "e", "annotations": {"extra.apis.kcp.io/color": "red", "other": "x"}},
        "spec": {"permissionClaims": claims},
        "status": {"identityHash": "abc"}});
    serde_json::from_value(export).map(Arc::new).unwrap()
}

fn schema(name: &str, uid: &str, version: &str) -> Arc<SchemaFacts> {
    Arc::new(SchemaFacts::of(
        &json!({"metadata": {"name": name, "uid": uid}, "spec": {"group": "example.io", "names": {"plural": "widgets"},
        "versions": [{"name": version, "storage": true}]}}),
    ))
}

fn facts(offer: Offer) -> Facts {
    Facts { path: "root:cons".into(), home: Some("prov".into()), reference: "root:prov|e".into(), offer }
}

fn binding() -> ApiBinding {
    ApiBinding::to_export("b", ExportReference::new("root:prov", "e"))
}

fn shown(binding: &ApiBinding) -> Vec<String> {
    let conditions = binding.status.conditions.iter();
    conditions.map(|c| format!("{} {} {}", c.type_, c.status, c.reason).trim_end().to_owned()).collect()
}

#[test]
fn conditions_say_why_a_binding_waits_or_that_it_is_bound() {
    let waiting = "InitialBindingCompleted False WaitingForEstablished";
    let claims = ["PermissionClaimsApplied True", "PermissionClaimsValid True"];
    let cases: Vec<(Offer, &str, Vec<&str>)> = vec![
        (
            Offer::Missing,
            "Binding",
            vec!["Ready False WaitingForEstablished", "APIExportValid False APIExportNotFound", waiting],
        ),
        (
            Offer::NoIdentity(export(&json!([]))),
            "Binding",
            vec![
                "Ready False WaitingForEstablished",
                "APIExportValid False MissingIdentityHash",
                waiting,
                claims[0],
                claims[1],
            ],
        ),
        (
            Offer::NoSchema(export(&json!([])), "v9".into()),
            "Binding",
            vec![
                "Ready False WaitingForEstablished",
                "APIExportValid False InternalError",
                waiting,
                claims[0],
                claims[1],
            ],
        ),
        (
            Offer::Conflict(export(&json!([])), "clash".into()),
            "Binding",
            vec![
                "Ready False NamingConflicts",
                "APIExportValid True",
                "BindingUpToDate False NamingConflicts",
                "InitialBindingCompleted False NamingConflicts",
                claims[0],
                claims[1],
            ],
        ),
        (
            Offer::Apis(export(&json!([])), vec![]),
            "Bound",
            vec![
                "Ready True",
                "APIExportValid True",
                "BindingUpToDate True",
                "InitialBindingCompleted True",
                claims[0],
                claims[1],
            ],
        ),
    ];
    for (offer, phase, conditions) in cases {
        let facts = facts(offer);
        let mut object = binding();
        decide(&mut object, &facts, "t1");
        assert_eq!(object.status.phase.as_str(), phase, "{:?}", facts.offer);
        assert_eq!(shown(&object), conditions, "{:?}", facts.offer);
        let settled = object.clone();
        decide(&mut object, &facts, "t2");
        assert_eq!(object, settled, "deciding twice changes nothing: {:?}", facts.offer);
    }
}

#[test]
fn a_bound_binding_follows_new_schemas_and_keeps_what_is_no_longer_exported() {
    let mut object = binding();
    decide(
        &mut object,
        &facts(Offer::Apis(export(&json!([])), vec![schema("v1.widgets.example.io", "u1", "v1")])),
        "t",
    );
    decide(
        &mut object,
        &facts(Offer::Apis(export(&json!([])), vec![schema("v2.widgets.example.io", "u2", "v2")])),
        "t",
    );
    let bound = json!([{"group": "example.io", "resource": "widgets", "storageVersions": ["v1", "v2"],
        "schema": {"name": "v2.widgets.example.io", "UID": "u2", "identityHash": "abc"}}]);
    assert_eq!(json!(object.status.bound_resources), bound);
    decide(&mut object, &facts(Offer::Apis(export(&json!([])), vec![])), "t");
    assert_eq!(json!(object.status.bound_resources), bound);
    assert_eq!(
        json!(object.metadata.annotations),
        json!({"kcp.io/path": "root:cons", "extra.apis.kcp.io/color": "red"})
    );
}

#[test]
fn a_bound_binding_stays_ready_when_its_export_goes() {
    let mut object = binding();
    decide(&mut object, &facts(Offer::Apis(export(&json!([])), vec![])), "t");
    decide(&mut object, &facts(Offer::Missing), "t");
    assert_eq!(object.status.phase, BindingPhase::Bound);
    let conditions = &object.status.conditions;
    assert!(condition::is_true(conditions, READY) && !condition::is_true(conditions, API_EXPORT_VALID));
    assert_eq!(condition::find(conditions, API_EXPORT_VALID).unwrap().message, "APIExport root:prov|e not found");
}

#[test]
fn accepted_claims_become_applied() {
    let claim = json!({"group": "", "resource": "secrets", "identityHash": "", "verbs": ["*"]});
    let mut object = binding();
    let mut accepted = claim.clone();
    accepted["selector"] = json!({"matchAll": true});
    let applied = json!([accepted.clone()]);
    accepted["state"] = json!("Accepted");
    object.spec.permission_claims = serde_json::from_value(json!([accepted])).unwrap();
    decide(&mut object, &facts(Offer::Apis(export(&json!([claim])), vec![])), "t");
    assert_eq!(json!(object.status.applied_permission_claims), applied);
    assert_eq!(json!(object.status.export_permission_claims), json!([claim]));
}
