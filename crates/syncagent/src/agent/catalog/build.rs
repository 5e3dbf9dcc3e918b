//! From PublishedResources and CRDs to the catalog. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_kcp::apis::split_schema_name;

use super::{Catalog, Entry, Problem};
use crate::api::PublishedResource;
use crate::rules::Rules;
use crate::rules::crd::Crd;
use crate::rules::{fields, projection, schema};

/// A PublishedResource as it was read.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    /// When it was created; older ones win conflicts.
    pub(super) created: String,
    /// The object, or why it cannot be read.
    pub(super) pr: Result<Arc<PublishedResource>, String>,
}

/// A CRD as it was read.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// API group.
    pub(super) group: String,
    /// Kind.
    pub(super) kind: String,
    /// Version of the stored object.
    pub(super) resource_version: String,
    /// Its content, kept only while somebody publishes it; or why it cannot be read.
    pub(super) crd: Option<Result<Arc<Crd>, Problem>>,
}

/// What an entry was made from: the same origin makes the same entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    uid: String,
    generation: i64,
    crd_version: String,
}

/// Builds the catalog; entries whose origin did not change are taken over from the previous one.
pub(super) fn build(
    previous: &Catalog,
    resources: &BTreeMap<String, Listed>,
    crds: &BTreeMap<String, Known>,
    agent_name: &str,
) -> Catalog {
    let mut catalog = Catalog::default();
    // Whoever is published under a name already keeps it, then the older one: restarts decide the same way.
    let mut order: Vec<_> = resources.iter().collect();
    let made: BTreeMap<&str, _> = resources
        .iter()
        .map(|(name, listed)| (name.as_str(), entry(previous.entries.get(name), listed, crds, agent_name)))
        .collect();
    order.sort_by_key(|(name, listed)| {
        let holds = match (&listed.pr, &made[name.as_str()]) {
            (Ok(pr), Ok(entry)) => same_resource(&pr.status.resource_schema_name, &entry.schema_name),
            _ => false,
        };
        (!holds, listed.created.as_str(), name.as_str())
    });

    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for (name, listed) in order {
        if let Ok(pr) = &listed.pr {
            catalog.resources.insert(name.clone(), Arc::clone(pr));
        }
        let made = made[name.as_str()].clone().and_then(|entry| match taken.get(&resource_of(&entry.schema_name)) {
            Some(holder) => Err(conflict(&entry, holder)),
            None => Ok(entry),
        });
        let kept = match made {
            Ok(entry) => {
                // New rules that do not compile leave the old ones at work.
                let old = previous.entries.get(name).filter(|old| entry.rules.is_err() && old.rules.is_ok());
                if let Err(problem) = &entry.rules {
                    let message = format!("{problem}; correct it: {}", until_then(&entry, old));
                    catalog.problems.insert(name.clone(), Problem { reason: "InvalidRules", message });
                }
                Some(old.cloned().unwrap_or(entry))
            }
            Err(problem) => {
                catalog.problems.insert(name.clone(), problem);
                previous.entries.get(name).cloned()
            }
        };
        if let Some(entry) = kept {
            // A fallback may find its name taken as well.
            if *taken.entry(resource_of(&entry.schema_name)).or_insert(name) == name {
                catalog.entries.insert(name.clone(), entry);
            }
        }
    }
    catalog
}

