//! Conversion webhooks: versions of a custom kind that differ in more than their name.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::World;
use super::hooks::{Answer, Hook};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.io/v1/namespaces/default/gears";
const V2: &str = "/apis/example.io/v2/namespaces/default/gears";

/// v1 has `spec.size` as text, v2 as a number; v1 is stored.
fn crd(hook: &Hook, review: &str) -> Value {
    let version = |name: &str, kind: &str, storage: bool| {
        let spec = json!({"type": "object", "properties": {"size": {"type": kind}}});
        json!({
            "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    let webhook = json!({"clientConfig": hook.client("/convert"), "conversionReviewVersions": [review]});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gears.example.io"},
        "spec": {
            "group": "example.io", "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"},
            "versions": [version("v1", "string", true), version("v2", "integer", false)],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    })
}

fn gear(version: &str, name: &str, size: Value) -> Value {
    json!({"apiVersion": format!("example.io/{version}"), "kind": "Gear", "metadata": {"name": name}, "spec": {"size": size}})
}

fn convert(review: &Value) -> Answer {
    let request = &review["request"];
    let mut objects = Vec::new();
    for object in request["objects"].as_array().unwrap() {
        let mut object = object.clone();
        if object["metadata"]["name"] == "stubborn" {
            let result = json!({"status": "Failure", "message": "not this one"});
            return answered(review, json!({"result": result}));
        }
        object["apiVersion"] = request["desiredAPIVersion"].clone();
        let size = &mut object["spec"]["size"];
        *size = match &*size {
            Value::String(text) => text.parse::<i64>().unwrap().into(),
            other => other.to_string().into(),
        };
        // Only labels and annotations of the metadata count.
        object["metadata"]["labels"] = json!({"converted": "yes"});
        object["metadata"]["generation"] = 99.into();
        objects.push(object);
    }
    answered(review, json!({"result": {"status": "Success"}, "convertedObjects": objects}))
}

#[allow(clippy::unnecessary_wraps, reason = "what a webhook answers may be nothing")]
fn answered(review: &Value, mut response: Value) -> Answer {
    response["uid"] = review["request"]["uid"].clone();
    Some((
        200,
        json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}).to_string(),
    ))
}

#[tokio::test]
async fn objects_are_read_and_written_in_every_version() {
    for review in ["v1", "v1beta1"] {
        let hook = Hook::start(convert).await;
        let world = World::start().await;
        let admin = &world.admin;
        admin.post(CRDS, crd(&hook, review)).await.expect(201);
        let created = admin.post(V1, gear("v1", "a", json!("3"))).await.expect(201);
        assert_eq!(created["spec"]["size"], "3");
        assert!(hook.asked().is_empty(), "the stored version needs no conversion");
        let read = admin.get(&format!("{V2}/a")).await.expect(200);
        assert_eq!((&read["apiVersion"], &read["spec"]["size"]), (&json!("example.io/v2"), &json!(3)));
        assert_eq!(read["metadata"]["labels"], json!({"converted": "yes"}));
        assert_eq!(
            (&read["metadata"]["generation"], &read["metadata"]["uid"]),
            (&json!(1), &created["metadata"]["uid"])
        );
        let (path, asked) = hook.asked().pop().unwrap();
        assert_eq!(
            (path.as_str(), &asked["request"]["desiredAPIVersion"]),
            ("/convert?timeout=30s", &json!("example.io/v2"))
        );
        assert_eq!(asked["apiVersion"], format!("apiextensions.k8s.io/{review}"));
        let other = admin.post(V2, gear("v2", "b", json!(4))).await.expect(201);
        assert_eq!((&other["apiVersion"], &other["spec"]["size"]), (&json!("example.io/v2"), &json!(4)));
        assert_eq!(admin.get(&format!("{V1}/b")).await.expect(200)["spec"]["size"], "4");
        hook.asked();
        // A list is converted at once.
        let list = admin.get(V2).await.expect(200);
        let sizes: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["spec"]["size"]).collect();
        assert_eq!((sizes, hook.asked().len()), (vec![&json!(3), &json!(4)], 1));
        let patched = admin.patch(&format!("{V2}/a"), "merge", json!({"spec": {"size": 7}})).await.expect(200);
        assert_eq!(patched["spec"]["size"], 7);
        assert_eq!(admin.get(&format!("{V1}/a")).await.expect(200)["spec"]["size"], "7");
        let mut watch = admin.watch(&format!("{V2}?watch=1")).await;
        for (kind, size) in [("ADDED", 7), ("ADDED", 4)] {
            let event = watch.next().await.unwrap();
            assert_eq!((&event["type"], &event["object"]["spec"]["size"]), (&json!(kind), &json!(size)));
        }
        admin.patch(&format!("{V1}/b"), "merge", json!({"spec": {"size": "5"}})).await.expect(200);
        let event = watch.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["spec"]["size"]), (&json!("MODIFIED"), &json!(5)));
        assert_eq!(event["object"]["apiVersion"], "example.io/v2");
        admin.delete(&format!("{V2}/a")).await.expect(200);
    }
}

#[tokio::test]
async fn a_conversion_that_fails_fails_the_request() {
    let hook = Hook::start(convert).await;
    let world = World::start().await;
    let admin = &world.admin;
    admin.post(CRDS, crd(&hook, "v1")).await.expect(201);
    admin.post(V1, gear("v1", "stubborn", json!("3"))).await.expect(201);
    let why = "conversion webhook for example.io/v1, Kind=Gear failed: not this one";
    admin.get(&format!("{V2}/stubborn")).await.refused(500, why);
    admin.get(V2).await.refused(500, why);
    let why = "conversion webhook for example.io/v2, Kind=Gear failed: not this one";
    admin.post(V2, gear("v2", "stubborn", json!(3))).await.refused(500, why);
    // In its own version it can still be read.
    admin.get(&format!("{V1}/stubborn")).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_bookmark_overtakes_an_event_that_is_still_being_converted() {
    let (answer, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let hook = Hook::start(move |review| {
        // Until the test has seen what it wants to see.
        let _ = tokio::task::block_in_place(|| wait.lock().unwrap().recv());
        convert(review)
    })
    .await;
    let world = World::start().await;
    let admin = &world.admin;
    admin.post(CRDS, crd(&hook, "v1")).await.expect(201);
    let before = admin.get(V1).await.expect(200)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    admin.post(V1, gear("v1", "a", json!("3"))).await.expect(201);
    let query = format!("{V2}?watch=1&resourceVersion={before}&allowWatchBookmarks=true");
    let mut watch = admin.watch(&format!("{query}&timeoutSeconds=1")).await;
    assert_eq!(watch.next().await, None, "a client that goes on behind this misses the object");
    let asked = async {
        while hook.asked().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asked).await.expect("the webhook is asked about the event");
    drop(answer);
    let mut watch = admin.watch(&query).await;
    assert_eq!(watch.next().await.unwrap()["object"]["spec"]["size"], 3);
}
