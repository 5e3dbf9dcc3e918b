//! Whether consumers decide what of the service cluster the agent reads for them and where it writes for them. Pure.
//!
//! What a consumer writes is in all of her object, and therefore in its copy. The provider's are: the status of a copy, if it is a
//! subresource, the UID, and names that the rules make of nothing but digests and names of workspaces.

use carrick_template::Template;

use super::crd::Crd;
use super::projection::exchanged;
use crate::api::{self, Origin, PublishedResource, Selection};

/// Who determines which fields of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Authorship {
    /// Whether consumers choose the names of copies.
    pub name: bool,
    /// Whether consumers choose the namespaces of copies.
    pub namespace: bool,
    /// Whether consumers can write the status of copies.
    pub status: bool,
}

/// An object that templates read.
#[derive(Clone, Copy)]
enum Read {
    /// The consumer's.
    Source,
    /// The copy.
    Copy,
}

impl Authorship {
    /// Who determines the fields of copies by these names, given whether their status is a subresource.
    pub fn of(naming: Option<&api::Naming>, has_status: bool) -> Self {
        let chosen = |text: &str| chosen_name(text).is_some();
        let (name, namespace) = naming.map(|it| (chosen(&it.name), chosen(&it.namespace))).unwrap_or_default();
        Self { name, namespace, status: !has_status }
    }

    /// The part of a selection on the service cluster that consumers choose; none if the provider alone determines it.
    pub fn chosen(self, selection: &Selection) -> Option<String> {
        if let Some(reference) = &selection.reference {
            let is_literal = reference.regex.as_ref().is_some_and(|rule| rule.pattern.is_empty());
            let segments: Vec<&str> = reference.path.split('.').collect();
            return (!is_literal && self.is_chosen(Read::Copy, &segments)).then(|| reference.path.clone());
        }
        if let Some(selector) = &selection.selector {
            let mut texts = selector.match_labels.iter().flat_map(|(key, value)| [key, value]);
            return texts.find_map(|text| self.in_template(text));
        }
        self.in_template(&selection.template.as_ref()?.template)
    }

    fn in_template(self, text: &str) -> Option<String> {
        if !text.contains("{{") {
            return None;
        }
        // One that is not valid selects nothing.
        let template = Template::compile(text).ok()?;
        let Some(fields) = template.fields_in_clear() else { return Some(text.to_owned()) };
        let is_chosen = |path: &&Vec<String>| {
            let segments: Vec<&str> = path.iter().map(String::as_str).collect();
            match segments.split_first() {
                // The template is rendered for both sides; what it says of the source is only the name in kcp.
                Some((&("Object" | "LocalObject"), rest)) => self.is_chosen(Read::Copy, rest),
                Some((&"RemoteObject", rest)) => self.is_chosen(Read::Source, rest),
                _ => false,
            }
        };
        fields.iter().find(is_chosen).map(|path| format!(".{}", path.join(".")))
    }

    fn is_chosen(self, of: Read, path: &[&str]) -> bool {
        match (of, path) {
            (
                _,
                ["metadata", "uid" | "creationTimestamp" | "generation" | "resourceVersion"] | ["kind" | "apiVersion"],
            ) => false,
            (Read::Copy, ["metadata", "name"]) => self.name,
            (Read::Copy, ["metadata", "namespace"]) => self.namespace,
            (Read::Copy, ["status", _, ..]) => self.status,
            _ => true,
        }
    }
}

/// The part of a pattern of spec.naming that consumers choose.
fn chosen_name(text: &str) -> Option<String> {
    if !text.contains("{{") {
        let bare = text.replace("$remoteNamespaceHash", "").replace("$remoteNameHash", "");
        return ["$remoteNamespace", "$remoteName"].into_iter().find(|it| bare.contains(it)).map(str::to_owned);
    }
    let template = Template::compile(text).ok()?;
    let Some(fields) = template.fields_in_clear() else { return Some(text.to_owned()) };
    let is_chosen = |path: &&Vec<String>| {
        let segments: Vec<&str> = path.iter().map(String::as_str).collect();
        match segments.split_first() {
            Some((&"Object", rest)) => Authorship::default().is_chosen(Read::Source, rest),
            _ => false,
        }
    };
    fields.iter().find(is_chosen).map(|path| format!(".{}", path.join(".")))
}

