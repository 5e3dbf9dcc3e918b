//! Projection: how a kind of the service cluster looks in kcp.

mod versions;

use std::cmp::Ordering;
use std::collections::HashSet;

use thiserror::Error;

use super::admission;
use super::crd::{Crd, Version};
use super::implements::{self, ImplementsError};
use super::ways::way;
use super::withdrawal;
use crate::api::{Projection, PublishedResource, SourceResource};
use versions::VersionError;

/// Why a PublishedResource does not fit its CRD.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ProjectionError {
    /// `resource.version` and `resource.versions` are both set.
    #[error("cannot configure both .version and .versions in as the source of a PublishedResource; remove .version")]
    BothVersions,
    /// The selected version does not exist.
    #[error("CRD does not contain version {0}; `kubectl get crd` shows what there is")]
    NoVersion(String),
    /// None of the selected versions exists.
    #[error("CRD does not contain any of versions [{0}]")]
    NoneOfVersions(String),
    /// The CRD has no versions.
    #[error("CRD contains no versions")]
    NoVersions,
    /// No selected version is served.
    #[error("no CRD version selected that is marked as served")]
    NotServed,
    /// `projection.version` with several versions.
    #[error(
        "cannot project CRD version to a single version {target:?} because it contains {count} versions; use projection.versions"
    )]
    ManyVersions {
        /// The wanted name.
        target: String,
        /// How many versions there are.
        count: usize,
    },
    /// A version of `spec.conversion.versions` cannot be published.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The API that is to be implemented cannot be published.
    #[error(transparent)]
    Implements(#[from] Box<ImplementsError>),
    /// Two versions end up with the same name.
    #[error("CRD contains multiple entries for {0} after applying mutation rules")]
    Duplicate(String),
}

/// The CRD as it looks in kcp.
pub fn project(pr: &PublishedResource, crd: &Crd) -> Result<Crd, ProjectionError> {
    if let Some(implements) = &pr.spec.implements {
        // The schema stays as its owner has written it: whoever orders on behalf of others relies on that. Rules for admission are the agent's.
        let mut out = implements::publish(pr, implements, crd).map_err(Box::new)?;
        mark_storage(&mut out.spec.versions)?;
        return Ok(out);
    }
    let mut out = crd.clone();
    select(&pr.spec.resource, &mut out.spec.versions)?;
    mark_storage(&mut out.spec.versions)?;
    if let Some(projection) = &pr.spec.projection {
        rename_versions(projection, &mut out.spec.versions)?;
        rename(projection, &mut out);
    }
    if let Some(conversion) = &pr.spec.conversion {
        let before = out.spec.versions.len();
        versions::publish(conversion, &mut out.spec.versions)?;
        if out.spec.versions.len() > before {
            out.spec.versions.sort_by(|one, next| compare_versions(&one.name, &next.name));
        }
        mark_storage(&mut out.spec.versions)?;
        out.spec.conversion =
            conversion.webhook.as_ref().filter(|_| out.spec.versions.len() > 1).map(versions::webhook);
    }
    admission::add_to_schemas(pr, &mut out);
    withdrawal::warn(pr, &mut out);
    Ok(out)
}

/// The version of the CRD that is used for reading and writing copies: the one whose counterpart kcp stores.
///
/// Both sides then use the same version; if the service cluster stores another one, its API server converts. Where rules lead from what kcp
/// stores to what the service cluster stores, and back, copies are in the latter.
pub fn exchanged<'a>(pr: &PublishedResource, crd: &'a Crd) -> Result<&'a Version, ProjectionError> {
    let mut selected = crd.spec.versions.clone();
    select(&pr.spec.resource, &mut selected)?;
    mark_storage(&mut selected)?;
    let Some(conversion) = &pr.spec.conversion else {
        let name = in_use(&selected).map(|version| version.name.as_str()).unwrap_or_default();
        return crd.spec.versions.iter().find(|version| version.name == name).ok_or(ProjectionError::NotServed);
    };
    let projected = project(pr, &crd.outline())?;
    let in_kcp = &in_use(&projected.spec.versions).ok_or(ProjectionError::NotServed)?.name;
    let stored = in_use(&crd.spec.versions).ok_or(ProjectionError::NotServed)?;
    let rules: Vec<(&str, &str)> = conversion.rules.iter().map(|rule| (&*rule.from, &*rule.to)).collect();
    let name = name_in_kcp(pr, crd, &stored.name);
    if way(&rules, in_kcp, &name).is_some() && way(&rules, &name, in_kcp).is_some() {
        return Ok(stored);
    }
    let same =
        crd.spec.versions.iter().find(|version| version.served && name_in_kcp(pr, crd, &version.name) == *in_kcp);
    Ok(same.unwrap_or(stored))
}

