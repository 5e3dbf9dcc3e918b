//! Isolation None: two consumers that have a namespace of the same name.

use carrick_bind_api::kinds;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_client::{Client, DeleteOptions, Error};
use serde_json::{Value, json};

use super::world::{Consumer, Provider, as_consumer, has, namespaces, of, secrets, thing, things};

const SPACE: &str = "wild-west";
const SHARED: &str = "backend.kube-bind.io/shared-with";

/// A consumer with an object and a Secret of its own name in the namespace that both have.
struct Party {
    contract: String,
    name: String,
    consumer: Consumer,
    client: Client,
}

async fn party(provider: &Provider, name: &str) -> Party {
    let (contract, kubeconfig) = provider.contract(name).await;
    let consumer = Consumer::start(&kubeconfig).await;
    let claims =
        json!([{"group": "", "resource": "secrets", "selector": {"labelSelector": {"matchLabels": {"app": "x"}}}}]);
    provider.export(&contract, "cowboys", claims).await;
    consumer.until_bound("cowboys").await;
    let cluster = &consumer.cluster;
    cluster.apply(&things("cowboys", "Cowboy", true), &thing("Cowboy", Some(SPACE), name)).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"of": "YQ=="},
        "metadata": {"name": format!("secret-{name}"), "namespace": SPACE, "labels": {"app": "x"}}});
    cluster.apply(&secrets(), &secret).await;
    Party { contract, name: name.to_owned(), consumer, client: as_consumer(&kubeconfig) }
}

impl Party {
    /// Waits until both have arrived.
    async fn until_copied(&self, provider: &Provider) {
        let cowboys = things("cowboys", "Cowboy", true);
        let ours =
            |it: &Value| it["metadata"]["annotations"]["kube-bind.io/cluster-namespace"] == self.contract.as_str();
        provider.cluster.until(&cowboys, Some(SPACE), &self.name, ours).await;
        provider.cluster.until(&secrets(), Some(SPACE), &format!("secret-{}", self.name), ours).await;
    }
}

async fn uid_of_space(provider: &Provider) -> Value {
    provider.cluster.get(&namespaces(), None, SPACE).await.unwrap()["metadata"]["uid"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_consumer_of_a_namespace_is_refused_and_told_the_flag() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::None).await;
    provider.offer("cowboys", "Cowboy", "Namespaced").await;
    party(&provider, "one").await.until_copied(&provider).await;
    let second = party(&provider, "two").await;
    let told = |it: &Value| {
        has(it, "Assigned", "False", "NamespaceRefused") && it.to_string().contains("--allow-shared-namespaces")
    };
    provider.cluster.until(&of(kinds::API_SERVICE_NAMESPACE), Some(&second.contract), SPACE, told).await;
    // So is whoever has ordered there.
    let told = |it: &Value| {
        has(it, "ObjectsSynced", "False", "ObjectsFailing") && it.to_string().contains("--allow-shared-namespaces")
    };
    second.consumer.cluster.until(&of(kinds::API_SERVICE_BINDING), None, "cowboys", told).await;
    let copy = provider.cluster.get(&things("cowboys", "Cowboy", true), Some(SPACE), "two").await;
    assert!(copy.is_none(), "{copy:?}");
}

fn refused<T: std::fmt::Debug>(result: &Result<T, Error>) {
    assert!(result.as_ref().is_err_and(Error::is_forbidden), "{result:?}");
}

