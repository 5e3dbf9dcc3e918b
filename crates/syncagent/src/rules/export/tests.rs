use super::*;
use crate::rules::tests::published as pr;
use carrick_kcp::kinds::VersionedObject;
use serde_json::{Value, json};

/// An export with this spec of v1alpha1.
fn export(spec: &Value) -> ApiExport {
    ApiExport::from_version("v1alpha1", json!({"spec": spec})).unwrap()
}

/// The spec as readers in v1alpha1 see it.
fn spec(change: &ExportChange) -> Value {
    change.object.to_version("v1alpha1").unwrap()["spec"].clone()
}

fn schemas(change: &ExportChange) -> Vec<&str> {
    change.object.schemas().collect()
}

fn run(export: &ApiExport, prs: &[(&PublishedResource, &str)]) -> ExportChange {
    let published: Vec<_> = prs
        .iter()
        .map(|(pr, schema_name)| Published { pr, schema_name, ready: true, valid: true, leaves: false })
        .collect();
    apply(export, "agent", &published, false)
}

fn claims(change: &ExportChange) -> Vec<&str> {
    change.object.spec.permission_claims.iter().map(|claim| claim.resource.as_str()).collect()
}

#[test]
fn an_empty_export_gets_schemas_the_events_claim_and_the_agents_mark() {
    let change = run(&export(&json!({})), &[(&pr(json!({})), "v1.crontabs.example.com")]);
    assert!(change.changed);
    assert_eq!(schemas(&change), ["v1.crontabs.example.com"]);
    assert_eq!(spec(&change)["permissionClaims"], json!([{"resource": "events", "all": true}]));
    assert_eq!(change.object.metadata.annotation(AGENT_NAME), Some("agent"));
    let again = run(&change.object, &[(&pr(json!({})), "v1.crontabs.example.com")]);
    assert!(!again.changed, "{again:?}");
}

#[test]
fn foreign_schemas_stay_and_older_ones_of_the_same_resource_go() {
    let export = export(&json!({"latestResourceSchemas": ["v0.crontabs.example.com", "v1.fakes.example.com"]}));
    let change = run(&export, &[(&pr(json!({})), "v9.crontabs.example.com")]);
    assert_eq!(schemas(&change), ["v9.crontabs.example.com", "v1.fakes.example.com"]);
    assert_eq!(change.removed_schemas, ["v0.crontabs.example.com"]);
    assert_eq!(change.added_schemas, ["v9.crontabs.example.com"]);
}

#[test]
fn related_resources_are_claimed_sorted_and_existing_claims_stay() {
    let related = pr(json!({"related": [
        {"identifier": "a", "origin": "service", "kind": "Secret", "object": {}},
        {"identifier": "b", "origin": "kcp", "group": "x.io", "version": "v1", "resource": "backups", "identityHash": "abc", "object": {}},
        {"identifier": "c", "origin": "kcp", "group": "example.com", "version": "v1", "resource": "crontabs", "object": {}},
    ]}));
    let export = export(&json!({"permissionClaims": [{"resource": "configmaps", "all": true, "note": "theirs"}]}));
    let change = run(&export, &[(&related, "v1.crontabs.example.com")]);
    assert_eq!(claims(&change), ["configmaps", "events", "namespaces", "secrets", "backups"]);
    assert_eq!(change.added_claims, ["events", "namespaces", "secrets", "x.io/backups"]);
    assert_eq!(change.object.spec.permission_claims[4].identity_hash, "abc");
    assert_eq!(spec(&change)["permissionClaims"][0]["note"], "theirs", "what others wrote into a claim stays");
}

#[test]
fn claims_that_give_less_than_needed_stay_and_are_reported() {
    let related = pr(json!({"related": [
        {"identifier": "a", "origin": "service", "kind": "Secret", "object": {}},
        {"identifier": "b", "origin": "kcp", "group": "x.io", "version": "v1", "resource": "backups", "identityHash": "new", "object": {}},
    ]}));
    let existing = json!([
        {"resource": "events", "all": true},
        {"resource": "namespaces", "all": true},
        {"resource": "secrets", "resourceSelector": [{"name": "one", "namespace": "a"}]},
        {"group": "x.io", "resource": "backups", "all": true, "identityHash": "old"},
    ]);
    let change = run(&export(&json!({"permissionClaims": existing})), &[(&related, "v1.crontabs.example.com")]);
    assert_eq!(spec(&change)["permissionClaims"], existing);
    assert!(change.added_claims.is_empty());
    assert_eq!(change.narrow_claims, ["secrets", "x.io/backups"]);
}

