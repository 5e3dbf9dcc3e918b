//! Namespaces of many workspaces: those that the provider is asked for, and those that are given up.

use std::collections::{BTreeMap, BTreeSet};

use carrick_bind_api::names::{CONSUMER_CLUSTER_ANNOTATION, CONSUMER_NAMESPACE_ANNOTATION};
use carrick_bind_api::v1alpha2::ApiServiceNamespace;
use carrick_client::DeleteOptions;
use carrick_sync::executor::refusal::Access;
use serde_json::json;

use super::hub::Hub;
use super::layout::{Layout, consumer_namespaces, service_namespaces};
use super::namespaces::{shared_ownership, unless_settled};
use super::outcome::{Outcome, Trouble};
use crate::agent::workspaces::Workspaces;
use crate::decide::objects::SyncMode;
use crate::decide::tenant_namespaces::{TenantNamespacesView, decide};
use crate::decide::tenants::FlatKeys;

impl Hub {
    /// Decides about the namespaces of all workspaces, and carries that out.
    pub async fn sync_tenant_namespaces(&self, layout: &Layout, workspaces: &Workspaces) -> Result<Outcome, Trouble> {
        let flat = &FlatKeys::new(&self.contract);
        let Some(assigned) = self.service_namespaces() else { return Ok(Outcome::Unknown) };
        let needed = self.needed_by_tenants(layout, workspaces);
        let gone = self.perhaps_gone(&assigned, layout, workspaces);
        let plan = decide(&TenantNamespacesView { assigned: &assigned, flat, needed: &needed, gone: &gone });
        *self.refused.lock() = plan.refused;
        self.tell();
        let (ours, contract) = (service_namespaces(&self.contract), Some(self.contract.as_str()));
        for (name, cluster, namespace) in &plan.ask_for {
            let mut object = self.asked_for(name, layout);
            object["metadata"]["annotations"] =
                json!({CONSUMER_CLUSTER_ANNOTATION: cluster, CONSUMER_NAMESPACE_ANNOTATION: namespace});
            let asked = self.provider.create(&ours.resource, contract, &object).await;
            unless_settled(asked.map(|object| self.wrote(&ours, &object)), Access::Create)?;
        }
        for (name, uid) in plan.give_up {
            if !self.is_gone_for_certain(&name, workspaces).await? {
                continue;
            }
            // The provider deletes its namespace then, and all copies in it.
            let options = DeleteOptions { uid: Some(uid), ..DeleteOptions::default() };
            let deleted = self.provider.delete(&ours.resource, contract, &name, &options).await;
            unless_settled(deleted, Access::Delete)?;
        }
        for object in assigned.iter().filter(|object| needed.contains_key(&object.metadata.name)) {
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

    /// The namespaces with objects that travel, in workspaces that can be reached.
    fn needed_by_tenants(&self, layout: &Layout, workspaces: &Workspaces) -> BTreeMap<String, (String, String)> {
        let mut needed = BTreeMap::new();
        for api in layout.apis.values().filter(|api| api.mode == SyncMode::Keep) {
            if let Some(watched) = self.watched(&api.consumer) {
                needed.extend(watched.store.namespaces());
            }
        }
        let pending = self.pending.lock();
        needed.extend(pending.values().filter_map(|pending| Some((pending.flat.clone(), pending.tenant.clone()?))));
        drop(pending);
        // Of a workspace that has ended, nothing travels any more.
        needed.retain(|_, (cluster, _)| !workspaces.has_ended(cluster));
        needed
    }

    /// Namespaces that may be gone: of workspaces that have ended, and those that a workspace does not show among its others.
    fn perhaps_gone(
        &self,
        assigned: &[ApiServiceNamespace],
        layout: &Layout,
        workspaces: &Workspaces,
    ) -> BTreeSet<String> {
        // What is not listed yet may still be there.
        if layout.apis.values().any(|api| self.synced(&api.consumer).is_none()) {
            return BTreeSet::new();
        }
        let shown = self.watched(&consumer_namespaces()).map(|watched| watched.store.objects()).unwrap_or_default();
        let shown: BTreeSet<(&str, &str)> = shown.iter().map(|it| (&*it.cluster, &*it.name)).collect();
        let is_gone = |(cluster, namespace): &(String, String)| {
            // Every workspace has this namespace: one that does not show it lets us see some of its namespaces or none, so that a missing one proves
            // nothing.
            let shows_all = || shown.contains(&(cluster.as_str(), "default"));
            workspaces.has_ended(cluster) || shows_all() && !shown.contains(&(cluster.as_str(), namespace.as_str()))
        };
        let names = assigned.iter().map(|object| object.metadata.name.clone());
        names.filter(|name| self.tenant_of_namespace(name).is_some_and(|tenant| is_gone(&tenant))).collect()
    }

    /// Whether a namespace is gone for certain: its workspace has ended, or says so itself.
    async fn is_gone_for_certain(&self, flat: &str, workspaces: &Workspaces) -> Result<bool, Trouble> {
        let Some((cluster, namespace)) = self.tenant_of_namespace(flat) else { return Ok(false) };
        if workspaces.has_ended(&cluster) {
            return Ok(true);
        }
        let Some(client) = workspaces.client(&cluster) else { return Ok(false) };
        let path = consumer_namespaces().resource.object_path(None, &namespace, None);
        match client.raw_get(&path).await {
            Err(error) if error.is_missing(&namespace) => Ok(true),
            Err(error) => Err(Trouble::request(&error)),
            Ok(_) => Ok(false),
        }
    }
}
