//! The objects in a YAML or JSON text. Pure.

use carrick_json::manifest;
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

/// All objects of a text in YAML or JSON, as kubectl finds them.
pub fn read(text: &str, side: Side) -> Result<Vec<Document>, String> {
    let objects = manifest::objects(text).map_err(|error| error.to_string())?;
    objects.into_iter().enumerate().map(|(at, object)| document(object, side, at + 1)).collect()
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
    let word = |pointer: &str| match object.pointer(pointer) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(word)) => Ok(word.clone()),
        Some(other) => {
            let field = pointer[1..].replace('/', ".");
            Err(format!("object {number}: {field} is {other}, which is not text to YAML; put it in quotes"))
        }
    };
    let (api_version, kind, name) = (word("/apiVersion")?, word("/kind")?, word("/metadata/name")?);
    let missing = [("apiVersion", &api_version), ("kind", &kind), ("metadata.name", &name)];
    if let Some((field, _)) = missing.iter().find(|(_, value)| value.is_empty()) {
        let generated = *field == "metadata.name" && !word("/metadata/generateName")?.is_empty();
        let hint = if generated { "; what is applied again and again cannot have a generateName" } else { "" };
        return Err(format!("object {number} has no {field}{hint}"));
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let id = ObjectId { side, group: group.to_owned(), kind, namespace: word("/metadata/namespace")?, name };
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
    fn what_is_wrong_is_named() {
        for (text, wanted) in [
            ("a: [", "this is not valid YAML: "),
            ("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\nkind: Secret", "object 2 has no apiVersion"),
            ("apiVersion: v1\nkind: Secret\nmetadata: {generateName: a-}", "object 1 has no metadata.name"),
            ("just words", "object 1 is text, where"),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: {generateName: a-}",
                "object 1 has no metadata.name; what is applied",
            ),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: {name: 123}",
                "object 1: metadata.name is 123, which is not text",
            ),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: {name: no}",
                "object 1: metadata.name is false, which is not text",
            ),
            ("apiVersion: 1\nkind: Secret\nmetadata: {name: a}", "object 1: apiVersion is 1, which is not text"),
            ("apiVersion: v1\nkind:\nmetadata: {name: a}", "object 1 has no kind"),
            ("apiVersion: v1\nkind: Secret\nmetadata: a", "object 1 has no metadata.name"),
        ] {
            let told = read(text, Side::Service).unwrap_err();
            assert!(told.starts_with(wanted), "{told}");
        }
    }
}
