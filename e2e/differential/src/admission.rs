//! Policies and webhooks: the same configuration and the same requests lead to the same answers, and webhooks are asked the same.
//!
//! Servers notice a configuration some time after it was stored, so every case has a probe that is repeated until it is refused.

use std::time::Duration;

use anyhow::Context;
use carrick_e2e_stage::seed;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::hook::Hook;
use super::normal::{self, Normal};
use super::peer::{Answer, Peer};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// One configuration, and requests that it is about.
struct Case {
    name: &'static str,
    /// What is configured: plural and object, created in this order.
    objects: Vec<(&'static str, Value)>,
    /// The data of a ConfigMap that is refused as soon as the configuration counts; null if nothing is refused.
    probe: Value,
    /// Method, path below the namespace, media type and body.
    requests: Vec<(&'static str, String, &'static str, Value)>,
}

impl Case {
    fn has_params(&self) -> bool {
        self.objects.iter().any(|(_, object)| object["spec"]["paramKind"].is_object())
    }
}

/// Tells how two servers differ, if they do. `token` is the name of a new namespace.
pub async fn compare(real: &Peer, plane: &Peer, number: u64, token: &str) -> anyhow::Result<Option<String>> {
    let (first, second) = (Hook::start(respond).await?, Hook::start(respond).await?);
    let (real, plane) = futures::try_join!(play(real, &first, token), play(plane, &second, token))
        .with_context(|| seed::replay(number))?;
    let mut told = Vec::new();
    for ((step, real), (_, plane)) in real.iter().zip(&plane) {
        if real != plane {
            told.push(format!("  {step}"));
            told.extend(normal::differences(real, plane).into_iter().map(|line| format!("    {line}")));
        }
    }
    anyhow::ensure!(
        real.len() == plane.len(),
        "{} answers of the real server, {} of the plane",
        real.len(),
        plane.len()
    );
    Ok((!told.is_empty()).then(|| format!("== {}\n{}\n", seed::replay(number), told.join("\n"))))
}

async fn play(peer: &Peer, hook: &Hook, token: &str) -> anyhow::Result<Vec<(String, Value)>> {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": token, "labels": { "limit": "3" } } });
    peer.must("POST", "/api/v1/namespaces", &namespace).await?;
    let mut desk = Desk { peer, hook, normal: Normal::new(peer, token), told: Vec::new() };
    for (name, plural, object) in refused(token) {
        desk.send(&format!("{name}: POST {plural}"), "POST", &format!("{GROUP}/{plural}?dryRun=All"), JSON, &object)
            .await?;
    }
    // kcp 0.31 does not survive a policy whose parameters are of a built-in kind.
    let survives = |case: &Case| peer.cluster.is_empty() || !case.has_params();
    for case in policies(token).into_iter().chain(webhooks(token, hook)).filter(survives) {
        desk.case(&case, token).await.with_context(|| case.name)?;
    }
    peer.must("DELETE", &format!("/api/v1/namespaces/{token}"), &Value::Null).await?;
    Ok(desk.told)
}

/// How often and how long servers are asked whether they have noticed.
const PAUSE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(30);

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

struct Desk<'a> {
    peer: &'a Peer,
    hook: &'a Hook,
    normal: Normal,
    told: Vec<(String, Value)>,
}

