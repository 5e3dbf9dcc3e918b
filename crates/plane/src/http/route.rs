//! Routing: from a request to a response.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, header};
use hyper::body::Incoming;
use serde_json::json;

use super::arrival::{self, Arrival};
use super::body::{self, BodyResult};
use super::call::{self, Call};
use super::negotiate::{self, Accept, Format, Shape};
use super::reply::{self, Cut, Reply};
use super::request::{self, Path, Query};
use super::root::ApiRoot;
use super::server::Server;
use super::{discovery, documents, health, impersonate, numbering, openapi};
use crate::api::Api;
use crate::caller::Caller;
use crate::config::Mode;
use crate::faults::{Effect, FaultPlan, refusal};
use crate::request::{Attributes, Target};
use crate::status::Status;

/// What kcp's server of virtual workspaces serves, whichever of them is asked.
const VIEW_PATHS: [&str; 10] = [
    "/api",
    "/api/v1",
    "/api/v1/",
    "/apis",
    "/apis/",
    "/metrics",
    "/metrics/slis",
    "/openapi",
    "/openapi/",
    "/version",
];
const OPEN_PATHS: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Answers one request, unless the fault layer intervenes; every error becomes a Status.
pub(super) async fn handle(server: &Arc<Server>, request: Request<Incoming>) -> Result<Reply, Cut> {
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let accept = negotiate::accept(&parts.headers, matches!(query.get("pretty"), Some("true" | "1" | "True")));
    let format = accept.as_ref().map_or(Format::Json, |accept| accept.errors);
    if let Some(reply) = health::answer(&server.api, parts.uri.path(), &query, server.stop.is_cancelled()) {
        return Ok(reply);
    }
    let raw_query = parts.uri.query().unwrap_or_default().to_owned();
    let mut ask = request::ask(server.number, &parts, &query);
    // The body is read before the fault layer decides: a request that is executed and then cut off must not depend on a body that may never
    // arrive.
    let request = Request::from_parts(parts, body::read(body, server.limits.body).await);
    if ask.verb == "create" && ask.name.is_empty() {
        let media = call::media_type(&request);
        ask.name = request.body().as_ref().map(|body| body::name(body, &media)).unwrap_or_default();
    }
    let arrival = Arrival::of(server, &request, &ask.cluster);
    arrival.user().clone_into(&mut ask.user);
    arrival.cluster().clone_into(&mut ask.cluster_name);
    let ahead = server.ahead(&ask.cluster_name);
    let (query, request) = match ahead {
        0 => (query, request),
        ahead => (
            Query::parse(&numbering::inward_query(&raw_query, ahead)),
            request.map(|body| body.map(|body| numbering::inward_body(&body, ahead))),
        ),
    };
    let _in_flight = server.faults.begin();
    let plan = server.faults.plan(ask);
    let result = planned(server, request, arrival, &query, accept, format, &plan).await;
    let result = if ahead == 0 { result } else { result.map(|reply| numbering::outward(reply, ahead)) };
    server.faults.answered(plan, result.as_ref().map_or(0, |reply| reply.status().as_u16()));
    result
}

/// Answers one request with the faults planned for it.
async fn planned(
    server: &Arc<Server>,
    request: Request<BodyResult>,
    mut arrival: Arrival,
    query: &Query,
    accept: Result<Accept, Status>,
    format: Format,
    plan: &FaultPlan,
) -> Result<Reply, Cut> {
    let faults = &server.faults;
    let delay = plan.delay();
    if !delay.is_zero() {
        faults.count(|counts| counts.delayed += 1);
        tokio::time::sleep(delay).await;
        // It arrives only now.
        arrival = Arrival::of(server, &request, &plan.ask.cluster);
    }
    let refused = |code: u16, retry_after: Option<u64>| reply::status(&refusal(code, retry_after, &plan.ask), format);
    match plan.outcome() {
        Some(Effect::Refuse { code, retry_after }) => {
            faults.count(|counts| counts.refused += 1);
            return Ok(refused(code, retry_after));
        }
        Some(Effect::Cut) => {
            faults.count(|counts| counts.cut += 1);
            return Err(Cut);
        }
        Some(Effect::ApplyLate { millis, code }) => {
            hold(server, request, query, accept, plan, millis.map(Duration::from_millis));
            return code.map(|code| refused(code, None)).ok_or(Cut);
        }
        _ => {}
    }
    let reply = match answer(server, request, arrival, query, accept, plan).await {
        Ok(reply) => reply,
        Err(status) => reply::status(&status, format),
    };
    match plan.outcome() {
        Some(Effect::ApplyThenRefuse { code, retry_after }) => {
            faults.count(|counts| counts.applied_then_refused += 1);
            Ok(refused(code, retry_after))
        }
        Some(Effect::ApplyThenCut) => {
            faults.count(|counts| counts.applied_then_cut += 1);
            Err(Cut)
        }
        _ => Ok(reply),
    }
}

/// Holds a request back, to be executed later.
fn hold(
    server: &Arc<Server>,
    request: Request<BodyResult>,
    query: &Query,
    accept: Result<Accept, Status>,
    plan: &FaultPlan,
    duration: Option<Duration>,
) {
    let (server, query, plan) = (server.clone(), query.clone(), plan.clone());
    let (faults, ask) = (server.faults.clone(), plan.ask.clone());
    let job = async move {
        let arrival = Arrival::of(&server, &request, &plan.ask.cluster);
        let done = answer(&server, request, arrival, &query, accept, &plan).await;
        server.faults.count(|counts| counts.applied_late += 1);
        done.map_or_else(|status| status.code, |reply| reply.status().as_u16())
    };
    faults.hold(ask, Box::new(move || Box::pin(job)), duration);
}

