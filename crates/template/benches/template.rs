//! What compiling and rendering cost: `cargo bench -p carrick-template`.

#![allow(clippy::unwrap_used, missing_docs, reason = "benchmarks may panic as tests do")]

use carrick_template::Template;
use divan::{Bencher, black_box};
use serde_json::{Map, Value, json};

fn main() {
    divan::main();
}

/// The default name of a copy.
const DEFAULT_NAME: &str = "{{ .Object.metadata.namespace | sha3short }}-{{ .Object.metadata.name | sha3short }}";
/// A name that a provider would write.
const NAME: &str = r#"{{- /* at most 40 characters */ -}}
{{- $tier := .Object.spec.tier | default "standard" | lower -}}
{{- if eq .Object.kind "Database" -}}
db-{{ $tier }}-{{ .Object.metadata.namespace | trunc 10 }}-{{ .Object.metadata.name | trunc 20 | trimSuffix "-" }}
{{- else -}}
{{ .ClusterName }}-{{ .Object.metadata.name }}
{{- end -}}"#;
/// A mutation.
const MUTATION: &str = r#"{{ if .Value.Exists }}{{ .Value.String | lower | replace "_" "-" | trunc 63 }}{{ else }}{{ printf "%s-%s" .LocalObject.metadata.namespace .LocalObject.metadata.name }}{{ end }}"#;

fn object() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Database",
        "metadata": {
            "name": "orders-db", "namespace": "team-checkout", "uid": "8f2a64c1-1d0c-4b8e-9d59-0d6c3a3c8a11", "generation": 7,
            "resourceVersion": "184467", "creationTimestamp": "2026-02-03T04:05:06Z",
            "labels": {"app.kubernetes.io/name": "orders", "app.kubernetes.io/part-of": "shop", "team": "checkout"},
            "annotations": {"example.com/contact": "checkout@example.com", "example.com/cost-centre": "4711"},
            "finalizers": ["example.com/protect"],
        },
        "spec": {
            "tier": "Gold", "version": "16.4", "replicas": 3, "storage": {"size": "100Gi", "class": "fast", "encrypted": true},
            "backup": {"schedule": "0 3 * * *", "keep": 14, "targets": [{"name": "a", "region": "eu"}, {"name": "b", "region": "us"}]},
            "users": (0..10).map(|i| json!({"name": format!("user_{i}"), "roles": ["read", "write"]})).collect::<Vec<_>>(),
            "parameters": (0..20).map(|i| (format!("parameter-{i}"), json!(i))).collect::<Map<_, _>>(),
        },
        "status": {"phase": "Ready", "conditions": [{"type": "Ready", "status": "True", "reason": "AllGood"}]},
    })
}

fn naming() -> Map<String, Value> {
    let data = json!({"Object": object(), "ClusterName": "34hg2j4gh24jdfgf", "ClusterPath": "root:org:team"});
    data.as_object().cloned().unwrap()
}

fn mutation() -> Map<String, Value> {
    json!({"LocalObject": object(), "RemoteObject": object()}).as_object().cloned().unwrap()
}

fn get(json: &Value, path: &str) -> Option<Value> {
    json.get(path).cloned()
}

#[divan::bench(args = ["default", "provider"])]
fn name_compile(name: &str) -> Template {
    Template::compile(black_box(text(name))).unwrap()
}

#[divan::bench(args = ["default", "provider"])]
fn name_render(bencher: Bencher<'_, '_>, name: &str) {
    let (template, data) = (Template::compile(text(name)).unwrap(), naming());
    bencher.bench_local(|| template.render(black_box(&data)).unwrap());
}

#[divan::bench(args = ["default", "provider"])]
fn name_compile_and_render(bencher: Bencher<'_, '_>, name: &str) {
    let data = naming();
    bencher.bench_local(|| Template::compile(black_box(text(name))).unwrap().render(black_box(&data)).unwrap());
}

fn text(name: &str) -> &'static str {
    if name == "default" { DEFAULT_NAME } else { NAME }
}

#[divan::bench]
fn mutation_compile() -> Template {
    Template::compile(black_box(MUTATION)).unwrap()
}

#[divan::bench]
fn mutation_render(bencher: Bencher<'_, '_>) {
    let (template, data, value) = (Template::compile(MUTATION).unwrap(), mutation(), json!("Some_User_Name"));
    bencher.bench_local(|| template.render_mutation(black_box(Some(&value)), get, &data).unwrap());
}

#[divan::bench]
fn mutation_compile_and_render(bencher: Bencher<'_, '_>) {
    let (data, value) = (mutation(), json!("Some_User_Name"));
    bencher.bench_local(|| {
        let template = Template::compile(black_box(MUTATION)).unwrap();
        template.render_mutation(Some(&value), get, &data).unwrap()
    });
}
