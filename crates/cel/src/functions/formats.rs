//! Named formats: `format.dns1123Label().validate(text)` gives what is wrong with the text.

use crate::eval::{Outcome, overload};
use crate::functions::{time, url};
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
    Format { name: "dns1123Label", check: dns1123_label },
    Format { name: "dns1123Subdomain", check: dns1123_subdomain },
    Format { name: "dns1035Label", check: dns1035_label },
    Format { name: "qualifiedName", check: qualified_name },
    Format { name: "dns1123LabelPrefix", check: |text| dns1123_label(&without_dash(text)) },
    Format { name: "dns1123SubdomainPrefix", check: |text| dns1123_subdomain(&without_dash(text)) },
    Format { name: "dns1035LabelPrefix", check: |text| dns1035_label(&without_dash(text)) },
    Format { name: "labelValue", check: label_value },
    Format { name: "uri", check: |text| url::request_fault(text).into_iter().collect() },
    Format { name: "uuid", check: |text| unless(is_uuid(text), "does not match the UUID format") },
    Format { name: "byte", check: |text| unless(is_base64(text), "invalid base64") },
    Format { name: "date", check: |text| unless(is_date(text), "invalid date") },
    Format { name: "datetime", check: |text| unless(is_datetime(text), "invalid datetime") },
];

fn named(name: &str) -> Outcome {
    let found = FORMATS.iter().find(|known| known.name == name);
    found.map(Value::Format).ok_or(crate::expression::EvalError::Other("no such format"))
}

fn unless(fine: bool, fault: &str) -> Vec<String> {
    if fine { Vec::new() } else { vec![fault.to_owned()] }
}

fn too_long(text: &str, most: usize) -> Vec<String> {
    unless(text.len() <= most, &format!("must be no more than {most} bytes"))
}

/// Whether the text has only these characters, and begins and ends with a letter or digit (or only a letter).
fn is_label(text: &str, letter_first: bool) -> bool {
    let ends = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    (if letter_first { first.is_ascii_lowercase() } else { ends(*first) })
        && ends(*last)
        && bytes.iter().all(|c| ends(*c) || *c == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(|label| is_label(label, false))
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

fn dns1123_label(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 63);
    if is_label(text, false) {
        return faults;
    }
    if is_subdomain(text) {
        faults.push("must not contain dots".to_owned());
    } else {
        faults.push(format!(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
             end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
        ));
    }
    faults
}

fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 253);
    let fault = format!(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
         and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{LABEL}(\\.{LABEL})*')"
    );
    faults.extend(unless(is_subdomain(text), &fault));
    faults
}

fn dns1035_label(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 63);
    let fault = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                 character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                 validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    faults.extend(unless(is_label(text, true), fault));
    faults
}

/// Letters, digits and `-_.`, with a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(c))
}

const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

fn qualified_name(text: &str) -> Vec<String> {
    let rule = format!(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{NAME}')"
    );
    let mut faults = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        ["", name] => {
            faults.push("prefix part must be non-empty".to_owned());
            name
        }
        [prefix, name] => {
            faults.extend(dns1123_subdomain(prefix).into_iter().map(|fault| format!("prefix part {fault}")));
            name
        }
        _ => {
            let example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {rule} {example}")];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else {
        faults.extend(too_long(name, 63).into_iter().map(|fault| format!("name part {fault}")));
    }
    faults.extend(unless(is_name(name), &format!("name part {rule}")));
    faults
}

fn label_value(text: &str) -> Vec<String> {
    let mut faults = too_long(text, 63);
    let fault = format!(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
         and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation \
         is '({NAME})?')"
    );
    faults.extend(unless(text.is_empty() || is_name(text), &fault));
    faults
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
