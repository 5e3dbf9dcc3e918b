//! Objects of the service cluster that rules look at, compiled: selected like related objects, never copied.

use std::collections::BTreeSet;

use serde_json::Value;
use thiserror::Error;

use super::exposure::Authorship;
use super::mutation::ObjectsRead;
use super::related::{Related, RelatedError};
use super::report::Report;
use crate::api::{Access, Origin, PublishedResource, ReadResource, RelatedResource};

/// Why an entry of `spec.reads`, or a rule that refers to one, is refused.
#[derive(Debug, Error)]
pub enum ReadsError {
    /// The identifier is no name that expressions and templates can write.
    #[error(
        "{at}.identifier: {identifier:?} is no name that rules can write: use at most 63 letters, digits and '_', beginning with a letter or '_'"
    )]
    Identifier {
        /// Field of the PublishedResource.
        at: String,
        /// The identifier.
        identifier: String,
    },
    /// The identifier is used twice.
    #[error("{at}.identifier: {identifier:?} is used by another entry of spec.reads; make it unique")]
    Duplicate {
        /// Field of the PublishedResource.
        at: String,
        /// The identifier.
        identifier: String,
    },
    /// A rule refers to an entry that does not exist.
    #[error("{at}: spec.reads has no entry {identifier:?}; {known}")]
    Unknown {
        /// Field of the PublishedResource.
        at: String,
        /// The identifier.
        identifier: String,
        /// Those there are.
        known: String,
    },
    /// The object cannot be selected like that.
    #[error(transparent)]
    Selection(#[from] RelatedError),
}

/// An entry of `spec.reads`, compiled.
#[derive(Debug, Clone)]
pub struct Read {
    /// Name by which rules refer to it.
    pub identifier: String,
    /// Which object it is. Its identifier says in messages that it is no related object.
    pub rules: Related,
}

/// Compiles all entries, given who determines the names of copies and the namespace of all copies, if there is one.
pub fn compile(pr: &PublishedResource, who: Authorship, copies_in: Option<&str>) -> Result<Vec<Read>, ReadsError> {
    let mut known = BTreeSet::new();
    let mut reads = Vec::new();
    for (i, entry) in pr.spec.reads.iter().enumerate() {
        let (at, identifier) = (format!("spec.reads[{i}]"), entry.identifier.clone());
        if !is_name(&identifier) {
            return Err(ReadsError::Identifier { at, identifier });
        }
        if !known.insert(identifier.clone()) {
            return Err(ReadsError::Duplicate { at, identifier });
        }
        let mut rules = select(&at, entry)?;
        let given = entry.object.selector.is_none() && who.chosen(&entry.object.as_related()).is_none();
        rules.access = Some(access(entry, who));
        reads.push(Read { identifier, rules: rules.determined(given, copies_in) });
    }
    Ok(reads)
}

/// The resource of an entry and how its objects are selected.
pub fn select(at: &str, entry: &ReadResource) -> Result<Related, RelatedError> {
    let related = RelatedResource {
        identifier: format!("reads.{}", entry.identifier),
        origin: Origin::Service,
        group: entry.group.clone(),
        version: entry.version.clone(),
        resource: entry.resource.clone(),
        object: entry.object.as_related(),
        ..RelatedResource::default()
    };
    let mut rules = Related::compile(at, &related)?;
    rules.looked_at = true;
    Ok(rules)
}

/// What an entry reaches. What consumers choose is theirs unless the provider says otherwise.
fn access(entry: &ReadResource, who: Authorship) -> Access {
    let object = entry.object.as_related();
    let in_namespace = match &object.namespace {
        Some(namespace) => who.chosen(namespace).is_some(),
        None => who.namespace,
    };
    let chosen = in_namespace || who.chosen(&object).is_some();
    entry.access.unwrap_or(if chosen { Access::Owned } else { Access::Any })
}

