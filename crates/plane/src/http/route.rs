//! Routing: from a request to a response.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, header};
use hyper::body::Incoming;
use serde_json::json;

use super::body::{self, BodyResult};
use super::endpoint::Connection;
use super::negotiate::{self, Accept, Format, Shape};
use super::reply::{self, Cut, Reply};
use super::request::{self, Path, Query};
use super::{Server, discovery, documents, health, impersonate, openapi, resource};
use crate::api::{Api, Caller};
use crate::auth::{anonymous, rbac};
use crate::extension::{Attributes, Extension, Target, ViewAdmit, ViewAuthorize, Visible};
use crate::faults::{Effect, FaultPlan, refusal};
use crate::plane::Mode;
use crate::resource::{Catalog, Resource};
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

/// What a request sees of the plane: a cluster or a virtual workspace.
pub(super) struct ApiRoot {
    pub(super) target: Target,
    pub(super) rest: String,
    view: Option<View>,
}

struct View {
    resources: Catalog,
    visible: Visible,
    authorize: ViewAuthorize,
    admit: Option<ViewAdmit>,
}

impl ApiRoot {
    fn cluster(target: Target, rest: &str) -> Self {
        Self { target, rest: if rest.is_empty() { "/".into() } else { rest.into() }, view: None }
    }

    /// Whether this is a virtual workspace.
    pub(super) fn is_virtual(&self) -> bool {
        self.view.is_some()
    }

    /// Everything served here.
    pub(super) fn resources(&self, api: &Api) -> Catalog {
        match (&self.view, &self.target) {
            (Some(view), _) => view.resources.clone(),
            (None, Target::One(cluster)) => api.resources(cluster),
            (None, Target::All) => api.resources("*"),
        }
    }

    /// A served kind.
    pub(super) fn find(&self, api: &Api, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.resources(api).find(group, version, plural).cloned()
    }

    pub(super) fn visible(&self) -> Option<Visible> {
        self.view.as_ref().map(|view| view.visible.clone())
    }

    pub(super) fn admit(&self) -> Option<ViewAdmit> {
        self.view.as_ref().and_then(|view| view.admit.clone())
    }

    /// Whether the caller may do this here.
    pub(super) fn authorize(&self, api: &Api, caller: &Caller, attributes: &Attributes) -> Result<(), Status> {
        match (&self.view, api.extension(), &self.target) {
            (Some(view), ..) => (view.authorize)(api, caller, attributes),
            _ if caller.is_in("system:masters") => Ok(()),
            (None, Some(_), Target::All) => Err(rbac::refusal(caller, attributes, ": access denied")),
            (None, _, Target::One(cluster)) => permitted(api, caller, cluster, attributes),
            (None, None, Target::All) => permitted(api, caller, "", attributes),
        }
    }
}

/// Refuses what a cluster does not allow, in the words of the server that is emulated.
pub(super) fn permitted(api: &Api, caller: &Caller, cluster: &str, attributes: &Attributes) -> Result<(), Status> {
    let decision = api.decide(caller, cluster, attributes);
    if decision.is_allowed() {
        return Ok(());
    }
    let suffix = if decision.reason.is_empty() { String::new() } else { format!(": {}", decision.reason) };
    Err(rbac::refusal(caller, attributes, &suffix))
}

/// Answers one request, unless the fault layer intervenes; every error becomes a Status.
pub(super) async fn handle(server: &Arc<Server>, request: Request<Incoming>) -> Result<Reply, Cut> {
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let accept = negotiate::accept(&parts.headers, query.flag("pretty"));
    let format = accept.as_ref().map_or(Format::Json, |accept| accept.errors);
    if let Some(reply) = health::answer(&server.api, parts.uri.path(), &query, server.stop.is_cancelled()) {
        return Ok(reply);
    }
    let mut ask = request::ask(server.number, &parts, &query);
    if let Some(extension) = server.api.extension()
        && let Ok(name) = extension.resolve(&server.api, &ask.cluster)
    {
        ask.cluster_name = name.to_string();
    }
    // The body is read before the fault layer decides: a request that is executed and then cut off must not depend on a body that may never
    // arrive.
    let request = Request::from_parts(parts, body::read(body, server.limits.body).await);
    if ask.verb == "create" && ask.name.is_empty() {
        let media = resource::media_type(&request);
        ask.name = request.body().as_ref().map(|body| body::name(body, &media)).unwrap_or_default();
    }
    ask.user = authenticate(server, &request).map(|caller| caller.user).unwrap_or_default();
    let _in_flight = server.faults.begin();
    let plan = server.faults.plan(ask);
    let result = planned(server, request, &query, accept, format, &plan).await;
    server.faults.answered(plan, result.as_ref().map_or(0, |reply| reply.status().as_u16()));
    result
}

/// Answers one request with the faults planned for it.
async fn planned(
    server: &Arc<Server>,
    request: Request<BodyResult>,
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
    let reply = match answer(server, request, query, accept, plan).await {
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
        let done = answer(&server, request, &query, accept, &plan).await;
        server.faults.count(|counts| counts.applied_late += 1);
        done.map_or_else(|status| status.code, |reply| reply.status().as_u16())
    };
    faults.hold(ask, Box::new(move || Box::pin(job)), duration);
}

