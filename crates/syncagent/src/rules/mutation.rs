//! Mutations, compiled: changes to objects on their way.

use std::collections::BTreeSet;
use std::sync::Arc;

use carrick_cel::FieldRead;
use carrick_go::regex::GoRegex;
use carrick_json::path;
use carrick_sync::Transform;
use carrick_template::{CompileError, Template};
use serde_json::{Map, Value};
use thiserror::Error;

use super::hints;
use crate::api;

/// Why a mutation cannot be compiled or applied.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum MutationError {
    /// None of the mechanisms is set.
    #[error("{at}: no valid mutation mechanism provided; set one of delete, regex, template, cel")]
    Empty {
        /// Field of the PublishedResource.
        at: String,
    },
    /// Several mechanisms are set.
    #[error("{at}: several mutation mechanisms provided; set exactly one of delete, regex, template, cel")]
    Several {
        /// Field of the PublishedResource.
        at: String,
    },
    /// The pattern, template or expression is not valid.
    #[error("{at}: {reason}")]
    Compile {
        /// Field of the PublishedResource.
        at: String,
        /// What is wrong.
        reason: String,
    },
    /// The step failed on an object.
    #[error("{at} failed at path {path:?}: {reason}")]
    Apply {
        /// Field of the PublishedResource.
        at: String,
        /// Path in the object.
        path: String,
        /// What is wrong.
        reason: String,
    },
}

/// Compiled mutations for both directions.
#[derive(Debug, Clone, Default)]
pub struct Mutation {
    spec: Vec<MutationStep>,
    status: Vec<MutationStep>,
}

/// Compiles an expression.
pub(super) type CelCompiler = fn(&str) -> Result<carrick_cel::Mutation, carrick_cel::CompileError>;

/// One compiled change.
#[derive(Debug, Clone)]
pub(super) struct MutationStep {
    at: String,
    path: String,
    action: StepAction,
}

#[derive(Debug, Clone)]
enum StepAction {
    Delete,
    Set(String),
    Regex(GoRegex, String),
    Template(Template),
    Cel(Arc<carrick_cel::Mutation>),
}

impl Transform for Mutation {
    type Error = MutationError;

    fn spec(&self, source: &Value, copy: Option<&Value>) -> Result<Value, MutationError> {
        self.spec(source, copy)
    }

    fn keeps_spec(&self) -> bool {
        self.keeps_spec()
    }

    fn status(&self, copy: &Value, source: &Value) -> Result<Value, MutationError> {
        self.status(copy, source)
    }
}

/// Mutations together with what `spec.reads` finds.
#[derive(Debug, Clone, Copy)]
pub struct Informed<'a> {
    /// The mutations.
    pub mutation: &'a Mutation,
    /// What is found, by identifier.
    pub objects: &'a Value,
}

impl Transform for Informed<'_> {
    type Error = MutationError;

    fn spec(&self, source: &Value, copy: Option<&Value>) -> Result<Value, MutationError> {
        apply(&self.mutation.spec, source, copy.unwrap_or(&Value::Null), self.objects)
    }

    fn keeps_spec(&self) -> bool {
        self.mutation.keeps_spec()
    }

    fn status(&self, copy: &Value, source: &Value) -> Result<Value, MutationError> {
        apply(&self.mutation.status, copy, source, self.objects)
    }
}

/// What a step can look at besides the object that it changes and its counterpart.
#[derive(Debug, Clone, Copy)]
pub(super) enum Beside<'a> {
    /// Nothing.
    Nothing,
    /// What `spec.reads` finds, by identifier.
    Objects(&'a Value),
    /// The name and the namespace of the copy.
    Copy(&'a Value),
}

impl<'a> Beside<'a> {
    fn value(self) -> &'a Value {
        match self {
            Self::Nothing => &Value::Null,
            Self::Objects(value) | Self::Copy(value) => value,
        }
    }

    /// Adds it to the data of a template.
    fn add_to(self, data: &mut Map<String, Value>) {
        match self {
            Self::Objects(objects) if !objects.is_null() => data.insert("Objects".into(), objects.clone()),
            Self::Copy(copy) => data.insert("Copy".into(), copy.clone()),
            Self::Nothing | Self::Objects(_) => None,
        };
    }
}

/// What a rule refers to of `spec.reads`: one entry by its identifier, or any of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectsRead {
    /// Field of the PublishedResource.
    pub at: String,
    /// The identifier; none if it is not written down.
    pub identifier: Option<String>,
}

impl Mutation {
    /// Compiles the rules found at the given field of a PublishedResource.
    pub fn compile(at: &str, mutation: Option<&api::Mutation>) -> Result<Self, MutationError> {
        Self::compile_by(at, mutation, carrick_cel::Mutation::compile)
    }

