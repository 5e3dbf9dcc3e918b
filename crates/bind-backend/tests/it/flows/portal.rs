//! What the portal does: a request, a Secret, an export, a bundle.

use carrick_bind_api::kinds;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::provider::{BindOrder, Person, Provider as _, ProviderError};
use serde_json::{Value, json};

use super::world::{
    Consumer, Provider, as_consumer, crd, crd_kind, has, namespaces, of, request, secrets, thing, things,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_leads_to_objects_that_travel() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("cowboys", "Cowboy", "Namespaced").await;
    let (contract, kubeconfig) = provider.contract("one").await;
    let consumer = Consumer::start(&kubeconfig).await;
    let claims =
        json!([{"group": "", "resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"app": "x"}}}}]);
    provider.export(&contract, "cowboys", claims).await;
    consumer.until_bound("cowboys").await;
    let cowboys = things("cowboys", "Cowboy", true);
    consumer.cluster.apply(&cowboys, &thing("Cowboy", Some("team"), "lucky")).await;
    let assigned = format!("{contract}-team");
    provider.cluster.until(&cowboys, Some(&assigned), "lucky", |copy| copy["spec"]["intent"] == "x").await;
    // The provider's operator answers.
    let patch = json!({"status": {"result": "done"}});
    provider.cluster.client.merge_patch_status(&cowboys, Some(&assigned), "lucky", &patch).await.unwrap();
    consumer.cluster.until(&cowboys, Some("team"), "lucky", |it| it["status"]["result"] == "done").await;
    // What is claimed travels along.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "team", "labels": {"app": "x"}},
        "data": {"a": "YQ=="}});
    consumer.cluster.apply(&secrets(), &secret).await;
    provider.cluster.until(&secrets(), Some(&assigned), "s", |copy| copy["data"]["a"] == "YQ==").await;
    let healthy = |it: &Value| has(it, "Healthy", "True", "");
    let binding = provider.cluster.until(&of(kinds::CLUSTER_BINDING), Some(&contract), "cluster", healthy).await;
    assert_eq!(binding["metadata"]["annotations"]["backend.kube-bind.io/author"], "jane");
    let in_sync = |it: &Value| has(it, "ProviderInSync", "True", "");
    let export = provider.cluster.until(&of(kinds::API_SERVICE_EXPORT), Some(&contract), "cowboys", in_sync).await;
    let uid = export["metadata"]["uid"].clone();
    let schema = provider.cluster.get(&of(kinds::BOUND_SCHEMA), Some(&contract), "cowboys.wild.io").await.unwrap();
    assert_eq!(schema["metadata"]["ownerReferences"][0]["uid"], uid);
    assert_eq!(provider.writes().await, Vec::<String>::new(), "nothing is written at rest");
    // The namespace goes with the consumer's.
    consumer.cluster.delete(&cowboys, Some("team"), "lucky").await;
    provider.cluster.until_gone(&cowboys, Some(&assigned), "lucky").await;
    provider.cluster.delete(&of(kinds::API_SERVICE_NAMESPACE), Some(&contract), "team").await;
    consumer.cluster.delete(&secrets(), Some("team"), "s").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_scoped_objects_travel_in_every_isolation() {
    for (isolation, scope) in [
        (Isolation::Prefixed, InformerScope::Namespaced),
        (Isolation::None, InformerScope::Cluster),
        (Isolation::Namespaced, InformerScope::Cluster),
    ] {
        let provider = Provider::start(scope, isolation.clone()).await;
        let namespaced = isolation == Isolation::Namespaced;
        provider.offer("sheriffs", "Sheriff", if namespaced { "Namespaced" } else { "Cluster" }).await;
        let (contract, kubeconfig) = provider.contract("one").await;
        let consumer = Consumer::start(&kubeconfig).await;
        provider.export(&contract, "sheriffs", json!([])).await;
        consumer.until_bound("sheriffs").await;
        let (here, there) = (things("sheriffs", "Sheriff", false), things("sheriffs", "Sheriff", namespaced));
        consumer.cluster.apply(&here, &thing("Sheriff", None, "wyatt")).await;
        let (namespace, name) = match isolation {
            Isolation::Prefixed => (None, format!("{contract}-wyatt")),
            Isolation::Namespaced => (Some(contract.as_str()), "wyatt".to_owned()),
            _ => (None, "wyatt".to_owned()),
        };
        provider.cluster.until(&there, namespace, &name, |copy| copy["spec"]["intent"] == "x").await;
        consumer.cluster.delete(&here, None, "wyatt").await;
        provider.cluster.until_gone(&there, namespace, &name).await;
        assert_eq!(provider.writes().await, Vec::<String>::new(), "{isolation}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_follows_and_one_that_would_break_the_consumer_is_held_back() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("sheriffs", "Sheriff", "Cluster").await;
    let (contract, _) = provider.contract("one").await;
    let at = Some(contract.as_str());
    let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest",
        "metadata": {"name": "sheriffs", "namespace": contract},
        "spec": {"schemaUpdatePolicy": "Always", "resources": [{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"]}]}});
    provider.cluster.apply(&of(kinds::API_SERVICE_EXPORT_REQUEST), &request).await;
    let exports = of(kinds::API_SERVICE_EXPORT);
    provider.cluster.until(&exports, at, "sheriffs", |it| has(it, "ProviderInSync", "True", "")).await;
    provider.cluster.delete(&of(kinds::API_SERVICE_EXPORT_REQUEST), at, "sheriffs").await;
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let mut wider = crd("sheriffs", "Sheriff", "Cluster");
    wider.pointer_mut(path).unwrap()["star"] = json!({"type": "string"});
    provider.cluster.apply(&crd_kind(), &wider).await;
    let followed = |it: &Value| it.pointer(path).unwrap().get("star").is_some();
    provider.cluster.until(&of(kinds::BOUND_SCHEMA), at, "sheriffs.wild.io", followed).await;
    let mut broken = wider.clone();
    broken.pointer_mut(path).unwrap()["intent"]["type"] = json!("integer");
    provider.cluster.apply(&crd_kind(), &broken).await;
    let export = provider
        .cluster
        .until(&exports, at, "sheriffs", |it| has(it, "ProviderInSync", "False", "BreakingSchemaChange"));
    assert!(export.await.to_string().contains("v1.spec.intent: "));
    let schema = provider.cluster.get(&of(kinds::BOUND_SCHEMA), at, "sheriffs.wild.io").await.unwrap();
    assert_eq!(schema.pointer(path).unwrap()["intent"]["type"], "string");
}

fn order(identity: &str, author: &str, template: &str) -> BindOrder {
    let text = str::to_owned;
    BindOrder {
        name: text("sheriffs"),
        template: text(template),
        identity: text(identity),
        pretty_name: text("Mine"),
        author: text(author),
        subject: text(author.rsplit('/').next().unwrap_or_default()),
        request_export: true,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logged_in_consumers_are_bound_and_an_identity_belongs_to_its_first_author() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("sheriffs", "Sheriff", "Cluster").await;
    let template = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportTemplate", "metadata": {"name": "sheriffs"},
        "spec": {"scope": "Cluster", "resources": [{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"]}]}});
    provider.cluster.apply(&of(kinds::API_SERVICE_EXPORT_TEMPLATE), &template).await;
    let front = provider.front();
    let unknown = front.bind("", &order("one", "jane", "nothing")).await.unwrap_err();
    assert!(matches!(unknown, ProviderError::NotFound(_)), "{unknown}");
    assert_eq!(front.exports("", "one").await.unwrap(), None, "nothing was made for it");
    assert!(matches!(front.bind("other", &order("one", "jane", "sheriffs")).await, Err(ProviderError::NotFound(_))));
    let bound = front.bind("", &order("one", "jane", "sheriffs")).await.unwrap();
    assert_eq!(bound.binding_name.as_deref(), Some("sheriffs"));
    assert_eq!(bound.requests[0]["spec"]["resources"], template["spec"]["resources"]);
    let client = as_consumer(std::str::from_utf8(&bound.kubeconfig).unwrap());
    let exports = of(kinds::API_SERVICE_EXPORT);
    assert!(client.get(&exports, Some(&bound.namespace), "sheriffs").await.unwrap().is_some());
    // Once more, by the same person: another name for the request, the same contract.
    let again = front.bind("", &order("one", "jane", "sheriffs")).await.unwrap();
    assert_eq!(again.namespace, bound.namespace);
    let stranger = front.bind("", &order("one", "joe", "sheriffs")).await.unwrap_err();
    assert!(matches!(stranger, ProviderError::Forbidden(_)), "{stranger}");
    let (namespace, names) = front.exports("", "one").await.unwrap().unwrap();
    assert_eq!((namespace, names.len()), (bound.namespace, 2));
    assert_eq!(front.templates("").await.unwrap()["items"].as_array().unwrap().len(), 1);
    assert!(front.collections("").await.unwrap()["items"].as_array().unwrap().is_empty());
    let person = |groups: &[&str]| Person {
        subject: "jane".to_owned(),
        issuer: "https://issuer".to_owned(),
        groups: groups.iter().map(|it| (*it).to_owned()).collect(),
    };
    assert!(!front.may_bind("", &person(&["cowboys"])).await.unwrap());
    assert!(front.may_bind("", &person(&["system:masters"])).await.unwrap());
    let make = |text: &'static str| move || [("key".to_owned(), text.as_bytes().to_vec())].into();
    let first = front.keys(&make("first")).await.unwrap();
    assert_eq!(front.keys(&make("second")).await.unwrap(), first);
    assert!(provider.cluster.get(&namespaces(), None, &bound_namespace("one")).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_writes_the_name_of_another_author_into_a_request_gets_nothing_of_hers() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    let make_room = async |name: &str| {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        provider.cluster.apply(&namespaces(), &namespace).await;
    };
    let ask = async |namespace: &str, name: &str, identity: &str, phase: &str| {
        let requests = of(kinds::BINDABLE_RESOURCES_REQUEST);
        let mut request = request(name, identity, "jane");
        request["metadata"]["namespace"] = namespace.into();
        provider.cluster.apply(&requests, &request).await;
        provider.cluster.until(&requests, Some(namespace), name, |it| it["status"]["phase"] == phase).await
    };
    make_room("mallory").await;
    make_room("jane").await;
    // Jane has asked from her namespace; somebody with rights in another one says to be Jane.
    ask("jane", "mine", "one", "Succeeded").await;
    let stolen = ask("mallory", "theft", "one", "Failed").await;
    assert!(stolen.to_string().contains("IdentityTaken"), "{stolen}");
    let answer = provider.cluster.get(&secrets(), Some("mallory"), "theft-binding-response").await;
    assert_eq!(answer, None, "the kubeconfig was handed out");
    // She herself may ask again.
    ask("jane", "again", "one", "Succeeded").await;

    // A contract by login is not had by a request, and one by request is no login's, whatever it says.
    let front = provider.front();
    provider.offer("sheriffs", "Sheriff", "Cluster").await;
    let template = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportTemplate", "metadata": {"name": "sheriffs"},
        "spec": {"scope": "Cluster", "resources": [{"group": "wild.io", "resource": "sheriffs", "versions": ["v1"]}]}});
    provider.cluster.apply(&of(kinds::API_SERVICE_EXPORT_TEMPLATE), &template).await;
    front.bind("", &order("two", "jane", "sheriffs")).await.unwrap();
    ask("mallory", "second", "two", "Failed").await;
    ask("mallory", "trap", "jane", "Succeeded").await;
    let trapped = front.bind("", &order("jane", "jane", "sheriffs")).await;
    assert!(matches!(trapped, Err(ProviderError::Forbidden(_))), "{trapped:?}");
    assert!(front.kubeconfig("", "jane").await.is_err(), "a login is given what somebody else holds as well");
    assert_eq!(front.exports("", "jane").await.unwrap(), None);

    // A namespace that was created again is somebody else's.
    provider.cluster.delete(&namespaces(), None, "jane").await;
    provider.cluster.until_gone(&namespaces(), None, "jane").await;
    make_room("jane").await;
    ask("jane", "late", "one", "Failed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_of_kube_binds_backend_is_for_its_author_who_is_called_by_the_subject_there() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("sheriffs", "Sheriff", "Cluster").await;
    provider.cluster.apply(&of(kinds::API_SERVICE_EXPORT_TEMPLATE), &template("sheriffs", "Cluster")).await;
    let contract = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bound_namespace("one"),
        "annotations": {"backend.kube-bind.io/identity": "one", "backend.kube-bind.io/author": "jane"}}});
    provider.cluster.apply(&namespaces(), &contract).await;
    let front = provider.front();
    for stranger in ["https://issuer/joe", "https://issuer/jane/x"] {
        let refused = front.bind("", &order("one", stranger, "sheriffs")).await;
        assert!(matches!(refused, Err(ProviderError::Forbidden(_))), "{stranger}: {refused:?}");
    }
    let bound = front.bind("", &order("one", "https://issuer/jane", "sheriffs")).await.unwrap();
    assert_eq!(bound.namespace, bound_namespace("one"));
}

fn template(plural: &str, scope: &str) -> Value {
    json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportTemplate", "metadata": {"name": plural},
        "spec": {"scope": scope, "resources": [{"group": "wild.io", "resource": plural, "versions": ["v1"]}]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_gets_what_it_has_ordered_and_nothing_else() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    for (plural, kind) in [("sheriffs", "Sheriff"), ("cowboys", "Cowboy")] {
        provider.offer(plural, kind, "Cluster").await;
        provider.cluster.apply(&of(kinds::API_SERVICE_EXPORT_TEMPLATE), &template(plural, "Cluster")).await;
    }
    let front = provider.front();
    let bound = front.bind("", &order("one", "jane", "sheriffs")).await.unwrap();
    let (at, client) = (bound.namespace.as_str(), as_consumer(std::str::from_utf8(&bound.kubeconfig).unwrap()));
    let requests = of(kinds::API_SERVICE_EXPORT_REQUEST);
    let ask = async |name: &str, plural: &str, claims: Value| {
        let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest", "metadata": {"name": name},
            "spec": {"resources": [{"group": "wild.io", "resource": plural, "versions": ["v1"]}], "permissionClaims": claims}});
        client.create(&requests, Some(at), &request).await.unwrap();
    };
    ask("more", "cowboys", json!([])).await;
    let wide = json!([{"group": "", "resource": "secrets", "selector": {"labelSelector": {}}}]);
    ask("claims", "sheriffs", wide).await;
    for (name, what) in [("more", "cowboys.wild.io"), ("claims", "ALL secrets")] {
        let refused = |it: &Value| has(it, "ExportsReady", "False", "NotOrdered");
        let request = provider.cluster.until(&requests, Some(at), name, refused).await;
        assert!(request.to_string().contains(what), "{request}");
        assert_eq!(provider.cluster.get(&of(kinds::API_SERVICE_EXPORT), Some(at), name).await, None);
    }
    // Whoever orders the other one as well gets it.
    front.bind("", &BindOrder { name: "second".to_owned(), ..order("one", "jane", "cowboys") }).await.unwrap();
    provider.cluster.until(&requests, Some(at), "more", |it| it["status"]["phase"] == "Succeeded").await;
    let claims = provider.cluster.get(&requests, Some(at), "claims").await.unwrap();
    assert!(has(&claims, "ExportsReady", "False", "NotOrdered"), "{claims}");

    // The same by requests.
    let mut brr = request("mine", "two", "jane");
    brr["spec"]["templateRef"] = json!({"name": "sheriffs"});
    provider.ask(&brr).await;
    let contract =
        provider.until_request("mine", "Succeeded").await["status"]["namespace"].as_str().unwrap().to_owned();
    let export = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest",
        "metadata": {"name": "more", "namespace": contract},
        "spec": {"resources": [{"group": "wild.io", "resource": "cowboys", "versions": ["v1"]}]}});
    provider.cluster.apply(&requests, &export).await;
    let refused = |it: &Value| has(it, "ExportsReady", "False", "NotOrdered");
    provider.cluster.until(&requests, Some(&contract), "more", refused).await;
    let mut brr = request("again", "two", "jane");
    brr["spec"]["templateRef"] = json!({"name": "cowboys"});
    provider.ask(&brr).await;
    provider.until_request("again", "Succeeded").await;
    provider.cluster.until(&requests, Some(&contract), "more", |it| it["status"]["phase"] == "Succeeded").await;
}

fn bound_namespace(identity: &str) -> String {
    carrick_bind_api::identity::contract_namespace("cluster-", identity)
}
