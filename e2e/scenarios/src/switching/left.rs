//! What kube-bind's own backend and konnector leave behind, written from its specification: one contract, one export with a claim, one order and one
//! claimed Secret. Isolation is Prefixed and the scope Namespaced, which are its defaults.

use anyhow::Context;
use carrick_bind_api::identity::contract_namespace;
use carrick_bind_api::kinds::{
    API_SERVICE_BINDING, API_SERVICE_EXPORT, API_SERVICE_NAMESPACE, BOUND_SCHEMA, CLUSTER_BINDING,
};
use carrick_bind_api::schema;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_client::{Client, Resource};
use carrick_e2e_stage::contract::{KONNECTOR, kind};
use carrick_e2e_stage::kinds;
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::{CLAIMED, Clusters, EXPORT, IDENTITY, ORDER, PREFIX, RBAC, SPACE, roles};

const OIDC_AUTHOR: &str = "0b8f2a4e-subject";
const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

/// Where something is: the cluster, its kind, its namespace and its name.
pub type At<'a> = (&'a Client, Resource, Option<String>, String);

/// Both halves of a contract, and all that they consist of.
pub struct Left<'a> {
    clusters: &'a Clusters<'a>,
    /// Namespace of the contract.
    pub contract: String,
    /// Namespace for the consumer's.
    pub space: String,
    /// The kubeconfig, as it is in both Secrets.
    pub kubeconfig: String,
    /// All objects, in the order in which they were made.
    pub objects: Vec<At<'a>>,
}

impl<'a> Left<'a> {
    /// Makes everything.
    pub async fn behind(clusters: &'a Clusters<'a>) -> anyhow::Result<Self> {
        let contract = contract_namespace(PREFIX, IDENTITY);
        let space = format!("{contract}-{SPACE}");
        let mut left = Self { clusters, contract, space, kubeconfig: String::new(), objects: Vec::new() };
        let token = left.contract().await?;
        left.kubeconfig = left.kubeconfig(&token);
        left.secret(&clusters.provider, &left.contract.clone(), "kubeconfig", json!({})).await?;
        left.export().await?;
        left.rights().await?;
        left.binding().await?;
        left.order().await?;
        Ok(left)
    }

    async fn make(&mut self, client: &'a Client, resource: &Resource, object: &Value) -> anyhow::Result<Value> {
        let namespace = object["metadata"]["namespace"].as_str();
        let made = client.create(resource, namespace, object).await;
        let made = made.with_context(|| format!("{resource} {}", object["metadata"]["name"]))?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.objects.push((client, resource.clone(), namespace.map(str::to_owned), name));
        Ok(made)
    }

    /// Makes an object of kube-bind with the status that it has.
    async fn with_status(&mut self, resource: &Resource, object: &Value, status: &Value) -> anyhow::Result<Value> {
        let provider = &self.clusters.provider;
        let made = self.make(provider, resource, object).await?;
        let (namespace, name) = (object["metadata"]["namespace"].as_str(), object["metadata"]["name"].as_str());
        provider
            .merge_patch_status(resource, namespace, name.unwrap_or_default(), &json!({ "status": status }))
            .await?;
        Ok(made)
    }

