//! The APIExport of a konnector that serves workspaces: BoundSchemas become APIResourceSchemas there, and the export lists them with the claims of
//! all providers.
//!
//! Bindings are decided on CRDs. What the export lists is shown to them as CRDs, and what they want is turned into schemas:
//!
//! ```text
//!   APIResourceSchema that the export lists ──crd_of──▶ CRD, as if it were here ──▶ binding ──▶ CRD that it wants ──schema_of──▶ APIResourceSchema
//! ```
//!
//! A schema never changes, so its name has a hash of its content; a new one takes the place of the old one in the list. Entries and claims of
//! others stay as they are: entries are ours if a binding owns their schema, and claims if an annotation of the export says so.

use std::collections::{BTreeMap, BTreeSet};

use carrick_bind_api::carrick_kcp::apis::split_schema_name;
use carrick_bind_api::carrick_kcp::apis::v1alpha2::{ApiExport, PermissionClaim};
use carrick_bind_api::carrick_kcp::hash::b36s224;
use carrick_bind_api::carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use carrick_bind_api::claims::{Accepted, CLAIMABLE};
use carrick_bind_api::names::{SOURCE_SPEC_HASH_ANNOTATION, bound_schema_name};
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle};
use serde_json::{Value, json};

/// Annotation of an APIExport (ours): the claims that konnectors have added to it, as names of core resources.
pub const CLAIMS_ANNOTATION: &str = "kube-bind.io/claims";

/// How many digits of its hash are in the name of a schema.
const DIGITS: usize = 12;

const READ: [&str; 3] = ["get", "list", "watch"];
const ALL: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// The APIResourceSchema that stands for a CRD.
pub fn schema_of(crd: &Value) -> Value {
    let source = &crd["spec"];
    let mut names = source["names"].clone();
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    for (field, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names[field].as_str().is_none_or(str::is_empty) {
            names[field] = json!(value);
        }
    }
    let mut versions = source["versions"].clone();
    for version in versions.as_array_mut().into_iter().flatten() {
        version["schema"] = version["schema"]["openAPIV3Schema"].clone();
    }
    let mut spec = json!({"group": source["group"], "names": names, "scope": source["scope"], "versions": versions});
    let several = spec["versions"].as_array().is_some_and(|versions| versions.len() > 1);
    match source.get("conversion").filter(|conversion| conversion["strategy"] == "Webhook") {
        Some(conversion) => spec["conversion"] = conversion.clone(),
        None if several => spec["conversion"] = json!({"strategy": "None"}),
        None => {}
    }
    // Two sources that differ in what kcp does not know are two schemas all the same, or the newer one would never be noted.
    let source_hash = &crd["metadata"]["annotations"][SOURCE_SPEC_HASH_ANNOTATION];
    let mut hash = b36s224(&json!([spec, source_hash]).to_string());
    hash.truncate(DIGITS);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = format!("v{hash}.{}.{}", text(&names["plural"]), text(&source["group"]));
    json!({
        "apiVersion": API_RESOURCE_SCHEMA.api_version(), "kind": API_RESOURCE_SCHEMA.kind,
        "metadata": {"name": name, "annotations": {SOURCE_SPEC_HASH_ANNOTATION: source_hash},
            "ownerReferences": crd["metadata"]["ownerReferences"]},
        "spec": spec,
    })
}

/// An APIResourceSchema that the export lists, shown as the CRD that it stands for.
pub fn crd_of(schema: &Value) -> Value {
    let (source, metadata) = (&schema["spec"], &schema["metadata"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = bound_schema_name(&text(&source["group"]), &text(&source["names"]["plural"]));
    let mut spec = source.clone();
    if let Some(fields) = spec.as_object_mut() {
        // kcp fills it in, and CRDs do not have it.
        fields.remove("nameValidation");
    }
    for version in spec["versions"].as_array_mut().into_iter().flatten() {
        let bare = version["schema"].take();
        version["schema"] = json!({"openAPIV3Schema": bare});
    }
    let stored = source["versions"].as_array().into_iter().flatten().filter(|version| version["storage"] == true);
    let stored: Vec<&Value> = stored.map(|version| &version["name"]).collect();
    let holds =
        |type_: &str| json!({"type": type_, "status": "True", "lastTransitionTime": metadata["creationTimestamp"]});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "uid": metadata["uid"], "annotations": metadata["annotations"],
            "ownerReferences": metadata["ownerReferences"]},
        "spec": spec,
        "status": {"acceptedNames": source["names"], "storedVersions": stored,
            "conditions": [holds("Established"), holds("NamesAccepted")]},
    })
}

