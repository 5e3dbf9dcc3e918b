//! CRDs, good and bad, and a few objects of them.
//!
//! ```text
//!   seed ─▶ a good CRD ─▶ faulty ones, created as dry runs ─▶ the good one ─▶ objects ─▶ faulty updates ─▶ a good update
//! ```
//!
//! Each answer of the plane must be that of the real server.

use anyhow::Context;
use carrick_e2e_stage::seed;
use carrick_e2e_stage::stage;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::crds;
use super::dice::Dice;
use super::normal::{self, Normal};
use super::peer::Peer;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// One request about CRDs.
struct Step {
    method: &'static str,
    path: String,
    body: Value,
}

/// Tells how two servers differ about the CRDs of a seed, if they do. `token` makes their group a new one.
pub async fn compare(real: &Peer, plane: &Peer, seed: u64, token: &str) -> anyhow::Result<Option<String>> {
    let mut dice = Dice::new(seed);
    let good = named(&crds::good(&mut dice, 2), token);
    let refused: Vec<Value> = (0..8).map(|_| crds::broken(&mut dice, &good)).collect();
    let updates: Vec<Value> = (0..6).map(|_| crds::broken(&mut dice, &good)).collect();
    let objects: Vec<Value> = (0..4).map(|_| object(&mut dice, token)).collect();
    let play = async |peer: &Peer| -> anyhow::Result<Vec<(String, Value)>> {
        let mut desk = Desk { peer, normal: Normal::new(peer, token), told: Vec::new() };
        for crd in &refused {
            desk.send(&Step { method: "POST", path: format!("{PATH}?dryRun=All"), body: crd.clone() }).await?;
        }
        desk.send(&Step { method: "POST", path: format!("{PATH}?dryRun=All"), body: good.clone() }).await?;
        peer.must("POST", PATH, &good).await?;
        let own = format!("{PATH}/{}", good["metadata"]["name"].as_str().unwrap_or_default());
        let established = |crd: &Value| stage::condition(crd, "Established")["status"] == "True";
        let stored = peer.until(&own, "the CRD is established", established).await?;
        let space = if good["spec"]["scope"] == "Namespaced" { "/namespaces/default" } else { "" };
        let things = format!("/apis/{token}.example.com/v1{space}/things");
        peer.until(&things, "the kind is served", |_| true).await?;
        for object in &objects {
            desk.send(&Step { method: "POST", path: things.clone(), body: object.clone() }).await?;
        }
        for crd in &updates {
            let body = updated(&stored, crd);
            desk.send(&Step { method: "PUT", path: format!("{own}?dryRun=All"), body }).await?;
        }
        let mut more = updated(&stored, &good);
        more["spec"]["names"]["shortNames"] = json!(["tng"]);
        more["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["new"] =
            json!({ "type": "string", "default": "x" });
        desk.send(&Step { method: "PUT", path: format!("{own}?dryRun=All"), body: more }).await?;
        peer.must("DELETE", &own, &Value::Null).await?;
        Ok(desk.told)
    };
    let (real, plane) = futures::try_join!(play(real), play(plane)).with_context(|| seed::replay(seed))?;
    let mut told = Vec::new();
    for ((step, real), (_, plane)) in real.iter().zip(&plane) {
        if real != plane {
            told.push(format!("  {step}"));
            told.extend(normal::differences(real, plane).into_iter().map(|line| format!("    {line}")));
        }
    }
    Ok((!told.is_empty()).then(|| format!("== {}\n{}\n", seed::replay(seed), told.join("\n"))))
}

/// A document with the name of the group in it.
fn named(crd: &Value, token: &str) -> Value {
    serde_json::from_str(&crd.to_string().replace("{ns}", token)).unwrap_or_default()
}

/// A CRD in place of the stored one.
fn updated(stored: &Value, crd: &Value) -> Value {
    let mut new = crd.clone();
    for key in ["name", "resourceVersion", "uid"] {
        new["metadata"][key] = stored["metadata"][key].clone();
    }
    new
}

/// Something that may be an object of a new kind.
fn object(dice: &mut Dice, token: &str) -> Value {
    let values = json!([
        "x", "", "abc", 1, 2, 1.5, true, null, [], ["x"], ["x", "x"], [{ "k": "a" }], [{ "k": "a" }, { "k": "a" }], {},
        { "d": 1 }, { "a": "x" }, { "apiVersion": "v1", "kind": "X", "metadata": { "name": "n" } },
    ]);
    let fields = [("a", values.clone()), ("b", values.clone()), ("c", values)];
    json!({
        "apiVersion": format!("{token}.example.com/v1"), "kind": "Thing",
        "metadata": { "generateName": "x-" }, "spec": dice.some(60, &fields),
    })
}

struct Desk<'a> {
    peer: &'a Peer,
    normal: Normal,
    /// The requests and the answers to them.
    told: Vec<(String, Value)>,
}

impl Desk<'_> {
    async fn send(&mut self, step: &Step) -> anyhow::Result<()> {
        let body = Bytes::from(step.body.to_string());
        let answer = self.peer.ask(step.method, &step.path, ["application/json"; 2], body).await?;
        let mut shown = self.normal.answer(&answer);
        // The status is the work of controllers, which come later on a real server.
        let of_crd = shown["body"]["kind"] == "CustomResourceDefinition";
        if let Some(body) = shown["body"].as_object_mut().filter(|_| of_crd) {
            body.remove("status");
        }
        if let Some(owners) = shown.pointer_mut("/body/metadata/managedFields").and_then(Value::as_array_mut) {
            owners.retain(|owner| owner["subresource"] != "status");
        }
        self.told.push((format!("{} {} {}", step.method, step.path, step.body), shown));
        Ok(())
    }
}