/// The name that a version of the CRD has in kcp, or would have if it were published.
pub fn name_in_kcp(pr: &PublishedResource, crd: &Crd, name: &str) -> String {
    let Some(projection) = &pr.spec.projection else { return name.to_owned() };
    let renamed = if projection.version.is_empty() {
        projection.versions.get(name).filter(|new| !new.is_empty())
    } else {
        let source = &pr.spec.resource;
        let named = source.version == name || source.versions.iter().any(|version| version == name);
        let only = crd.spec.versions.len() == 1;
        (named || only).then_some(&projection.version)
    };
    renamed.map_or_else(|| name.to_owned(), Clone::clone)
}

/// The version that objects are read and written in: the stored one, or the last one if that is not served.
pub fn in_use(versions: &[Version]) -> Option<&Version> {
    let stored = versions.iter().find(|version| version.storage && version.served);
    stored.or_else(|| versions.iter().rfind(|version| version.served))
}

/// Keeps the selected versions, in the order of the CRD.
fn select(source: &SourceResource, versions: &mut Vec<Version>) -> Result<(), ProjectionError> {
    if !source.version.is_empty() && !source.versions.is_empty() {
        return Err(ProjectionError::BothVersions);
    }
    if versions.is_empty() {
        return Err(ProjectionError::NoVersions);
    }
    if !source.version.is_empty() {
        versions.retain(|v| v.name == source.version);
        if versions.is_empty() {
            return Err(ProjectionError::NoVersion(source.version.clone()));
        }
    } else if !source.versions.is_empty() {
        versions.retain(|v| source.versions.contains(&v.name));
        if versions.is_empty() {
            return Err(ProjectionError::NoneOfVersions(source.versions.join(" ")));
        }
    }
    Ok(())
}

/// If the stored version was not selected, the last served one takes its place.
fn mark_storage(versions: &mut [Version]) -> Result<(), ProjectionError> {
    let Some(last_served) = versions.iter().rposition(|v| v.served) else { return Err(ProjectionError::NotServed) };
    if !versions.iter().any(|v| v.storage) {
        versions[last_served].storage = true;
    }
    Ok(())
}

fn rename_versions(projection: &Projection, versions: &mut [Version]) -> Result<(), ProjectionError> {
    if !projection.version.is_empty() {
        if let [only] = versions {
            only.name.clone_from(&projection.version);
            return Ok(());
        }
        let (target, count) = (projection.version.clone(), versions.len());
        return Err(ProjectionError::ManyVersions { target, count });
    }
    if projection.versions.is_empty() {
        return Ok(());
    }
    let mut seen = HashSet::new();
    for version in versions.iter_mut() {
        if let Some(new) = projection.versions.get(&version.name).filter(|new| !new.is_empty()) {
            version.name.clone_from(new);
        }
        if !seen.insert(version.name.clone()) {
            return Err(ProjectionError::Duplicate(version.name.clone()));
        }
    }
    versions.sort_by(|a, b| compare_versions(&a.name, &b.name));
    Ok(())
}

fn rename(projection: &Projection, crd: &mut Crd) {
    let spec = &mut crd.spec;
    if !projection.group.is_empty() {
        spec.group.clone_from(&projection.group);
    }
    if !projection.kind.is_empty() {
        spec.names.kind.clone_from(&projection.kind);
        spec.names.list_kind = format!("{}List", projection.kind);
        spec.names.singular = projection.kind.to_lowercase();
        spec.names.plural = format!("{}s", spec.names.singular);
    }
    if !projection.plural.is_empty() {
        spec.names.plural.clone_from(&projection.plural);
    }
    if !projection.scope.is_empty() {
        spec.scope.clone_from(&projection.scope);
    }
    if let Some(categories) = &projection.categories {
        spec.names.categories.clone_from(categories);
    }
    if let Some(short_names) = &projection.short_names {
        spec.names.short_names.clone_from(short_names);
    }
    crd.name = format!("{}.{}", spec.names.plural, spec.group);
}

