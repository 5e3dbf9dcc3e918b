//! One change at a time: its class, its words, and whether there is an example.

use carrick_schema::evolution::{Class, Definition, Report, Trial, diff};
use serde_json::{Value, json};

fn crd() -> Value {
    let item = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}});
    let spec = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "ratio": {"type": "number"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 20},
        "when": {"type": "string"},
        "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "note": {"type": "string", "nullable": true},
        "any": {"x-kubernetes-int-or-string": true},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": item},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item},
        "from": {"type": "integer"},
        "to": {"type": "integer"},
    }});
    let root = json!({"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}});
    json!({
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"], "categories": ["all"]},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root}, "subresources": {"status": {}, "scale": {"a": 1}}},
                {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": root}, "subresources": {"status": {}}},
            ],
        },
    })
}

fn compared(old: &Value, new: &Value) -> Report {
    diff(&Definition::read(old).unwrap(), &Definition::read(new).unwrap())
}

/// Sets a value at a pointer, or removes what is there.
fn edited(path: &str, value: &Value) -> Value {
    let mut document = crd();
    let (parent, key) = path.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap_or_else(|| panic!("nothing at {parent}"));
    match (value, parent) {
        (Value::Null, Value::Object(map)) => drop(map.remove(key)),
        (Value::Null, Value::Array(list)) => drop(list.remove(key.parse().unwrap())),
        (value, parent) => parent[key] = value.clone(),
    }
    document
}

const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

