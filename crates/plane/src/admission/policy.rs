//! ValidatingAdmissionPolicies with their bindings, compiled, and what they say about a request.

use std::sync::Arc;

use carrick_cel::{AdmissionBinding, AdmissionInput, AdmissionScope, AdmissionType, Evaluated};
use serde_json::{Value, json};

use super::expression::{Conditions, Expression};
use super::params::{ParamKind, ParamRef, ParamSource};
use super::request::AdmissionRequest;
use super::rule::{Matcher, Namespaces, texts};
use crate::status::Status;

/// The longest text that a message expression may give.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// A policy and those who use it.
#[derive(Debug)]
pub(super) struct Policy {
    name: String,
    matcher: Matcher,
    /// `failurePolicy: Ignore`.
    lenient: bool,
    params: Option<ParamKind>,
    scope: AdmissionScope,
    conditions: Conditions,
    validations: Vec<Validation>,
    annotations: Vec<Expression>,
    bindings: Vec<Binding>,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: String,
}

#[derive(Debug)]
struct Binding {
    name: String,
    matcher: Option<Matcher>,
    params: Option<ParamRef>,
    actions: Vec<String>,
}

/// Why a request is refused, so far as one policy is concerned.
struct Denial {
    message: String,
    reason: String,
}

impl Denial {
    fn new(message: String) -> Self {
        Self { message, reason: "Invalid".to_owned() }
    }
}

/// What surrounds a request.
pub(super) struct Surroundings<'a> {
    pub(super) namespaces: Namespaces<'a>,
    pub(super) params: &'a dyn ParamSource,
    /// Converts an object of the request to another version of its kind.
    pub(super) convert: &'a dyn Fn(&Value, &str) -> Result<Value, String>,
}

impl Policy {
    /// Reads a policy and its bindings.
    pub(super) fn read(policy: &Value, bindings: &[Arc<Value>]) -> Self {
        let spec = &policy["spec"];
        let name = policy["metadata"]["name"].as_str().unwrap_or_default();
        let params = ParamKind::read(&spec["paramKind"]);
        let lenient = spec["failurePolicy"] == "Ignore";
        let list = |key: &str| spec[key].as_array().into_iter().flatten();
        let mut scope = AdmissionScope::new(params.is_some()).with_variables();
        for variable in list("variables") {
            // One that does not compile fails wherever it is used.
            let _ = scope.define(text(variable, "name"), text(variable, "expression"));
        }
        let validations = list("validations").map(|validation| Validation::read(validation, &scope)).collect();
        let annotations = list("auditAnnotations")
            .map(|one| Expression::new(text(one, "valueExpression"), &scope, AdmissionType::TextOrNull))
            .collect();
        let own = bindings.iter().filter(|binding| binding["spec"]["policyName"] == name);
        Self {
            name: name.to_owned(),
            matcher: Matcher::of_policy(&spec["matchConstraints"]),
            lenient,
            params,
            conditions: Conditions::read(&spec["matchConditions"], &scope, lenient),
            validations,
            annotations,
            scope,
            bindings: own.map(|binding| Binding::read(binding)).collect(),
        }
    }

    /// Whether anything can come of this policy.
    pub(super) fn is_bound(&self) -> bool {
        !self.bindings.is_empty()
    }

    /// Judges a request: warnings are added, the first refusal is returned.
    pub(super) fn review(
        &self,
        request: &AdmissionRequest<'_>,
        object: &Value,
        around: &Surroundings<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let version = match self.matcher.version(request, object, around.namespaces) {
            Ok(None) => return Ok(()),
            Ok(Some(version)) => version,
            Err(status) => return self.misconfigured("policy", &status.message, None, request, object),
        };
        if let Some(kind) = &self.params
            && !around.params.knows(kind)
        {
            let why = format!("failed to find resource referenced by paramKind: '{kind}'");
            return self.misconfigured("policy", &why, None, request, object);
        }
        let mut first = None;
        for binding in &self.bindings {
            let denied = self.review_binding(binding, version, request, object, around, warnings);
            first = first.or(denied.err());
        }
        first.map_or(Ok(()), Err)
    }

    fn review_binding(
        &self,
        binding: &Binding,
        version: &str,
        request: &AdmissionRequest<'_>,
        object: &Value,
        around: &Surroundings<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let misconfigured = |why: &str| self.misconfigured("binding", why, Some(binding), request, object);
        if let Some(matcher) = &binding.matcher {
            match matcher.version(request, object, around.namespaces) {
                Ok(None) => return Ok(()),
                Ok(Some(_)) => {}
                Err(status) => return misconfigured(&status.message),
            }
        }
        let params = match (&self.params, &binding.params) {
            (Some(kind), Some(reference)) => reference.collect(kind, around.params, request.namespace),
            _ => Ok(vec![Arc::new(Value::Null)]),
        };
        let params = match params {
            Ok(params) => params,
            Err(why) => return misconfigured(&why),
        };
        if params.is_empty() {
            return Ok(());
        }
        let shown = |object: &Value| match object {
            Value::Null => Ok(Value::Null),
            // Where a new object will live is not part of it yet.
            object if request.operation == "CREATE" => (around.convert)(object, version),
            object => (around.convert)(object, version).map(|object| request.located(&object)),
        };
        let (object, old) = match (shown(object), shown(request.old)) {
            (Ok(object), Ok(old)) => (object, old),
            (Err(why), _) | (_, Err(why)) => return misconfigured(&format!("failed to convert object version: {why}")),
        };
        let namespace = match request.namespace {
            "" => None,
            _ if request.is_namespace() => None,
            name => (around.namespaces)(name),
        };
        let namespace = namespace.map_or(Value::Null, |namespace| visible_namespace(&namespace));
        let described = request.describe(version);
        let mut denials = Vec::new();
        for params in &params {
            let input = AdmissionInput {
                object: &object,
                old_object: &old,
                namespace_object: &namespace,
                request: &described,
                params,
            };
            // Match conditions do not see the namespace.
            let outside = AdmissionInput { namespace_object: &Value::Null, ..input };
            match self.conditions.hold(&self.scope.bind(&outside)) {
                Ok(true) => denials.extend(self.judge(binding, &self.scope.bind(&input), warnings)),
                Ok(false) => {}
                Err(why) => denials.extend(self.enforced(binding, vec![Denial::new(why)], warnings)),
            }
        }
        match denials.into_iter().next() {
            Some(denial) => Err(self.denied(Some(binding), denial, request, &object)),
            None => Ok(()),
        }
    }

