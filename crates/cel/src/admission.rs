//! Expressions of admission policies and match conditions.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::{Value, json};

use crate::convert::Integers;
use crate::environment;
use crate::error::{CompileError, EvalError};
use crate::expression::Expression;
use crate::input::{Input, Lookup};
use crate::schema::{Schema, TYPE_NAME};
use crate::types::{Fields, Type};
use crate::value::{Outcome, Value as Cel};

/// What the expressions of one policy may refer to besides `object`, `oldObject`, `request` and `namespaceObject`.
///
/// ```
/// use carrick_cel::{Admission, AdmissionInput, AdmissionScope, AdmissionType, Evaluated};
/// use serde_json::json;
///
/// let mut scope = AdmissionScope::new(false).with_variables();
/// scope.define("size", "object.spec.size")?;
/// let rule = Admission::compile("variables.size < 3", &scope, AdmissionType::Bool)?;
/// let object = json!({"spec": {"size": 5}});
/// let input = AdmissionInput { object: &object, ..AdmissionInput::default() };
/// assert_eq!(rule.eval(&scope.bind(&input)), Ok(Evaluated::Bool(false)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct AdmissionScope {
    params: bool,
    /// The variables that were defined so far, if expressions may use any.
    variables: Option<Vec<Variable>>,
}

/// A variable by its name, or why it cannot be evaluated.
type Variable = (String, Result<Arc<Admission>, CompileError>);

impl AdmissionScope {
    /// Without variables; with `params` or without.
    pub fn new(params: bool) -> Self {
        Self { params, variables: None }
    }

    /// With `variables`, to be defined one by one.
    #[must_use]
    pub fn with_variables(mut self) -> Self {
        self.variables.get_or_insert_default();
        self
    }

    /// Adds a variable. It may use those before it; one that does not compile is known, and fails when it is used.
    pub fn define(&mut self, name: &str, source: &str) -> Result<(), CompileError> {
        let compiled = Admission::compile(source, self, AdmissionType::Any).map(Arc::new);
        let outcome = compiled.as_ref().map(|_| ()).map_err(Clone::clone);
        self.variables.get_or_insert_default().push((name.to_owned(), compiled));
        outcome
    }

    /// The values of one request: variables are evaluated when they are first used, and then remembered.
    pub fn bind<'a>(&'a self, input: &'a AdmissionInput<'a>) -> AdmissionBinding<'a> {
        AdmissionBinding { scope: self, input, known: Mutex::default() }
    }

    fn types(&self) -> Vec<Type> {
        let kind = |schema: &Schema| schema.kind().cloned().unwrap_or(Type::Dyn);
        let mut types = vec![Type::Dyn, Type::Dyn, kind(&NAMESPACE), kind(&REQUEST)];
        if self.params {
            types.push(Type::Dyn);
        }
        if let Some(variables) = &self.variables {
            let kind = |outcome: &Result<Arc<Admission>, CompileError>| match outcome {
                Ok(compiled) => compiled.expression.result_type().clone(),
                Err(_) => Type::Dyn,
            };
            let fields: BTreeMap<_, _> =
                variables.iter().map(|(name, outcome)| (name.clone(), kind(outcome))).collect();
            types.push(Type::Object(Arc::new(Fields { path: "kubernetes.variables".to_owned(), fields })));
        }
        types
    }
}

/// What a request brings: JSON, null where there is nothing.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionInput<'a> {
    /// The new object; null on deletion.
    pub object: &'a Value,
    /// The old object; null on creation.
    pub old_object: &'a Value,
    /// The namespace of the object; null for objects outside of namespaces.
    pub namespace_object: &'a Value,
    /// The `request` of an `AdmissionReview`, without the objects.
    pub request: &'a Value,
    /// The parameters; null if there are none.
    pub params: &'a Value,
}

impl Default for AdmissionInput<'_> {
    fn default() -> Self {
        let nothing = &Value::Null;
        Self { object: nothing, old_object: nothing, namespace_object: nothing, request: nothing, params: nothing }
    }
}

/// A request together with the variables of a policy.
#[derive(Debug)]
pub struct AdmissionBinding<'a> {
    scope: &'a AdmissionScope,
    input: &'a AdmissionInput<'a>,
    known: Mutex<BTreeMap<String, Outcome>>,
}

impl Lookup for AdmissionBinding<'_> {
    fn find(&self, name: &str) -> Option<Outcome> {
        let known = |binding: &Self| binding.known.lock().ok().and_then(|known| known.get(name).cloned());
        if let Some(outcome) = known(self) {
            return Some(outcome);
        }
        // The last one of a name counts, as it does for the types.
        let variables = self.scope.variables.as_deref().unwrap_or_default();
        let (_, compiled) = variables.iter().rev().find(|(known, _)| known == name)?;
        let outcome = match compiled {
            Ok(compiled) => compiled.run(self),
            Err(_) => Err(EvalError::Other("it does not compile")),
        };
        let outcome = outcome.map_err(|error| match error {
            EvalError::TooManySteps => error,
            error => EvalError::Variable(name.to_owned(), Box::new(error)),
        });
        if let Ok(mut known) = self.known.lock() {
            known.insert(name.to_owned(), outcome.clone());
        }
        Some(outcome)
    }
}

