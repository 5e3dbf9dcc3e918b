//! From kube-bind's backend and konnector to ours, and back: what one leaves behind, the other goes on with.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_bind_api::crds;
use carrick_bind_api::identity::contract_namespace;
use carrick_bind_api::kinds::{
    API_SERVICE_BINDING, API_SERVICE_EXPORT, API_SERVICE_EXPORT_REQUEST, API_SERVICE_NAMESPACE,
    BINDABLE_RESOURCES_REQUEST, BOUND_SCHEMA, CLUSTER_BINDING,
};
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::agent::{BackendConfig, SchemaSource};
use carrick_bind_backend::decide::terms::{Address, Logins, MOST_NAMESPACES, Terms};
use carrick_client::{Client, DeleteOptions, Resource, Server};
use carrick_e2e_stage::contract::{KONNECTOR, apply, kind};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{Stage, condition};
use carrick_e2e_stage::world::{User, World};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::backends::{Running, address};

mod left;

use left::{At, Left};

const RBAC: &str = "rbac.authorization.k8s.io";
/// As kube-bind's chart has it.
const PREFIX: &str = "kube-bind-";
const IDENTITY: &str = "5f0c1a52-the-consumer";
const EXPORT: &str = "cowboys";
const SPACE: &str = "wild-west";
const ORDER: &str = "billy";
const CLAIMED: &str = "permit";

/// A provider and a consumer: two workspaces that are plain clusters to both programs.
struct Clusters<'a> {
    stage: &'a Stage,
    provider: Client,
    consumer: Client,
    address: Address,
}

/// A kind of rights.
fn roles(kind: &str) -> Resource {
    let make = if kind.starts_with("Cluster") { Resource::cluster_wide } else { Resource::namespaced };
    make(RBAC, "v1", kind, &format!("{}s", kind.to_lowercase()))
}

fn policies(kind: &str) -> Resource {
    let plural = if kind.ends_with('y') { "validatingadmissionpolicies" } else { "validatingadmissionpolicybindings" };
    Resource::cluster_wide("admissionregistration.k8s.io", "v1", kind, plural)
}

impl<'a> Clusters<'a> {
    /// Both, with all CRDs.
    async fn new(stage: &'a Stage) -> anyhow::Result<Self> {
        let mut address = address(&*stage.world, &stage.provider.path)?;
        // It is found out, as it is without flags.
        address.authority_given = false;
        let (provider, consumer) = (stage.provider.client.clone(), stage.team_a.client.clone());
        let clusters = Self { stage, provider, consumer, address };
        let mut exported = clusters.crd();
        exported["metadata"]["labels"] = json!({ "kube-bind.io/exported": "true" });
        for crd in crds::provider().iter().chain([&exported]) {
            apply(&clusters.provider, &kinds::crds(), crd).await?;
            clusters.until_served(&clusters.provider, crd).await?;
        }
        for crd in crds::consumer() {
            apply(&clusters.consumer, &kinds::crds(), &crd).await?;
            clusters.until_served(&clusters.consumer, &crd).await?;
        }
        Ok(clusters)
    }

