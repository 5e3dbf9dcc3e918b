//! The verbs on one resource, used by the HTTP layer and by controllers in the same process.
//!
//! A write runs through: decode checks → prune → defaults → kind rules (`rules`) → extension admission → mutating webhooks (`admit`) →
//! validation → ownership (`managed`) → policies and validating webhooks → store. A read runs through: store → conversion → defaults →
//! extension decoration.

mod admit;
mod apply;
mod create;
mod decode;
mod delete;
mod fields;
mod managed;
mod merge;
mod meta;
mod patch;
mod read;
mod registry;
mod rules;
mod select;
mod strategic;
mod typed;
mod update;
mod versions;
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::admission::Configurations;
use crate::auth::accounts::Accounts;
use crate::auth::decision::{Decision, Verdict};
use crate::auth::escalation::{self, Grant};
use crate::auth::rbac::{self, Rights};
use crate::extension::{Attributes, Extension, Target, ViewAdmit, Visible};
use crate::plane::Mode;
use crate::resource::{Catalog, Resource, Version};
use crate::status::{Cause, Status};
use crate::store::{Key, Store};
use crate::webhook::HookClient;

pub(crate) use decode::go_type;
pub use delete::{DeleteOptions, Propagation};
pub use meta::{now, now_micro};
pub use patch::Patch;
pub(crate) use patch::custom_patches;
pub use read::{ListOptions, Listed, RevisionMatch};
pub(crate) use rules::CLEANUP_FINALIZER;
pub use select::{FieldSelector, LabelSelector};
pub(crate) use watch::bookmark;
pub use watch::{Event, EventKind, WatchOptions};

/// The annotation that names the logical cluster of an object; injected on output, never stored.
pub const CLUSTER_ANNOTATION: &str = carrick_kcp::CLUSTER_ANNOTATION;

/// Who makes a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// User name.
    pub user: String,
    /// User id, may be empty.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Extra attributes.
    pub extra: BTreeMap<String, Vec<String>>,
    /// The plane itself: bypasses admission and authorization.
    pub system: bool,
}

impl Caller {
    /// The plane itself.
    pub fn system() -> Self {
        Self { user: "system:apiserver".into(), groups: vec!["system:masters".into()], system: true, ..Self::default() }
    }

    /// Whether the caller is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|found| found == group)
    }
}

/// What a verb applies to: a kind in one version, in one or all clusters, perhaps in one namespace.
#[derive(Clone)]
pub struct Scope {
    /// The clusters.
    pub target: Target,
    /// The kind.
    pub resource: Arc<Resource>,
    /// Version of request and response bodies.
    pub version: Arc<str>,
    /// Namespace; empty for cluster-scoped kinds and for all namespaces.
    pub namespace: Arc<str>,
    /// Hides objects in virtual workspaces.
    pub visible: Option<Visible>,
    /// Reviews writes in virtual workspaces.
    pub admit: Option<ViewAdmit>,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("target", &self.target)
            .field("resource", &self.resource)
            .field("version", &self.version)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Scope {
    /// A kind in one cluster and all its namespaces.
    pub fn new(cluster: &str, resource: Arc<Resource>, version: &str) -> Self {
        Self {
            target: Target::One(cluster.into()),
            resource,
            version: version.into(),
            namespace: "".into(),
            visible: None,
            admit: None,
        }
    }

    /// The same in one namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The one cluster of this scope; requests for a named object across all clusters do not exist.
    pub fn cluster(&self) -> Result<&Arc<str>, Status> {
        match &self.target {
            Target::One(cluster) => Ok(cluster),
            Target::All => Err(Status::no_such_resource()),
        }
    }

    /// The version of this scope.
    pub fn version(&self) -> Result<&Version, Status> {
        self.resource.version(&self.version).ok_or_else(Status::page_not_found)
    }

    /// The `apiVersion` of responses.
    pub fn api_version(&self) -> String {
        self.resource.api_version(&self.version)
    }

    fn key(&self, name: &str) -> Result<Key, Status> {
        let namespace = if self.resource.namespaced { &*self.namespace } else { "" };
        Ok(Key::new(&self.resource.stored_kind(), self.cluster()?, namespace, name))
    }

    fn not_found(&self, name: &str) -> Status {
        Status::not_found(&self.resource.group, &self.resource.plural, name)
    }

    fn shows(&self, key: &Key, object: &Value) -> bool {
        self.visible.as_ref().is_none_or(|visible| visible(key, object))
    }
}

/// How strictly unknown fields are treated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and warn.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// Options of writes.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Do everything but store.
    pub dry_run: bool,
    /// Name in `managedFields`.
    pub manager: String,
    /// Unknown fields.
    pub validation: FieldValidation,
    /// Take ownership in conflicts of server-side apply.
    pub force: bool,
    /// Fields that occur twice in the body, found while decoding.
    pub duplicates: Vec<String>,
    /// What a strict YAML reader says about the body.
    pub strict: Option<String>,
    /// The options as they were sent, for webhooks and policies.
    pub sent: Value,
    /// Name in `managedFields` where a virtual workspace took the write, which then forwarded it under its own name.
    pub forwarded: Option<String>,
}

