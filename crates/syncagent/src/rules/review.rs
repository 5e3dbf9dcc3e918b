//! Conversion reviews: what an API server asks a conversion webhook, and what it is answered.

use serde_json::{Value, json};

use super::conversion::Conversions;

/// Answers a review. `find` gives the conversions of a group and kind in kcp.
pub fn answer<'a>(review: &Value, find: impl Fn(&str, &str) -> Option<&'a Conversions>) -> Value {
    let request = &review["request"];
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let (group, version) = wanted.rsplit_once('/').unwrap_or(("", wanted));
    let convert = |object: &Value| {
        let kind = object["kind"].as_str().unwrap_or_default();
        let found = find(group, kind);
        let conversions = found.ok_or_else(|| {
            format!("no PublishedResource with valid rules converts {kind}.{group}; see its condition RulesValid")
        })?;
        conversions.convert(object, version).map_err(|error| error.to_string())
    };
    let objects: Result<Vec<Value>, String> =
        request["objects"].as_array().into_iter().flatten().map(convert).collect();
    let response = match objects {
        Ok(objects) => json!({
            "uid": request["uid"], "convertedObjects": objects, "result": { "status": "Success" },
        }),
        Err(message) => json!({
            "uid": request["uid"], "convertedObjects": [], "result": { "status": "Failure", "message": message },
        }),
    };
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(objects: &Value) -> Value {
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                "request": { "uid": "u", "desiredAPIVersion": "example.com/v2", "objects": objects } })
    }

    #[test]
    fn all_objects_are_converted_or_none() {
        let steps =
            json!([{ "cel": { "path": "spec.b", "expression": "self.spec.a" } }, { "delete": { "path": "spec.a" } }]);
        let rules = json!({ "rules": [{ "from": "v1", "to": "v2", "steps": steps }] });
        let conversions = Conversions::compile(Some(&serde_json::from_value(rules).unwrap())).unwrap();
        let find = |group: &str, kind: &str| ((group, kind) == ("example.com", "Gear")).then_some(&conversions);
        let gear = |kind: &str, spec: Value| json!({ "apiVersion": "example.com/v1", "kind": kind, "metadata": { "name": "g" }, "spec": spec });
        let good = gear("Gear", json!({ "a": 1 }));
        let answered = answer(&review(&json!([good, good])), find);
        let wanted =
            json!({ "apiVersion": "example.com/v2", "kind": "Gear", "metadata": { "name": "g" }, "spec": { "b": 1 } });
        let response = json!({ "uid": "u", "convertedObjects": [wanted, wanted], "result": { "status": "Success" } });
        assert_eq!(answered["response"], response);

        for (object, expected) in [
            (gear("Gear", json!({})), "spec.conversion.rules[0].steps[0] failed"),
            (gear("Wheel", json!({ "a": 1 })), "no PublishedResource with valid rules converts Wheel.example.com"),
        ] {
            let answered = answer(&review(&json!([good, object])), find);
            let result = &answered["response"]["result"];
            assert_eq!(result["status"], "Failure");
            assert!(result["message"].as_str().unwrap().starts_with(expected), "{result}");
            assert_eq!(answered["response"]["convertedObjects"], json!([]));
        }
    }
}
