//! The messages of built-in kinds: field numbers as Kubernetes publishes them.

/// How a field is encoded, and what it is in JSON.
pub(in crate::http) enum Form {
    /// A text; empty counts as absent.
    Text,
    /// A text in a list.
    ItemText,
    Number,
    /// A number of 32 bits.
    Int32,
    Flag,
    /// Seconds and nanoseconds.
    Time,
    MicroTime,
    /// A message that carries JSON in its first field.
    Json,
    /// A map of texts.
    Map,
    /// A map of bytes.
    BytesMap,
    /// A map of lists of texts.
    ListMap,
    Message(&'static [Field]),
    /// A message of the table of workloads.
    Named(&'static str),
    /// A map of quantities.
    QuantityMap,
    Quantity,
    /// A number or a text.
    IntOrText,
    Bytes,
    /// Not decoded.
    Unknown,
}

/// One field of a message.
pub(in crate::http) struct Field {
    pub(super) number: u64,
    pub(in crate::http) name: &'static str,
    pub(in crate::http) form: Form,
    pub(in crate::http) repeated: bool,
    /// Its fields belong to the enclosing message.
    pub(in crate::http) inline: bool,
    /// Go sends zero for "unset".
    pub(super) zero_is_absent: bool,
}

const fn one(number: u64, name: &'static str, form: Form) -> Field {
    Field { number, name, form, repeated: false, inline: false, zero_is_absent: false }
}

const fn many(number: u64, name: &'static str, form: Form) -> Field {
    Field { number, name, form, repeated: true, inline: false, zero_is_absent: false }
}

use Form::{BytesMap, Flag, ItemText, Json, ListMap, Map, Message, MicroTime, Number, Text, Time};

const OWNER: &[Field] = &[
    one(1, "kind", Text),
    one(3, "name", Text),
    one(4, "uid", Text),
    one(5, "apiVersion", Text),
    one(6, "controller", Flag),
    one(7, "blockOwnerDeletion", Flag),
];

const MANAGED: &[Field] = &[
    one(1, "manager", Text),
    one(2, "operation", Text),
    one(3, "apiVersion", Text),
    one(4, "time", Time),
    one(6, "fieldsType", Text),
    one(7, "fieldsV1", Json),
    one(8, "subresource", Text),
];

pub(super) const META: &[Field] = &[
    one(1, "name", Text),
    one(2, "generateName", Text),
    one(3, "namespace", Text),
    one(4, "selfLink", Text),
    one(5, "uid", Text),
    one(6, "resourceVersion", Text),
    one(7, "generation", Number),
    one(8, "creationTimestamp", Time),
    one(9, "deletionTimestamp", Time),
    one(10, "deletionGracePeriodSeconds", Number),
    one(11, "labels", Map),
    one(12, "annotations", Map),
    many(13, "ownerReferences", Message(OWNER)),
    many(14, "finalizers", ItemText),
    many(17, "managedFields", Message(MANAGED)),
];

const fn metadata() -> Field {
    one(1, "metadata", Message(META))
}

const REFERENCE: &[Field] = &[
    one(1, "kind", Text),
    one(2, "namespace", Text),
    one(3, "name", Text),
    one(4, "uid", Text),
    one(5, "apiVersion", Text),
    one(6, "resourceVersion", Text),
    one(7, "fieldPath", Text),
];

const DELETE_OPTIONS: &[Field] = &[
    one(1, "gracePeriodSeconds", Number),
    one(2, "preconditions", Message(&[one(1, "uid", Text), one(2, "resourceVersion", Text)])),
    one(3, "orphanDependents", Flag),
    one(4, "propagationPolicy", Text),
    many(5, "dryRun", ItemText),
];

const CONFIG_MAP: &[Field] =
    &[metadata(), one(2, "data", Map), one(3, "binaryData", BytesMap), one(4, "immutable", Flag)];

const SECRET: &[Field] =
    &[metadata(), one(2, "data", BytesMap), one(3, "type", Text), one(4, "stringData", Map), one(5, "immutable", Flag)];

const CONDITION: &[Field] = &[
    one(1, "type", Text),
    one(2, "status", Text),
    one(4, "lastTransitionTime", Time),
    one(5, "reason", Text),
    one(6, "message", Text),
];

const NAMESPACE: &[Field] = &[
    metadata(),
    one(2, "spec", Message(&[many(1, "finalizers", ItemText)])),
    one(3, "status", Message(&[one(1, "phase", Text), many(2, "conditions", Message(CONDITION))])),
];

const SERVICE_ACCOUNT: &[Field] = &[
    metadata(),
    many(2, "secrets", Message(REFERENCE)),
    many(3, "imagePullSecrets", Message(&[one(1, "name", Text)])),
    one(4, "automountServiceAccountToken", Flag),
];

const SOURCE: &[Field] = &[one(1, "component", Text), one(2, "host", Text)];
const SERIES: &[Field] = &[one(1, "count", Number), one(2, "lastObservedTime", MicroTime)];

const CORE_EVENT: &[Field] = &[
    metadata(),
    one(2, "involvedObject", Message(REFERENCE)),
    one(3, "reason", Text),
    one(4, "message", Text),
    one(5, "source", Message(SOURCE)),
    one(6, "firstTimestamp", Time),
    one(7, "lastTimestamp", Time),
    one(8, "count", Number),
    one(9, "type", Text),
    one(10, "eventTime", MicroTime),
    one(11, "series", Message(SERIES)),
    one(12, "action", Text),
    one(13, "related", Message(REFERENCE)),
    one(14, "reportingComponent", Text),
    one(15, "reportingInstance", Text),
];

const EVENT: &[Field] = &[
    metadata(),
    one(2, "eventTime", MicroTime),
    one(3, "series", Message(SERIES)),
    one(4, "reportingController", Text),
    one(5, "reportingInstance", Text),
    one(6, "action", Text),
    one(7, "reason", Text),
    one(8, "regarding", Message(REFERENCE)),
    one(9, "related", Message(REFERENCE)),
    one(10, "note", Text),
    one(11, "type", Text),
    one(12, "deprecatedSource", Message(SOURCE)),
    one(13, "deprecatedFirstTimestamp", Time),
    one(14, "deprecatedLastTimestamp", Time),
    one(15, "deprecatedCount", Number),
];

const LEASE_SPEC: &[Field] = &[
    one(1, "holderIdentity", Text),
    one(2, "leaseDurationSeconds", Number),
    one(3, "acquireTime", MicroTime),
    one(4, "renewTime", MicroTime),
    one(5, "leaseTransitions", Number),
    one(6, "strategy", Text),
    one(7, "preferredHolder", Text),
];

const POLICY_RULE: &[Field] = &[
    many(1, "verbs", ItemText),
    many(2, "apiGroups", ItemText),
    many(3, "resources", ItemText),
    many(4, "resourceNames", ItemText),
    many(5, "nonResourceURLs", ItemText),
];

const SELECTOR: &[Field] = &[
    one(1, "matchLabels", Map),
    many(2, "matchExpressions", Message(&[one(1, "key", Text), one(2, "operator", Text), many(3, "values", ItemText)])),
];

const CLUSTER_ROLE: &[Field] = &[
    metadata(),
    many(2, "rules", Message(POLICY_RULE)),
    one(3, "aggregationRule", Message(&[many(1, "clusterRoleSelectors", Message(SELECTOR))])),
];

const BINDING: &[Field] = &[
    metadata(),
    many(
        2,
        "subjects",
        Message(&[one(1, "kind", Text), one(2, "apiGroup", Text), one(3, "name", Text), one(4, "namespace", Text)]),
    ),
    one(3, "roleRef", Message(&[one(1, "apiGroup", Text), one(2, "kind", Text), one(3, "name", Text)])),
];

const RESOURCE_ATTRIBUTES: &[Field] = &[
    one(1, "namespace", Text),
    one(2, "verb", Text),
    one(3, "group", Text),
    one(4, "version", Text),
    one(5, "resource", Text),
    one(6, "subresource", Text),
    one(7, "name", Text),
];

const ACCESS_SPEC: &[Field] = &[
    one(1, "resourceAttributes", Message(RESOURCE_ATTRIBUTES)),
    one(2, "nonResourceAttributes", Message(&[one(1, "path", Text), one(2, "verb", Text)])),
    one(3, "user", Text),
    many(4, "groups", ItemText),
    one(5, "extra", ListMap),
    one(6, "uid", Text),
];

const LEASE: &[Field] = &[metadata(), one(2, "spec", Message(LEASE_SPEC))];
const ACCESS_REVIEW: &[Field] = &[metadata(), one(2, "spec", Message(ACCESS_SPEC))];
const RULES_REVIEW: &[Field] = &[metadata(), one(2, "spec", Message(&[one(1, "namespace", Text)]))];
const SUBJECT_REVIEW: &[Field] = &[metadata()];
const TOKEN_REVIEW: &[Field] =
    &[metadata(), one(2, "spec", Message(&[one(1, "token", Text), many(2, "audiences", ItemText)]))];

const TOKEN_REQUEST_SPEC: &[Field] = &[
    many(1, "audiences", ItemText),
    one(
        3,
        "boundObjectRef",
        Message(&[one(1, "kind", Text), one(2, "apiVersion", Text), one(3, "name", Text), one(4, "uid", Text)]),
    ),
    one(4, "expirationSeconds", Number),
];
const TOKEN_REQUEST: &[Field] = &[metadata(), one(2, "spec", Message(TOKEN_REQUEST_SPEC))];

const SCALE: &[Field] = &[
    metadata(),
    one(2, "spec", Message(&[one(1, "replicas", Number)])),
    one(3, "status", Message(&[one(1, "replicas", Number), one(2, "selector", Text)])),
];

/// The fields of a kind.
pub(super) fn message(api_version: &str, kind: &str) -> Option<&'static [Field]> {
    Some(match kind {
        "DeleteOptions" => DELETE_OPTIONS,
        "ConfigMap" => CONFIG_MAP,
        "Secret" => SECRET,
        "Namespace" => NAMESPACE,
        "ServiceAccount" => SERVICE_ACCOUNT,
        "Event" if api_version == "v1" => CORE_EVENT,
        "Event" => EVENT,
        "Lease" => LEASE,
        "Role" | "ClusterRole" => CLUSTER_ROLE,
        "RoleBinding" | "ClusterRoleBinding" => BINDING,
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => ACCESS_REVIEW,
        "SelfSubjectRulesReview" => RULES_REVIEW,
        "SelfSubjectReview" => SUBJECT_REVIEW,
        "TokenReview" => TOKEN_REVIEW,
        "TokenRequest" => TOKEN_REQUEST,
        "Scale" => SCALE,
        _ => return super::workloads::kind(api_version, kind),
    })
}