#[test]
fn changes_of_schemas_are_judged_one_by_one() {
    use Class::{Breaking, Compatible, Tightening};
    let rule = |rule: &str| json!([{"rule": rule, "message": "no"}]);
    let field = |name: &str, key: &str| format!("/properties/{name}/{key}");
    let cases: Vec<(String, Value, Class, bool, &str)> = vec![
        (field("size", "maximum"), json!(20), Compatible, false, "v1.spec.size: maximum changes from 10 to 20"),
        (field("size", "maximum"), json!(5), Tightening, true, "v1.spec.size: maximum changes from 10 to 5"),
        (field("size", "minimum"), json!(null), Compatible, false, "v1.spec.size: minimum 1 goes away"),
        (field("size", "exclusiveMinimum"), json!(true), Tightening, true, "v1.spec.size: minimum changes from 1 to 2"),
        (field("size", "multipleOf"), json!(2), Tightening, true, "v1.spec.size: multipleOf 2 is new"),
        (
            field("size", "type"),
            json!("number"),
            Compatible,
            false,
            "v1.spec.size: the type changes from integer to number",
        ),
        (
            field("size", "type"),
            json!("string"),
            Breaking,
            true,
            "v1.spec.size: the type changes from integer to string",
        ),
        (
            field("ratio", "type"),
            json!("integer"),
            Tightening,
            true,
            "v1.spec.ratio: the type changes from number to integer",
        ),
        (field("name", "pattern"), json!("^[a-c]+$"), Tightening, true, "v1.spec.name: the pattern changes from"),
        (field("name", "pattern"), json!(null), Compatible, false, "v1.spec.name: the pattern \"^[a-z]+$\" goes away"),
        (field("name", "maxLength"), json!(3), Tightening, true, "v1.spec.name: maxLength changes from 20 to 3"),
        (field("name", "minLength"), json!(4), Tightening, true, "v1.spec.name: minLength 4 is new"),
        (field("when", "format"), json!("date-time"), Tightening, true, "v1.spec.when: the format date-time is new"),
        (field("when", "format"), json!("whatever"), Compatible, false, "v1.spec.when: the format whatever is new"),
        (field("mode", "enum"), json!(["a", "b", "c"]), Compatible, false, "v1.spec.mode: \"c\" is allowed too"),
        (field("mode", "enum"), json!(["a"]), Tightening, true, "v1.spec.mode: \"b\" is not allowed any more"),
        (field("when", "enum"), json!(["x"]), Tightening, true, "v1.spec.when: only \"x\" is allowed now"),
        (field("mode", "default"), json!("b"), Breaking, true, "v1.spec.mode: the default changes from \"a\" to \"b\""),
        (field("mode", "default"), json!(null), Breaking, true, "v1.spec.mode: the default \"a\" goes away"),
        (field("when", "default"), json!("x"), Breaking, true, "v1.spec.when: the default \"x\" is new"),
        (
            field("size", "default"),
            json!(2),
            Compatible,
            false,
            "v1.spec.size: the default 2 is new; the field was always there",
        ),
        (field("note", "nullable"), json!(null), Breaking, true, "v1.spec.note: null is not allowed any more"),
        (field("when", "nullable"), json!(true), Compatible, false, "v1.spec.when: null is allowed now"),
        (
            "/properties/any".into(),
            json!({"type": "string"}),
            Tightening,
            true,
            "v1.spec.any: the type changes from int-or-string to string",
        ),
        (
            "/properties/when".into(),
            json!({"x-kubernetes-int-or-string": true}),
            Compatible,
            false,
            "v1.spec.when: the type changes from string to int-or-string",
        ),
        (
            field("free", "x-kubernetes-preserve-unknown-fields"),
            json!(null),
            Breaking,
            true,
            "v1.spec.free: fields that the schema does not name are dropped now",
        ),
        (
            field("free", "properties"),
            json!({"a": {"type": "string"}}),
            Breaking,
            true,
            "v1.spec.free.a: the type changes from anything to string",
        ),
        (
            field("labels", "additionalProperties"),
            json!({"type": "string", "maxLength": 2}),
            Tightening,
            true,
            "v1.spec.labels[*]: maxLength 2 is new",
        ),
        (
            field("labels", "additionalProperties"),
            json!(null),
            Breaking,
            true,
            "v1.spec.labels[*]: the values of the map go away",
        ),
        (field("labels", "maxProperties"), json!(2), Tightening, true, "v1.spec.labels: maxProperties 2 is new"),
        (field("list", "maxItems"), json!(1), Tightening, true, "v1.spec.list: maxItems 1 is new"),
        (field("list", "minItems"), json!(1), Tightening, true, "v1.spec.list: minItems 1 is new"),
        (
            field("list", "x-kubernetes-list-type"),
            json!("set"),
            Tightening,
            true,
            "v1.spec.list: the list is a set now",
        ),
        (
            field("set", "x-kubernetes-list-type"),
            json!(null),
            Breaking,
            false,
            "v1.spec.set: the list is no set any more",
        ),
        (
            field("map", "x-kubernetes-list-map-keys"),
            json!(["port"]),
            Breaking,
            true,
            "v1.spec.map: the keys of the list change from name to port",
        ),
        (
            field("list", "items/required"),
            json!(["name", "port"]),
            Tightening,
            true,
            "v1.spec.list[].port: the field is required now",
        ),
        ("/required".into(), json!([]), Compatible, false, "v1.spec.size: the field is optional now"),
        ("/required".into(), json!(["size", "when"]), Tightening, true, "v1.spec.when: the field is required now"),
        (
            "/required".into(),
            json!(["size", "mode"]),
            Compatible,
            false,
            "v1.spec.mode: the field is required now, and its default fills it in",
        ),
        ("/properties/when".into(), json!(null), Breaking, true, "v1.spec.when: the field goes away"),
        (
            "/properties/fresh".into(),
            json!({"type": "string", "default": "x"}),
            Compatible,
            false,
            "v1.spec.fresh: the field is new, with the default",
        ),
        (
            "/x-kubernetes-validations".into(),
            rule("!has(self.from) || !has(self.to) || self.from <= self.to"),
            Tightening,
            true,
            "v1.spec: a rule is new: no",
        ),
        (
            "/x-kubernetes-map-type".into(),
            json!("atomic"),
            Breaking,
            false,
            "v1.spec: the object is one value for server-side apply now",
        ),
        (
            "/anyOf".into(),
            json!([{"required": ["from"]}, {"required": ["to"]}]),
            Tightening,
            true,
            "v1.spec: anyOf is new",
        ),
        (
            "/oneOf".into(),
            json!([{"required": ["from"]}, {"required": ["to"]}]),
            Tightening,
            true,
            "v1.spec: oneOf is new",
        ),
        ("/allOf".into(), json!([{"required": ["from"]}]), Tightening, true, "v1.spec: allOf is new"),
        (
            "/anyOf".into(),
            json!([{"required": ["size"]}, {"required": ["to"]}]),
            Compatible,
            false,
            "v1.spec: anyOf asks for what is always there",
        ),
        ("/not".into(), json!({"required": ["from"]}), Tightening, true, "v1.spec: not is new"),
        ("/description".into(), json!("words"), Compatible, false, ""),
    ];
    for (path, value, class, example, words) in cases {
        let report = compared(&crd(), &edited(&format!("{SPEC}{path}"), &value));
        let reported = report.text();
        assert_eq!(report.class, class, "{path} {value}: {reported}");
        let worst = report.changes.first();
        assert!(
            words.is_empty()
                || report.changes.iter().any(|it| format!("{}: {}", it.path, it.reason).starts_with(words)),
            "{words}\n{reported}"
        );
        assert_eq!(worst.is_some_and(|worst| worst.example.is_some()), example, "{path} {value}: {reported}");
    }
}

