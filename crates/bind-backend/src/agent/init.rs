//! `kube-bind-backend init`: what must be there before a backend can run.

use std::time::Duration;

use carrick_bind_api::carrick_kcp::apis::v1alpha1::ApiResourceSchema;
use carrick_bind_api::carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_bind_api::carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use carrick_bind_api::kinds::GROUP;
use carrick_bind_api::schema;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_api::{crds, names};
use carrick_client::{Client, Error, Resource};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::resources;
use super::wait::until;
use super::writer;
use crate::decide::plan::{Plan, Write};
use crate::decide::terms::Address;
use crate::decide::{contract, kubeconfig};

const RBAC: &str = "rbac.authorization.k8s.io";
/// The backend's account, its roles, and the beginning of its Secrets' names.
const ACCOUNT: &str = "kube-bind-backend";
/// How long a server may take to fill a token in.
const TOKEN_PATIENCE: Duration = Duration::from_secs(30);

/// What a backend does in the workspaces of its consumers, beside its own kinds: they have to accept it.
const CLAIMED: [(&str, &str); 14] = [
    ("", "configmaps"),
    ("", "namespaces"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apis.kcp.io", "apibindings"),
    ("apis.kcp.io", "apiresourceschemas"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
];

/// Installs the CustomResourceDefinitions of a provider, or brings them up to date. Returns what was written.
pub async fn crds(client: &Client) -> Result<Vec<String>, Error> {
    let mut written = Vec::new();
    for wanted in crds::provider() {
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        let found = client.get(&resources::crds(), None, name).await?;
        let mut plan = Plan::default();
        plan.ensure(found.as_ref(), &wanted);
        for write in plan.writes {
            apply(client, &resources::crds(), &write).await?;
            written.push(name.to_owned());
        }
    }
    Ok(written)
}

/// Installs the schemas of a provider's kinds and the APIExport that offers them in a workspace of kcp. Returns what was written.
pub async fn workspace(client: &Client) -> Result<Vec<String>, Error> {
    let (mut written, mut latest) = (Vec::new(), Vec::new());
    let schemas: Resource = API_RESOURCE_SCHEMA.into();
    for crd in crds::provider() {
        let Some(schema) = schema_of(&crd) else { continue };
        let name = schema.metadata.name.clone();
        // Schemas cannot be changed: another content has another name.
        if client.get(&schemas, None, &name).await?.is_none() {
            client.create_kcp(&schema).await?;
            written.push(name.clone());
        }
        latest.push(name);
    }
    let found: Option<ApiExport> = client.get_newest(GROUP).await?;
    // What others have added to it is theirs.
    let mut export = found.clone().unwrap_or_else(|| ApiExport::new(GROUP));
    for schema in &latest {
        export.offer(schema);
    }
    for (group, resource) in CLAIMED {
        if !export.spec.permission_claims.iter().any(|claim| claim.group == group && claim.resource == resource) {
            export.claim_all(group, resource, "");
        }
    }
    match found {
        None => drop(client.create_newest(&export).await?),
        Some(found) if found == export => return Ok(written),
        Some(_) => drop(client.replace_newest(&export).await?),
    }
    written.push(format!("APIExport {GROUP}"));
    Ok(written)
}

/// Makes an account for the backend in a workspace of kcp, and a Secret with its kubeconfig. Returns that kubeconfig, or none if no token came in time.
/// One that names another authority stays, unless the authority of this one was given or tried.
pub async fn account(client: &Client, address: &Address, namespace: &str) -> Result<Option<String>, Error> {
    for wanted in account_objects(namespace) {
        let Some(resource) = resources::of_object(&wanted) else { continue };
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        let found = client.get(&resource, wanted["metadata"]["namespace"].as_str(), name).await?;
        let mut plan = Plan::default();
        plan.ensure(found.as_ref(), &wanted);
        for write in &plan.writes {
            writer::carry_out(client, write).await?;
        }
    }
    let says = |secret: &Value| {
        let text = |key: &str| String::from_utf8(contract::kubeconfig_in(secret, key)?).ok();
        Some((text("token")?, text("ca.crt").unwrap_or_default()))
    };
    let Some((token, authority)) = until(client, resources::secrets(), namespace, ACCOUNT, TOKEN_PATIENCE, says).await
    else {
        return Ok(None);
    };
    let text = kubeconfig::text(address, namespace, &token, &authority);
    let name = format!("{ACCOUNT}-kubeconfig");
    let found = client.get(&resources::secrets(), Some(namespace), &name).await?;
    let there = found.as_ref().and_then(|secret| contract::kubeconfig_in(secret, "kubeconfig"));
    if let Some(there) = there.and_then(|bytes| String::from_utf8(bytes).ok())
        && !address.authority_given
        && kubeconfig::content(&there).is_some_and(|content| kubeconfig::differs_in_authority(&content, &text))
    {
        tracing::info!(
            secret = name,
            namespace,
            "The kubeconfig that is there names another certificate authority and stays; --external-ca-file replaces it."
        );
        return Ok(Some(there));
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"kubeconfig": BASE64.encode(text.as_bytes())}});
    let mut plan = Plan::default();
    plan.ensure(found.as_ref(), &secret);
    for write in &plan.writes {
        writer::carry_out(client, write).await?;
    }
    Ok(Some(text))
}

/// The account, its token, and the rights that it needs in its own workspace. What it may do elsewhere is up to those who accept its claims.
fn account_objects(namespace: &str) -> Vec<Value> {
    let at = json!({"name": ACCOUNT, "namespace": namespace});
    let mut token = at.clone();
    token["annotations"] = json!({"kubernetes.io/service-account.name": ACCOUNT});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": at}),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": token}),
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": ACCOUNT}, "rules": [
            {"nonResourceURLs": ["/"], "verbs": ["access"]},
            {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["apis.kcp.io"], "resources": ["apiexportendpointslices"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "resourceNames": [GROUP], "verbs": ["*"]}]}),
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": ACCOUNT},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}]}),
        // The Lease, and the keys of the HTTP front.
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": at, "rules": [
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update", "patch"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create"]}]}),
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": at,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}]}),
    ]
}

/// The APIResourceSchema of a CRD, named after its content.
fn schema_of(crd: &Value) -> Option<ApiResourceSchema> {
    let bound = schema::from_crd(crd, InformerScope::Cluster, &Isolation::Prefixed).ok()?;
    let hash = bound.metadata.annotation(names::SOURCE_SPEC_HASH_ANNOTATION)?;
    let mut spec = json!({"group": bound.spec.group, "names": bound.spec.names, "scope": crd["spec"]["scope"], "versions": bound.spec.versions});
    if bound.spec.versions.len() > 1 {
        // The old versions differ in name only.
        spec["conversion"] = json!({"strategy": "None"});
    }
    for version in spec["versions"].as_array_mut()? {
        let inner = version["schema"]["openAPIV3Schema"].take();
        version["schema"] = inner;
    }
    let name = format!("v{}.{}.{}", hash.get(..8)?, bound.spec.names.plural, bound.spec.group);
    let object = json!({"apiVersion": API_RESOURCE_SCHEMA.api_version(), "kind": API_RESOURCE_SCHEMA.kind, "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).ok()
}

async fn apply(client: &Client, resource: &Resource, write: &Write) -> Result<(), Error> {
    match write {
        Write::Create(object) => client.create(resource, None, object).await.map(drop),
        other => client.replace(resource, None, other.object()).await.map(drop),
    }
}