/// Refuses rules that refer to entries that do not exist.
pub fn check_references(reads: &[Read], related: &[Related], report: Option<&Report>) -> Result<(), ReadsError> {
    let in_related = related.iter().flat_map(|entry| entry.mutation.objects_read());
    for ObjectsRead { at, identifier } in in_related.chain(report.into_iter().flat_map(Report::objects_read)) {
        let Some(identifier) = identifier else { continue };
        if !reads.iter().any(|read| read.identifier == identifier) {
            let names: Vec<&str> = reads.iter().map(|read| read.identifier.as_str()).collect();
            let known =
                if names.is_empty() { "it is empty".to_owned() } else { format!("it has {}", names.join(", ")) };
            return Err(ReadsError::Unknown { at, identifier, known });
        }
    }
    Ok(())
}

/// The entries that rules refer to and that have no object now, by what was found.
pub fn lacking(used: &[ObjectsRead], objects: &Value) -> Vec<String> {
    let all = objects.as_object().into_iter().flatten();
    let is_used = |name: &str| used.iter().any(|read| read.identifier.as_deref().is_none_or(|it| it == name));
    all.filter(|(name, object)| object.is_null() && is_used(name)).map(|(name, _)| name.clone()).collect()
}

/// Whether rules refer to entries whose objects could not be read.
pub fn lacking_any(used: &[ObjectsRead], unread: &BTreeSet<String>) -> bool {
    let is_unread = |read: &ObjectsRead| match &read.identifier {
        Some(identifier) => unread.contains(identifier),
        None => !unread.is_empty(),
    };
    used.iter().any(is_unread)
}

fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.len() <= 63
        && text.chars().next().is_some_and(is_letter)
        && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::Rules;
    use crate::rules::related::{NameSource, Primaries};
    use crate::rules::tests::{crontab, published};

    fn compiled(spec: Value) -> Result<Rules, String> {
        Rules::compile(&published(spec), &crontab(), "agent").map_err(|error| error.to_string())
    }

    fn door(object: Value) -> Value {
        json!({"identifier": "door", "version": "v1", "resource": "services", "object": object})
    }

    fn named(template: &str) -> Value {
        json!({"template": {"template": template}})
    }

    #[test]
    fn names_come_from_the_copy_alone() {
        let (remote, local) = (
            json!({"metadata": {"name": "a", "namespace": "n"}}),
            json!({"metadata": {"name": "b", "namespace": "ns"}}),
        );
        let primaries = Primaries { remote: &remote, local: &local, cluster: "c", path: None };
        let pair = |name: &str| NameSource::Pairs(vec![(name.to_owned(), name.to_owned())]);
        for (object, name) in [
            (named("{{ .Object.metadata.name }}{{ if eq .Side \"service\" }}-door{{ end }}"), "b-door"),
            (json!({"reference": {"path": "metadata.name"}}), "b"),
        ] {
            let rules = compiled(json!({"reads": [door(object)]})).unwrap();
            let read = &rules.reads[0].rules;
            assert_eq!(read.names(primaries).unwrap(), pair(name));
            assert_eq!(read.namespaces(primaries).unwrap(), pair("ns"), "the namespace of the copy");
        }
        let labelled = json!({"selector": {"matchLabels": {"of": "{{ .LocalObject.metadata.name }}"}}});
        let rules = compiled(json!({"reads": [door(labelled)]})).unwrap();
        let NameSource::Listed(selector) = rules.reads[0].rules.names(primaries).unwrap() else {
            panic!("no selector")
        };
        assert!(selector.matches_object(&json!({"metadata": {"labels": {"of": "b"}}})));
    }

    #[test]
    fn what_consumers_choose_is_bounded_unless_the_provider_says_otherwise() {
        let free = json!({"name": "{{ .Object.metadata.name }}"});
        for (naming, object, given, wanted) in [
            (json!({}), named("{{ .Object.metadata.name }}-door"), Value::Null, Access::Any),
            (json!({}), named("shared"), Value::Null, Access::Any),
            (json!({}), json!({"reference": {"path": "spec.door"}}), Value::Null, Access::Owned),
            (json!({}), json!({"reference": {"path": "spec.door"}}), json!("Any"), Access::Any),
            (json!({}), json!({"reference": {"path": "spec.door"}}), json!("Namespace"), Access::Namespace),
            (free, named("{{ .Object.metadata.name }}-door"), Value::Null, Access::Owned),
            (
                json!({}),
                json!({"template": {"template": "x"}, "namespace": {"reference": {"path": "spec.place"}}}),
                Value::Null,
                Access::Owned,
            ),
            (json!({"namespace": "{{ .Object.metadata.namespace }}"}), named("x"), Value::Null, Access::Owned),
            (
                json!({}),
                json!({"selector": {"matchLabels": {"of": "{{ .RemoteObject.spec.x }}"}}}),
                Value::Null,
                Access::Owned,
            ),
            (
                json!({}),
                json!({"selector": {"matchLabels": {"of": "{{ .LocalObject.metadata.uid }}"}}}),
                Value::Null,
                Access::Any,
            ),
        ] {
            let mut entry = door(object);
            if !given.is_null() {
                entry["access"] = given;
            }
            let rules = compiled(json!({"naming": naming, "reads": [entry.clone()]})).unwrap();
            assert_eq!(rules.reads[0].rules.access, Some(wanted), "{entry} {naming}");
        }
    }

    #[test]
    fn bad_entries_and_references_name_the_field() {
        let related = |mutation: Value| json!({"identifier": "a", "origin": "service", "kind": "Secret", "object": named("x"), "mutation": {"spec": [mutation]}});
        let cel = |expression: &str| related(json!({"cel": {"path": "a", "expression": expression}}));
        let template = |text: &str| related(json!({"template": {"path": "a", "template": text}}));
        let mut nameless = door(named("x"));
        nameless["identifier"] = "a-b".into();
        for (spec, wanted) in [
            (json!({"reads": [nameless]}), "spec.reads[0].identifier: \"a-b\" is no name that rules can write"),
            (
                json!({"reads": [door(named("x")), door(named("y"))]}),
                "spec.reads[1].identifier: \"door\" is used by another",
            ),
            (json!({"reads": [door(json!({}))]}), "spec.reads[0].object: set one of reference, selector, template"),
            (json!({"reads": [door(named("{{"))]}), "spec.reads[0].object: "),
            (
                json!({"reads": [door(named("x"))], "related": [cel("objects.dor.a")]}),
                "spec.related[0].mutation.spec[0]: spec.reads has no entry \"dor\"; it has door",
            ),
            (
                json!({"related": [template("{{ .Objects.door.a }}")]}),
                "spec.related[0].mutation.spec[0]: spec.reads has no entry \"door\"; it is empty",
            ),
            (
                json!({"mutation": {"spec": [{"cel": {"path": "a", "expression": "objects.door"}}]}}),
                "spec.mutation.spec[0]: ",
            ),
        ] {
            let error = compiled(spec.clone()).unwrap_err();
            assert!(error.starts_with(wanted), "{spec}: {error}");
        }
        for entry in [cel("objects.door.a"), template("{{ .Objects.door.a }}")] {
            compiled(json!({"reads": [door(named("x"))], "related": [entry]})).unwrap();
        }
    }

    #[test]
    fn only_what_rules_refer_to_can_be_lacking() {
        let read =
            |identifier: Option<&str>| ObjectsRead { at: String::new(), identifier: identifier.map(str::to_owned) };
        let objects = json!({"a": null, "b": {"x": 1}, "c": null});
        assert_eq!(lacking(&[read(Some("a")), read(Some("b"))], &objects), ["a"]);
        assert_eq!(lacking(&[read(None)], &objects), ["a", "c"]);
        assert_eq!(lacking(&[], &objects), Vec::<String>::new());
    }
}
