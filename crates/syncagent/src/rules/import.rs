//! Import: where orders of objects that exist belong, and which objects a PublishedResource imports by itself.

use carrick_template::Template;
use serde_json::{Map, Value};
use thiserror::Error;

use super::selector::{Selector, SelectorError};
use crate::api::{Import, LabelSelector, PublishedResource};

/// The namespace of orders if none is given.
pub const NAMESPACE: &str = "default";
/// The name of orders if none is given: that of the object.
pub const NAME: &str = "{{ .Object.metadata.name }}";

/// Why what is said about imports is refused.
#[derive(Debug, Error)]
pub enum ImportError {
    /// A template cannot be compiled, or would yield something else each time.
    #[error("{at} {text:?} is not a valid template: {error}")]
    Template {
        /// The field or flag.
        at: &'static str,
        /// The template.
        text: String,
        /// What is wrong.
        error: String,
    },
    /// The selector is not valid.
    #[error("spec.import.selector: {0}")]
    Selector(#[from] SelectorError),
    /// The selector selects everything.
    #[error(
        "spec.import.selector is empty, which would select all objects of the kind; name a label that you put on those to import"
    )]
    Everything,
    /// The workspace is not named.
    #[error(
        "spec.import.to is empty; name the consumer's workspace, such as root:orgs:{{{{ .Object.metadata.labels.tenant }}}}"
    )]
    Nowhere,
    /// What becomes of the object at the end has another name.
    #[error("spec.import.onDelete is {0:?}, but must be Keep or Delete")]
    OnDelete(String),
    /// Orders are of another kind, and nothing leads back to them.
    #[error(
        "spec.import: spec.implements leads from another API to this kind, and nothing leads back; create the orders by hand"
    )]
    NoWayBack,
}

/// What becomes of an imported object when its order goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDelete {
    /// It stays, without its link.
    #[default]
    Keep,
    /// It is deleted, as the agent's own copies are.
    Delete,
}

