//! The mappings of generic APIs that the documentation has, tried on generated orders: with the CRDs of the corpus if they are here, else with
//! what matters of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::corpus;
use carrick_e2e_stage::world::World;
use carrick_json::yaml;
use carrick_syncagent::api::PublishedResource;
use carrick_syncagent::rules::Rules;
use carrick_syncagent::rules::crd::Crd;
use carrick_syncagent::rules::implements::proof;
use carrick_syncagent::rules::projection::project;
use serde_json::{Value, json};

const APIS: &str = include_str!("../../../../docs/publishing/platform-mesh/generic/apis.yaml");

/// A mapping: its name in the folder, its PublishedResource, whether the corpus has the CRD, and what matters of the provider's spec.
type Example = (&'static str, &'static str, bool, fn() -> Value);

macro_rules! mapping {
    ($name:literal) => {
        include_str!(concat!("../../../../docs/publishing/platform-mesh/generic/", $name, ".yaml"))
    };
}

const EXAMPLES: [Example; 11] = [
    ("certificate", mapping!("certificate"), true, || {
        let key = object(
            &json!({ "algorithm": { "type": "string", "enum": ["RSA", "ECDSA", "Ed25519"] }, "size": number() }),
            &[],
        );
        let issuer = object(&json!({ "name": text(), "kind": text(), "group": text() }), &["name"]);
        let fields = json!({ "dnsNames": list(&text()), "secretName": text(), "privateKey": key, "issuerRef": issuer });
        object(&fields, &["secretName", "issuerRef"])
    }),
    ("sql", mapping!("sql"), true, || {
        let init = object(&json!({ "database": text(), "owner": text() }), &[]);
        let fields = json!({ "instances": { "type": "integer", "minimum": 1 }, "imageName": text(),
            "storage": object(&json!({ "size": text() }), &[]), "bootstrap": object(&json!({ "initdb": init }), &[]) });
        object(&fields, &["instances"])
    }),
    ("vector", mapping!("vector"), true, || {
        let set = object(&json!({ "name": text(), "count": number(), "config": any() }), &["name"]);
        let sets = json!({ "type": "array", "minItems": 1, "items": set });
        object(&json!({ "version": { "type": "string", "minLength": 1 }, "nodeSets": sets }), &["version", "nodeSets"])
    }),
    ("kubernetes-cluster", mapping!("kubernetes-cluster"), true, || {
        let name = json!({ "type": "string", "minLength": 1 });
        let deployment = object(&json!({ "class": name, "name": name, "replicas": number() }), &["class", "name"]);
        let fields = json!({ "classRef": object(&json!({ "name": name }), &["name"]), "version": name,
            "controlPlane": object(&json!({ "replicas": number() }), &[]),
            "workers": object(&json!({ "machineDeployments": list(&deployment) }), &[]) });
        object(&json!({ "topology": object(&fields, &["classRef", "version"]) }), &[])
    }),
    ("virtual-machine", mapping!("virtual-machine"), false, || {
        let memory = object(&json!({ "guest": quantity() }), &[]);
        let domain = object(&json!({ "devices": any(), "memory": memory }), &["devices"]);
        let spec = object(&json!({ "architecture": text(), "domain": domain }), &["domain"]);
        let template = object(&json!({ "spec": spec }), &[]);
        object(&json!({ "runStrategy": text(), "template": template }), &["template"])
    }),
    ("object", mapping!("object"), true, || {
        object(&json!({ "generateBucketName": text(), "storageClassName": text() }), &[])
    }),
    ("block", mapping!("block"), true, || {
        let replicated = object(&json!({ "size": { "type": "integer", "minimum": 0 } }), &["size"]);
        let quotas = object(
            &json!({ "maxSize": { "type": "string", "pattern": "^[0-9]+[\\.]?[0-9]*([KMGTPE]i|[kMGTPE])?$" } }),
            &[],
        );
        object(
            &json!({ "failureDomain": text(), "deviceClass": text(), "replicated": replicated, "quotas": quotas }),
            &[],
        )
    }),
    ("file", mapping!("file"), true, || {
        object(&json!({ "filesystemName": text(), "name": text(), "quota": quantity() }), &["filesystemName"])
    }),
    ("hosted-model", mapping!("hosted-model"), true, || {
        let port = object(&json!({ "containerPort": number() }), &[]);
        let container = object(&json!({ "image": text(), "args": list(&text()), "ports": list(&port) }), &[]);
        let spec = object(&json!({ "containers": list(&container) }), &["containers"]);
        object(&json!({ "template": object(&json!({ "spec": spec }), &[]) }), &[])
    }),
    ("message-broker", mapping!("message-broker"), false, || {
        let persistence = object(&json!({ "storage": quantity() }), &[]);
        object(&json!({ "replicas": number(), "image": text(), "persistence": persistence }), &[])
    }),
    ("event-streaming", mapping!("event-streaming"), false, || {
        let count = json!({ "type": "integer", "minimum": 1 });
        object(&json!({ "replicas": count, "partitions": count, "config": any() }), &[])
    }),
];

fn text() -> Value {
    json!({ "type": "string" })
}

fn number() -> Value {
    json!({ "type": "integer" })
}