    fn crd(&self) -> Value {
        let text = json!({ "type": "object", "properties": { "intent": { "type": "string" }, "result": { "type": "string" } } });
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{EXPORT}.{}", self.stage.group) },
            "spec": { "group": self.stage.group, "scope": "Namespaced",
                "names": { "plural": EXPORT, "singular": "cowboy", "kind": "Cowboy", "listKind": "CowboyList" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": text, "status": text } } } }] } })
    }

    fn cowboys(&self) -> Resource {
        Resource::namespaced(&self.stage.group, "v1", "Cowboy", EXPORT)
    }

    async fn until_served(&self, client: &Client, crd: &Value) -> anyhow::Result<()> {
        let name = crd["metadata"]["name"].as_str().context("no name")?;
        let at = (client, &kinds::crds(), None, name);
        self.stage.object("it is served", at, |it| condition(it, "Established")["status"] == "True").await?;
        Ok(())
    }

    /// Our backend, with kube-bind's defaults.
    fn backend(&self) -> anyhow::Result<Running> {
        let kubeconfig = self.stage.world.kcp_kubeconfig(User::Admin, &self.stage.provider.path);
        let terms = Terms {
            namespace_prefix: PREFIX.to_owned(),
            pretty_name: "Backend".to_owned(),
            informer_scope: InformerScope::Namespaced,
            isolation: Isolation::Prefixed,
            address: self.address.clone(),
            cluster_wide_claims: false,
            shared_namespaces: false,
            logins: Logins::default(),
            workspace: None,
            most_namespaces: MOST_NAMESPACES,
        };
        Ok(Running::backend(BackendConfig {
            server: Server::from_kubeconfig_yaml(&kubeconfig)?,
            terms,
            source: SchemaSource::Crds,
            slice: None,
            ignored_bindings: Vec::new(),
            lease: None,
            listen_address: None,
            namespace: "default".to_owned(),
        }))
    }

    fn konnector(&self) -> anyhow::Result<Running> {
        Running::konnector(&self.stage.world.kcp_kubeconfig(User::Admin, &self.stage.team_a.path), None)
    }

    /// Waits until both work with the contract.
    async fn until_in_use(&self, contract: &str) -> anyhow::Result<()> {
        let at = (&self.consumer, &kind(API_SERVICE_BINDING), None, EXPORT);
        let ready = |it: &Value| {
            ["Ready", "InformersSynced", "Connected"].iter().all(|which| condition(it, which)["status"] == "True")
        };
        self.stage.object("the binding is ready", at, ready).await?;
        let at = (&self.provider, &kind(CLUSTER_BINDING), Some(contract), "cluster");
        self.stage.object("the contract is healthy", at, |it| condition(it, "Healthy")["status"] == "True").await?;
        let at = (&self.provider, &kind(API_SERVICE_EXPORT), Some(contract), EXPORT);
        let synced = |it: &Value| {
            ["ProviderInSync", "Connected", "ConsumerInSync"]
                .iter()
                .all(|which| condition(it, which)["status"] == "True")
        };
        self.stage.object("the export is in sync", at, synced).await?;
        Ok(())
    }

    /// An order is changed, answered and copied with its Secret, all of it in what is there.
    async fn use_it(&self, space: &str) -> anyhow::Result<()> {
        let (cowboys, stage) = (self.cowboys(), self.stage);
        let change = json!({ "spec": { "intent": "rest" } });
        self.consumer.merge_patch(&cowboys, Some(SPACE), ORDER, &change).await?;
        let copy = (&self.provider, &cowboys, Some(space), ORDER);
        stage.object("the change arrives", copy, |it| it["spec"]["intent"] == "rest").await?;
        let status = json!({ "status": { "result": "resting" } });
        self.provider.merge_patch_status(&cowboys, Some(space), ORDER, &status).await?;
        let source = (&self.consumer, &cowboys, Some(SPACE), ORDER);
        stage.object("the answer returns", source, |it| it["status"]["result"] == "resting").await?;
        let change = json!({ "data": { "permit": "Yg==" } });
        self.consumer.merge_patch(&kinds::secrets(), Some(SPACE), CLAIMED, &change).await?;
        let copy = (&self.provider, &kinds::secrets(), Some(space), CLAIMED);
        stage.object("the Secret follows", copy, |it| it["data"]["permit"] == "Yg==").await?;
        Ok(())
    }
}

/// What must stay as it is: the uid of everything, and the content of kubeconfigs and of the token.
async fn identities(objects: &[At<'_>]) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    for (client, resource, namespace, name) in objects {
        let what = format!("{resource} {}/{name}", namespace.as_deref().unwrap_or_default());
        let object =
            client.get(resource, namespace.as_deref(), name).await?.with_context(|| format!("{what} is gone"))?;
        let credentials = [&object["data"]["kubeconfig"], &object["data"]["token"]].map(Value::clone);
        found.insert(what, json!([object["metadata"]["uid"], credentials]));
    }
    Ok(found)
}

pub(super) async fn what_kube_bind_leaves_is_taken_over_and_nothing_is_lost_or_made_anew(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let clusters = Clusters::new(&stage).await?;
    let left = Left::behind(&clusters).await?;
    let before = identities(&left.objects).await?;
    let (backend, konnector) = (clusters.backend()?, clusters.konnector()?);
    clusters.until_in_use(&left.contract).await?;
    clusters.use_it(&left.space).await?;
    let after = identities(&left.objects).await?;
    for (what, was) in &before {
        ensure!(after.get(what) == Some(was), "{what} is not what it was");
    }
    // The one binding that gave one consumer the rights of all gives none to anybody.
    let shared = clusters.provider.get(&roles("ClusterRoleBinding"), None, "kube-binder-exports").await?;
    let shared = shared.context("no binding")?;
    ensure!(shared["subjects"][0]["namespace"] != left.contract.as_str(), "{shared}");
    // What kube-bind has made goes with what it was made for, and nothing is held up.
    let cowboys = clusters.cowboys();
    clusters.consumer.delete(&cowboys, Some(SPACE), ORDER, &DeleteOptions::default()).await?;
    stage.gone("the order goes", (&clusters.consumer, &cowboys, Some(SPACE), ORDER)).await?;
    stage.gone("its copy goes", (&clusters.provider, &cowboys, Some(left.space.as_str()), ORDER)).await?;
    konnector.stop().await?;
    backend.stop().await
}

/// A contract of our backend with our konnector: its namespace.
async fn contract(clusters: &Clusters<'_>) -> anyhow::Result<String> {
    let (stage, provider, consumer) = (clusters.stage, &clusters.provider, &clusters.consumer);
    let request = json!({ "apiVersion": BINDABLE_RESOURCES_REQUEST.api_version(), "kind": BINDABLE_RESOURCES_REQUEST.kind,
        "metadata": { "name": "r", "namespace": "default" },
        "spec": { "clusterIdentity": { "identity": IDENTITY, "prettyName": "the ranch" }, "author": "jane" } });
    apply(provider, &kind(BINDABLE_RESOURCES_REQUEST), &request).await?;
    let at = (provider, &kind(BINDABLE_RESOURCES_REQUEST), Some("default"), "r");
    let done = stage.object("the request succeeds", at, |it| it["status"]["phase"] == "Succeeded").await?;
    let contract = done["status"]["namespace"].as_str().context("no namespace")?.to_owned();
    let ask = json!({ "apiVersion": API_SERVICE_EXPORT_REQUEST.api_version(), "kind": API_SERVICE_EXPORT_REQUEST.kind,
        "metadata": { "name": EXPORT, "namespace": contract },
        "spec": { "resources": [{ "group": stage.group, "resource": EXPORT, "versions": ["v1"] }],
            "permissionClaims": [{ "group": "", "resource": "secrets", "selector": { "labelSelector": { "matchLabels": { "app": "cowboy" } } } }] } });
    apply(provider, &kind(API_SERVICE_EXPORT_REQUEST), &ask).await?;
    let secret = provider.get(&kinds::secrets(), Some(&contract), "kubeconfig").await?.context("no kubeconfig")?;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "provider", "namespace": KONNECTOR }, "data": secret["data"] });
    apply(consumer, &kinds::secrets(), &secret).await?;
    let binding = json!({ "apiVersion": API_SERVICE_BINDING.api_version(), "kind": API_SERVICE_BINDING.kind, "metadata": { "name": EXPORT },
        "spec": { "kubeconfigSecretRef": { "namespace": KONNECTOR, "name": "provider", "key": "kubeconfig" } } });
    apply(consumer, &kind(API_SERVICE_BINDING), &binding).await?;
    clusters.until_in_use(&contract).await?;
    let order = json!({ "apiVersion": format!("{}/v1", stage.group), "kind": "Cowboy", "metadata": { "name": ORDER, "namespace": SPACE },
        "spec": { "intent": "ride" } });
    apply(consumer, &clusters.cowboys(), &order).await?;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "data": { "permit": "YQ==" },
        "metadata": { "name": CLAIMED, "namespace": SPACE, "labels": { "app": "cowboy" } } });
    apply(consumer, &kinds::secrets(), &secret).await?;
    clusters.use_it(&format!("{contract}-{SPACE}")).await?;
    // Where a copy is, its source says last.
    for (resource, name) in [(clusters.cowboys(), ORDER), (kinds::secrets(), CLAIMED)] {
        let says = |it: &Value| it["metadata"]["annotations"]["kube-bind.io/provider-uid"].is_string();
        stage.object("the source says where its copy is", (consumer, &resource, Some(SPACE), name), says).await?;
    }
    Ok(contract)
}

