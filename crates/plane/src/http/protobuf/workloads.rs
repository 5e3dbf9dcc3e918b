//! The messages of workload kinds, read from a table.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::messages::{Field, Form, META};

const TABLE: &str = include_str!("workloads.txt");

static MESSAGES: LazyLock<HashMap<&str, Vec<Field>>> = LazyLock::new(|| TABLE.lines().filter_map(message).collect());

/// The fields of a message such as `apps.Deployment`.
pub(in crate::http) fn named(name: &str) -> Option<&'static [Field]> {
    if name == "meta.ObjectMeta" { Some(META) } else { MESSAGES.get(name).map(Vec::as_slice) }
}

/// The fields of a kind.
pub(super) fn kind(api_version: &str, kind: &str) -> Option<&'static [Field]> {
    let package = match api_version {
        "v1" => "core",
        "networking.k8s.io/v1" => "networking",
        other => other.strip_suffix("/v1")?,
    };
    // Only whole objects are kinds.
    named(&format!("{package}.{kind}")).filter(|fields| fields.first().is_some_and(|first| first.name == "metadata"))
}

fn message(line: &'static str) -> Option<(&'static str, Vec<Field>)> {
    let (name, fields) = line.split_once(": ").filter(|(name, _)| !name.starts_with('#'))?;
    Some((name, fields.split("; ").filter_map(field).collect()))
}

fn field(text: &'static str) -> Option<Field> {
    let mut parts = text.split(' ');
    let (number, name, form) = (parts.next()?, parts.next()?, parts.next()?);
    let (repeated, map) = (form.starts_with("[]"), form.starts_with("{}"));
    let form = match (form.trim_start_matches(['[', ']', '{', '}']), repeated, map) {
        ("text", true, _) => Form::ItemText,
        ("text", _, true) => Form::Map,
        ("quantity", _, true) => Form::QuantityMap,
        (_, _, true) => Form::Unknown,
        ("text", ..) => Form::Text,
        ("int64", ..) => Form::Number,
        ("int32", ..) => Form::Int32,
        ("flag", ..) => Form::Flag,
        ("bytes", ..) => Form::Bytes,
        ("time", ..) => Form::Time,
        ("microtime", ..) => Form::MicroTime,
        ("json", ..) => Form::Json,
        ("quantity", ..) => Form::Quantity,
        ("intstr", ..) => Form::IntOrText,
        (other, ..) => other.strip_prefix('@').map_or(Form::Unknown, Form::Named),
    };
    let digits = number.trim_end_matches(['=', '?']);
    Some(Field {
        number: digits.parse().ok()?,
        name,
        form,
        repeated,
        inline: number.ends_with('='),
        zero_is_absent: number.ends_with('?'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(MESSAGES.len(), lines);
        for (name, fields) in MESSAGES.iter() {
            for field in fields {
                if let Form::Named(other) = field.form {
                    assert!(named(other).is_some(), "{name}.{} refers to {other}", field.name);
                }
            }
        }
        for (api_version, name) in [("apps/v1", "Deployment"), ("v1", "Pod"), ("networking.k8s.io/v1", "Ingress")] {
            assert!(kind(api_version, name).is_some());
        }
        assert!(kind("v1", "Container").is_none());
        assert!(kind("example.io/v1", "Widget").is_none());
    }
}
