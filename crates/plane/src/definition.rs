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
mod faults;
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
mod value;
#[cfg(test)]
mod vectors;
mod version;

use serde_json::{Value, json};

pub(crate) use conversion::check_service;
pub(crate) use decode::{decode, tidy};
pub(crate) use faults::Faults;
pub(crate) use formats::warnings;
pub(crate) use published::schema_faults;
pub(crate) use spec::{approval_condition, faults};
pub(crate) use url::check as check_url;
use value::{is_true, text};

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