/// Workspace, namespace and name of orders, as templates over their objects.
#[derive(Debug, Clone)]
pub struct OrderTemplates {
    names: [&'static str; 3],
    templates: [Template; 3],
}

impl OrderTemplates {
    /// What the flags of the command are called.
    pub const FLAGS: [&'static str; 3] = ["--to", "--order-namespace", "--order-name"];
    /// What the fields of a PublishedResource are called.
    pub const FIELDS: [&'static str; 3] = ["spec.import.to", "spec.import.namespace", "spec.import.name"];

    /// Compiles workspace, namespace and name, under the names that errors use. The same object must have the same place each time.
    pub fn compile(names: [&'static str; 3], texts: [&str; 3]) -> Result<Self, ImportError> {
        let compile = |i: usize| {
            Template::compile_steady(texts[i]).map_err(|error| ImportError::Template {
                at: names[i],
                text: texts[i].to_owned(),
                error: error.to_string(),
            })
        };
        Ok(Self { names, templates: [compile(0)?, compile(1)?, compile(2)?] })
    }

    /// What workspace, namespace and name are called where they are said.
    pub fn names(&self) -> [&'static str; 3] {
        self.names
    }

    /// Workspace, namespace and name for an object; or why one of them is not known.
    pub fn of(&self, object: &Value) -> Result<[String; 3], String> {
        let mut data = Map::new();
        data.insert("Object".to_owned(), object.clone());
        let render = |i: usize| match self.templates[i].render(&data) {
            Ok(text) if text.trim().is_empty() || text.contains("<no value>") => {
                Err(format!("{} yields {:?} for it", self.names[i], text.trim()))
            }
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) => Err(format!("{} cannot be rendered for it: {error}", self.names[i])),
        };
        Ok([render(0)?, render(1)?, render(2)?])
    }
}

/// The objects that a PublishedResource imports by itself.
#[derive(Debug, Clone)]
pub struct ImportRules {
    /// Which objects, as servers read it.
    pub selector: String,
    /// Where their orders belong.
    pub places: OrderTemplates,
    /// What becomes of them when their orders go.
    pub on_delete: OnDelete,
    /// Labels and annotations that are not on their orders.
    pub without: Vec<String>,
}

impl ImportRules {
    /// Compiles what a PublishedResource says; nothing if it says nothing.
    pub fn compile(pr: &PublishedResource) -> Result<Option<Self>, ImportError> {
        let Some(import) = &pr.spec.import else { return Ok(None) };
        let Import { selector, to, namespace, name, on_delete, without } = import;
        Selector::compile(selector)?;
        if selector.match_labels.is_empty() && selector.match_expressions.is_empty() {
            return Err(ImportError::Everything);
        }
        if to.trim().is_empty() {
            return Err(ImportError::Nowhere);
        }
        if pr.spec.implements.is_some() {
            return Err(ImportError::NoWayBack);
        }
        let on_delete = match on_delete.as_str() {
            "" | "Keep" => OnDelete::Keep,
            "Delete" => OnDelete::Delete,
            other => return Err(ImportError::OnDelete(other.to_owned())),
        };
        let or =
            |text: &'_ str, default: &'static str| if text.is_empty() { default.to_owned() } else { text.to_owned() };
        let (namespace, name) = (or(namespace, NAMESPACE), or(name, NAME));
        let places = OrderTemplates::compile(OrderTemplates::FIELDS, [to, &namespace, &name])?;
        Ok(Some(Self { selector: words(selector), places, on_delete, without: without.clone() }))
    }
}

/// A selector as it stands in a request.
fn words(selector: &LabelSelector) -> String {
    let equal = selector.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
    let others = selector.match_expressions.iter().map(|one| {
        let (key, values) = (&one.key, one.values.join(","));
        match one.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.clone(),
            // The selector was compiled before, so there is no other one.
            _ => format!("!{key}"),
        }
    });
    equal.chain(others).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::tests::published;

    fn compiled(import: &Value) -> Result<Option<ImportRules>, String> {
        ImportRules::compile(&published(json!({ "import": import }))).map_err(|error| error.to_string())
    }

    #[test]
    fn it_is_off_by_default() {
        assert!(ImportRules::compile(&published(json!({}))).unwrap().is_none());
    }

    #[test]
    fn objects_are_chosen_by_labels_and_never_all_of_them() {
        let import = |selector: Value| compiled(&json!({ "selector": selector, "to": "root:team" }));
        let selector = json!({ "matchLabels": { "a/b": "1", "c": "2" }, "matchExpressions": [
            { "key": "d", "operator": "In", "values": ["x", "y"] }, { "key": "e", "operator": "NotIn", "values": ["z"] },
            { "key": "f", "operator": "Exists" }, { "key": "g", "operator": "DoesNotExist" },
        ]});
        let rules = import(selector).unwrap().unwrap();
        assert_eq!(rules.selector, "a/b=1,c=2,d in (x,y),e notin (z),f,!g");
        assert_eq!(rules.on_delete, OnDelete::Keep);
        let object = json!({ "metadata": { "name": "db", "namespace": "own" } });
        assert_eq!(rules.places.of(&object).unwrap(), ["root:team", "default", "db"]);
        assert!(import(json!({})).unwrap_err().contains("is empty"));
        let near = json!({ "matchExpressions": [{ "key": "d", "operator": "Near" }] });
        assert!(import(near).unwrap_err().starts_with("spec.import.selector: "));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_field() {
        let selector = json!({ "matchLabels": { "import": "yes" } });
        for (field, value, words) in [
            ("to", "", "spec.import.to is empty"),
            ("to", "{{ .Object", "spec.import.to \"{{ .Object\" is not a valid template"),
            ("name", "{{ randAlphaNum 5 }}", "spec.import.name "),
            ("onDelete", "Never", "spec.import.onDelete is \"Never\""),
        ] {
            let mut import = json!({ "selector": selector, "to": "root:team" });
            import[field] = value.into();
            let error = compiled(&import).unwrap_err();
            assert!(error.starts_with(words), "{error}");
        }
        let implements = json!({ "import": { "selector": selector, "to": "root:team" }, "implements": {} });
        let error = ImportRules::compile(&published(implements)).unwrap_err();
        assert!(matches!(error, ImportError::NoWayBack));
    }

    #[test]
    fn an_order_is_named_after_its_object_and_nothing_is_left_out_silently() {
        let object = json!({"metadata": {"name": "db", "namespace": "acme", "labels": {"tenant": "t1"}}});
        let to = "root:orgs:{{ .Object.metadata.labels.tenant }}";
        let name = "{{ .Object.metadata.namespace }}-{{ .Object.metadata.name }}";
        let compile = |to: &str| OrderTemplates::compile(OrderTemplates::FLAGS, [to, NAMESPACE, name]);
        let places = compile(to).unwrap();
        assert_eq!(places.of(&object).unwrap(), ["root:orgs:t1", "default", "acme-db"]);
        let problem = places.of(&json!({"metadata": {"name": "db", "namespace": "acme"}})).unwrap_err();
        assert!(problem.starts_with("--to "), "{problem}");
        let error = compile("{{ .Object").unwrap_err().to_string();
        assert!(error.starts_with("--to \"{{ .Object\" is not a valid template"), "{error}");
        assert!(compile("{{ randAlphaNum 5 }}").is_err(), "whoever repeats the command must find the same place");
    }
}
