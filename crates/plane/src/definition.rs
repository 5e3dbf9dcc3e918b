//! CRDs themselves: decoded, completed and validated as Kubernetes does it.
//!
//! ```text
//!   document ─▶ decode ─▶ complete ─▶ faults ─▶ tidy ─▶ stored
//!                 │ fields: the types it is read into      │
//!                 ▼                                        ▼
//!          unknown fields            spec ─▶ version, conversion, text, url, path
//!                                      └───▶ schema ─▶ structural ─▶ defaults ─▶ rules, pattern
//! ```
//!
//! All errors are reported at once, in Kubernetes' wording; `shown` formats values as Kubernetes does.

mod conversion;
mod decode;
mod defaults;
mod fields;
mod formats;
mod lists;
mod path;
mod published;
mod rules;
mod schema;
mod shown;
mod spec;
mod structural;
mod url;
#[cfg(test)]
mod vectors;
mod version;

use serde_json::{Value, json};

use crate::status::Cause;

pub(crate) use conversion::check_service;
pub(crate) use decode::{decode, tidy};
pub(crate) use formats::warnings;
pub(crate) use published::schema_faults;
pub(crate) use spec::{approval_condition, faults};
pub(crate) use url::check as check_url;

/// Fills in names, ports and conversion.
pub(crate) fn complete(crd: &mut Value) {
    let spec = &mut crd["spec"];
    let kind = text(&spec["names"], "kind").to_owned();
    for (key, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if text(&spec["names"], key).is_empty() && !kind.is_empty() {
            if !spec["names"].is_object() {
                spec["names"] = json!({});
            }
            spec["names"][key] = value.into();
        }
    }
    if !spec["conversion"].is_object() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    if let Some(Value::Object(service)) = spec.pointer_mut("/conversion/webhook/clientConfig/service") {
        service.entry("port").or_insert_with(|| 443.into());
    }
}

/// The versions in which objects may be stored: the previous ones and the current one; `old` is `None` for a new CRD.
pub(crate) fn stored_versions(crd: &Value, old: Option<&Value>) -> Value {
    let mut stored = old.map_or(Value::Null, |old| old["status"]["storedVersions"].clone());
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    if let Some(version) = versions.into_iter().find(|version| is_true(&version["storage"])) {
        let name = Value::from(text(version, "name"));
        match &mut stored {
            Value::Array(names) if names.contains(&name) => {}
            Value::Array(names) => names.push(name),
            _ => stored = json!([name]),
        }
    }
    stored
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn is_true(value: &Value) -> bool {
    *value == true || *value == "True"
}

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
