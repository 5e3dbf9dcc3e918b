//! Named formats: `format.dns1123Label().validate(text)` gives what is wrong with the text.

use carrick_go::names;
use carrick_go::url::Url;

use crate::eval::{Outcome, overload};
use crate::functions::time;
use crate::signature::Row;
use crate::value::Value;

pub(crate) const ROWS: &[Row] = &[
    ("format.named(string): optional(Format)", |arguments, _| match arguments {
        [Value::String(name)] => {
            Ok(Value::optional(FORMATS.iter().find(|known| known.name == &**name).map(Value::Format)))
        }
        _ => Err(overload("format.named", arguments)),
    }),
    ("Format.validate(string): optional(list(string))", |arguments, budget| match arguments {
        [Value::Format(format), Value::String(text)] => {
            budget.bytes(text.len())?;
            let faults: Vec<Value> = (format.check)(text).into_iter().map(Value::string).collect();
            Ok(Value::optional((!faults.is_empty()).then(|| Value::list(faults))))
        }
        _ => Err(overload("validate", arguments)),
    }),
    ("format.dns1123Label(): Format", |_, _| named("dns1123Label")),
    ("format.dns1123Subdomain(): Format", |_, _| named("dns1123Subdomain")),
    ("format.dns1035Label(): Format", |_, _| named("dns1035Label")),
    ("format.qualifiedName(): Format", |_, _| named("qualifiedName")),
    ("format.dns1123LabelPrefix(): Format", |_, _| named("dns1123LabelPrefix")),
    ("format.dns1123SubdomainPrefix(): Format", |_, _| named("dns1123SubdomainPrefix")),
    ("format.dns1035LabelPrefix(): Format", |_, _| named("dns1035LabelPrefix")),
    ("format.labelValue(): Format", |_, _| named("labelValue")),
    ("format.uri(): Format", |_, _| named("uri")),
    ("format.uuid(): Format", |_, _| named("uuid")),
    ("format.byte(): Format", |_, _| named("byte")),
    ("format.date(): Format", |_, _| named("date")),
    ("format.datetime(): Format", |_, _| named("datetime")),
];

/// A format and what it says about a text.
#[derive(Debug)]
pub(crate) struct Format {
    pub name: &'static str,
    check: fn(&str) -> Vec<String>,
}

static FORMATS: [Format; 13] = [
    Format { name: "dns1123Label", check: |text| names::V1_37.dns1123_label(text) },
    Format { name: "dns1123Subdomain", check: |text| names::V1_37.dns1123_subdomain(text) },
    Format { name: "dns1035Label", check: |text| names::V1_37.dns1035_label(text) },
    Format { name: "qualifiedName", check: |text| names::V1_37.label_key(text) },
    Format { name: "dns1123LabelPrefix", check: |text| names::V1_37.dns1123_label(&without_dash(text)) },
    Format { name: "dns1123SubdomainPrefix", check: |text| names::V1_37.dns1123_subdomain(&without_dash(text)) },
    Format { name: "dns1035LabelPrefix", check: |text| names::V1_37.dns1035_label(&without_dash(text)) },
    Format { name: "labelValue", check: |text| names::V1_37.label_value(text) },
    Format { name: "uri", check: uri },
    Format { name: "uuid", check: |text| unless(is_uuid(text), "does not match the UUID format") },
    Format { name: "byte", check: |text| unless(is_base64(text), "invalid base64") },
    Format { name: "date", check: |text| unless(is_date(text), "invalid date") },
    Format { name: "datetime", check: |text| unless(is_datetime(text), "invalid datetime") },
];

fn named(name: &str) -> Outcome {
    let found = FORMATS.iter().find(|known| known.name == name);
    found.map(Value::Format).ok_or(crate::expression::EvalError::Other("no such format"))
}

fn uri(text: &str) -> Vec<String> {
    Url::parse_request(text.as_bytes()).err().into_iter().map(|error| error.to_string()).collect()
}

fn unless(fine: bool, fault: &str) -> Vec<String> {
    if fine { Vec::new() } else { vec![fault.to_owned()] }
}

/// A prefix may end with a dash: what follows makes it whole.
fn without_dash(text: &str) -> String {
    let Some(before) = text.strip_suffix('-').filter(|before| !before.is_empty()) else { return text.to_owned() };
    let mut kept: String = before.to_owned();
    kept.pop();
    kept + "a"
}

fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.split_at_checked(length) {
            Some((digits, after)) if digits.bytes().all(|c| c.is_ascii_hexdigit()) => rest = after,
            _ => return false,
        }
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    !text.is_empty() && data_encoding::BASE64.decode(text.as_bytes()).is_ok()
}

/// `2024-01-31`
pub(crate) fn is_date(text: &str) -> bool {
    time::parse_timestamp(&format!("{text}T00:00:00Z")).is_some()
}

fn is_datetime(text: &str) -> bool {
    time::parse_timestamp(&text.to_ascii_uppercase()).is_some()
}
