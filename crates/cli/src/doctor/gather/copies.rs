//! Copies on the service cluster, and whether their orders exist.

use std::collections::BTreeSet;

use carrick_client::{Client, Error, ListOptions, Object, Resource};
use carrick_syncagent::agent::catalog::Catalog;
use carrick_syncagent::api::{AGENT_NAME, REMOTE_RESOURCE, REMOTE_WORKSPACE_PATH};
use carrick_syncagent::rules::metadata::{SourceKey, source_of};
use carrick_syncagent::rules::{ApiKind, Rules};

use crate::doctor::facts::{KindCopies, KnownCopy};

/// The copies of all published kinds, as far as both sides can be listed.
pub async fn copies(catalog: &Catalog, own: &str, local: &Client, consumers: &[Client]) -> Vec<KindCopies> {
    let mut found = Vec::new();
    for rules in catalog.entries.values().filter_map(|entry| entry.rules.as_ref().ok()) {
        let same = catalog.entries.values().filter_map(|entry| entry.rules.as_ref().ok());
        let alone = same.filter(|other| other.local == rules.local).count() == 1;
        // What cannot be read is reported by the checks of rights and endpoints.
        if let Ok(copies) = of_kind(rules, alone, own, local, consumers).await {
            found.push(KindCopies { resource: rules.local.resource(), copies });
        }
    }
    found
}

async fn of_kind(
    rules: &Rules,
    alone: bool,
    own: &str,
    local: &Client,
    consumers: &[Client],
) -> Result<Vec<KnownCopy>, Error> {
    let marked = ListOptions { label_selector: Some(AGENT_NAME.to_owned()), ..ListOptions::default() };
    // Copies first: an order that is placed in between has no copy in the list.
    let copies = local.list_compact(&resource(&rules.local), None, &marked).await?;
    let mut orders = BTreeSet::new();
    for consumer in consumers {
        for order in consumer.list_compact(&resource(&rules.remote), None, &ListOptions::default()).await? {
            let Object { cluster, namespace, name, .. } = order;
            orders.insert(SourceKey { cluster, namespace, name });
        }
    }
    let known = copies.iter().filter(|copy| !copy.is_deleting()).filter_map(|copy| {
        let source = source_of(&copy.value())?;
        let agent = copy.label(AGENT_NAME).unwrap_or_default();
        // Copies of kcp's own agent do not name the resource they were made for.
        match copy.annotation(REMOTE_RESOURCE) {
            Some(made_for) if *made_for != *rules.remote.resource() => return None,
            None if !alone => return None,
            _ => {}
        }
        let path = copy.annotation(REMOTE_WORKSPACE_PATH).filter(|path| !path.is_empty());
        let place = path.unwrap_or_else(|| source.cluster.to_string());
        let slash = if source.namespace.is_empty() { "" } else { "/" };
        Some(KnownCopy {
            namespace: copy.namespace.to_string(),
            name: copy.name.to_string(),
            order: format!("{place} {}{slash}{}", source.namespace, source.name),
            // Orders of other agents may be in another kcp.
            has_order: agent != own || orders.contains(&source),
            agent,
        })
    });
    Ok(known.collect())
}

fn resource(kind: &ApiKind) -> Resource {
    let ApiKind { group, version, kind: name, plural, namespaced } = kind;
    if *namespaced {
        Resource::namespaced(group, version, name, plural)
    } else {
        Resource::cluster_wide(group, version, name, plural)
    }
}