    /// The same for rules that may refer to what `spec.reads` finds.
    pub fn compile_informed(at: &str, mutation: Option<&api::Mutation>) -> Result<Self, MutationError> {
        Self::compile_by(at, mutation, carrick_cel::Mutation::compile_with_objects)
    }

    fn compile_by(at: &str, mutation: Option<&api::Mutation>, cel: CelCompiler) -> Result<Self, MutationError> {
        let Some(mutation) = mutation else { return Ok(Self::default()) };
        let compile = |direction: &str, steps: &[api::ResourceMutation]| -> Result<Vec<MutationStep>, MutationError> {
            steps
                .iter()
                .enumerate()
                .map(|(i, step)| MutationStep::compile(format!("{at}.{direction}[{i}]"), step, Template::compile, cel))
                .collect()
        };
        Ok(Self { spec: compile("spec", &mutation.spec)?, status: compile("status", &mutation.status)? })
    }

    /// What the rules refer to of `spec.reads`.
    pub fn objects_read(&self) -> Vec<ObjectsRead> {
        self.spec.iter().chain(&self.status).flat_map(MutationStep::objects_read).collect()
    }

    /// The source as it is written to its copy.
    pub fn spec(&self, source: &Value, copy: Option<&Value>) -> Result<Value, MutationError> {
        apply(&self.spec, source, copy.unwrap_or(&Value::Null), &Value::Null)
    }

    /// Whether nothing changes on the way to the copy.
    pub fn keeps_spec(&self) -> bool {
        self.spec.is_empty()
    }

    /// The copy as it is written to its source.
    pub fn status(&self, copy: &Value, source: &Value) -> Result<Value, MutationError> {
        apply(&self.status, copy, source, &Value::Null)
    }
}

fn apply(steps: &[MutationStep], object: &Value, other: &Value, objects: &Value) -> Result<Value, MutationError> {
    let mut object = object.clone();
    for step in steps {
        step.apply(&mut object, other, Beside::Objects(objects))?;
    }
    Ok(object)
}

impl MutationStep {
    /// Compiles the change found at the given field of a PublishedResource.
    pub(super) fn compile(
        at: String,
        step: &api::ResourceMutation,
        template: fn(&str) -> Result<Template, CompileError>,
        cel: CelCompiler,
    ) -> Result<Self, MutationError> {
        let set = [step.delete.is_some(), step.regex.is_some(), step.template.is_some(), step.cel.is_some()];
        if set.iter().filter(|set| **set).count() > 1 {
            return Err(MutationError::Several { at });
        }
        let compile_error = |reason: String| MutationError::Compile { at: at.clone(), reason };
        let (path, action) = if let Some(delete) = &step.delete {
            (&delete.path, StepAction::Delete)
        } else if let Some(regex) = &step.regex {
            let action = if regex.pattern.is_empty() {
                StepAction::Set(regex.replacement.clone())
            } else {
                let pattern = GoRegex::compile(&regex.pattern).map_err(|e| compile_error(e.to_string()))?;
                StepAction::Regex(pattern, regex.replacement.clone())
            };
            (&regex.path, action)
        } else if let Some(rule) = &step.template {
            let compiled = template(&rule.template).map_err(|e| compile_error(hints::template(&rule.template, &e)))?;
            // Its output becomes part of an object.
            (&rule.path, StepAction::Template(compiled.silent_about_missing()))
        } else if let Some(rule) = &step.cel {
            let compiled = cel(&rule.expression).map_err(|e| compile_error(hints::cel(&rule.expression, &e)))?;
            (&rule.path, StepAction::Cel(Arc::new(compiled)))
        } else {
            return Err(MutationError::Empty { at });
        };
        if path.is_empty() {
            return Err(compile_error("path cannot be empty".into()));
        }
        Ok(Self { path: path.clone(), action, at })
    }

    /// Changes an object.
    pub(super) fn apply(&self, object: &mut Value, other: &Value, beside: Beside<'_>) -> Result<(), MutationError> {
        self.change(object, other, beside)
            .and_then(|()| still_an_object(object))
            .map_err(|reason| MutationError::Apply { at: self.at.clone(), path: self.path.clone(), reason })
    }

    fn objects_read(&self) -> Vec<ObjectsRead> {
        let identifiers: Vec<Option<String>> = match &self.action {
            StepAction::Template(template) => {
                let fields = template.fields();
                let read = fields.iter().filter(|path| path.first() == Some(&"Objects"));
                read.map(|path| path.get(1).map(|name| (*name).to_owned())).collect()
            }
            StepAction::Cel(program) => names_read(&program.objects_read()),
            StepAction::Delete | StepAction::Set(_) | StepAction::Regex(..) => Vec::new(),
        };
        identifiers.into_iter().map(|identifier| ObjectsRead { at: self.at.clone(), identifier }).collect()
    }

