//! From PublishedResources and CRDs to the catalog. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_kcp::apis::split_schema_name;

use super::definition::Definition;
use super::entry::{Catalog, CatalogEntry, Problem};
use crate::api::{APPROVED_MAPPING, PublishedResource};
use crate::rules::crd::{Crd, CrdError};
use crate::rules::{AgentDefaults, Rules};
use crate::rules::{exposure, fields, gate, implements, projection, proof, report, schema, withdrawal};

/// A PublishedResource as it was read.
#[derive(Debug, Clone)]
pub(super) struct ListedResource {
    /// When it was created; older ones win conflicts.
    pub(super) created: String,
    /// The object, or why it cannot be read.
    pub(super) pr: Result<Arc<PublishedResource>, String>,
}

/// What an entry was built from: the same origin yields the same entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    uid: String,
    generation: i64,
    version: String,
    /// Annotations do not count as a generation of their own.
    withdrawal: Option<String>,
    /// What decides which schema is exported, if one was rejected.
    gate: Option<[Option<String>; 4]>,
    /// What decides which steps of `spec.implements` are at work.
    mapping: [Option<String>; 2],
}

impl Origin {
    /// A PublishedResource, and the version of the definition behind it.
    pub(super) fn of(pr: &PublishedResource, version: &str) -> Self {
        let meta = &pr.metadata;
        let (uid, generation, withdrawal) = (meta.uid.clone(), meta.generation, withdrawal::notice(pr));
        let mapping = [
            pr.status.mapping.as_ref().map(|mapping| mapping.digest.clone()),
            meta.annotations.get(APPROVED_MAPPING).cloned(),
        ];
        Self { uid, generation, version: version.to_owned(), withdrawal, gate: gate::rejection(pr), mapping }
    }
}

/// The entry of a PublishedResource, or why there is none.
pub(super) type EntryResult = Result<CatalogEntry, Problem>;

/// The entries that were built, so that definitions are read only when something about them has changed.
#[derive(Debug, Default)]
pub(super) struct EntryCache(BTreeMap<String, (Origin, EntryResult)>);

impl EntryCache {
    /// Whether the entry for a PublishedResource and this version of its definition is built already.
    pub(super) fn is_current(&self, pr: &PublishedResource, version: &str) -> bool {
        self.0.get(&pr.metadata.name).is_some_and(|(origin, _)| *origin == Origin::of(pr, version))
    }

    /// The entry for a PublishedResource and this version of its definition.
    pub(super) fn get(&self, pr: &Arc<PublishedResource>, version: &str) -> Option<EntryResult> {
        let (origin, outcome) = self.0.get(&pr.metadata.name)?;
        let current = *origin == Origin::of(pr, version);
        current.then(|| outcome.clone().map(|entry| CatalogEntry { pr: Arc::clone(pr), ..entry }))
    }

    /// Builds the entry for a PublishedResource.
    pub(super) fn make(
        &mut self,
        pr: &Arc<PublishedResource>,
        version: &str,
        crd: &Result<Crd, CrdError>,
        definition: &Definition,
        defaults: &AgentDefaults,
    ) {
        let outcome = match crd {
            Ok(crd) => entry(pr, crd, definition, defaults),
            Err(error) => Err(Problem { reason: "InvalidCRD", message: error.to_string() }),
        };
        self.0.insert(pr.metadata.name.clone(), (Origin::of(pr, version), outcome));
    }

    /// Forgets PublishedResources that are gone.
    pub(super) fn retain(&mut self, exists: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| exists(name));
    }
}

