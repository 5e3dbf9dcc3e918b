//! Which clusters are served, and what logged-in consumers may ask of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use carrick_bind_api::identity::contract_namespace;
use carrick_bind_api::kinds::{
    API_SERVICE_EXPORT, API_SERVICE_EXPORT_REQUEST, API_SERVICE_EXPORT_TEMPLATE, CLUSTER_BINDING, COLLECTION, GROUP,
    Kind, VERSION,
};
use carrick_bind_api::names::{CLUSTER_BINDING_NAME, ORDERED_TEMPLATES_ANNOTATION};
use carrick_bind_api::response;
use carrick_bind_api::v1alpha2::ClusterBinding;
use carrick_client::{Client, Error, ListOptions, Resource};
use carrick_multicluster::providers::kcp::ApiExport;
use carrick_multicluster::{Fleet, FleetEvent};
use data_encoding::BASE64;
use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch as channel;
use tokio_util::sync::CancellationToken;

use super::config::BackendConfig;
use super::resources;
use super::session::ClusterSession;
use super::wait::until;
use crate::decide::objects::Contract;
use crate::decide::terms::{Terms, Workspace};
use crate::decide::{contract, ordered};
use crate::provider::{BindOrder, Bound, Person, Provider, ProviderError};

/// How long whoever does the provider's work may take for a contract, and for an export.
const CONTRACT_PATIENCE: Duration = Duration::from_secs(30);
const EXPORT_PATIENCE: Duration = Duration::from_mins(1);
/// The Secret with the keys of all replicas.
const KEYS: &str = "kube-bind-backend-keys";

/// A cluster that is served.
#[derive(Clone)]
pub(super) struct ServedCluster {
    pub client: Client,
    pub terms: Terms,
    /// Which engagement of the fleet it is.
    epoch: u64,
}

impl PartialEq for ServedCluster {
    fn eq(&self, other: &Self) -> bool {
        self.epoch == other.epoch
    }
}

/// The clusters that are served. Cloning shares them.
#[derive(Clone)]
pub struct Clusters {
    inner: Arc<Inner>,
}

struct Inner {
    home: Client,
    namespace: String,
    all: Mutex<BTreeMap<String, ServedCluster>>,
    changes: channel::Sender<u64>,
    duty: Mutex<Duty>,
}

/// What this replica does besides answering requests.
enum Duty {
    /// Nothing yet.
    Starting,
    /// Another replica may do the provider's work; this one answers requests all the same.
    Waiting,
    /// The provider's work, in these clusters.
    Serving(Vec<Weak<ClusterSession>>),
}

impl Clusters {
    /// The cluster of the kubeconfig, or from now on the workspaces that bind the APIExport.
    pub fn start(config: &BackendConfig, stop: &CancellationToken) -> Self {
        let home = config.server.client();
        let inner = Inner {
            home: home.clone(),
            namespace: config.namespace.clone(),
            all: Mutex::default(),
            changes: channel::Sender::new(0),
            duty: Mutex::new(Duty::Starting),
        };
        let clusters = Self { inner: Arc::new(inner) };
        let Some(slice) = &config.slice else {
            let cluster = ServedCluster { client: home, terms: config.terms.clone(), epoch: 0 };
            clusters.change(|all| drop(all.insert(String::new(), cluster)));
            return clusters;
        };
        let fleet = Fleet::builder(ApiExport::new(home, slice)).build();
        let (following, mut terms, stop) = (clusters.clone(), config.terms.clone(), stop.clone());
        let ignored = config.ignored_bindings.clone();
        tokio::spawn(async move {
            let backend = own_name(&following.inner.home).await;
            terms.workspace = Some(Workspace { cluster: String::new(), backend, ignored });
            let mut events = fleet.subscribe();
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    Some(event) = events.next() => following.on(event, &terms),
                }
            }
        });
        clusters
    }

    fn on(&self, event: FleetEvent, terms: &Terms) {
        match event {
            FleetEvent::Engage(cluster) => {
                let (name, mut terms) = (cluster.name().to_string(), terms.clone());
                // Each workspace has an address of its own.
                terms.address.server = format!("{}/clusters/{name}", terms.address.server.trim_end_matches('/'));
                if let Some(workspace) = &mut terms.workspace {
                    workspace.cluster.clone_from(&name);
                }
                let served = ServedCluster { client: cluster.json_client().clone(), terms, epoch: cluster.epoch() };
                self.change(|all| drop(all.insert(name, served)));
            }
            FleetEvent::Disengage { name, epoch, .. } => self.change(|all| {
                if all.get(&*name.to_string()).is_some_and(|cluster| cluster.epoch == epoch) {
                    all.remove(&*name.to_string());
                }
            }),
            FleetEvent::Failing { source, error } => tracing::warn!(%source, %error, "The workspaces are not known."),
            _ => {}
        }
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, ServedCluster>)) {
        change(&mut self.inner.all.lock());
        self.inner.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn all(&self) -> BTreeMap<String, ServedCluster> {
        self.inner.all.lock().clone()
    }

    /// Others have the Lease.
    pub(super) fn wait(&self) {
        *self.inner.duty.lock() = Duty::Waiting;
    }

    /// The provider's work is done here, by these.
    pub(super) fn serve<'a>(&self, sessions: impl Iterator<Item = &'a Arc<ClusterSession>>) {
        *self.inner.duty.lock() = Duty::Serving(sessions.map(Arc::downgrade).collect());
    }

    pub(super) fn changes(&self) -> channel::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    fn cluster(&self, name: &str) -> Result<ServedCluster, ProviderError> {
        let found = self.inner.all.lock().get(name).cloned();
        found.ok_or_else(|| ProviderError::NotFound(format!("cluster {name:?} is not served here")))
    }

    async fn list(&self, cluster: &str, kind: Kind) -> Result<Value, ProviderError> {
        let cluster = self.cluster(cluster)?;
        let items = cluster
            .client
            .list(&resources::of(kind), None, &ListOptions::default())
            .await
            .map_err(|error| unavailable(&error))?;
        Ok(
            json!({"apiVersion": kind.api_version(), "kind": format!("{}List", kind.kind), "metadata": {}, "items": items}),
        )
    }
}

