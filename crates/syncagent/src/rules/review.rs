//! Conversion reviews: what an API server asks a conversion webhook, and what it is answered.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::conversion::Conversions;

/// No API server takes a larger object. Whoever sends one is none, and what is read of it takes many times the room.
const LARGEST_OBJECT: usize = 3 << 20;
/// How many objects one review may have.
const MOST_OBJECTS: usize = 200_000;
/// UIDs are short; a longer one is not repeated.
const LONGEST_UID: usize = 200;
/// Names are no longer than this.
const LONGEST_NAME: usize = 253;

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    uid: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "desiredAPIVersion")]
    wanted: Cow<'a, str>,
    #[serde(borrow, default)]
    objects: Objects<'a>,
}

/// The objects as they were sent, so that only one of them at a time is read.
#[derive(Default)]
struct Objects<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Objects<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Objects<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut objects = Vec::new();
        while let Some(object) = seq.next_element()? {
            if objects.len() == MOST_OBJECTS {
                return Err(A::Error::custom("too many objects"));
            }
            objects.push(object);
        }
        Ok(Objects(objects))
    }
}

/// Answers a review. `find` gives the conversions of a group and kind in kcp. None if the body is no review.
///
/// Whoever can reach the webhook can send one, so that it takes little more room than the review itself and one of its objects.
pub fn answer<'a>(body: &[u8], find: impl Fn(&str, &str) -> Option<&'a Conversions>) -> Option<ReviewAnswer> {
    let Review { request } = serde_json::from_slice(body).ok()?;
    let uid = request.uid.map(RawValue::get).filter(|uid| uid.len() <= LONGEST_UID).unwrap_or("null");
    let (group, version) = request.wanted.rsplit_once('/').unwrap_or(("", &request.wanted));
    let mut converted = String::new();
    let mut problem = None;
    for object in &request.objects.0 {
        match convert(object, (group, version), &find) {
            Ok(object) => {
                converted += if converted.is_empty() { "" } else { "," };
                converted += &object;
            }
            Err(message) => {
                problem = Some(message);
                converted.clear();
                break;
            }
        }
    }
    let result = match &problem {
        None => json!({ "status": "Success" }),
        Some(message) => json!({ "status": "Failure", "message": message }),
    };
    let text = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{{"uid":{uid},"convertedObjects":[{converted}],"result":{result}}}}}"#
    );
    Some(ReviewAnswer { text, problem })
}

/// What a review is answered.
#[derive(Debug)]
pub struct ReviewAnswer {
    /// The answer, as JSON.
    pub text: String,
    /// Why an object cannot be converted.
    pub problem: Option<String>,
}

fn convert<'a>(
    object: &RawValue,
    (group, version): (&str, &str),
    find: impl Fn(&str, &str) -> Option<&'a Conversions>,
) -> Result<String, String> {
    let bytes = object.get().len();
    if bytes > LARGEST_OBJECT {
        return Err(format!("an object of {bytes} bytes is not converted: at most {LARGEST_OBJECT}"));
    }
    let object: Value = serde_json::from_str(object.get()).map_err(|error| error.to_string())?;
    let kind = object["kind"].as_str().unwrap_or_default();
    let conversions = find(group, kind).ok_or_else(|| {
        format!("no PublishedResource with valid rules converts {kind}.{group}; see its condition RulesValid")
    })?;
    let converted = conversions.convert(&object, version).map(|object| object.to_string());
    converted.map_err(|error| format!("{} cannot be converted to {version}: {error}", shown(&object)))
}

/// Which object it is, for whoever lists many: an API server answers none of them if one cannot be converted.
fn shown(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().chars().take(LONGEST_NAME).collect::<String>();
    let metadata = &object["metadata"];
    let (kind, namespace, name) = (text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]));
    let name = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
    match text(&metadata["annotations"]["kcp.io/cluster"]) {
        cluster if cluster.is_empty() => format!("{kind} {name}"),
        cluster => format!("{kind} {name} in logical cluster {cluster}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(objects: &Value) -> String {
        let review = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                "request": { "uid": "u", "desiredAPIVersion": "example.com/v2", "objects": objects } });
        review.to_string()
    }

    #[test]
    fn what_no_api_server_sends_is_not_read() {
        let find = |_: &str, _: &str| None;
        let zeros = "0,".repeat(LARGEST_OBJECT / 2);
        let large = format!(r#"{{"request":{{"uid":"u","objects":[{{"kind":"A","a":[{zeros}0]}}]}}}}"#);
        let told = answer(large.as_bytes(), find).unwrap().problem.unwrap();
        assert!(told.contains("bytes is not converted: at most 3145728"), "{told}");
        let many = format!(r#"{{"request":{{"objects":[{}0]}}}}"#, "0,".repeat(MOST_OBJECTS));
        assert!(answer(many.as_bytes(), find).is_none());
        let long = json!({ "request": { "uid": "u".repeat(300), "objects": [] } }).to_string();
        assert!(answer(long.as_bytes(), find).unwrap().text.contains(r#""uid":null"#));
        for bad in ["", "[]", "{}", r#"{"request":1}"#, r#"{"request":{"objects":{}}}"#] {
            assert!(answer(bad.as_bytes(), find).is_none(), "{bad}");
        }
    }

    #[test]
    fn an_object_that_cannot_be_converted_is_named() {
        for (metadata, expected) in [
            (json!({ "name": "g" }), "Gear g"),
            (json!({ "name": "g", "namespace": "n" }), "Gear n/g"),
            (
                json!({ "name": "g", "namespace": "n", "annotations": { "kcp.io/cluster": "c" } }),
                "Gear n/g in logical cluster c",
            ),
        ] {
            assert_eq!(shown(&json!({ "kind": "Gear", "metadata": metadata })), expected);
        }
    }

    #[test]
    fn all_objects_are_converted_or_none() {
        let steps =
            json!([{ "cel": { "path": "spec.b", "expression": "self.spec.a" } }, { "delete": { "path": "spec.a" } }]);
        let rules = json!({ "rules": [{ "from": "v1", "to": "v2", "steps": steps }] });
        let conversions = Conversions::compile(Some(&serde_json::from_value(rules).unwrap())).unwrap();
        let find = |group: &str, kind: &str| ((group, kind) == ("example.com", "Gear")).then_some(&conversions);
        let gear = |kind: &str, spec: Value| json!({ "apiVersion": "example.com/v1", "kind": kind, "metadata": { "name": "g" }, "spec": spec });
        let good = gear("Gear", json!({ "a": 1 }));
        let answer =
            |body: &str| -> Value { serde_json::from_str(&answer(body.as_bytes(), find).unwrap().text).unwrap() };
        let answered = answer(&review(&json!([good, good])));
        let wanted =
            json!({ "apiVersion": "example.com/v2", "kind": "Gear", "metadata": { "name": "g" }, "spec": { "b": 1 } });
        let response = json!({ "uid": "u", "convertedObjects": [wanted, wanted], "result": { "status": "Success" } });
        assert_eq!(answered["response"], response);

        for (object, expected) in [
            (gear("Gear", json!({})), "Gear g cannot be converted to v2: spec.conversion.rules[0].steps[0] failed"),
            (gear("Wheel", json!({ "a": 1 })), "no PublishedResource with valid rules converts Wheel.example.com"),
        ] {
            let answered = answer(&review(&json!([good, object])));
            let result = &answered["response"]["result"];
            assert_eq!(result["status"], "Failure");
            assert!(result["message"].as_str().unwrap().starts_with(expected), "{result}");
            assert_eq!(answered["response"]["convertedObjects"], json!([]));
        }
    }
}