/// Where consumers choose what of the service cluster they get or where their objects go, each with the field that can mend it. Whoever has
/// set `access` has decided.
pub fn doubts(pr: &PublishedResource, crd: &Crd) -> Vec<String> {
    let Ok(version) = exchanged(pr, crd) else { return Vec::new() };
    let authorship = Authorship::of(pr.spec.naming.as_ref(), version.has_status());
    let mut doubts = Vec::new();
    let naming = pr.spec.naming.as_ref().filter(|_| crd.is_namespaced());
    if let Some(part) = naming.and_then(|naming| chosen_name(&naming.namespace)) {
        doubts.push(format!(
            "spec.naming.namespace: consumers write {part}, so they choose the namespace of the service cluster that their objects go to, and \
             share it with others; make it of .ClusterName"
        ));
    }
    for (at, related) in pr.spec.related.iter().enumerate() {
        if related.access.is_some() {
            continue;
        }
        let at = format!("spec.related[{at}]");
        let namespace = match &related.object.namespace {
            Some(namespace) => authorship.chosen(namespace),
            None => authorship.namespace.then(|| "spec.naming.namespace".to_owned()),
        };
        let name = authorship.chosen(&related.object);
        let way =
            format!("set {at}.access: Owned for what belongs to the copy, Namespace for all in its namespace, or Any");
        match (related.origin, namespace, name) {
            (Origin::Service, Some(part), _) | (Origin::Service, None, Some(part)) => doubts.push(format!(
                "{at}.object: consumers choose by {part} which objects of the service cluster they get; {way}"
            )),
            (Origin::Kcp, Some(part), _) => doubts.push(format!(
                "{at}.object.namespace: consumers choose by {part} where on the service cluster their objects go; {way}"
            )),
            _ => {}
        }
    }
    doubts
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rules::tests::{crontab, published};

    fn entry(origin: &str, object: Value) -> Value {
        json!({"identifier": "a", "origin": origin, "kind": "Secret", "object": object})
    }

    fn told(spec: Value) -> Vec<String> {
        let mut crd = json!({ "metadata": { "name": "crontabs.example.com" }, "spec": crontab().spec });
        crd["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
        doubts(&published(spec), &Crd::from_json(&crd).unwrap())
    }

    #[test]
    fn what_consumers_choose_is_told_with_the_field() {
        let free = json!({"name": "{{ .Object.metadata.name }}"});
        let template = |text: &str| json!({"template": {"template": text}});
        let reference = |path: &str| json!({"reference": {"path": path}});
        let label = |value: &str| json!({"selector": {"matchLabels": {"for": value}, "rewrite": {"regex": {"replacement": "x"}}}});
        for (naming, object, part) in [
            (json!({}), reference("spec.secretName"), Some("by spec.secretName which")),
            (json!({}), reference("metadata.annotations.x"), Some("by metadata.annotations.x which")),
            (json!({}), reference("status.secretName"), None),
            (json!({}), reference("status"), Some("by status which")),
            (
                json!({}),
                json!({"reference": {"path": "spec.x", "regex": {"pattern": "", "replacement": "fixed"}}}),
                None,
            ),
            (json!({}), template("{{ .Object.metadata.name }}-credentials"), None),
            (free.clone(), template("{{ .Object.metadata.name }}-credentials"), Some("by .Object.metadata.name which")),
            (free, template("{{ .Object.metadata.uid }}"), None),
            (json!({"name": "$remoteName"}), template("{{ .Object.metadata.name }}"), Some("by .Object.metadata.name")),
            (json!({"name": "$remoteNameHash"}), template("{{ .Object.metadata.name }}"), None),
            (json!({}), template("{{ .Object.spec.x | sha3short }}"), None),
            (json!({}), template("{{ with .Object }}{{ .spec.x }}{{ end }}"), Some("by .Object which")),
            (json!({}), template("shared"), None),
            (json!({}), label("{{ .RemoteObject.metadata.name }}"), Some("by .RemoteObject.metadata.name which")),
            (json!({}), label("{{ .LocalObject.metadata.uid }}"), None),
            (json!({}), label("fixed"), None),
        ] {
            let spec = |entry: Value| json!({"naming": naming, "related": [entry]});
            let found = told(spec(entry("service", object.clone())));
            match part {
                None => assert_eq!(found, Vec::<String>::new(), "{object}"),
                Some(part) => {
                    assert!(matches!(&found[..], [one] if one.contains(part)), "{object}: {found:?}");
                    assert!(
                        found[0].starts_with("spec.related[0].object: ") && found[0].contains("spec.related[0].access")
                    );
                }
            }
            let mut decided = entry("service", object.clone());
            decided["access"] = "Any".into();
            assert_eq!(told(spec(decided)), Vec::<String>::new(), "{object}");
            assert_eq!(told(spec(entry("kcp", object))), Vec::<String>::new(), "their own objects are theirs to name");
        }
    }

    #[test]
    fn namespaces_that_consumers_choose_are_told() {
        let naming = json!({"namespace": "{{ .Object.metadata.namespace }}"});
        let fixed = json!({"template": {"template": "x"}});
        let found = told(json!({"naming": naming, "related": [entry("service", fixed.clone())]}));
        assert!(found[0].starts_with("spec.naming.namespace: consumers write .Object.metadata.namespace"), "{found:?}");
        assert!(found[1].contains("choose by spec.naming.namespace which"), "{found:?}");
        let mut object = fixed.clone();
        object["namespace"] = json!({"reference": {"path": "spec.place"}});
        let found = told(json!({"related": [entry("kcp", object)]}));
        assert!(matches!(&found[..], [one] if one.starts_with("spec.related[0].object.namespace: ")), "{found:?}");
        for namespace in ["{{ .ClusterName }}", "shared", "{{ .Object.metadata.namespace | sha3short }}", ""] {
            let found = told(json!({"naming": {"namespace": namespace}, "related": [entry("service", fixed.clone())]}));
            assert_eq!(found, Vec::<String>::new(), "{namespace}");
        }
    }

    #[test]
    fn a_status_that_is_no_subresource_is_written_by_consumers() {
        let related = entry("service", json!({"reference": {"path": "status.secretName"}}));
        let found = doubts(&published(json!({"related": [related]})), &crontab());
        assert!(matches!(&found[..], [one] if one.contains("by status.secretName which")), "{found:?}");
    }
}
