//! APIResourceSchemas, APIExports and their endpoint slices: admission rules and controllers.

use std::collections::BTreeSet;

use carrick_kcp::apis::v1alpha1::{ApiExportEndpoint, ApiExportEndpointSlice, ExportReference};
use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_kcp::condition::{self, Condition, Severity};
use carrick_kcp::hash::{export_hash, identity_hash};
use carrick_kcp::kinds::{API_EXPORT, APIS_GROUP};
use carrick_kcp::meta::OwnerReference;
use carrick_kcp::names::conditions::{API_EXPORT_VALID, IDENTITY_VALID, PARTITION_VALID};
use carrick_kcp::names::{PATH_ANNOTATION, SKIP_SLICE_ANNOTATION};
use carrick_kcp::url::export_endpoint;
use data_encoding::{BASE64, BASE64URL_NOPAD};
use serde_json::{Value, json};

use super::data::{Data, EXPORTS, SECRETS, SLICES, now};
use super::object::text;
use crate::store::Key;

const SECRET_NAMESPACE: &str = "kcp-system";
/// Groups and resources that every workspace has, and that can therefore be claimed without an identity.
const BUILT_IN: [(&str, &str); 21] = [
    ("", "configmaps"),
    ("", "events"),
    ("", "namespaces"),
    ("", "resourcequotas"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("coordination.k8s.io", "leases"),
    ("core.kcp.io", "logicalclusters"),
    ("events.k8s.io", "events"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
];

/// Why an export (v1alpha2) is refused, if it is.
pub fn check_export(export: &ApiExport) -> Option<String> {
    for (at, claim) in export.spec.permission_claims.iter().enumerate() {
        let known = claim.group == APIS_GROUP || BUILT_IN.contains(&(claim.group.as_str(), claim.resource.as_str()));
        if !known && claim.identity_hash.is_empty() {
            let rule = "identityHash is required for API types that are not built-in";
            return Some(format!("spec.permissionClaims[{at}].identityHash: Invalid value: \"\": {rule}"));
        }
    }
    for (at, resource) in export.spec.resources.iter().enumerate() {
        let group = if resource.group.is_empty() { "core" } else { &resource.group };
        let (schema, suffix) = (&resource.schema, format!(".{}.{group}", resource.name));
        if !schema.ends_with(&suffix) {
            return Some(format!("spec.resources[{at}].schema: Invalid value: \"{schema}\": must end in {suffix}"));
        }
    }
    None
}

/// Brings one export up to date: identity, hash, path, and its own endpoint slice.
pub fn reconcile(data: &Data, cluster: &str, name: &str) {
    let Some(export) = data.read::<ApiExport>(cluster, name) else { return };
    if export.metadata.is_deleting() {
        return;
    }
    let path = data.path_of(cluster);
    if export.spec.identity.secret_ref.name.is_empty() {
        ensure_secret(data, cluster, name);
        data.edit_as(cluster, name, |export: &mut ApiExport| {
            let secret = &mut export.spec.identity.secret_ref;
            SECRET_NAMESPACE.clone_into(&mut secret.namespace);
            name.clone_into(&mut secret.name);
        });
    }
    let Some(export) = data.edit_as(cluster, name, |export: &mut ApiExport| {
        export.metadata.annotate(PATH_ANNOTATION, path.as_str());
        let verdict = match identity(data, cluster, export) {
            Ok(hash) => {
                let known = &mut export.status.identity_hash;
                if known.is_empty() || *known == hash {
                    *known = hash;
                    Condition::holds(IDENTITY_VALID)
                } else {
                    failed(format!("hash mismatch: identity secret hash {hash} must match status.identityHash {known}"))
                }
            }
            Err(problem) => failed(problem),
        };
        condition::set(&mut export.status.conditions, verdict, &now());
    }) else {
        return;
    };
    if export.metadata.annotation(SKIP_SLICE_ANNOTATION).is_none() {
        let mut slice = ApiExportEndpointSlice::new(name);
        // kcp names the older version here.
        let mut owner = OwnerReference::to(&export);
        owner.api_version = API_EXPORT.api_version();
        slice.metadata.owner_references.push(owner);
        slice.spec.export = ExportReference::new(path, name);
        data.create_as(cluster, &slice);
    }
}

fn failed(message: String) -> Condition {
    Condition::fails(IDENTITY_VALID, Severity::Error, "IdentityVerificationFailed", message)
}

/// An existing Secret is reused, so that a recreated export keeps its identity and its data.
fn ensure_secret(data: &Data, cluster: &str, name: &str) {
    data.ensure_namespace(cluster, SECRET_NAMESPACE, &Value::Null);
    let mut bytes = [0_u8; 32];
    if rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).is_err() {
        tracing::error!(%cluster, export = %name, "no random bytes for the identity of the export");
        return;
    }
    let secret = BASE64URL_NOPAD.encode(&bytes);
    data.create(
        &Key::new(&SECRETS, cluster, SECRET_NAMESPACE, name),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"key": BASE64.encode(secret.as_bytes())}}),
    );
}