/// Builds the catalog from the entries of all PublishedResources.
pub(super) fn build(
    previous: &Catalog,
    resources: &BTreeMap<String, ListedResource>,
    made: &BTreeMap<&str, EntryResult>,
) -> Catalog {
    let mut catalog = Catalog::default();
    // The one that is published under a name already keeps it, else the older one gets it: restarts decide the same way.
    let mut order: Vec<_> = resources.iter().collect();
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
                // If new rules do not compile, the old ones stay in use.
                let old = previous.entries.get(name).filter(|old| entry.rules.is_err() && old.rules.is_ok());
                if let Err(problem) = &entry.rules {
                    let message = format!("{problem}; correct it: {}", until_then(&entry, old));
                    catalog.problems.insert(name.clone(), Problem { reason: "InvalidRules", message });
                }
                Some(match old.cloned() {
                    // What is doubtful is said of the rules as they are written.
                    Some(old) => CatalogEntry { doubts: entry.doubts, ignored: entry.ignored, ..old },
                    None => entry,
                })
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

/// The entry for one PublishedResource, regardless of the others.
fn entry(pr: &Arc<PublishedResource>, crd: &Crd, definition: &Definition, defaults: &AgentDefaults) -> EntryResult {
    let projected = projection::project(pr, crd).map_err(|error| Problem {
        reason: "InvalidProjection",
        message: format!("failed to apply projection rules: {error}"),
    })?;
    let schema_name = schema::name(&projected)
        .map_err(|error| Problem { reason: "InvalidProjection", message: error.to_string() })?;
    let outline = crd.outline();
    let rules = Rules::compile(pr, &outline, &defaults.agent_name)
        .and_then(|rules| rules.admitting(pr, &projected))
        .map(|rules| Rules {
            schema: schema_name.clone(),
            rolled_back: gate::is_rolled_back(pr, &schema_name),
            ..rules.with_defaults(pr, defaults)
        });
    let rules = rules.map(Arc::new).map_err(|error| error.to_string());
    // Only whole schemas show which fields objects can have.
    let mut doubts = fields::doubts(pr, crd);
    doubts.extend(proof::doubts(pr, crd));
    doubts.extend(exposure::doubts(pr, crd));
    doubts.extend(report::doubts(pr, crd));
    doubts.extend(implements::proof::doubts(pr, crd));
    Ok(CatalogEntry {
        pr: Arc::clone(pr),
        crd: Arc::new(outline),
        definition: definition.clone(),
        schema_name,
        rules,
        doubts,
        ignored: implements::proof::ignored(pr, crd),
    })
}

/// A PublishedResource that cannot be read.
pub(super) fn unreadable(problem: &str) -> Problem {
    Problem {
        reason: "Unreadable",
        message: format!("{problem}; apply the current CRD of PublishedResources, or correct this one"),
    }
}

/// Nothing defines the kind.
pub(super) fn not_found(pr: &PublishedResource) -> Problem {
    let wanted = &pr.spec.resource;
    Problem {
        reason: "KindNotFound",
        message: format!(
            "failed to discover resource defined in PublishedResource: could not find {}.{} in APIs: \
             neither a CustomResourceDefinition nor an API server defines it; install its CRD, or correct spec.resource",
            wanted.kind, wanted.api_group
        ),
    }
}

/// What happens while the rules are not valid.
fn until_then(entry: &CatalogEntry, old: Option<&CatalogEntry>) -> String {
    match old {
        Some(old) => format!("until then the rules of generation {} stay at work", old.pr.metadata.generation),
        None if entry.is_publishable(&entry.pr) => {
            "until then objects are left as they are, and deleted ones go with their copies".to_owned()
        }
        None => "until then it is not published".to_owned(),
    }
}

/// The definition is still being read.
pub(super) fn pending(pr: &PublishedResource) -> Problem {
    let wanted = &pr.spec.resource;
    Problem { reason: "Pending", message: format!("{}.{} is being read", wanted.kind, wanted.api_group) }
}

fn conflict(entry: &CatalogEntry, holder: &str) -> Problem {
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

    fn listed(name: &str, created: &str, generation: i64, spec: &Value) -> (String, ListedResource) {
        let mut object = json!({
            "metadata": { "name": name, "uid": format!("uid-{name}"), "generation": generation },
            "spec": { "resource": { "apiGroup": "example.com", "kind": "CronTab" }, "naming": { "name": "$remoteName", "namespace": "n" } },
        });
        for (key, value) in spec.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        let pr = serde_json::from_value(object).unwrap();
        (name.to_owned(), ListedResource { created: created.to_owned(), pr: Ok(Arc::new(pr)) })
    }

    /// What there is if nothing but CronTabs are defined.
    fn built(previous: &Catalog, resources: impl IntoIterator<Item = (String, ListedResource)>) -> Catalog {
        built_with(&mut EntryCache::default(), previous, resources)
    }

    fn built_with(
        made: &mut EntryCache,
        previous: &Catalog,
        resources: impl IntoIterator<Item = (String, ListedResource)>,
    ) -> Catalog {
        let (resources, crd) = (resources.into_iter().collect::<BTreeMap<_, _>>(), Ok(crontab()));
        let definition = Definition::Crd("crontabs.example.com".to_owned());
        let outcomes = resources.iter().map(|(name, listed)| {
            let outcome = match &listed.pr {
                Err(problem) => Err(unreadable(problem)),
                Ok(pr) if pr.spec.resource.api_group != "example.com" => Err(not_found(pr)),
                Ok(pr) => {
                    if !made.is_current(pr, "1") {
                        made.make(pr, "1", &crd, &definition, &AgentDefaults::default());
                    }
                    made.get(pr, "1").unwrap()
                }
            };
            (name.as_str(), outcome)
        });
        let outcomes = outcomes.collect();
        build(previous, &resources, &outcomes)
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
        let unreadable = ListedResource { created: "1".to_owned(), pr: Err("not an object".to_owned()) };
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
        let mut made = EntryCache::default();
        let first = built_with(&mut made, &Catalog::default(), [listed("a", "1", 1, &json!({}))]);
        let same = built_with(&mut made, &first, [listed("a", "1", 1, &json!({}))]);
        assert!(Arc::ptr_eq(rules_of(&first, "a"), rules_of(&same, "a")));
        let edited = built_with(&mut made, &same, [listed("a", "1", 2, &json!({}))]);
        assert!(!Arc::ptr_eq(rules_of(&same, "a"), rules_of(&edited, "a")));
    }

    #[test]
    fn no_schema_stays_in_memory() {
        let catalog = built(&Catalog::default(), [listed("a", "1", 1, &json!({}))]);
        let crd = &catalog.entries["a"].crd;
        assert!(crd.spec.versions.iter().all(|version| version.schema.is_none()), "{crd:?}");
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
    fn what_is_doubtful_is_said_of_the_rules_as_they_are_written() {
        let naming = |name: &str| json!({ "naming": { "name": name, "namespace": "n" } });
        let doubtful = built(&Catalog::default(), [listed("a", "1", 1, &naming("{{ .Object.spec.nowhere }}"))]);
        assert_eq!(doubtful.entries["a"].doubts.len(), 1);
        let broken = built(&doubtful, [listed("a", "1", 2, &naming("{{ nonsense }}"))]);
        assert_eq!((broken.entries["a"].doubts.as_slice(), broken.problems.len()), ([].as_slice(), 1));
        assert!(Arc::ptr_eq(rules_of(&doubtful, "a"), rules_of(&broken, "a")));
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
