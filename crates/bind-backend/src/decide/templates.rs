//! In kcp: every API that a workspace has bound becomes part of its catalogue.

use std::collections::{BTreeMap, BTreeSet};

use carrick_bind_api::carrick_kcp::apis::BindingPhase;
use carrick_bind_api::carrick_kcp::apis::v1alpha1::{ApiBinding, ApiResourceSchema, ResourceScope};
use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_bind_api::names::{EXPORTED_LABEL, OWNER_BINDING_ANNOTATION};
use carrick_bind_api::v1alpha2::{ApiServiceExportTemplate, ExportedResource};
use serde_json::{Value, json};

use super::plan::{Plan, value};

const RBAC: &str = "rbac.authorization.k8s.io";
/// Role of the backend itself in a workspace: kcp shows schemas to those who may read bindings.
const READER: &str = "kube-bind-vw-apibinding-reader";

/// Whether a binding belongs to the catalogue: it is bound, and none that everybody has.
pub fn is_offered(binding: &ApiBinding, ignored: &[String]) -> bool {
    let names = [&binding.metadata.name, &binding.spec.reference.export.name];
    let ignored = ignored.iter().any(|prefix| names.iter().any(|name| name.starts_with(prefix.as_str())));
    binding.status.phase == BindingPhase::Bound && !ignored && !binding.metadata.is_deleting()
}

/// The names of the schemas behind a binding.
pub fn schemas_of(binding: &ApiBinding) -> impl Iterator<Item = &str> {
    binding.status.bound_resources.iter().map(|bound| bound.schema.name.as_str()).filter(|name| !name.is_empty())
}

/// What the backend needs to read the schemas of a workspace.
pub fn reader(user: &str) -> Vec<Value> {
    vec![
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": READER}, "rules": [
            {"nonResourceURLs": ["/"], "verbs": ["access"]},
            {"apiGroups": ["apis.kcp.io"], "resources": ["apibindings"], "verbs": ["get", "list", "watch"]}]}),
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": READER},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": READER},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}]}),
    ]
}

/// What to do so that the catalogue has a template per binding and scope, and the workspace the schemas behind them.
///
/// `present` are the names of schemas that are in the workspace already, whoever has put them there.
pub fn decide(
    bindings: &[ApiBinding],
    schemas: &BTreeMap<String, ApiResourceSchema>,
    present: &BTreeSet<String>,
    templates: &[ApiServiceExportTemplate],
) -> Plan {
    let (mut plan, mut wanted_names) = (Plan::default(), BTreeSet::new());
    for binding in bindings {
        for scope in [ResourceScope::Namespaced, ResourceScope::Cluster] {
            let of_scope = schemas_of(binding).filter_map(|name| schemas.get(name)).filter(|it| it.spec.scope == scope);
            let of_scope: Vec<&ApiResourceSchema> = of_scope.collect();
            if of_scope.is_empty() {
                continue;
            }
            let wanted = template(binding, &scope, &of_scope);
            wanted_names.insert(wanted.metadata.name.clone());
            let Some(there) = templates.iter().find(|it| it.metadata.name == wanted.metadata.name) else {
                plan.create(&wanted);
                continue;
            };
            if there.metadata.annotation(OWNER_BINDING_ANNOTATION).is_none() {
                // Somebody has written a template of that name.
                continue;
            }
            if there.spec.resources != wanted.spec.resources || there.spec.scope != wanted.spec.scope {
                let mut new = there.clone();
                new.spec.resources.clone_from(&wanted.spec.resources);
                new.spec.scope = scope;
                plan.replace(&new);
            }
            for schema in of_scope.into_iter().filter(|schema| !present.contains(&schema.metadata.name)) {
                plan.create(&copy(schema, there));
            }
        }
    }
    for template in templates.iter().filter(|it| it.metadata.annotation(OWNER_BINDING_ANNOTATION).is_some()) {
        // One whose schemas cannot be read now is kept.
        let owner = template.metadata.annotation(OWNER_BINDING_ANNOTATION).unwrap_or_default();
        let bound = bindings.iter().find(|binding| binding.metadata.name == owner);
        let unread = bound.is_some_and(|binding| schemas_of(binding).any(|name| !schemas.contains_key(name)));
        if !wanted_names.contains(&template.metadata.name) && !unread && !template.metadata.is_deleting() {
            plan.delete(template);
        }
    }
    plan
}