fn identity(data: &Data, cluster: &str, export: &ApiExport) -> Result<String, String> {
    let secret = &export.spec.identity.secret_ref;
    let (namespace, name) = (&secret.namespace, &secret.name);
    let secret = data
        .store
        .get(&Key::new(&SECRETS, cluster, namespace, name))
        .ok_or_else(|| format!("secrets \"{name}\" not found"))?;
    let key = BASE64.decode(text(&secret.object, "/data/key").as_bytes()).unwrap_or_default();
    if key.is_empty() {
        return Err(format!("secret {namespace}/{name} is missing data.key"));
    }
    Ok(identity_hash(&key))
}

/// Brings one slice up to date: it lists the export's URL on every shard where somebody binds to the export.
pub fn reconcile_slice(data: &Data, cluster: &str, name: &str, bound: &dyn Fn(&str) -> BTreeSet<usize>) {
    data.edit_as(cluster, name, |slice: &mut ApiExportEndpointSlice| {
        let ExportReference { path, name: export, .. } = &slice.spec.export;
        let shown = if path.is_empty() { cluster } else { path };
        let found = data.referenced(&EXPORTS, path, cluster, export);
        let (verdict, endpoints) = if let Some((home, _)) = found {
            let shards = bound(&export_hash(&home, export)).into_iter();
            let urls = shards.map(|shard| export_endpoint(data.shards.virtual_url(shard), &home, export));
            (Condition::holds(API_EXPORT_VALID), urls.map(ApiExportEndpoint::new).collect())
        } else {
            let message = format!("Error getting APIExport {shown}|{export}");
            (Condition::fails(API_EXPORT_VALID, Severity::Error, "APIExportNotFound", message), Vec::new())
        };
        slice.status.endpoints = endpoints;
        // Without an export nobody reconciles the partition.
        if verdict.is_true() {
            condition::set(&mut slice.status.conditions, Condition::holds(PARTITION_VALID), &now());
        }
        condition::set(&mut slice.status.conditions, verdict, &now());
    });
}

/// The slices that point at an export, wherever they live.
pub fn slices_of(data: &Data, home: &str, export: &str) -> BTreeSet<(String, String)> {
    data.list(&SLICES, None)
        .filter(|(key, slice)| {
            let path = text(slice, "/spec/export/path");
            text(slice, "/spec/export/name") == export
                && if path.is_empty() { *key.cluster == *home } else { data.resolve(path).as_deref() == Some(home) }
        })
        .map(|(key, _)| (key.cluster.to_string(), key.name.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_name_fitting_schemas_and_identities() {
        let export = |spec: Value| -> ApiExport { serde_json::from_value(json!({"spec": spec})).unwrap() };
        let resources =
            |schema: &str| export(json!({"resources": [{"name": "widgets", "group": "", "schema": schema}]}));
        assert_eq!(check_export(&resources("v1.widgets.core")), None);
        assert!(check_export(&resources("v1.things.core")).unwrap().contains("must end in .widgets.core"));
        let claim = |group: &str, resource: &str, hash: &str| {
            export(json!({"permissionClaims": [{"group": group, "resource": resource, "identityHash": hash}]}))
        };
        for (group, resource) in [("", "secrets"), ("rbac.authorization.k8s.io", "roles"), ("apis.kcp.io", "x")] {
            assert_eq!(check_export(&claim(group, resource, "")), None, "{group}");
        }
        assert_eq!(check_export(&claim("example.io", "x", "abc")), None);
        for (group, resource) in
            [("example.io", "x"), ("", "pods"), ("apps", "deployments"), ("tenancy.kcp.io", "workspaces")]
        {
            assert_eq!(
                check_export(&claim(group, resource, "")).unwrap(),
                "spec.permissionClaims[0].identityHash: Invalid value: \"\": identityHash is required for API types that are not built-in"
            );
        }
    }
}
