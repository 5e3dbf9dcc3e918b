//! APIResourceSchemas, APIExports and their endpoint slices: admission rules and controllers.

use std::collections::BTreeSet;

use carrick_kcp::apis::split_schema_name;
use carrick_kcp::apis::v1alpha1::{ApiExportEndpoint, ApiExportEndpointSlice, ExportReference};
use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_kcp::condition::{self, Condition, Severity};
use carrick_kcp::hash::{export_hash, identity_hash};
use carrick_kcp::kinds::{API_EXPORT, APIS_GROUP, CORE_GROUP, TENANCY_GROUP, TOPOLOGY_GROUP};
use carrick_kcp::meta::OwnerReference;
use carrick_kcp::names::conditions::{API_EXPORT_VALID, IDENTITY_VALID, PARTITION_VALID};
use carrick_kcp::names::{API_APPROVED_ANNOTATION, PATH_ANNOTATION, SKIP_SLICE_ANNOTATION};
use carrick_kcp::url::export_endpoint;
use data_encoding::{BASE64, BASE64URL_NOPAD};
use serde_json::{Value, json};

use super::data::{Data, EXPORTS, SECRETS, SLICES, now};
use super::object::{annotation, items, text};
use crate::store::Key;

const SECRET_NAMESPACE: &str = "kcp-system";
/// Groups without a dot are built in, as are those of Kubernetes.
const BUILT_IN_SUFFIX: &str = ".k8s.io";

/// Why a schema is refused, if it is. The messages are kcp's, after `<name> is forbidden:`.
pub fn check_schema(old: Option<&Value>, object: &Value) -> Option<String> {
    let name = super::object::name(object);
    let (plural, group) = (text(object, "/spec/names/plural"), text(object, "/spec/group"));
    if let Some(old) = old {
        let changed = old.get("spec") != object.get("spec");
        return changed.then(|| format!("spec: Invalid value: {}: is immutable", object["spec"]));
    }
    let suffix = format!(".{plural}.{}", if group.is_empty() { "core" } else { group });
    let Some(prefix) = name.strip_suffix(&suffix) else {
        return Some(format!("metadata.name: Invalid value: \"{name}\": must end in {suffix}"));
    };
    if !is_prefix(prefix) {
        let rule = "must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ in front of";
        return Some(format!("metadata.name: Invalid value: \"{name}\": {rule} {suffix}"));
    }
    let protected = group.ends_with(BUILT_IN_SUFFIX) || group.ends_with(".kubernetes.io");
    if protected && annotation(object, API_APPROVED_ANNOTATION).is_none() {
        let rule = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
        return Some(format!("metadata.annotations[api-approved.kubernetes.io]: Required value: {rule}"));
    }
    let storage = items(object, "/spec/versions").iter().filter(|version| version["storage"] == true).count();
    if storage != 1 {
        let rule = "must have exactly one version marked as storage version";
        return Some(format!("spec.versions: Invalid value: {storage}: {rule}"));
    }
    None
}

fn is_prefix(prefix: &str) -> bool {
    prefix.starts_with(|c: char| c.is_ascii_lowercase()) && carrick_kcp::path::is_label(prefix)
}

/// Why an export (v1alpha2) is refused, if it is.
pub fn check_export(export: &ApiExport) -> Option<String> {
    for (at, resource) in export.spec.resources.iter().enumerate() {
        let (schema, name) = (resource.schema.as_str(), resource.name.as_str());
        let group = if resource.group.is_empty() { "core" } else { &resource.group };
        let fits = split_schema_name(schema).is_some_and(|(_, n, g)| n == name && g == group);
        if !fits {
            return Some(format!(
                "spec.resources[{at}].schema: Invalid value: \"{schema}\": must end in .{name}.{group}"
            ));
        }
    }
    for (at, claim) in export.spec.permission_claims.iter().enumerate() {
        let group = claim.group.as_str();
        let foreign = group.contains('.') && !group.ends_with(BUILT_IN_SUFFIX) && !is_kcp_group(group);
        if foreign && claim.identity_hash.is_empty() {
            let rule = "identityHash is required for API types that are not built-in";
            return Some(format!("spec.permissionClaims[{at}].identityHash: Invalid value: \"\": {rule}"));
        }
    }
    None
}