impl Provider for Clusters {
    fn problem(&self) -> Option<String> {
        match &*self.inner.duty.lock() {
            Duty::Starting => Some("the backend is starting".to_owned()),
            Duty::Waiting => None,
            Duty::Serving(sessions) => {
                let problems = sessions.iter().filter_map(Weak::upgrade).map(|session| session.problem());
                let problems: Vec<Option<String>> = problems.collect();
                // In kcp, a workspace that has not accepted a claim hides a kind; that is no reason to turn the others away.
                if problems.iter().any(Option::is_none) { None } else { problems.into_iter().next().flatten() }
            }
        }
    }

    async fn templates(&self, cluster: &str) -> Result<Value, ProviderError> {
        self.list(cluster, API_SERVICE_EXPORT_TEMPLATE).await
    }

    async fn collections(&self, cluster: &str) -> Result<Value, ProviderError> {
        self.list(cluster, COLLECTION).await
    }

    async fn bind(&self, cluster: &str, order: &BindOrder) -> Result<Bound, ProviderError> {
        let ServedCluster { client, terms, .. } = self.cluster(cluster)?;
        if order.identity.is_empty() {
            return Err(ProviderError::Invalid("the identity of the consumer's cluster is empty".to_owned()));
        }
        let templates = resources::of(API_SERVICE_EXPORT_TEMPLATE);
        let template = client.get(&templates, None, &order.template).await.map_err(|error| unavailable(&error))?;
        let Some(template) = template else {
            return Err(ProviderError::NotFound(format!("template {:?} does not exist", order.template)));
        };
        let contract = contract_of(&client, &terms, order).await?;
        note_order(&client, &contract, &order.template).await?;
        let kubeconfig = kubeconfig_of(&client, &contract.namespace).await?;
        let mut request = json!({"apiVersion": format!("{GROUP}/{VERSION}"), "kind": API_SERVICE_EXPORT_REQUEST.kind,
            "metadata": {"name": order.name}, "spec": {}});
        if order.name.is_empty() {
            // Command lines of kube-bind choose a name for what has none.
            request["metadata"] = json!({"generateName": "export-"});
        }
        for field in ["resources", "permissionClaims", "namespaces", "schemaUpdatePolicy"] {
            if !template["spec"][field].is_null() {
                request["spec"][field] = template["spec"][field].clone();
            }
        }
        let (requests, binding_name) = if order.request_export {
            let name = request_export(&client, &contract.namespace, &mut request).await?;
            (vec![request], Some(name))
        } else {
            (vec![request], None)
        };
        Ok(Bound { kubeconfig, namespace: contract.namespace, requests, binding_name })
    }

