//! Namespaces: those that the provider is asked for, those that it wants here, those that are given up.

use std::collections::{BTreeMap, BTreeSet};

use carrick_bind_api::carrick_kcp::meta::ObjectMeta;
use carrick_bind_api::kinds::{API_SERVICE_EXPORT, API_SERVICE_NAMESPACE};
use carrick_bind_api::names::Owner;
use carrick_bind_api::v1alpha2::ApiServiceNamespace;
use carrick_client::{Client, DeleteOptions, Error, Object};
use carrick_sync::executor::refusal::{Access, is_settled};
use serde_json::{Value, json};

use super::hub::Hub;
use super::layout::{Layout, consumer_namespaces, service_namespaces};
use super::outcome::{Outcome, Trouble};
use crate::decide::Seen;
use crate::decide::namespaces::{NamespacesView, decide};
use crate::decide::objects::SyncMode;

/// Whether a request had the wished effect, even if somebody else was faster.
pub(super) fn unless_settled(result: Result<(), Error>, access: Access) -> Result<(), Trouble> {
    match result {
        Err(error) if !is_settled(&error, access) => Err(Trouble::request(&error)),
        _ => Ok(()),
    }
}

impl Hub {
    /// Decides about all namespaces, and carries that out.
    pub async fn sync_namespaces(&self, layout: &Layout, consumer: &Client) -> Result<Outcome, Trouble> {
        let Some(assigned) = self.service_namespaces() else { return Ok(Outcome::Unknown) };
        let here = self.synced(&consumer_namespaces()).map(|watched| metadata(&watched.store.objects()));
        let seen = here.as_ref().map_or_else(|| Seen::Unknown("not listed yet".to_owned()), Seen::Present);
        let needed = self.needed(layout);
        let plan =
            decide(&NamespacesView { assigned: &assigned, here: seen, needed: &needed, contract: &self.contract });
        *self.refused.lock() = plan.refused;
        self.tell();
        let (ours, theirs) = (service_namespaces(&self.contract), consumer_namespaces());
        let contract = Some(self.contract.as_str());
        for name in &plan.ask_for {
            let asked = self.provider.create(&ours.resource, contract, &self.asked_for(name, layout)).await;
            unless_settled(asked.map(|object| self.wrote(&ours, &object)), Access::Create)?;
        }
        for namespace in &plan.create {
            let created = consumer.create(&theirs.resource, None, namespace).await;
            unless_settled(created.map(drop), Access::Create)?;
        }
        for (name, uid) in plan.give_up {
            // The provider deletes its namespace then, and all copies in it.
            let path = theirs.resource.object_path(None, &name, None);
            match consumer.raw_get(&path).await {
                Err(error) if error.is_missing(&name) => {}
                Err(error) => return Err(Trouble::request(&error)),
                Ok(_) => continue,
            }
            let options = DeleteOptions { uid: Some(uid), ..DeleteOptions::default() };
            let deleted = self.provider.delete(&ours.resource, contract, &name, &options).await;
            unless_settled(deleted, Access::Delete)?;
        }
        for object in assigned.iter().filter(|object| needed.contains(&object.metadata.name)) {
            if let Some(patch) = shared_ownership(object, layout) {
                let name = &object.metadata.name;
                let patched = self.provider.merge_patch(&ours.resource, contract, name, &patch).await;
                unless_settled(patched.map(|object| self.wrote(&ours, &object)), Access::Change)?;
            }
        }
        if !plan.ask_for.is_empty() {
            self.lay_out_anew();
        }
        Ok(Outcome::Settled)
    }

    /// The namespaces in which the consumer has objects that travel.
    fn needed(&self, layout: &Layout) -> BTreeSet<String> {
        let mut needed: BTreeSet<String> = self.pending.lock().values().map(|pending| pending.flat.clone()).collect();
        for api in layout.apis.values().filter(|api| api.mode == SyncMode::Keep) {
            if let Some(watched) = self.watched(&api.consumer) {
                needed.extend(watched.store.keys().into_iter().filter_map(|key| key.namespace));
            }
        }
        needed
    }

    /// What is asked for. All exports own it, so that it lives as long as one of them.
    pub fn asked_for(&self, name: &str, layout: &Layout) -> Value {
        let mut object = json!({
            "apiVersion": API_SERVICE_NAMESPACE.api_version(), "kind": API_SERVICE_NAMESPACE.kind,
            "metadata": {"name": name, "namespace": self.contract},
        });
        let mut owners: Vec<Value> = layout.exports.iter().map(|(name, uid)| owner(name, uid)).collect();
        if let Some(first) = owners.first_mut() {
            first["controller"] = json!(true);
            object["metadata"]["ownerReferences"] = json!(owners);
        }
        object
    }
}

/// The patch that lets all exports own a namespace that the consumer has asked for.
pub(super) fn shared_ownership(object: &ApiServiceNamespace, layout: &Layout) -> Option<Value> {
    let metadata = &object.metadata;
    let known: BTreeSet<&str> = metadata.owner_references.iter().map(|owner| owner.uid.as_str()).collect();
    let missing: Vec<Value> = layout
        .exports
        .iter()
        .filter(|(_, uid)| !known.contains(uid.as_str()))
        .map(|(name, uid)| owner(name, uid))
        .collect();
    if missing.is_empty() || metadata.is_deleting() || object.owner() != Owner::Consumer {
        return None;
    }
    let mut owners: Vec<Value> = metadata.owner_references.iter().map(|owner| json!(owner)).collect();
    owners.extend(missing);
    Some(json!({"metadata": {"resourceVersion": metadata.resource_version, "ownerReferences": owners}}))
}

fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": API_SERVICE_EXPORT.api_version(), "kind": API_SERVICE_EXPORT.kind, "name": name, "uid": uid})
}

fn metadata(objects: &[Object]) -> BTreeMap<String, ObjectMeta> {
    let read = |object: &Object| {
        let metadata = serde_json::from_value(object.value()["metadata"].clone()).ok()?;
        Some((object.name.to_string(), metadata))
    };
    objects.iter().filter_map(read).collect()
}
