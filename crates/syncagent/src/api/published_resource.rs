//! PublishedResource: what to publish and by which rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::schema::{Described, described};
use super::{
    AdmissionRule, Conversion, Drift, Implements, Import, Limits, MappingInForce, Mutation, ReadResource,
    RelatedResource, Report, WITHDRAW_AT,
};

/// A provider's request to publish one kind of the service cluster in kcp.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublishedResource {
    /// The metadata that is used here.
    pub metadata: Meta,
    /// What to publish and how.
    pub spec: PublishedResourceSpec,
    /// What the agent reports about it.
    pub status: PublishedResourceStatus,
}

/// The part of an object's metadata that rules and controllers use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Name.
    pub name: String,
    /// Unique id.
    pub uid: String,
    /// Generation of the spec.
    pub generation: i64,
    /// Version of the stored object.
    pub resource_version: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<String>,
}

described! {
    /// What to publish, and how its objects are synchronized.
    pub struct PublishedResourceSpec {
        /// The kind to publish.
        @required
        pub resource: SourceResource,
        /// Which of the consumers' objects are synchronized. Absent means all.
        pub filter: Option<Filter>,
        /// How copies are named on the service cluster. Objects of the same name exist in many workspaces: the names must keep them apart.
        pub naming: Option<Naming>,
        /// Make workspace paths known to templates and copies.
        pub enable_workspace_paths: bool,
        /// How the kind looks in kcp. Absent fields stay as they are on the service cluster.
        pub projection: Option<Projection>,
        /// Versions in kcp that the CRD does not have, and rules that lead from one version to another.
        pub conversion: Option<Conversion>,
        /// An API that somebody else has defined, which consumers get in place of the kind's own, and steps that lead from one to the other.
        pub implements: Option<Implements>,
        /// Changes to objects on their way.
        pub mutation: Option<Mutation>,
        /// Objects that are copied along with the primary.
        pub related: Vec<RelatedResource>,
        /// Objects of the service cluster that the mutations of related objects and spec.report look at. They are not copied.
        pub reads: Vec<ReadResource>,
        /// What the status of an order says in the agent's name. Absent means nothing.
        pub report: Option<Report>,
        /// What happens to an object that already exists in the place of a copy on the service cluster. Refuse (the default) leaves it alone;
        /// TakeOver makes it the copy, with the content of the source, and leaves it there when its order goes. A single object can be offered
        /// by its annotation syncagent.kcp.io/adoption: TakeOver, in consumers' workspaces too.
        pub adoption: String = json!({ "enum": ["Refuse", "TakeOver"] }),
        /// What happens to orders that have gone back in time, because kcp was restored from a backup. Hold (the default) leaves their
        /// copies as they are until somebody decides, with carrick restore; Follow carries them out as they are. A single order is let go
        /// on by its annotation syncagent.kcp.io/after-restore: Follow.
        pub after_restore: String = json!({ "enum": ["Hold", "Follow"] }),
        /// Who may pause the synchronization of an order by the annotation syncagent.kcp.io/pause: Spec, Status or All, optionally with
        /// "; until=TIME" and "; because=TEXT". ProviderOnly (the default) heeds it on copies; Both heeds it on consumers' objects too.
        pub pause: String = json!({ "enum": ["ProviderOnly", "Both"] }),
        /// What happens to fields of copies that somebody else changes. Absent means that they stay until the order changes the same fields.
        pub drift: Option<Drift>,
        /// Objects of the service cluster that get orders from the agent, because their provider has labelled them. Absent means none.
        pub import: Option<Import>,
        /// Whether a changed CRD reaches consumers at once. Always (the default) exports every new schema; Compatible exports those under which
        /// every object stays valid and as it is, and holds back all others; Manual holds back all. What is held back is told by the
        /// condition SchemaHeld, and exported when the annotation syncagent.kcp.io/approved-schema names it.
        pub schema_updates: String = json!({ "enum": ["Always", "Compatible", "Manual"] }),
        /// How much one workspace may order. Absent means as much as it likes.
        pub limits: Option<Limits>,
        /// Rules that consumers' objects must keep. kcp itself refuses objects that break them, as far as a schema can express them;
        /// otherwise such an object is not placed, and a change that breaks them is not carried over.
        pub admission: Vec<AdmissionRule>,
        /// How consumers learn what became of their objects, besides events. None (the default) writes nothing; Annotations keeps
        /// syncagent.kcp.io/placed-generation and syncagent.kcp.io/refusal on their objects.
        pub feedback: String = json!({ "enum": ["None", "Annotations"] }),
        /// Whether objects are synchronized. Absent means that they are.
        pub synchronization: Option<Synchronization>,
    }

    /// The published kind on the service cluster.
    pub struct SourceResource {
        /// API group; empty for core.
        @required
        pub api_group: String,
        /// Kind.
        @required
        pub kind: String,
        /// Versions to publish. Empty means all.
        pub versions: Vec<String>,
        /// Deprecated: use versions. One version to publish.
        pub version: String,
    }

    /// Which of the consumers' objects are synchronized.
    pub struct Filter {
        /// Selector on the labels of the namespace in kcp.
        pub namespace: Option<LabelSelector>,
        /// Selector on the labels of the object in kcp.
        pub resource: Option<LabelSelector>,
    }

    /// A label selector. All requirements must hold; an empty one selects everything.
    with json!({ "x-kubernetes-map-type": "atomic" });
    pub struct LabelSelector {
        /// Labels that must be equal.
        pub match_labels: BTreeMap<String, String>,
        /// Set-based requirements.
        pub match_expressions: Vec<SelectorRequirement> = json!({ "x-kubernetes-list-type": "atomic" }),
    }

    /// One set-based requirement of a label selector.
    pub struct SelectorRequirement {
        /// Label key.
        @required
        pub key: String,
        /// In, NotIn, Exists or DoesNotExist.
        @required
        pub operator: String,
        /// Values for In and NotIn.
        pub values: Vec<String> = json!({ "x-kubernetes-list-type": "atomic" }),
    }

    /// How copies are named on the service cluster.
    pub struct Naming {
        /// Go template for the name. Absent means one made of hashes of namespace and name.
        pub name: String,
        /// Go template for the namespace. Absent means the name of the consumer's logical cluster.
        pub namespace: String,
    }

    /// How the kind looks in kcp.
    pub struct Projection {
        /// New API group.
        pub group: String,
        /// New names of versions, by old name.
        pub versions: BTreeMap<String, String>,
        /// Deprecated: use versions. New name of the one version.
        pub version: String,
        /// New scope.
        pub scope: String = json!({ "enum": ["Cluster", "Namespaced"] }),
        /// New kind. It changes singular and plural too.
        pub kind: String,
        /// New plural.
        pub plural: String,
        /// New short names. An empty list removes them all.
        pub short_names: Option<Vec<String>>,
        /// New categories. An empty list removes them all.
        pub categories: Option<Vec<String>>,
    }

    /// Whether objects are synchronized.
    pub struct Synchronization {
        /// False publishes the schema only.
        @required
        pub enabled: bool,
    }

    /// What the agent reports about a PublishedResource.
    pub struct PublishedResourceStatus {
        /// Name of the APIResourceSchema that represents this PublishedResource.
        pub resource_schema_name: String,
        /// How many objects are in sync, of how many: "211/212". It follows with a delay of a few seconds.
        pub objects: String,
        /// The steps of spec.implements that orders are placed by. Others are held back while the condition MappingHeld is True.
        pub mapping: Option<MappingInForce>,
        /// The date in the annotation syncagent.kcp.io/withdraw-at, once it has come. With any other date there, or with none, the kind is offered.
        pub withdrawn_at: String,
        /// For which APIExports agents serve it. Several are named by the condition ServedByOne.
        pub served_for: Vec<ServedFor> = json!({ "x-kubernetes-list-type": "atomic" }),
        /// RulesValid, SchemaPublished, ExportUpdated, Syncing and ObjectsSynced; if one is False, its message says what to do.
        pub conditions: Vec<Condition> = json!({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] }),
    }

    /// An APIExport that a PublishedResource is served for.
    pub struct ServedFor {
        /// Its workspace and name, as root:providers|example.com.
        pub export: String,
        /// Its UID.
        pub uid: String,
        /// The agent that serves it.
        pub agent: String,
        /// When that agent last said so. It says so again only while there are several.
        pub renewed: String,
    }
}

