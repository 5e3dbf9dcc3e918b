//! Schemas that several kinds share.

use serde_json::{Value, json};

use super::build::{immutable, list, object, required, some_text, text, time, with, word};

const GROUP_PATTERN: &str = r"^(|[a-z0-9]([-a-z0-9]*[a-z0-9](\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?)$";
const RESOURCE_PATTERN: &str = "^[a-z][-a-z0-9]*[a-z0-9]$";
/// Names of versions, such as v1beta1.
pub(super) const VERSION_PATTERN: &str = "^v[1-9][0-9]*([a-z]+[1-9][0-9]*)?$";

pub(super) fn group() -> Value {
    json!({"type": "string", "description": "API group, empty for core.", "default": "", "pattern": GROUP_PATTERN})
}

pub(super) fn resource() -> Value {
    json!({"type": "string", "description": "Plural name of the resource.", "pattern": RESOURCE_PATTERN})
}

pub(super) fn conditions() -> Value {
    let condition = object(
        "One thing that holds or does not.",
        [
            ("type", text("What it is about.")),
            ("status", text("True, False or Unknown.")),
            ("severity", text("Error, Warning or Info, if it does not hold.")),
            ("reason", text("Why, in one word.")),
            ("message", text("Why, in a sentence.")),
            ("lastTransitionTime", time("When any of the others changed.")),
        ],
    );
    list("Conditions.", required(condition, &["lastTransitionTime", "status", "type"]))
}

/// The conditions that Kubernetes itself has.
pub(crate) fn standard_conditions() -> Value {
    let condition = object(
        "One thing that holds or does not.",
        [
            ("type", some_text("What it is about.")),
            ("status", word("Whether it holds.", &["True", "False", "Unknown"])),
            ("reason", text("Why, in one word.")),
            ("message", text("Why, in a sentence.")),
            (
                "observedGeneration",
                json!({"type": "integer", "format": "int64", "minimum": 0, "description": "Of which generation."}),
            ),
            ("lastTransitionTime", time("When the status changed.")),
        ],
    );
    let conditions =
        list("Conditions.", required(condition, &["lastTransitionTime", "message", "reason", "status", "type"]));
    with(with(conditions, "x-kubernetes-list-type", json!("map")), "x-kubernetes-list-map-keys", json!(["type"]))
}

/// A status with conditions and nothing else.
pub(super) fn conditions_status() -> Value {
    object("What is known about it.", [("conditions", conditions())])
}

/// The Secret of a consumer with the kubeconfig of its provider.
pub(super) fn kubeconfig_secret() -> Value {
    let reference = object(
        "The Secret with the kubeconfig of the provider. Its context names the contract namespace.",
        [
            ("name", some_text("Name of the Secret.")),
            ("namespace", some_text("Namespace of the Secret.")),
            ("key", text("Key of the kubeconfig in the Secret.")),
        ],
    );
    immutable(required(reference, &["key", "name", "namespace"]), "kubeconfigSecretRef")
}

/// A key of a Secret in the same namespace.
pub(super) fn local_secret(about: &str) -> Value {
    let reference = object(
        about,
        [("name", some_text("Name of the Secret.")), ("key", text("Key in the Secret; kubeconfig if empty."))],
    );
    required(reference, &["key", "name"])
}

pub(super) fn resources() -> Value {
    let resource = object(
        "A resource.",
        [
            ("group", group()),
            ("resource", resource()),
            (
                "versions",
                list("Its versions; at least one must be named for anything to be exported.", text("A version.")),
            ),
        ],
    );
    with(list("The resources.", required(resource, &["resource"])), "minItems", json!(1))
}

pub(super) fn namespaces() -> Value {
    let namespace = object("A namespace.", [("name", text("Its name."))]);
    list("Namespaces of consumers that the provider wants to be there.", required(namespace, &["name"]))
}

pub(super) fn schema_update_policy() -> Value {
    let policy = word("Whether schemas follow those of the provider.", &["Never", "Always"]);
    with(policy, "default", json!("Never"))
}

pub(super) fn phase() -> Value {
    with(word("How far it is.", &["Pending", "Failed", "Succeeded"]), "default", json!("Pending"))
}

pub(super) fn permission_claims() -> Value {
    let claim = object(
        "Objects of another kind that consumer and provider share.",
        [("group", group()), ("resource", resource()), ("selector", selector())],
    );
    list("What the provider claims beside the resources.", required(claim, &["resource", "selector"]))
}

/// Objects by their labels.
pub(crate) fn label_selector() -> Value {
    let requirement = object(
        "A condition on one label.",
        [
            ("key", text("The label.")),
            ("operator", text("In, NotIn, Exists or DoesNotExist.")),
            (
                "values",
                with(
                    list("What In and NotIn compare with.", text("A value.")),
                    "x-kubernetes-list-type",
                    json!("atomic"),
                ),
            ),
        ],
    );
    let expressions = list("Conditions on labels.", required(requirement, &["key", "operator"]));
    let labels = json!({"type": "object", "description": "Labels that must be there.", "additionalProperties": {"type": "string"}});
    let selector = object(
        "Objects by their labels; an empty one selects all.",
        [("matchLabels", labels), ("matchExpressions", with(expressions, "x-kubernetes-list-type", json!("atomic")))],
    );
    with(selector, "x-kubernetes-map-type", json!("atomic"))
}

fn selector() -> Value {
    let named = object(
        "An object by its name.",
        [("name", text("Its name.")), ("namespace", text("Its namespace; any if left out."))],
    );
    let paths = object(
        "Where the names are, as gjson paths such as spec.secretRefs.#.name.",
        [("name", text("Path of the name.")), ("namespace", text("Path of the namespace; any namespace if left out."))],
    );
    let reference = object(
        "Objects that name the claimed ones.",
        [
            ("group", group()),
            ("resource", resource()),
            ("versions", list("Their versions; those of the export if left out.", text("A version."))),
            ("jsonPath", paths),
        ],
    );
    object(
        "Which objects: those that at least one of the parts selects. Without any part it selects none.",
        [
            ("labelSelector", label_selector()),
            ("namedResources", list("Objects by their names.", required(named, &["name"]))),
            ("references", list("Objects by what others name.", required(reference, &["jsonPath", "resource"]))),
        ],
    )
}