    async fn kubeconfig(&self, cluster: &str, identity: &str) -> Result<Vec<u8>, ProviderError> {
        let client = self.cluster(cluster)?.client;
        let contract = find_contract(&client, identity).await?.filter(|it| it.requested_from.is_none());
        let contract = contract.ok_or_else(|| ProviderError::NotFound("nothing is bound yet".to_owned()))?;
        kubeconfig_of(&client, &contract.namespace).await
    }

    async fn exports(&self, cluster: &str, identity: &str) -> Result<Option<(String, Vec<String>)>, ProviderError> {
        let client = self.cluster(cluster)?.client;
        let contract = find_contract(&client, identity).await?.filter(|it| it.requested_from.is_none());
        let Some(contract) = contract else { return Ok(None) };
        let resource = resources::of(API_SERVICE_EXPORT);
        let exports = client.list_compact(&resource, Some(&contract.namespace), &ListOptions::default()).await;
        let names =
            exports.map_err(|error| unavailable(&error))?.iter().map(|export| export.name.to_string()).collect();
        Ok(Some((contract.namespace, names)))
    }

    async fn may_bind(&self, cluster: &str, person: &Person) -> Result<bool, ProviderError> {
        let client = self.cluster(cluster)?.client;
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": person.subject, "groups": person.groups, "resourceAttributes": {"verb": "bind", "group": GROUP, "resource": "*"}}});
        let reviews =
            Resource::cluster_wide("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews");
        let answer = client.create(&reviews, None, &review).await.map_err(|error| unavailable(&error))?;
        Ok(answer["status"]["allowed"] == true)
    }

    async fn keys(
        &self,
        make: &(dyn Fn() -> BTreeMap<String, Vec<u8>> + Send + Sync),
    ) -> Result<BTreeMap<String, Vec<u8>>, ProviderError> {
        let (client, at) = (&self.inner.home, Some(self.inner.namespace.as_str()));
        loop {
            // What a server says about a Secret may quote it.
            let quiet = |error: Error| unavailable(&error.discreet());
            if let Some(secret) = client.get(&resources::secrets(), at, KEYS).await.map_err(quiet)? {
                let data = secret["data"].as_object().into_iter().flatten();
                let decoded = data.filter_map(|(key, value)| Some((key.clone(), response::decode(value.as_str()?)?)));
                return Ok(decoded.collect());
            }
            let data: BTreeMap<String, String> =
                make().into_iter().map(|(key, value)| (key, BASE64.encode(&value))).collect();
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": {"name": KEYS, "namespace": self.inner.namespace}, "data": data});
            match client.create(&resources::secrets(), at, &secret).await {
                Err(error) if !error.is_already_exists() => return Err(quiet(error)),
                // Whichever replica was first: what is stored counts.
                _ => {}
            }
        }
    }
}