/// The entry for one PublishedResource, without a look at the others.
fn entry(
    previous: Option<&Entry>,
    listed: &Listed,
    crds: &BTreeMap<String, Known>,
    agent_name: &str,
) -> Result<Entry, Problem> {
    let pr = listed.pr.clone().map_err(|problem| Problem {
        reason: "Unreadable",
        message: format!("{problem}; apply the current CRD of PublishedResources, or correct this one"),
    })?;
    let wanted = &pr.spec.resource;
    let known = find(crds, &wanted.api_group, &wanted.kind).ok_or_else(|| Problem {
        reason: "KindNotFound",
        message: format!(
            "failed to discover resource defined in PublishedResource: could not find {}.{} in APIs: \
             neither a CustomResourceDefinition nor an API server defines it; install its CRD, or correct spec.resource",
            wanted.kind, wanted.api_group
        ),
    })?;
    let crd = match &known.crd {
        Some(Ok(crd)) => Arc::clone(crd),
        Some(Err(problem)) => return Err(problem.clone()),
        None => {
            let message = format!("{}.{} is being read", wanted.kind, wanted.api_group);
            return Err(Problem { reason: "Pending", message });
        }
    };
    let origin = Origin {
        uid: pr.metadata.uid.clone(),
        generation: pr.metadata.generation,
        crd_version: known.resource_version.clone(),
    };
    if let Some(previous) = previous.filter(|previous| previous.origin == origin) {
        return Ok(Entry { pr, ..previous.clone() });
    }
    let projected = projection::project(&pr, &crd).map_err(|error| Problem {
        reason: "InvalidProjection",
        message: format!("failed to apply projection rules: {error}"),
    })?;
    let schema_name = schema::name(&projected)
        .map_err(|error| Problem { reason: "InvalidProjection", message: error.to_string() })?;
    let rules = Rules::compile(&pr, &crd, agent_name).map(|rules| Rules { schema: schema_name.clone(), ..rules });
    let rules = rules.map(Arc::new).map_err(|error| error.to_string());
    let doubts = fields::doubts(&pr, &crd);
    Ok(Entry { pr, crd, projected: Arc::new(projected), schema_name, rules, doubts, origin })
}

/// What happens while the rules are not valid.
fn until_then(entry: &Entry, old: Option<&Entry>) -> String {
    match old {
        Some(old) => format!("until then the rules of generation {} stay at work", old.pr.metadata.generation),
        None if entry.is_publishable(&entry.pr) => {
            "until then objects are left as they are, and deleted ones go with their copies".to_owned()
        }
        None => "until then it is not published".to_owned(),
    }
}

/// The CRD that defines a kind.
fn find<'a>(crds: &'a BTreeMap<String, Known>, group: &str, kind: &str) -> Option<&'a Known> {
    crds.values().find(|known| known.group == group && known.kind == kind)
}

fn conflict(entry: &Entry, holder: &str) -> Problem {
    Problem {
        reason: "Conflict",
        message: format!(
            "{} is published by PublishedResource {holder:?} already; give this one another spec.projection.group or \
             spec.projection.plural, or delete one of the two",
            resource_of(&entry.schema_name)
        ),
    }
}

/// `<plural>.<group>` of a schema name.
fn resource_of(schema_name: &str) -> String {
    split_schema_name(schema_name)
        .map_or_else(|| schema_name.to_owned(), |(_, resource, group)| format!("{resource}.{group}"))
}