    /// The path that is written.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The fields of the other object that the step reads, each from the outermost name; an empty one stands for the whole object.
    pub(super) fn reads_other(&self) -> Vec<Vec<String>> {
        match &self.action {
            StepAction::Template(template) => {
                let fields = template.fields();
                let other = fields.iter().filter(|path| path.first() == Some(&"RemoteObject"));
                other.map(|path| path[1..].iter().map(|name| (*name).to_owned()).collect()).collect()
            }
            StepAction::Cel(program) => fields_read(&program.other_read()),
            StepAction::Delete | StepAction::Set(_) | StepAction::Regex(..) => Vec::new(),
        }
    }

    fn change(&self, object: &mut Value, other: &Value, beside: Beside<'_>) -> Result<(), String> {
        let result = match &self.action {
            StepAction::Delete => return path::delete(object, &self.path).map_err(|e| e.to_string()),
            StepAction::Set(text) => Value::from(text.as_str()),
            StepAction::Regex(pattern, replacement) => {
                let text = path::get(object, &self.path).text();
                pattern.replace_all(&text, replacement).into()
            }
            StepAction::Template(template) => {
                let found = path::get(object, &self.path);
                let mut data = Map::new();
                // As in the reference agent, the object being changed is always "local" here, whichever side it is on.
                data.insert("LocalObject".into(), object.clone());
                data.insert("RemoteObject".into(), other.clone());
                beside.add_to(&mut data);
                let rendered = template.render_mutation(found.value().as_ref(), get, &data);
                rendered.map_err(|e| e.to_string())?.trim().into()
            }
            StepAction::Cel(program) => {
                let value = path::get(object, &self.path).into_value();
                // Numbers without a fraction become integers, because that is how API servers and the state Secret return them.
                program.eval_beside(&value, object, other, beside.value()).map_err(|e| e.to_string())?
            }
        };
        path::set(object, &self.path, result).map_err(|e| e.to_string())
    }
}

/// The fields that an expression reads of a variable.
pub(super) fn fields_read(read: &BTreeSet<FieldRead>) -> Vec<Vec<String>> {
    read.iter().map(|field| field.path.iter().map(ToString::to_string).collect()).collect()
}

/// The identifiers that an expression reads of `objects`; none for one that is not written down.
pub(super) fn names_read(read: &BTreeSet<FieldRead>) -> Vec<Option<String>> {
    read.iter().map(|field| field.path.first().map(ToString::to_string)).collect()
}

/// The result must still be an object with metadata.
fn still_an_object(object: &Value) -> Result<(), String> {
    let is_map = |value: Option<&Value>| value.is_none_or(|value| value.is_null() || value.is_object());
    let metadata = object.get("metadata");
    let field = |key: &str| metadata.and_then(|metadata| metadata.get(key));
    if object.is_object() && is_map(metadata) && is_map(field("labels")) && is_map(field("annotations")) {
        return Ok(());
    }
    Err("the result is not a Kubernetes object any more: metadata, labels and annotations must stay maps".into())
}