/// The user that the backend is in other workspaces; none if the server does not say.
async fn own_name(client: &Client) -> Option<String> {
    let reviews = Resource::cluster_wide("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = client.create(&reviews, None, &review).await;
    let answer = answer.inspect_err(|error| tracing::warn!(%error, "The backend does not learn who it is.")).ok()?;
    let user = &answer["status"]["userInfo"];
    let name = user["username"].as_str()?;
    let cluster = user["extra"]["authentication.kcp.io/cluster-name"][0].as_str();
    // An account of one workspace has another name in all others.
    match (name.strip_prefix("system:serviceaccount:"), cluster) {
        (Some(account), Some(cluster)) => Some(format!("system:kcp:serviceaccount:{cluster}:{account}")),
        _ => Some(name.to_owned()),
    }
}

fn unavailable(error: &Error) -> ProviderError {
    ProviderError::Unavailable(format!("the provider's cluster does not answer as it should: {error}"))
}

/// The contract of an identity.
async fn find_contract(client: &Client, identity: &str) -> Result<Option<Contract>, ProviderError> {
    let all = client
        .list(&resources::namespaces(), None, &ListOptions::default())
        .await
        .map_err(|error| unavailable(&error))?;
    let mut found: Vec<Contract> = all.iter().filter_map(Contract::of).filter(|it| it.identity == identity).collect();
    if found.len() > 1 {
        let names: Vec<&str> = found.iter().map(|it| it.namespace.as_str()).collect();
        let message = format!("namespaces {} all say that they are for this identity; keep one", names.join(", "));
        return Err(ProviderError::Unavailable(message));
    }
    Ok(found.pop())
}

/// The contract of an order, founded if there is none. The rest of it is made by whichever replica leads.
async fn contract_of(client: &Client, terms: &Terms, order: &BindOrder) -> Result<Contract, ProviderError> {
    let name = contract_namespace(&terms.namespace_prefix, &order.identity);
    for _ in 0..2 {
        if let Some(contract) = find_contract(client, &order.identity).await? {
            if !contract.is_for_login(&order.author, &order.subject) {
                let message = "this identity belongs to somebody else; choose another one, or ask its author";
                return Err(ProviderError::Forbidden(message.to_owned()));
            }
            if contract.deleting {
                let message = format!("the contract {} is being deleted; try again later", contract.namespace);
                return Err(ProviderError::Unavailable(message));
            }
            return Ok(contract);
        }
        // kube-bind's backend calls the consumer like the binding if nobody has said a name.
        let pretty_name = if order.pretty_name.is_empty() { &order.name } else { &order.pretty_name };
        let mut namespace = contract::namespace(&name, &order.identity, &order.author, pretty_name);
        namespace["metadata"]["annotations"][ORDERED_TEMPLATES_ANNOTATION] = json!(order.template);
        match client.create(&resources::namespaces(), None, &namespace).await {
            // Somebody else may be founding the same contract.
            Ok(_) => {}
            Err(error) if error.is_already_exists() => {}
            Err(error) => return Err(unavailable(&error)),
        }
    }
    Err(ProviderError::Unavailable(format!("namespace {name} exists and is no contract of this identity")))
}

/// Notes down at a contract which template was ordered: it may ask for what that has.
async fn note_order(client: &Client, contract: &Contract, template: &str) -> Result<(), ProviderError> {
    for _ in 0..5 {
        let found = client.get(&resources::namespaces(), None, &contract.namespace).await;
        let found = found.map_err(|error| unavailable(&error))?;
        let Some(mut namespace) = found.filter(|it| it["metadata"]["uid"] == contract.uid.as_str()) else { break };
        let ordered = ordered::of_namespace(&namespace);
        let Some(ordered) = ordered::with(ordered.as_deref(), template) else { return Ok(()) };
        namespace["metadata"]["annotations"][ORDERED_TEMPLATES_ANNOTATION] = json!(ordered);
        match client.replace(&resources::namespaces(), None, &namespace).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(unavailable(&error)),
        }
    }
    let message = format!("contract {} changes all the time, or is gone; try again", contract.namespace);
    Err(ProviderError::Unavailable(message))
}

/// The kubeconfig of a contract, as soon as it is there.
async fn kubeconfig_of(client: &Client, contract: &str) -> Result<Vec<u8>, ProviderError> {
    let binding = client.get(&resources::of(CLUSTER_BINDING), Some(contract), CLUSTER_BINDING_NAME).await;
    let binding =
        binding.map_err(|error| unavailable(&error))?.and_then(|it| serde_json::from_value::<ClusterBinding>(it).ok());
    let at = contract::kubeconfig_secret(binding.as_ref());
    let found = |secret: &Value| contract::kubeconfig_in(secret, &at.key);
    let secret = until(client, resources::secrets(), contract, &at.name, CONTRACT_PATIENCE, found).await;
    secret.ok_or_else(|| {
        let message = format!("contract {contract} was not completed in time; see the log of the backend that leads");
        ProviderError::Unavailable(message)
    })
}

/// Creates an export request and waits until it has succeeded: the name that it got.
async fn request_export(client: &Client, contract: &str, request: &mut Value) -> Result<String, ProviderError> {
    let resource = resources::of(API_SERVICE_EXPORT_REQUEST);
    let name = request["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut created = client.create(&resource, Some(contract), request).await;
    if created.as_ref().is_err_and(Error::is_already_exists) {
        request["metadata"] = json!({"generateName": format!("{name}-")});
        created = client.create(&resource, Some(contract), request).await;
    }
    let created = created.map_err(|error| {
        if error.is_invalid() { ProviderError::Invalid(error.to_string()) } else { unavailable(&error) }
    })?;
    let name = created["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    request["metadata"] = json!({"name": name});
    let ended = |request: &Value| match request["status"]["phase"].as_str() {
        Some("Succeeded") => Some(Ok(())),
        Some("Failed") => Some(Err(request["status"]["terminalMessage"].as_str().unwrap_or_default().to_owned())),
        _ => None,
    };
    match until(client, resource, contract, &name, EXPORT_PATIENCE, ended).await {
        Some(Ok(())) => Ok(name),
        Some(Err(message)) => Err(ProviderError::Invalid(message)),
        None => Err(ProviderError::Unavailable(format!("export request {name} was not fulfilled in time"))),
    }
}
