//! What aggregated ClusterRoles grant.

use carrick_go::labels::{Requirement, Selector};
use serde_json::Value;

/// The name of a role.
pub fn name(role: &Value) -> &str {
    role["metadata"]["name"].as_str().unwrap_or_default()
}

/// The rules a role aggregates, each once; `None` if it does not aggregate.
pub fn aggregated(role: &Value, all: &[Value]) -> Option<Vec<Value>> {
    if !role["aggregationRule"].is_object() {
        return None;
    }
    let mut rules: Vec<Value> = Vec::new();
    for selector in role["aggregationRule"]["clusterRoleSelectors"].as_array().into_iter().flatten() {
        // Nothing is written while a selector cannot be read, as the real controller keeps failing.
        let selector = read(selector)?;
        let selected = |other: &&Value| {
            let label = |key: &str| other["metadata"]["labels"].get(key).and_then(Value::as_str);
            name(other) != name(role) && selector.matches(label)
        };
        for rule in all.iter().filter(selected).flat_map(|other| other["rules"].as_array().into_iter().flatten()) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    Some(rules)
}

/// A label selector object; an empty one selects everything.
fn read(selector: &Value) -> Option<Selector> {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut all: Vec<Requirement> =
        labels.map(|(key, value)| Requirement::equals(key, value.as_str().unwrap_or_default())).collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let text = |key: &str| expression[key].as_str().unwrap_or_default();
        let values = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let values = values.map(str::to_owned).collect();
        all.push(Requirement::expression(text("key"), text("operator"), values)?);
    }
    Some(all.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn role(name: &str, labels: &Value, rules: &Value) -> Value {
        json!({"metadata": {"name": name, "labels": labels}, "rules": rules})
    }

    fn collector(selectors: &Value) -> Value {
        json!({"metadata": {"name": "all", "labels": {"a": "1"}}, "aggregationRule": {"clusterRoleSelectors": selectors},
            "rules": ["own"]})
    }

    #[test]
    fn rules_of_selected_roles_are_collected_in_order_and_once() {
        let all = [
            collector(&json!([])),
            role("b", &json!({"a": "1"}), &json!(["one", "two"])),
            role("c", &json!({"a": "2"}), &json!(["two", "three"])),
            role("d", &json!({}), &json!(["four"])),
        ];
        let cases = [
            (json!([]), json!([])),
            (json!([{"matchLabels": {"a": "1"}}]), json!(["one", "two"])),
            (json!([{"matchLabels": {"a": "2"}}, {"matchLabels": {"a": "1"}}]), json!(["two", "three", "one"])),
            (
                json!([{"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}]),
                json!(["one", "two", "three"]),
            ),
            (json!([{"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}]), json!(["four"])),
            (json!([{}]), json!(["one", "two", "three", "four"])),
        ];
        for (selectors, rules) in cases {
            assert_eq!(aggregated(&collector(&selectors), &all).map(Value::from), Some(rules), "{selectors}");
        }
        assert_eq!(aggregated(&all[1], &all), None);
    }
}
