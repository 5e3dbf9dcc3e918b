//! What is configured in a cluster, compiled and kept up to date.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::Value;

use super::hook::{self, Calls, Webhook};
use super::params::{ParamKind, ParamSource};
use super::policy::{Policy, Surroundings};
use super::request::AdmissionRequest;
use crate::resource::groups::ADMISSION;
use crate::resource::{Catalog, Resource};
use crate::status::Status;
use crate::store::{Key, Kind, Store};
use crate::webhook::{HookClient, Resolve};

const KINDS: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
];

/// The revisions at which the four kinds changed last.
type Stamp = [u64; 4];
/// Configurations by cluster.
type Cache = HashMap<Arc<str>, (Stamp, Arc<Configured>)>;

/// What is configured, by cluster.
pub(crate) struct Configurations {
    kinds: [Kind; 4],
    /// Whether anybody has ever configured anything.
    used: AtomicBool,
    /// Whether any of it is a webhook.
    calls: AtomicBool,
    cache: Mutex<Cache>,
}

impl Configurations {
    /// What a store holds.
    pub(crate) fn new(store: &Store) -> Self {
        let kinds = KINDS.map(|plural| Kind::new(ADMISSION, plural));
        let stored = store.all_kinds();
        let has = |kinds: &[Kind]| kinds.iter().any(|kind| stored.contains(kind));
        let defined = [
            Kind::new("apiextensions.k8s.io", "customresourcedefinitions"),
            Kind::new("apis.kcp.io", "apiresourceschemas"),
        ];
        let converts = || {
            let mut all = defined.iter().flat_map(|kind| store.list(kind, None, None).1);
            all.any(|(_, object)| object.text().contains(r#""strategy":"Webhook""#))
        };
        let (used, calls) = (has(&kinds).into(), (has(&kinds[2..]) || converts()).into());
        Self { kinds, used, calls, cache: Mutex::default() }
    }

    /// Takes note that an object is about to be stored.
    pub(crate) fn expect(&self, resource: &Resource, object: &Value) {
        let defines = matches!(&*resource.plural, "customresourcedefinitions" | "apiresourceschemas");
        if defines && object["spec"]["conversion"]["strategy"] == "Webhook" {
            self.calls.store(true, Ordering::Release);
        }
        if *resource.group == *ADMISSION {
            self.used.store(true, Ordering::Release);
            if resource.plural.ends_with("webhookconfigurations") {
                self.calls.store(true, Ordering::Release);
            }
        }
    }

    /// Whether anything may be configured anywhere.
    pub(crate) fn are_used(&self) -> bool {
        self.used.load(Ordering::Acquire)
    }

    /// Whether webhooks may be called.
    pub(crate) fn call_webhooks(&self) -> bool {
        self.calls.load(Ordering::Acquire)
    }

    /// What is configured in a cluster.
    pub(crate) fn of(&self, store: &Store, cluster: &str) -> Arc<Configured> {
        let stamp = self.kinds.each_ref().map(|kind| store.touched(kind, cluster));
        if let Some((at, configured)) = self.cache.lock().get(cluster)
            && *at == stamp
        {
            return configured.clone();
        }
        let list = |at: usize| -> Vec<Arc<Value>> {
            if stamp[at] == 0 {
                return Vec::new();
            }
            let mut all = store.list(&self.kinds[at], Some(cluster), None).1;
            all.sort_by(|a, b| a.0.name.cmp(&b.0.name));
            all.into_iter().map(|(_, object)| object.value()).collect()
        };
        let hooks = |at: usize| -> Vec<Webhook> {
            let all = list(at);
            let hooks = all.iter().filter_map(|config| config["webhooks"].as_array()).flatten();
            hooks.map(Webhook::read).collect()
        };
        let bindings = list(1);
        let policies = list(0).iter().map(|policy| Policy::read(policy, &bindings)).filter(Policy::is_bound).collect();
        let configured = Arc::new(Configured { policies, mutating: hooks(2), validating: hooks(3) });
        self.cache.lock().insert(cluster.into(), (stamp, configured.clone()));
        configured
    }
}

/// The configuration of one cluster.
#[derive(Debug)]
pub(crate) struct Configured {
    policies: Vec<Policy>,
    mutating: Vec<Webhook>,
    validating: Vec<Webhook>,
}

/// What surrounds a request: where it is, where its configuration comes from, and how webhooks are called.
pub(crate) struct Around<'a> {
    pub(crate) store: &'a Store,
    /// The cluster of the object.
    pub(crate) cluster: &'a str,
    /// The cluster of the configuration.
    pub(crate) source: &'a str,
    /// The kinds of the configuration's cluster.
    pub(crate) resources: &'a dyn Fn() -> Catalog,
    /// Converts an object of the request to another version of its kind.
    pub(crate) convert: &'a dyn Fn(&Value, &str) -> Result<Value, String>,
    pub(crate) client: &'a HookClient,
    pub(crate) resolve: Resolve<'a>,
}

impl Configured {
    /// Whether any webhook may change objects.
    pub(crate) fn mutates(&self) -> bool {
        !self.mutating.is_empty()
    }

