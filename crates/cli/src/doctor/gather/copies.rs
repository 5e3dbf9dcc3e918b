//! Copies on the service cluster, and whether their orders exist.

use std::collections::BTreeSet;

use carrick_client::{Client, Error, ListOptions, Object};
use carrick_syncagent::agent::catalog::Catalog;
use carrick_syncagent::api::{AGENT_NAME, REMOTE_RESOURCE, REMOTE_WORKSPACE_PATH};
use carrick_syncagent::rules::metadata::{SourceKey, source_of};
use carrick_syncagent::rules::{Rules, Selection};
use jiff::Timestamp;

use crate::doctor::facts::{KindCopies, KnownCopy};
use crate::kinds::resource;

/// For how many seconds an order may be without a copy.
const LONG: i64 = 60;

/// The copies of all published kinds, as far as both sides can be listed.
pub async fn copies(catalog: &Catalog, own: &str, local: &Client, consumers: &[Client]) -> Vec<KindCopies> {
    let mut found = Vec::new();
    for rules in catalog.entries.values().filter_map(|entry| entry.rules.as_ref().ok()) {
        let same = catalog.entries.values().filter_map(|entry| entry.rules.as_ref().ok());
        let alone = same.filter(|other| other.local == rules.local).count() == 1;
        // What cannot be read is reported by the checks of rights and endpoints.
        found.extend(of_kind(rules, alone, own, local, consumers).await.ok());
    }
    found
}

async fn of_kind(
    rules: &Rules,
    alone: bool,
    own: &str,
    local: &Client,
    consumers: &[Client],
) -> Result<KindCopies, Error> {
    let marked = ListOptions { label_selector: Some(AGENT_NAME.to_owned()), ..ListOptions::default() };
    // Copies first: an order that is placed in between has no copy in the list.
    let copies = local.list_compact(&resource(&rules.local), None, &marked).await?;
    let (mut orders, mut old) = (BTreeSet::new(), Vec::new());
    for consumer in consumers {
        for order in consumer.list_compact(&resource(&rules.remote), None, &ListOptions::default()).await? {
            let is_old = alone && is_due(rules, &order);
            let Object { cluster, namespace, name, .. } = order;
            let key = SourceKey { cluster, namespace, name };
            if is_old {
                old.push(key.clone());
            }
            orders.insert(key);
        }
    }
    let placed: BTreeSet<SourceKey> = copies.iter().filter_map(|copy| source_of(&copy.value())).collect();
    let waiting =
        old.iter().filter(|order| !placed.contains(order)).map(|order| shown(&order.cluster, order)).collect();
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
        Some(KnownCopy {
            namespace: copy.namespace.to_string(),
            name: copy.name.to_string(),
            order: shown(&place, &source),
            // Orders of other agents may be in another kcp.
            has_order: agent != own || orders.contains(&source),
            agent,
        })
    });
    Ok(KindCopies { resource: rules.local.resource(), copies: known.collect(), waiting })
}

/// An order, with its workspace.
fn shown(workspace: &str, order: &SourceKey) -> String {
    let slash = if order.namespace.is_empty() { "" } else { "/" };
    format!("{workspace} {}{slash}{}", order.namespace, order.name)
}

/// Whether an order must have had its copy for a while.
fn is_due(rules: &Rules, order: &Object) -> bool {
    let value = order.value();
    let made = value["metadata"]["creationTimestamp"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let is_old = made.is_some_and(|made| made.as_second() + LONG < Timestamp::now().as_second());
    is_old && !order.is_deleting() && rules.selects(&value, None) == Selection::In
}
