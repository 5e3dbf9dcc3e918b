//! Schemas every document shares.

use serde_json::{Map, Value, json};

pub(super) const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values.";
pub(super) const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase.";
pub(super) const EMBEDDED_API_VERSION: &str =
    "The API version of the object inside; servers refuse versions they do not know.";
pub(super) const EMBEDDED_KIND: &str = "The kind of the object inside, in CamelCase.";
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
            "fieldsType": text("FieldsV1."), "fieldsV1": {"allOf": [{"$ref": reference("FieldsV1")}], "description": "The set of fields."},
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
    let fields =
        json!({"type": "object", "description": "FieldsV1 stores a set of fields in a data structure like a Trie."});
    [
        ("OwnerReference", owner),
        ("FieldsV1", fields),
        ("ManagedFieldsEntry", managed),
        ("ObjectMeta", meta),
        ("ListMeta", list),
    ]
    .into_iter()
    .map(|(name, schema)| (format!("{prefix}.{name}"), schema))
    .collect()
}
