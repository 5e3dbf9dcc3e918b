//! The names that APIs take in a workspace, and clashes between them.

use serde_json::Value;

use super::object::{strings, text};

/// Who has taken a set of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A CRD of the workspace.
    Crd,
    /// A binding, with the path and name of its export.
    Binding {
        /// The binding's name.
        name: String,
        /// `root:provider:export`.
        export: String,
    },
}

/// The names of one API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    group: String,
    plural: String,
    /// Field and value of every other name, such as `kind=Widget`.
    others: Vec<(&'static str, String)>,
    owner: Owner,
}

impl Names {
    /// The names in the spec of a CRD or an APIResourceSchema.
    pub fn of(spec: &Value, owner: Owner) -> Self {
        let one = |field: &'static str| (field, text(spec, &format!("/names/{field}")).to_owned());
        let mut others = vec![one("kind"), one("listKind"), one("singular")];
        others.extend(strings(spec, "/names/shortNames").into_iter().map(|short| ("shortNames", short)));
        others.retain(|(_, value)| !value.is_empty());
        Self { group: text(spec, "/group").to_owned(), plural: text(spec, "/names/plural").to_owned(), others, owner }
    }

    /// The same names, taken by somebody else.
    pub fn taken_by(&self, owner: Owner) -> Self {
        Self { owner, ..self.clone() }
    }
}

/// How `wanted` conflicts with `taken`, if it does. APIs of one group share their names.
pub fn conflicts(wanted: &[Names], taken: &[Names]) -> Option<String> {
    let mut same = Vec::new();
    for api in wanted {
        if let Some(other) = taken.iter().find(|other| other.group == api.group && other.plural == api.plural) {
            let (name, crd) = match &other.owner {
                Owner::Crd => ("", true),
                Owner::Binding { name, .. } => (name.as_str(), false),
            };
            same.push(format!("{}.{}:{{{name} {crd}}}", api.plural, api.group));
        }
    }
    if !same.is_empty() {
        // As Go prints a map.
        same.sort();
        let same = same.join(" ");
        return Some(format!("Unable to bind APIs because they are bound by other APIBindings or CRDs: map[{same}]"));
    }
    for api in wanted {
        for other in taken.iter().filter(|other| other.group == api.group) {
            let Some((field, value)) = api.others.iter().find(|name| other.others.contains(name)) else { continue };
            let owner = match &other.owner {
                Owner::Crd => format!("CustomResourceDefinition \"{}.{}\"", other.plural, other.group),
                Owner::Binding { name, export } => format!("APIBinding \"{name}\" bound to APIExport {export}"),
            };
            return Some(format!("naming conflict with {owner}: spec.names.{field}={value} is forbidden"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn api(plural: &str, kind: &str, short: &str, owner: Owner) -> Names {
        Names::of(
            &json!({"group": "example.io", "names": {"plural": plural, "kind": kind, "shortNames": [short]}}),
            owner,
        )
    }

    #[test]
    fn clashes_are_named_as_kcp_names_them() {
        let other = || Owner::Binding { name: "ex".into(), export: "root:a:b".into() };
        let wanted = [api("widgets", "Widget", "w", Owner::Crd)];
        let cases = [
            (
                api("widgets", "Other", "o", other()),
                Some(
                    "Unable to bind APIs because they are bound by other APIBindings or CRDs: map[widgets.example.io:{ex false}]",
                ),
            ),
            (
                api("gadgets", "Widget", "g", other()),
                Some(
                    "naming conflict with APIBinding \"ex\" bound to APIExport root:a:b: spec.names.kind=Widget is forbidden",
                ),
            ),
            (
                api("gadgets", "Gadget", "w", Owner::Crd),
                Some(
                    "naming conflict with CustomResourceDefinition \"gadgets.example.io\": spec.names.shortNames=w is forbidden",
                ),
            ),
            (api("gadgets", "Gadget", "g", other()), None),
        ];
        for (taken, message) in cases {
            assert_eq!(conflicts(&wanted, &[taken]).as_deref(), message);
        }
    }
}
