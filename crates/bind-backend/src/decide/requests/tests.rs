//! What becomes of requests, carried out on a model of a server.

use carrick_bind_api::v1alpha2::{ExportedNamespace, InformerScope, PermissionClaim, Selector};
use serde_json::{Value, json};

use super::*;
use crate::decide::plan::Write;
use crate::decide::{exports, rights};

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn crd(plural: &str, scope: &str) -> Value {
    json!({"kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.wild.io")}, "spec": {"group": "wild.io", "scope": scope,
        "names": {"plural": plural, "kind": "Thing"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}}}]}})
}

fn request(name: &str, resources: &[&str]) -> ApiServiceExportRequest {
    let mut request = ApiServiceExportRequest::new(name);
    // Whatever version the portal writes.
    request.spec.resources = resources.iter().map(|it| ExportedResource::new("wild.io", *it, &["v1alpha1"])).collect();
    request
}

/// Carries out what requests and exports need until nothing is left.
fn settle(objects: &mut ContractObjects, offers: &Offers, terms: &Terms) -> usize {
    let mut written = 0;
    for _ in 0..10 {
        let mut plan = decide(objects, offers, terms, now());
        plan.add(exports::decide(objects, offers, now()));
        if plan.writes.is_empty() {
            return written;
        }
        for write in plan.writes {
            written += 1;
            let mut object = write.object().clone();
            let kind = object["kind"].as_str().unwrap().to_owned();
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            if matches!(write, Write::Create(_)) {
                object["metadata"]["uid"] = json!(format!("{kind}/{name}"));
            }
            match kind.as_str() {
                "BoundSchema" => {
                    objects.schemas.retain(|it| it.metadata.name != name);
                    objects.schemas.push(serde_json::from_value(object).unwrap());
                }
                "APIServiceExport" => {
                    objects.exports.retain(|it| it.metadata.name != name);
                    objects.exports.push(serde_json::from_value(object).unwrap());
                }
                "APIServiceExportRequest" => {
                    objects.requests.retain(|it| it.metadata.name != name);
                    objects.requests.push(serde_json::from_value(object).unwrap());
                }
                "APIServiceNamespace" => objects.namespaces.push(serde_json::from_value(object).unwrap()),
                other => panic!("{other}"),
            }
        }
    }
    panic!("it never ends");
}

fn namespace(name: &str) -> ExportedNamespace {
    let mut namespace = ExportedNamespace::default();
    name.clone_into(&mut namespace.name);
    namespace
}

fn terms() -> Terms {
    Terms::example(InformerScope::Namespaced, Isolation::Prefixed)
}

fn outcome(request: &ApiServiceExportRequest) -> (String, String) {
    let reason = request.status.conditions.iter().find(|it| it.type_ == "Ready").map(|it| it.reason.clone());
    (request.status.phase.to_string(), reason.unwrap_or_default())
}

#[test]
fn a_request_becomes_an_export_and_a_second_one_for_the_same_api_does_too() {
    let (mut objects, offers) = (ContractObjects::example(), Offers::new([crd("sheriffs", "Cluster")]));
    let mut first = request("first", &["sheriffs", "sheriffs"]);
    first.spec.schema_update_policy = SchemaUpdatePolicy::Always;
    first.spec.namespaces = vec![namespace("team")];
    objects.requests.push(first);
    settle(&mut objects, &offers, &terms());
    assert_eq!(outcome(&objects.requests[0]), ("Succeeded".to_owned(), String::new()));
    assert_eq!(objects.namespaces[0].owner(), Owner::Provider);
    let owners = &objects.schemas[0].metadata.owner_references;
    assert_eq!((owners.len(), owners[0].name.as_str(), owners[0].controller), (1, "first", true));
    objects.requests.push(request("second", &["sheriffs"]));
    settle(&mut objects, &offers, &terms());
    let owners = &objects.schemas[0].metadata.owner_references;
    assert_eq!(owners.iter().map(|it| it.controller).collect::<Vec<_>>(), [true, false]);
    assert!(objects.exports.iter().all(|it| conditions::is_true(&it.status.conditions, "ProviderInSync")));
    // The first export goes, and its schema stays for the second one.
    objects.exports.retain(|it| it.metadata.name == "second");
    settle(&mut objects, &offers, &terms());
    let owners = &objects.schemas[0].metadata.owner_references;
    assert_eq!(owners.iter().map(|it| it.controller).collect::<Vec<_>>(), [false, true]);
    assert_eq!(objects.exports.len(), 1, "a withdrawn export does not come back");
}