async fn answer(
    server: &Arc<Server>,
    request: Request<BodyResult>,
    arrival: Arrival,
    query: &Query,
    accept: Result<Accept, Status>,
    plan: &FaultPlan,
) -> Result<Reply, Status> {
    let api = &server.api;
    let path = request.uri().path().to_owned();
    let (mut caller, mut root) = arrival.enter(server, &path)?;
    if let Some(wanted) = impersonate::wanted(api.release, request.headers(), &path)? {
        let cluster = match (&root.view, &root.target) {
            (None, Target::One(cluster)) => Some(&**cluster),
            _ => None,
        };
        caller = impersonate::answer(api, &caller, cluster, wanted)?;
        // Nothing else depends on who asks.
        if root.is_outside {
            root = arrival::outside(&caller, &path)?;
        }
    }
    let method = request.method().clone();
    let route = request::path(&root.rest);
    if let Path::Resource(target) = route {
        let attributes = request::attributes(&method, &target, query);
        if attributes.verb.is_empty() {
            return Err(Status::method_not_allowed());
        }
        if let (None, Some(extension), Target::One(cluster)) = (&root.view, api.extension(), &root.target)
            && let Some(object) = extension.unstored(&caller, cluster, &attributes)?
        {
            return Ok(reply::object(200, &object, accept?.without_messages()?.format));
        }
        root.authorize(api, &caller, &attributes)?;
        let accept = accept?;
        if api.calls_webhooks() {
            return apart(server, (root, caller, target), query, accept, plan, attributes, request).await;
        }
        let call = Call { server, root: &root, caller: &caller, target: &target, query, accept, plan };
        return call.answer(attributes, request).await;
    }
    let attributes =
        Attributes { verb: method.as_str().to_lowercase(), path: root.rest.clone(), ..Attributes::default() };
    // The server of virtual workspaces lets everybody ask for its health, but has nothing to report there.
    if !root.is_virtual() || !OPEN_PATHS.contains(&&*root.rest) {
        root.authorize(api, &caller, &attributes)?;
    }
    if method != Method::GET && method != Method::HEAD {
        return Err(Status::method_not_allowed());
    }
    if let Some(reply) = health::check(&root.rest, server.stop.is_cancelled()) {
        return Ok(reply);
    }
    // Documents about the API have only one form: the Accept header is ignored.
    let format = accept.map_or(Format::Json, |accept| match accept.shape {
        Shape::Object => accept.format,
        _ => Format::Json,
    });
    // kcp does not offer it in a form that clients could rely on.
    if api.mode == Mode::Kube
        && matches!(route, Path::Versions | Path::Groups)
        && negotiate::accepts_aggregated(request.headers())
    {
        let core = route == Path::Versions;
        let name = if core { "aggregated /api" } else { "aggregated /apis" };
        let make = || Ok(discovery::aggregated(api, &root, core));
        let mut reply = documents::reply(api, &root, name, Format::Json, make)?;
        reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(negotiate::AGGREGATED));
        return Ok(reply);
    }
    match route {
        Path::Versions => Ok(reply::object(200, &discovery::versions(api), format)),
        Path::Groups => documents::reply(api, &root, "/apis", format, || Ok(discovery::groups(api, &root))),
        Path::Group(group) => discovery::group(api, &root, &group).map(|value| reply::object(200, &value, format)),
        Path::Resources { group, version } => {
            let name = format!("/apis/{group}/{version}");
            documents::reply(api, &root, &name, format, || discovery::resources(api, &root, &group, &version))
        }
        _ => other(api, &root, query, request.headers(), format),
    }
}

/// Answers a request about a resource on a thread that may wait for webhooks.
async fn apart(
    server: &Arc<Server>,
    about: (ApiRoot, Caller, request::Target),
    query: &Query,
    accept: Accept,
    plan: &FaultPlan,
    attributes: Attributes,
    request: Request<BodyResult>,
) -> Result<Reply, Status> {
    let (server, query, plan) = (server.clone(), query.clone(), plan.clone());
    let runtime = tokio::runtime::Handle::current();
    let answered = tokio::task::spawn_blocking(move || {
        let (root, caller, target) = &about;
        let (query, plan) = (&query, &plan);
        let call = Call { server: &server, root, caller, target, query, accept, plan };
        runtime.block_on(call.answer(attributes, request))
    });
    answered.await.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
}

fn other(api: &Api, root: &ApiRoot, query: &Query, headers: &http::HeaderMap, format: Format) -> Result<Reply, Status> {
    match root.rest.trim_end_matches('/') {
        "/version" => Ok(reply::object(200, &version(api.mode), format)),
        "" if root.is_virtual() => Ok(reply::object(200, &json!({"paths": VIEW_PATHS}), format)),
        "" => Ok(reply::object(200, &json!({"paths": discovery::paths(api, root)}), format)),
        "/openapi/v2" if !root.is_virtual() => Ok(openapi::older(api, root, headers)),
        "/openapi/v3" => documents::reply(api, root, "/openapi/v3", format, || Ok(openapi::index(api, root))),
        rest => match rest.strip_prefix("/openapi/v3/") {
            Some(document) => openapi::document(api, root, document, query, headers, format),
            None if root.is_virtual() => Ok(reply::object(404, &json!({"paths": VIEW_PATHS}), format)),
            None => Err(Status::page_not_found()),
        },
    }
}

fn version(mode: Mode) -> serde_json::Value {
    let (minor, version) = match mode {
        Mode::Kube => ("34", "v1.34.2"),
        Mode::Kcp => ("36", "v1.36.0+kcp-v0.32.3"),
    };
    json!({
        "major": "1", "minor": minor, "gitVersion": version, "gitCommit": "carrick", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}