impl Desk<'_> {
    async fn case(&mut self, case: &Case, token: &str) -> anyhow::Result<()> {
        let home = format!("/api/v1/namespaces/{token}");
        for (plural, object) in &case.objects {
            let path = if plural.contains('/') { (*plural).to_owned() } else { format!("{GROUP}/{plural}") };
            self.send(&format!("{}: POST {plural}", case.name), "POST", &path, JSON, object).await?;
        }
        if !case.probe.is_null() {
            self.until_probed(case, &home, |code| code >= 300).await.context("never refused")?;
            self.hook.asked();
        }
        for (method, path, media, body) in &case.requests {
            let path = if path.starts_with("/api") { path.clone() } else { format!("{home}/{path}") };
            self.send(&format!("{}: {method} {path} {body}", case.name), method, &path, media, body).await?;
            for asked in self.hook.asked() {
                let mut asked = self.placed(&asked);
                // Who asks is called differently on the two servers.
                asked["document"]["request"]["userInfo"] = Value::Null;
                let asked = self.normal.value(asked);
                self.told.push((format!("{}: {method} {path}: what the webhook was asked", case.name), asked));
            }
        }
        for (plural, object) in case.objects.iter().rev() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let path =
                if plural.contains('/') { format!("{plural}/{name}") } else { format!("{GROUP}/{plural}/{name}") };
            self.peer.must("DELETE", &path, &Value::Null).await?;
        }
        if !case.probe.is_null() {
            self.until_probed(case, &home, |code| code < 300).await.context("refused for ever")?;
        }
        Ok(())
    }

    /// Sends the probe until the answer fits.
    async fn until_probed(&self, case: &Case, home: &str, fits: fn(u16) -> bool) -> anyhow::Result<()> {
        let probe = map("probe", &case.probe);
        let path = format!("{home}/configmaps?dryRun=All");
        let probed = async {
            while !fits(self.ask("POST", &path, JSON, &probe).await?.code) {
                tokio::time::sleep(PAUSE).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, probed).await?
    }

    async fn ask(&self, method: &str, path: &str, media: &str, body: &Value) -> anyhow::Result<Answer> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        self.peer.ask(method, path, [media, JSON], body).await
    }

    async fn send(&mut self, step: &str, method: &str, path: &str, media: &str, body: &Value) -> anyhow::Result<()> {
        let answer = self.ask(method, path, media, body).await?;
        let mut told = self.normal.answer(&answer);
        told = self.placed(&told);
        // Who owns which part of a configuration is told in less detail by the plane.
        if let Some(metadata) = told.pointer_mut("/body/metadata").filter(|_| path.starts_with(GROUP)) {
            metadata["managedFields"] = Value::Null;
        }
        self.told.push((step.to_owned(), told));
        Ok(())
    }

    /// The same without the address and the certificates of the webhook.
    fn placed(&self, value: &Value) -> Value {
        let client = self.hook.client("");
        let authority = client["caBundle"].as_str().unwrap_or_default();
        let text = value.to_string().replace(&self.hook.address(), "HOOK").replace(authority, "AUTHORITY");
        serde_json::from_str(&text).unwrap_or_default()
    }
}

fn policy(token: &str, name: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": format!("{token}-{name}") },
        "spec": { "matchConstraints": {
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": token } },
            "resourceRules": [
                { "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"] },
            ],
        } },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