async fn answer(
    server: &Arc<Server>,
    request: Request<BodyResult>,
    query: &Query,
    accept: Result<Accept, Status>,
    plan: &FaultPlan,
) -> Result<Reply, Status> {
    let api = &server.api;
    let path = request.uri().path().to_owned();
    let mut caller = authenticate(server, &request)?;
    let mut root = root(server, &caller, &path)?;
    if let Some(wanted) = impersonate::wanted(api.mode, request.headers(), &path)? {
        let cluster = match (&root.view, &root.target) {
            (None, Target::One(cluster)) => Some(&**cluster),
            _ => None,
        };
        caller = impersonate::answer(api, &caller, cluster, wanted)?;
        root = self::root(server, &caller, &path)?;
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
        let call = resource::Call { server, root: &root, caller: &caller, target: &target, query, accept, plan };
        return call.answer(attributes, request).await;
    }
    let attributes =
        Attributes { verb: method.as_str().to_lowercase(), path: root.rest.clone(), ..Attributes::default() };
    // The server of virtual workspaces lets everybody ask for its health, but has nothing to tell about it there.
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
        let call = resource::Call { server: &server, root, caller, target, query, accept, plan };
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

fn authenticate(server: &Server, request: &Request<BodyResult>) -> Result<Caller, Status> {
    if let Some(caller) = request.extensions().get::<Connection>().and_then(|about| about.peer.clone()) {
        return Ok(caller);
    }
    let Some(value) = request.headers().get(header::AUTHORIZATION) else { return Ok(anonymous()) };
    let text = value.to_str().map_err(|_| Status::unauthorized())?;
    let token = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let checked = token.and_then(|(_, token)| server.check(token.trim())).ok_or_else(Status::unauthorized)?;
    // A token for another audience is not valid here.
    let ours = checked.audiences.iter().any(|audience| *audience == server.api.accounts.issuer());
    if ours { Ok(checked.caller) } else { Err(Status::unauthorized()) }
}

/// Which cluster or virtual workspace a path refers to.
fn root(server: &Server, caller: &Caller, path: &str) -> Result<ApiRoot, Status> {
    let api = &server.api;
    let Some(extension) = api.extension() else { return Ok(ApiRoot::cluster(Target::One("".into()), path)) };
    if let Some(rest) = path.strip_prefix("/clusters/") {
        let (segment, rest) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let segment = request::unescape(segment, false);
        if segment == "*" {
            return Ok(ApiRoot::cluster(Target::All, rest));
        }
        if !is_cluster(&segment) {
            return Err(Status::bad_request(format!("invalid cluster: {segment:?} does not match the regex")));
        }
        let cluster = extension.resolve(api, &segment)?;
        check_shard(server, &**extension, &cluster, &segment)?;
        return Ok(ApiRoot::cluster(Target::One(cluster), rest));
    }
    if path.starts_with("/services/")
        && let Some(view) = extension.virtual_workspace(api, caller, path)?
    {
        let mut visible = view.visible;
        match (&view.target, server.shard) {
            (Target::One(cluster), _) => check_shard(server, &**extension, cluster, cluster)?,
            (Target::All, Some(shard)) => {
                let (inner, extension) = (visible, extension.clone());
                visible = Arc::new(move |key, object| extension.shard_of(&key.cluster) == shard && inner(key, object));
            }
            (Target::All, None) => {}
        }
        return Ok(ApiRoot {
            target: view.target,
            rest: view.rest,
            view: Some(View { resources: view.resources, visible, authorize: view.authorize, admit: view.admit }),
        });
    }
    // Only those who pass every check may ask for a single one outside a workspace.
    if health::is_below(path) && caller.is_in("system:masters") {
        return Ok(ApiRoot::cluster(Target::All, path));
    }
    let attributes = Attributes { verb: "get".into(), path: path.to_owned(), ..Attributes::default() };
    let suffix = if path.starts_with("/services/") {
        ": Path not resolved to a valid virtual workspace"
    } else {
        ": access denied"
    };
    Err(rbac::refusal(caller, &attributes, suffix))
}

/// A shard serves only its own clusters; the front proxy serves all, except those on a shard that is down.
fn check_shard(server: &Server, extension: &dyn Extension, cluster: &str, asked: &str) -> Result<(), Status> {
    let home = extension.shard_of(cluster);
    match server.shard {
        Some(shard) if shard != home => Err(Status::not_found("tenancy.kcp.io", "workspaces", asked)),
        None if !extension.is_up(home) => {
            let message = "the server is currently unable to handle the request";
            Err(Status::new(503, "ServiceUnavailable", message))
        }
        _ => Ok(()),
    }
}

/// Names of lower-case letters, digits and dashes, joined by colons.
fn is_cluster(text: &str) -> bool {
    text.split(':').all(|part| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        !part.is_empty()
            && part.len() <= 63
            && part.chars().all(|c| plain(c) || c == '-')
            && part.starts_with(plain)
            && part.ends_with(plain)
    })
}