/// The schema that an export lists for an API, by the name of its CRD.
pub fn listed<'a>(export: &'a ApiExport, crd: &str) -> Option<&'a str> {
    let entry = export.spec.resources.iter().find(|entry| bound_schema_name(&entry.group, &entry.name) == crd);
    entry.map(|entry| entry.schema.as_str())
}

/// The export with a schema in its list, in place of an older one for the same API; none if it lists it already. What somebody else serves
/// from a virtual workspace is not replaced: an error then.
pub fn with_schema(export: &ApiExport, schema: &str) -> Result<Option<ApiExport>, String> {
    let mut changed = export.clone();
    if !changed.offer(schema) {
        let name = &export.metadata.name;
        let api = crd_name(schema).unwrap_or_default();
        return Err(format!(
            "APIExport {name} offers {api} from a virtual workspace of somebody else; remove that entry"
        ));
    }
    Ok((changed != *export).then_some(changed))
}

/// The export without the APIs of these CRDs, as far as these schemas are listed for them; none if nothing changes.
pub fn without(export: &ApiExport, schemas: &BTreeSet<String>) -> Option<ApiExport> {
    let mut changed = export.clone();
    changed.spec.resources.retain(|entry| !schemas.contains(&entry.schema));
    (changed != *export).then_some(changed)
}

/// The name of the CRD that a schema stands for, by its own name.
pub fn crd_name(schema: &str) -> Option<String> {
    let (_, resource, group) = split_schema_name(schema)?;
    Some(bound_schema_name(if group == "core" { "" } else { group }, resource))
}

/// The claims that an export needs for its bindings: namespaces, and what providers claim.
pub fn wanted_claims<'a>(
    bindings: impl IntoIterator<Item = &'a ApiServiceBinding>,
    bundles: &[ApiServiceBindingBundle],
) -> BTreeMap<String, &'static [&'static str]> {
    let mut wanted: BTreeMap<String, &'static [&'static str]> = BTreeMap::new();
    for binding in bindings {
        if binding.metadata.is_deleting() || binding.status.bound_schemas.is_empty() {
            continue;
        }
        wanted.insert("namespaces".to_owned(), &READ);
        let accepted = Accepted::of_binding(binding, bundles);
        for claim in binding.status.permission_claims.iter().filter(|claim| accepted.accepts(claim)) {
            if CLAIMABLE.iter().any(|it| it.group == claim.group && it.resource == claim.resource) {
                wanted.insert(claim.resource.clone(), &ALL);
            }
        }
    }
    wanted
}

/// Claims of others that do not allow what is needed.
pub fn narrow_claims(export: &ApiExport, wanted: &BTreeMap<String, &'static [&'static str]>) -> Vec<String> {
    let enough = |claim: &PermissionClaim| {
        wanted.get(&claim.resource).is_none_or(|verbs| verbs.iter().all(|verb| claim.allows(verb)))
    };
    let claims = export.spec.permission_claims.iter().filter(|claim| is_core(claim) && !enough(claim));
    claims.map(|claim| claim.resource.clone()).collect()
}

/// The export with these claims on core resources, and without those of ours that nobody needs any more; none if nothing changes. Claims that
/// others have made stay as they are.
pub fn with_claims(export: &ApiExport, wanted: &BTreeMap<String, &'static [&'static str]>) -> Option<ApiExport> {
    let noted = export.metadata.annotation(CLAIMS_ANNOTATION).unwrap_or_default();
    let mut ours: BTreeSet<String> = noted.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let mut changed = export.clone();
    changed
        .drop_claims(|claim| is_core(claim) && !wanted.contains_key(&claim.resource) && ours.contains(&claim.resource));
    ours.retain(|name| wanted.contains_key(name));
    for (resource, verbs) in wanted {
        let claims = &mut changed.spec.permission_claims;
        if let Some(claim) = claims.iter_mut().find(|claim| is_core(claim) && claim.resource == *resource) {
            if !ours.contains(resource) {
                continue;
            }
            let missing: Vec<String> =
                verbs.iter().filter(|verb| !claim.allows(verb)).map(|verb| (*verb).to_owned()).collect();
            claim.verbs.extend(missing);
        } else {
            changed.claim(PermissionClaim::new("", resource.as_str(), verbs));
            ours.insert(resource.clone());
        }
    }
    let noted = ours.into_iter().collect::<Vec<_>>().join(",");
    if noted.is_empty() {
        changed.metadata.annotations.remove(CLAIMS_ANNOTATION);
    } else {
        changed.metadata.annotate(CLAIMS_ANNOTATION, noted);
    }
    (changed != *export).then_some(changed)
}

