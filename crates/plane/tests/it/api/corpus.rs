//! What CRDs and samples of public operators use, in small CRDs of our own; `e2e/real corpus` does the same with the operators' own files.

use serde_json::{Value, json};

use super::client::{Answer, Client, WIDGETS, World, widget};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/things.example.io/v1/things";

/// A cluster-scoped kind with one schema.
fn crd(schema: Value) -> Value {
    versions(vec![json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}})])
}

fn versions(versions: Vec<Value>) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.things.example.io"},
        "spec": {
            "group": "things.example.io", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": versions,
        },
    })
}

fn spec(properties: Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

fn thing(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "things.example.io/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

async fn yaml(client: &Client, method: &str, path: &str, text: &str) -> Answer {
    let media = if method == "PATCH" { "application/apply-patch+yaml" } else { "application/yaml" };
    client.call(method, path, &[("content-type", media)], text.into()).await
}

#[tokio::test]
async fn a_list_that_keeps_unknown_fields_keeps_those_of_its_items() {
    let world = World::start().await;
    let schema = spec(json!({
        "values": {"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"type": "object"}},
        "open": {"type": "object", "additionalProperties": true},
    }));
    world.admin.post(CRDS, crd(schema)).await.expect(201);
    let sent = json!({"values": [{"a": 1}], "open": {"x": {"y": 1}}});
    let created = world.admin.post(THINGS, thing("a", sent)).await.expect(201);
    assert_eq!(created["spec"], json!({"values": [{"a": 1}], "open": {"x": {}}}));
}

#[tokio::test]
async fn patterns_are_read_as_go_reads_them() {
    let world = World::start().await;
    let patterns = [
        ("bracket", r"^[^[]+$", "ab", "a[b"),
        ("quoted", r"^\Qa.b\E$", "a.b", "axb"),
        ("digits", r"^\d+$", "12", "१२"),
        ("class", r"^[[:alpha:][]+$", "a[", "1"),
        ("possessive", r"^(?P<first>a|b)(?i:C)\z", "bc", "bcd"),
    ];
    let fields = patterns.map(|(name, pattern, ..)| (name.to_owned(), json!({"type": "string", "pattern": pattern})));
    world.admin.post(CRDS, crd(spec(Value::Object(fields.into_iter().collect())))).await.expect(201);
    for (name, pattern, fits, other) in patterns {
        world.admin.post(THINGS, thing(name, json!({name: fits}))).await.expect(201);
        let refusal = format!(
            "Thing.things.example.io \"x\" is invalid: spec.{name}: Invalid value: {}: spec.{name} in body should match '{pattern}'",
            json!(other)
        );
        world.admin.post(THINGS, thing("x", json!({name: other}))).await.refused(422, &refusal);
    }
}

#[tokio::test]
async fn yaml_means_what_go_programs_read() {
    let world = World::start().await;
    let schema = spec(json!({"mode": {"type": "integer"}, "on": {"type": "boolean"}, "text": {"type": "string"}}));
    world.admin.post(CRDS, crd(schema)).await.expect(201);
    let comments = "  # one of many lines\n".repeat(100);
    let head = "apiVersion: things.example.io/v1\nkind: Thing\nmetadata: {name: a}\n";
    let text = format!("{head}spec:\n{comments}  mode: 0444\n  \"on\": yes\n  text: \"0444\"\n");
    let wanted = json!({"mode": 292, "on": true, "text": "0444"});
    let created = yaml(&world.admin, "POST", THINGS, &text).await.expect(201);
    assert_eq!(created["spec"], wanted);
    let (path, text) = (format!("{THINGS}/b?fieldManager=m"), text.replace("name: a", "name: b"));
    let applied = yaml(&world.admin, "PATCH", &path, &text).await.expect(201);
    assert_eq!(applied["spec"], wanted);
    // What comes back as YAML says the same.
    let shown = world.admin.call("GET", &format!("{THINGS}/a"), &[("accept", "application/yaml")], Vec::new()).await;
    assert_eq!(carrick_json::yaml::value(&shown.text).unwrap()["spec"], wanted, "{}", shown.text);
}

#[tokio::test]
async fn a_key_that_occurs_twice_in_yaml_is_refused_only_by_strict_requests() {
    let world = World::start().await;
    let text = |name: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n  a: one\n  a: two\n")
    };
    let maps = "/api/v1/namespaces/default/configmaps";
    let reported = |answer: &Answer| -> Vec<String> {
        answer.headers.get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    };
    let warning = r#"299 - "line 6: key \"a\" already set in map""#;
    let created = yaml(&world.admin, "POST", maps, &text("a")).await;
    assert_eq!(reported(&created), [warning]);
    assert_eq!(created.expect(201)["data"], json!({"a": "two"}));
    let applied = yaml(&world.admin, "PATCH", &format!("{maps}/d?fieldManager=m"), &text("d")).await;
    assert_eq!(reported(&applied), [warning]);
    assert_eq!(applied.expect(201)["data"], json!({"a": "two"}));
    let broken = yaml(&world.admin, "POST", maps, "apiVersion: v1\nkind: [\n").await;
    assert!(
        broken.body["message"].as_str().unwrap().contains("(must be of type ConfigMap): yaml: line "),
        "{}",
        broken.text
    );
    let refused = yaml(&world.admin, "POST", &format!("{maps}?fieldValidation=Strict"), &text("b")).await;
    let why = "yaml: unmarshal errors:\n  line 6: key \"a\" already set in map";
    let version = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap";
    refused.refused(400, &format!("{version}: strict decoding error: {why}"));
    let path = format!("{maps}/c?fieldManager=m&fieldValidation=Strict");
    let refused = yaml(&world.admin, "PATCH", &path, &text("c")).await;
    refused.refused(400, &format!("error strict decoding YAML: error converting YAML to JSON: {why}"));
}

#[tokio::test]
async fn a_kind_without_namespaces_ignores_one() {
    let world = World::start().await;
    world.admin.post(CRDS, crd(spec(json!({})))).await.expect(201);
    let mut sent = thing("a", json!({}));
    sent["metadata"]["namespace"] = "default".into();
    let created = world.admin.post(THINGS, sent.clone()).await.expect(201);
    assert_eq!(created["metadata"].get("namespace"), None);
    sent["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    world.admin.put(&format!("{THINGS}/a"), sent).await.expect(200);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "r", "namespace": "default"}, "rules": [],
    });
    let created = world.admin.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role).await.expect(201);
    assert_eq!(created["metadata"].get("namespace"), None);
}

