//! The kinds of a sequence: those that are exported, those that may be claimed, and some that never are.

use serde_json::{Value, json};

use crate::dice::Dice;

/// Group of the exported kinds.
pub(super) const GROUP: &str = "{ns}.example.com";
/// Group of the kind of the other export.
pub(super) const OTHER_GROUP: &str = "{ns}-other.example.com";

/// One kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thing {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
    pub(super) namespaced: bool,
}

const fn thing(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    namespaced: bool,
) -> Thing {
    Thing { group, version, plural, kind, namespaced }
}

pub(super) const WIDGETS: Thing = thing(GROUP, "v1", "widgets", "Widget", true);
pub(super) const PLANS: Thing = thing(GROUP, "v1", "plans", "Plan", false);
pub(super) const PARTS: Thing = thing(OTHER_GROUP, "v1", "parts", "Part", true);
pub(super) const EVENTS: Thing = thing("", "v1", "events", "Event", true);
pub(super) const CLUSTERS: Thing = thing("core.kcp.io", "v1alpha1", "logicalclusters", "LogicalCluster", false);
pub(super) const BINDINGS: Thing = thing("apis.kcp.io", "v1alpha1", "apibindings", "APIBinding", false);

/// What can be claimed.
pub(super) const CLAIMABLE: [Thing; 9] = [
    thing("", "v1", "configmaps", "ConfigMap", true),
    thing("", "v1", "secrets", "Secret", true),
    EVENTS,
    thing("", "v1", "namespaces", "Namespace", false),
    thing("", "v1", "serviceaccounts", "ServiceAccount", true),
    CLUSTERS,
    thing("coordination.k8s.io", "v1", "leases", "Lease", true),
    thing("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false),
    BINDINGS,
];

/// What is asked for beside that.
pub(super) const OTHERS: [Thing; 6] = [
    thing("events.k8s.io", "v1", "events", "Event", true),
    thing("apis.kcp.io", "v1alpha2", "apibindings", "APIBinding", false),
    thing("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false),
    thing("apis.kcp.io", "v1alpha1", "apiexports", "APIExport", false),
    thing(GROUP, "v1beta1", "widgets", "Widget", true),
    thing(GROUP, "v1", "nothings", "Nothing", true),
];

impl Thing {
    /// The collection in a namespace, or, without one, everywhere.
    pub(super) fn collection(&self, namespace: Option<&str>) -> String {
        let Self { group, version, plural, .. } = self;
        let api = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{api}/namespaces/{namespace}/{plural}"),
            None => format!("{api}/{plural}"),
        }
    }

    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// A new object.
    pub(super) fn object(&self, dice: &mut Dice, name: &str) -> Value {
        let mut object = json!({ "apiVersion": self.api_version(), "kind": self.kind, "metadata": { "name": name } });
        if dice.chance(50) {
            object["metadata"]["labels"] = dice.any(&json!([{ "tier": "a" }, { "tier": "b" }, { "app": "x" }]));
        }
        if dice.chance(15) && matches!(self.plural, "widgets" | "plans" | "configmaps" | "parts") {
            object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        if dice.chance(8) {
            // Nobody may claim an object but those whose claims were accepted.
            object["metadata"]["labels"] = json!({ "claimed.internal.apis.kcp.io/forged": "x", "tier": "a" });
        }
        if let (Value::Object(object), Value::Object(content)) = (&mut object, self.content(dice)) {
            object.extend(content);
        }
        object
    }

    /// What an object holds.
    pub(super) fn content(&self, dice: &mut Dice) -> Value {
        match (self.group, self.plural) {
            (_, "widgets") => {
                let mut spec = dice.some(
                    60,
                    &[
                        ("size", json!([1, 2, 7, 7, 0, "x"])),
                        ("color", json!(["red", "blue", "red", "blue", "pink"])),
                        ("tags", json!([["a"], ["a", "b"], []])),
                    ],
                );
                if dice.chance(4) {
                    spec["junk"] = json!(1);
                }
                let mut content = json!({ "spec": spec });
                if dice.chance(15) {
                    content["status"] = json!({ "phase": "Ready" });
                }
                content
            }
            (_, "plans" | "parts") => json!({ "spec": dice.some(70, &[("text", json!(["one", "two"]))]) }),
            (_, "configmaps") => json!({ "data": dice.some(70, &[("k", json!(["1", "2"])), ("l", json!(["x"]))]) }),
            (_, "secrets") => json!({ "data": dice.some(70, &[("k", json!(["MQ==", "Mg=="]))]) }),
            ("", "events") => json!({
                "involvedObject": {
                    "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "name": "a",
                    "namespace": dice.word(&["{ns}", "{ns}", "{ns}", "default"]),
                },
                "reason": dice.word(&["ObjectAccepted", "ObjectPlaced"]), "message": "Object has been placed.",
                "type": "Normal", "count": 1, "source": { "component": "syncagent-sync" },
                "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z",
            }),
            (_, "events") => json!({
                "regarding": { "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "name": "a", "namespace": "{ns}" },
                "reason": "Accepted", "note": "seen", "type": "Normal", "action": "Sync",
                "reportingController": "example.com/agent", "reportingInstance": "agent-0",
                "eventTime": "2020-01-01T00:00:00.000000Z",
            }),
            (_, "leases") => json!({ "spec": { "holderIdentity": dice.word(&["one", "two"]) } }),
            (_, "clusterroles") => {
                json!({ "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": [dice.word(&["get", "list"])] }] })
            }
            _ => json!({}),
        }
    }
}
