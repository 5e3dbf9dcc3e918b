//! APIResourceSchema, v1alpha1.

use serde_json::Value;

use crate::kinds::API_RESOURCE_SCHEMA;
use crate::object::{kind, object, words};

kind! {
    /// An APIResourceSchema is one immutable generation of an API; APIExports offer it and APIBindings serve it.
    ApiResourceSchema = API_RESOURCE_SCHEMA {
        /// What the API looks like. It cannot be changed once created.
        spec: ApiResourceSchemaSpec => "spec",
    }
}

object! {
    /// What an API looks like.
    ApiResourceSchemaSpec {
        /// API group, empty for core.
        group: String => "group" [always],
        /// How the resource is called.
        names: ResourceNames => "names",
        /// Whether objects live in namespaces.
        scope: ResourceScope => "scope",
        /// The versions; exactly one is the storage version.
        versions: Vec<ApiResourceVersion> => "versions",
        /// The rule that names of objects follow.
        name_validation: String => "nameValidation",
        /// How objects move between versions.
        conversion: Option<Conversion> => "conversion",
    }
}

object! {
    /// How a resource is called.
    ResourceNames {
        /// In URLs.
        plural: String => "plural",
        /// For users of kubectl.
        singular: String => "singular",
        /// In objects.
        kind: String => "kind",
        /// In lists of objects.
        list_kind: String => "listKind",
        /// Abbreviations for users of kubectl.
        short_names: Vec<String> => "shortNames",
        /// Groups of resources, such as `all`.
        categories: Vec<String> => "categories",
    }
}

words! {
    /// Whether objects live in namespaces.
    ResourceScope {
        /// They do not.
        Cluster,
        /// They do.
        Namespaced,
    }
}

object! {
    /// One version of an API.
    ApiResourceVersion {
        /// Its name.
        name: String => "name",
        /// Whether it is served.
        served: bool => "served" [always],
        /// Whether objects are stored in it.
        storage: bool => "storage" [always],
        /// Whether clients are warned off it.
        deprecated: bool => "deprecated",
        /// The text of that warning.
        deprecation_warning: String => "deprecationWarning",
        /// The structural OpenAPI v3 schema itself, without the wrapper that a CRD has.
        schema: Value => "schema",
        /// `status` and `scale`, as in a CRD.
        subresources: Value => "subresources",
        /// Columns of tables, as in a CRD.
        additional_printer_columns: Vec<Value> => "additionalPrinterColumns",
    }
}

object! {
    /// How objects move between versions.
    Conversion {
        /// `None` or `Webhook`.
        strategy: String => "strategy",
        /// The webhook, as in a CRD.
        webhook: Value => "webhook",
    }
}