/// Implements `.Value.Get "path"` for templates.
fn get(value: &Value, path: &str) -> Option<Value> {
    let found = path::get(value, path);
    found.exists().then(|| found.into_value())
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests {
    use super::*;
    use serde_json::json;

    fn compile(steps: Value) -> Result<Mutation, MutationError> {
        let mutation: api::Mutation = serde_json::from_value(json!({ "spec": steps })).unwrap();
        Mutation::compile("spec.mutation", Some(&mutation))
    }

    #[test]
    fn steps_apply_in_order_and_integers_stay_exact() {
        let steps = json!([
            {"delete": {"path": "spec.secret"}},
            {"regex": {"path": "spec.image", "pattern": "^(.*):latest$", "replacement": "$1:v1"}},
            {"template": {"path": "spec.region", "template": "{{ .LocalObject.spec.image | upper }}"}},
            {"template": {"path": "spec.region", "template": "{{ .Value.String | lower }}{{ if not .RemoteObject }}!{{ end }}"}},
            {"cel": {"path": "spec.double", "expression": "self.spec.replicas * 2"}},
        ]);
        let object =
            json!({"spec": {"secret": "x", "image": "nginx:latest", "replicas": 3, "big": 9_007_199_254_740_993_i64}});
        let out = compile(steps).unwrap().spec(&object, None).unwrap();
        assert_eq!(
            out,
            json!({"spec": {"image": "nginx:v1", "region": "nginx:v1!", "replicas": 3, "double": 6,
            "big": 9_007_199_254_740_993_i64}})
        );
    }

    #[test]
    fn templates_print_plain_text_and_nothing_for_what_is_missing() {
        let both = json!({"template": {"path": "out", "template":
            "{{ .LocalObject.is }} & {{ .RemoteObject.is }}: <{{ .LocalObject.missing }}> {{ .LocalObject.is | sha3short }}"}});
        let mutation: api::Mutation = serde_json::from_value(json!({"spec": [both], "status": [both]})).unwrap();
        let mutation = Mutation::compile("spec.mutation", Some(&mutation)).unwrap();
        let (remote, local) = (json!({"is": "kcp"}), json!({"is": "service"}));
        // The object being changed is always called local.
        let spec = mutation.spec(&remote, Some(&local)).unwrap();
        assert_eq!(spec["out"], "kcp & service: <> 29a095af9c65ec7c83ac");
        let status = mutation.status(&local, &remote).unwrap();
        assert!(status["out"].as_str().unwrap().starts_with("service & kcp: <> "), "{status}");
    }

    #[test]
    fn numbers_without_a_fraction_are_integers_wherever_they_come_from() {
        let steps = json!([{"cel": {"path": "spec.a", "expression": "value * 2.0"}},
            {"cel": {"path": "spec.b", "expression": "[1.0, 2.5, {'c': 3.0}]"}}]);
        let out = compile(steps).unwrap().spec(&json!({"spec": {"a": 3}}), None).unwrap();
        assert_eq!(out, json!({"spec": {"a": 6, "b": [1, 2.5, {"c": 3}]}}));
    }

    #[test]
    fn a_failure_names_rule_and_path() {
        for (step, expected) in [
            (
                json!({"cel": {"path": "spec.a", "expression": "self.spec.nope"}}),
                "spec.mutation.spec[0] failed at path \"spec.a\": ",
            ),
            (
                json!({"regex": {"path": "spec.list.x", "replacement": "y"}}),
                "spec.mutation.spec[0] failed at path \"spec.list.x\": ",
            ),
            (
                json!({"regex": {"path": "metadata", "replacement": "y"}}),
                "spec.mutation.spec[0] failed at path \"metadata\": ",
            ),
            (
                json!({"regex": {"path": "metadata.labels", "replacement": "y"}}),
                "spec.mutation.spec[0] failed at path \"metadata.labels\": ",
            ),
        ] {
            let object = json!({"metadata": {"name": "n"}, "spec": {"list": []}});
            let error = compile(json!([step])).unwrap().spec(&object, None).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn bad_rules_name_the_field() {
        for (steps, expected) in [
            (json!([{}]), "spec.mutation.spec[0]: no valid mutation mechanism"),
            (
                json!([{"delete": {"path": "a"}, "cel": {"path": "a", "expression": "1"}}]),
                "spec.mutation.spec[0]: several",
            ),
            (json!([{"delete": {"path": "a"}}, {"regex": {"path": "a", "pattern": "("}}]), "spec.mutation.spec[1]: "),
            (json!([{"cel": {"path": "a", "expression": "self.("}}]), "spec.mutation.spec[0]: "),
            (json!([{"template": {"path": "a", "template": "{{ if }}"}}]), "spec.mutation.spec[0]: "),
            (
                json!([{"template": {"path": "a", "template": "{{ genCA \"ca\" 1 }}"}}]),
                "spec.mutation.spec[0]: template line 1, column 4: function \"genCA\" is refused: its result is different at every rendering",
            ),
            (json!([{"delete": {"path": ""}}]), "spec.mutation.spec[0]: path cannot be empty"),
        ] {
            let error = compile(steps).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn what_was_made_at_random_can_be_kept() {
        let text = "{{ if .RemoteObject }}{{ .RemoteObject.spec.id }}{{ else }}{{ randAlphaNum 16 }}{{ end }}";
        let mutation = compile(json!([{"template": {"path": "spec.id", "template": text}}])).unwrap();
        let first = mutation.spec(&json!({}), None).unwrap();
        assert_eq!(first["spec"]["id"].as_str().unwrap().len(), 16);
        assert_eq!(mutation.spec(&json!({}), Some(&first)).unwrap(), first);
    }

    #[test]
    fn white_space_around_what_a_template_prints_is_dropped() {
        let steps = json!([{"template": {"path": "spec.a", "template": "\n  x y\n"}}]);
        assert_eq!(compile(steps).unwrap().spec(&json!({}), None).unwrap(), json!({"spec": {"a": "x y"}}));
    }
}