    /// What the policy says for one set of parameters: denials that the binding enforces.
    fn judge(&self, binding: &Binding, bound: &AdmissionBinding<'_>, warnings: &mut Vec<String>) -> Vec<Denial> {
        let mut found = Vec::new();
        for validation in &self.validations {
            match validation.expression.eval(bound) {
                Ok(Evaluated::Bool(true)) => {}
                Ok(_) => {
                    let message = validation.complaint(bound);
                    found.push(Denial { message, reason: validation.reason.clone() });
                }
                Err(_) if self.lenient => {}
                Err(why) => found.push(Denial::new(why)),
            }
        }
        let mut enforced = self.enforced(binding, found, warnings);
        // Nobody reads audit annotations here; what fails counts nevertheless, whatever the binding's actions are.
        let failed = self.annotations.iter().filter(|_| !self.lenient).filter_map(|one| one.eval(bound).err());
        enforced.extend(failed.map(Denial::new));
        enforced
    }

    /// Applies the binding's actions to what the policy objects to.
    fn enforced(&self, binding: &Binding, found: Vec<Denial>, warnings: &mut Vec<String>) -> Vec<Denial> {
        let has = |action: &str| binding.actions.iter().any(|found| found == action);
        if has("Warn") {
            warnings.extend(found.iter().map(|denial| {
                format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                    self.name, binding.name, denial.message
                )
            }));
        }
        if has("Deny") { found } else { Vec::new() }
    }

    /// A policy or a binding that cannot be used.
    fn misconfigured(
        &self,
        what: &str,
        why: &str,
        binding: Option<&Binding>,
        request: &AdmissionRequest<'_>,
        object: &Value,
    ) -> Result<(), Status> {
        if self.lenient {
            return Ok(());
        }
        let denial = Denial::new(format!("failed to configure {what}: {why}"));
        Err(self.denied(binding, denial, request, object))
    }

    fn denied(
        &self,
        binding: Option<&Binding>,
        denial: Denial,
        request: &AdmissionRequest<'_>,
        object: &Value,
    ) -> Status {
        let by = match binding {
            Some(binding) => format!("'{}' with binding '{}'", self.name, binding.name),
            None => format!("'{}'", self.name),
        };
        let message = format!("ValidatingAdmissionPolicy {by} denied request: {}", denial.message);
        let mut status = request.refusal(object, &message);
        status.code = match denial.reason.as_str() {
            "Forbidden" => 403,
            "Unauthorized" => 401,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        status.reason = denial.reason;
        status.details["causes"] = json!([{"message": message}]);
        status
    }
}

impl Validation {
    fn read(validation: &Value, scope: &AdmissionScope) -> Self {
        let source = text(validation, "messageExpression");
        let message_expression = (!source.is_empty()).then(|| Expression::new(source, scope, AdmissionType::Text));
        let reason = validation["reason"].as_str().unwrap_or("Invalid");
        Self {
            expression: Expression::new(text(validation, "expression"), scope, AdmissionType::Bool),
            message: text(validation, "message").trim().to_owned(),
            message_expression,
            reason: reason.to_owned(),
        }
    }

    /// The message expression wins if it gives usable text, then the message, then the expression itself.
    fn complaint(&self, bound: &AdmissionBinding<'_>) -> String {
        let computed = self.message_expression.as_ref().and_then(|expression| match expression.eval(bound) {
            Ok(Evaluated::Text(text)) => Some(text.trim().to_owned()),
            _ => None,
        });
        let usable = |text: &String| !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
        computed
            .filter(usable)
            .or_else(|| Some(self.message.clone()).filter(|text| !text.is_empty()))
            .unwrap_or_else(|| format!("failed expression: {}", self.expression.source().trim()))
    }
}

impl Binding {
    fn read(binding: &Value) -> Self {
        let spec = &binding["spec"];
        Self {
            name: text(&binding["metadata"], "name").to_owned(),
            matcher: spec["matchResources"].is_object().then(|| Matcher::of_policy(&spec["matchResources"])),
            params: ParamRef::read(&spec["paramRef"]),
            actions: texts(&spec["validationActions"]),
        }
    }
}

/// The parts of a namespace that expressions see.
fn visible_namespace(namespace: &Value) -> Value {
    let mut shown = json!({"metadata": {}, "spec": namespace["spec"], "status": namespace["status"]});
    for key in [
        "name",
        "generateName",
        "labels",
        "annotations",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "finalizers",
    ] {
        if let Some(value) = namespace["metadata"].get(key) {
            shown["metadata"][key] = value.clone();
        }
    }
    shown
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