/// What an expression must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionType {
    /// `true` or `false`: validations and match conditions.
    Bool,
    /// Text: message expressions.
    Text,
    /// Text or null: audit annotations.
    TextOrNull,
    /// Anything: variables.
    Any,
}

/// What an expression gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evaluated {
    /// `true` or `false`.
    Bool(bool),
    /// Text.
    Text(String),
    /// Null.
    Null,
    /// A value of another type, by the name of the type.
    Other(String),
}

/// One compiled expression of a policy or a match condition.
#[derive(Debug)]
pub struct Admission {
    expression: Expression,
    params: bool,
    variables: bool,
}

impl Admission {
    /// Compiles an expression that must give a value of this type.
    pub fn compile(source: &str, scope: &AdmissionScope, wanted: AdmissionType) -> Result<Self, CompileError> {
        let (params, variables) = (scope.params, scope.variables.is_some());
        let expression = Expression::compile(source, environment::admission(params, variables), &scope.types())?;
        let found = expression.result_type();
        let (fits, text) = match wanted {
            AdmissionType::Bool => (*found == Type::Bool, "bool"),
            AdmissionType::Text => (*found == Type::String, "string"),
            AdmissionType::TextOrNull => (matches!(found, Type::String | Type::Null), "one of [string null_type]"),
            AdmissionType::Any => (true, ""),
        };
        if fits {
            return Ok(Self { expression, params, variables });
        }
        let shown = if *found == Type::Null { "null_type".to_owned() } else { found.to_string() };
        Err(CompileError::InvalidResult(format!("must evaluate to {text} but got {shown}")))
    }

    /// Evaluates the expression for one request.
    pub fn eval(&self, binding: &AdmissionBinding<'_>) -> Result<Evaluated, EvalError> {
        Ok(match self.run(binding)? {
            Cel::Bool(value) => Evaluated::Bool(value),
            Cel::String(text) => Evaluated::Text(text.to_string()),
            Cel::Pattern(pattern) => Evaluated::Text(pattern.as_str().to_owned()),
            Cel::Null => Evaluated::Null,
            other => Evaluated::Other(other.kind().name().to_owned()),
        })
    }

    fn run(&self, binding: &AdmissionBinding<'_>) -> Outcome {
        let input = binding.input;
        self.expression.eval(|name| {
            Ok(match name {
                "object" => Input::Json(input.object, Integers::Kept),
                "oldObject" => Input::Json(input.old_object, Integers::Kept),
                "params" if self.params => Input::Json(input.params, Integers::Kept),
                "request" => Input::Json(input.request, Integers::Kept),
                "namespaceObject" => Input::Value(NAMESPACE.value(input.namespace_object)?),
                "variables" if self.variables => Input::Lazy(binding),
                _ => Input::Value(Cel::Null),
            })
        })
    }
}

/// An object whose type has a name.
fn object(name: &str, properties: &Value) -> Value {
    json!({"type": "object", "properties": properties, TYPE_NAME: format!("kubernetes.{name}")})
}

/// The type of `request`.
static REQUEST: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let texts = json!({"type": "array", "items": text});
    let kind = object("GroupVersionKind", &json!({"group": text, "version": text, "kind": text}));
    let resource = object("GroupVersionResource", &json!({"group": text, "version": text, "resource": text}));
    let user = json!({
        "username": text, "uid": text, "groups": texts,
        "extra": {"type": "object", "additionalProperties": texts},
    });
    let user = object("UserInfo", &user);
    let fields = json!({
        "kind": kind, "resource": resource, "subResource": text, "requestKind": kind, "requestResource": resource,
        "requestSubResource": text, "name": text, "namespace": text, "operation": text, "userInfo": user,
        "dryRun": {"type": "boolean"}, "options": {"x-kubernetes-int-or-string": true},
    });
    Schema::node(&object("AdmissionRequest", &fields))
});

/// The type of `namespaceObject`.
static NAMESPACE: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let time = json!({"type": "string", "format": "date-time"});
    let texts = json!({"type": "array", "items": text});
    let map = json!({"type": "object", "additionalProperties": text});
    let condition = json!({"status": text, "type": text, "lastTransitionTime": time, "message": text, "reason": text});
    let conditions = json!({"type": "array", "items": object("NamespaceCondition", &condition)});
    let metadata = json!({
        "name": text, "generateName": text, "namespace": text, "labels": map, "annotations": map, "UID": text,
        "creationTimestamp": time, "deletionGracePeriodSeconds": number, "deletionTimestamp": time,
        "generation": number, "resourceVersion": text, "finalizers": texts,
    });
    let fields = json!({
        "metadata": object("NamespaceMetadata", &metadata),
        "spec": object("NamespaceSpec", &json!({"finalizers": texts})),
        "status": object("NamespaceStatus", &json!({"conditions": conditions, "phase": text})),
    });
    Schema::node(&object("Namespace", &fields))
});