fn same_resource(left: &str, right: &str) -> bool {
    !left.is_empty() && resource_of(left) == resource_of(right)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rules::tests::crontab;

    fn listed(name: &str, created: &str, generation: i64, spec: &Value) -> (String, Listed) {
        let mut object = json!({
            "metadata": { "name": name, "uid": format!("uid-{name}"), "generation": generation },
            "spec": { "resource": { "apiGroup": "example.com", "kind": "CronTab" }, "naming": { "name": "$remoteName", "namespace": "n" } },
        });
        for (key, value) in spec.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        let pr = serde_json::from_value(object).unwrap();
        (name.to_owned(), Listed { created: created.to_owned(), pr: Ok(Arc::new(pr)) })
    }

    fn crds() -> BTreeMap<String, Known> {
        let crd = crontab();
        let known = Known {
            group: crd.spec.group.clone(),
            kind: crd.spec.names.kind.clone(),
            resource_version: "1".to_owned(),
            crd: Some(Ok(Arc::new(crd))),
        };
        BTreeMap::from([("crontabs.example.com".to_owned(), known)])
    }

    fn built(previous: &Catalog, resources: impl IntoIterator<Item = (String, Listed)>) -> Catalog {
        build(previous, &resources.into_iter().collect(), &crds(), "agent")
    }

    fn reasons(catalog: &Catalog) -> Vec<(&str, &str)> {
        catalog.problems.iter().map(|(name, problem)| (name.as_str(), problem.reason)).collect()
    }

    fn rules_of<'a>(catalog: &'a Catalog, name: &str) -> &'a Arc<Rules> {
        catalog.entries[name].rules.as_ref().unwrap()
    }

    #[test]
    fn a_broken_one_does_not_hinder_the_others() {
        let missing = json!({ "resource": { "apiGroup": "no.example", "kind": "Backup" } });
        let unreadable = Listed { created: "1".to_owned(), pr: Err("not an object".to_owned()) };
        let catalog = built(
            &Catalog::default(),
            [
                listed("good", "1", 1, &json!({})),
                listed("missing", "1", 1, &missing),
                listed(
                    "version",
                    "1",
                    1,
                    &json!({ "resource": { "apiGroup": "example.com", "kind": "CronTab", "versions": ["v9"] } }),
                ),
                listed(
                    "rules",
                    "1",
                    1,
                    &json!({ "projection": { "group": "b.example" }, "mutation": { "spec": [{}] } }),
                ),
                ("unreadable".to_owned(), unreadable),
            ],
        );
        let wanted = [
            ("missing", "KindNotFound"),
            ("rules", "InvalidRules"),
            ("unreadable", "Unreadable"),
            ("version", "InvalidProjection"),
        ];
        assert_eq!(reasons(&catalog), wanted);
        assert_eq!(catalog.entries.keys().collect::<Vec<_>>(), ["good", "rules"]);
        assert_eq!(catalog.entries["good"].schema_name, "v0595d221.crontabs.example.com");
        assert!(catalog.entries["rules"].rules.is_err(), "its schema is fine, its rules are not");
        let told = &catalog.problems["rules"].message;
        assert!(told.ends_with("; correct it: until then it is not published"), "{told}");
        assert_eq!(catalog.resources.len(), 4);
    }

    #[test]
    fn rules_are_compiled_once_per_generation() {
        let first = built(&Catalog::default(), [listed("a", "1", 1, &json!({}))]);
        let same = built(&first, [listed("a", "1", 1, &json!({}))]);
        assert!(Arc::ptr_eq(rules_of(&first, "a"), rules_of(&same, "a")));
        let edited = built(&same, [listed("a", "1", 2, &json!({}))]);
        assert!(!Arc::ptr_eq(rules_of(&same, "a"), rules_of(&edited, "a")));
    }

    #[test]
    fn an_invalid_edit_leaves_the_last_valid_entry_in_place() {
        let good = built(&Catalog::default(), [listed("a", "1", 1, &json!({}))]);
        for edit in [
            json!({ "mutation": { "spec": [{}] } }),
            json!({ "resource": { "apiGroup": "no.example", "kind": "CronTab" } }),
            json!({ "projection": { "version": "v2", "plural": "Not/Valid" } }),
        ] {
            let edited = built(&good, [listed("a", "1", 2, &edit)]);
            assert_eq!(edited.problems.len(), 1, "{edit}");
            let Problem { reason, message } = &edited.problems["a"];
            assert!(
                *reason != "InvalidRules" || message.ends_with("the rules of generation 1 stay at work"),
                "{message}"
            );
            assert!(Arc::ptr_eq(rules_of(&good, "a"), rules_of(&edited, "a")), "{edit}");
            let repaired = built(&edited, [listed("a", "1", 3, &json!({}))]);
            assert!(repaired.problems.is_empty());
            assert_eq!(repaired.entries["a"].pr.metadata.generation, 3);
        }
    }

    #[test]
    fn of_two_for_one_name_the_holder_wins_then_the_older() {
        let old = || listed("old", "2026-01-01", 1, &json!({}));
        let young = || listed("young", "2026-01-02", 1, &json!({}));
        let catalog = built(&Catalog::default(), [young(), old()]);
        assert_eq!(reasons(&catalog), [("young", "Conflict")]);
        assert_eq!(catalog.entries.keys().collect::<Vec<_>>(), ["old"]);

        let (name, mut holder) = young();
        let mut pr = holder.pr.as_deref().unwrap().clone();
        pr.status.resource_schema_name = "v1.crontabs.example.com".to_owned();
        holder.pr = Ok(Arc::new(pr));
        assert_eq!(reasons(&built(&Catalog::default(), [old(), (name, holder)])), [("old", "Conflict")]);

        let later = built(&catalog, [young()]);
        assert!(later.problems.is_empty());
        assert_eq!(later.entries.keys().collect::<Vec<_>>(), ["young"]);
    }
}
