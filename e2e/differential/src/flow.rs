//! What a provider's agent, its administrator and its consumers ask of kcp, in random order: schemas, exports, claims, bindings, endpoint
//! slices, and objects by way of the export's virtual workspace.
//!
//! Workspaces take kcp long, so all sequences share a few: those of two consumers, and one of a provider for every set of rights that the
//! agent may have there. A sequence has an API group, exports, namespaces and names of its own, all of which begin with `{ns}`, and sees
//! nothing else in lists. Texts may hold the logical clusters `{P}`, `{A}` and `{B}`, their paths `{P-path}`, `{A-path}` and `{B-path}`, and
//! the identities `{own-id}` and `{other-id}` of both exports.

mod apis;
mod claims;
mod comparable;
mod objects;
mod play;
mod rights;
mod sequence;
mod things;

use std::fmt;

use super::request::{Body, Request};

pub use comparable::comparable;
pub use play::{Party, Stage, play};
pub use sequence::{Sequence, sequence};

/// The export that sequences are about, and one whose kind it may claim.
const EXPORT: &str = "{ns}";
const OTHER: &str = "{ns}-other";

/// One request, and who sends it.
#[derive(Debug, Clone)]
pub struct Step {
    /// Who sends it.
    pub who: Who,
    /// What is sent; its path begins at the root of the server.
    pub request: Request,
    /// Which answer counts.
    pub until: Until,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// An administrator of the whole kcp.
    Admin,
    /// A user with no rights but those that the sequence begins with.
    Agent,
    /// Somebody without a token.
    Nobody,
}

/// Which answer counts. Controllers take their time, so an answer that they have a share in counts once it no longer changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The first.
    Now,
    /// The one that no longer changes.
    Still,
    /// The same, of an export that has an identity.
    Identity,
    /// The same, of a binding that is bound.
    Bound,
    /// The same, of a slice with an endpoint.
    Endpoint,
    /// The same, of a list or an object that was found.
    Found,
    /// The one that there is nothing (any more).
    Gone,
    /// The one that no longer changes, of a binding whose export is gone, or that is gone itself.
    Withdrawn,
    /// The first that tells of an error of the server.
    Failed,
    /// A watch: all events up to the bookmark after the objects that there are.
    Initial,
}

impl Step {
    fn new(who: Who, request: Request) -> Self {
        Self { who, request, until: Until::Now }
    }

    /// Whether it is sent to a virtual workspace.
    pub fn is_virtual(&self) -> bool {
        self.request.path.starts_with("/services/")
    }

    fn admin(request: Request) -> Self {
        Self::new(Who::Admin, request)
    }

    #[must_use]
    fn until(mut self, until: Until) -> Self {
        self.until = until;
        self
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.who, self.request)?;
        if self.until == Until::Now { Ok(()) } else { write!(f, " ({:?})", self.until) }
    }
}

/// A path in a workspace.
fn inside(cluster: &str, rest: &str) -> String {
    format!("/clusters/{cluster}{rest}")
}

/// A path in the virtual workspace of the export.
fn view(cluster: &str, rest: &str) -> String {
    format!("/services/apiexport/{{P}}/{EXPORT}/clusters/{cluster}{rest}")
}

fn get(path: impl Into<String>) -> Request {
    Request::new("GET", path, Body::None)
}

fn post(path: impl Into<String>, body: serde_json::Value) -> Request {
    Request::new("POST", path, Body::Json(body))
}

fn merge(path: impl Into<String>, body: serde_json::Value) -> Request {
    Request::new("PATCH", path, Body::Json(body))
}

fn delete(path: impl Into<String>) -> Request {
    Request::new("DELETE", path, Body::None)
}
