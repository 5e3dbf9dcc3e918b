//! The errors found in a definition.

use serde_json::Value;

use super::shown;
use crate::status::Cause;

/// The errors found so far.
#[derive(Debug, Default)]
pub(crate) struct Faults(pub(crate) Vec<Cause>);

impl Faults {
    pub(crate) fn required(&mut self, field: &str, detail: &str) {
        self.0.push(Cause::required(field, detail));
    }

    pub(crate) fn invalid(&mut self, field: &str, value: &Value, detail: &str) {
        self.shown(field, &shown::value(value), detail);
    }

    /// An invalid value that is shown in a form of its own.
    pub(crate) fn shown(&mut self, field: &str, value: &str, detail: &str) {
        self.0.push(Cause::invalid_text(field, value, detail));
    }

    pub(crate) fn forbidden(&mut self, field: &str, detail: &str) {
        self.0.push(Cause::forbidden(field, detail));
    }

    pub(crate) fn unsupported(&mut self, field: &str, value: &Value, supported: &[&str]) {
        let known: Vec<Value> = supported.iter().map(|text| Value::from(*text)).collect();
        self.0.push(Cause::unsupported(field, value, &known));
    }

    pub(crate) fn duplicate(&mut self, field: &str, value: &Value) {
        self.0.push(Cause::new("FieldValueDuplicate", field, format!("Duplicate value: {}", shown::value(value))));
    }

    pub(crate) fn too_many(&mut self, field: &str, found: usize, most: usize) {
        self.0.push(Cause::too_many(field, found as u64, most as u64));
    }
}
