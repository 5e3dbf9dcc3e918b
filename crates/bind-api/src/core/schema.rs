//! CRDs of providers on the consumer: what is pulled, its hash, and whose a CRD is that is there already.

use carrick_json::go;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::ExportedApi;
use super::names::{CONNECTION_ANNOTATION, EXPORTED_LABEL, MANAGED_LABEL, SCHEMA_HASH_ANNOTATION};
use crate::kinds;

/// How much of the hash is kept.
const HASH_CHARACTERS: usize = 16;

/// Why a CRD cannot be pulled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// No version of it is served.
    #[error("CustomResourceDefinition {0} of the provider serves no version; the provider has to serve one")]
    NothingServed(String),
    /// Its versions are converted by a webhook of the provider's.
    #[error(
        "CustomResourceDefinition {0} of the provider converts versions by a webhook, which cannot be called from here; \
         the provider has to offer it without one"
    )]
    Webhook(String),
}

/// A CRD that was pulled.
#[derive(Clone, Debug, PartialEq)]
pub struct Pulled {
    /// The CRD as it is created here.
    pub crd: Value,
    /// The hash that stands in its annotation.
    pub hash: String,
}

/// The name of a CRD.
pub fn name(crd: &Value) -> &str {
    crd["metadata"]["name"].as_str().unwrap_or_default()
}

/// The version of a CRD that objects are synced in: the stored one if it is served, else the first that is.
pub fn synced_version(crd: &Value) -> Option<&Value> {
    let versions = crd["spec"]["versions"].as_array()?;
    let mut served: Vec<&Value> = versions.iter().filter(|version| version["served"] == true).collect();
    served.sort_by_key(|version| version["storage"] != true);
    served.first().copied()
}

/// What a CRD of the provider offers; nothing if it serves no version.
pub fn exported(crd: &Value) -> Option<ExportedApi> {
    synced_version(crd)?;
    let spec = &crd["spec"];
    let versions = spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true);
    let versions = versions.filter_map(|version| Some(version["name"].as_str()?.to_owned())).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    Some(ExportedApi::new(&group, &plural, &text(&spec["scope"]), versions))
}

/// The CRD that a CRD of the provider becomes on the consumer, for a Connection: one version, nothing to convert, and our marks.
pub fn pull(crd: &Value, connection: &str) -> Result<Pulled, PullError> {
    let name = name(crd);
    if crd["spec"]["conversion"]["strategy"] == "Webhook" {
        return Err(PullError::Webhook(name.to_owned()));
    }
    let mut version = synced_version(crd).ok_or_else(|| PullError::NothingServed(name.to_owned()))?.clone();
    (version["served"], version["storage"]) = (json!(true), json!(true));
    let mut spec = crd["spec"].clone();
    spec["versions"] = json!([version]);
    spec["conversion"] = json!({"strategy": "None"});
    let hash = hash(&spec);
    let metadata = &crd["metadata"];
    let mut labels = metadata["labels"].as_object().cloned().unwrap_or_default();
    // Whoever labels what it offers offers it on its own cluster, not on the consumer's.
    labels.remove(EXPORTED_LABEL);
    labels.insert(MANAGED_LABEL.to_owned(), json!("true"));
    let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    annotations.insert(CONNECTION_ANNOTATION.to_owned(), json!(connection));
    annotations.insert(SCHEMA_HASH_ANNOTATION.to_owned(), json!(hash));
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": spec});
    Ok(Pulled { crd, hash })
}

/// The hash of a CRD's spec. Go hashes it in the order of its structs, so that a change between its konnector and ours costs one write.
pub fn hash(spec: &Value) -> String {
    let line = go::to_line(spec).unwrap_or_default();
    let hex = HEXLOWER.encode(&Sha256::digest(line.trim_end().as_bytes()));
    format!("sha256:{}", &hex[..HASH_CHARACTERS])
}

/// Whose a CRD of the consumer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrdOwner {
    /// A konnector has installed it for this Connection.
    Connection {
        /// The name of the Connection.
        name: String,
        /// The hash of what it was made from.
        hash: String,
    },
    /// kube-bind 0.8 has installed it for a binding of this name.
    Contract(String),
    /// Somebody else has installed it.
    Other,
}

/// Whose a CRD of the consumer is. Only what carries all three marks was installed for a Connection: with fewer it may have been marked by hand, or
/// by a konnector that marks what others installed.
pub fn owner(crd: &Value) -> CrdOwner {
    let metadata = &crd["metadata"];
    let annotation = |key: &str| metadata["annotations"][key].as_str().filter(|value| !value.is_empty());
    let marks = annotation(CONNECTION_ANNOTATION).zip(annotation(SCHEMA_HASH_ANNOTATION));
    if let Some((name, hash)) = marks.filter(|_| metadata["labels"][MANAGED_LABEL] == "true") {
        return CrdOwner::Connection { name: name.to_owned(), hash: hash.to_owned() };
    }
    let prefix = format!("{}/", kinds::GROUP);
    let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let contract = owners.find(|owner| owner["apiVersion"].as_str().is_some_and(|it| it.starts_with(&prefix)));
    match contract {
        Some(owner) => CrdOwner::Contract(owner["name"].as_str().unwrap_or_default().to_owned()),
        None => CrdOwner::Other,
    }
}

/// Whether a CRD that somebody else installed serves what would be pulled, as it is: the same version with the same schema.
pub fn serves(crd: &Value, pulled: &Value) -> bool {
    let wanted = &pulled["spec"]["versions"][0];
    let mut versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let same = |version: &Value| {
        ["name", "schema", "subresources"].iter().all(|field| version[*field] == wanted[*field])
            && version["served"] == true
    };
    crd["spec"]["scope"] == pulled["spec"]["scope"]
        && crd["spec"]["names"]["kind"] == pulled["spec"]["names"]["kind"]
        && versions.any(same)
}

/// Groups that belong to kcp itself, or to Kubernetes: never offered without being asked for by name.
///
/// ```
/// use carrick_bind_api::core::schema::is_platform_group;
///
/// assert!(is_platform_group("apis.kcp.io") && is_platform_group("kcp.io") && is_platform_group("storage.k8s.io"));
/// assert!(is_platform_group("") && is_platform_group("apps") && is_platform_group("core.kbind.io"));
/// assert!(!is_platform_group("example.io") && !is_platform_group("notkcp.io"));
/// ```
pub fn is_platform_group(group: &str) -> bool {
    let builtin = ["", "apps", "batch", "extensions", "policy", "autoscaling", "core.kbind.io", "kube-bind.io"];
    let below = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    builtin.contains(&group) || below("k8s.io") || below("kcp.io")
}