/// Kubernetes' order of versions, ascending: other names first (backwards), then alpha, beta, GA, then by number.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parse_version(a), parse_version(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (None, None) => b.cmp(a),
    }
}

/// Stability (0 alpha, 1 beta, 2 GA), major and minor number of a version such as `v1beta2`.
fn parse_version(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = rest[..digits].parse().ok()?;
    let suffix = &rest[digits..];
    if suffix.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) = match (suffix.strip_prefix("alpha"), suffix.strip_prefix("beta")) {
        (Some(minor), _) => (0, minor),
        (_, Some(minor)) => (1, minor),
        _ => return None,
    };
    let all_digits = !minor.is_empty() && minor.bytes().all(|b| b.is_ascii_digit());
    all_digits.then(|| minor.parse().ok()).flatten().map(|minor| (stability, major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::{crontab, published};
    use serde_json::json;

    #[test]
    fn versions_sort_as_kubernetes_sorts_them() {
        let mut versions = vec!["v2", "v1", "foo10", "v1beta1", "v11", "v2alpha1", "v1beta12", "foo1", "v3beta1"];
        versions.sort_by(|a, b| compare_versions(a, b));
        assert_eq!(versions, ["foo10", "foo1", "v2alpha1", "v1beta1", "v1beta12", "v3beta1", "v1", "v2", "v11"]);
    }

    #[test]
    fn a_new_kind_renames_everything_that_follows_from_it() {
        let pr =
            published(json!({"projection": {"kind": "CronusTabulatus", "plural": "cronustabulati", "scope": "Cluster",
            "version": "v6", "group": "new.io", "shortNames": ["cront"], "categories": []}}));
        let out = project(&pr, &crontab()).unwrap();
        assert_eq!(out.name, "cronustabulati.new.io");
        assert_eq!(out.spec.names.list_kind, "CronusTabulatusList");
        assert_eq!(out.spec.names.singular, "cronustabulatus");
        assert_eq!(out.spec.names.short_names, ["cront"]);
        assert_eq!((out.spec.scope.as_str(), out.spec.versions[0].name.as_str()), ("Cluster", "v6"));
    }

    #[test]
    fn the_last_served_version_becomes_the_stored_one() {
        let mut crd = crontab();
        let mut v2 = crd.spec.versions[0].clone();
        crd.spec.versions[0].storage = false;
        v2.name = "v2".into();
        crd.spec.versions.push(v2);
        let out = project(
            &published(json!({"resource": {"apiGroup": "example.com", "kind": "CronTab", "version": "v1"}})),
            &crd,
        )
        .unwrap();
        assert_eq!(out.spec.versions.len(), 1);
        assert!(out.spec.versions[0].storage);
    }

    #[test]
    fn objects_are_exchanged_in_the_version_that_is_published() {
        let version =
            |name: &str, served, storage| Version { name: name.into(), served, storage, ..Version::default() };
        let crd = |versions: [Version; 3]| {
            let mut crd = crontab();
            crd.spec.versions = versions.into();
            crd
        };
        let stored_last = crd([version("v1", true, false), version("v2", true, false), version("v3", true, true)]);
        let unserved = crd([version("v1", true, false), version("v2", true, false), version("v3", false, true)]);
        for (crd, versions, exchanged_in, in_kcp) in [
            (&stored_last, json!([]), "v3", "new3"),
            (&stored_last, json!(["v3", "v1"]), "v3", "new3"),
            (&stored_last, json!(["v1"]), "v1", "new1"),
            (&stored_last, json!(["v1", "v2"]), "v2", "v2"),
            (&unserved, json!([]), "v2", "v2"),
        ] {
            let pr = published(json!({
                "resource": {"apiGroup": "example.com", "kind": "CronTab", "versions": versions},
                "projection": {"versions": {"v1": "new1", "v3": "new3"}},
            }));
            assert_eq!(exchanged(&pr, crd).unwrap().name, exchanged_in, "{versions}");
            let projected = project(&pr, crd).unwrap();
            assert_eq!(in_use(&projected.spec.versions).unwrap().name, in_kcp, "{versions}");
        }
    }

    #[test]
    fn copies_are_in_what_the_service_cluster_stores_if_rules_lead_there() {
        let version =
            |name: &str, served, storage| Version { name: name.into(), served, storage, ..Version::default() };
        let mut crd = crontab();
        crd.spec.versions = vec![version("v1alpha1", true, false), version("v1", true, true)];
        let both = json!([{"from": "v1alpha1", "to": "v1"}, {"from": "v1", "to": "v1alpha1"}]);
        let extra = json!([{"name": "v2", "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]);
        for (versions, extra, rules, expected) in [
            (json!(["v1alpha1"]), json!([]), json!([]), ("v1alpha1", "v1alpha1")),
            (json!(["v1alpha1"]), json!([]), both.clone(), ("v1", "v1alpha1")),
            (json!(["v1alpha1"]), json!([]), json!([both[0]]), ("v1alpha1", "v1alpha1")),
            (json!([]), json!([]), both.clone(), ("v1", "v1")),
            (json!([]), json!([{"name": "v1alpha1", "storage": true}]), both.clone(), ("v1", "v1alpha1")),
            (json!(["v1alpha1"]), extra, both.clone(), ("v1", "v2")),
        ] {
            let pr = published(json!({
                "resource": {"apiGroup": "example.com", "kind": "CronTab", "versions": versions},
                "conversion": {"versions": extra, "rules": rules},
            }));
            let projected = project(&pr, &crd).unwrap();
            let in_kcp = &in_use(&projected.spec.versions).unwrap().name;
            assert_eq!((exchanged(&pr, &crd).unwrap().name.as_str(), in_kcp.as_str()), expected, "{rules}");
        }
    }

    #[test]
    fn versions_of_the_conversion_are_added_and_replace_what_they_name() {
        let project = |versions: serde_json::Value| {
            project(&published(json!({"conversion": {"versions": versions}})), &crontab()).map(|crd| crd.spec.versions)
        };
        let out = project(json!([{"name": "v1", "deprecated": true, "deprecationWarning": "w"}])).unwrap();
        assert!(out.len() == 1 && out[0].deprecated && out[0].served && out[0].storage && out[0].schema.is_some());
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let out = project(json!([{"name": "v2", "storage": true, "schema": schema}, {"name": "v1", "served": false}]));
        let told: Vec<_> = out.unwrap().into_iter().map(|it| (it.name, it.served, it.storage)).collect();
        assert_eq!(told, [("v1".to_owned(), false, false), ("v2".to_owned(), true, true)]);
        for (versions, expected) in [
            (json!([{"name": "v2"}]), "spec.conversion.versions: v2: the CRD has no such version"),
            (
                json!([{"name": "v2", "storage": true, "schema": schema}, {"name": "v1", "storage": true}]),
                "spec.conversion.versions: v1: several versions with storage: true",
            ),
            (json!([{"name": "v2", "schema": 1}]), "spec.conversion.versions: v2: invalid type"),
        ] {
            let error = project(versions).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_reason() {
        let cases = [
            (json!({"resource": {"version": "v1", "versions": ["v1"]}}), ProjectionError::BothVersions),
            (json!({"resource": {"version": "v9"}}), ProjectionError::NoVersion("v9".into())),
            (json!({"resource": {"versions": ["v8", "v9"]}}), ProjectionError::NoneOfVersions("v8 v9".into())),
        ];
        for (spec, expected) in cases {
            assert_eq!(project(&published(spec), &crontab()), Err(expected));
        }
        let mut unserved = crontab();
        unserved.spec.versions[0].served = false;
        assert_eq!(project(&published(json!({})), &unserved), Err(ProjectionError::NotServed));
    }

    #[test]
    fn renamed_versions_are_sorted_and_must_differ() {
        let mut crd = crontab();
        crd.spec.names.categories = vec!["all".into()];
        let v2 = Version { name: "v2".into(), storage: false, ..crd.spec.versions[0].clone() };
        crd.spec.versions.push(v2);
        let renamed = |versions: serde_json::Value| {
            project(&published(json!({"projection": {"versions": versions, "categories": ["own"]}})), &crd)
        };
        let out = renamed(json!({"v1": "v9", "v2": "v3"})).unwrap();
        assert_eq!(out.spec.versions.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["v3", "v9"]);
        assert_eq!(out.spec.names.categories, ["own"], "others are replaced");
        assert_eq!(renamed(json!({"v1": "v2"})), Err(ProjectionError::Duplicate("v2".into())));
    }
}
