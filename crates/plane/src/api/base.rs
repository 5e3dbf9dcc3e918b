//! The API of one plane: what all verbs need.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::registry::Registry;
use super::scope::Scope;
use crate::admission::Configurations;
use crate::auth::accounts::Accounts;
use crate::auth::decision::{Decision, Verdict};
use crate::auth::escalation::{self, Grant};
use crate::auth::rbac::{self, Rights};
use crate::caller::Caller;
use crate::config::Mode;
use crate::extension::Extension;
use crate::release::Release;
use crate::request::Attributes;
use crate::resource::Catalog;
use crate::status::{Cause, Status};
use crate::store::Store;
use crate::webhook::HookClient;

/// The API of one plane.
pub struct Api {
    /// All objects.
    pub store: Arc<Store>,
    /// Service cluster or kcp.
    pub mode: Mode,
    /// The release of Kubernetes that answers.
    pub release: Release,
    /// The base address, such as `https://127.0.0.1:6443`.
    pub url: String,
    /// The certificate authority of the server, in PEM.
    pub ca_pem: String,
    /// Tokens of service accounts.
    pub accounts: Accounts,
    pub(super) extension: Option<Arc<dyn Extension>>,
    registry: Registry,
    /// Held while the names of a CRD are compared with those of others and stored: of two that come at one moment, one gets a name.
    pub(super) naming: Mutex<()>,
    pub(super) configurations: Configurations,
    pub(super) hooks: HookClient,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("mode", &self.mode).field("url", &self.url).finish_non_exhaustive()
    }
}

impl Api {
    /// The API over a store.
    pub fn new(
        store: Arc<Store>,
        mode: Mode,
        url: String,
        ca_pem: String,
        extension: Option<Arc<dyn Extension>>,
    ) -> Self {
        let (accounts, registry) = (Accounts::new(mode), Registry::new(mode));
        let (configurations, hooks) = (Configurations::new(&store), HookClient::default());
        Self {
            store,
            mode,
            release: mode.release(),
            url,
            ca_pem,
            accounts,
            extension,
            registry,
            naming: Mutex::default(),
            configurations,
            hooks,
        }
    }

    /// The extension that makes this plane kcp, if it has one.
    pub fn extension(&self) -> Option<&Arc<dyn Extension>> {
        self.extension.as_ref()
    }

    /// Whether a caller may do something in a cluster, and why.
    pub fn decide(&self, caller: &Caller, cluster: &str, attributes: &Attributes) -> Decision {
        match &self.extension {
            _ if caller.is_in("system:masters") => Decision::new(Verdict::Allow, ""),
            Some(extension) => extension.decide(caller, cluster, attributes),
            None => rbac::decide(&self.store, &self.rights(caller, cluster), attributes),
        }
    }

    /// The rules that apply to a caller in a cluster, cluster-wide or in one namespace, and errors about roles that do not exist.
    pub fn rules(&self, caller: &Caller, cluster: &str, namespace: &str) -> (Vec<Value>, Vec<String>) {
        rbac::rules(&self.store, &self.rights(caller, cluster), namespace)
    }

    fn rights<'a>(&self, caller: &'a Caller, cluster: &'a str) -> Rights<'a> {
        match &self.extension {
            Some(extension) => extension.rights(caller, cluster),
            None => Rights::plain(caller, cluster),
        }
    }

    /// Refuses to grant more rights than the caller has.
    pub(super) fn check_grant(&self, caller: &Caller, cluster: &str, grant: &Grant<'_>) -> Result<(), Status> {
        escalation::check(&self.store, &self.rights(caller, cluster), caller, grant)
    }

    /// The violations of a schema, in the wording of the server that is emulated.
    pub(super) fn checked(&self, causes: Vec<Cause>) -> Vec<Cause> {
        if self.release.shows_values_of_rules() {
            causes.into_iter().map(Cause::without_type).collect()
        } else {
            causes
        }
    }

    /// All kinds of a cluster: built-ins, those of the extension, CRDs.
    pub fn resources(&self, cluster: &str) -> Catalog {
        let extended = self.extension.as_ref().map(|extension| extension.resources(cluster));
        self.registry.catalog(&self.store, cluster, extended)
    }

    /// A kind by group and plural, in its storage version, for controllers.
    pub fn scope(&self, cluster: &str, group: &str, plural: &str) -> Option<Scope> {
        let resource = self.resources(cluster).named(group, plural).cloned()?;
        let version = resource.storage_version()?.name.clone();
        Some(Scope::new(cluster, resource, &version))
    }
}