fn names(object: &Value, field: &str) -> Vec<String> {
    let all = object["metadata"][field].as_array().into_iter().flatten();
    all.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

/// What kube-bind's backend finds, and must be able to go on with. Role references cannot be changed, so a different one would be in its way for ever.
async fn check_provider(clusters: &Clusters<'_>, contract: &str) -> anyhow::Result<()> {
    let get = async |resource: Resource, namespace: Option<&str>, name: &str| -> anyhow::Result<Value> {
        let found = clusters.provider.get(&resource, namespace, name).await?;
        found.with_context(|| format!("no {resource} {name}"))
    };
    let (own, space) = (Some(contract), format!("{contract}-{SPACE}"));
    ensure!(contract == contract_namespace(PREFIX, IDENTITY), "{contract}");
    let namespace = get(kinds::namespaces(), None, contract).await?;
    ensure!(namespace["metadata"]["annotations"]["backend.kube-bind.io/identity"] == IDENTITY, "{namespace}");
    let binding = get(kind(CLUSTER_BINDING), own, "cluster").await?;
    ensure!(
        binding["spec"]["kubeconfigSecretRef"] == json!({ "name": "kubeconfig", "key": "kubeconfig" }),
        "{binding}"
    );
    ensure!(binding["spec"]["providerPrettyName"] == "Backend", "{binding}");
    for key in ["identity", "author", "cluster-pretty-name"] {
        let value = &binding["metadata"]["annotations"][format!("backend.kube-bind.io/{key}")];
        ensure!(value.is_string(), "{key}: {binding}");
    }
    ensure!(binding["status"]["heartbeatInterval"] == "5m0s", "{binding}");
    ensure!(
        binding["status"]["consumerSecretRef"] == json!({ "name": "provider", "namespace": KONNECTOR }),
        "{binding}"
    );
    let token = get(kinds::secrets(), own, "kube-binder").await?;
    ensure!(token["type"] == "kubernetes.io/service-account-token", "{}", token["type"]);
    let secret = get(kinds::secrets(), own, "kubeconfig").await?;
    let text = BASE64.decode(secret["data"]["kubeconfig"].as_str().unwrap_or_default().as_bytes())?;
    let config: Value = serde_saphyr::from_str(std::str::from_utf8(&text)?)?;
    ensure!(
        config["current-context"] == "default" && config["contexts"][0]["context"]["namespace"] == contract,
        "the kubeconfig"
    );
    for (of, at, name, referred) in [
        ("RoleBinding", own, "kube-binder".to_owned(), "ClusterRole"),
        ("RoleBinding", Some(space.as_str()), format!("kube-binder-claims-{EXPORT}"), "Role"),
        ("ClusterRoleBinding", None, "kube-binder-exports".to_owned(), "ClusterRole"),
    ] {
        let found = get(roles(of), at, &name).await?;
        ensure!(found["roleRef"] == json!({ "apiGroup": RBAC, "kind": referred, "name": name }), "{found}");
        ensure!(found["subjects"][0]["name"] == "kube-binder", "{found}");
    }
    for part in ["resources", "claims"] {
        let role = get(roles("ClusterRole"), None, &format!("kube-binder-{part}-{contract}-{EXPORT}")).await?;
        ensure!(role["metadata"]["labels"]["rbac.kube-bind.io/aggregate-to-parent"] == "true", "{role}");
        ensure!(role["rules"][0]["verbs"].as_array().is_some_and(|verbs| verbs.len() == 7), "{role}");
        ensure!(role["metadata"]["ownerReferences"][0]["uid"] == namespace["metadata"]["uid"], "{role}");
    }
    let export = get(kind(API_SERVICE_EXPORT), own, EXPORT).await?;
    ensure!(export["spec"]["isolation"] == "Prefixed" && export["spec"]["informerScope"] == "Namespaced", "{export}");
    ensure!(names(&export, "finalizers") == ["backend.kube-bind.io/withdrawal"], "the page names all: {export}");
    for which in ["ProviderInSync", "Connected", "ConsumerInSync"] {
        ensure!(condition(&export, which)["status"] == "True", "{which}: {export}");
    }
    let schema = get(kind(BOUND_SCHEMA), own, &format!("{EXPORT}.{}", clusters.stage.group)).await?;
    let owner = &schema["metadata"]["ownerReferences"][0];
    ensure!(owner["uid"] == export["metadata"]["uid"] && owner["controller"] == true, "{schema}");
    ensure!(schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"].is_object(), "{schema}");
    let agreed = get(kind(API_SERVICE_NAMESPACE), own, SPACE).await?;
    ensure!(agreed["status"]["namespace"] == space.as_str() && names(&agreed, "finalizers").is_empty(), "{agreed}");
    let assigned = get(kinds::namespaces(), None, &space).await?;
    let serves = format!("{contract}/{SPACE}");
    ensure!(assigned["metadata"]["annotations"]["kube-bind.io/api-service-namespace"] == serves.as_str(), "{assigned}");
    Ok(())
}

/// What kube-bind's konnector finds on both sides.
async fn check_objects(clusters: &Clusters<'_>, contract: &str) -> anyhow::Result<()> {
    let (space, cowboys) = (format!("{contract}-{SPACE}"), clusters.cowboys());
    let here = async |resource: &Resource, namespace: Option<&str>, name: &str| -> anyhow::Result<Value> {
        clusters.consumer.get(resource, namespace, name).await?.with_context(|| format!("no {resource} {name}"))
    };
    let binding = here(&kind(API_SERVICE_BINDING), None, EXPORT).await?;
    ensure!(names(&binding, "finalizers") == ["kubebind.io/unbind"], "the page names all: {binding}");
    let crd = here(&kinds::crds(), None, &format!("{EXPORT}.{}", clusters.stage.group)).await?;
    let owner = &crd["metadata"]["ownerReferences"][0];
    ensure!(
        owner["uid"] == binding["metadata"]["uid"] && owner["controller"] == true && owner["name"] == EXPORT,
        "{crd}"
    );
    for (resource, name) in [(&cowboys, ORDER), (&kinds::secrets(), CLAIMED)] {
        let source = here(resource, Some(SPACE), name).await?;
        let copy = clusters.provider.get(resource, Some(&space), name).await?.context("no copy")?;
        let marks =
            |object: &Value, key: &str| object["metadata"]["annotations"][format!("kube-bind.io/{key}")].clone();
        ensure!(marks(&copy, "cluster-namespace") == contract && marks(&copy, "consumer-namespace") == SPACE, "{name}");
        ensure!(marks(&copy, "consumer-uid") == source["metadata"]["uid"], "{name}");
        ensure!(marks(&source, "provider-namespace") == space.as_str(), "{name}");
        ensure!(marks(&source, "provider-uid") == copy["metadata"]["uid"], "{name}");
        ensure!(names(&copy, "finalizers").is_empty(), "{name}: its copy is held");
    }
    ensure!(names(&here(&cowboys, Some(SPACE), ORDER).await?, "finalizers") == ["kubebind.io/syncer"], "the order");
    let claimed = here(&kinds::secrets(), Some(SPACE), CLAIMED).await?;
    ensure!(claimed["metadata"]["labels"]["kube-bind.io/owner"] == "consumer", "the claimed Secret");
    Ok(())
}

/// What docs/kube-bind/switching.md has the reader do once our programs are stopped.
async fn hand_back(clusters: &Clusters<'_>, contract: &str) -> anyhow::Result<()> {
    let nothing = json!({ "metadata": { "finalizers": null } });
    clusters.provider.merge_patch(&kind(API_SERVICE_EXPORT), Some(contract), EXPORT, &nothing).await?;
    clusters.consumer.merge_patch(&kind(API_SERVICE_BINDING), None, EXPORT, &nothing).await?;
    for kind in ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"] {
        let options = DeleteOptions::default();
        clusters.provider.delete(&policies(kind), None, "kube-binder-own-objects", &options).await?;
    }
    Ok(())
}

pub(super) async fn what_ours_leave_is_what_kube_bind_knows_and_nothing_of_it_holds_anything_up(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    let clusters = Clusters::new(&stage).await?;
    let (backend, konnector) = (clusters.backend()?, clusters.konnector()?);
    let contract = contract(&clusters).await?;
    konnector.stop().await?;
    backend.stop().await?;
    check_provider(&clusters, &contract).await?;
    check_objects(&clusters, &contract).await?;
    hand_back(&clusters, &contract).await?;
    // kube-bind's konnector deletes the copy, and lets the order go.
    let (space, cowboys, options) = (format!("{contract}-{SPACE}"), clusters.cowboys(), DeleteOptions::default());
    clusters.consumer.delete(&cowboys, Some(SPACE), ORDER, &options).await?;
    clusters.provider.delete(&cowboys, Some(&space), ORDER, &options).await?;
    let nothing = json!({ "metadata": { "finalizers": null } });
    clusters.consumer.merge_patch(&cowboys, Some(SPACE), ORDER, &nothing).await?;
    stage.gone("the order goes", (&clusters.consumer, &cowboys, Some(SPACE), ORDER)).await?;
    clusters.consumer.delete(&kind(API_SERVICE_BINDING), None, EXPORT, &options).await?;
    stage.gone("the binding goes", (&clusters.consumer, &kind(API_SERVICE_BINDING), None, EXPORT)).await?;
    clusters.provider.delete(&kind(API_SERVICE_EXPORT), Some(&contract), EXPORT, &options).await?;
    let at = (&clusters.provider, &kind(API_SERVICE_EXPORT), Some(contract.as_str()), EXPORT);
    stage.gone("the export goes", at).await?;
    for name in [space.as_str(), contract.as_str()] {
        clusters.provider.delete(&kinds::namespaces(), None, name, &options).await?;
        stage.gone("the namespace goes", (&clusters.provider, &kinds::namespaces(), None, name)).await?;
    }
    Ok(())
}
