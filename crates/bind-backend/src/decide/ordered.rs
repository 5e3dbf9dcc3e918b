//! What a contract may ask for: the templates that were ordered.

use carrick_bind_api::claims::described;
use carrick_bind_api::names::ORDERED_TEMPLATES_ANNOTATION;
use carrick_bind_api::v1alpha2::{
    ApiServiceExportRequestSpec, ApiServiceExportTemplate, ApiServiceExportTemplateSpec, ExportedResource,
};
use serde_json::Value;

/// What stands for whatever is offered.
const EVERYTHING: &str = "*";

/// The templates that were ordered for a contract, by what its namespace says; none if that is not restricted.
pub fn of_namespace(namespace: &Value) -> Option<Vec<String>> {
    let text = namespace["metadata"]["annotations"][ORDERED_TEMPLATES_ANNOTATION].as_str()?;
    let names: Vec<String> = text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect();
    (!names.iter().any(|name| name == EVERYTHING)).then_some(names)
}

/// What the annotation has to be once a template is ordered as well; none if it may stay as it is.
pub fn with(ordered: Option<&[String]>, template: &str) -> Option<String> {
    // What is not restricted is not restricted by an order either.
    let ordered = ordered?;
    if ordered.iter().any(|name| name == template) {
        return None;
    }
    let names: Vec<&str> = ordered.iter().map(String::as_str).chain([template]).collect();
    Some(names.join(","))
}

/// What is asked for and is in none of the templates; none if one of them has all of it. Versions make no difference, because schemas carry them all.
pub fn missing(spec: &ApiServiceExportRequestSpec, templates: &[ApiServiceExportTemplate]) -> Option<String> {
    let mut missing = None;
    for template in templates {
        match missing_in(spec, &template.spec) {
            None => return None,
            Some(what) => missing = Some(what),
        }
    }
    let first = || spec.resources.first().map(ExportedResource::bound_schema_name).unwrap_or_default();
    Some(missing.unwrap_or_else(first))
}

fn missing_in(spec: &ApiServiceExportRequestSpec, template: &ApiServiceExportTemplateSpec) -> Option<String> {
    let offered = |name: &String| template.resources.iter().any(|it| it.bound_schema_name() == *name);
    if let Some(name) = spec.resources.iter().map(ExportedResource::bound_schema_name).find(|name| !offered(name)) {
        return Some(name);
    }
    if let Some(claim) = spec.permission_claims.iter().find(|claim| !template.permission_claims.contains(claim)) {
        return Some(format!("the claim on {}", described(claim)));
    }
    let namespace =
        spec.namespaces.iter().find(|it| !template.namespaces.iter().any(|offered| offered.name == it.name));
    namespace.map(|it| format!("namespace {}", it.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(spec: &Value) -> ApiServiceExportTemplate {
        serde_json::from_value(json!({"metadata": {"name": "t"}, "spec": spec})).unwrap()
    }

    fn asks(spec: &Value, templates: &[ApiServiceExportTemplate]) -> Option<String> {
        missing(&serde_json::from_value(spec.clone()).unwrap(), templates)
    }

    #[test]
    fn a_request_gets_what_one_ordered_template_has_and_nothing_else() {
        let widgets = json!([{"group": "g.io", "resource": "widgets", "versions": ["v1"]}]);
        let narrow = json!([{"group": "", "resource": "secrets", "selector": {"namedResources": [{"name": "a"}]}}]);
        let wide = json!([{"group": "", "resource": "secrets", "selector": {"labelSelector": {}}}]);
        let ordered =
            [template(&json!({"resources": widgets, "permissionClaims": narrow, "namespaces": [{"name": "n"}]}))];
        assert_eq!(
            asks(&json!({"resources": widgets, "permissionClaims": narrow, "namespaces": [{"name": "n"}]}), &ordered),
            None
        );
        let older = json!([{"group": "g.io", "resource": "widgets", "versions": ["v1alpha1"]}]);
        assert_eq!(asks(&json!({"resources": older}), &ordered), None);
        let others = json!([{"group": "g.io", "resource": "gears", "versions": ["v1"]}]);
        assert_eq!(asks(&json!({"resources": others}), &ordered).as_deref(), Some("gears.g.io"));
        let wider = asks(&json!({"resources": widgets, "permissionClaims": wide}), &ordered);
        assert_eq!(wider.as_deref(), Some("the claim on ALL secrets of this cluster"));
        let elsewhere = asks(&json!({"resources": widgets, "namespaces": [{"name": "m"}]}), &ordered);
        assert_eq!(elsewhere.as_deref(), Some("namespace m"));
        assert_eq!(asks(&json!({"resources": widgets}), &[]).as_deref(), Some("widgets.g.io"), "the template is gone");
        let both = [ordered[0].clone(), template(&json!({"resources": others}))];
        assert_eq!(asks(&json!({"resources": others}), &both), None);
    }

    #[test]
    fn orders_add_up_and_what_is_open_stays_open() {
        let namespace = |text: &str| json!({"metadata": {"annotations": {"backend.kube-bind.io/templates": text}}});
        assert_eq!(of_namespace(&json!({"metadata": {}})), None);
        assert_eq!(of_namespace(&namespace("*")), None);
        let names = of_namespace(&namespace("a, b")).unwrap();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(with(Some(&names), "b"), None);
        assert_eq!(with(Some(&names), "c").as_deref(), Some("a,b,c"));
        assert_eq!(with(None, "c"), None);
    }
}
