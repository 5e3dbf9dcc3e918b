//! Which requests a webhook or a policy is about.

use std::sync::Arc;

use carrick_go::labels::{Requirement, Selector};
use serde_json::Value;

use super::request::AdmissionRequest;
use crate::status::Status;

/// Finds a namespace of the request's cluster.
pub(super) type Namespaces<'a> = &'a dyn Fn(&str) -> Option<Arc<Value>>;

/// One of the rules of a webhook or a policy.
#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// With subresources: `pods/status`, `*/scale`.
    resources: Vec<String>,
    scope: String,
    names: Vec<String>,
}

impl Rule {
    fn read(rule: &Value) -> Self {
        Self {
            operations: texts(&rule["operations"]),
            groups: texts(&rule["apiGroups"]),
            versions: texts(&rule["apiVersions"]),
            resources: texts(&rule["resources"]),
            scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
            names: texts(&rule["resourceNames"]),
        }
    }

    /// Whether the rule is about a request, if it were made in this version of the kind.
    fn matches(&self, request: &AdmissionRequest<'_>, version: &str) -> bool {
        let one_of = |items: &[String], wanted: &str| items.iter().any(|item| item == "*" || item == wanted);
        let namespaced = !request.is_namespace() && !request.namespace.is_empty();
        let in_scope = match self.scope.as_str() {
            "Namespaced" => namespaced,
            "Cluster" => !namespaced,
            _ => true,
        };
        let about = |item: &String| {
            let (resource, subresource) = item.split_once('/').unwrap_or((item, ""));
            (resource == "*" || resource == &*request.resource.plural)
                && (subresource == "*" || subresource == request.subresource)
        };
        in_scope
            && one_of(&self.operations, request.operation)
            && one_of(&self.groups, &request.resource.group)
            && one_of(&self.versions, version)
            && self.resources.iter().any(about)
            && (self.names.is_empty() || self.names.iter().any(|name| name == request.name))
    }
}

/// Rules and selectors of a webhook, a policy or a binding.
#[derive(Debug)]
pub(super) struct Matcher {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Without any rules everything matches: bindings need none.
    all: bool,
    /// A rule for one version of a kind counts for requests in the others too.
    equivalent: bool,
    namespaces: Selector,
    objects: Selector,
}

impl Matcher {
    /// Of a webhook.
    pub(super) fn of_webhook(hook: &Value) -> Self {
        Self::read(hook, "rules", "", false)
    }

    /// Of the `matchConstraints` of a policy, or the `matchResources` of a binding.
    pub(super) fn of_policy(resources: &Value) -> Self {
        Self::read(resources, "resourceRules", "excludeResourceRules", true)
    }

    fn read(place: &Value, included: &str, excluded: &str, all: bool) -> Self {
        let read = |key: &str| place[key].as_array().into_iter().flatten().map(Rule::read).collect::<Vec<_>>();
        let rules = read(included);
        Self {
            all: all && rules.is_empty(),
            rules,
            excluded: read(excluded),
            equivalent: place["matchPolicy"] == "Equivalent",
            namespaces: selector(&place["namespaceSelector"]),
            objects: selector(&place["objectSelector"]),
        }
    }

    /// The version of the kind in which a request matches, if it does.
    pub(super) fn version<'a>(
        &self,
        request: &'a AdmissionRequest<'_>,
        object: &Value,
        namespaces: Namespaces<'_>,
    ) -> Result<Option<&'a str>, Status> {
        let in_namespace = self.selects_namespace(request, object, namespaces);
        if matches!(in_namespace, Ok(false)) || !self.selects_object(request, object) {
            return Ok(None);
        }
        if self.first(&self.excluded, request).is_some() {
            return Ok(None);
        }
        let found = if self.all { Some(request.version) } else { self.first(&self.rules, request) };
        // A namespace that is missing only matters to those whom the request concerns otherwise.
        match found {
            Some(version) => in_namespace.map(|_| Some(version)),
            None => Ok(None),
        }
    }

    fn first<'a>(&self, rules: &[Rule], request: &'a AdmissionRequest<'_>) -> Option<&'a str> {
        if rules.iter().any(|rule| rule.matches(request, request.version)) {
            return Some(request.version);
        }
        if !self.equivalent {
            return None;
        }
        let served = request.resource.versions.iter().filter(|version| version.served);
        let others: Vec<&str> =
            served.map(|version| &*version.name).filter(|version| *version != request.version).collect();
        rules.iter().find_map(|rule| others.iter().copied().find(|version| rule.matches(request, version)))
    }

    fn selects_namespace(
        &self,
        request: &AdmissionRequest<'_>,
        object: &Value,
        namespaces: Namespaces<'_>,
    ) -> Result<bool, Status> {
        let about_namespace = *request.resource.plural == *"namespaces";
        if self.namespaces.is_empty() || (request.namespace.is_empty() && !about_namespace) {
            return Ok(true);
        }
        if about_namespace && request.subresource.is_empty() && request.operation != "DELETE" {
            return Ok(selects(&self.namespaces, object));
        }
        match namespaces(request.namespace) {
            Some(namespace) => Ok(selects(&self.namespaces, &namespace)),
            None => Err(Status::not_found("", "namespaces", request.namespace)),
        }
    }

    fn selects_object(&self, request: &AdmissionRequest<'_>, object: &Value) -> bool {
        let fits = |object: &Value| object.is_object() && selects(&self.objects, object);
        self.objects.is_empty() || fits(object) || fits(request.old)
    }
}

fn selects(selector: &Selector, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    selector.matches(|key| labels.get(key).and_then(Value::as_str))
}

/// The selector that an object contains; absent ones select everything.
pub(super) fn selector(value: &Value) -> Selector {
    let labels = value["matchLabels"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| Requirement::equals(key, value.as_str().unwrap_or_default()));
    let expressions = value["matchExpressions"].as_array().into_iter().flatten().filter_map(|expression| {
        let text = |key: &str| expression[key].as_str().unwrap_or_default();
        Requirement::expression(text("key"), text("operator"), texts(&expression["values"]))
    });
    labels.chain(expressions).collect()
}

/// The texts of a list.
pub(super) fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
