//! The subresources of Pods that are created: bindings to nodes, and evictions.

use http::Request;
use serde_json::{Value, json};

use super::body::{self, BodyResult};
use super::call::{Call, agent, check_media, media_type};
use super::reply::{self, Reply};
use crate::api::{DeleteOptions, Scope};
use crate::patch::Patch;
use crate::status::{Cause, Status};
use crate::time::now;

/// Binds a Pod to a node, or evicts it. Nothing schedules Pods here, and nobody keeps disruption budgets.
pub(super) fn answer(call: &Call<'_>, scope: &Scope, request: Request<BodyResult>) -> Result<Reply, Status> {
    if request.method() != http::Method::POST {
        return Err(Status::method_not_allowed());
    }
    let (media, agent) = (media_type(&request), agent(&request));
    check_media(&media)?;
    let content = request.into_body()?;
    if call.target.subresource == "eviction" {
        let sent = body::decode(&content, &media, "policy/v1", "Eviction")?.value;
        let options = DeleteOptions::from_value(&sent["deleteOptions"])?;
        call.api().delete(call.caller, scope, &call.target.name, &options)?;
    } else {
        let sent = body::decode(&content, &media, "v1", "Binding")?.value;
        bind(call, scope, &agent, &sent)?;
    }
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(reply::object(201, &done, call.accept.format))
}

fn bind(call: &Call<'_>, scope: &Scope, agent: &str, binding: &Value) -> Result<(), Status> {
    let (api, name) = (call.api(), &call.target.name);
    let (kind, node) = (&binding["target"]["kind"], binding["target"]["name"].as_str().unwrap_or_default());
    let invalid = |cause: Cause| Status::invalid("", "Binding", name, &[cause]);
    if !matches!(kind.as_str(), None | Some("" | "Node")) {
        return Err(invalid(Cause::unsupported("target.kind", kind, &["Node".into(), "<empty>".into()])));
    }
    if node.is_empty() {
        return Err(invalid(Cause::required("target.name", "")));
    }
    let pod = api.get(scope, name)?;
    if let Some(other) = pod["spec"]["nodeName"].as_str().filter(|other| !other.is_empty()) {
        let why = format!("pod {name} is already assigned to node {other:?}");
        return Err(Status::conflict("", "pods/binding", name, &why));
    }
    let options = call.write_options("CreateOptions", agent, Vec::new())?;
    let revision = &pod["metadata"]["resourceVersion"];
    let bound = json!({"metadata": {"resourceVersion": revision}, "spec": {"nodeName": node}});
    api.patch(call.caller, scope, name, "", &Patch::Merge(bound), &options)?;
    let scheduled =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now()});
    let others = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut conditions: Vec<Value> = others.filter(|found| found["type"] != "PodScheduled").cloned().collect();
    conditions.push(scheduled);
    let status = json!({"status": {"conditions": conditions}});
    api.patch(call.caller, scope, name, "status", &Patch::Merge(status), &options)?;
    Ok(())
}
