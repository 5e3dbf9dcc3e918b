//! The scale subresource of custom kinds and of workloads.

use http::Request;
use serde_json::{Value, json};

use super::body::{self, Content};
use super::reply::Reply;
use super::resource::Call;
use super::{jsonpath, protobuf};
use crate::api::{Patch, Scope};
use crate::resource::Scale;
use crate::status::Status;

/// Reads or writes the number of replicas.
pub(super) fn answer(call: &Call<'_>, scope: &Scope, request: Request<Content>) -> Result<Reply, Status> {
    let Some(paths) = scope.version()?.scale.clone() else { return Err(Status::page_not_found()) };
    let name = &call.target.name;
    let api = call.api();
    let object = api.get(scope, name)?;
    let shown = shape(&object, &paths)?;
    if matches!(request.method().as_str(), "GET" | "HEAD") {
        return Ok(call.shaped(scope, 200, shown, &[]));
    }
    let patching = request.method() == http::Method::PATCH;
    let media = request.headers().get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    if patching && !media.starts_with("application/merge-patch+json") {
        return Err(Status::unsupported_media(&["application/merge-patch+json"]));
    }
    let media = if media.starts_with(protobuf::MEDIA) { protobuf::MEDIA } else { "application/json" };
    let content = request.into_body()?;
    let sent = body::decode(&content, media, "Scale")?.value;
    let Some(replicas) = sent["spec"]["replicas"].as_i64() else {
        return Err(Status::bad_request("spec.replicas must be a number"));
    };
    let mut patch = nested(&paths.spec, replicas.into());
    if let Some(revision) = sent["metadata"]["resourceVersion"].as_str().filter(|text| !text.is_empty()) {
        patch["metadata"] = json!({"resourceVersion": revision});
    }
    let options = call.write_options("UpdateOptions", "scale", Vec::new())?;
    let written = api.patch(call.caller, scope, name, "", &Patch::Merge(patch), &options)?;
    Ok(call.shaped(scope, 200, shape(&written.object, &paths)?, &written.warnings))
}

fn shape(object: &Value, paths: &Scale) -> Result<Value, Status> {
    let number = |path: &str| jsonpath::select(object, path).first().and_then(|value| value.as_i64());
    let Some(replicas) = number(&paths.spec) else {
        return Err(Status::internal(format!(
            "Internal error occurred: the spec replicas field {:?} does not exist",
            paths.spec
        )));
    };
    let metadata = &object["metadata"];
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": replicas},
        "status": {"replicas": number(&paths.status).unwrap_or(0)},
    });
    if metadata["namespace"].is_string() {
        scale["metadata"]["namespace"] = metadata["namespace"].clone();
    }
    if !paths.selector.is_empty()
        && let Some(text) = jsonpath::select(object, &paths.selector).first().and_then(|value| value.as_str())
    {
        scale["status"]["selector"] = text.into();
    }
    Ok(scale)
}

/// A merge patch that sets one plain path such as `.spec.replicas`.
fn nested(path: &str, value: Value) -> Value {
    path.split('.').filter(|part| !part.is_empty()).rev().fold(value, |inner, key| json!({key: inner}))
}