fn any() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn quantity() -> Value {
    json!({ "x-kubernetes-int-or-string": true, "pattern": r"^[+-]?([0-9]+|[0-9]+\.[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE])?$" })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn object(fields: &Value, required: &[&str]) -> Value {
    let mut object = json!({ "type": "object", "properties": fields });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// The platform's schema.
fn generic(spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["type"] = json!("object");
    let time = json!({ "type": "string", "format": "date-time" });
    let fields =
        json!({ "type": text(), "status": text(), "reason": text(), "message": text(), "lastTransitionTime": time });
    let condition = object(&fields, &["type", "status", "reason", "message", "lastTransitionTime"]);
    let gvk = object(&json!({ "group": text(), "version": text(), "kind": text() }), &["group", "version", "kind"]);
    let entry = object(&json!({ "name": text(), "namespace": text(), "gvk": gvk }), &["name", "gvk"]);
    let related = json!({ "type": "object", "additionalProperties": entry });
    let status = object(&json!({ "conditions": list(&condition), "relatedResources": related }), &[]);
    object(&json!({ "spec": spec, "status": status }), &[])
}

/// The PublishedResource of a provider, with what carrick provider up --implements writes.
fn published(file: &str, api: &Value) -> anyhow::Result<Value> {
    let mut published: Value = serde_saphyr::from_str(file)?;
    let of = |key: &str| api[key].as_str().unwrap_or_default();
    let implements = &mut published["spec"]["implements"];
    implements["resource"] = json!(format!("{}.{}.generic.platform-mesh.io", of("plural"), of("group")));
    implements["kind"] = api["kind"].clone();
    let schema = json!({ "openAPIV3Schema": generic(&api["spec"]) });
    implements["versions"] = json!([{ "name": "v1alpha1", "schema": schema }]);
    Ok(published)
}

/// The provider's CRD, as far as it matters.
fn crd(resource: &Value, plural: &str, spec: &Value) -> Value {
    let (group, kind) = (&resource["apiGroup"], &resource["kind"]);
    let schema = object(&json!({ "spec": spec, "status": any() }), &[]);
    let version = json!({ "name": resource["versions"][0], "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": schema } });
    json!({
        "metadata": { "name": format!("{plural}.{}", group.as_str().unwrap_or_default()), "generation": 1 },
        "spec": { "group": group, "scope": "Namespaced", "versions": [version],
            "names": { "kind": kind, "plural": plural, "singular": "x", "listKind": "List" } },
    })
}

fn plural(kind: &Value) -> String {
    let kind = kind.as_str().unwrap_or_default().to_lowercase();
    if kind.ends_with("ch") { format!("{kind}es") } else { format!("{kind}s") }
}

pub(crate) async fn generic_apis_map_onto_kinds_of_operators_as_in_the_corpus(_: Arc<dyn World>) -> anyhow::Result<()> {
    let apis: BTreeMap<String, Value> = serde_saphyr::from_str(APIS)?;
    ensure!(apis.len() == EXAMPLES.len(), "{} APIs and {} mappings", apis.len(), EXAMPLES.len());
    let (mut all, mut wanted) = (Vec::new(), Vec::new());
    for (name, file, in_corpus, spec) in EXAMPLES {
        let published = published(file, apis.get(name).with_context(|| format!("no API for {name}"))?)?;
        let resource = published["spec"]["resource"].clone();
        let plural = plural(&resource["kind"]);
        let local = crd(&resource, &plural, &spec());
        if in_corpus {
            wanted.push(local["metadata"]["name"].as_str().unwrap_or_default().to_owned());
        }
        all.push((name, published, local, in_corpus));
    }
    let mut found = BTreeMap::new();
    if let Some(folder) = corpus::folder() {
        collect(&folder, &wanted, &mut found)?;
    }
    for (name, published, local, in_corpus) in all {
        check(&published, &local).with_context(|| format!("{name}, onto what matters of its CRD"))?;
        if corpus::folder().is_some() && in_corpus {
            let crd = local["metadata"]["name"].as_str().unwrap_or_default();
            let real = found.get(crd).with_context(|| format!("the corpus has no {crd}"))?;
            check(&published, real).with_context(|| format!("{name}, onto {crd} of the corpus"))?;
        }
    }
    Ok(())
}

/// The CRDs of these names below a folder. Samples are of no interest here, and nothing else is read as YAML: that takes long.
fn collect(folder: &Path, wanted: &[String], found: &mut BTreeMap<String, Value>) -> anyhow::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, wanted, found)?;
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for name in wanted.iter().filter(|name| text.contains(&format!("name: {name}\n"))) {
            let named = |part: &&str| part.contains(&format!("name: {name}\n")) && part.contains("openAPIV3Schema:");
            let Some(part) = text.split("\n---").find(named) else { continue };
            let Ok(value) = yaml::value(part) else { continue };
            if value["kind"] == "CustomResourceDefinition" && value["metadata"]["name"] == name.as_str() {
                found.entry(name.clone()).or_insert(value);
            }
        }
    }
    Ok(())
}

/// All generated orders are placed and taken, and a step that is wrong is found.
fn check(published: &Value, crd: &Value) -> anyhow::Result<()> {
    let crd = Crd::from_json(crd)?;
    let parsed: PublishedResource = serde_json::from_value(published.clone())?;
    let rules = Rules::compile(&parsed, &crd, "agent")?;
    let _ = rules.admitting(&parsed, &project(&parsed, &crd)?)?;
    let doubts = proof::doubts(&parsed, &crd);
    ensure!(doubts.is_empty(), "{doubts:#?}");
    let mut wrong = published.clone();
    let steps = wrong["spec"]["implements"]["spec"].as_array_mut().context("no steps")?;
    steps.push(json!({ "cel": { "path": "spec", "expression": "{'planted': 1}" } }));
    let doubts = proof::doubts(&serde_json::from_value(wrong)?, &crd);
    ensure!(!doubts.is_empty(), "a planted mistake is not found");
    Ok(())
}