fn is_core(claim: &PermissionClaim) -> bool {
    claim.group.is_empty() && claim.identity_hash.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrick_bind_api::carrick_kcp::apis::v1alpha2::ResourceSchema;
    use carrick_bind_api::schema::{self, CrdPlan};
    use carrick_bind_api::v1alpha2::{
        BoundSchemaReference, InformerScope, Isolation, PermissionClaim as Claimed, Selector,
    };

    fn binding() -> ApiServiceBinding {
        let mut binding = ApiServiceBinding::new("b");
        "u".clone_into(&mut binding.metadata.uid);
        binding
    }

    fn wanted(field: &str) -> Value {
        let crd = json!({"spec": {"group": "wild.io", "scope": "Namespaced", "names": {"plural": "sheriffs", "kind": "Sheriff"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {field: {"type": "string"}}}}}]}});
        let bound = schema::from_crd(&crd, InformerScope::Cluster, &Isolation::Prefixed).unwrap();
        schema::crd(&bound, &binding(), None).unwrap()
    }

    #[test]
    fn what_the_export_lists_is_what_a_binding_wants_and_then_nothing_is_left_to_do() {
        let crd = wanted("a");
        let schema = schema_of(&crd);
        assert_eq!(schema["spec"]["versions"][0]["schema"]["properties"], json!({"a": {"type": "string"}}));
        assert_eq!(schema["spec"]["names"]["listKind"], "SheriffList");
        assert_eq!(schema::plan(Some(&crd_of(&schema)), &crd, &binding()), Ok(CrdPlan::Keep));
        let newer = wanted("b");
        let Ok(CrdPlan::Replace(replaced)) = schema::plan(Some(&crd_of(&schema)), &newer, &binding()) else { panic!() };
        let next = schema_of(&replaced);
        assert_ne!(next["metadata"]["name"], schema["metadata"]["name"]);
        assert_eq!(schema::plan(Some(&crd_of(&next)), &newer, &binding()), Ok(CrdPlan::Keep));
        assert_eq!(crd_name(next["metadata"]["name"].as_str().unwrap()).as_deref(), Some("sheriffs.wild.io"));
        // Somebody else's schema is somebody else's API.
        let mut foreign = crd_of(&schema);
        foreign["metadata"]["ownerReferences"] = Value::Null;
        assert!(schema::plan(Some(&foreign), &crd, &binding()).is_err());
    }

    #[test]
    fn the_export_keeps_what_others_have_put_into_it() {
        let mut export = ApiExport::new("e");
        export.spec.resources.push(ResourceSchema::of("v1.cows.farm.io"));
        export.spec.permission_claims.push(PermissionClaim::new("", "configmaps", &["get"]));
        let name = schema_of(&wanted("a"))["metadata"]["name"].as_str().unwrap().to_owned();
        let export = with_schema(&export, &name).unwrap().unwrap();
        assert_eq!(with_schema(&export, &name), Ok(None));
        assert_eq!(listed(&export, "sheriffs.wild.io"), Some(name.as_str()));
        let newer = schema_of(&wanted("b"))["metadata"]["name"].as_str().unwrap().to_owned();
        let export = with_schema(&export, &newer).unwrap().unwrap();
        assert_eq!(export.spec.resources.len(), 2);

        let mut binding = binding();
        assert_eq!(wanted_claims([&binding], &[]).len(), 0, "nothing is bound yet");
        binding.status.bound_schemas = vec![BoundSchemaReference::new("wild.io", "sheriffs")];
        binding.status.permission_claims =
            ["secrets", "configmaps", "pods"].map(|resource| Claimed::new("", resource, Selector::default())).to_vec();
        let claims = wanted_claims([&binding], &[]);
        let export = with_claims(&export, &claims).unwrap();
        let named = |export: &ApiExport| {
            export.spec.permission_claims.iter().map(|claim| claim.resource.clone()).collect::<Vec<_>>()
        };
        assert_eq!(named(&export), ["configmaps", "namespaces", "secrets"]);
        assert_eq!(export.spec.permission_claims[0].verbs, ["get"], "somebody else's decision");
        assert_eq!(narrow_claims(&export, &claims), ["configmaps"]);
        assert_eq!(with_claims(&export, &claims), None);
        let export = with_claims(&export, &BTreeMap::new()).unwrap();
        assert_eq!(named(&export), ["configmaps"], "somebody else's stays");
        let export = without(&export, &BTreeSet::from([newer])).unwrap();
        assert_eq!(export.spec.resources.len(), 1);
    }
}
