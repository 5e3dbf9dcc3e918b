//! CRDs and samples of public operators: how they are found, and what is made of them.

use carrick_e2e_stage::corpus::files;
use carrick_e2e_stage::corpus::variants::{changes, statuses};
use carrick_e2e_stage::scratch::Scratch;
use serde_json::{Value, json};

/// A CRD in one file with what is none of it, and samples in another.
const CRDS: &str = r#"# Operators ship all sorts of things in one file.
---
apiVersion: apiextensions.k8s.io/v1
kind: "CustomResourceDefinition" # the first
metadata:
  name: buckets.example.com
spec:
  group: example.com
  names: { kind: Bucket, plural: buckets }
  versions: []
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {{ .Values.name }}
spec:
  group: example.com
  versions: []
--- # next
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.com
spec:
  group: example.com
  names: { kind: Gadget, plural: gadgets }
  versions: []
"#;
const SAMPLES: &str = r"
apiVersion: example.com/v1
kind: Bucket
metadata: { name: first }
spec:
  text: |
    several lines
---
apiVersion: example.com/v1
kind: Bucket
metadata:
  name: ${NAME}
---
apiVersion: example.com/v1
kind: Gadget
metadata: { name: second }
";

#[test]
fn files_are_taken_apart_and_templates_left_out() {
    let folder = Scratch::new().unwrap();
    folder.write("crds.yaml", CRDS).unwrap();
    folder.write("samples.yml", SAMPLES).unwrap();
    folder.write("README.md", CRDS).unwrap();
    let read = |is_wanted: &dyn Fn(&str) -> bool| {
        let corpus = files::read(folder.path(), is_wanted).unwrap();
        let samples = corpus.samples.iter().map(|sample| sample.value["metadata"]["name"].to_string());
        (corpus.crds.into_keys().collect::<Vec<_>>(), samples.collect::<Vec<_>>())
    };
    let both = ["buckets.example.com".to_owned(), "gadgets.example.com".to_owned()];
    assert_eq!(read(&|_| true), (both.to_vec(), vec!["\"first\"".to_owned(), "\"second\"".to_owned()]));
    assert_eq!(read(&|name| name.starts_with("gadgets")), (both[1..].to_vec(), vec!["\"second\"".to_owned()]));
}

#[test]
fn documents_stay_as_their_authors_wrote_them() {
    let folder = Scratch::new().unwrap();
    folder.write("all.yaml", &format!("{CRDS}---{SAMPLES}")).unwrap();
    let corpus = files::read(folder.path(), &|_| true).unwrap();
    let content = &corpus.samples[0].content;
    assert_eq!(content.trim(), SAMPLES.split("\n---").next().unwrap().trim());
    assert_eq!(corpus.crds["gadgets.example.com"].file, "all.yaml");
}

#[test]
fn changes_are_about_what_consumers_decide() {
    let object = json!({
        "apiVersion": "a/v1", "kind": "A", "metadata": { "name": "a" }, "status": { "b": 1 },
        "spec": { "on": true, "sizes": [1] },
    });
    let schema = json!({ "properties": { "spec": {
        "type": "object", "properties": { "on": { "type": "boolean" }, "note": { "type": "string", "enum": ["x"] } },
    } } });
    let told = changes(&object, &schema);
    assert!(told.iter().all(|changed| changed["metadata"] == object["metadata"] && changed["status"]["b"] == 1));
    let specs: Vec<&Value> = told.iter().map(|changed| &changed["spec"]).collect();
    assert_eq!(
        specs[..3],
        [
            &json!({ "on": false, "sizes": [1] }),
            &json!({ "on": true, "sizes": [2] }),
            &json!({ "on": true, "sizes": [0] }),
        ]
    );
    assert!(specs.contains(&&json!({ "on": true, "sizes": [1], "note": "x" })), "{specs:?}");
}

#[test]
fn operators_report_conditions_where_the_schema_has_them() {
    let with = json!({ "properties": { "status": {
        "type": "object", "properties": { "conditions": { "type": "array", "items": { "type": "object" } } },
    } } });
    assert_eq!(statuses(&with)[0]["conditions"][0]["type"], "Ready");
    let other =
        json!({ "properties": { "status": { "type": "object", "properties": { "n": { "type": "integer" } } } } });
    assert!(statuses(&other)[0]["n"].is_i64());
    assert_eq!(statuses(&json!({ "properties": {} })), Vec::<Value>::new());
}