fn binding(token: &str, name: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": format!("{token}-{name}") },
        "spec": { "policyName": format!("{token}-{name}"), "validationActions": ["Deny"] },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

fn map(name: &str, data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}

/// Policies that are refused, and what they are called.
fn refused(token: &str) -> Vec<(&'static str, &'static str, Value)> {
    let (policies, bindings) = ("validatingadmissionpolicies", "validatingadmissionpolicybindings");
    let (validating, mutating) = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations");
    let hook = |kind: &str, hook: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": token }, "webhooks": [hook],
        })
    };
    let rule =
        json!({ "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"] });
    vec![
        ("nothing", policies, policy(token, "x", &json!({ "matchConstraints": null }))),
        (
            "no rules",
            policies,
            policy(token, "x", &json!({ "matchConstraints": {}, "validations": [{ "expression": "true" }] })),
        ),
        ("no bool", policies, policy(token, "x", &json!({ "validations": [{ "expression": "object.data" }] }))),
        (
            "unknown names",
            policies,
            policy(token, "x", &json!({ "validations": [{ "expression": "nope == params.x" }] })),
        ),
        ("syntax", policies, policy(token, "x", &json!({ "validations": [{ "expression": "object. ==" }] }))),
        (
            "messages and reasons",
            policies,
            policy(
                token,
                "x",
                &json!({ "validations": [{ "expression": "true", "message": "a\nb", "messageExpression": "1", "reason": "Odd" }] }),
            ),
        ),
        (
            "variables",
            policies,
            policy(
                token,
                "x",
                &json!({
                    "variables": [{ "name": "a-b", "expression": "1" }, { "name": "c", "expression": "variables.d" }, { "name": "", "expression": "" }],
                    "validations": [{ "expression": "variables.c == variables.e" }],
                }),
            ),
        ),
        (
            "annotations",
            policies,
            policy(
                token,
                "x",
                &json!({ "auditAnnotations": [{ "key": "a", "valueExpression": "1" }, { "key": "a", "valueExpression": "" }] }),
            ),
        ),
        (
            "parameters",
            policies,
            policy(
                token,
                "x",
                &json!({ "paramKind": { "apiVersion": "a/b/c", "kind": "" }, "validations": [{ "expression": "true" }] }),
            ),
        ),
        (
            "conditions",
            policies,
            policy(
                token,
                "x",
                &json!({
                    "matchConditions": [{ "name": "", "expression": "1" }, { "name": "a", "expression": "true" }, { "name": "a", "expression": "" }],
                    "validations": [{ "expression": "true" }],
                }),
            ),
        ),
        (
            "rules",
            policies,
            policy(
                token,
                "x",
                &json!({
                    "matchConstraints": {
                        "matchPolicy": "Odd", "namespaceSelector": { "matchExpressions": [{ "key": "a b", "operator": "Near", "values": ["c d"] }] },
                        "resourceRules": [{ "operations": ["PATCH", "*"], "apiGroups": ["*", "a"], "apiVersions": [""], "resources": ["*", "a", "*/*"], "scope": "Odd" }],
                    },
                    "validations": [{ "expression": "true" }],
                }),
            ),
        ),
        ("empty", bindings, binding(token, "x", &json!({ "policyName": "", "validationActions": [] }))),
        ("actions", bindings, binding(token, "x", &json!({ "validationActions": ["Deny", "Warn", "Odd", "Odd"] }))),
        ("reference", bindings, binding(token, "x", &json!({ "paramRef": { "name": "a/b", "selector": {} } }))),
        ("no reference", bindings, binding(token, "x", &json!({ "paramRef": { "parameterNotFoundAction": "Odd" } }))),
        ("bare", validating, hook("ValidatingWebhookConfiguration", json!({ "name": "a.b", "clientConfig": {} }))),
        (
            "address",
            validating,
            hook(
                "ValidatingWebhookConfiguration",
                json!({
                    "name": "a.b.c", "clientConfig": { "url": "http://u:p@x.io/a?b#c" }, "sideEffects": "Some", "timeoutSeconds": 0,
                    "admissionReviewVersions": ["v7", "V1", "v7"], "rules": [rule], "failurePolicy": "Odd", "matchPolicy": "Odd",
                }),
            ),
        ),
        (
            "service",
            mutating,
            hook(
                "MutatingWebhookConfiguration",
                json!({
                    "name": "a.b.c", "clientConfig": { "service": { "name": "", "namespace": "x", "path": "a//b", "port": 70000 } }, "sideEffects": "None",
                    "admissionReviewVersions": ["v1"], "rules": [rule], "reinvocationPolicy": "Odd",
                }),
            ),
        ),
        (
            "good",
            mutating,
            hook(
                "MutatingWebhookConfiguration",
                json!({
                    "name": "a.b.c", "clientConfig": { "service": { "name": "s", "namespace": "x" } }, "sideEffects": "None",
                    "admissionReviewVersions": ["v1"], "rules": [rule],
                }),
            ),
        ),
    ]
}

