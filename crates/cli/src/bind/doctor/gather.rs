//! Asks every server once. Nothing is written: access reviews are queries, although they are sent by POST.

mod rights;

use std::path::{Path, PathBuf};
use std::time::Duration;

use carrick_bind_api::identity::identity_of;
use carrick_bind_api::kinds::{
    API_SERVICE_BINDING, API_SERVICE_BINDING_BUNDLE, API_SERVICE_EXPORT, API_SERVICE_EXPORT_REQUEST,
    BINDABLE_RESOURCES_REQUEST, CLUSTER_BINDING, Kind,
};
use carrick_bind_api::names::{CLUSTER_BINDING_NAME, KONNECTOR_NAMESPACE, KUBECONFIG_KEY, PROVIDER_KUBECONFIG_LABEL};
use carrick_bind_api::v1alpha2::SecretKeyReference;
use carrick_bind_api::{crds, secret};
use carrick_client::{Client, ConnectError, Error, InlineKubeconfig, ListOptions, Overrides, Resource, Server};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::facts::{ConsumerFacts, ContractFacts, DeniedRight, Facts, ProviderFacts};
use crate::bind::parts::{namespaces, of, secrets};
use crate::doctor::facts::{Access, FailureKind, Lookup, ServerAnswer};

const GROUP: &str = "kube-bind.io";
const READ: &[&str] = &["get", "list", "watch"];
const ALL: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const STATUS: &[&str] = &["get", "patch", "update"];

/// What a konnector needs in its contract namespace, whatever is exported.
pub(super) const NEEDED: [(&str, &str, &[&str]); 9] = [
    (GROUP, "apiserviceexportrequests", ALL),
    (GROUP, "apiservicenamespaces", ALL),
    (GROUP, "apiserviceexports", READ),
    (GROUP, "apiserviceexports/status", STATUS),
    (GROUP, "boundschemas", READ),
    (GROUP, "boundschemas/status", STATUS),
    (GROUP, "clusterbindings", READ),
    (GROUP, "clusterbindings/status", STATUS),
    ("", "secrets", READ),
];

/// Gathers everything that the checks need.
pub async fn gather(consumer: Option<PathBuf>, provider: Option<PathBuf>, limit: Duration) -> Facts {
    let asking = Asking { limit };
    let consumer = async {
        match &consumer {
            Some(file) => Some(asking.consumer(file).await),
            None => None,
        }
    };
    let provider = async {
        match &provider {
            Some(file) => Some(asking.provider(file).await),
            None => None,
        }
    };
    let (consumer, provider) = tokio::join!(consumer, provider);
    Facts { consumer, provider, now: jiff::Timestamp::now() }
}

/// Sends requests with a time limit.
struct Asking {
    limit: Duration,
}

impl Asking {
    async fn within<T>(&self, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::time::timeout(self.limit, asked).await.unwrap_or_else(|_| {
            let problem = format!("not answered within {} s", self.limit.as_secs());
            Err(Error::Transport { request: "request".to_owned(), problem })
        })
    }

    /// Whether a server answers, and who we are there.
    async fn access(&self, origin: String, server: &Result<Server, ConnectError>) -> Access {
        let mut access = Access { origin, ..Access::default() };
        let server = match server {
            Ok(server) => server,
            Err(error) => {
                access.unusable = Some(error.to_string());
                return access;
            }
        };
        server.url().clone_into(&mut access.url);
        let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let reviews = Resource::cluster_wide("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews");
        let client = server.client();
        access.answer = match self.within(client.create(&reviews, None, &review)).await {
            Ok(answer) => {
                let user = answer["status"]["userInfo"]["username"].as_str();
                user.unwrap_or_default().clone_into(&mut access.user);
                ServerAnswer::Works
            }
            // Servers before 1.28 cannot say who the caller is.
            Err(error) if error.is_not_found() => match self.within(client.raw_get("/version")).await {
                Ok(_) => ServerAnswer::Works,
                Err(error) => ServerAnswer::Fails(FailureKind::of(&error), error.to_string()),
            },
            Err(error) => ServerAnswer::Fails(FailureKind::of(&error), error.to_string()),
        };
        access
    }