/// Each writes its own, and neither the other's, nor without a mark.
async fn keep_apart(own: &Party, other: &Party) {
    let (cowboys, at) = (things("cowboys", "Cowboy", true), Some(SPACE));
    let (delete, steal) = (
        DeleteOptions::default(),
        json!({"metadata": {"annotations": {"kube-bind.io/cluster-namespace": own.contract}}}),
    );
    for (kind, name) in [(&cowboys, other.name.clone()), (&secrets(), format!("secret-{}", other.name))] {
        refused(&own.client.merge_patch(kind, at, &name, &json!({"metadata": {"labels": {"mine": "now"}}})).await);
        refused(&own.client.merge_patch(kind, at, &name, &steal).await);
        refused(&own.client.delete(kind, at, &name, &delete).await);
    }
    refused(&own.client.create(&cowboys, at, &thing("Cowboy", at, "unmarked")).await);
    // kube-bind's konnectors do not mark what is claimed.
    let unmarked =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("unmarked-{}", own.name)}});
    own.client.create(&secrets(), at, &unmarked).await.unwrap();
    own.client.delete(&secrets(), at, &format!("unmarked-{}", own.name), &delete).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_flag_two_consumers_work_in_one_namespace_and_each_with_its_own() {
    for scope in [InformerScope::Namespaced, InformerScope::Cluster] {
        let provider = Provider::sharing(scope).await;
        provider.offer("cowboys", "Cowboy", "Namespaced").await;
        let first = party(&provider, "one").await;
        first.until_copied(&provider).await;
        let second = party(&provider, "two").await;
        second.until_copied(&provider).await;
        keep_apart(&first, &second).await;
        keep_apart(&second, &first).await;
        let cowboys = things("cowboys", "Cowboy", true);
        for party in [&first, &second] {
            // Changes travel, and so does what the provider answers.
            let patch = json!({"spec": {"intent": party.name}});
            party.consumer.cluster.client.merge_patch(&cowboys, Some(SPACE), &party.name, &patch).await.unwrap();
            let is_changed = |it: &Value| it["spec"]["intent"] == party.name.as_str();
            provider.cluster.until(&cowboys, Some(SPACE), &party.name, is_changed).await;
            let status = json!({"status": {"result": party.name}});
            provider.cluster.client.merge_patch_status(&cowboys, Some(SPACE), &party.name, &status).await.unwrap();
            let is_answered = |it: &Value| it["status"]["result"] == party.name.as_str();
            party.consumer.cluster.until(&cowboys, Some(SPACE), &party.name, is_answered).await;
        }
        for (party, other) in [(&first, &second), (&second, &first)] {
            let strange = party.consumer.cluster.get(&cowboys, Some(SPACE), &other.name).await;
            assert!(strange.is_none(), "nothing of the other one comes: {strange:?}");
            let name = format!("secret-{}", other.name);
            let strange = party.consumer.cluster.get(&secrets(), Some(SPACE), &name).await;
            assert!(strange.is_none(), "nothing of the other one comes: {strange:?}");
        }
        assert_eq!(provider.writes().await, Vec::<String>::new(), "nothing is written at rest");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_namespace_outlives_the_consumer_for_which_it_was_made() {
    let provider = Provider::sharing(InformerScope::Namespaced).await;
    provider.offer("cowboys", "Cowboy", "Namespaced").await;
    let first = party(&provider, "one").await;
    first.until_copied(&provider).await;
    let second = party(&provider, "two").await;
    second.until_copied(&provider).await;
    let uid = uid_of_space(&provider).await;
    // The whole contract goes, with its konnector.
    let Party { contract, mut consumer, client, .. } = first;
    consumer.kill_konnector().await;
    provider.cluster.delete(&namespaces(), None, &contract).await;
    let serves = format!("{}/{SPACE}", second.contract);
    let is_handed_over = |it: &Value| {
        let annotations = &it["metadata"]["annotations"];
        annotations["kube-bind.io/api-service-namespace"] == serves.as_str() && annotations.get(SHARED).is_none()
    };
    provider.cluster.until(&namespaces(), None, SPACE, is_handed_over).await;
    assert_eq!(uid_of_space(&provider).await, uid);
    // The other one goes on with its rights, the first one has none.
    let cowboys = things("cowboys", "Cowboy", true);
    let patch = json!({"spec": {"intent": "on"}});
    second.consumer.cluster.client.merge_patch(&cowboys, Some(SPACE), "two", &patch).await.unwrap();
    provider.cluster.until(&cowboys, Some(SPACE), "two", |it| it["spec"]["intent"] == "on").await;
    assert!(client.get(&cowboys, Some(SPACE), "two").await.is_err());
    let bindings =
        carrick_client::Resource::namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings");
    let takes_over = |it: &Value| it["subjects"][0]["namespace"] == second.contract.as_str();
    provider.cluster.until(&bindings, Some(SPACE), "kube-binder-resources-cowboys", takes_over).await;
    provider
        .cluster
        .until_gone(&bindings, Some(SPACE), &format!("kube-binder-resources-{}:cowboys", second.contract))
        .await;
    // And the last one takes it along.
    second.consumer.cluster.delete(&namespaces(), None, SPACE).await;
    provider.cluster.until_gone(&namespaces(), None, SPACE).await;
}