#[test]
fn claims_that_kcp_refuses_are_reported_and_do_not_spoil_the_export() {
    let related = |group: &str, resource: &str, identity: &str| {
        json!({"identifier": resource, "origin": "kcp", "group": group, "version": "v1", "resource": resource,
            "identityHash": identity, "object": {}})
    };
    let pr = pr(json!({"related": [
        related("x.io", "backups", ""), related("x.io", "queues", "abc"), related("example.com", "crontabs", ""),
        related("", "pods", ""), related("apps", "deployments", ""), related("coordination.k8s.io", "leases", ""),
        related("x.io", "known", ""),
    ]}));
    let claim = json!({"group": "x.io", "resource": "known", "all": true, "identityHash": "d"});
    let export = export(&json!({"permissionClaims": [claim]}));
    let change = run(&export, &[(&pr, "v1.crontabs.example.com")]);
    assert_eq!(claims(&change), ["events", "namespaces", "pods", "deployments", "leases", "known", "queues"]);
    let doubts = &change.doubts["publish-crontabs"];
    let wanted = [
        "spec.related[0]: kcp lets nobody claim backups.x.io without the identity",
        "spec.related[3]: kcp workspaces have no pods",
        "spec.related[4]: kcp workspaces have no deployments.apps",
    ];
    assert_eq!(doubts.len(), wanted.len(), "{doubts:?}");
    assert!(doubts.iter().zip(wanted).all(|(told, wanted)| told.starts_with(wanted)), "{doubts:?}");
}

#[test]
fn rules_that_are_not_valid_come_into_no_export_and_stay_in_theirs() {
    let pr = pr(json!({"related": [{"identifier": "a", "origin": "service", "kind": "Secret", "object": {}}]}));
    let published =
        [Published { pr: &pr, schema_name: "v2.crontabs.example.com", ready: true, valid: false, leaves: false }];
    let events = json!([{"resource": "events", "all": true}]);
    let change = apply(&export(&json!({"permissionClaims": events})), "agent", &published, false);
    assert_eq!(spec(&change), json!({"permissionClaims": events}));
    let before = export(&json!({"latestResourceSchemas": ["v1.crontabs.example.com"]}));
    let change = apply(&before, "agent", &published, false);
    assert_eq!(schemas(&change), ["v2.crontabs.example.com"]);
    assert_eq!(claims(&change), ["events", "namespaces", "secrets"]);
}

#[test]
fn what_is_withdrawn_leaves_with_the_claims_that_nobody_else_needs() {
    let related = |kind: &str| json!({"identifier": kind, "origin": "service", "kind": kind, "object": {}});
    let leaving = pr(json!({"related": [related("Secret"), related("ConfigMap")], "enableWorkspacePaths": true}));
    let staying = pr(json!({"related": [related("Secret")]}));
    let names = ["v1.crontabs.example.com", "v1.others.example.com", "v1.backups.example.com"];
    let before =
        run(&export(&json!({"latestResourceSchemas": names[1..2]})), &[(&leaving, names[0]), (&staying, names[2])]);
    assert_eq!(claims(&before), ["configmaps", "events", "namespaces", "secrets", "logicalclusters"]);
    let one = |pr, schema_name, leaves: bool| Published { pr, schema_name, ready: !leaves, valid: true, leaves };
    let all = [one(&leaving, names[0], true), one(&staying, names[2], false)];
    let change = apply(&before.object, "agent", &all, false);
    assert_eq!(schemas(&change), [names[2], names[1]]);
    assert_eq!(change.removed_schemas, [names[0]]);
    assert_eq!(change.removed_claims, ["configmaps", "core.kcp.io/logicalclusters"]);
    assert_eq!(claims(&change), ["events", "namespaces", "secrets"]);
    assert!(!apply(&change.object, "agent", &all, false).changed, "once is enough");
    let shared = apply(&before.object, "agent", &all, true);
    assert_eq!((shared.removed_claims.len(), shared.removed_schemas.len()), (0, 1));
    // What an administrator has narrowed is not the agent's.
    let mut narrowed = before.object.clone();
    narrowed.spec.permission_claims[0].verbs = vec!["get".to_owned()];
    assert_eq!(apply(&narrowed, "agent", &all, false).removed_claims, ["core.kcp.io/logicalclusters"]);
}

