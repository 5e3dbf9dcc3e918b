//! `AdmissionReview`: the question that a webhook is asked, and its answer.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::request::{AdmissionRequest, internal};
use crate::patch::JsonPatcher;
use crate::status::Status;

/// A question to a webhook.
pub(super) struct Question {
    /// The document to send.
    pub(super) document: Value,
    uid: String,
    version: &'static str,
}

/// An answer of a webhook that can be used.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    pub(super) warnings: Vec<String>,
    /// The operations of a JSON patch.
    pub(super) patch: Vec<Value>,
    pub(super) result: Value,
}

impl Question {
    /// Asks in the first version that the webhook lists and the server knows.
    pub(super) fn new(
        versions: &[String],
        request: &AdmissionRequest<'_>,
        version: &str,
        object: &Value,
        old: &Value,
    ) -> Result<Self, String> {
        let known = versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        });
        let Some(review) = known else {
            let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(format!("could not create admission objects: {why}"));
        };
        let uid = uuid::Uuid::new_v4().to_string();
        let mut asked = request.describe(version);
        asked["uid"] = uid.as_str().into();
        asked["object"] = object.clone();
        asked["oldObject"] = old.clone();
        let document = json!({
            "kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{review}"), "request": asked,
        });
        Ok(Self { document, uid, version: review })
    }

    /// Reads the answer, and refuses one that does not fit the question.
    pub(super) fn answered(&self, review: &Value, mutating: bool) -> Result<Answer, String> {
        let invalid = |why: String| format!("received invalid webhook response: {why}");
        let response = &review["response"];
        if !response.is_object() {
            return Err(invalid("webhook response was absent".to_owned()));
        }
        let has_patch = response["patch"].as_str().is_some_and(|patch| !patch.is_empty());
        if self.version == "v1" {
            let uid = response["uid"].as_str().unwrap_or_default();
            if uid != self.uid {
                return Err(invalid(format!("expected response.uid={:?}, got {uid:?}", self.uid)));
            }
            let found =
                (review["apiVersion"].as_str().unwrap_or_default(), review["kind"].as_str().unwrap_or_default());
            if found != ("admission.k8s.io/v1", "AdmissionReview") {
                let wanted = "admission.k8s.io/v1, Kind=AdmissionReview";
                return Err(invalid(format!(
                    "expected webhook response of {wanted}, got {}, Kind={}",
                    found.0, found.1
                )));
            }
            let kind = response["patchType"].as_str();
            let fault = match (mutating, has_patch, kind) {
                (true, true, None) => Some("webhook returned response.patch but not response.patchType".to_owned()),
                (true, false, Some(_)) => Some("webhook returned response.patchType but not response.patch".to_owned()),
                (true, true, Some("")) => Some("webhook returned invalid response.patchType of \"\"".to_owned()),
                (false, true, _) => Some("validating webhook may not return response.patch".to_owned()),
                (false, _, Some(_)) => Some("validating webhook may not return response.patchType".to_owned()),
                _ => None,
            };
            if let Some(fault) = fault {
                return Err(invalid(fault));
            }
            if let (true, Some(kind)) = (has_patch, kind.filter(|kind| *kind != "JSONPatch")) {
                return Err(format!("unsupported patch type {kind:?}"));
            }
        }
        let mut answer = Answer {
            allowed: response["allowed"] == true,
            warnings: super::rule::texts(&response["warnings"]),
            patch: Vec::new(),
            result: response["status"].clone(),
        };
        if mutating && has_patch && answer.allowed {
            answer.patch = patch(response["patch"].as_str().unwrap_or_default())
                .map_err(|why| format!("received undecodable patch in webhook response: {why}"))?;
        }
        Ok(answer)
    }
}

/// Why an operation of a patch cannot be applied, in the words of Go's library.
fn unapplicable(kind: &str, path: &str, object: &Value) -> String {
    let (parent, key) = path.rsplit_once('/').unwrap_or(("", path));
    let has_parent = object.pointer(parent).is_some_and(|parent| parent.is_object() || parent.is_array());
    match kind {
        "test" => format!("testing value {path} failed: test failed"),
        "remove" if has_parent => {
            format!("error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value")
        }
        "add" | "remove" | "replace" | "move" | "copy" => {
            format!("{kind} operation does not apply: doc is missing path: {path:?}: missing value")
        }
        _ => format!("Unexpected kind: {kind}"),
    }
}

fn patch(text: &str) -> Result<Vec<Value>, String> {
    let bytes = BASE64.decode(text.as_bytes()).map_err(|error| error.to_string())?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Array(operations)) => Ok(operations),
        Ok(Value::Null) => Ok(Vec::new()),
        Ok(_) => Err("json: cannot unmarshal object into Go value of type jsonpatch.Patch".to_owned()),
        Err(error) => {
            Err(carrick_go::json::fault(&bytes, carrick_go::json::MAX_DEPTH).unwrap_or_else(|| error.to_string()))
        }
    }
}

impl Answer {
    /// The refusal that a webhook asked for.
    pub(super) fn refusal(&self, webhook: &str) -> Status {
        let text = |key: &str| self.result[key].as_str().unwrap_or_default();
        let by = format!("admission webhook {webhook:?} denied the request");
        let message = match (text("message"), text("reason")) {
            ("", "") => format!("{by} without explanation"),
            ("", reason) => format!("{by}: {reason}"),
            (message, _) => format!("{by}: {message}"),
        };
        let code = self.result["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
        let mut status = Status::new(code.max(400), text("reason"), message);
        if self.result["details"].is_object() {
            status.details = self.result["details"].clone();
        }
        status
    }

    /// The object with the patch applied.
    pub(super) fn patched(&self, object: &Value) -> Result<Value, Status> {
        let (mut object, mut patcher) = (object.clone(), JsonPatcher::default());
        for operation in &self.patch {
            let text = |key: &str| operation[key].as_str().unwrap_or_default();
            if patcher.apply(&mut object, operation).is_err() {
                return Err(internal(&unapplicable(text("op"), text("path"), &object)));
            }
        }
        // Nothing else can be an object, whatever its kind.
        if object.is_object() && object["metadata"].is_object() {
            return Ok(object);
        }
        Err(internal("json: cannot unmarshal the patched document into a Kubernetes object"))
    }
}
