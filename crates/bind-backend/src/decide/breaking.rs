//! Which change of a schema breaks consumers.

use carrick_bind_api::v1alpha2::BoundSchemaSpec;
use serde_json::Value;

/// What would break for a consumer if its schema became the new one; none if nothing would.
pub fn breaks(old: &BoundSchemaSpec, new: &BoundSchemaSpec) -> Option<String> {
    if old.scope != new.scope {
        return Some(format!("its scope would change from {} to {}", old.scope, new.scope));
    }
    if (&old.names.kind, &old.names.plural, &old.group) != (&new.names.kind, &new.names.plural, &new.group) {
        return Some(format!("its kind would change from {} to {}", old.names.kind, new.names.kind));
    }
    for version in old.versions.iter().filter(|version| version.served) {
        let Some(next) = new.versions.iter().find(|next| next.name == version.name && next.served) else {
            return Some(format!("version {} would go", version.name));
        };
        if let Some(problem) = narrows(inner(&version.schema), inner(&next.schema), "") {
            return Some(format!("in version {}, {problem}", version.name));
        }
        for part in ["status", "scale"] {
            if version.subresources.get(part).is_some() && next.subresources.get(part).is_none() {
                return Some(format!("in version {}, subresource {part} would go", version.name));
            }
        }
    }
    None
}

/// The schema itself, wrapped or not.
fn inner(schema: &Value) -> &Value {
    schema.get("openAPIV3Schema").unwrap_or(schema)
}

/// Why some object that was fine would not be any more, or would lose a field.
fn narrows(old: &Value, new: &Value, path: &str) -> Option<String> {
    let at = if path.is_empty() { "the object" } else { path };
    if old["type"] != new["type"] {
        return Some(format!("the type of {at} would change from {} to {}", old["type"], new["type"]));
    }
    let open = |schema: &Value| schema["x-kubernetes-preserve-unknown-fields"] == true;
    if open(old) && !open(new) {
        return Some(format!("{at} would lose fields that are not known"));
    }
    let list = |schema: &Value, key: &str| schema[key].as_array().cloned().unwrap_or_default();
    if let Some(field) = list(new, "required").iter().find(|field| !list(old, "required").contains(field)) {
        return Some(format!("field {} of {at} would become required", field.as_str().unwrap_or_default()));
    }
    if new["enum"].is_array() {
        let kept = list(new, "enum");
        if !old["enum"].is_array() || list(old, "enum").iter().any(|value| !kept.contains(value)) {
            return Some(format!("{at} would allow fewer values"));
        }
    }
    for (key, larger_is_stricter) in [
        ("minimum", true),
        ("minLength", true),
        ("minItems", true),
        ("minProperties", true),
        ("maximum", false),
        ("maxLength", false),
        ("maxItems", false),
        ("maxProperties", false),
    ] {
        let (before, after) = (old[key].as_f64(), new[key].as_f64());
        let stricter = match (before, after) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(before), Some(after)) => {
                if larger_is_stricter {
                    after > before
                } else {
                    after < before
                }
            }
        };
        if stricter {
            return Some(format!("{key} of {at} would become stricter"));
        }
    }
    for key in ["pattern", "format"] {
        if !new[key].is_null() && new[key] != old[key] {
            return Some(format!("{key} of {at} would change"));
        }
    }
    if old["nullable"] == true && new["nullable"] != true {
        return Some(format!("{at} could not be null any more"));
    }
    for key in ["x-kubernetes-validations", "allOf", "anyOf", "oneOf"] {
        if let Some(rule) = list(new, key).iter().find(|rule| !list(old, key).contains(rule)) {
            let text = rule["rule"].as_str().unwrap_or(key);
            return Some(format!("{at} would have to follow another rule: {text}"));
        }
    }
    for (field, before) in old["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
        match new["properties"].get(field) {
            None if !open(new) && !new["additionalProperties"].is_object() => {
                return Some(format!("field {path} would go"));
            }
            None => {}
            Some(after) => {
                if let Some(problem) = narrows(before, after, &path) {
                    return Some(problem);
                }
            }
        }
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "[*]")] {
        if old[key].is_object()
            && let Some(problem) = narrows(&old[key], &new[key], &format!("{path}{mark}"))
        {
            return Some(problem);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A change, and what is said about it.
    type Broken<'a> = (&'a dyn Fn(&mut Value), &'a str);

    #[test]
    fn only_what_takes_something_away_breaks() {
        let old = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "enum": ["x", "y"]}, "n": {"type": "integer", "maximum": 5},
            "l": {"type": "array", "items": {"type": "object", "properties": {"q": {"type": "string"}}}}}});
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut new = old.clone();
            change(&mut new);
            narrows(&old, &new, "")
        };
        let fine: [&dyn Fn(&mut Value); 5] = [
            &|_| {},
            &|it| it["properties"]["b"] = json!({"type": "string"}),
            &|it| it["required"] = json!([]),
            &|it| it["properties"]["a"]["enum"] = json!(["x", "y", "z"]),
            &|it| it["properties"]["n"]["maximum"] = json!(9),
        ];
        for change in fine {
            assert_eq!(changed(change), None);
        }
        let broken: [Broken<'_>; 7] = [
            (&|it| it["properties"]["a"]["type"] = json!("integer"), "the type of a would change"),
            (&|it| drop(it["properties"].as_object_mut().unwrap().remove("n")), "field n would go"),
            (&|it| it["required"] = json!(["a", "n"]), "field n of the object would become required"),
            (&|it| it["properties"]["a"]["enum"] = json!(["x"]), "a would allow fewer values"),
            (&|it| it["properties"]["n"]["maximum"] = json!(4), "maximum of n would become stricter"),
            (&|it| it["properties"]["l"]["items"]["properties"] = json!({}), "field l[].q would go"),
            (
                &|it| it["x-kubernetes-validations"] = json!([{"rule": "has(self.a)"}]),
                "follow another rule: has(self.a)",
            ),
        ];
        for (change, said) in broken {
            let problem = changed(change).unwrap();
            assert!(problem.contains(said), "{problem}");
        }
    }
}
