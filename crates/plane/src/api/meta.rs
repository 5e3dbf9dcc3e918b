//! Times, names and identifiers.

use serde_json::Value;

use crate::status::Cause;

/// The present time with seconds, as in `creationTimestamp`.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The present time with microseconds, as in leases and events.
pub fn now_micro() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A random object id.
pub(super) fn uid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A name from `generateName`: five random letters appended.
pub(super) fn generated_name(prefix: &str) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let bytes = uuid::Uuid::new_v4().into_bytes();
    let suffix = bytes.iter().take(5).map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
    let keep = prefix.char_indices().nth(58).map_or(prefix.len(), |(index, _)| index);
    prefix[..keep].chars().chain(suffix).collect()
}

/// A list of texts in metadata, such as finalizers.
pub(crate) fn texts<'a>(object: &'a Value, key: &str) -> Vec<&'a str> {
    object["metadata"][key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// `metadata.name`.
pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Which rule a kind's names follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameRule {
    Label,
    Subdomain,
    PathSegment,
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// What is wrong with a name, if anything.
pub(super) fn check_name(rule: NameRule, name: &str) -> Option<Cause> {
    let value = Value::String(name.to_owned());
    let fault = |detail: &str| Some(Cause::invalid("metadata.name", &value, detail));
    match rule {
        NameRule::Label if name.len() > 63 => fault("must be no more than 63 bytes"),
        NameRule::Label if !is_label(name) => fault(LABEL),
        NameRule::Subdomain if name.len() > 253 => fault("must be no more than 253 bytes"),
        NameRule::Subdomain if !name.split('.').all(is_label) => fault(SUBDOMAIN),
        NameRule::PathSegment if name == "." || name == ".." => fault(&format!("may not be '{name}'")),
        NameRule::PathSegment if name.contains('/') => fault("may not contain '/'"),
        NameRule::PathSegment if name.contains('%') => fault("may not contain '%'"),
        _ => None,
    }
}

fn is_label(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    !text.is_empty() && text.chars().all(|c| plain(c) || c == '-') && text.starts_with(plain) && text.ends_with(plain)
}

/// What is wrong with labels, annotations, finalizers and owner references.
pub(super) fn check_metadata(object: &Value) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut causes = Vec::new();
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        check_key("metadata.labels", key, &mut causes);
        let text = value.as_str().unwrap_or_default();
        if !is_label_value(text) {
            let detail = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
            causes.push(Cause::invalid("metadata.labels", value, detail));
        }
    }
    for (key, _) in metadata["annotations"].as_object().into_iter().flatten() {
        check_key("metadata.annotations", &key.to_lowercase(), &mut causes);
    }
    for (index, owner) in metadata["ownerReferences"].as_array().into_iter().flatten().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                let path = format!("metadata.ownerReferences[{index}].{field}");
                causes.push(Cause::invalid(
                    &path,
                    &Value::String(String::new()),
                    &format!("{field} must not be empty"),
                ));
            }
        }
    }
    causes
}

fn check_key(field: &str, key: &str, causes: &mut Vec<Cause>) {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let fits = !name.is_empty()
        && is_label_value(name)
        && prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.split('.').all(is_label));
    if !fits {
        let plain = key.matches('/').count() < 2;
        let part = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        let detail = if plain {
            format!("name part {part}")
        } else {
            format!("a qualified name {part} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")
        };
        causes.push(Cause::invalid(field, &Value::String(key.to_owned()), &detail));
    }
}

fn is_label_value(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric();
    text.is_empty()
        || (text.len() <= 63
            && text.chars().all(|c| plain(c) || matches!(c, '-' | '_' | '.'))
            && text.starts_with(plain)
            && text.ends_with(plain))
}

/// Checks the types inside metadata, as decoding into Kubernetes' own struct would.
pub(super) fn decode_metadata(object: &Value) -> Result<(), String> {
    let metadata = match &object["metadata"] {
        Value::Null => return Ok(()),
        found => found.as_object().ok_or("metadata must be an object")?,
    };
    for (key, value) in metadata {
        let fits = match key.as_str() {
            "labels" | "annotations" => {
                value.is_null() || value.as_object().is_some_and(|map| map.values().all(Value::is_string))
            }
            "finalizers" => value.is_null() || value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            "ownerReferences" | "managedFields" => {
                value.is_null() || value.as_array().is_some_and(|list| list.iter().all(Value::is_object))
            }
            "generation" | "deletionGracePeriodSeconds" => value.is_null() || value.is_i64(),
            "name" | "generateName" | "namespace" | "selfLink" | "uid" | "resourceVersion" | "creationTimestamp"
            | "deletionTimestamp" => value.is_null() || value.is_string(),
            // What nobody knows is dropped or refused later, whatever it is.
            _ => true,
        };
        if !fits {
            return Err(format!("metadata.{key} has the wrong type"));
        }
    }
    Ok(())
}
