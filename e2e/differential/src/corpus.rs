//! CRDs and samples of public operators, on the plane and on a real server.
//!
//! ```text
//!   files ─▶ a CRD as its authors wrote it ─▶ dry run ─▶ created ─▶ samples, empty and odd objects ─▶ read in every version, as a table
//! ```
//!
//! The texts are sent as they are, in YAML, so that reading them is compared as well. `e2e/corpus/fetch` collects them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use carrick_e2e_stage::corpus::files::{Corpus, Text};
use carrick_e2e_stage::corpus::kind::CustomKind;
use carrick_e2e_stage::{corpus, stage};
use futures::StreamExt;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::normal::{self, Normal};
use super::peer::Peer;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

const APPROVAL: &str = "KubernetesAPIApprovalPolicyConformant";

/// How many CRDs are tried at a time.
const AT_ONCE: usize = 4;

/// Differences on purpose, listed in docs/plane.md: the CRD, and a part of the request.
const KNOWN: [(&str, &str); 1] = [
    // A quoted text with the escape `\/`.
    ("externalsecrets.external-secrets.io", "name: conjur-find-by-name"),
];

fn is_known(crd: &str, step: &str) -> bool {
    KNOWN.iter().any(|(known, part)| *known == crd && step.contains(part))
}

/// Compares two servers; tells how they differ.
pub async fn compare(real: &Peer, plane: &Peer) -> anyhow::Result<Vec<String>> {
    let corpus = corpus::read(|_| true)?;
    let namespaces: BTreeSet<&str> = corpus.samples.iter().filter_map(Text::namespace).collect();
    for peer in [real, plane] {
        for name in &namespaces {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            peer.ask("POST", "/api/v1/namespaces", [JSON; 2], namespace.to_string().into()).await?;
        }
    }
    let samples = AtomicUsize::new(0);
    let told: Vec<Vec<String>> = futures::stream::iter(&corpus.crds)
        .map(|(name, text)| {
            let (corpus, samples) = (&corpus, &samples);
            async move {
                let compared = about(real, plane, corpus, name, text, samples).await;
                compared.unwrap_or_else(|error| vec![format!("{name}: {error:#}")])
            }
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let differ = told.iter().filter(|told| !told.is_empty()).count();
    println!("corpus: {} CRDs, {} samples, {differ} CRDs differ", corpus.crds.len(), samples.into_inner());
    Ok(told.into_iter().flatten().collect())
}

/// Everything about one CRD: a line for each difference.
async fn about(
    real: &Peer,
    plane: &Peer,
    corpus: &Corpus,
    name: &str,
    text: &Text,
    counted: &AtomicUsize,
) -> anyhow::Result<Vec<String>> {
    let mut desks = [Desk::new(real), Desk::new(plane)];
    for desk in &mut desks {
        desk.send("POST", &format!("{PATH}?dryRun=All"), [YAML, JSON], &text.content).await?;
    }
    if desks[0].last() == 201 && desks[1].last() == 201 {
        let kind = CustomKind::of(&text.value);
        let samples: Vec<&Text> = corpus.samples.iter().filter(|sample| kind.made(sample)).collect();
        counted.fetch_add(samples.len(), Ordering::Relaxed);
        let [one, other] = &mut desks;
        futures::try_join!(one.play(&kind, &samples), other.play(&kind, &samples))?;
    }
    let [real, mut plane] = desks;
    let mut told = Vec::new();
    for (step, real) in real.told {
        // What one of them refuses is not read back from it.
        let Some(at) = plane.told.iter().position(|(other, _)| *other == step) else { continue };
        let (_, plane) = plane.told.remove(at);
        let lines = normal::differences(&real, &plane);
        if !lines.is_empty() && !is_known(name, &step) {
            told.push(format!("== {name} ({}): {step}", text.file));
            told.extend(lines.into_iter().take(12).map(|line| format!("    {}", shortened(&line))));
        }
    }
    Ok(told)
}

fn shortened(line: &str) -> String {
    line.lines().map(|part| part.chars().take(600).collect::<String>()).collect::<Vec<_>>().join("\n    ")
}

/// Where objects of a kind are.
fn path(kind: &CustomKind, version: &str, namespace: &str) -> String {
    let place = if kind.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
    format!("/apis/{}/{version}{place}/{}", kind.group, kind.plural)
}

/// Objects that nobody would write, and the smallest ones.
fn odd(kind: &CustomKind, version: &str) -> Vec<Value> {
    let object = |name: &str, more: Value| {
        let mut object = json!({
            "apiVersion": format!("{}/{version}", kind.group), "kind": kind.kind, "metadata": {"name": name},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        object
    };
    vec![
        object("bare", json!({})),
        object("empty", json!({"spec": {}})),
        object("odd", json!({"spec": {"oddField": {"a": [{"b": 1}]}}, "oddField": 1})),
    ]
}

/// What one server was asked and answered.
struct Desk<'a> {
    peer: &'a Peer,
    normal: Normal,
    told: Vec<(String, Value)>,
}

impl<'a> Desk<'a> {
    fn new(peer: &'a Peer) -> Self {
        Self { peer, normal: Normal::new(peer, "there-is-no-such-namespace"), told: Vec::new() }
    }

    fn last(&self) -> u64 {
        self.told.last().and_then(|(_, answer)| answer["code"].as_u64()).unwrap_or_default()
    }

    async fn send(&mut self, method: &str, path: &str, types: [&str; 2], body: &str) -> anyhow::Result<()> {
        let answer = self.peer.ask(method, path, types, Bytes::from(body.to_owned())).await?;
        let mut shown = self.normal.answer(&answer);
        // The status is the work of controllers, which come later on a real server.
        let of_crd = shown["body"]["kind"] == "CustomResourceDefinition";
        if let Some(body) = shown["body"].as_object_mut().filter(|_| of_crd) {
            body.remove("status");
        }
        let start: String = body.chars().take(200).collect();
        self.told.push((format!("{method} {path} {}", start.replace('\n', "\\n")), shown));
        Ok(())
    }

    /// Creates the kind and objects of it, reads them in every version, and removes the kind.
    async fn play(&mut self, kind: &CustomKind, samples: &[&Text]) -> anyhow::Result<()> {
        let Some(first) = kind.versions.first() else { return Ok(()) };
        self.peer.must("POST", PATH, &kind.crd).await?;
        let own = format!("{PATH}/{}.{}", kind.plural, kind.group);
        let established = |crd: &Value| stage::condition(crd, "Established")["status"] == "True";
        self.peer.until(&own, "the CRD is established", established).await?;
        self.peer.until(&path(kind, first, "default"), "the kind is served", |_| true).await?;
        if [".k8s.io", ".kubernetes.io"].iter().any(|end| kind.group.ends_with(end)) {
            let judged = |crd: &Value| stage::condition(crd, APPROVAL)["status"].is_string();
            let crd = self.peer.until(&own, "the approval was looked at", judged).await?;
            let found = stage::condition(&crd, APPROVAL);
            let told = json!({"status": found["status"], "reason": found["reason"], "message": found["message"]});
            self.told.push(("its approval".to_owned(), told));
        }
        for sample in samples {
            let version = sample.value["apiVersion"].as_str().and_then(|version| version.split_once('/'));
            let version = version.map_or("", |(_, version)| version);
            let path = path(kind, version, sample.namespace().unwrap_or("default"));
            self.send("POST", &path, [YAML, JSON], &sample.content).await?;
            self.shown(kind, sample.namespace().unwrap_or("default"), &sample.value["metadata"]["name"]).await?;
        }
        for version in &kind.versions {
            for mut object in odd(kind, version) {
                let name = json!(format!("{}-{version}", object["metadata"]["name"].as_str().unwrap_or_default()));
                object["metadata"]["name"] = name.clone();
                self.send("POST", &path(kind, version, "default"), [JSON; 2], &object.to_string()).await?;
                self.shown(kind, "default", &name).await?;
            }
        }
        self.peer.must("DELETE", &own, &Value::Null).await?;
        Ok(())
    }

    /// Reads an object that was just created, in every version, and as a table.
    async fn shown(&mut self, kind: &CustomKind, namespace: &str, name: &Value) -> anyhow::Result<()> {
        let (Some(name), 201) = (name.as_str(), self.last()) else { return Ok(()) };
        for version in &kind.versions {
            let path = format!("{}/{name}", path(kind, version, namespace));
            self.send("GET", &path, [JSON; 2], "").await?;
            self.send("GET", &path, [JSON, TABLE], "").await?;
        }
        Ok(())
    }
}