fn policies(token: &str) -> Vec<Case> {
    let (kind, binds) = ("validatingadmissionpolicies", "validatingadmissionpolicybindings");
    let both = |name: &'static str, spec: &Value, bound: &Value| {
        vec![(kind, policy(token, name, spec)), (binds, binding(token, name, bound))]
    };
    let create = |name: &str, data: Value| ("POST", "configmaps".to_owned(), JSON, map(name, &data));
    let merge = |name: &str, data: Value| ("PATCH", format!("configmaps/{name}"), MERGE, json!({ "data": data }));
    let apply =
        |name: &str, data: Value| ("PATCH", format!("configmaps/{name}?fieldManager=m"), APPLY, map(name, &data));
    vec![
        Case {
            name: "sizes",
            objects: both("sizes", &json!({ "validations": [
                { "expression": "object.data.size.matches('^[0-9]+$')", "message": "size is a number" },
                { "expression": "int(object.data.size) < 3", "messageExpression": "'too large: ' + object.data.size", "reason": "Forbidden" },
                { "expression": "request.operation == 'CREATE' || oldObject.data.size <= object.data.size" },
            ] }), &json!({})),
            probe: json!({ "size": "9" }),
            requests: vec![
                create("a", json!({ "size": "9" })),
                create("a", json!({ "size": "x" })),
                create("a", json!({ "other": "x" })),
                ("POST", "configmaps".to_owned(), JSON, json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "gen1-" } })),
                create("a", json!({ "size": "2" })),
                merge("a", json!({ "size": "1" })),
                merge("a", json!({ "size": "7" })),
                apply("b", json!({ "size": "7" })),
                apply("b", json!({ "size": "1" })),
                ("DELETE", "configmaps/a".to_owned(), JSON, Value::Null),
                ("POST", "secrets".to_owned(), JSON, json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } })),
            ],
        },
        Case {
            name: "variables",
            objects: both("variables", &json!({
                "matchConditions": [{ "name": "named", "expression": "object.metadata.name.startsWith('v') || object.metadata.name == 'probe'" }],
                "variables": [
                    { "name": "size", "expression": "has(object.data) && 'size' in object.data ? int(object.data.size) : 0" },
                    { "name": "limit", "expression": "int(namespaceObject.metadata.labels.limit)" },
                    { "name": "fits", "expression": "variables.size <= variables.limit" },
                ],
                "validations": [{ "expression": "variables.fits", "messageExpression": "string(variables.size) + ' of ' + string(variables.limit)" }],
            }), &json!({})),
            probe: json!({ "size": "9" }),
            requests: vec![
                create("v1", json!({ "size": "4" })),
                create("v2", json!({ "size": "3" })),
                create("other", json!({ "size": "4" })),
                create("v3", json!({ "size": "many" })),
            ],
        },
        Case {
            name: "failing",
            objects: both("failing", &json!({
                "failurePolicy": "Ignore",
                "validations": [{ "expression": "object.data.a == 'x'" }, { "expression": "object.data.b.c == 'x'" }],
            }), &json!({})),
            probe: json!({ "a": "y" }),
            requests: vec![create("f1", json!({ "c": "x" })), create("f2", json!({ "a": "x" })), create("f3", json!({ "a": "z" }))],
        },
        Case {
            name: "warning",
            objects: both("warning", &json!({ "validations": [
                { "expression": "object.data.a == 'x'", "message": "a is not \"x\"" }, { "expression": "object.data.a != 'stop'", "message": "stop" },
            ] }), &json!({ "validationActions": ["Warn", "Audit"] }))
            .into_iter()
            .chain(both("stopping", &json!({ "validations": [{ "expression": "object.data.a != 'stop'", "message": "stopped" }] }), &json!({})))
            .collect(),
            probe: json!({ "a": "stop" }),
            requests: vec![create("w1", json!({ "a": "y" })), create("w2", json!({ "a": "x" })), create("w3", json!({ "a": "stop" }))],
        },
        Case {
            name: "parameters",
            objects: std::iter::once(("/api/v1/namespaces/default/configmaps", map(&format!("{token}-limit"), &json!({ "most": "2" }))))
                .chain(both("parameters", &json!({
                    "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" },
                    "validations": [{ "expression": "!has(object.data.size) || object.data.size <= params.data.most", "messageExpression": "'at most ' + params.data.most" }],
                }), &json!({ "paramRef": { "name": format!("{token}-limit"), "namespace": "default", "parameterNotFoundAction": "Deny" } })))
                .collect(),
            probe: json!({ "size": "9" }),
            requests: vec![create("p1", json!({ "size": "3" })), create("p2", json!({ "size": "2" }))],
        },
        Case {
            name: "missing",
            objects: both("missing", &json!({
                "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" },
                "matchConditions": [{ "name": "named", "expression": "object.metadata.name.startsWith('m') || object.metadata.name == 'probe'" }],
                "validations": [{ "expression": "object.data.size <= params.data.most" }],
            }), &json!({ "paramRef": { "name": "nowhere", "namespace": "default", "parameterNotFoundAction": "Deny" } })),
            probe: json!({}),
            requests: vec![create("m1", json!({}))],
        },
    ]
}

