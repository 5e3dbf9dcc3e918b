//! How an order of one API becomes an object of another, and how the status of that one comes back.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::ImplementsError;
use crate::api;
use crate::rules::ApiKind;
use crate::rules::conversion::step::ConversionStep;
use crate::rules::mutation::MutationError;

/// Compiled steps between an order and its copy.
#[derive(Debug, Clone)]
pub struct Mapping {
    spec: Arc<[ConversionStep]>,
    status: Arc<[ConversionStep]>,
    local: ApiKind,
    remote: ApiKind,
}

impl Mapping {
    /// Compiles the steps between orders of the remote kind and copies of the local one.
    pub fn compile(
        (spec, status): (&[api::ConversionStep], &[api::ConversionStep]),
        local: ApiKind,
        remote: ApiKind,
    ) -> Result<Self, ImplementsError> {
        let forbidden = |path: &str| {
            let mut names = path.split('.');
            match (names.next(), names.next()) {
                (Some("apiVersion" | "kind" | "status"), _) => true,
                (Some("metadata"), name) => !matches!(name, Some("labels" | "annotations")),
                _ => false,
            }
        };
        let down = "any field of the copy but its kind, its status and its metadata other than labels and annotations";
        let up = "status or a field below it";
        Ok(Self {
            spec: compile("spec", spec, forbidden, down)?,
            status: compile("status", status, |path| path.split('.').next() != Some("status"), up)?,
            local,
            remote,
        })
    }

    /// The copy that an order becomes. `copy` is the one that is there, or a draft that has its name.
    pub fn spec(&self, order: &Value, copy: Option<&Value>) -> Result<Value, MutationError> {
        let mut made = object(&self.local, &order["metadata"]);
        // Kinds without a spec get none.
        if self.spec.iter().any(|step| step.writes().split('.').next() == Some("spec")) {
            made["spec"] = json!({});
        }
        apply(&self.spec, &mut made, &with(order, "spec"), copy.unwrap_or(&Value::Null))?;
        Ok(made)
    }

    /// The order with the status that follows from its copy, and nothing else of it.
    pub fn status(&self, copy: &Value, order: &Value) -> Result<Value, MutationError> {
        let mut made = object(&self.remote, &order["metadata"]);
        made["status"] = json!({});
        apply(&self.status, &mut made, &with(copy, "status"), copy)?;
        if made["status"].as_object().is_some_and(Map::is_empty)
            && let Some(fields) = made.as_object_mut()
        {
            fields.remove("status");
        }
        Ok(made)
    }

    /// The kind of copies.
    pub fn local(&self) -> &ApiKind {
        &self.local
    }

    /// Whether anything of the status comes back.
    pub fn has_status(&self) -> bool {
        !self.status.is_empty()
    }

    /// The fields of orders that steps read, each from the outermost name; an empty one stands for the whole order.
    pub fn reads(&self) -> Vec<Vec<String>> {
        self.spec.iter().flat_map(ConversionStep::reads_other).collect()
    }
}

fn compile(
    field: &str,
    steps: &[api::ConversionStep],
    is_forbidden: impl Fn(&str) -> bool,
    allowed: &'static str,
) -> Result<Arc<[ConversionStep]>, ImplementsError> {
    let compiled = steps.iter().enumerate().map(|(index, step)| {
        let step = ConversionStep::compile_mapping(&format!("spec.implements.{field}[{index}]"), step)?;
        if is_forbidden(step.writes()) {
            let (at, path) = (step.at().to_owned(), step.writes().to_owned());
            return Err(ImplementsError::Target { at, path, allowed });
        }
        Ok(step)
    });
    compiled.collect()
}

fn apply(steps: &[ConversionStep], made: &mut Value, other: &Value, copy: &Value) -> Result<(), MutationError> {
    let metadata = &copy["metadata"];
    let copy = json!({ "name": metadata["name"], "namespace": metadata["namespace"] });
    steps.iter().try_for_each(|step| step.map(made, other, &copy))
}

/// The object with this field, if only an empty one, so that not every rule has to ask whether it is there.
fn with<'a>(object: &'a Value, field: &str) -> Cow<'a, Value> {
    if object.get(field).is_some_and(Value::is_object) {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    object[field] = json!({});
    Cow::Owned(object)
}

/// An object without content.
fn object(kind: &ApiKind, metadata: &Value) -> Value {
    json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata })
}