/// One kind, stored as v1, with a version that knows other fields and has other defaults.
fn two_versions(stored: &str) -> Value {
    let version = |name: &str, properties: Value| json!({"name": name, "served": true, "storage": name == stored, "schema": {"openAPIV3Schema": spec(properties)}});
    let text = || json!({"type": "string"});
    versions(vec![
        version("v1", json!({"old": text(), "both": text(), "first": {"type": "string", "default": "1"}})),
        version("v2", json!({"new": text(), "both": text(), "second": {"type": "string", "default": "2"}})),
    ])
}

#[tokio::test]
async fn another_version_shows_the_fields_it_knows_and_the_defaults_of_the_stored_one() {
    let world = World::start().await;
    world.admin.post(CRDS, two_versions("v1")).await.expect(201);
    let things2 = THINGS.replace("/v1/", "/v2/");
    world.admin.post(THINGS, thing("a", json!({"old": "x", "both": "y"}))).await.expect(201);
    let shown = world.admin.get(&format!("{things2}/a")).await.expect(200);
    assert_eq!(shown["spec"], json!({"both": "y"}));
    let listed = world.admin.get(&things2).await.expect(200);
    assert_eq!(listed["items"][0]["spec"], json!({"both": "y"}));
    // What only the other version knows is not stored, and the response tells so.
    let mut sent = thing("b", json!({"new": "x", "both": "y"}));
    sent["apiVersion"] = "things.example.io/v2".into();
    let created = world.admin.post(&things2, sent.clone()).await.expect(201);
    assert_eq!(created["spec"], json!({"both": "y"}));
    let shown = world.admin.get(&format!("{THINGS}/b")).await.expect(200);
    assert_eq!(shown["spec"], json!({"both": "y", "first": "1"}));
    sent["metadata"]["name"] = "c".into();
    let dry = world.admin.post(&format!("{things2}?dryRun=All"), sent).await.expect(201);
    assert_eq!(dry["spec"], json!({"both": "y"}));
}

#[tokio::test]
async fn objects_that_are_older_than_their_crd_lose_what_it_no_longer_knows() {
    let world = World::start().await;
    world.admin.post(CRDS, two_versions("v1")).await.expect(201);
    world.admin.post(THINGS, thing("a", json!({"old": "x", "both": "y"}))).await.expect(201);
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let patch = json!([{"op": "remove", "path": format!("{fields}/old")}]);
    let path = format!("{CRDS}/things.things.example.io");
    let media = [("content-type", "application/json-patch+json")];
    world.admin.call("PATCH", &path, &media, patch.to_string().into()).await.expect(200);
    let shown = world.admin.get(&format!("{THINGS}/a")).await.expect(200);
    assert_eq!(shown["spec"], json!({"both": "y", "first": "1"}));
    let changed = world.admin.patch(&format!("{THINGS}/a"), "merge", json!({"spec": {"both": "z"}})).await.expect(200);
    assert_eq!(changed["spec"], json!({"both": "z", "first": "1"}));
}

