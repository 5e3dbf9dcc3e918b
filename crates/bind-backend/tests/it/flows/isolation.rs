//! Two consumers, each of which tries everything of the other.

use carrick_bind_api::kinds;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_client::{Client, DeleteOptions, Error, ListOptions, Resource};
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::{Value, json};

use super::world::{BACKEND, Provider, as_consumer, namespaces, of, secrets, thing, things};

/// A consumer's part of the provider.
struct Party {
    contract: String,
    client: Client,
    /// Where its objects are.
    at: Option<String>,
    /// The name of one of them.
    name: String,
}

impl Party {
    fn object(&self, kind: &str) -> Value {
        let mut object = thing(kind, self.at.as_deref(), &self.name);
        object["metadata"]["annotations"] = json!({"kube-bind.io/cluster-namespace": self.contract});
        object
    }
}

async fn party(provider: &Provider, identity: &str, namespaced: bool, isolation: &Isolation) -> Party {
    let (contract, kubeconfig) = provider.contract(identity).await;
    let claims = json!([{"group": "", "resource": "secrets", "selector": {"labelSelector": {}}}]);
    provider.export(&contract, "things", claims).await;
    let client = as_consumer(&kubeconfig);
    let space = format!("team-{identity}");
    let object =
        json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceNamespace", "metadata": {"name": space}});
    let (resource, own) = (of(kinds::API_SERVICE_NAMESPACE), Some(contract.as_str()));
    client.create(&resource, own, &object).await.unwrap();
    let assigned = provider.cluster.until(&resource, own, &space, |it| it["status"]["namespace"].is_string()).await;
    let assigned = assigned["status"]["namespace"].as_str().unwrap().to_owned();
    let name = match isolation {
        Isolation::Prefixed if !namespaced => format!("{contract}-{identity}"),
        _ => identity.to_owned(),
    };
    let at = match (namespaced, isolation) {
        (true, Isolation::Namespaced) => Some(contract.clone()),
        (true, _) => Some(assigned),
        (false, _) => None,
    };
    Party { contract, client, at, name }
}