#[test]
fn changes_of_names_versions_and_subresources_are_judged() {
    use Class::{Breaking, Compatible};
    let version = "/spec/versions/0";
    for (path, value, class, words) in [
        ("/spec/scope".to_owned(), json!("Cluster"), Breaking, "scope: the scope changes"),
        ("/spec/group".to_owned(), json!("b.example.com"), Breaking, "group: "),
        ("/spec/names/kind".to_owned(), json!("Other"), Breaking, "names.kind: "),
        ("/spec/names/plural".to_owned(), json!("others"), Breaking, "names.plural: "),
        ("/spec/names/shortNames".to_owned(), json!(["th", "t"]), Compatible, "names.shortNames: \"t\" is new"),
        ("/spec/names/shortNames".to_owned(), json!([]), Breaking, "names.shortNames: \"th\" goes away"),
        ("/spec/names/categories".to_owned(), json!([]), Breaking, "names.categories: \"all\" goes away"),
        ("/spec/conversion".to_owned(), json!({"strategy": "Webhook"}), Breaking, "conversion: the strategy changes"),
        ("/spec/versions/1".to_owned(), json!(null), Breaking, "v2: the version goes away"),
        ("/spec/versions/1/served".to_owned(), json!(false), Breaking, "v2: the version is not served any more"),
        ("/spec/versions/1/deprecated".to_owned(), json!(true), Compatible, "v2: the version is deprecated"),
        (format!("{version}/subresources/status"), json!(null), Breaking, "v1.subresources.status: /status goes away"),
        (format!("{version}/subresources/scale"), json!(null), Breaking, "v1.subresources.scale: /scale goes away"),
        (
            format!("{version}/subresources/scale"),
            json!({"a": 2}),
            Breaking,
            "v1.subresources.scale: /scale reads or writes",
        ),
        (format!("{version}/additionalPrinterColumns"), json!([{"name": "a"}]), Compatible, "v1.columns: "),
        (format!("{version}/selectableFields"), json!([{"jsonPath": ".spec.a"}]), Compatible, "v1.selectableFields: "),
    ] {
        let report = compared(&crd(), &edited(&path, &value));
        assert_eq!(report.class, class, "{path} {value}: {}", report.text());
        assert!(
            report.changes.iter().any(|it| format!("{}: {}", it.path, it.reason).starts_with(words)),
            "{words}\n{}",
            report.text()
        );
    }
}

#[test]
fn another_stored_version_is_compatible_only_if_it_keeps_every_object() {
    let moved = |schema: Option<(&str, Value)>| {
        let mut new = crd();
        new["spec"]["versions"][0]["storage"] = json!(false);
        new["spec"]["versions"][1]["storage"] = json!(true);
        let mut old = crd();
        if let Some((field, schema)) = schema {
            for document in [&mut old, &mut new] {
                let spec =
                    document.pointer_mut("/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties").unwrap();
                spec[field] = schema.clone();
            }
        }
        compared(&old, &new)
    };
    assert_eq!(moved(None).class, Class::Compatible);
    let harmed = moved(Some(("size", json!({"type": "integer", "maximum": 3}))));
    assert_eq!(harmed.class, Class::Breaking);
    assert!(
        harmed.changes[0].reason.contains("the stored version changes from v1 to v2, without conversion"),
        "{}",
        harmed.text()
    );
    assert!(harmed.changes[0].example.is_some());
}

#[test]
fn a_rule_at_the_root_holds_up_even_the_release_of_objects() {
    let path = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations";
    let report = compared(&crd(), &edited(path, &json!([{"rule": "!has(self.spec) || self.spec.size < 5"}])));
    assert_eq!(report.class, Class::Breaking, "{}", report.text());
    assert!(report.changes[0].reason.contains("cannot even be labelled or released"), "{}", report.text());
    // Deeper down, it is forgiven where nothing changes.
    let report =
        compared(&crd(), &edited(&format!("{SPEC}/x-kubernetes-validations"), &json!([{"rule": "self.size < 5"}])));
    assert_eq!(report.class, Class::Tightening, "{}", report.text());
}

#[test]
fn existing_objects_are_tried() {
    let (old, new) = (crd(), edited(&format!("{SPEC}/properties/size/maximum"), &json!(5)));
    let (old, new) = (Definition::read(&old).unwrap(), Definition::read(&new).unwrap());
    let order = |name: &str, size: i64| {
        let metadata = json!({"name": name, "namespace": "default"});
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": {"size": size, "mode": "a"}})
    };
    let orders = [("w1", order("a", 1)), ("w1", order("b", 9)), ("w2", order("c", 8))];
    let trial = Trial::of(&old, &new, orders.map(|(place, order)| (place.to_owned(), order)));
    assert_eq!((trial.objects, trial.harmed.len()), (3, 2));
    let reported = trial.sentence(1);
    assert!(
        reported.starts_with("2 of 3 orders in 2 workspaces would be refused or changed: default/b in w1 (spec.size: "),
        "{reported}"
    );
    assert!(reported.ends_with("; and 1 more"), "{reported}");
    assert_eq!(Trial::of(&old, &new, []).sentence(5), "there are no orders yet");
}

#[test]
fn definitions_of_both_kinds_are_the_same_and_other_documents_are_none() {
    let crd = crd();
    let mut schema = json!({"kind": "APIResourceSchema", "spec": crd["spec"]});
    for version in schema["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"] = version["schema"]["openAPIV3Schema"].clone();
    }
    assert_eq!(compared(&crd, &schema), Report::default());
    assert_eq!(compared(&crd, &schema).text(), "compatible: nothing has changed\n");
    let wrong = Definition::read(&json!({"kind": "Secret"})).unwrap_err().to_string();
    assert!(wrong.starts_with("\"Secret\" defines no kind"), "{wrong}");
    let empty = json!({"kind": "CustomResourceDefinition", "metadata": {"name": "x"}, "spec": {}});
    assert_eq!(
        Definition::read(&empty).unwrap_err().to_string(),
        "CustomResourceDefinition \"x\" has no spec.names.kind"
    );
}
