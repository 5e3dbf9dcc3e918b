//! The page of a PublishedResource's fields, made from its CRD.

use std::fmt::Write as _;

use serde_json::Value;

use super::MADE_OF_CODE;
use super::markdown::{code, sentence};

const HEAD: &str = "\
# Fields of a PublishedResource

What the CRD says, field by field; `kubectl explain publishedresource.spec` says the same on a cluster. [What a PublishedResource says](../publishing.md) explains how the fields
work together, and each group has a page with examples. `[]` is an entry of a list, `.*` any key of a map; **bold** fields are required where what they are in is given.
";

/// Pages that explain a group of fields, by the group's name.
const PAGES: [(&str, &str); 15] = [
    ("filter", "../publishing/filter.md"),
    ("projection", "../publishing/projection.md"),
    ("naming", "../publishing/naming.md"),
    ("mutation", "../publishing/mutation.md"),
    ("related", "../publishing/related.md"),
    ("implements", "../publishing/implements.md"),
    ("reads", "../publishing/report.md"),
    ("report", "../publishing/report.md"),
    ("limits", "../publishing/limits.md"),
    ("admission", "../publishing/limits.md"),
    ("feedback", "../publishing/limits.md"),
    ("conversion", "../versions.md"),
    ("schemaUpdates", "../evolving.md"),
    ("adoption", "../operations/memory.md#who-owns-a-copy"),
    ("afterRestore", "../operations/backup.md"),
];

/// What a selector has; told once.
const SELECTOR: &str = "matchExpressions";

/// The page.
pub fn page() -> String {
    let crd = carrick_syncagent::api::crd();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let mut page = format!("{MADE_OF_CODE}\n\n{HEAD}");
    let spec = &schema["spec"];
    let groups = spec["properties"].as_object().into_iter().flatten();
    for (name, field) in groups {
        let _ = write!(page, "\n## {name}\n\n");
        if let Some((_, link)) = PAGES.iter().find(|(group, _)| group == name) {
            let _ = write!(page, "[Explained, with examples]({link}).\n\n");
        }
        page += "| field | type | what it says |\n| --- | --- | --- |\n";
        let required = is_required(spec, name);
        rows(&mut page, &format!("spec.{name}"), field, required);
    }
    page += "\n## Label selectors\n\nFields of type *selector* are those of Kubernetes: `matchLabels`, and `matchExpressions` with `key`, `operator` and `values`.\n";
    page += "\n## status\n\nWritten by the agent; [conditions and their reasons](reasons.md).\n\n| field | type | what it says |\n| --- | --- | --- |\n";
    for (name, field) in schema["status"]["properties"].as_object().into_iter().flatten() {
        rows(&mut page, &format!("status.{name}"), field, false);
    }
    page
}

/// A row for a field, and for those below it.
fn rows(page: &mut String, path: &str, field: &Value, required: bool) {
    let name = if required { format!("**{}**", code(path)) } else { code(path) };
    let mut told = field["description"].as_str().map(sentence).unwrap_or_default();
    if let Some(allowed) = field["enum"].as_array() {
        let allowed: Vec<String> = allowed.iter().filter_map(Value::as_str).map(code).collect();
        let _ = write!(told, " One of {}.", allowed.join(", "));
    }
    for rule in field["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let text = rule["message"].as_str().or(rule["rule"].as_str()).unwrap_or_default();
        let _ = write!(told, " Checked: {}", sentence(text));
    }
    let is_selector = field["properties"].get(SELECTOR).is_some();
    let kind = if is_selector { "selector".to_owned() } else { kind(field) };
    *page += &["| ", &name, " | ", &kind, " | ", told.trim(), " |\n"].concat();
    if is_selector {
        return;
    }
    // A list or a map has no fields of its own, but its entries may.
    let (entry, mark) = match (field.get("items"), field.get("additionalProperties")) {
        (Some(items), _) => (items, "[]"),
        (None, Some(values)) => (values, ".*"),
        (None, None) => (field, ""),
    };
    for (name, inner) in entry["properties"].as_object().into_iter().flatten() {
        rows(page, &format!("{path}{mark}.{name}"), inner, is_required(entry, name));
    }
}

fn is_required(parent: &Value, name: &str) -> bool {
    parent["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name))
}

/// The type in a word or two.
fn kind(field: &Value) -> String {
    let own = field["type"].as_str().unwrap_or("any");
    match (field.get("items"), field.get("additionalProperties")) {
        (Some(items), _) => format!("list of {}", kind(items)),
        (None, Some(values)) if values.is_object() => format!("map of {}", kind(values)),
        _ => own.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_told_with_path_type_and_duty() {
        let field = json!({ "type": "array", "description": "entries", "items": { "type": "object", "required": ["a"], "properties": {
            "a": { "type": "string", "enum": ["x", "y"], "description": "A word" },
            "b": { "type": "object", "properties": { "matchExpressions": {}, "matchLabels": {} } },
        } } });
        let mut page = String::new();
        rows(&mut page, "spec.list", &field, false);
        let wanted = "| `spec.list` | list of object | Entries. |\n| **`spec.list[].a`** | string | A word. One of `x`, `y`. |\n| `spec.list[].b` | selector |  |\n";
        assert_eq!(page, wanted);
    }

    #[test]
    fn pages_that_explain_groups_are_those_of_groups_that_exist() {
        let page = page();
        for (group, _) in PAGES {
            assert!(page.contains(&format!("\n## {group}\n")), "there is no {group}");
        }
        assert!(page.contains("| **`spec.resource`** |"), "{page}");
    }
}