#[tokio::test]
async fn columns_show_the_first_of_several_values_and_whole_lists_as_json() {
    let world = World::start().await;
    let mut crd = crd(json!({"type": "object", "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}));
    let column = |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
    let columns = [
        ("string", ".spec.names", json!("[\"a\",\"b\"]")),
        ("string", ".spec.names[*]", json!("a")),
        ("string", ".spec.names[5]", json!(null)),
        ("string", ".spec.map", json!("{\"k\":1}")),
        ("string", ".spec.number", json!("7")),
        ("string", ".spec.float", json!("1.5")),
        ("string", ".spec.flag", json!("true")),
        ("string", ".spec.none", json!("<no value>")),
        ("string", ".spec.missing", json!(null)),
        ("integer", ".spec.float", json!(1)),
        ("integer", ".spec.names", json!(null)),
        ("integer", ".spec.text", json!(null)),
        ("number", ".spec.float", json!(1.5)),
        ("boolean", ".spec.text", json!(null)),
        ("date", ".spec.text", json!("<invalid>")),
        ("date", ".spec.number", json!(null)),
        ("string", ".spec.list[?(@.size>1)].name", json!("big")),
    ];
    let named = columns.iter().enumerate().map(|(index, (kind, path, _))| column(&format!("C{index}"), kind, path));
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = named.collect();
    world.admin.post(CRDS, crd).await.expect(201);
    let sent = json!({
        "names": ["a", "b"], "map": {"k": 1}, "number": 7, "float": 1.5, "flag": true, "none": null, "text": "t",
        "list": [{"name": "small", "size": 1}, {"name": "big", "size": 2}],
    });
    world.admin.post(THINGS, thing("a", sent)).await.expect(201);
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = world.admin.call("GET", THINGS, &accept, Vec::new()).await.expect(200);
    let wanted: Vec<Value> = std::iter::once(json!("a")).chain(columns.map(|(.., cell)| cell)).collect();
    assert_eq!(table["rows"][0]["cells"], json!(wanted));
}

#[tokio::test]
async fn openapi_writes_out_what_a_schema_implies() {
    let world = World::start().await;
    let mut crd = crd(spec(json!({
        "port": {"x-kubernetes-int-or-string": true},
        "color": {"type": "string"},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    })));
    crd["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    world.admin.post(CRDS, crd).await.expect(201);
    let document = world.admin.get("/openapi/v3/apis/things.example.io/v1").await.expect(200);
    let schema = &document["components"]["schemas"]["io.example.things.v1.Thing"];
    assert_eq!(schema["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.color"}]));
    let fields = &schema["properties"]["spec"]["properties"];
    assert_eq!(fields["port"]["anyOf"], json!([{"type": "integer"}, {"type": "string"}]));
    assert_eq!(fields["inner"]["required"], json!(["kind", "apiVersion"]));
    assert_eq!(fields["inner"]["properties"]["apiVersion"]["type"], "string");
    let older = world.admin.get("/openapi/v2").await.expect(200);
    let fields = &older["definitions"]["io.example.things.v1.Thing"]["properties"]["spec"]["properties"];
    assert_eq!(fields["port"], json!({"x-kubernetes-int-or-string": true}));
    assert_eq!((fields["inner"].get("type"), fields["inner"].get("properties")), (None, None));
    world.admin.post(THINGS, thing("a", json!({"color": "red"}))).await.expect(201);
    world.admin.post(THINGS, thing("b", json!({}))).await.expect(201);
    for (selector, names) in [("spec.color=red", vec!["a"]), ("spec.color=", vec!["b"]), ("spec.color!=red", vec!["b"])]
    {
        let listed =
            world.admin.get(&format!("{THINGS}?fieldSelector={}", selector.replace('=', "%3D"))).await.expect(200);
        let found: Vec<&str> =
            listed["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(found, names, "{selector}");
    }
}

#[tokio::test]
async fn kinds_of_kubernetes_own_groups_tell_whether_they_are_approved() {
    let world = World::start().await;
    let note = "api-approved.kubernetes.io";
    for (plural, value, status, reason, message) in [
        ("ones", "https://github.com/a/b", "True", "ApprovedAnnotation", "approved in https://github.com/a/b"),
        ("twos", "unapproved, a try", "False", "UnapprovedAnnotation", "not approved: \"unapproved, a try\""),
    ] {
        let mut crd = crd(spec(json!({})));
        crd["spec"]["group"] = "tests.k8s.io".into();
        crd["spec"]["names"] = json!({"plural": plural, "kind": plural});
        crd["metadata"] = json!({"name": format!("{plural}.tests.k8s.io"), "annotations": {note: value}});
        let created = world.admin.post(CRDS, crd).await.expect(201);
        let conditions = created["status"]["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|one| one["type"] == "KubernetesAPIApprovalPolicyConformant").unwrap();
        assert_eq!(
            (&found["status"], &found["reason"], &found["message"]),
            (&status.into(), &reason.into(), &message.into())
        );
    }
    let plain = world.admin.post(CRDS, crd(spec(json!({})))).await.expect(201);
    assert_eq!(plain["status"]["conditions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn an_object_that_names_a_revision_is_not_created() {
    let world = World::with_widgets().await;
    let sent = |revision: &str, size: i64| {
        let mut sent = widget("a", json!({"size": size}));
        sent["metadata"]["resourceVersion"] = revision.into();
        sent
    };
    let refusal = "resourceVersion should not be set on objects to be created";
    world.admin.post(WIDGETS, sent("7", 1)).await.refused(500, refusal);
    // Other faults come first, and nothing is stored by a dry run.
    assert_eq!(world.admin.post(WIDGETS, sent("7", 0)).await.code, 422);
    world.admin.post(&format!("{WIDGETS}?dryRun=All"), sent("7", 1)).await.expect(201);
    world.admin.post(WIDGETS, sent("0", 1)).await.expect(201);
    world.admin.post(WIDGETS, sent("7", 1)).await.refused(500, refusal);
}

#[tokio::test]
async fn refusals_count_as_the_real_server_counts() {
    let world = World::start().await;
    let schema = spec(json!({
        "text": {"type": "string", "maxLength": 1},
        "few": {"type": "array", "minItems": 2, "items": {"type": "string"}},
        "many": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
        "map": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
        "ip": {"type": "string", "format": "ip"},
    }));
    world.admin.post(CRDS, crd(schema)).await.expect(201);
    for (spec, fault) in [
        (json!({"text": "xx"}), "spec.text: Too long: may not be more than 1 byte"),
        (json!({"few": ["a"]}), "spec.few: Invalid value: 1: spec.few in body should have at least 2 items"),
        (json!({"many": ["a", "b"]}), "spec.many: Too many: 2: must have at most 1 item"),
        (json!({"map": {}}), "spec.map: Invalid value: 0: spec.map in body should have at least 1 properties"),
    ] {
        let answer = world.admin.post(THINGS, thing("x", spec)).await;
        answer.refused(422, &format!("Thing.things.example.io \"x\" is invalid: {fault}"));
    }
    world.admin.post(THINGS, thing("x", json!({"ip": "this format is not checked"}))).await.expect(201);
}

#[tokio::test]
async fn finalizers_without_a_domain_are_told() {
    let world = World::start().await;
    world.admin.post(CRDS, crd(spec(json!({})))).await.expect(201);
    let mut sent = thing("a", json!({}));
    sent["metadata"]["finalizers"] = json!(["plain", "example.io", "example.io/full"]);
    let answer = world.admin.post(THINGS, sent).await;
    let reported: Vec<&str> = answer.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect();
    let end = "to avoid accidental conflicts with other finalizer writers";
    let wanted = [
        format!(r#"299 - "metadata.finalizers: \"plain\": prefer a domain-qualified finalizer name {end}""#),
        format!(
            r#"299 - "metadata.finalizers: \"example.io\": prefer a domain-qualified finalizer name including a path (/) {end}""#
        ),
    ];
    assert_eq!(reported, wanted);
}

#[tokio::test]
async fn kcp_refuses_schemas_with_two_columns_of_one_name() {
    let world = World::kcp(&[]).await;
    let schema = |name: &str, columns: Value| {
        json!({
            "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema",
            "metadata": {"name": format!("{name}.things.things.example.io")},
            "spec": {
                "group": "things.example.io", "scope": "Cluster",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": {"type": "object"},
                    "subresources": {}, "additionalPrinterColumns": columns,
                }],
            },
        })
    };
    let column = |name: &str| json!({"name": name, "type": "string", "jsonPath": ".metadata.name"});
    let schemas = "/clusters/root/apis/apis.kcp.io/v1alpha1/apiresourceschemas";
    world.admin.post(schemas, schema("v1", json!([column("A"), column("B")]))).await.expect(201);
    let answer = world.admin.post(schemas, schema("v2", json!([column("A"), column("B"), column("A")]))).await;
    answer.refused(
        422,
        "APIResourceSchema.apis.kcp.io \"v2.things.things.example.io\" is invalid: \
         spec.versions[0].additionalPrinterColumns[2]: Duplicate value: {\"name\":\"A\"}",
    );
}
