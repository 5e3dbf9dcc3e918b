//! The gate: which schema is exported when the CRD has changed. Pure.

use carrick_kcp::apis::split_schema_name;

use crate::api::{APPROVED_SCHEMA, PublishedResource, REJECTED_SCHEMA, ROLLED_BACK};

/// What is to be done with a schema that has just been computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage<'a> {
    /// It is exported.
    Open,
    /// It is exported if it harms nobody in comparison with this one, which is exported now.
    Judged(&'a str),
    /// This one is exported.
    Closed(&'a str),
}

/// Decides about the schema that follows from the CRD of today. `before` is the one that represents the PublishedResource in this kcp.
pub fn passage<'a>(pr: &'a PublishedResource, computed: &str, before: Option<&'a str>) -> Passage<'a> {
    let named = |annotation: &str| pr.metadata.annotations.get(annotation).map(String::as_str);
    let Some(before) = before.filter(|before| pr.is_gated() && same_resource(before, computed)) else {
        return Passage::Open;
    };
    let (approved, rejected) = (named(APPROVED_SCHEMA), named(REJECTED_SCHEMA));
    if rejected == Some(computed) && approved != Some(computed) {
        let back = approved.filter(|approved| same_resource(approved, computed));
        return Passage::Closed(back.unwrap_or(before));
    }
    if before == computed || approved == Some(computed) {
        return Passage::Open;
    }
    if pr.spec.schema_updates == "Compatible" { Passage::Judged(before) } else { Passage::Closed(before) }
}

/// Whether kcp serves an older schema again, or will in a moment, because the one that follows from the CRD was rejected; or whether it did so and nobody
/// has said since that orders may lose what was hidden.
pub fn is_rolled_back(pr: &PublishedResource, computed: &str) -> bool {
    let Some([noted, rejected, approved, exported]) = rejection(pr) else { return false };
    if noted.is_some() {
        return true;
    }
    if rejected.is_none() || !pr.is_gated() {
        return false;
    }
    let is_computed = |name: Option<String>| name.as_deref() == Some(computed);
    !is_computed(approved) && (is_computed(rejected) || !is_computed(exported))
}

/// What decides about that: the schema that was rolled back, the one that was rejected, the one that was approved, and the one that is exported. None if
/// there was no rollback.
pub fn rejection(pr: &PublishedResource) -> Option<[Option<String>; 4]> {
    let named = |annotation: &str| pr.metadata.annotations.get(annotation).cloned();
    let exported = Some(pr.status.resource_schema_name.clone()).filter(|name| !name.is_empty());
    let (noted, rejected) = (named(ROLLED_BACK), named(REJECTED_SCHEMA));
    (noted.is_some() || rejected.is_some()).then(|| [noted, rejected, named(APPROVED_SCHEMA), exported])
}

/// Whether two schemas are of the same resource.
pub fn same_resource(one: &str, other: &str) -> bool {
    let resource = |name: &str| split_schema_name(name).map(|(_, resource, group)| format!("{resource}.{group}"));
    resource(one).is_some() && resource(one) == resource(other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_passes_as_the_published_resource_says() {
        let (old, new, other) = ("v1.as.x.io", "v2.as.x.io", "v0.as.x.io");
        for (mode, approved, rejected, before, wanted) in [
            ("", "", "", Some(old), Passage::Open),
            ("Always", "", new, Some(old), Passage::Open),
            ("Compatible", "", "", None, Passage::Open),
            ("Compatible", "", "", Some(old), Passage::Judged(old)),
            ("Manual", "", "", Some(old), Passage::Closed(old)),
            ("Manual", "", "", None, Passage::Open),
            ("Manual", "", "", Some(new), Passage::Open),
            // Another resource: nobody has the old one in its place.
            ("Manual", "", "", Some("v1.bs.x.io"), Passage::Open),
            ("Manual", new, "", Some(old), Passage::Open),
            ("Compatible", new, "", Some(old), Passage::Open),
            // Approved was another one.
            ("Compatible", other, "", Some(old), Passage::Judged(old)),
            ("Manual", other, "", Some(old), Passage::Closed(old)),
            // Back to the one before, and it stays so.
            ("Compatible", old, new, Some(new), Passage::Closed(old)),
            ("Compatible", old, new, Some(old), Passage::Closed(old)),
            ("Manual", other, new, Some(new), Passage::Closed(other)),
            ("Manual", "", new, Some(old), Passage::Closed(old)),
            ("Manual", "v1.bs.x.io", new, Some(old), Passage::Closed(old)),
            // A later approval wins, and what was rejected says nothing about the next one.
            ("Manual", new, new, Some(old), Passage::Open),
            ("Compatible", old, other, Some(old), Passage::Judged(old)),
        ] {
            let annotations = [(APPROVED_SCHEMA, approved), (REJECTED_SCHEMA, rejected)];
            let annotations: serde_json::Map<_, _> = annotations
                .into_iter()
                .filter(|(_, name)| !name.is_empty())
                .map(|(key, name)| (key.to_owned(), json!(name)))
                .collect();
            let pr = json!({"metadata": {"annotations": annotations}, "spec": {"schemaUpdates": mode}});
            let pr: PublishedResource = serde_json::from_value(pr).unwrap();
            assert_eq!(
                passage(&pr, new, before),
                wanted,
                "{mode:?} approved {approved:?} rejected {rejected:?} {before:?}"
            );
        }
    }

    #[test]
    fn a_schema_is_rolled_back_until_the_newer_one_is_exported_again() {
        let (old, new, next) = ("v1.as.x.io", "v2.as.x.io", "v3.as.x.io");
        for (mode, approved, rejected, exported, computed, wanted) in [
            ("Manual", old, "", new, new, false),
            // Said, but not exported yet.
            ("Manual", old, new, new, new, true),
            ("Manual", old, new, old, new, true),
            ("Always", old, new, old, new, false),
            ("Manual", new, new, old, new, false),
            // The CRD has changed since.
            ("Compatible", old, new, old, next, true),
            ("Compatible", old, new, next, next, false),
        ] {
            // Once it was noted, it counts until somebody removes that.
            for (noted, wanted) in [("", wanted), (new, true)] {
                let annotations = [(APPROVED_SCHEMA, approved), (REJECTED_SCHEMA, rejected), (ROLLED_BACK, noted)];
                let annotations = annotations.into_iter().filter(|(_, name)| !name.is_empty());
                let annotations: serde_json::Map<_, _> =
                    annotations.map(|(key, name)| (key.to_owned(), json!(name))).collect();
                let pr = json!({
                    "metadata": { "name": "p", "annotations": annotations },
                    "spec": { "resource": { "apiGroup": "x.io", "kind": "A" }, "schemaUpdates": mode },
                    "status": { "resourceSchemaName": exported },
                });
                let pr: PublishedResource = serde_json::from_value(pr).unwrap();
                assert_eq!(is_rolled_back(&pr, computed), wanted, "{mode} {approved} {rejected} {exported} {computed}");
            }
        }
    }
}
