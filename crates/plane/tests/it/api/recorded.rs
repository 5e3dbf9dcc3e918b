//! What real servers answered to access reviews over random RBAC: each line of a record is a set-up and questions about it.
//!
//! Where a real server names any of several bindings, or lists errors in any order, the record holds all answers that were seen.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::{Client, World};

const WORKSPACES: &str = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";

/// A server with a set-up of a record.
struct Place<'a> {
    admin: &'a Client,
    base: String,
    /// Texts that stand for names which differ from server to server, and what they stand for.
    names: BTreeMap<&'static str, String>,
}

impl Place<'_> {
    fn named(&self, value: &Value) -> Value {
        let text = self.names.iter().fold(value.to_string(), |text, (short, name)| text.replace(short, name));
        serde_json::from_str(&text).unwrap()
    }

    fn unnamed(&self, value: &Value) -> Value {
        let text = self.names.iter().fold(value.to_string(), |text, (short, name)| text.replace(name, short));
        serde_json::from_str(&text).unwrap()
    }

    async fn ask(&self, question: &Value) -> Value {
        let path = question["path"].as_str().unwrap();
        let kind = match path.rsplit('/').next().unwrap() {
            "localsubjectaccessreviews" => "LocalSubjectAccessReview",
            "selfsubjectaccessreviews" => "SelfSubjectAccessReview",
            "selfsubjectrulesreviews" => "SelfSubjectRulesReview",
            _ => "SubjectAccessReview",
        };
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": question["spec"]});
        let mut headers = vec![("content-type", "application/json")];
        for header in question["headers"].as_array().unwrap() {
            headers.push((header[0].as_str().unwrap(), header[1].as_str().unwrap()));
        }
        let path = format!("{}{path}", self.base);
        let answer = self.admin.call("POST", &path, &headers, self.named(&review).to_string().into_bytes()).await;
        let body = self.unnamed(&answer.body);
        if answer.code != 201 {
            return ordered(json!({"code": answer.code, "message": body["message"]}));
        }
        ordered(json!({"code": 201, "status": body["status"]}))
    }

    /// Stores a set-up and waits until the controllers have done their part.
    async fn set_up(&self, line: &Value) {
        for object in line["objects"].as_array().unwrap() {
            let path = format!("{}{}", self.base, object[0].as_str().unwrap());
            let answer = self.admin.post(&path, self.named(&object[1])).await;
            // All set-ups of a service cluster use the same namespaces.
            assert!(answer.code == 201 || object[1]["kind"] == "Namespace", "{}", answer.text);
        }
        for (path, rules) in line["stored"].as_object().unwrap() {
            self.admin.until(&format!("{}{path}", self.base), |answer| answer.body["rules"] == *rules).await;
        }
    }

    async fn clear(&self, line: &Value) {
        for object in line["objects"].as_array().unwrap() {
            if object[1]["kind"] != "Namespace" {
                let name = object[1]["metadata"]["name"].as_str().unwrap();
                let path = format!("{}{}/{name}", self.base, object[0].as_str().unwrap());
                self.admin.delete(&path).await.expect(200);
            }
        }
    }
}

/// Puts rules and lists of errors, which come in any order, into one.
fn ordered(mut answer: Value) -> Value {
    for key in ["resourceRules", "nonResourceRules"] {
        if let Some(rules) = answer.pointer_mut(&format!("/status/{key}")).and_then(Value::as_array_mut) {
            rules.sort_by_key(ToString::to_string);
        }
    }
    for pointer in ["/message", "/status/reason", "/status/evaluationError"] {
        let Some(Value::String(text)) = answer.pointer_mut(pointer) else { continue };
        if let (Some(start), true) = (text.find('['), text.ends_with(']')) {
            let mut errors: Vec<&str> = text[start + 1..text.len() - 1].split(", ").collect();
            errors.sort_unstable();
            *text = format!("{}[{}]", &text[..start], errors.join(", "));
        }
    }
    answer
}

async fn compare(place: &Place<'_>, line: &Value, wrong: &mut Vec<String>) -> usize {
    place.set_up(line).await;
    let questions = line["questions"].as_array().unwrap();
    for question in questions {
        let found = place.ask(question).await;
        let expected: Vec<Value> = question["answers"].as_array().unwrap().iter().cloned().map(ordered).collect();
        if !expected.contains(&found) {
            let about = json!([question["path"], question["spec"], question["headers"]]);
            wrong.push(format!("{about}\n  real: {}\n  here: {found}", expected[0]));
        }
    }
    questions.len()
}

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

async fn workspace(world: &World, name: &str) -> String {
    let object = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
        "spec": {"type": {"name": "universal", "path": "root"}}});
    world.admin.post(WORKSPACES, object).await.expect(201);
    let path = format!("{WORKSPACES}/{name}");
    let ready = world.admin.until(&path, |answer| answer.body["status"]["phase"] == "Ready").await.body;
    ready["spec"]["cluster"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn workspaces_review_access_as_recorded_from_kcp() {
    let world = World::kcp(&[]).await;
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for (number, line) in lines(include_str!("recorded/kcp.jsonl")).enumerate() {
        let there = workspace(&world, &format!("there{number}")).await;
        let here = workspace(&world, &format!("here{number}")).await;
        let names = BTreeMap::from([("{here}", here), ("{there}", there)]);
        let place = Place { admin: &world.admin, base: format!("/clusters/root:here{number}"), names };
        asked += compare(&place, &line, &mut wrong).await;
    }
    assert!(asked >= 500, "{asked}");
    assert!(wrong.is_empty(), "{} of {asked} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn service_clusters_review_access_as_recorded_from_kube_apiserver() {
    let world = World::start().await;
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for line in lines(include_str!("recorded/kube.jsonl")) {
        let place = Place { admin: &world.admin, base: String::new(), names: BTreeMap::new() };
        asked += compare(&place, &line, &mut wrong).await;
        place.clear(&line).await;
    }
    assert!(asked >= 300, "{asked}");
    assert!(wrong.is_empty(), "{} of {asked} differ:\n{}", wrong.len(), wrong.join("\n"));
}
