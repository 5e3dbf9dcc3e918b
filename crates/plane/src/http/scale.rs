//! The scale subresource of custom kinds and of workloads.

use http::Request;
use serde_json::{Value, json};

use super::body::{self, BodyResult};
use super::call::{Call, agent, media_type};
use super::jsonpath;
use super::reply::Reply;
use crate::api::{Scope, custom_patches};
use crate::go::json_type;
use crate::patch::Patch;
use crate::resource::Scale;
use crate::status::{Cause, Status};

/// Reads or writes the number of replicas.
pub(super) fn answer(call: &Call<'_>, scope: &Scope, request: Request<BodyResult>) -> Result<Reply, Status> {
    let Some(paths) = scope.version()?.scale.clone() else { return Err(Status::page_not_found()) };
    let name = &call.target.name;
    let api = call.api();
    if matches!(request.method().as_str(), "GET" | "HEAD") {
        return Ok(call.shaped(scope, 200, shown(&api.get(scope, name)?, &paths)?, &[]));
    }
    let (media, agent) = (media_type(&request), agent(&request));
    let patching = request.method() == http::Method::PATCH;
    if patching && !matches!(media.as_str(), "application/merge-patch+json" | "application/json-patch+json") {
        return Err(Status::unsupported_media(custom_patches(api.mode)));
    }
    let content = request.into_body()?;
    let options = call.write_options(if patching { "PatchOptions" } else { "UpdateOptions" }, &agent, Vec::new())?;
    let sent = if patching {
        let value = body::json(&content, &mut Vec::new()).unwrap_or_else(|why| Patch::unreadable(&why));
        SentScale::Patch(if media.starts_with("application/json-patch") {
            Patch::Json(value)
        } else {
            Patch::Merge(value)
        })
    } else {
        SentScale::Whole(body::decode(&content, &media, "autoscaling/v1", "Scale")?.value)
    };
    let written = api.rescale(call.caller, scope, name, &options, |current| rescaled(current, &paths, &sent))?;
    Ok(call.shaped(scope, 200, shown(&written.object, &paths)?, &written.warnings))
}

enum SentScale {
    Patch(Patch),
    Whole(Value),
}

/// An object with the number of replicas that was sent.
fn rescaled(current: &Value, paths: &Scale, sent: &SentScale) -> Result<Value, Status> {
    let scale = match sent {
        SentScale::Patch(patch) => patch.apply_to(&shape(current, paths))?,
        SentScale::Whole(scale) => scale.clone(),
    };
    let replicas = match &scale["spec"]["replicas"] {
        Value::Null if number(current, &paths.spec).is_none() => {
            return Err(Status::bad_request(format!("the spec replicas field {:?} cannot be empty", paths.spec)));
        }
        Value::Null => 0,
        number if number.is_i64() => number.as_i64().unwrap_or_default(),
        other => {
            let SentScale::Patch(_) = sent else {
                let message = "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:110\"";
                return Err(Status::bad_request(message));
            };
            let found = json_type(other);
            let why =
                format!("json: cannot unmarshal {found} into Go struct field ScaleSpec.spec.replicas of type int32");
            let cause = Cause::invalid("patch", &Value::String(scale.to_string()), &why);
            return Err(Status::invalid("", "", "", &[cause]));
        }
    };
    let mut object = Patch::Merge(nested(&paths.spec, replicas.into())).apply_to(current)?;
    // The object that the scale claims to belong to.
    for key in ["name", "resourceVersion"] {
        match scale["metadata"][key].as_str() {
            Some(text) if !text.is_empty() => object["metadata"][key] = text.into(),
            _ if key == "name" => object["metadata"][key] = "".into(),
            _ => {}
        }
    }
    Ok(object)
}

/// The scale of an object with replicas.
fn shown(object: &Value, paths: &Scale) -> Result<Value, Status> {
    if number(object, &paths.spec).is_none() {
        return Err(Status::internal(format!(
            "Internal error occurred: the spec replicas field {:?} does not exist",
            paths.spec
        )));
    }
    Ok(shape(object, paths))
}

fn number(object: &Value, path: &str) -> Option<i64> {
    jsonpath::select(object, path).first().and_then(|value| value.as_i64())
}

fn shape(object: &Value, paths: &Scale) -> Value {
    let metadata = &object["metadata"];
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {},
        "status": {"replicas": number(object, &paths.status).unwrap_or(0)},
    });
    // Go leaves zero out.
    if let Some(replicas) = number(object, &paths.spec).filter(|replicas| *replicas != 0) {
        scale["spec"]["replicas"] = replicas.into();
    }
    if metadata["namespace"].is_string() {
        scale["metadata"]["namespace"] = metadata["namespace"].clone();
    }
    if !paths.selector.is_empty()
        && let Some(text) = jsonpath::select(object, &paths.selector).first().and_then(|value| value.as_str())
    {
        scale["status"]["selector"] = text.into();
    }
    scale
}

/// A merge patch that sets one plain path such as `.spec.replicas`.
fn nested(path: &str, value: Value) -> Value {
    path.split('.').filter(|part| !part.is_empty()).rev().fold(value, |inner, key| json!({key: inner}))
}