fn is_kcp_group(group: &str) -> bool {
    matches!(group, APIS_GROUP | CORE_GROUP | TENANCY_GROUP | TOPOLOGY_GROUP)
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
        let shown = if path.is_empty() { data.path_of(cluster) } else { path.clone() };
        let found = data.referenced(&EXPORTS, path, cluster, export);
        let (verdict, endpoints) = if let Some((home, _)) = found {
            let shards = bound(&export_hash(&home, export)).into_iter();
            let urls = shards.map(|shard| export_endpoint(data.shards.virtual_url(shard), &home, export));
            (Condition::holds(API_EXPORT_VALID), urls.map(ApiExportEndpoint::new).collect())
        } else {
            let message = format!("APIExport {shown}|{export} not found");
            (Condition::fails(API_EXPORT_VALID, Severity::Error, "APIExportNotFound", message), Vec::new())
        };
        slice.status.endpoints = endpoints;
        condition::set(&mut slice.status.conditions, verdict, &now());
        condition::set(&mut slice.status.conditions, Condition::holds(PARTITION_VALID), &now());
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

    fn schema(name: &str, group: &str) -> Value {
        json!({"metadata": {"name": name}, "spec": {"group": group, "names": {"plural": "widgets"},
            "versions": [{"name": "v1", "storage": true}]}})
    }

    #[test]
    fn schema_names_follow_their_rule() {
        let cases = [
            ("v1.widgets.example.io", "example.io", None),
            ("v1.widgets.core", "", None),
            ("widgets", "example.io", Some("must end in .widgets.example.io")),
            ("v1.widgets.example.io", "", Some("must end in .widgets.core")),
            ("1v.widgets.example.io", "example.io", Some("in front of .widgets.example.io")),
            ("v1.widgets.apps.k8s.io", "apps.k8s.io", Some("approval")),
        ];
        for (name, group, problem) in cases {
            let found = check_schema(None, &schema(name, group));
            match problem {
                None => assert_eq!(found, None, "{name}"),
                Some(part) => assert!(found.as_deref().is_some_and(|text| text.contains(part)), "{name}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_schema_cannot_be_changed_but_its_metadata_can() {
        let old = schema("v1.widgets.example.io", "example.io");
        let mut new = old.clone();
        new["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(check_schema(Some(&old), &new), None);
        new["spec"]["scope"] = json!("Cluster");
        assert!(check_schema(Some(&old), &new).unwrap().ends_with("is immutable"));
    }

    #[test]
    fn exports_name_fitting_schemas_and_identities() {
        let export = |spec: Value| -> ApiExport { serde_json::from_value(json!({"spec": spec})).unwrap() };
        let resources =
            |schema: &str| export(json!({"resources": [{"name": "widgets", "group": "", "schema": schema}]}));
        assert_eq!(check_export(&resources("v1.widgets.core")), None);
        assert!(check_export(&resources("v1.things.core")).unwrap().contains("must end in .widgets.core"));
        let claim = |group: &str, hash: &str| {
            export(json!({"permissionClaims": [{"group": group, "resource": "x", "identityHash": hash}]}))
        };
        for group in ["", "apps", "rbac.authorization.k8s.io", "apis.kcp.io"] {
            assert_eq!(check_export(&claim(group, "")), None, "{group}");
        }
        assert_eq!(check_export(&claim("example.io", "abc")), None);
        assert_eq!(
            check_export(&claim("example.io", "")).unwrap(),
            "spec.permissionClaims[0].identityHash: Invalid value: \"\": identityHash is required for API types that are not built-in"
        );
    }
}
