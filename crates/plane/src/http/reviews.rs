//! Access and token reviews: answered, but not stored.

use http::Request;
use serde_json::{Value, json};

use super::body::BodyResult;
use super::reply::{self, Reply};
use super::resource::{Call, decoded};
use crate::api::{Caller, Scope};
use crate::auth::accounts::Checked;
use crate::extension::{Attributes, Target};
use crate::resource::Resource;
use crate::status::{Cause, Status};
use std::sync::Arc;

/// Answers a review.
pub(super) fn answer(call: &Call<'_>, resource: &Arc<Resource>, request: Request<BodyResult>) -> Result<Reply, Status> {
    if request.method() != http::Method::POST || !call.target.name.is_empty() {
        return Err(Status::method_not_allowed());
    }
    let Target::One(cluster) = &call.root.target else { return Err(Status::no_such_resource()) };
    let scope = Scope::new(cluster, resource.clone(), &call.target.version);
    let (sent, _) = decoded(&scope, request)?;
    let mut review = sent.value;
    if !review.is_object() {
        return Err(Status::bad_request("the review must be an object"));
    }
    review["kind"] = (*resource.kind).into();
    review["apiVersion"] = resource.api_version(&call.target.version).into();
    if !review["metadata"].is_object() {
        review["metadata"] = json!({"creationTimestamp": null});
    }
    review["status"] = match &*resource.plural {
        "selfsubjectreviews" => json!({"userInfo": user_info(call.caller)}),
        "tokenreviews" => token(call, &review),
        "selfsubjectrulesreviews" => rules(call, cluster, &review),
        "selfsubjectaccessreviews" => access(call, call.caller, &review["spec"])?,
        "localsubjectaccessreviews" => {
            let namespace = &review["spec"]["resourceAttributes"]["namespace"];
            if *namespace != *call.target.namespace {
                let cause = Cause::invalid(
                    "spec.resourceAttributes.namespace",
                    namespace,
                    "must match the namespace of the URL",
                );
                return Err(Status::invalid(&resource.group, &resource.kind, "", &[cause]));
            }
            access(call, &subject(&review["spec"]), &review["spec"])?
        }
        _ => access(call, &subject(&review["spec"]), &review["spec"])?,
    };
    Ok(reply::object(201, &review, call.accept.format))
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn subject(spec: &Value) -> Caller {
    let extra = spec["extra"].as_object().into_iter().flatten();
    Caller {
        user: spec["user"].as_str().unwrap_or_default().to_owned(),
        uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
        groups: texts(&spec["groups"]),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
        system: false,
    }
}

fn user_info(caller: &Caller) -> Value {
    let mut info = json!({"username": caller.user, "groups": caller.groups});
    if !caller.uid.is_empty() {
        info["uid"] = caller.uid.clone().into();
    }
    if !caller.extra.is_empty() {
        info["extra"] = json!(caller.extra);
    }
    info
}

fn token(call: &Call<'_>, review: &Value) -> Value {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    let mut wanted = texts(&review["spec"]["audiences"]);
    if wanted.is_empty() {
        wanted.push(call.api().accounts.issuer().to_owned());
    }
    let refused = |why: &str| json!({"authenticated": false, "user": {}, "error": why});
    match call.server.check(token) {
        Some(Checked { caller, audiences }) => {
            wanted.retain(|audience| audiences.contains(audience));
            if wanted.is_empty() {
                return refused("token audiences do not match those of the review");
            }
            json!({"authenticated": true, "user": user_info(&caller), "audiences": wanted})
        }
        None => refused("invalid bearer token"),
    }
}

fn access(call: &Call<'_>, caller: &Caller, spec: &Value) -> Result<Value, Status> {
    let resource = &spec["resourceAttributes"];
    let plain = &spec["nonResourceAttributes"];
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let attributes = if resource.is_object() {
        Attributes {
            verb: text(resource, "verb"),
            group: text(resource, "group"),
            version: text(resource, "version"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            namespace: text(resource, "namespace"),
            name: text(resource, "name"),
            path: String::new(),
        }
    } else if plain.is_object() {
        Attributes { verb: text(plain, "verb"), path: text(plain, "path"), ..Attributes::default() }
    } else {
        let cause = Cause::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        );
        return Err(Status::invalid("authorization.k8s.io", "SubjectAccessReview", "", &[cause]));
    };
    let allowed = call.root.authorize(call.api(), caller, &attributes).is_ok();
    let kcp = call.api().extension().is_some();
    Ok(match (allowed, kcp) {
        (true, true) => json!({"allowed": true, "reason": "access granted"}),
        (false, true) => json!({"allowed": false, "reason": "access denied"}),
        (allowed, false) => json!({"allowed": allowed}),
    })
}

fn rules(call: &Call<'_>, cluster: &str, review: &Value) -> Value {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    let mut found = call.api().rules(call.caller, cluster, namespace);
    if call.caller.is_in("system:masters") {
        found.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
    }
    let (urls, resources): (Vec<Value>, Vec<Value>) =
        found.into_iter().partition(|rule| rule["nonResourceURLs"].is_array());
    json!({"resourceRules": resources, "nonResourceRules": urls, "incomplete": false})
}
