//! Types for which a better schema is known than OpenAPI has.

use crate::rules::crd::{Schema, SchemaOrBool};
use crate::rules::raw_json::RawJson;

/// A type that contains itself and is left out.
pub(super) const SKIPPED: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The schema of a well-known type, without a description.
pub(super) fn schema(name: &str) -> Option<Schema> {
    let schema = match name {
        "io.k8s.api.core.v1.Protocol" => Schema { default: tcp(), ..of_type("string") },
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" => {
            Schema { x_preserve_unknown_fields: Some(true), ..of_type("object") }
        }
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time" | "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime" => {
            Schema { format: "date-time".to_owned(), ..of_type("string") }
        }
        "io.k8s.apimachinery.pkg.apis.meta.v1.Duration" => of_type("string"),
        "io.k8s.apimachinery.pkg.apis.meta.v1.Fields" => {
            Schema { additional_properties: Some(SchemaOrBool::Bool(true)), ..of_type("object") }
        }
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => Schema { pattern: QUANTITY.to_owned(), ..int_or_string() },
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => int_or_string(),
        "io.k8s.apimachinery.pkg.runtime.RawExtension"
        | "io.k8s.apimachinery.pkg.apis.meta.v1.unstructured.Unstructured" => of_type("object"),
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
        | "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.JSON" => {
            Schema { x_preserve_unknown_fields: Some(true), ..Schema::default() }
        }
        _ => return None,
    };
    Some(schema)
}

/// The default of a field that is part of the key of a list.
pub(super) fn default(path: &str) -> Option<RawJson> {
    let is_protocol =
        matches!(path, "io.k8s.api.core.v1.ContainerPort.protocol" | "io.k8s.api.core.v1.ServicePort.protocol");
    if is_protocol { tcp() } else { None }
}

fn tcp() -> Option<RawJson> {
    RawJson::new("\"TCP\"").ok()
}

fn of_type(name: &str) -> Schema {
    Schema { type_: name.to_owned(), ..Schema::default() }
}

fn int_or_string() -> Schema {
    Schema { x_int_or_string: true, any_of: vec![of_type("integer"), of_type("string")], ..Schema::default() }
}
