//! Everything about the form of a schema that Kubernetes refuses before it looks at defaults and rules.

use regex::Regex;
use serde_json::Value;

use super::SchemaError;
use super::compile::ROOT;

/// All faults in the form of a schema; defaults and rules are looked at only if there are none.
pub(crate) fn faults(schema: &Value) -> Vec<SchemaError> {
    let mut found = Vec::new();
    node(schema, ROOT, true, &mut found);
    found
}

fn node(schema: &Value, path: &str, structural: bool, found: &mut Vec<SchemaError>) {
    let mut fault =
        |field: String, reason: &'static str, message: String| found.push(SchemaError { field, message, reason });
    if schema.get("$ref").is_some() {
        fault(format!("{path}.$ref"), "FieldValueForbidden", "Forbidden: $ref is not supported".to_owned());
    }
    let (kind, flag) = (schema["type"].as_str().unwrap_or_default(), |key: &str| schema[key] == true);
    let properties = schema["properties"].as_object().filter(|map| !map.is_empty());
    let additional = schema.get("additionalProperties").filter(|child| child.is_object());
    if properties.is_some() && additional.is_some() {
        let why = "Forbidden: additionalProperties and properties are mutual exclusive";
        fault(format!("{path}.additionalProperties"), "FieldValueForbidden", why.to_owned());
    }
    if schema["uniqueItems"] == true {
        let why = "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        fault(format!("{path}.uniqueItems"), "FieldValueForbidden", why.to_owned());
    }
    if let Some(text) = schema["pattern"].as_str()
        && Regex::new(text).is_err()
    {
        let why =
            format!("Invalid value: {text:?}: must be a valid regular expression, but isn't: {}", complaint(text));
        fault(format!("{path}.pattern"), "FieldValueInvalid", why);
    }
    let keys = schema["x-kubernetes-list-map-keys"].as_array().is_some_and(|keys| !keys.is_empty());
    match schema["x-kubernetes-list-type"].as_str() {
        Some("map") if !keys => {
            let why = "Required value: must not be empty if x-kubernetes-list-type is map";
            fault(format!("{path}.x-kubernetes-list-map-keys"), "FieldValueRequired", why.to_owned());
        }
        Some("atomic" | "set" | "map") | None => {}
        Some(other) => {
            let why = format!("Unsupported value: {other:?}: supported values: \"atomic\", \"map\", \"set\"");
            fault(format!("{path}.x-kubernetes-list-type"), "FieldValueNotSupported", why);
        }
    }
    if schema["x-kubernetes-list-type"].is_string() && kind != "array" {
        let why = format!("Invalid value: {kind:?}: must be array if x-kubernetes-list-type is specified");
        fault(format!("{path}.type"), "FieldValueInvalid", why);
    }
    if structural && kind == "array" && schema.get("items").is_none() {
        fault(format!("{path}.items"), "FieldValueRequired", "Required value: must be specified".to_owned());
    }
    let any = flag("x-kubernetes-int-or-string") || (flag("x-kubernetes-preserve-unknown-fields") && path != ROOT);
    if structural && kind.is_empty() && !any {
        let place = match path.rsplit_once('.').map(|(_, last)| last) {
            None => "at the root",
            Some("items") => "for specified array items",
            Some("additionalProperties") => "for specified object additionalProperties",
            Some(_) => "for specified object fields",
        };
        fault(format!("{path}.type"), "FieldValueRequired", format!("Required value: must not be empty {place}"));
    }
    for (name, child) in properties.into_iter().flatten() {
        node(child, &format!("{path}.properties[{name}]"), structural, found);
    }
    if let Some(child) = additional {
        node(child, &format!("{path}.additionalProperties"), structural, found);
    }
    if let Some(child) = schema.get("items") {
        node(child, &format!("{path}.items"), structural, found);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, child) in schema[key].as_array().into_iter().flatten().enumerate() {
            node(child, &format!("{path}.{key}[{index}]"), false, found);
        }
    }
    if let Some(child) = schema.get("not") {
        node(child, &format!("{path}.not"), false, found);
    }
}

/// What Go's parser says about the commonest mistakes, or that there is one.
fn complaint(pattern: &str) -> String {
    let open = |letter: char| pattern.rfind(letter);
    let at = |index: usize| &pattern[index..];
    match (open('['), open(']'), open('('), open(')')) {
        (Some(opened), None, ..) => format!("error parsing regexp: missing closing ]: `{}`", at(opened)),
        (_, _, Some(_), None) => format!("error parsing regexp: missing closing ): `{pattern}`"),
        (_, _, None, Some(_)) => format!("error parsing regexp: unexpected ): `{pattern}`"),
        _ => "error parsing regexp".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_faults_are_told_at_once() {
        let schema = json!({"type": "object", "properties": {
            "list": {"type": "array"},
            "none": {"description": "of no type"},
            "pattern": {"type": "string", "pattern": "["},
            "keyed": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
            "either": {"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "^a"}]},
        }});
        let told: Vec<String> =
            faults(&schema).into_iter().map(|fault| format!("{}: {}", fault.field, fault.message)).collect();
        let wanted = [
            "openAPIV3Schema.properties[keyed].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
            "openAPIV3Schema.properties[list].items: Required value: must be specified",
            "openAPIV3Schema.properties[none].type: Required value: must not be empty for specified object fields",
            "openAPIV3Schema.properties[pattern].pattern: Invalid value: \"[\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[`",
        ];
        assert_eq!(told, wanted);
    }
}
