//! Copies on the service cluster, and whether their orders exist.

use std::collections::{BTreeMap, BTreeSet};

use carrick_client::{Client, Error, ListOptions, Object};
use carrick_kcp::apis::v1alpha2::ApiBinding;
use carrick_syncagent::agent::catalog::Catalog;
use carrick_syncagent::agent::platform_mesh::consumer::{CONSUMER_CLUSTER, StagingRoot};
use carrick_syncagent::api::{AGENT_NAME, REMOTE_RESOURCE, REMOTE_WORKSPACE_PATH};
use carrick_syncagent::rules::metadata::{SourceKey, source_of};
use carrick_syncagent::rules::{Rules, Selection};
use jiff::Timestamp;

use crate::doctor::facts::{KindCopies, KnownCopy};
use crate::kinds::resource;

/// For how many seconds an order may be without a copy.
const LONG: i64 = 60;

/// What is known of a broker's staging workspaces.
pub struct Brokered<'a> {
    root: Option<&'a StagingRoot>,
    /// Paths of workspaces, by their logical cluster.
    paths: BTreeMap<String, String>,
}

impl<'a> Brokered<'a> {
    /// By the bindings of consumers, which say where they are.
    pub fn new(root: Option<&'a StagingRoot>, bindings: &[ApiBinding]) -> Self {
        let path =
            |binding: &ApiBinding| Some((binding.metadata.cluster()?.to_owned(), binding.metadata.path()?.to_owned()));
        Self { root, paths: bindings.iter().filter_map(path).collect() }
    }

    /// Logical cluster of the consumer whose order it is, if a broker has brought it.
    fn consumer(&self, order: &Object) -> Option<String> {
        let path = self.paths.get(&*order.cluster).map(String::as_str);
        self.root?.consumer(path, order.annotation(CONSUMER_CLUSTER).as_deref()).behind()
    }
}

/// The copies of all published kinds, as far as both sides can be listed.
pub async fn copies(
    catalog: &Catalog,
    own: &str,
    local: &Client,
    consumers: &[Client],
    brokered: &Brokered<'_>,
) -> Vec<KindCopies> {
    let mut found = Vec::new();
    for rules in catalog.entries.values().filter_map(|entry| entry.rules.as_ref().ok()) {
        let same = catalog.entries.values().filter_map(|entry| entry.rules.as_ref().ok());
        let alone = same.filter(|other| other.local == rules.local).count() == 1;
        // What cannot be read is reported by the checks of rights and endpoints.
        found.extend(of_kind((rules, alone), own, local, consumers, brokered).await.ok());
    }
    found
}

async fn of_kind(
    (rules, alone): (&Rules, bool),
    own: &str,
    local: &Client,
    consumers: &[Client],
    brokered: &Brokered<'_>,
) -> Result<KindCopies, Error> {
    let marked = ListOptions { label_selector: Some(AGENT_NAME.to_owned()), ..ListOptions::default() };
    // Copies first: an order that is placed in between has no copy in the list.
    let copies = local.list_compact(&resource(&rules.local), None, &marked).await?;
    let (mut orders, mut old) = (BTreeSet::new(), Vec::new());
    let (mut behind, mut over_limit) = (BTreeMap::new(), 0);
    for consumer in consumers {
        for order in consumer.list_compact(&resource(&rules.remote), None, &ListOptions::default()).await? {
            let is_old = alone && is_due(rules, &order);
            over_limit += usize::from(is_over_limit(&order));
            behind.extend(brokered.consumer(&order).map(|consumer| (order.cluster.to_string(), consumer)));
            let Object { cluster, namespace, name, .. } = order;
            let key = SourceKey { cluster, namespace, name };
            if is_old {
                old.push(key.clone());
            }
            orders.insert(key);
        }
    }
    let placed: BTreeSet<SourceKey> = copies.iter().filter_map(|copy| source_of(&copy.value())).collect();
    let place = |order: &SourceKey| match behind.get(&*order.cluster) {
        Some(consumer) => format!("{} (consumer {consumer})", order.cluster),
        None => order.cluster.to_string(),
    };
    let waiting = old.iter().filter(|order| !placed.contains(order));
    let waiting = waiting.map(|order| shown(&place(order), order)).collect();
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
        let may_be_released = brokered.root.is_some_and(|root| root.may_have_released(path.as_deref()));
        let place = path.unwrap_or_else(|| source.cluster.to_string());
        Some(KnownCopy {
            may_be_released,
            namespace: copy.namespace.to_string(),
            name: copy.name.to_string(),
            order: shown(&place, &source),
            // Orders of other agents may be in another kcp.
            has_order: agent != own || orders.contains(&source),
            agent,
        })
    });
    let copies = known.collect();
    let (resource, ordered) = (rules.local.resource(), rules.remote.resource());
    Ok(KindCopies { resource, copies, waiting, ordered, over_limit, behind })
}

/// Whether the agent has refused an order because of a limit, as it reports to whoever waits behind a broker.
fn is_over_limit(order: &Object) -> bool {
    let value = order.value();
    let mut conditions = value["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Placed" && it["status"] == "False" && it["reason"] == "Limit")
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

#[cfg(test)]
mod tests {
    use carrick_syncagent::options::staging_root;
    use serde_json::{Value, json};

    use super::*;

    fn order(status: &Value) -> Object {
        let annotations = json!({ "kcp.io/cluster": "abc", CONSUMER_CLUSTER: "platform#2h3k" });
        Object::from_value(&json!({ "metadata": { "name": "o", "annotations": annotations }, "status": status }))
            .unwrap()
    }

    #[test]
    fn a_consumer_is_behind_a_broker_only_where_its_staging_workspaces_are() {
        let at = |path: &str| {
            let annotations = json!({ "kcp.io/cluster": "abc", "kcp.io/path": path });
            let binding = json!({
                "metadata": { "name": "b", "annotations": annotations }, "spec": { "reference": { "export": { "name": "e" } } },
            });
            vec![serde_json::from_value::<ApiBinding>(binding).unwrap()]
        };
        let root = staging_root("root:staging", "");
        let behind = Some("2h3k".to_owned());
        for (root, path, wanted) in [
            (root.as_ref(), "root:staging:staging-1", behind),
            (root.as_ref(), "root:orgs:acme", None),
            (None, "root:staging:staging-1", None),
        ] {
            assert_eq!(Brokered::new(root, &at(path)).consumer(&order(&Value::Null)), wanted, "{path}");
        }
    }

    #[test]
    fn only_a_limit_counts_as_one() {
        let placed = |status: &str, reason: &str| {
            order(&json!({ "conditions": [{ "type": "Placed", "status": status, "reason": reason }] }))
        };
        assert!(is_over_limit(&placed("False", "Limit")));
        for other in [placed("False", "Rule"), placed("True", "Placed"), order(&Value::Null)] {
            assert!(!is_over_limit(&other));
        }
    }
}