/// An export as others write it in v1alpha2: by Terraform, by hand, by another controller.
fn foreign() -> ApiExport {
    let spec = json!({
        "resources": [
            {"group": "x.io", "name": "zebras", "schema": "v1.zebras.x.io", "storage": {"crd": {}}, "fromTheFuture": {"a": []}},
            {"group": "x.io", "name": "cached", "schema": "v1.cached.x.io", "storage": {"virtual": {
                "reference": {"apiGroup": "cache.kcp.io", "kind": "CachedResourceEndpointSlice", "name": "cached"},
                "identityHash": "abc"}}},
            {"group": "example.com", "name": "crontabs", "schema": "v0.crontabs.example.com", "storage": {"crd": {}}, "note": 1},
            {"group": "x.io", "name": "apes", "schema": "v1.apes.x.io", "storage": {"crd": {}}},
        ],
        "permissionClaims": [
            {"group": "", "resource": "secrets", "identityHash": "", "verbs": ["get", "list"], "defaultSelector": {"matchLabels": {"a": "b"}}},
            {"group": "", "resource": "configmaps", "identityHash": "", "verbs": ["*"], "note": "theirs"},
        ],
        "maximalPermissionPolicy": {"local": {}},
    });
    serde_json::from_value(json!({"metadata": {"name": "e", "annotations": {"theirs": "1"}}, "spec": spec})).unwrap()
}

