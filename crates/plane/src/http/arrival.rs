//! What is found out about a request at the door, once: who sent it, and which cluster or virtual workspace it is for.

use std::sync::Arc;

use http::{Request, header};

use super::body::BodyResult;
use super::connection::Connection;
use super::root::{ApiRoot, View};
use super::server::Server;
use super::{health, request};
use crate::auth::{anonymous, rbac};
use crate::caller::{ACCOUNT_CLUSTER, Caller};
use crate::extension::Extension;
use crate::request::{Attributes, Target};
use crate::status::Status;
use crate::store::revision_of;

/// What is known about a request when it arrives.
pub(super) struct Arrival {
    /// Nobody if the credentials are not valid.
    caller: Option<Caller>,
    cluster: Option<Arc<str>>,
}

impl Arrival {
    /// Authenticates a request and finds the logical cluster behind the segment after `/clusters/`.
    pub(super) fn of(server: &Server, request: &Request<BodyResult>, segment: &str) -> Self {
        let cluster = match server.api.extension() {
            Some(extension) => extension.resolve(segment),
            None => Some("".into()),
        };
        Self { caller: authenticate(server, request), cluster }
    }

    /// The name of the caller; empty if it is not known.
    pub(super) fn user(&self) -> &str {
        self.caller.as_ref().map_or("", |caller| &caller.user)
    }

    /// The name of the cluster; empty if there is none.
    pub(super) fn cluster(&self) -> &str {
        self.cluster.as_deref().unwrap_or_default()
    }

    /// The caller, and what the request sees of the plane.
    pub(super) fn enter(self, server: &Server, path: &str) -> Result<(Caller, ApiRoot), Status> {
        let caller = self.caller.ok_or_else(Status::unauthorized)?;
        let root = root(server, &caller, self.cluster, path)?;
        Ok((caller, root))
    }
}

/// Who sent a request; `None` if its credentials are not valid.
fn authenticate(server: &Server, request: &Request<BodyResult>) -> Option<Caller> {
    if let Some(caller) = request.extensions().get::<Connection>().and_then(|about| about.peer.clone()) {
        return Some(caller);
    }
    let Some(value) = request.headers().get(header::AUTHORIZATION) else { return Some(anonymous()) };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let checked = scheme.eq_ignore_ascii_case("bearer").then(|| server.check(token.trim()))??;
    // A token for another audience is not valid here.
    let ours = checked.audiences.iter().any(|audience| *audience == server.api.accounts.issuer());
    ours.then_some(checked.caller)
}

/// Which cluster or virtual workspace a path refers to.
fn root(server: &Server, caller: &Caller, cluster: Option<Arc<str>>, path: &str) -> Result<ApiRoot, Status> {
    let api = &server.api;
    let Some(extension) = api.extension() else {
        return Ok(ApiRoot::cluster(Target::One(cluster.unwrap_or_default()), path));
    };
    if let Some(rest) = path.strip_prefix("/clusters/") {
        let (segment, rest) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let segment = request::unescape(segment, false);
        if segment == "*" {
            return Ok(ApiRoot::cluster(Target::All, rest));
        }
        if !is_cluster(&segment) {
            return Err(Status::bad_request(format!("invalid cluster: {segment:?} does not match the regex")));
        }
        let cluster = cluster.ok_or_else(|| no_workspace(&segment))?;
        check_shard(server, &**extension, &cluster, &segment)?;
        return Ok(ApiRoot::cluster(Target::One(cluster), rest));
    }
    if path.starts_with("/services/")
        && let Some(view) = extension.virtual_workspace(&|cluster| api.resources(cluster), caller, path)?
    {
        let mut visible = view.visible;
        match (&view.target, server.shard) {
            (Target::One(cluster), _) => check_shard(server, &**extension, cluster, cluster)?,
            (Target::All, Some(shard)) => {
                let (inner, extension) = (visible, extension.clone());
                // Where it was when it looked like this: what has moved away is gone from here.
                visible = Arc::new(move |key, object| {
                    extension.shard_at(&key.cluster, revision_of(object)) == shard && inner(key, object)
                });
            }
            (Target::All, None) => {}
        }
        return Ok(ApiRoot {
            target: view.target,
            rest: view.rest,
            is_outside: false,
            view: Some(View {
                resources: view.resources,
                visible,
                authorize: view.authorize,
                admit: view.admit,
                passes: view.passes,
            }),
        });
    }
    // Programs in a cluster know nothing of workspaces: theirs is the one of their service account.
    if let Some(cluster) = account_cluster(caller) {
        check_shard(server, &**extension, cluster, cluster)?;
        return Ok(ApiRoot::cluster(Target::One(cluster.into()), path));
    }
    outside(caller, path)
}

/// The cluster of a service account.
fn account_cluster(caller: &Caller) -> Option<&str> {
    let clusters = caller.extra.get(ACCOUNT_CLUSTER)?;
    clusters.first().map(String::as_str).filter(|_| caller.user.starts_with("system:serviceaccount:"))
}

/// Outside of all clusters, only those who pass every check may ask for a single health check.
pub(super) fn outside(caller: &Caller, path: &str) -> Result<ApiRoot, Status> {
    if health::is_below(path) && caller.is_in("system:masters") {
        return Ok(ApiRoot { is_outside: true, ..ApiRoot::cluster(Target::All, path) });
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
        Some(shard) if shard != home => Err(no_workspace(asked)),
        None if !extension.is_up(home) => {
            let message = "the server is currently unable to handle the request";
            Err(Status::new(503, "ServiceUnavailable", message))
        }
        _ => Ok(()),
    }
}

fn no_workspace(asked: &str) -> Status {
    Status::not_found("tenancy.kcp.io", "workspaces", asked)
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
