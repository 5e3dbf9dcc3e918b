//! The CustomResourceDefinition of the PublishedResource kind.

use serde_json::Value;

/// The CRD document, ready to be applied to a service cluster.
pub fn crd() -> Value {
    // The document is part of this crate and parsed by the tests below, so a failure cannot reach a user.
    serde_saphyr::from_str(include_str!("crd.yaml")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PublishedResource;

    #[test]
    fn the_crd_is_complete_and_of_the_right_name() {
        let crd = crd();
        assert_eq!(crd["metadata"]["name"], "publishedresources.syncagent.kcp.io");
        assert_eq!(crd["spec"]["versions"][0]["name"], "v1alpha1");
    }

    /// Walks the schema and makes an object with every field set, which the types must read and write back unchanged.
    #[test]
    fn every_field_of_the_schema_has_a_place_in_the_types() {
        fn sample(schema: &Value) -> Value {
            if let Some(values) = schema["enum"].as_array() {
                return values[0].clone();
            }
            match schema["type"].as_str() {
                Some("object") => {
                    if let Some(properties) = schema["properties"].as_object() {
                        properties.iter().map(|(k, v)| (k.clone(), sample(v))).collect()
                    } else if schema["additionalProperties"].is_object() {
                        serde_json::json!({ "key": sample(&schema["additionalProperties"]) })
                    } else {
                        serde_json::json!({})
                    }
                }
                Some("array") => Value::Array(vec![sample(&schema["items"])]),
                Some("boolean") => Value::Bool(true),
                Some("integer") => 1.into(),
                _ => "text".into(),
            }
        }
        fn assert_holds(all: &Value, part: &Value, path: &str) {
            match part {
                Value::Object(map) => map.iter().for_each(|(k, v)| assert_holds(&all[k], v, &format!("{path}.{k}"))),
                Value::Array(list) => {
                    list.iter().enumerate().for_each(|(i, v)| assert_holds(&all[i], v, &format!("{path}[{i}]")));
                }
                _ => assert_eq!(all, part, "{path}"),
            }
        }
        let crd = crd();
        let spec = sample(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]);
        assert!(spec["related"][0]["object"]["namespace"]["selector"]["rewrite"]["regex"].is_object());
        let read: PublishedResource = serde_json::from_value(serde_json::json!({ "spec": spec })).unwrap();
        assert_holds(&serde_json::to_value(&read).unwrap()["spec"], &spec, "spec");
    }
}
