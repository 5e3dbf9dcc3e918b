//! The objects in a YAML or JSON text. Pure.

use carrick_json::yaml;
use serde_json::{Value, json};

use super::sources::Side;

/// Identifies an object, whatever its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// Where it belongs.
    pub side: Side,
    /// API group; empty for core.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace, if one is named.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        write!(f, "{} {}{slash}{}", self.kind, self.namespace, self.name)
    }
}

/// An object as a file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Which one it is.
    pub id: ObjectId,
    /// Its version.
    pub version: String,
    /// All of it.
    pub object: Value,
}

/// All objects of a text in YAML or JSON, as kubectl finds them: a list of any kind counts as its items, and JSON needs nothing between
/// objects.
pub fn read(text: &str, side: Side) -> Result<Vec<Document>, String> {
    let values = match json_stream(text) {
        Some(values) => values,
        None => yaml::values(text).map_err(|error| format!("this is not valid YAML: {error}"))?,
    };
    let mut documents = Vec::new();
    for (number, value) in values.into_iter().enumerate() {
        match items(&value) {
            _ if value.is_null() => {}
            Some(items) => {
                for item in items {
                    documents.push(document(item, side, number + 1)?);
                }
            }
            None => documents.push(document(value, side, number + 1)?),
        }
    }
    Ok(documents)
}

/// The objects of a text that is nothing but JSON.
fn json_stream(text: &str) -> Option<Vec<Value>> {
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    values.ok().filter(|_| text.trim_start().starts_with('{'))
}

/// The items of a list. They need not repeat what the list says about their kind.
fn items(list: &Value) -> Option<Vec<Value>> {
    let items = list.get("items")?.as_array()?;
    let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).filter(|kind| !kind.is_empty());
    let complete = |item: &Value| {
        let mut item = item.clone();
        if let (Some(kind), true, None) = (kind, item.is_object(), item.get("kind")) {
            item["kind"] = json!(kind);
            item["apiVersion"] = list["apiVersion"].clone();
        }
        item
    };
    Some(items.iter().map(complete).collect())
}

/// A PublishedResource that publishes a CRD as it is, for users who have written none.
pub fn offer(crd: &Value) -> Option<Document> {
    let spec = &crd["spec"];
    let served = spec["versions"].as_array()?.iter().filter(|version| version["served"] == true);
    let versions: Vec<&Value> = served.map(|version| &version["name"]).collect();
    let object = json!({
        "apiVersion": "syncagent.kcp.io/v1alpha1",
        "kind": "PublishedResource",
        "metadata": { "name": crd["metadata"]["name"] },
        "spec": { "resource": { "apiGroup": spec["group"], "kind": spec["names"]["kind"], "versions": versions } },
    });
    document(object, Side::Service, 1).ok()
}

fn document(object: Value, side: Side, number: usize) -> Result<Document, String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let missing = [("apiVersion", &api_version), ("kind", &kind), ("metadata.name", &name)];
    if let Some((field, _)) = missing.iter().find(|(_, value)| value.is_empty()) {
        return Err(format!("object {number} has no {field}"));
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let id = ObjectId { side, group: group.to_owned(), kind, namespace: text("/metadata/namespace"), name };
    Ok(Document { id, version: version.to_owned(), object })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_and_named() {
        let text = "# generated\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: team}\n---\n---\n\
                    apiVersion: v1\nkind: List\nitems:\n- {apiVersion: example.com/v1, kind: Bucket, metadata: {name: b}}\n";
        let documents = read(text, Side::Consumer).unwrap();
        let names: Vec<String> = documents.iter().map(|document| document.id.to_string()).collect();
        assert_eq!(names, ["Secret team/a", "Bucket b"]);
        assert_eq!((documents[1].id.group.as_str(), documents[1].version.as_str()), ("example.com", "v1"));
        assert_eq!(read("", Side::Service), Ok(Vec::new()));
    }

    #[test]
    fn whatever_kubectl_takes_is_taken() {
        let long = "#".repeat(5000);
        let text = format!(
            "{long}\napiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  mode: 0444\n  on: yes\n  related: {long}\nstatus:\n"
        );
        let documents = read(&text, Side::Service).unwrap();
        let spec = &documents[0].object["spec"];
        assert_eq!(*spec, json!({ "mode": 292, "true": true, "related": null }));
        assert_eq!(documents[0].object["status"], Value::Null);
    }

    #[test]
    fn lists_of_any_kind_and_json_without_separators_are_taken() {
        let ids = |text: &str| -> Vec<String> {
            read(text, Side::Consumer).unwrap().iter().map(|one| format!("{} {}", one.id, one.version)).collect()
        };
        let list = "apiVersion: example.com/v1\nkind: BucketList\nmetadata: {resourceVersion: ''}\nitems:\n\
                    - metadata: {name: a}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n";
        assert_eq!(ids(list), ["Bucket a v1", "Secret b v1"]);
        assert_eq!(ids("apiVersion: v1\nkind: List\nitems: []\n"), Vec::<String>::new());
        let two = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}}"#;
        assert_eq!(ids(two), ["Secret a v1", "Secret b v1"]);
        // Braces do not make it JSON.
        assert_eq!(ids("{apiVersion: v1, kind: Secret, metadata: {name: a}}"), ["Secret a v1"]);
    }

    #[test]
    fn whatever_editors_and_generators_put_around_objects_is_taken() {
        let object = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n";
        let windows = object.replace('\n', "\r\n");
        let texts = [
            format!("\u{feff}{object}"),
            format!("\u{feff}---\n{object}"),
            windows.clone(),
            format!("---\r\n{windows}---\r\n# nothing\r\n"),
            format!("# a\n\n---\n# b\n---\n{object}...\n"),
            format!("--- # a\n{object}---\n"),
            format!("%YAML 1.1\n---\n{object}"),
            format!("{object}\n---\n\n---\n---"),
            format!("x: &x {{b: c}}\nlabels: {{<<: *x}}\n{object}"),
        ];
        for text in texts {
            let found = read(&text, Side::Service).map(|all| all.iter().map(|one| one.id.to_string()).collect());
            assert_eq!(found, Ok(vec!["Secret a".to_owned()]), "{text:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, wanted) in [
            ("a: [", "this is not valid YAML: "),
            ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\nkind: Secret", "object 2 has no apiVersion"),
            ("apiVersion: v1\nkind: Secret\nmetadata: {generateName: a-}", "object 1 has no metadata.name"),
            ("just words", "object 1 has no apiVersion"),
        ] {
            let told = read(text, Side::Service).unwrap_err();
            assert!(told.starts_with(wanted), "{told}");
        }
    }
}
