//! One request about a resource.

use std::sync::Arc;

use http::{Request, header};

use super::body::{self, BodyResult, Decoded};
use super::negotiate::Accept;
use super::request::{Query, Target};
use super::root::ApiRoot;
use super::server::Server;
use crate::api::{Api, Scope};
use crate::caller::Caller;
use crate::faults::FaultPlan;
use crate::protobuf;
use crate::status::Status;

/// One request about a resource, after authorization.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) server: &'a Server,
    pub(super) root: &'a ApiRoot,
    pub(super) caller: &'a Caller,
    pub(super) target: &'a Target,
    pub(super) query: &'a Query,
    pub(super) accept: Accept,
    pub(super) plan: &'a FaultPlan,
}

impl Call<'_> {
    /// The API behind this request.
    pub(super) fn api(&self) -> &Arc<Api> {
        &self.server.api
    }
}

/// The decoded body and the client's name.
pub(super) fn decoded(scope: &Scope, request: Request<BodyResult>) -> Result<(Decoded, String), Status> {
    let media = media_type(&request);
    let agent = agent(&request);
    check_media(&media)?;
    let content = request.into_body()?;
    Ok((body::decode(&content, &media, &scope.api_version(), &scope.resource.kind)?, agent))
}

/// Refuses bodies in a form that nobody reads.
pub(super) fn check_media(media: &str) -> Result<(), Status> {
    match media {
        "" | "application/json" | "application/yaml" | protobuf::MEDIA => Ok(()),
        _ => Err(Status::unsupported_media(&["application/json", "application/yaml", protobuf::MEDIA])),
    }
}

/// The media type of a body, without parameters.
pub(super) fn media_type(request: &Request<BodyResult>) -> String {
    let text = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_lowercase()
}

/// The client's name: its user agent up to the first slash.
pub(super) fn agent(request: &Request<BodyResult>) -> String {
    let text = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("unknown");
    text.split('/').next().unwrap_or_default().chars().take(128).collect()
}
