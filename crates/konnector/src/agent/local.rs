//! What there is on the consumer's cluster: bindings, bundles, CRDs, and the Secrets that they name.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_bind_api::kinds::{API_SERVICE_BINDING, API_SERVICE_BINDING_BUNDLE};
use carrick_bind_api::names::{KONNECTOR_NAMESPACE, KUBECONFIG_KEY, PROVIDER_KUBECONFIG_LABEL};
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle, SecretKeyReference};
use carrick_client::Client;
use carrick_client::watch::WatchOptions;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::cache::Cache;
use super::export::Export;
use super::notifier::Notifier;
use super::resources;
use super::secrets::Secrets;
use crate::decide::Seen;

/// What there is on the consumer's cluster.
pub struct Local {
    /// The cluster.
    pub client: Client,
    /// Rings whenever something here changes.
    pub notifier: Notifier,
    /// APIServiceBindings.
    pub bindings: Arc<Cache>,
    /// APIServiceBindingBundles.
    pub bundles: Arc<Cache>,
    /// CRDs, their metadata only: a cluster may have hundreds, and most are nobody's business here.
    crds: Arc<Cache>,
    /// CRDs that were needed as a whole, by name.
    whole: Mutex<BTreeMap<String, Arc<Value>>>,
    /// Secrets with the label that starts heartbeats.
    labelled: Arc<Cache>,
    /// Secrets that bindings and bundles name: no other one is looked at.
    secrets: Secrets,
    /// The APIExport that takes the place of CRDs, if workspaces are the consumers.
    pub export: Option<Arc<Export>>,
}

impl Local {
    /// Begins to watch.
    pub fn start(client: Client, slice: Option<&str>, stop: &CancellationToken) -> Arc<Self> {
        let notifier = Notifier::default();
        let follow = |what: &str, client: Client, resource, options| {
            let cache = Cache::new(what, &notifier);
            tokio::spawn(Arc::clone(&cache).follow(client, resource, options, stop.clone()));
            cache
        };
        let all = WatchOptions::default;
        let label = WatchOptions {
            namespace: Some(KONNECTOR_NAMESPACE.to_owned()),
            ..WatchOptions::labels(format!("{PROVIDER_KUBECONFIG_LABEL}=true"))
        };
        let (binding, bundle) = (resources::of(API_SERVICE_BINDING), resources::of(API_SERVICE_BINDING_BUNDLE));
        Arc::new(Self {
            bindings: follow("APIServiceBindings", client.clone(), binding, all()),
            bundles: follow("APIServiceBindingBundles", client.clone(), bundle, all()),
            crds: follow("CustomResourceDefinitions", client.metadata_only(), resources::crds(), all()),
            labelled: follow("labelled Secrets", client.clone(), resources::secrets(), label),
            whole: Mutex::default(),
            secrets: Secrets::new(client.clone(), &notifier, stop),
            export: slice.map(|slice| Export::start(&client, slice, &notifier, stop)),
            notifier,
            client,
        })
    }

    /// Whether everything was read once; before that nobody knows what is wanted.
    pub fn has_synced(&self) -> bool {
        // Labelled Secrets are a convenience: without them bindings work all the same.
        [&self.bindings, &self.bundles, &self.crds].iter().all(|cache| cache.has_synced())
            && self.export.as_ref().is_none_or(|export| export.has_synced())
    }

    /// The bindings of a kubeconfig.
    pub fn bindings_of(&self, at: &SecretKeyReference) -> Vec<ApiServiceBinding> {
        let mut bindings = self.bindings.all::<ApiServiceBinding>();
        bindings.retain(|binding| binding.spec.kubeconfig_secret_ref == *at);
        bindings
    }

    /// The bundles of a kubeconfig.
    pub fn bundles_of(&self, at: &SecretKeyReference) -> Vec<ApiServiceBindingBundle> {
        let mut bundles = self.bundles.all::<ApiServiceBindingBundle>();
        bundles.retain(|bundle| bundle.spec.kubeconfig_secret_ref == *at);
        bundles
    }

    /// Every kubeconfig that somebody here names, in the order of their names.
    pub fn kubeconfigs(&self) -> Vec<SecretKeyReference> {
        let bindings = self.bindings.all::<ApiServiceBinding>().into_iter().map(|it| it.spec.kubeconfig_secret_ref);
        let bundles = self.bundles.all::<ApiServiceBindingBundle>().into_iter().map(|it| it.spec.kubeconfig_secret_ref);
        let labelled = self.labelled.objects();
        let labelled = labelled.iter().map(|it| SecretKeyReference::new(&*it.namespace, &*it.name, KUBECONFIG_KEY));
        let mut all: Vec<_> = bindings.chain(bundles).chain(labelled).collect();
        all.sort_by(|a, b| (&a.namespace, &a.name, &a.key).cmp(&(&b.namespace, &b.name, &b.key)));
        all.dedup();
        all
    }

    /// Watches the Secrets of these kubeconfigs and no others.
    pub fn watch_secrets(&self, kubeconfigs: &[SecretKeyReference]) {
        self.secrets.watch(kubeconfigs);
    }

    /// The Secret of a kubeconfig.
    pub fn secret(&self, at: &SecretKeyReference) -> Seen<Value> {
        self.secrets.get(at)
    }

    /// Whether the Secret of a kubeconfig has not been read yet, for no bad reason.
    pub fn is_secret_pending(&self, at: &SecretKeyReference) -> bool {
        self.secrets.is_pending(at)
    }

    /// Whether a CRD is known to be here.
    pub fn has_crd(&self, name: &str) -> bool {
        matches!(self.crds.get("", name), Seen::Present(_))
    }

    /// The metadata of all CRDs.
    pub fn crd_metadata(&self) -> Vec<Value> {
        self.crds.objects().iter().map(carrick_client::Object::value).collect()
    }

    /// Those of these CRDs that exist, each as a whole.
    pub async fn crds(&self, names: impl IntoIterator<Item = String>) -> Result<BTreeMap<String, Value>, String> {
        if let Some(export) = &self.export {
            return export.crds(names).await;
        }
        let mut found = BTreeMap::new();
        for name in names {
            let Seen::Present(known) = self.crds.get("", &name) else {
                self.whole.lock().remove(&name);
                continue;
            };
            let kept = self.whole.lock().get(&name).cloned();
            let current = |crd: &Arc<Value>| crd["metadata"]["resourceVersion"] == *known.resource_version;
            let whole = match kept.filter(current) {
                Some(whole) => whole,
                None => {
                    match self.client.get(&resources::crds(), None, &name).await.map_err(|error| error.to_string())? {
                        Some(crd) => Arc::new(crd),
                        None => continue,
                    }
                }
            };
            self.whole.lock().insert(name.clone(), Arc::clone(&whole));
            found.insert(name, Value::clone(&whole));
        }
        Ok(found)
    }

    /// Names of the CRDs that a binding owns.
    pub fn crds_of(&self, binding: &ApiServiceBinding) -> Seen<Vec<(String, String)>> {
        if let Some(export) = &self.export {
            return export.crds_of(binding);
        }
        if let Some(why) = self.crds.unknown() {
            return Seen::Unknown(why);
        }
        let uid = binding.metadata.uid.as_str();
        let owned = |crd: &Value| {
            let mut owners = crd["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners.any(|owner| owner["uid"] == uid && owner["controller"] == true)
        };
        let all = self.crds.objects();
        let owned = all.iter().filter(|crd| owned(&crd.value()));
        Seen::Present(owned.map(|crd| (crd.name.to_string(), crd.uid.to_string())).collect())
    }
}