fn template(binding: &ApiBinding, scope: &ResourceScope, schemas: &[&ApiResourceSchema]) -> ApiServiceExportTemplate {
    let suffix = scope.as_str().to_lowercase();
    let mut template = ApiServiceExportTemplate::new(format!("{}-{suffix}", binding.metadata.name));
    template.metadata.annotate(OWNER_BINDING_ANNOTATION, &binding.metadata.name);
    template.metadata.owner_references = vec![OwnerReference::to(binding)];
    template.spec.scope = scope.clone();
    template.spec.resources = schemas
        .iter()
        .map(|schema| {
            let served = schema.spec.versions.iter().filter(|version| version.served);
            let versions: Vec<&str> = served.map(|version| version.name.as_str()).collect();
            ExportedResource::new(&schema.spec.group, &schema.spec.names.plural, &versions)
        })
        .collect();
    template
}

/// A schema for the workspace itself, where requests look for it.
fn copy(schema: &ApiResourceSchema, template: &ApiServiceExportTemplate) -> ApiResourceSchema {
    let mut copy = ApiResourceSchema::new(&schema.metadata.name);
    copy.metadata.set_label(EXPORTED_LABEL, "true");
    copy.metadata.owner_references = vec![OwnerReference::to(template)];
    copy.spec = schema.spec.clone();
    debug_assert_eq!(value(&copy)["kind"], "APIResourceSchema");
    copy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::plan::Write;

    fn binding() -> ApiBinding {
        let binding = json!({"metadata": {"name": "cowboys-stable", "uid": "b"}, "spec": {"reference": {"export": {"name": "cowboys-stable"}}},
            "status": {"phase": "Bound", "boundResources": [{"group": "wild.io", "resource": "cowboys", "schema": {"name": "v1.cowboys.wild.io"}},
                {"group": "wild.io", "resource": "sheriffs", "schema": {"name": "v1.sheriffs.wild.io"}}]}});
        serde_json::from_value(binding).unwrap()
    }

    fn schemas() -> BTreeMap<String, ApiResourceSchema> {
        let schema = |plural: &str, scope: &str| {
            let object = json!({"metadata": {"name": format!("v1.{plural}.wild.io")}, "spec": {"group": "wild.io", "names": {"plural": plural},
                "scope": scope, "versions": [{"name": "v1", "served": true}, {"name": "v2", "served": false}]}});
            (format!("v1.{plural}.wild.io"), serde_json::from_value(object).unwrap())
        };
        [schema("cowboys", "Namespaced"), schema("sheriffs", "Cluster")].into()
    }

    fn templates(writes: &[Write]) -> Vec<ApiServiceExportTemplate> {
        writes.iter().map(|write| serde_json::from_value(write.object().clone()).unwrap()).collect()
    }

    #[test]
    fn a_binding_becomes_a_template_per_scope_and_its_schemas_are_copied() {
        let (bindings, schemas) = ([binding()], schemas());
        let plan = decide(&bindings, &schemas, &BTreeSet::new(), &[]);
        let made = templates(&plan.writes);
        let names: Vec<&str> = made.iter().map(|it| it.metadata.name.as_str()).collect();
        assert_eq!(names, ["cowboys-stable-namespaced", "cowboys-stable-cluster"]);
        assert_eq!(made[0].spec.resources, [ExportedResource::new("wild.io", "cowboys", &["v1"])]);
        let plan = decide(&bindings, &schemas, &BTreeSet::new(), &made);
        assert_eq!(plan.writes.len(), 2);
        assert!(plan.writes.iter().all(|write| write.object()["metadata"]["labels"][EXPORTED_LABEL] == "true"));
        let present = schemas.keys().cloned().collect();
        assert_eq!(decide(&bindings, &schemas, &present, &made), Plan::default());
        // Schemas that cannot be read now say nothing about their templates.
        assert_eq!(decide(&bindings, &BTreeMap::new(), &present, &made), Plan::default());
        let gone = decide(&[], &schemas, &present, &made);
        assert!(gone.writes.len() == 2 && gone.writes.iter().all(|write| matches!(write, Write::Delete(_))));
    }

    #[test]
    fn templates_of_people_and_bindings_that_everybody_has_are_left_alone() {
        let ignored = ["tenancy.kcp.io".to_owned()];
        assert!(is_offered(&binding(), &ignored));
        let mut other = binding();
        "tenancy.kcp.io-1234".clone_into(&mut other.metadata.name);
        assert!(!is_offered(&other, &ignored));
        let mut unbound = binding();
        unbound.status.phase = BindingPhase::Binding;
        assert!(!is_offered(&unbound, &ignored));
        let theirs = [ApiServiceExportTemplate::new("cowboys-stable-namespaced"), ApiServiceExportTemplate::new("x")];
        let plan = decide(&[binding()], &schemas(), &BTreeSet::new(), &theirs);
        assert_eq!(templates(&plan.writes)[0].metadata.name, "cowboys-stable-cluster");
        assert_eq!(plan.writes.len(), 1);
    }
}
