//! What is offered: the part of a CRD that the files need, and what the user chose. Pure.

use carrick_syncagent::options::default_agent_name;
use serde_json::Value;

/// What the user may choose.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// Name of the APIExport; the API group if none.
    pub export: Option<String>,
    /// Workspace of the provider.
    pub workspace: String,
    /// Namespace of the agent on the service cluster.
    pub namespace: String,
    /// Name of the agent; that of the export and `-syncagent` if none.
    pub agent: Option<String>,
    /// The agent's user name in kcp.
    pub kcp_user: String,
}

/// What is offered.
#[derive(Debug, Clone)]
pub struct Offer {
    /// API group on the service cluster; empty for core.
    pub group: String,
    /// API group in kcp.
    pub kcp_group: String,
    /// Kind.
    pub kind: String,
    /// Plural name.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Served versions.
    pub versions: Vec<String>,
    /// The version that orders and views use.
    pub version: String,
    /// Schema of that version.
    pub schema: Value,
    /// Printer columns of that version.
    pub columns: Vec<Value>,
    /// Name of the APIExport.
    pub export: String,
    /// Name of the agent.
    pub agent: String,
    /// What the user chose.
    pub choices: Choices,
}

impl Offer {
    /// Reads a CRD.
    pub fn new(crd: &Value, choices: Choices) -> anyhow::Result<Self> {
        let spec = &crd["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let names = &spec["names"];
        let (group, kind, plural) = (text(&spec["group"]), text(&names["kind"]), text(&names["plural"]));
        if kind.is_empty() || plural.is_empty() {
            anyhow::bail!("the CRD has no spec.names.kind or no spec.names.plural; is it apiextensions.k8s.io/v1?");
        }
        let versions: Vec<&Value> =
            spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true).collect();
        let Some(main) = versions.iter().find(|version| version["storage"] == true).or(versions.last()) else {
            anyhow::bail!("no version of {kind} is served; set served: true for one of spec.versions");
        };
        // kcp refuses kinds of Kubernetes' own groups under their own group.
        let kcp_group = if is_reserved(&group) { "kube.example.com".to_owned() } else { group.clone() };
        let export = choices.export.clone().unwrap_or_else(|| kcp_group.clone());
        Ok(Self {
            singular: Some(text(&names["singular"])).filter(|name| !name.is_empty()).unwrap_or(kind.to_lowercase()),
            namespaced: spec["scope"] != "Cluster",
            version: text(&main["name"]),
            schema: main["schema"]["openAPIV3Schema"].clone(),
            columns: main["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
            versions: versions.iter().map(|version| text(&version["name"])).collect(),
            agent: choices.agent.clone().unwrap_or_else(|| default_agent_name(&export)),
            export,
            group,
            kcp_group,
            kind,
            plural,
            choices,
        })
    }

    /// `<plural>.<group>`.
    pub fn crd_name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The schema's description of the kind, or a placeholder.
    pub fn description(&self) -> String {
        let text = self.schema["description"].as_str().unwrap_or_default();
        let line = text.lines().next().unwrap_or_default().trim();
        if line.is_empty() { format!("{} as a service.", self.kind) } else { line.to_owned() }
    }
}

/// Groups that only the kcp administrator may export.
fn is_reserved(group: &str) -> bool {
    group.is_empty()
        || ["k8s.io", "kubernetes.io"].iter().any(|end| group == *end || group.ends_with(&format!(".{end}")))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A CRD with a little of everything.
    pub(crate) fn bucket() -> Value {
        json!({
            "kind": "CustomResourceDefinition",
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": { "kind": "Bucket", "plural": "buckets", "singular": "bucket" },
                "versions": [
                    { "name": "v0", "served": false },
                    { "name": "v1", "served": true, "storage": true, "additionalPrinterColumns": [
                        { "name": "Region", "type": "string", "jsonPath": ".spec.region" },
                        { "name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status" },
                        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                    ], "schema": { "openAPIV3Schema": { "description": "A place for files.", "type": "object", "properties": {
                        "spec": { "type": "object", "required": ["size", "owner"], "properties": {
                            "size": { "type": "integer", "minimum": 3 },
                            "region": { "type": "string", "enum": ["eu", "us"] },
                            "owner": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" }, "mail": { "type": "string" } } },
                            "tags": { "type": "array", "items": { "type": "string" } },
                        }},
                        "status": { "type": "object", "properties": { "conditions": { "type": "array" } } },
                    }}}},
                ],
            },
        })
    }

    #[test]
    fn an_offer_uses_what_is_served() {
        let offer = Offer::new(&bucket(), Choices::default()).unwrap();
        assert_eq!((offer.versions.as_slice(), offer.version.as_str()), (&["v1".to_owned()][..], "v1"));
        assert_eq!((offer.export.as_str(), offer.crd_name().as_str()), ("example.com", "buckets.example.com"));
        assert_eq!(offer.description(), "A place for files.");
        let named = Choices { export: Some("storage".to_owned()), ..Choices::default() };
        assert_eq!(Offer::new(&bucket(), named).unwrap().export, "storage");
    }

    #[test]
    fn groups_of_kubernetes_get_another_name_in_kcp() {
        for (group, wanted) in [
            ("", "kube.example.com"),
            ("rbac.authorization.k8s.io", "kube.example.com"),
            ("apps", "apps"),
            ("a.b", "a.b"),
        ] {
            let mut crd = bucket();
            crd["spec"]["group"] = json!(group);
            assert_eq!(Offer::new(&crd, Choices::default()).unwrap().kcp_group, wanted, "{group}");
        }
    }

    #[test]
    fn a_crd_that_serves_nothing_is_refused() {
        let mut crd = bucket();
        crd["spec"]["versions"][1]["served"] = json!(false);
        assert!(Offer::new(&crd, Choices::default()).unwrap_err().to_string().contains("is served"));
        assert!(Offer::new(&json!({}), Choices::default()).is_err());
    }
}
