//! The CustomResourceDefinitions of the three kinds, which accept and refuse what upstream's do.

use serde_json::{Value, json};

use super::kinds::{BINDING, CLUSTER_BINDING, CONNECTION};
use crate::crds::build::{
    self, OldVersion, Presentation, age_column, column, immutable, list, object, ready_column, required, some_text,
    text, with, word,
};
use crate::crds::parts::{label_selector, standard_conditions};
use crate::kinds::Kind;

/// All of them.
pub fn all() -> Vec<Value> {
    vec![connection(), binding(CLUSTER_BINDING), binding(BINDING)]
}

fn crd(kind: Kind, about: &str, columns: Vec<Value>, spec: Value, status: Value) -> Value {
    let look = Presentation { short_names: &[], categories: &["kbind"], columns, v1alpha1: OldVersion::Never };
    build::crd(kind, about, &look, spec, status)
}

fn connection() -> Value {
    let secret = required(
        object(
            "The Secret with the kubeconfig of the provider.",
            [
                ("namespace", some_text("Namespace of the Secret.")),
                ("name", some_text("Name of the Secret.")),
                ("key", with(some_text("Key of the kubeconfig in the Secret."), "default", json!("kubeconfig"))),
            ],
        ),
        &["namespace", "name"],
    );
    let policy = |about: &str, words: &[&str]| with(word(about, words), "default", json!(words[0]));
    let schema = object(
        "How schemas of the provider are used.",
        [
            ("source", policy("Where they come from.", &["Auto", "CRD", "OpenAPI"])),
            ("pullPolicy", policy("Which are installed.", &["Bound", "All", "None"])),
            ("updatePolicy", policy("Whether installed ones follow.", &["Always", "Once"])),
        ],
    );
    let spec = object(
        "Where the provider is.",
        [
            ("kubeconfigSecretRef", immutable(secret, "kubeconfigSecretRef")),
            ("schema", with(schema, "default", json!({}))),
            (
                "autoBind",
                json!({"type": "boolean", "default": false, "description": "Whether all that is exported is bound."}),
            ),
        ],
    );
    let uid = |about: &str, field: &str| {
        let rule =
            json!([{"rule": "oldSelf == '' || self == oldSelf", "message": format!("{field} is immutable once set")}]);
        with(text(about), "x-kubernetes-validations", rule)
    };
    let status = object(
        "What the konnector has found.",
        [
            ("remoteClusterUID", uid("Who the provider is.", "remoteClusterUID")),
            ("localClusterUID", uid("Who the consumer is.", "localClusterUID")),
            ("activeSchemaSource", text("Where schemas come from: CRD or OpenAPI.")),
            ("exportedAPIs", exported_apis()),
            ("conditions", standard_conditions()),
        ],
    );
    let columns = vec![ready_column(), column("Secret", ".spec.kubeconfigSecretRef.name"), age_column()];
    crd(CONNECTION, "The link to one provider.", columns, required(spec, &["kubeconfigSecretRef"]), status)
}

fn exported_apis() -> Value {
    let versions =
        with(list("The versions that are served.", text("A version.")), "x-kubernetes-list-type", json!("set"));
    let api = object(
        "An API.",
        [
            ("name", text("Plural name and group, with a dot between them.")),
            ("group", text("API group.")),
            ("resource", text("Plural name.")),
            ("scope", text("Namespaced or Cluster.")),
            ("versions", versions),
        ],
    );
    with(list("What the provider offers.", required(api, &["name"])), "x-kubernetes-list-type", json!("atomic"))
}

fn binding(kind: Kind) -> Value {
    let connection = object("The Connection to the provider.", [("name", some_text("Its name."))]);
    let api = object("An API.", [("name", some_text("Plural name and group, with a dot between them."))]);
    let apis = with(list("The APIs to bind.", required(api, &["name"])), "minItems", json!(1));
    let conflicts = word("What becomes of objects that the provider had before.", &["Fail", "Adopt"]);
    let spec = object(
        "Which APIs of which provider.",
        [
            ("connectionRef", required(connection, &["name"])),
            ("apis", apis),
            ("conflictPolicy", with(conflicts, "default", json!("Fail"))),
            ("relatedResources", related()),
        ],
    );
    let bound = object(
        "An API.",
        [
            ("name", text("Plural name and group, with a dot between them.")),
            ("crdHash", text("Hash of what was installed.")),
            (
                "conflictCount",
                json!({"type": "integer", "format": "int32", "description": "How many objects are not synced."}),
            ),
        ],
    );
    let status = object(
        "What has become of the APIs.",
        [
            ("boundAPIs", list("The APIs that are bound.", required(bound, &["name"]))),
            ("conditions", standard_conditions()),
        ],
    );
    let columns = vec![column("Connection", ".spec.connectionRef.name"), ready_column(), age_column()];
    crd(kind, "Brings APIs of a provider here.", columns, required(spec, &["connectionRef", "apis"]), status)
}

fn related() -> Value {
    let names = with(list("By their names.", text("A name.")), "x-kubernetes-list-type", json!("set"));
    let selector = object(
        "Which of them: those that all given parts select.",
        [("labelSelector", label_selector()), ("names", names)],
    );
    let entry = object(
        "Objects that travel along.",
        [
            ("group", with(text("API group."), "default", json!(""))),
            ("resource", word("Which kind.", &["secrets", "configmaps"])),
            ("direction", word("Which side they come from.", &["FromProvider", "FromConsumer"])),
            ("selector", selector),
        ],
    );
    let entries =
        list("Secrets and ConfigMaps that travel along.", required(entry, &["group", "resource", "direction"]));
    with(entries, "x-kubernetes-list-type", json!("atomic"))
}
