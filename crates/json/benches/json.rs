//! Paths, patches and patterns on an object as the agent sees it: `cargo bench -p carrick-json`.

use carrick_go::regex::GoRegex;
use carrick_json::path::{self, text};
use carrick_json::{go, merge};
use divan::{Bencher, black_box};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

/// A Deployment of ordinary size.
fn object() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "team-a", "uid": "0d1b6f5e-7a3b-4c5d-8e9f-0a1b2c3d4e5f", "generation": 7,
            "labels": {"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop", "tier": "front"},
            "annotations": {"deployment.kubernetes.io/revision": "3", "example.com/note": "a <b> & c"},
        },
        "spec": {
            "replicas": 3, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app.kubernetes.io/name": "web"}},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": "web", "tier": "front"}},
                "spec": {
                    "containers": [
                        {"name": "web", "image": "nginx:latest", "ports": [{"containerPort": 80, "name": "http"}],
                         "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                         "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}}},
                        {"name": "sidecar", "image": "envoy:v1.30", "ports": [{"containerPort": 9901, "name": "admin"}]},
                    ],
                },
            },
        },
        "status": {"replicas": 3, "readyReplicas": 2, "observedGeneration": 7, "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
            {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
        ]},
    })
}

const PATHS: [&str; 4] = [
    "metadata.name",
    "spec.template.spec.containers.0.image",
    r#"status.conditions.#(type=="Progressing").reason"#,
    "spec.template.spec.containers.#.ports.#.name|@flatten",
];

#[divan::bench(args = PATHS)]
fn read_text(bencher: Bencher<'_, '_>, path: &str) {
    let text = object().to_string();
    bencher.bench(|| black_box(text::get(black_box(&text), path)).exists());
}

#[divan::bench(args = PATHS)]
fn read_value(bencher: Bencher<'_, '_>, path: &str) {
    let object = object();
    bencher.bench(|| path::get(black_box(&object), path));
}

#[divan::bench]
fn write_text(bencher: Bencher<'_, '_>) {
    let text = object().to_string();
    bencher.bench(|| text::set(black_box(&text), PATHS[1], r#""nginx:v1""#));
}

#[divan::bench]
fn write_value(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(object).bench_values(|mut object| path::set(&mut object, PATHS[1], "nginx:v1".into()));
}

#[divan::bench]
fn delete_text(bencher: Bencher<'_, '_>) {
    let text = object().to_string();
    bencher.bench(|| text::delete(black_box(&text), "metadata.annotations"));
}

fn changed() -> Value {
    let mut changed = object();
    changed["spec"]["replicas"] = 5.into();
    changed["status"]["readyReplicas"] = 3.into();
    changed
}

#[divan::bench]
fn diff_values(bencher: Bencher<'_, '_>) {
    let (from, to) = (object(), changed());
    bencher.bench(|| merge::diff(black_box(&from), black_box(&to)));
}

#[divan::bench]
fn encode_as_go(bencher: Bencher<'_, '_>) {
    let object = object();
    bencher.bench(|| go::to_string(black_box(&object)));
}

#[divan::bench]
fn compile_regex() -> GoRegex {
    GoRegex::compile(black_box("^(.*):latest$")).expect("the pattern is fine")
}

#[divan::bench]
fn rewrite_with_regex(bencher: Bencher<'_, '_>) {
    let regex = compile_regex();
    bencher.bench(|| regex.replace_all(black_box("registry/team/nginx:latest"), "$1:v1"));
}
