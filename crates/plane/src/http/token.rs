//! The token subresource of service accounts.

use http::Request;
use serde_json::{Value, json};

use super::body::BodyResult;
use super::call::{Call, decoded};
use super::reply::{self, Reply};
use crate::api::Scope;
use crate::auth::accounts::Account;
use crate::status::{Cause, Status};
use crate::store::{Key, Kind};
use crate::time::now;

const SHORTEST: i64 = 600;
const USUAL: i64 = 3600;
/// The longest duration that Go clients can express in nanoseconds.
const LONGEST: i64 = 1 << 32;

/// Answers a TokenRequest.
pub(super) fn answer(call: &Call<'_>, scope: &Scope, request: Request<BodyResult>) -> Result<Reply, Status> {
    if request.method() != http::Method::POST {
        return Err(Status::method_not_allowed());
    }
    let name = &call.target.name;
    let (sent, _) = decoded(scope, request)?;
    let mut wanted = sent.value;
    if !wanted.is_object() {
        return Err(Status::bad_request("the token request must be an object"));
    }
    let api = call.api();
    let account = api.get(scope, name)?;
    let cluster = scope.cluster()?;
    let seconds = wanted["spec"]["expirationSeconds"].as_i64().unwrap_or(USUAL);
    let cause = match seconds {
        ..SHORTEST => Some("may not specify a duration less than 10 minutes"),
        SHORTEST..=LONGEST => None,
        _ => Some("may not specify a duration larger than 2^32 seconds"),
    };
    let invalid = |cause: Cause| Status::invalid("authentication.k8s.io", "TokenRequest", name, &[cause]);
    if let Some(cause) = cause {
        return Err(invalid(Cause::invalid("spec.expirationSeconds", &seconds.into(), cause)));
    }
    let mut audiences: Vec<String> = strings(&wanted["spec"]["audiences"]);
    if audiences.is_empty() {
        audiences.push(api.accounts.issuer().to_owned());
    }
    let bound = bound(call, cluster, &wanted["spec"]["boundObjectRef"])?;
    let text = |pointer: &str| account.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let who = Account { cluster, namespace: &scope.namespace, name, uid: text("/metadata/uid") };
    let token = api.accounts.request(who, &audiences, seconds, bound.as_ref());
    let until = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    wanted["apiVersion"] = "authentication.k8s.io/v1".into();
    wanted["kind"] = "TokenRequest".into();
    wanted["metadata"] = json!({"name": name, "namespace": &*scope.namespace, "creationTimestamp": now()});
    wanted["spec"]["audiences"] = json!(audiences);
    wanted["spec"]["expirationSeconds"] = seconds.into();
    if wanted["spec"].get("boundObjectRef").is_none() {
        wanted["spec"]["boundObjectRef"] = Value::Null;
    }
    wanted["status"] = json!({"token": token, "expirationTimestamp": until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()});
    Ok(reply::object(201, &wanted, call.accept.format))
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Name and UID of the Secret that the token is bound to.
fn bound(call: &Call<'_>, cluster: &str, reference: &Value) -> Result<Option<Value>, Status> {
    if !reference.is_object() {
        return Ok(None);
    }
    if reference["kind"] != "Secret" {
        let message = format!(
            "cannot bind token for serviceaccount {:?} to object of type {}",
            call.target.name, reference["kind"]
        );
        return Err(Status::bad_request(message));
    }
    let name = reference["name"].as_str().unwrap_or_default();
    let key = Key::new(&Kind::new("", "secrets"), cluster, &call.target.namespace, name);
    let found = call.api().store.get(&key).ok_or_else(|| Status::not_found("", "secrets", name))?;
    let uid = &found.object["metadata"]["uid"];
    if reference["uid"].as_str().is_some_and(|wanted| !wanted.is_empty() && *uid != *wanted) {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record ({uid}). The object might have been deleted and then recreated",
            reference["uid"]
        );
        return Err(Status::conflict("", "secrets", name, &why));
    }
    Ok(Some(json!({"name": name, "uid": uid})))
}
