//! Schemas every document shares, and short descriptions of built-in kinds.

use serde_json::{Map, Value, json};

pub(super) const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values.";
pub(super) const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase.";
pub(super) const OBJECT_META: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub(super) const LIST_META: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// Metadata types.
pub(super) fn schemas() -> Map<String, Value> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let time = |description: &str| json!({"type": "string", "format": "date-time", "description": description});
    let texts = |description: &str| json!({"type": "object", "additionalProperties": {"type": "string", "default": ""}, "description": description});
    let prefix = "io.k8s.apimachinery.pkg.apis.meta.v1";
    let reference = |name: &str| format!("#/components/schemas/{prefix}.{name}");
    let owner = json!({
        "type": "object",
        "description": "OwnerReference contains enough information to let you identify an owning object in the same namespace.",
        "required": ["apiVersion", "kind", "name", "uid"],
        "properties": {
            "apiVersion": text("API version of the referent."), "kind": text("Kind of the referent."),
            "name": text("Name of the referent."), "uid": text("UID of the referent."),
            "controller": {"type": "boolean", "description": "If true, this reference points to the managing controller."},
            "blockOwnerDeletion": {"type": "boolean", "description": "If true, and the owner is deleted in the foreground, it waits for this object."},
        },
        "x-kubernetes-map-type": "atomic",
    });
    let managed = json!({
        "type": "object",
        "description": "ManagedFieldsEntry is a workflow-id, a FieldSet and the group version of the resource that the fieldset applies to.",
        "properties": {
            "manager": text("The workflow managing these fields."), "operation": text("Apply or Update."),
            "apiVersion": text("The version of this resource that this field set applies to."), "time": time("When the fields were last changed."),
            "fieldsType": text("FieldsV1."), "fieldsV1": {"type": "object", "description": "The set of fields."},
            "subresource": text("The subresource used to update the object."),
        },
    });
    let meta = json!({
        "type": "object",
        "description": "ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create.",
        "properties": {
            "name": text("Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically."),
            "generateName": text("An optional prefix, used by the server, to generate a unique name ONLY IF the Name field has not been provided."),
            "namespace": text("Namespace defines the space within which each name must be unique."),
            "labels": texts("Map of string keys and values that can be used to organize and categorize (scope and select) objects."),
            "annotations": texts("Unstructured key value map stored with a resource that may be set by external tools to store and retrieve arbitrary metadata."),
            "finalizers": {"type": "array", "items": {"type": "string", "default": ""}, "x-kubernetes-list-type": "set", "description": "Must be empty before the object is deleted from the registry."},
            "ownerReferences": {"type": "array", "items": {"allOf": [{"$ref": reference("OwnerReference")}], "default": {}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"], "description": "List of objects depended by this object."},
            "managedFields": {"type": "array", "items": {"allOf": [{"$ref": reference("ManagedFieldsEntry")}], "default": {}}, "x-kubernetes-list-type": "atomic", "description": "Which workflow manages which fields."},
            "uid": text("UID is the unique in time and space value for this object."),
            "resourceVersion": text("An opaque value that represents the internal version of this object."),
            "generation": {"type": "integer", "format": "int64", "description": "A sequence number representing a specific generation of the desired state."},
            "creationTimestamp": time("The server time when this object was created."),
            "deletionTimestamp": time("The time after which this resource will be deleted."),
            "deletionGracePeriodSeconds": {"type": "integer", "format": "int64", "description": "Number of seconds allowed for this object to gracefully terminate."},
            "selfLink": text("Deprecated: selfLink is no longer set."),
        },
    });
    let list = json!({
        "type": "object",
        "description": "ListMeta describes metadata that synthetic resources must have.",
        "properties": {
            "continue": text("Token of the next page."), "resourceVersion": text("The state this list shows."),
            "remainingItemCount": {"type": "integer", "format": "int64", "description": "Number of items that follow."},
            "selfLink": text("Deprecated: selfLink is no longer set."),
        },
    });
    [("OwnerReference", owner), ("ManagedFieldsEntry", managed), ("ObjectMeta", meta), ("ListMeta", list)]
        .into_iter()
        .map(|(name, schema)| (format!("{prefix}.{name}"), schema))
        .collect()
}

/// A schema for a built-in kind: its fields by name, without depth.
pub(super) fn builtin(kind: &str) -> Value {
    let map = |description: &str| json!({"type": "object", "additionalProperties": {"type": "string", "default": ""}, "description": description});
    let any = |description: &str| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "description": description});
    let list = |description: &str| json!({"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}, "description": description});
    let text = |description: &str| json!({"type": "string", "description": description});
    let flag = |description: &str| json!({"type": "boolean", "description": description});
    let (description, properties) = match kind {
        "ConfigMap" => (
            "ConfigMap holds configuration data for pods to consume.",
            json!({"data": map("Data contains the configuration data."), "binaryData": map("BinaryData contains the binary data."), "immutable": flag("Immutable, if set to true, ensures that data stored in the ConfigMap cannot be updated.")}),
        ),
        "Secret" => (
            "Secret holds secret data of a certain type.",
            json!({"data": map("Data contains the secret data, base64 encoded."), "stringData": map("stringData allows specifying non-binary secret data in string form."), "type": text("Used to facilitate programmatic handling of secret data."), "immutable": flag("Immutable, if set to true, ensures that data stored in the Secret cannot be updated.")}),
        ),
        "Role" | "ClusterRole" => (
            "A set of rules that can be referenced as a unit by a binding.",
            json!({"rules": list("Rules holds all the rules of this role."), "aggregationRule": any("Roles whose rules are added to this one.")}),
        ),
        "RoleBinding" | "ClusterRoleBinding" => (
            "A binding of a role to users, groups and service accounts.",
            json!({"roleRef": any("The role."), "subjects": list("Who gets the role.")}),
        ),
        "ServiceAccount" => (
            "ServiceAccount binds together a name and a principal that can be authenticated and authorized.",
            json!({"secrets": list("Secrets that pods running as this account may use."), "imagePullSecrets": list("Secrets for pulling images."), "automountServiceAccountToken": flag("Whether pods get a token.")}),
        ),
        "Event" => (
            "Event is a report of an event somewhere in the cluster.",
            json!({"involvedObject": any("The object that this event is about."), "reason": text("Why the action was taken."), "message": text("A human-readable description."), "type": text("Normal or Warning.")}),
        ),
        _ => ("", json!({"spec": any("The desired state."), "status": any("The observed state.")})),
    };
    let mut schema = json!({"type": "object", "properties": properties});
    if !description.is_empty() {
        schema["description"] = description.into();
    }
    schema
}