fn webhooks(token: &str, hook: &Hook) -> Vec<Case> {
    let configuration = |kind: &str, name: &str, path: &str, extra: &Value| {
        let mut one = json!({
            "name": format!("{name}.example.io"), "clientConfig": hook.client(path), "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": token } },
            "rules": [{ "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "scope": "*" }],
        });
        for (key, value) in extra.as_object().into_iter().flatten() {
            one[key] = value.clone();
        }
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": format!("{token}-{name}") },
            "webhooks": [one],
        })
    };
    let (validates, mutates) = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration");
    let (validating, mutating) = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations");
    let create = |name: &str, data: Value| ("POST", "configmaps?fieldManager=me".to_owned(), JSON, map(name, &data));
    let only = |names: &str| json!({ "matchConditions": [{ "name": "n", "expression": format!("object == null || object.metadata.name in {names}") }] });
    vec![
        Case {
            name: "validating webhook",
            objects: vec![(validating, configuration(validates, "check", "/check", &json!({})))],
            probe: json!({ "deny": "yes" }),
            requests: vec![
                create("h1", json!({ "deny": "yes" })),
                create("h1", json!({ "deny": "coded" })),
                create("h1", json!({ "deny": "silent" })),
                create("h1", json!({ "warn": "yes" })),
                ("PATCH", "configmaps/h1".to_owned(), MERGE, json!({ "data": { "deny": "yes" } })),
                ("PATCH", "configmaps/h1?dryRun=All".to_owned(), MERGE, json!({ "data": { "b": "1" } })),
                ("PATCH", "configmaps/h2?fieldManager=m&force=true".to_owned(), APPLY, map("h2", &json!({ "a": "1" }))),
                ("PATCH", "configmaps/h2?fieldManager=m".to_owned(), APPLY, map("h2", &json!({ "a": "2" }))),
                ("DELETE", "configmaps/h1?propagationPolicy=Background".to_owned(), JSON, Value::Null),
                ("DELETE", "configmaps?labelSelector=none%3Dsuch".to_owned(), JSON, Value::Null),
                create("h3", json!({ "wrong": "uid" })),
                create("h3", json!({ "wrong": "kind" })),
                create("h3", json!({ "wrong": "empty" })),
                create("h3", json!({ "wrong": "patch" })),
            ],
        },
        Case {
            name: "mutating webhook",
            objects: vec![
                (mutating, configuration(mutates, "change", "/change", &json!({ "reinvocationPolicy": "IfNeeded" }))),
                (validating, configuration(validates, "stop", "/check", &only("['probe']"))),
            ],
            probe: json!({ "deny": "yes" }),
            requests: vec![
                create("c1", json!({ "patch": "label" })),
                (
                    "POST",
                    "configmaps".to_owned(),
                    JSON,
                    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "gen1-" }, "data": { "patch": "label" } }),
                ),
                create("c2", json!({ "patch": "missing" })),
                create("c2", json!({ "patch": "bad" })),
                create("c2", json!({ "patch": "undecodable" })),
                ("PATCH", "configmaps/c1".to_owned(), MERGE, json!({ "data": { "more": "1" } })),
                ("DELETE", "configmaps/c1".to_owned(), JSON, Value::Null),
            ],
        },
        Case {
            name: "unreachable",
            objects: vec![(
                validating,
                configuration(validates, "gone", "", &json!({ "clientConfig": { "url": "https://127.0.0.1:1/x" } })),
            )],
            probe: json!({}),
            requests: vec![create("u1", json!({}))],
        },
        Case {
            name: "untrusted",
            objects: vec![(
                validating,
                configuration(
                    validates,
                    "strange",
                    "",
                    &json!({
                        "clientConfig": { "url": hook.client("/check")["url"] }, "failurePolicy": "Fail",
                    }),
                ),
            )],
            probe: json!({}),
            requests: vec![create("u1", json!({}))],
        },
    ]
}

/// What the webhook answers.
fn respond(review: &Value) -> Value {
    let request = &review["request"];
    let data = &request["object"]["data"];
    let text = |key: &str| data[key].as_str().unwrap_or_default();
    let mut response = json!({ "uid": request["uid"], "allowed": true });
    let mut kind = json!("AdmissionReview");
    let patch = |operations: &str| data_encoding::BASE64.encode(operations.as_bytes());
    match (text("deny"), text("wrong"), text("patch")) {
        ("yes", ..) => {
            response["allowed"] = false.into();
            response["status"] = json!({ "message": "not this one" });
        }
        ("coded", ..) => {
            response["allowed"] = false.into();
            response["status"] =
                json!({ "message": "gone", "reason": "Gone", "code": 410, "details": { "name": "x" } });
        }
        ("silent", ..) => response["allowed"] = false.into(),
        (_, "uid", _) => response["uid"] = "other".into(),
        (_, "kind", _) => kind = "Other".into(),
        (_, "empty", _) => return json!({ "apiVersion": review["apiVersion"], "kind": kind }),
        (_, "patch", _) => {
            response["patch"] = patch("[]").into();
            response["patchType"] = "JSONPatch".into();
        }
        (.., "label") => {
            response["patch"] = patch(r#"[{"op": "add", "path": "/data/changed", "value": "yes"}]"#).into();
            response["patchType"] = "JSONPatch".into();
        }
        (.., "missing") => {
            response["patch"] = patch(r#"[{"op": "remove", "path": "/data/nothing"}]"#).into();
            response["patchType"] = "JSONPatch".into();
        }
        (.., "bad") => response["patch"] = patch("[]").into(),
        (.., "undecodable") => {
            response["patch"] = patch("{").into();
            response["patchType"] = "JSONPatch".into();
        }
        _ if text("warn") == "yes" => response["warnings"] = json!(["take care", "of \"this\""]),
        _ => {}
    }
    json!({ "apiVersion": review["apiVersion"], "kind": kind, "response": response })
}