    async fn list<T: DeserializeOwned>(&self, client: &Client, kind: Kind) -> Vec<T> {
        let all = self.within(client.list(&of(kind), None, &ListOptions::default())).await.unwrap_or_default();
        all.into_iter().filter_map(|object| serde_json::from_value(object).ok()).collect()
    }

    /// Which of these kinds are not served in the version that is spoken.
    async fn missing_kinds(&self, client: &Client, wanted: &[Value]) -> Result<Vec<String>, String> {
        let version = carrick_bind_api::kinds::VERSION;
        let served = match self.within(client.raw_get(&format!("/apis/{GROUP}/{version}"))).await {
            Err(error) if error.is_not_found() => Value::Null,
            served => served.map_err(|error| error.to_string())?,
        };
        let served: Vec<&str> =
            served["resources"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect();
        let plurals = wanted.iter().filter_map(|crd| crd["spec"]["names"]["plural"].as_str());
        Ok(plurals.filter(|plural| !served.contains(plural)).map(|plural| format!("{plural}.{GROUP}")).collect())
    }

    async fn consumer(&self, file: &Path) -> ConsumerFacts {
        let server = Server::from_kubeconfig(file, &Overrides::default());
        let mut facts = ConsumerFacts::new(self.access(file.display().to_string(), &server).await);
        let (Ok(server), ServerAnswer::Works) = (server, &facts.access.answer) else { return facts };
        let client = server.client();
        facts.missing_kinds = self.missing_kinds(&client, &crds::consumer()).await;
        let system = self.within(client.get(&namespaces(), None, "kube-system")).await.ok().flatten();
        facts.uid = system.and_then(|it| it["metadata"]["uid"].as_str().map(str::to_owned));
        let deployments = Resource::namespaced("apps", "v1", "Deployment", "deployments");
        let found = self.within(client.get(&deployments, Some(KONNECTOR_NAMESPACE), "konnector")).await;
        if let Ok(Some(deployment)) = &found {
            facts.rights = self.konnector_rights(&client, deployment).await;
        }
        facts.deployment = Lookup::of(found);
        facts.bindings = self.list(&client, API_SERVICE_BINDING).await;
        facts.bundles = self.list(&client, API_SERVICE_BINDING_BUNDLE).await;
        for at in self.kubeconfigs(&client, &facts).await {
            let contract = self.contract(&client, at).await;
            facts.contracts.push(contract);
        }
        facts
    }

    /// Every kubeconfig that a binding, a bundle or a label names.
    async fn kubeconfigs(&self, client: &Client, facts: &ConsumerFacts) -> Vec<SecretKeyReference> {
        let bindings = facts.bindings.iter().map(|it| it.spec.kubeconfig_secret_ref.clone());
        let bundles = facts.bundles.iter().map(|it| it.spec.kubeconfig_secret_ref.clone());
        let label = ListOptions::labels(format!("{PROVIDER_KUBECONFIG_LABEL}=true"));
        let labelled = self.within(client.list_compact(&secrets(), Some(KONNECTOR_NAMESPACE), &label)).await;
        let labelled = labelled.unwrap_or_default();
        let labelled = labelled.iter().map(|it| SecretKeyReference::new(&*it.namespace, &*it.name, KUBECONFIG_KEY));
        let mut all: Vec<SecretKeyReference> = Vec::new();
        for at in bindings.chain(bundles).chain(labelled) {
            if !all.contains(&at) {
                all.push(at);
            }
        }
        all
    }

    async fn contract(&self, client: &Client, at: SecretKeyReference) -> ContractFacts {
        let mut facts = ContractFacts {
            namespace: Err(String::new()),
            access: Access::default(),
            denied: None,
            binding: Lookup::NotAsked,
            at,
        };
        let at = &facts.at;
        let found = match self.within(client.get(&secrets(), Some(&at.namespace), &at.name)).await {
            Ok(found) => found,
            // What a server says about a Secret may quote it.
            Err(error) => {
                facts.namespace = Err(format!("it could not be read: {}", error.discreet()));
                return facts;
            }
        };
        let text = secret::text(found.as_ref(), at).map_err(|error| error.to_string());
        let read = text.and_then(|text| InlineKubeconfig::parse(&text).map_err(|error| error.to_string()));
        let kubeconfig = match read {
            Ok(kubeconfig) => kubeconfig,
            Err(problem) => {
                facts.namespace = Err(problem);
                return facts;
            }
        };
        let Some(namespace) = kubeconfig.namespace().map(str::to_owned) else {
            facts.namespace = Err("its context names no namespace".to_owned());
            return facts;
        };
        facts.namespace = Ok(namespace.clone());
        let server = Server::from_inline(&kubeconfig);
        facts.access = self.access(format!("Secret {}/{}", at.namespace, at.name), &server).await;
        let (Ok(server), ServerAnswer::Works) = (server, &facts.access.answer) else { return facts };
        let provider = server.client();
        facts.denied = Some(self.denied(&provider, &namespace).await);
        let binding = self.within(provider.get(&of(CLUSTER_BINDING), Some(&namespace), CLUSTER_BINDING_NAME)).await;
        facts.binding = match Lookup::of(binding) {
            Lookup::There(binding) => match serde_json::from_value(binding) {
                Ok(binding) => Lookup::There(binding),
                Err(error) => Lookup::Unreadable(FailureKind::Other, error.to_string()),
            },
            Lookup::NotAsked => Lookup::NotAsked,
            Lookup::Missing => Lookup::Missing,
            Lookup::Unreadable(kind, problem) => Lookup::Unreadable(kind, problem),
        };
        facts
    }

    async fn denied(&self, client: &Client, namespace: &str) -> Result<Vec<DeniedRight>, String> {
        let mut all = Vec::new();
        for (group, resource, verbs) in NEEDED {
            let mut denied = Vec::new();
            for verb in verbs {
                let right = (group, resource, *verb);
                let asked = carrick_syncagent::agent::rights::allowed(client, right, Some(namespace), None);
                if !self.within(asked).await.map_err(|error| error.to_string())? {
                    denied.push(*verb);
                }
            }
            if !denied.is_empty() {
                all.push(DeniedRight { group, resource, verbs: denied });
            }
        }
        Ok(all)
    }

    async fn provider(&self, file: &Path) -> ProviderFacts {
        let server = Server::from_kubeconfig(file, &Overrides::default());
        let mut facts = ProviderFacts::new(self.access(file.display().to_string(), &server).await);
        let (Ok(server), ServerAnswer::Works) = (server, &facts.access.answer) else { return facts };
        let client = server.client();
        facts.missing_kinds = self.missing_kinds(&client, &crds::provider()).await;
        let policies = Resource::cluster_wide(
            "admissionregistration.k8s.io",
            "v1",
            "ValidatingAdmissionPolicy",
            "validatingadmissionpolicies",
        );
        let policy = carrick_bind_backend::decide::cluster::POLICY;
        facts.policy = Lookup::of(self.within(client.get(&policies, None, policy)).await);
        let all = self.within(client.list(&namespaces(), None, &ListOptions::default())).await;
        facts.contracts = all.map_err(|error| error.to_string()).map(|all| {
            let contract = |namespace: Value| {
                let metadata = serde_json::from_value(namespace["metadata"].clone()).ok()?;
                let identity = identity_of(&metadata)?.to_owned();
                Some((metadata.name, identity))
            };
            all.into_iter().filter_map(contract).collect()
        });
        facts.bindings = self.list(&client, CLUSTER_BINDING).await;
        facts.requests = self.list(&client, API_SERVICE_EXPORT_REQUEST).await;
        facts.exports = self.list(&client, API_SERVICE_EXPORT).await;
        facts.orders = self.list(&client, BINDABLE_RESOURCES_REQUEST).await;
        facts
    }
}