/// A condition, kept as it is, because others may have added theirs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Condition(pub Value);

impl Described for Condition {
    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["type", "status"],
            "properties": {
                "type": { "type": "string", "description": "What the condition is about." },
                "status": { "type": "string", "description": "True, False or Unknown." },
                "reason": { "type": "string", "description": "One word for machines." },
                "message": { "type": "string", "description": "What is wrong and how to fix it." },
                "lastTransitionTime": { "type": "string", "format": "date-time", "description": "When the status last changed." },
                "observedGeneration": { "type": "integer", "format": "int64", "description": "Generation of the spec that the condition refers to." },
            },
        })
    }
}

impl PublishedResource {
    /// Whether objects are synchronized now: it is published, enabled, and not being deleted.
    pub fn is_at_work(&self) -> bool {
        self.metadata.deletion_timestamp.is_none()
            && self.is_synchronized()
            && !self.is_withdrawn()
            && !self.status.resource_schema_name.is_empty()
    }

    /// Whether it was withdrawn: its date has come.
    pub fn is_withdrawn(&self) -> bool {
        self.metadata.annotations.get(WITHDRAW_AT).is_some_and(|date| *date == self.status.withdrawn_at)
    }

    /// Whether changed schemas may be held back.
    pub fn is_gated(&self) -> bool {
        matches!(self.spec.schema_updates.as_str(), "Compatible" | "Manual")
    }

    /// Whether objects of this kind should be synchronized.
    pub fn is_synchronized(&self) -> bool {
        self.spec.synchronization.as_ref().is_none_or(|s| s.enabled)
    }
}
