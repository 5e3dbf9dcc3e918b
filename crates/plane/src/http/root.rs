//! What a request sees of the plane.

use std::sync::Arc;

use crate::api::Api;
use crate::auth::rbac;
use crate::caller::Caller;
use crate::extension::{ViewAdmit, ViewAuthorize, Visible};
use crate::request::{Attributes, Target};
use crate::resource::{Catalog, Resource};
use crate::status::Status;

/// What a request sees of the plane: a cluster or a virtual workspace.
pub(super) struct ApiRoot {
    pub(super) target: Target,
    pub(super) rest: String,
    /// In kcp, a path outside of all clusters.
    pub(super) is_outside: bool,
    pub(super) view: Option<View>,
}

/// A virtual workspace.
pub(super) struct View {
    pub(super) resources: Catalog,
    pub(super) visible: Visible,
    pub(super) authorize: ViewAuthorize,
    pub(super) admit: Option<ViewAdmit>,
    pub(super) passes: fn(&Resource) -> bool,
}

impl ApiRoot {
    /// A cluster, and the path within.
    pub(super) fn cluster(target: Target, rest: &str) -> Self {
        Self { target, rest: if rest.is_empty() { "/".into() } else { rest.into() }, is_outside: false, view: None }
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

    /// A served kind. Over all workspaces of kcp, bound kinds have the identity of their export behind their name: `widgets:<identity>`.
    pub(super) fn find(&self, api: &Api, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        if let (None, Target::All, Some((plural, identity))) = (&self.view, &self.target, plural.split_once(':')) {
            let found = api.extension()?.identified(group, plural, identity)?;
            return found.version(version).is_some_and(|version| version.served).then_some(found);
        }
        self.resources(api).find(group, version, plural).cloned()
    }

    pub(super) fn visible(&self, resource: &Resource) -> Option<Visible> {
        self.view.as_ref().filter(|view| !(view.passes)(resource)).map(|view| view.visible.clone())
    }

    pub(super) fn admit(&self) -> Option<ViewAdmit> {
        self.view.as_ref().and_then(|view| view.admit.clone())
    }

    /// Whether the caller may do this here.
    pub(super) fn authorize(&self, api: &Api, caller: &Caller, attributes: &Attributes) -> Result<(), Status> {
        match (&self.view, api.extension(), &self.target) {
            (Some(view), ..) => (view.authorize)(caller, attributes),
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