#[test]
fn binding_again_succeeds_and_other_content_under_the_same_name_does_not() {
    let offers = Offers::new([crd("sheriffs", "Cluster"), crd("cowboys", "Cluster")]);
    let mut objects = ContractObjects::example();
    objects.requests.push(request("r", &["sheriffs"]));
    settle(&mut objects, &offers, &terms());
    objects.requests = vec![request("r", &["sheriffs"])];
    settle(&mut objects, &offers, &terms());
    assert_eq!(outcome(&objects.requests[0]).0, "Succeeded");
    objects.requests = vec![request("r", &["cowboys"])];
    settle(&mut objects, &offers, &terms());
    assert_eq!(outcome(&objects.requests[0]), ("Failed".to_owned(), "OtherExport".to_owned()));
}

#[test]
fn what_cannot_be_fulfilled_says_so() {
    let offers = Offers::new([crd("sheriffs", "Cluster"), crd("cowboys", "Namespaced")]);
    let judged = |request: ApiServiceExportRequest, terms: &Terms| {
        let mut objects = ContractObjects::example();
        objects.requests.push(request);
        settle(&mut objects, &offers, terms);
        assert_eq!((objects.exports.len(), objects.schemas.len(), objects.namespaces.len()), (0, 0, 0));
        outcome(&objects.requests[0])
    };
    let said = |phase: &str, reason: &str| (phase.to_owned(), reason.to_owned());
    assert_eq!(judged(request("r", &["unknown"]), &terms()), said("Pending", "SchemaNotFound"));
    assert_eq!(judged(request("r", &["sheriffs", "cowboys"]), &terms()), said("Pending", "DifferentScopes"));
    let mut bare = request("r", &["sheriffs"]);
    bare.spec.resources[0].versions.clear();
    assert_eq!(judged(bare, &terms()), said("Failed", "InvalidResource"));
    let claim = |resource: &str| PermissionClaim::new("", resource, Selector::default());
    let mut claims = request("r", &["sheriffs"]);
    claims.spec.permission_claims = vec![claim("pods")];
    assert_eq!(judged(claims.clone(), &terms()), said("Failed", "InvalidPermissionClaim"));
    claims.spec.permission_claims = vec![claim("secrets"), claim("secrets")];
    assert_eq!(judged(claims, &terms()), said("Failed", "DuplicatePermissionClaim"));
    for name in ["kube-system".to_owned(), "x".repeat(60)] {
        let mut spaces = request("r", &["sheriffs"]);
        spaces.spec.namespaces = vec![namespace(&name)];
        assert_eq!(judged(spaces, &terms()), said("Failed", "InvalidNamespace"));
    }
    let namespaced = Terms::example(InformerScope::Cluster, Isolation::Namespaced);
    assert_eq!(judged(request("r", &["sheriffs"]), &namespaced), said("Pending", "NotNamespaced"));
}

