//! Conversion between the versions of custom kinds by webhooks.
//!
//! The document that is sent and the checks of the answer are pure; the call is made by whoever has a client.

use serde_json::{Value, json};

use crate::webhook::{HookAddress, known};

/// How objects of a kind are converted: `spec.conversion` with the strategy `Webhook`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conversion {
    address: HookAddress,
    versions: Vec<String>,
}

/// A question to a conversion webhook.
pub(crate) struct ConversionQuestion<'a> {
    /// The document to send.
    pub(crate) document: Value,
    objects: &'a [Value],
    uid: String,
    review: &'static str,
    wanted: &'a str,
}

impl Conversion {
    /// Reads `spec.conversion`; `None` unless it is a webhook's.
    pub(crate) fn read(conversion: &Value) -> Option<Self> {
        let webhook = &conversion["webhook"];
        (conversion["strategy"] == "Webhook" && webhook.is_object()).then(|| {
            let versions = webhook["conversionReviewVersions"].as_array().into_iter().flatten();
            Self {
                address: HookAddress::read(&webhook["clientConfig"]),
                versions: versions.filter_map(Value::as_str).map(str::to_owned).collect(),
            }
        })
    }

    /// Where the webhook is.
    pub(crate) fn address(&self) -> &HookAddress {
        &self.address
    }

    /// Asks for objects in another version.
    pub(crate) fn ask<'a>(&self, objects: &'a [Value], wanted: &'a str) -> Result<ConversionQuestion<'a>, String> {
        let known = self.versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        });
        let review = known.ok_or("no supported conversion review versions")?;
        let uid = uuid::Uuid::new_v4().to_string();
        let document = json!({
            "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{review}"),
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        });
        Ok(ConversionQuestion { document, objects, uid, review, wanted })
    }
}

impl ConversionQuestion<'_> {
    /// The converted objects, or why the answer cannot be used.
    pub(crate) fn answered(&self, answer: Result<Value, String>) -> Result<Vec<Value>, String> {
        let first = &self.objects[0];
        let kind = format!("{}, Kind={}", text(first, "apiVersion"), text(first, "kind"));
        let failed = |why: String| format!("conversion webhook for {kind} failed: {why}");
        let answer = answer.and_then(|answer| known(answer, "apiextensions.k8s.io", "ConversionReview"));
        let answer = answer.map_err(failed)?;
        let response = &answer["response"];
        if self.review == "v1" {
            let found = (text(&answer, "apiVersion"), text(&answer, "kind"));
            if found != ("apiextensions.k8s.io/v1", "ConversionReview") {
                let wanted = "apiextensions.k8s.io/v1, Kind=ConversionReview";
                let why = format!("expected webhook response of {wanted}, got {}, Kind={}", found.0, found.1);
                return Err(failed(why));
            }
        }
        if !response.is_object() {
            return Err(failed("no response provided".to_owned()));
        }
        let uid = text(response, "uid");
        if self.review == "v1" && uid != self.uid {
            return Err(failed(format!("expected response.uid={:?}, got {uid:?}", self.uid)));
        }
        let result = &response["result"];
        match (text(result, "status"), text(result, "message")) {
            ("Success", _) => {}
            (status, "") => return Err(failed(format!("response.result.status was '{status}', not 'Success'"))),
            (_, message) => return Err(failed(message.to_owned())),
        }
        let converted = response["convertedObjects"].as_array().map(Vec::as_slice).unwrap_or_default();
        let (found, wanted) = (converted.len(), self.objects.len());
        if found != wanted {
            return Err(format!("conversion webhook for {kind} returned {found} objects, expected {wanted}"));
        }
        let pairs = self.objects.iter().zip(converted).enumerate();
        pairs.map(|(at, (before, after))| self.checked(&kind, at, before, after)).collect()
    }

    /// One converted object: only labels and annotations of its metadata may differ.
    fn checked(&self, kind: &str, at: usize, before: &Value, after: &Value) -> Result<Value, String> {
        let invalid =
            |why: String| format!("conversion webhook for {kind} returned invalid object at index {at}: {why}");
        let (version, name) = (text(after, "apiVersion"), text(after, "kind"));
        if version != self.wanted {
            return Err(invalid(format!("invalid groupVersion (expected {}, received {version})", self.wanted)));
        }
        if name != text(before, "kind") {
            return Err(invalid(format!("invalid kind (expected {}, received {name})", text(before, "kind"))));
        }
        let (old, new) = (&before["metadata"], &after["metadata"]);
        for (key, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
            let (old, new) = (text(old, key), text(new, key));
            if old != new {
                let why = format!("must have the same {shown}: {old} != {new}");
                return Err(format!("conversion webhook for {kind} returned invalid object: {why}"));
            }
        }
        if !new.is_object() {
            let why = "missing metadata in converted object";
            return Err(format!("conversion webhook for {kind} returned invalid metadata: {why}"));
        }
        let mut metadata = old.clone();
        for key in ["labels", "annotations"] {
            match (new.get(key), metadata.as_object_mut()) {
                (Some(value), Some(map)) => {
                    map.insert(key.to_owned(), value.clone());
                }
                (None, Some(map)) => {
                    map.remove(key);
                }
                _ => {}
            }
        }
        let mut object = after.clone();
        object["metadata"] = metadata;
        Ok(object)
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