    /// Namespace, account, token and ClusterBinding: the token.
    async fn contract(&mut self) -> anyhow::Result<String> {
        let (provider, at) = (&self.clusters.provider, self.contract.clone());
        let who = json!({ "backend.kube-bind.io/identity": IDENTITY, "backend.kube-bind.io/author": OIDC_AUTHOR });
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": at, "annotations": who } });
        self.make(provider, &kinds::namespaces(), &namespace).await?;
        let binding = json!({ "apiVersion": CLUSTER_BINDING.api_version(), "kind": CLUSTER_BINDING.kind,
            "metadata": { "name": "cluster", "namespace": at, "annotations": who },
            "spec": { "kubeconfigSecretRef": { "name": "kubeconfig", "key": "kubeconfig" }, "providerPrettyName": "Backend" } });
        let beat = json!({ "heartbeatInterval": "5m0s", "lastHeartbeatTime": "2026-06-01T00:00:00Z", "konnectorVersion": "v0.8.2",
            "consumerSecretRef": { "name": "kubeconfig-x7k2p", "namespace": KONNECTOR } });
        self.with_status(&kind(CLUSTER_BINDING), &binding, &beat).await?;
        let accounts = Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts");
        let named = json!({ "name": "kube-binder", "namespace": at });
        self.make(provider, &accounts, &json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": named }))
            .await?;
        let mut metadata = named;
        metadata["annotations"] = json!({ "kubernetes.io/service-account.name": "kube-binder" });
        let token = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/service-account-token" });
        self.make(provider, &kinds::secrets(), &token).await?;
        self.clusters
            .stage
            .eventually("the account has a token", async || {
                let secret = provider.get(&kinds::secrets(), Some(&at), "kube-binder").await?.context("no Secret")?;
                let token = secret["data"]["token"].as_str().context("no token")?;
                Ok(String::from_utf8(BASE64.decode(token.as_bytes())?)?)
            })
            .await
    }

    /// As Go writes it: YAML, keys in their order, and the authority of the backend's own kubeconfig.
    fn kubeconfig(&self, token: &str) -> String {
        let (address, at) = (&self.clusters.address, &self.contract);
        let authority = BASE64.encode(address.authority.as_deref().unwrap_or_default().as_bytes());
        format!(
            "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {authority}\n    server: {}\n  name: default\n\
             contexts:\n- context:\n    cluster: default\n    namespace: {at}\n    user: default\n  name: default\n\
             current-context: default\nkind: Config\npreferences: {{}}\nusers:\n- name: default\n  user:\n    token: {token}\n",
            address.server
        )
    }

    async fn secret(&mut self, client: &'a Client, at: &str, name: &str, labels: Value) -> anyhow::Result<()> {
        let data = json!({ "kubeconfig": BASE64.encode(self.kubeconfig.as_bytes()) });
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": at, "labels": labels },
            "type": "Opaque", "data": data });
        self.make(client, &kinds::secrets(), &secret).await?;
        Ok(())
    }

    /// Export, schema and namespace. There is no request any more: it goes after ten minutes.
    async fn export(&mut self) -> anyhow::Result<()> {
        let (provider, at) = (&self.clusters.provider, self.contract.clone());
        let export = json!({ "apiVersion": API_SERVICE_EXPORT.api_version(), "kind": API_SERVICE_EXPORT.kind,
            "metadata": { "name": EXPORT, "namespace": at, "annotations": { "kube-bind.io/source-spec-hash": "another-format" } },
            "spec": { "informerScope": "Namespaced", "isolation": "Prefixed",
                "resources": [{ "group": self.clusters.stage.group, "resource": EXPORT, "versions": ["v1"] }],
                "permissionClaims": [{ "group": "", "resource": "secrets", "selector": { "labelSelector": { "matchLabels": { "app": "cowboy" } } } }] } });
        let made = self.make(provider, &kind(API_SERVICE_EXPORT), &export).await?;
        let owner = json!([{ "apiVersion": API_SERVICE_EXPORT.api_version(), "kind": API_SERVICE_EXPORT.kind, "name": EXPORT,
            "uid": made["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true }]);
        let bound = schema::from_crd(&self.clusters.crd(), InformerScope::Namespaced, &Isolation::Prefixed)?;
        let mut bound = serde_json::to_value(bound)?;
        bound["metadata"]["namespace"] = json!(at);
        bound["metadata"]["ownerReferences"] = owner.clone();
        self.make(provider, &kind(BOUND_SCHEMA), &bound).await?;
        let agreed = json!({ "apiVersion": API_SERVICE_NAMESPACE.api_version(), "kind": API_SERVICE_NAMESPACE.kind,
            "metadata": { "name": SPACE, "namespace": at, "ownerReferences": owner } });
        let status = json!({ "namespace": self.space });
        self.with_status(&kind(API_SERVICE_NAMESPACE), &agreed, &status).await?;
        let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": self.space,
            "annotations": { "kube-bind.io/api-service-namespace": format!("{at}/{SPACE}") } } });
        self.make(provider, &kinds::namespaces(), &space).await?;
        Ok(())
    }

    /// Roles and bindings under the names that kube-bind gives them.
    async fn rights(&mut self) -> anyhow::Result<()> {
        let (provider, at, space) = (&self.clusters.provider, self.contract.clone(), self.space.clone());
        let contract = provider.get(&kinds::namespaces(), None, &at).await?.context("no contract")?;
        let owner =
            json!([{ "apiVersion": "v1", "kind": "Namespace", "name": at, "uid": contract["metadata"]["uid"] }]);
        let aggregated = json!({ "rbac.kube-bind.io/aggregate-to-parent": "true" });
        let rule =
            |group: &str, resource: &str| json!([{ "apiGroups": [group], "resources": [resource], "verbs": VERBS }]);
        let account = json!([{ "kind": "ServiceAccount", "name": "kube-binder", "namespace": at }]);
        let role = |metadata: Value, rules: Value| json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": rules });
        let exports = json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": "kube-binder-exports" },
            "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": aggregated }] }, "rules": [] });
        self.make(provider, &kinds::cluster_roles(), &exports).await?;
        for (part, rules) in [("resources", rule(&self.clusters.stage.group, EXPORT)), ("claims", json!([]))] {
            let name = format!("kube-binder-{part}-{at}-{EXPORT}");
            let metadata = json!({ "name": name, "labels": aggregated, "ownerReferences": owner });
            self.make(provider, &kinds::cluster_roles(), &role(metadata, rules)).await?;
        }
        let base = json!([
            { "apiGroups": ["kube-bind.io"], "resources": ["apiserviceexportrequests", "apiservicenamespaces"], "verbs": VERBS },
            { "apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"] },
            { "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"] },
            { "apiGroups": ["kube-bind.io"], "resources": ["clusterbindings", "apiserviceexports", "boundschemas"], "verbs": ["get", "list", "watch"] },
            { "apiGroups": ["kube-bind.io"], "verbs": ["get", "patch", "update"],
                "resources": ["clusterbindings/status", "apiserviceexports/status", "boundschemas/status"] } ]);
        self.make(provider, &kinds::cluster_roles(), &role(json!({ "name": "kube-binder" }), base)).await?;
        let claims = format!("kube-binder-claims-{EXPORT}");
        let in_space = json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": { "name": claims, "namespace": space }, "rules": rule("", "secrets") });
        self.make(provider, &roles("Role"), &in_space).await?;
        for (kind, namespace, name, referred) in [
            ("ClusterRoleBinding", None, "kube-binder-exports", "ClusterRole"),
            ("RoleBinding", Some(&at), "kube-binder", "ClusterRole"),
            ("RoleBinding", Some(&space), claims.as_str(), "Role"),
        ] {
            let mut binding = json!({ "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": { "name": name }, "subjects": account,
                "roleRef": { "apiGroup": RBAC, "kind": referred, "name": name } });
            if let Some(namespace) = namespace {
                binding["metadata"]["namespace"] = json!(namespace);
            }
            self.make(provider, &roles(kind), &binding).await?;
        }
        Ok(())
    }

    /// The consumer's half: Secret, binding and CRD.
    async fn binding(&mut self) -> anyhow::Result<()> {
        let consumer = &self.clusters.consumer;
        let namespace = |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        for name in [KONNECTOR, SPACE] {
            self.make(consumer, &kinds::namespaces(), &namespace(name)).await?;
        }
        let labels = json!({ "kube-bind.io/provider-kubeconfig": "true" });
        self.secret(consumer, KONNECTOR, "kubeconfig-x7k2p", labels).await?;
        let binding = json!({ "apiVersion": API_SERVICE_BINDING.api_version(), "kind": API_SERVICE_BINDING.kind, "metadata": { "name": EXPORT },
            "spec": { "kubeconfigSecretRef": { "namespace": KONNECTOR, "name": "kubeconfig-x7k2p", "key": "kubeconfig" } } });
        let binding = self.make(consumer, &kind(API_SERVICE_BINDING), &binding).await?;
        let mut crd = self.clusters.crd();
        crd["metadata"] = json!({ "name": crd["metadata"]["name"], "ownerReferences": [{ "apiVersion": API_SERVICE_BINDING.api_version(),
            "kind": API_SERVICE_BINDING.kind, "name": EXPORT, "uid": binding["metadata"]["uid"], "controller": true }] });
        self.make(consumer, &kinds::crds(), &crd).await?;
        self.clusters.until_served(consumer, &crd).await
    }

    /// An order and a claimed Secret, each with its copy.
    async fn order(&mut self) -> anyhow::Result<()> {
        let (consumer, provider) = (&self.clusters.consumer, &self.clusters.provider);
        let (at, space, cowboys) = (self.contract.clone(), self.space.clone(), self.clusters.cowboys());
        let mut order = json!({ "apiVersion": format!("{}/v1", self.clusters.stage.group), "kind": "Cowboy", "spec": { "intent": "ride" },
            "metadata": { "name": ORDER, "namespace": SPACE, "finalizers": ["kubebind.io/syncer"] } });
        let source = self.make(consumer, &cowboys, &order).await?;
        order["metadata"] = json!({ "name": ORDER, "namespace": space, "annotations": { "kube-bind.io/cluster-namespace": at,
            "kube-bind.io/consumer-namespace": SPACE, "kube-bind.io/consumer-uid": source["metadata"]["uid"] } });
        let copy = self.make(provider, &cowboys, &order).await?;
        let status = json!({ "status": { "result": "riding" } });
        provider.merge_patch_status(&cowboys, Some(&space), ORDER, &status).await?;
        consumer.merge_patch_status(&cowboys, Some(SPACE), ORDER, &status).await?;
        let trace =
            json!({ "kube-bind.io/provider-namespace": space, "kube-bind.io/provider-uid": copy["metadata"]["uid"] });
        consumer.merge_patch(&cowboys, Some(SPACE), ORDER, &json!({ "metadata": { "annotations": trace } })).await?;

        let labels = json!({ "app": "cowboy", "kube-bind.io/owner": "consumer" });
        let mut secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": CLAIMED, "namespace": SPACE, "labels": labels },
            "data": { "permit": "YQ==" } });
        let source = self.make(consumer, &kinds::secrets(), &secret).await?;
        secret["metadata"] = json!({ "name": CLAIMED, "namespace": space, "labels": labels, "annotations": {
            "kube-bind.io/consumer-namespace": SPACE, "kube-bind.io/consumer-uid": source["metadata"]["uid"] } });
        self.make(provider, &kinds::secrets(), &secret).await?;
        Ok(())
    }
}