#[test]
fn a_schema_follows_by_policy_and_a_breaking_change_is_held_back() {
    for (policy, follows) in [(SchemaUpdatePolicy::Always, true), (SchemaUpdatePolicy::Never, false)] {
        let mut objects = ContractObjects::example();
        let mut asked = request("r", &["sheriffs"]);
        asked.spec.schema_update_policy = policy;
        objects.requests.push(asked);
        settle(&mut objects, &Offers::new([crd("sheriffs", "Cluster")]), &terms());
        // The request is gone, the policy is not.
        objects.requests.clear();
        let mut wider = crd("sheriffs", "Cluster");
        wider["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["b"] = json!({"type": "string"});
        settle(&mut objects, &Offers::new([wider.clone()]), &terms());
        let has = |objects: &ContractObjects| {
            objects.schemas[0].spec.versions[0].schema.pointer("/openAPIV3Schema/properties/b").is_some()
        };
        assert_eq!(has(&objects), follows);
        settle(&mut objects, &Offers::new([crd("sheriffs", "Cluster")]), &terms());
        assert_eq!(has(&objects), follows, "a field that goes would break the consumer");
        let condition = conditions::find(&objects.exports[0].status.conditions, "ProviderInSync").unwrap();
        let reason = if follows { "BreakingSchemaChange" } else { "" };
        assert_eq!(condition.reason, reason);
        if follows {
            assert!(condition.message.contains("v1.b: the field goes away"), "{}", condition.message);
        }
    }
}

#[test]
fn nobody_gets_more_rights_than_the_modes_need() {
    for isolation in [Isolation::Prefixed, Isolation::Namespaced, Isolation::None] {
        for scope in [InformerScope::Cluster, InformerScope::Namespaced] {
            let terms = Terms::example(scope.clone(), isolation.clone());
            let mut objects = ContractObjects::example();
            let mut asked = request("r", &["cowboys"]);
            asked.spec.permission_claims = vec![PermissionClaim::new("", "secrets", Selector::default())];
            objects.requests.push(asked);
            settle(&mut objects, &Offers::new([crd("cowboys", "Namespaced")]), &terms);
            let all = rights::wanted(&objects, &terms, true);
            let bound = all
                .iter()
                .find(|it| it["kind"] == "ClusterRole" && it["metadata"]["name"] == "kube-binder-exports-cluster-a");
            match scope {
                InformerScope::Cluster => {
                    let rules = bound.unwrap()["rules"].as_array().unwrap();
                    assert_eq!(
                        *rules,
                        [
                            json!({"apiGroups": ["wild.io"], "resources": ["cowboys"], "verbs": ["get", "list", "watch"]})
                        ]
                    );
                }
                _ => assert_eq!(bound, None),
            }
            let bindings = all.iter().filter(|it| it["kind"] == "ClusterRoleBinding");
            assert!(bindings.into_iter().all(|it| it["metadata"]["name"] == "kube-binder-exports-cluster-a"));
        }
    }
}

#[test]
fn nobody_writes_in_a_whole_cluster_before_the_policy_stands() {
    let (mut objects, terms) = (ContractObjects::example(), terms());
    objects.requests.push(request("r", &["sheriffs"]));
    settle(&mut objects, &Offers::new([crd("sheriffs", "Cluster")]), &terms);
    let bound = |stands| rights::wanted(&objects, &terms, stands).iter().any(|it| it["kind"] == "ClusterRoleBinding");
    assert_eq!((bound(false), bound(true)), (false, true));
}

#[test]
fn an_export_says_that_nobody_may_write_because_consumers_cannot_be_kept_apart() {
    for (scope, isolation, is_told) in [
        ("Cluster", Isolation::Prefixed, true),
        ("Cluster", Isolation::None, true),
        ("Namespaced", Isolation::Namespaced, false),
        ("Namespaced", Isolation::Prefixed, false),
    ] {
        let (terms, offers) =
            (Terms::example(InformerScope::Cluster, isolation), Offers::new([crd("sheriffs", scope)]));
        let mut objects = ContractObjects::example();
        objects.requests.push(request("r", &["sheriffs"]));
        objects.unguarded = Some("403 Forbidden".to_owned());
        settle(&mut objects, &offers, &terms);
        let condition = |objects: &ContractObjects| {
            let all = &objects.exports[0].status.conditions;
            conditions::find(all, conditions::PROVIDER_IN_SYNC).unwrap().clone()
        };
        let told = condition(&objects);
        assert_eq!(told.reason == "PolicyMissing", is_told, "{told:?}");
        assert_eq!(told.message.contains("403 Forbidden"), is_told, "{told:?}");
        objects.unguarded = None;
        settle(&mut objects, &offers, &terms);
        assert!(condition(&objects).is_true(), "{scope}");
    }
}