#[test]
fn what_others_wrote_in_the_newest_version_stays_byte_for_byte() {
    let before = foreign();
    let change = run(&before, &[(&pr(json!({})), "v9.crontabs.example.com")]);
    let (old, new) = (serde_json::to_value(&before).unwrap(), serde_json::to_value(&change.object).unwrap());
    let mut resources = old["spec"]["resources"].as_array().unwrap().clone();
    resources[2]["schema"] = json!("v9.crontabs.example.com");
    resources.sort_by_key(|resource| resource["schema"].as_str().unwrap()[3..].to_owned());
    assert_eq!(new["spec"]["resources"], json!(resources), "only the schema of ours is another one");
    let mut claims = old["spec"]["permissionClaims"].as_array().unwrap().clone();
    claims.insert(0, json!({"group": "", "resource": "events", "identityHash": "", "verbs": ["*"]}));
    claims.swap(1, 2);
    claims.swap(0, 1);
    assert_eq!(new["spec"]["permissionClaims"], json!(claims));
    assert_eq!(new["spec"]["maximalPermissionPolicy"], old["spec"]["maximalPermissionPolicy"]);
    let kept = change.object.metadata.annotation(carrick_kcp::convert::KEPT_V1_CLAIMS);
    assert_eq!(kept, Some(r#"[{"resource":"events","all":true}]"#));
    assert_eq!(change.object.metadata.annotation("theirs"), Some("1"));
    assert!(!run(&change.object, &[(&pr(json!({})), "v9.crontabs.example.com")]).changed);
}

#[test]
fn an_order_that_others_like_better_is_not_disputed() {
    let mut export = run(&foreign(), &[(&pr(json!({})), "v9.crontabs.example.com")]).object;
    export.spec.resources.reverse();
    export.spec.permission_claims.reverse();
    assert!(!run(&export, &[(&pr(json!({})), "v9.crontabs.example.com")]).changed);
}

#[test]
fn claims_of_others_are_enough_if_they_allow_what_is_done() {
    let related = |kind: &str| json!({"identifier": kind, "origin": "service", "kind": kind, "object": {}});
    let pr = pr(json!({"related": [related("Secret"), related("ConfigMap")]}));
    let change = run(&foreign(), &[(&pr, "v9.crontabs.example.com")]);
    assert_eq!(change.narrow_claims, ["secrets"], "fewer verbs, and not all objects");
    assert_eq!(change.added_claims, ["events", "namespaces"]);
    let mut export = foreign();
    for (resource, verbs, enough) in
        [("events", &["create", "patch"][..], true), ("namespaces", &["get", "list", "watch"][..], false)]
    {
        export.spec.permission_claims.push(PermissionClaim::new("", resource, verbs));
        let narrow = run(&export, &[(&pr, "v9.crontabs.example.com")]).narrow_claims;
        assert_eq!(!narrow.contains(&resource.to_owned()), enough, "{narrow:?}");
    }
}

#[test]
fn what_others_serve_from_a_virtual_workspace_is_not_replaced() {
    let cached = pr(json!({}));
    let change = run(&foreign(), &[(&cached, "v9.cached.x.io")]);
    let entry = |export: &ApiExport| export.spec.resources.iter().find(|one| one.name == "cached").cloned();
    assert_eq!(entry(&change.object), entry(&foreign()));
    assert_eq!(change.object.spec.resources.len(), foreign().spec.resources.len());
    assert!(change.taken["v9.cached.x.io"].starts_with("the APIExport offers cached.x.io already"), "{change:?}");
    assert!(change.added_schemas.is_empty());
}

#[test]
fn only_claims_that_an_agent_has_made_are_taken_back() {
    let paths = pr(json!({"enableWorkspacePaths": true}));
    let mut export = run(&export(&json!({})), &[(&paths, "v1.crontabs.example.com")]).object;
    let leaves =
        [Published { pr: &paths, schema_name: "v1.crontabs.example.com", ready: false, valid: true, leaves: true }];
    assert_eq!(apply(&export, "agent", &leaves, false).removed_claims, ["core.kcp.io/logicalclusters"]);
    // The same claim, made in v1alpha2 by somebody else.
    export.metadata.annotations.remove(carrick_kcp::convert::KEPT_V1_CLAIMS);
    let change = apply(&export, "agent", &leaves, false);
    assert_eq!((change.removed_claims.len(), change.removed_schemas.len()), (0, 1));
}

#[test]
fn a_write_names_the_published_resources_that_it_is_for() {
    let named = |name: &str, spec: Value| {
        let mut pr = pr(spec);
        name.clone_into(&mut pr.metadata.name);
        pr
    };
    let (plain, related) = (
        named("plain", json!({})),
        named(
            "related",
            json!({"related": [{"identifier": "a", "origin": "service", "kind": "Secret", "object": {}}]}),
        ),
    );
    let both = [(&plain, "v1.as.x"), (&related, "v1.bs.x")];
    let first = run(&export(&json!({})), &both);
    assert_eq!(first.concerned, ["plain", "related"].map(str::to_owned).into());
    let mut lacking = first.object.clone();
    lacking.drop_claims(|claim| claim.resource == "secrets");
    assert_eq!(run(&lacking, &both).concerned, ["related".to_owned()].into());
    assert_eq!(run(&lacking, &[(&plain, "v2.as.x"), both[1]]).concerned.len(), 2);
}

#[test]
fn schemas_that_do_not_exist_yet_are_not_listed() {
    let pr = pr(json!({}));
    let change = apply(
        &export(&json!({})),
        "agent",
        &[Published { pr: &pr, schema_name: "v1.a.b", ready: false, valid: true, leaves: false }],
        false,
    );
    assert_eq!(spec(&change).get("latestResourceSchemas"), None);
}

#[test]
fn an_export_does_not_claim_what_it_offers_itself() {
    let related = pr(json!({"related": [{"identifier": "c", "origin": "kcp", "group": "example.com", "version": "v1",
        "resource": "crontabs", "identityHash": "abc", "object": {}}]}));
    let change = run(&export(&json!({})), &[(&related, "v1.crontabs.example.com")]);
    assert_eq!(claims(&change), ["events", "namespaces"]);
}