    /// Whether anything may object to a request.
    pub(crate) fn validates(&self) -> bool {
        !(self.policies.is_empty() && self.validating.is_empty())
    }

    /// Lets webhooks change an object; null on deletion.
    pub(crate) fn mutate(
        &self,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        around: &Around<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let calls = Calls { client: around.client, resolve: around.resolve };
        around.with(|surroundings| hook::mutate(&self.mutating, request, object, surroundings, &calls, warnings))
    }

    /// Asks policies and webhooks whether a request may go on.
    pub(crate) fn validate(
        &self,
        request: &AdmissionRequest<'_>,
        object: &Value,
        around: &Around<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let calls = Calls { client: around.client, resolve: around.resolve };
        around.with(|surroundings| {
            let mut first = None;
            for policy in &self.policies {
                first = first.or(policy.review(request, object, surroundings, warnings).err());
            }
            first.map_or(Ok(()), Err)?;
            hook::validate(&self.validating, request, object, surroundings, &calls, warnings)
        })
    }
}

impl Around<'_> {
    fn with<T>(&self, run: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        let kind = Kind::new("", "namespaces");
        let namespaces =
            |name: &str| self.store.get(&Key::new(&kind, self.cluster, "", name)).map(|found| found.object);
        run(&Surroundings { namespaces: &namespaces, params: self, convert: self.convert })
    }

    fn param_resource(&self, kind: &ParamKind) -> Option<Arc<Resource>> {
        let fits = |resource: &&Arc<Resource>| {
            *resource.group == *kind.group
                && *resource.kind == *kind.kind
                && resource.version(&kind.version).is_some_and(|version| version.served)
        };
        (self.resources)().iter().find(fits).cloned()
    }

    /// A parameter in the version that its policy asks for.
    fn shown(resource: &Resource, kind: &ParamKind, object: Arc<Value>) -> Arc<Value> {
        let version = resource.api_version(&kind.version);
        if object["apiVersion"] == *version {
            return object;
        }
        let mut object = Arc::unwrap_or_clone(object);
        object["apiVersion"] = version.into();
        Arc::new(object)
    }
}

impl ParamSource for Around<'_> {
    fn knows(&self, kind: &ParamKind) -> bool {
        self.param_resource(kind).is_some()
    }

    fn is_namespaced(&self, kind: &ParamKind) -> bool {
        self.param_resource(kind).is_some_and(|resource| resource.namespaced)
    }

    fn get(&self, kind: &ParamKind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let resource = self.param_resource(kind)?;
        let key = Key::new(&resource.stored_kind(), self.source, namespace, name);
        self.store.get(&key).map(|found| Self::shown(&resource, kind, found.object))
    }

    fn list(&self, kind: &ParamKind, namespace: &str) -> Vec<Arc<Value>> {
        let Some(resource) = self.param_resource(kind) else { return Vec::new() };
        let namespace = resource.namespaced.then_some(namespace);
        let all = self.store.list(&resource.stored_kind(), Some(self.source), namespace).1;
        all.into_iter().map(|(_, object)| Self::shown(&resource, kind, object.value())).collect()
    }
}
