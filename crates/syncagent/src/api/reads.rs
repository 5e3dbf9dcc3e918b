//! Objects of the service cluster that rules look at.

use serde_json::{Value, json};

use super::schema::{Described, described, object};
use super::{Access, LabelSelector, Reference, Rewrite, Selection, SelectionSelector, TemplateExpression};

described! {
    /// An object of the service cluster that rules look at. It is watched like a related object, and never copied.
    pub struct ReadResource {
        /// Name by which rules refer to it, unique within this PublishedResource: objects.NAME in CEL, .Objects.NAME in templates. It is
        /// null while there is no such object; of several it is the first by namespace and name.
        @required
        pub identifier: String = json!({ "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,62}$" }),
        /// API group on the service cluster; empty for core.
        pub group: String,
        /// API version on the service cluster.
        @required
        pub version: String = json!({ "minLength": 1 }),
        /// Plural resource name on the service cluster.
        @required
        pub resource: String = json!({ "minLength": 1 }),
        /// Which object it is.
        @required
        pub object: ReadSelection,
        /// What of the service cluster this entry reaches for an order: what belongs to its copy (Owned), what is in the namespace of its
        /// copy (Namespace), or whatever is selected (Any). Absent means Any where the provider alone determines what is selected, and
        /// Owned where it depends on what consumers write.
        pub access: Option<Access>,
    }

    /// How the name (or namespace) of an object on the service cluster is found.
    pub struct ReadSelection {
        /// Labels of the object. Keys and values of matchLabels may be templates.
        pub selector: Option<LabelSelector>,
        /// A path in the copy.
        pub reference: Option<Reference>,
        /// A template; .Object is the copy.
        pub template: Option<TemplateExpression>,
        /// Namespace of the object. Absent means that of the copy.
        pub namespace: Option<Box<ReadSelection>>,
    }
}

/// A namespace is selected like a name, but has no namespace itself.
impl Described for Box<ReadSelection> {
    fn schema() -> Value {
        let mut fields = ReadSelection::fields();
        fields.retain(|field| field.name != "namespace");
        object(&fields, "", None)
    }
}

impl ReadSelection {
    /// The same as for related objects. Nothing is copied, so the names on the other side are those of the objects themselves.
    pub fn as_related(&self) -> Selection {
        let unchanged = TemplateExpression { template: "{{ .Value }}".to_owned() };
        Selection {
            selector: self.selector.clone().map(|selector| SelectionSelector {
                match_labels: selector.match_labels,
                match_expressions: selector.match_expressions,
                rewrite: Rewrite { regex: None, template: Some(unchanged) },
            }),
            reference: self.reference.clone(),
            template: self.template.clone(),
            namespace: self.namespace.as_deref().map(|namespace| Box::new(namespace.as_related())),
        }
    }
}