/// The response to a write.
#[derive(Debug, Clone)]
pub struct Written {
    /// 200 or 201.
    pub code: u16,
    /// The object as stored, in the version of the request, or a Status for a finished deletion.
    pub object: Value,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

/// The API of one plane.
pub struct Api {
    /// All objects.
    pub store: Arc<Store>,
    /// Service cluster or kcp.
    pub mode: Mode,
    /// The base address, such as `https://127.0.0.1:6443`.
    pub url: String,
    /// The certificate authority of the server, in PEM.
    pub ca_pem: String,
    /// Tokens of service accounts.
    pub accounts: Accounts,
    extension: Option<Arc<dyn Extension>>,
    registry: registry::Registry,
    configurations: Configurations,
    hooks: HookClient,
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
        let (accounts, registry) = (Accounts::new(mode), registry::Registry::new(mode));
        let (configurations, hooks) = (Configurations::new(&store), HookClient::default());
        Self { store, mode, url, ca_pem, accounts, extension, registry, configurations, hooks }
    }

    /// The extension that makes this plane kcp, if it has one.
    pub fn extension(&self) -> Option<&Arc<dyn Extension>> {
        self.extension.as_ref()
    }

    /// Whether a caller may do something in a cluster, and why.
    pub fn decide(&self, caller: &Caller, cluster: &str, attributes: &Attributes) -> Decision {
        match &self.extension {
            _ if caller.is_in("system:masters") => Decision::new(Verdict::Allow, ""),
            Some(extension) => extension.decide(self, caller, cluster, attributes),
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
    fn check_grant(&self, caller: &Caller, cluster: &str, grant: &Grant<'_>) -> Result<(), Status> {
        escalation::check(&self.store, &self.rights(caller, cluster), caller, grant)
    }

    /// The violations of a schema, in the wording of the server that is emulated.
    fn checked(&self, causes: Vec<Cause>) -> Vec<Cause> {
        if self.mode == Mode::Kube { causes } else { causes.into_iter().map(Cause::without_type).collect() }
    }

    /// All kinds of a cluster: built-ins, those of the extension, CRDs.
    pub fn resources(&self, cluster: &str) -> Catalog {
        let extended = self.extension.as_ref().map(|extension| extension.resources(cluster));
        self.registry.catalog(&self.store, cluster, extended)
    }

    /// A served kind by group, version and plural.
    pub fn find(&self, cluster: &str, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.resources(cluster).find(group, version, plural).cloned()
    }

    /// A kind by group and plural, in its storage version, for controllers.
    pub fn scope(&self, cluster: &str, group: &str, plural: &str) -> Option<Scope> {
        let resource = self.resources(cluster).named(group, plural).cloned()?;
        let version = resource.storage_version()?.name.clone();
        Some(Scope::new(cluster, resource, &version))
    }
}
