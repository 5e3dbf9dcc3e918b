//! Permission claims: objects of other kinds that travel beside the exported ones.

use carrick_kcp::meta::LabelSelector;
use carrick_kcp::object::object;

object! {
    /// A kind of objects that the provider wants to share, and which of them.
    PermissionClaim {
        /// API group, empty for core.
        group: String => "group",
        /// Plural name.
        resource: String => "resource",
        /// Which objects; an empty selector selects none.
        selector: Selector => "selector" [always],
    }
}

impl PermissionClaim {
    /// A claim on the selected objects of a resource.
    pub fn new(group: impl Into<String>, resource: impl Into<String>, selector: Selector) -> Self {
        Self { group: group.into(), resource: resource.into(), selector, ..Self::default() }
    }
}

object! {
    /// Which objects are meant: those that at least one of the three parts selects.
    Selector {
        /// By their labels. One that is there and empty selects all objects.
        label_selector: Option<LabelSelector> => "labelSelector",
        /// By their names.
        named_resources: Vec<NamedResource> => "namedResources",
        /// By what other objects name.
        references: Vec<Reference> => "references",
    }
}

object! {
    /// An object by name.
    NamedResource {
        /// Its name.
        name: String => "name",
        /// Its namespace; empty for any.
        namespace: String => "namespace",
    }
}

impl NamedResource {
    /// An object by namespace, which may be empty for any, and name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { name: name.into(), namespace: namespace.into(), ..Self::default() }
    }
}

object! {
    /// Objects that name claimed ones.
    Reference {
        /// API group of the naming objects, empty for core.
        group: String => "group",
        /// Plural name of the naming objects.
        resource: String => "resource",
        /// Their versions; those of the export if left out.
        versions: Vec<String> => "versions",
        /// Where in them the names are.
        json_path: Option<JsonPaths> => "jsonPath",
    }
}

impl Reference {
    /// Objects of a resource, with the paths of name and namespace in them; an empty path of the namespace is left out.
    pub fn new(group: &str, resource: &str, name: &str, namespace: &str) -> Self {
        let json_path = JsonPaths { name: name.to_owned(), namespace: namespace.to_owned(), ..JsonPaths::default() };
        Self { group: group.to_owned(), resource: resource.to_owned(), json_path: Some(json_path), ..Self::default() }
    }
}

object! {
    /// Where in an object the name of another one is, in gjson's syntax.
    JsonPaths {
        /// Path of the name, or of several.
        name: String => "name",
        /// Path of the namespace, or of several.
        namespace: String => "namespace",
    }
}
