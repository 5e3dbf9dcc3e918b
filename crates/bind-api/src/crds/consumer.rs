//! What a konnector installs.

use serde_json::{Value, json};

use super::build::{
    OldVersion, Presentation, age_column, column, crd, list, object, ready_column, required, text, with,
};
use super::parts::{conditions, group, kubeconfig_secret, permission_claims, resource};
use crate::kinds::{API_SERVICE_BINDING, API_SERVICE_BINDING_BUNDLE};

fn columns() -> Vec<Value> {
    let resources = column("Resources", r".metadata.annotations.kube-bind\.io/resources");
    vec![
        column("Provider", ".status.providerPrettyName"),
        with(resources, "priority", json!(1)),
        ready_column(),
        column("Message", ".status.conditions[?(@.type==\"Ready\")].message"),
        age_column(),
    ]
}

fn spec() -> Value {
    required(object("Where the provider is.", [("kubeconfigSecretRef", kubeconfig_secret())]), &["kubeconfigSecretRef"])
}

pub(super) fn binding() -> Value {
    let schema = object("A bound API.", [("group", group()), ("resource", resource())]);
    let status = object(
        "What the konnector says about it.",
        [
            ("providerPrettyName", text("What the provider calls itself.")),
            (
                "boundSchemas",
                with(list("The APIs that are bound.", required(schema, &["resource"])), "minItems", json!(1)),
            ),
            ("permissionClaims", permission_claims()),
            ("conditions", conditions()),
        ],
    );
    let look = Presentation {
        short_names: &["sb"],
        categories: &["kube-bindings"],
        columns: columns(),
        v1alpha1: OldVersion::Alike,
    };
    crd(
        API_SERVICE_BINDING,
        "Brings the APIs of the provider's APIServiceExport of the same name into this cluster.",
        &look,
        spec(),
        status,
    )
}

pub(super) fn bundle() -> Value {
    let status = object("What the konnector says about it.", [("conditions", conditions())]);
    let look = Presentation {
        short_names: &["sbb"],
        categories: &["kube-bindings"],
        columns: columns(),
        v1alpha1: OldVersion::Never,
    };
    crd(
        API_SERVICE_BINDING_BUNDLE,
        "Makes an APIServiceBinding of every APIServiceExport of a contract.",
        &look,
        spec(),
        status,
    )
}
