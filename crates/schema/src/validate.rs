//! Validates an object, with Kubernetes' messages.

use serde_json::{Map, Value};

use crate::cause::Cause;
use crate::format;
use crate::node::{ListType, Schema, Type};

impl Schema {
    /// Everything that is wrong with an object. With `old`, errors in unchanged parts are tolerated.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = Vec::new();
        self.validate_node(object, old, "", &mut causes);
        let broken_rules = self.check_rules(object, old, &causes);
        causes.extend(broken_rules);
        causes
    }

    /// Everything that is wrong with an object whose status is written: only the status and rules are checked.
    pub fn validate_status(&self, object: &Value, old: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        if let (Some(schema), Some(status)) = (self.properties.get("status"), object.get("status")) {
            schema.validate_node(status, old.get("status"), "", &mut causes);
        }
        for cause in causes.iter_mut().filter(|cause| cause.field != "<nil>") {
            cause.field = if cause.field.is_empty() { "status".to_owned() } else { format!("status.{}", cause.field) };
        }
        let broken_rules = self.check_rules(object, Some(old), &causes);
        causes.extend(broken_rules);
        causes
    }

    pub(super) fn validate_node(&self, value: &Value, old: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
        if old == Some(value) {
            return;
        }
        if value.is_null() && (self.nullable || self.kind == Type::Any) {
            return;
        }
        if !self.has_type(value) {
            causes.push(wrong_type(path, self.type_name(), value));
            if value.is_null() {
                self.check_enum(value, path, causes);
                return;
            }
        }
        self.check_value(value, path, causes);
        match value {
            Value::Object(map) => self.validate_object(map, old, path, causes),
            Value::Array(list) => self.validate_list(list, old, path, causes),
            _ => {}
        }
    }

    fn validate_object(&self, map: &Map<String, Value>, old: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
        for name in &self.required {
            if !map.contains_key(name) {
                causes.push(Cause::required(&join(path, name), ""));
            }
        }
        for (name, found) in map {
            if let Some(child) = self.properties.get(name).or(self.additional.as_deref()) {
                let before = old.and_then(|old| old.get(name));
                // For a null that is not allowed, Kubernetes reports its type.
                child.validate_node(found, before, &join(path, name), causes);
            }
        }
        if self.embedded {
            embedded(map, path, causes);
        }
    }

    fn validate_list(&self, list: &[Value], old: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
        let old_list = old.and_then(Value::as_array);
        for (index, item) in list.iter().enumerate() {
            if let Some(items) = &self.items {
                let before = old_list.and_then(|all| self.counterpart(item, index, all));
                items.validate_node(item, before, &format!("{path}[{index}]"), causes);
            }
        }
        match &self.list {
            ListType::Atomic => {}
            ListType::Set => duplicates(list, path, Value::clone, causes),
            ListType::Map(keys) => duplicates(list, path, |item| key_of(item, keys), causes),
        }
    }

    /// The item of an old list that corresponds to a new one.
    pub(super) fn counterpart<'a>(&self, item: &Value, index: usize, old: &'a [Value]) -> Option<&'a Value> {
        match &self.list {
            ListType::Map(keys) => {
                let key = key_of(item, keys);
                old.iter().find(|candidate| key_of(candidate, keys) == key)
            }
            ListType::Set => old.iter().find(|candidate| *candidate == item),
            ListType::Atomic => old.get(index),
        }
    }

    fn has_type(&self, value: &Value) -> bool {
        match self.kind {
            Type::Any => true,
            Type::Object => value.is_object(),
            Type::Array => value.is_array(),
            Type::String => value.is_string(),
            Type::Integer => is_whole(value),
            Type::Number => value.is_number(),
            Type::Boolean => value.is_boolean(),
            Type::IntOrString => value.is_string() || is_whole(value),
        }
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self.kind {
            Type::Any => "any",
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
            Type::IntOrString => "integer,string",
        }
    }

    fn check_value(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let checks = &self.checks;
        if checks.is_none() {
            return;
        }
        let body = body(path);
        let mut fault = |detail: String| causes.push(Cause::invalid(path, value, &detail));
        if let Some(number) = value.as_f64() {
            match checks.minimum {
                Some(limit) if checks.exclusive_minimum && number <= limit => {
                    fault(format!("{body} should be greater than {limit}"));
                }
                Some(limit) if !checks.exclusive_minimum && number < limit => {
                    fault(format!("{body} should be greater than or equal to {limit}"));
                }
                _ => {}
            }
            match checks.maximum {
                Some(limit) if checks.exclusive_maximum && number >= limit => {
                    fault(format!("{body} should be less than {limit}"));
                }
                Some(limit) if !checks.exclusive_maximum && number > limit => {
                    fault(format!("{body} should be less than or equal to {limit}"));
                }
                _ => {}
            }
            // Integers are divided by an integer factor, even if that is zero.
            let whole = value.is_i64() || value.is_u64();
            let mut zero_factor = false;
            match checks.multiple_of {
                Some(step) if whole && step.trunc() <= 0.0 => {
                    zero_factor = true;
                }
                Some(step) if whole && (number % step.trunc()) == 0.0 => {}
                Some(step) if (number / step).fract() != 0.0 => {
                    fault(format!("{body} should be a multiple of {step}"));
                }
                _ => {}
            }
            if zero_factor {
                let message = format!("Invalid value: 0: factor MultipleOf declared for {path} must be positive: 0");
                causes.push(Cause::new("FieldValueInvalid", path, message));
            }
        }
        let mut fault = |detail: String| causes.push(Cause::invalid(path, value, &detail));
        if let Some(text) = value.as_str() {
            let length = text.chars().count() as u64;
            // Only the first of these is reported.
            if let Some(limit) = checks.max_length.filter(|limit| length > *limit) {
                causes.push(Cause::too_long(path, usize::try_from(limit).unwrap_or(usize::MAX)));
            } else if let Some(limit) = checks.min_length.filter(|limit| length < *limit) {
                fault(format!("{body} should be at least {limit} chars long"));
            } else if let Some(pattern) = &checks.pattern
                && !pattern.is_match(text)
            {
                fault(format!("{body} should match '{}'", pattern.as_str()));
            }
            if let Some(name) = &checks.format
                && !format::fits(name, text)
            {
                let message = format!("Invalid value: {value}: {body} must be of type {name}: {value}");
                causes.push(Cause::new("FieldValueTypeInvalid", path, message));
            }
        }
        self.check_size(value, path, causes);
        self.check_enum(value, path, causes);
        self.check_branches(value, path, causes);
    }

    fn check_enum(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        if let Some(values) = &self.checks.values
            && !values.contains(value)
        {
            // All of them are reported as strings.
            let texts = values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            causes.push(Cause::unsupported(path, value, &texts.map(Value::from).collect::<Vec<_>>()));
        }
    }

    fn check_size(&self, value: &Value, path: &str, causes: &mut Vec<Cause>) {
        let checks = &self.checks;
        let body = body(path);
        let (length, least, most, noun) = match value {
            Value::Array(list) => (list.len() as u64, checks.min_items, checks.max_items, "items"),
            Value::Object(map) => (map.len() as u64, checks.min_properties, checks.max_properties, "properties"),
            _ => return,
        };
        if let Some(limit) = least.filter(|limit| length < *limit) {
            causes.push(Cause::invalid(path, &length.into(), &format!("{body} should have at least {limit} {noun}")));
        }
        if let Some(limit) = most.filter(|limit| length > *limit) {
            causes.push(Cause::too_many(path, length, limit));
        }
        if checks.unique
            && let Value::Array(list) = value
            && list.iter().enumerate().any(|(index, item)| list[..index].contains(item))
        {
            causes.push(Cause::invalid(path, value, &format!("{body} shouldn't contain duplicates")));
        }
    }
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn body(path: &str) -> String {
    if path.is_empty() { "<nil> in body".to_owned() } else { format!("{path} in body") }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn wrong_type(path: &str, wanted: &str, value: &Value) -> Cause {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let message = format!("Invalid value: {found:?}: {} must be of type {wanted}: {found:?}", body(path));
    Cause::new("FieldValueTypeInvalid", path, message)
}

/// The values of the key fields of a list item.
pub(super) fn key_of(item: &Value, keys: &[String]) -> Value {
    let pairs = keys.iter().filter_map(|key| item.get(key).map(|value| (key.clone(), value.clone())));
    Value::Object(pairs.collect())
}

fn duplicates(list: &[Value], path: &str, key: impl Fn(&Value) -> Value, causes: &mut Vec<Cause>) {
    let keys: Vec<Value> = list.iter().map(key).collect();
    for (index, found) in keys.iter().enumerate() {
        if keys[..index].contains(found) {
            let message = format!("Duplicate value: {found}");
            causes.push(Cause::new("FieldValueDuplicate", &format!("{path}[{index}]"), message));
        }
    }
}

fn embedded(map: &Map<String, Value>, path: &str, causes: &mut Vec<Cause>) {
    for name in ["apiVersion", "kind"] {
        match map.get(name).and_then(Value::as_str) {
            None => causes.push(Cause::required(&join(path, name), "")),
            Some("") => causes.push(Cause::required(&join(path, name), "must not be empty")),
            Some(_) => {}
        }
    }
    if map.get("metadata").is_some_and(|found| !found.is_object()) {
        causes.push(Cause::invalid(&join(path, "metadata"), &map["metadata"], "must be an object"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_are_those_of_go() {
        for (pattern, text, fits) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "१२", false),
            ("^[[a]+$", "[", true),
            ("^a{,2}$", "a{,2}", true),
            (r"^(?P<n>a)(?P<n>b)$", "ab", true),
        ] {
            let text_schema = json!({"type": "string", "pattern": pattern});
            let schema = Schema::compile(&json!({"type": "object", "properties": {"at": text_schema}})).unwrap();
            let causes = schema.validate(&json!({"at": text}), None);
            assert_eq!(causes.is_empty(), fits, "{pattern} {text}: {causes:?}");
        }
    }
}
