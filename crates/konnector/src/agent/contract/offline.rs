//! A contract whose kubeconfig cannot be used: bindings and bundles say why, and nothing else happens.

use std::collections::BTreeMap;

use carrick_bind_api::claims::Accepted;
use carrick_bind_api::existing::Existing;
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::names::BINDING_FINALIZER;
use carrick_bind_api::secret::SecretError;
use carrick_bind_api::v1alpha2::SecretKeyReference;

use super::bundles::written;
use super::pace::PassResult;
use super::unbinding;
use crate::agent::context::Context;
use crate::decide::Seen;
use crate::decide::binding::{BindingView, decide};
use crate::decide::bundle::{self, BundleView};

/// Tells everybody who names this kubeconfig.
pub(super) async fn pass(context: &Context, at: &SecretKeyReference, error: &SecretError) -> PassResult {
    let now = Timestamp::now();
    let mut outcome = PassResult::default();
    let (nothing, refused) = (BTreeMap::new(), BTreeMap::new());
    let bundles = context.local.bundles_of(at);
    for mut binding in context.local.bindings_of(at) {
        if binding.metadata.is_deleting() {
            if binding.metadata.has_finalizer(BINDING_FINALIZER) {
                outcome.add(unbinding::step(context, binding, Seen::Unknown(error.to_string()), None, now).await);
            }
            continue;
        }
        let existing = Existing::of_binding(&binding, &bundles);
        let view = BindingView {
            binding: &binding,
            contract: Err(error.clone()),
            provider: None,
            changed: None,
            heartbeat: None,
            existing: &existing,
            // Nothing is known of its claims.
            accepted: &Accepted::All,
            objects: None,
            released: false,
            refused: &refused,
            export: Seen::Unknown(error.to_string()),
            request: None,
            schemas: Seen::Unknown(error.to_string()),
            crds: &nothing,
            now,
        };
        if let Some(status) = decide(&view).status {
            binding.status = status;
            let name = binding.metadata.name.clone();
            outcome.add(written(context.writer.status(&binding).await, "APIServiceBinding", &name));
        }
    }
    for mut bundle in bundles {
        let view = BundleView {
            bundle: &bundle,
            contract: Err(error.clone()),
            exports: Seen::Unknown(error.to_string()),
            leaving: &[],
            confirmed: false,
            bindings: &[],
            failed: &[],
            now,
        };
        if let Some(status) = bundle::decide(&view).status {
            bundle.status = status;
            let name = bundle.metadata.name.clone();
            outcome.add(written(context.writer.status(&bundle).await, "APIServiceBindingBundle", &name));
        }
    }
    outcome
}
