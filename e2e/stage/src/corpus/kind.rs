//! A kind of a public operator, as its CRD says.

use carrick_client::Resource;
use serde_json::{Value, json};

use super::files::Text;

/// A kind, as its CRD says.
pub struct CustomKind {
    /// The CRD, without the operator's webhook: nobody answers at its address.
    pub crd: Value,
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Plural name.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Served versions.
    pub versions: Vec<String>,
}

impl CustomKind {
    /// Reads a CRD.
    pub fn of(crd: &Value) -> Self {
        let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        let served = versions.filter(|version| version["served"] == true);
        let mut crd_without_webhook = crd.clone();
        crd_without_webhook["spec"]["conversion"] = json!({"strategy": "None"});
        Self {
            group: text("/spec/group"),
            kind: text("/spec/names/kind"),
            plural: text("/spec/names/plural"),
            namespaced: crd["spec"]["scope"] == "Namespaced",
            versions: served.filter_map(|version| version["name"].as_str()).map(str::to_owned).collect(),
            crd: crd_without_webhook,
        }
    }

    /// Whether a sample is one of this kind, in a served version.
    pub fn made(&self, sample: &Text) -> bool {
        self.versions.iter().any(|version| self.made_as(sample, version))
    }

    /// Whether a sample is one of this kind in this version.
    pub fn made_as(&self, sample: &Text, version: &str) -> bool {
        let named = sample.value["apiVersion"].as_str().and_then(|version| version.split_once('/'));
        sample.value["kind"] == *self.kind && named == Some((self.group.as_str(), version))
    }

    /// The version that orders are made in: the stored one, or another one if that is not served.
    pub fn version(&self) -> Option<&Value> {
        let versions = self.crd["spec"]["versions"].as_array()?;
        let served = || versions.iter().filter(|version| version["served"] == true);
        served().find(|version| version["storage"] == true).or_else(|| served().next_back())
    }

    /// The kind in a version, for clients.
    pub fn resource(&self, version: &str) -> Resource {
        let make = if self.namespaced { Resource::namespaced } else { Resource::cluster_wide };
        make(&self.group, version, &self.kind, &self.plural)
    }
}
