//! Access and token reviews: answered, but not stored.

mod access;
mod spec;

use http::Request;
use serde_json::{Value, json};

use spec::texts;

use super::body::BodyResult;
use super::call::{Call, decoded};
use super::reply::{self, Reply};
use crate::api::Scope;
use crate::auth::accounts::Checked;
use crate::caller::Caller;
use crate::request::Target;
use crate::resource::Resource;
use crate::status::Status;
use crate::time::now;
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
    let own = &*resource.plural == "selfsubjectaccessreviews";
    if own || resource.plural.ends_with("subjectaccessreviews") {
        validate(call, resource, &review, own)?;
        spec::settle(&mut review["spec"]);
    }
    review["status"] = match &*resource.plural {
        "selfsubjectreviews" => json!({"userInfo": user_info(call.caller)}),
        "tokenreviews" => token(call, &review),
        "selfsubjectrulesreviews" => access::rules(call, cluster, &review)?,
        _ if own => access::status(call, cluster, call.caller, &review["spec"]),
        _ => access::status(call, cluster, &access::subject(&review["spec"]), &review["spec"]),
    };
    if &*resource.plural == "selfsubjectrulesreviews" {
        review["spec"] = json!({});
    }
    review["metadata"] = match &*resource.plural {
        "selfsubjectreviews" => json!({"creationTimestamp": now()}),
        _ if resource.namespaced => json!({"namespace": call.target.namespace}),
        _ => json!({}),
    };
    Ok(reply::object(201, &review, call.accept.format))
}

fn validate(call: &Call<'_>, resource: &Resource, review: &Value, own: bool) -> Result<(), Status> {
    let mut causes = spec::causes(&review["spec"], own);
    let namespace = resource.namespaced.then_some(call.target.namespace.as_str());
    causes.extend(spec::metadata_cause(&review["metadata"], namespace.is_some()));
    causes.extend(namespace.into_iter().flat_map(|namespace| spec::local_causes(&review["spec"], namespace)));
    // The real servers do not know the kind any more at this point.
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid(&resource.group, "", "", &causes)) }
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