/// Waits until a consumer may do what it must be able to do: rights follow the objects that they are for.
async fn may(client: &Client, resource: &Resource, object: &Value) {
    let at = object["metadata"]["namespace"].as_str();
    let allowed = async {
        loop {
            match client.create(resource, at, object).await {
                Ok(_) => return,
                Err(error) if error.is_forbidden() => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), allowed).await.unwrap();
}

fn refused<T: std::fmt::Debug>(what: &str, result: &Result<T, Error>) {
    assert!(result.as_ref().is_err_and(Error::is_forbidden), "{what}: {result:?}");
}

async fn try_everything(scope: InformerScope, isolation: Isolation, namespaced: bool) {
    let case = format!("{scope} {isolation} {namespaced}");
    let provider = Provider::start(scope.clone(), isolation.clone()).await;
    provider.offer("things", "Thing", if namespaced { "Namespaced" } else { "Cluster" }).await;
    let kind = things("things", "Thing", namespaced);
    let parties =
        [party(&provider, "a", namespaced, &isolation).await, party(&provider, "b", namespaced, &isolation).await];
    // The policy is there before anybody has rights over a whole cluster.
    let policies = Resource::cluster_wide(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
    );
    provider.cluster.until(&policies, None, "kube-binder-own-objects", |_| true).await;
    for party in &parties {
        may(&party.client, &kind, &party.object("Thing")).await;
    }
    for (own, other) in [(&parties[0], &parties[1]), (&parties[1], &parties[0])] {
        let (client, at) = (&own.client, other.at.as_deref());
        let delete = DeleteOptions::default();
        let patch = json!({"spec": {"intent": "mine"}});
        refused(&case, &client.merge_patch(&kind, at, &other.name, &patch).await);
        let steal = json!({"metadata": {"annotations": {"kube-bind.io/cluster-namespace": own.contract}}});
        refused(&case, &client.merge_patch(&kind, at, &other.name, &steal).await);
        refused(&case, &client.delete(&kind, at, &other.name, &delete).await);
        let mut forged = other.object("Thing");
        forged["metadata"]["name"] = json!(format!("{}-forged", other.name));
        refused(&case, &client.create(&kind, at, &forged).await);
        if !namespaced {
            // Its own mark does not help under the other's name, nor does no mark at all.
            forged["metadata"]["annotations"]["kube-bind.io/cluster-namespace"] = json!(own.contract);
            if isolation == Isolation::Prefixed {
                refused(&case, &client.create(&kind, at, &forged).await);
            }
            forged["metadata"]["annotations"] = json!({});
            refused(&case, &client.create(&kind, at, &forged).await);
        }
        if namespaced && scope == InformerScope::Namespaced {
            refused(&case, &client.get(&kind, at, &other.name).await);
            refused(&case, &client.list(&kind, None, &ListOptions::default()).await);
        }
        // Credentials, contracts and everything in them.
        let theirs = Some(other.contract.as_str());
        refused(&case, &client.get(&secrets(), theirs, "kubeconfig").await);
        refused(&case, &client.list(&secrets(), None, &ListOptions::default()).await);
        for kind in
            [kinds::CLUSTER_BINDING, kinds::API_SERVICE_EXPORT, kinds::BOUND_SCHEMA, kinds::API_SERVICE_NAMESPACE]
        {
            refused(&case, &client.list(&of(kind), theirs, &ListOptions::default()).await);
        }
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}});
        for namespace in [other.contract.as_str(), at.unwrap_or("default"), "kube-system"] {
            refused(&case, &client.create(&secrets(), Some(namespace), &object).await);
        }
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}});
        refused(&case, &client.create(&namespaces(), None, &object).await);
        refused(&case, &client.delete(&namespaces(), None, &other.contract, &delete).await);
    }
    // Each can still work with its own.
    for party in &parties {
        let (client, at) = (&party.client, party.at.as_deref());
        let patch = json!({"spec": {"intent": "changed"}});
        client.merge_patch(&kind, at, &party.name, &patch).await.unwrap();
        client.delete(&kind, at, &party.name, &DeleteOptions::default()).await.unwrap();
    }
    let role = Resource::cluster_wide("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles");
    let all = provider.cluster.until(&role, None, "kube-binder-exports", |it| it["rules"].is_array()).await;
    assert_eq!(all["rules"][0]["verbs"].as_array().unwrap().len(), 7, "{case}: what kube-bind's own suite looks for");
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_of_cluster_scoped_objects_are_kept_apart() {
    for scope in [InformerScope::Namespaced, InformerScope::Cluster] {
        for isolation in [Isolation::Prefixed, Isolation::None] {
            try_everything(scope.clone(), isolation, false).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_of_namespaced_objects_are_kept_apart() {
    for scope in [InformerScope::Namespaced, InformerScope::Cluster] {
        for isolation in [Isolation::Prefixed, Isolation::Namespaced, Isolation::None] {
            try_everything(scope.clone(), isolation, true).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_policy_cannot_be_written_the_export_says_so_and_nobody_writes_before_it_can() {
    let provider = Provider::start(InformerScope::Cluster, Isolation::Prefixed).await;
    let faults = provider.cluster.plane.faults().clone();
    let policies = Match::writes().user(BACKEND).path("/validatingadmissionpolicies");
    let refusal = faults.add(Rule::new(policies, Effect::refuse(403)));
    provider.offer("things", "Thing", "Cluster").await;
    let (contract, kubeconfig) = provider.contract("a").await;
    provider.export(&contract, "things", json!([])).await;
    let (kind, client) = (things("things", "Thing", false), as_consumer(&kubeconfig));
    let mut own = thing("Thing", None, &format!("{contract}-a"));
    own["metadata"]["annotations"] = json!({"kube-bind.io/cluster-namespace": contract});
    let until = async |status: &str, reason: Option<&str>| {
        let is = |it: &Value| {
            let mut all = it["status"]["conditions"].as_array().into_iter().flatten();
            let found = all.find(|it| it["type"] == "ProviderInSync");
            found.is_some_and(|it| it["status"] == status && reason.is_none_or(|reason| it["reason"] == reason))
        };
        provider.cluster.until(&of(kinds::API_SERVICE_EXPORT), Some(&contract), "things", is).await
    };
    let export = until("False", Some("PolicyMissing")).await;
    assert!(export["status"].to_string().contains("nobody may write"), "{export}");
    refused("without the policy", &client.create(&kind, None, &own).await);
    faults.remove(refusal);
    until("True", None).await;
    may(&client, &kind, &own).await;
}
