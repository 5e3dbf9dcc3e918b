//! What an API server would refuse in a PublishedResource, without a server.

use carrick_schema::Schema;
use serde_json::Value;

use super::crd;

/// All that is wrong with a PublishedResource as somebody wrote it: fields that do not exist, and values that are not allowed.
pub fn problems(object: &Value) -> Vec<String> {
    let schema = open_api(&crd());
    let Ok(compiled) = Schema::compile(&schema) else { return Vec::new() };
    let (mut object, mut unknown) = (object.clone(), Vec::new());
    compiled.prune(&mut object, &mut unknown);
    compiled.apply_defaults(&mut object);
    // What was not checked is checked once the rest is right.
    let wrong = compiled.validate(&object, None).into_iter().filter(|cause| cause.field != "<nil>");
    unknown.iter().map(|path| unknown_field(path)).chain(wrong.map(|cause| cause.text())).collect()
}

/// Says that a field does not exist, and which ones there are instead.
pub fn unknown_field(path: &str) -> String {
    let siblings = siblings(&open_api(&crd()), path).unwrap_or_default();
    format!("unknown field \"{path}\"{siblings}")
}

fn open_api(crd: &Value) -> Value {
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

fn siblings(schema: &Value, path: &str) -> Option<String> {
    let (parent, _) = path.rsplit_once('.')?;
    let mut schema = schema;
    for word in parent.split('.') {
        let (name, index) = word.split_once('[').map_or((word, None), |(name, index)| (name, Some(index)));
        schema = &schema["properties"][name];
        if index.is_some() {
            schema = &schema["items"];
        }
    }
    let Some(properties) = schema["properties"].as_object() else {
        return schema["type"].as_str().map(|kind| format!(" ({parent} is of type {kind})"));
    };
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    Some(format!(" ({parent} has {})", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_would_refuse_is_found() {
        let object = |spec: Value| json!({ "apiVersion": "syncagent.kcp.io/v1alpha1", "kind": "PublishedResource", "metadata": { "name": "a" }, "spec": spec });
        let good = json!({ "resource": { "apiGroup": "example.com", "kind": "Bucket", "versions": ["v1"] } });
        assert_eq!(problems(&object(good)), Vec::<String>::new());
        let found = problems(&object(json!({
            "resource": { "group": "example.com", "kind": "Bucket", "versions": [{ "name": "v1" }] },
            "related": [{ "identifier": "a", "origin": "service", "kind": "Secret", "reference": {} }],
            "back": true,
        })));
        for wanted in [
            "unknown field \"spec.resource.group\" (spec.resource has apiGroup, kind, version, versions)",
            "unknown field \"spec.related[0].reference\" (spec.related[0] has ",
            "unknown field \"spec.back\" (spec has ",
            "unknown field \"spec.resource.versions[0].name\" (spec.resource.versions[0] is of type string)",
            "spec.resource.apiGroup: Required value",
            "spec.resource.versions[0]: Invalid value: ",
        ] {
            assert!(found.iter().any(|problem| problem.starts_with(wanted)), "{wanted}: {found:#?}");
        }
    }
}
