//! Consumers who ask for contracts and exports, and whoever counts which of them have been served.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use carrick_bind_api::kinds::{API_SERVICE_EXPORT, API_SERVICE_EXPORT_REQUEST, BINDABLE_RESOURCES_REQUEST, Kind};
use carrick_client::watch::{Event, WatchOptions, watch};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::ground::{Ground, of, resource};

/// As many requests as are sent at once.
const IN_FLIGHT: usize = 32;

/// Asks for so many contracts and waits for all of them; their namespaces.
pub async fn contracts(ground: &Ground, number: usize, patience: Duration) -> anyhow::Result<Vec<String>> {
    let kind = of(BINDABLE_RESOURCES_REQUEST);
    let asking = stream::iter(0..number).map(|at| {
        let kind = kind.clone();
        async move {
            let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "BindableResourcesRequest",
                "metadata": {"name": format!("consumer-{at}")},
                "spec": {"clusterIdentity": {"identity": format!("bench-{at}")}, "author": "bench"}});
            ground.client().create(&kind, Some("default"), &request).await.map(drop)
        }
    });
    asking.buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
    let answered = |object: &Value| {
        let namespace = object["status"]["namespace"].as_str().filter(|_| object["status"]["phase"] == "Succeeded");
        namespace.map(str::to_owned)
    };
    seen(ground, BINDABLE_RESOURCES_REQUEST, number, patience, answered).await.context("contracts")
}

/// Asks for exports in every contract and waits until all are in sync.
pub async fn exports(ground: &Ground, contracts: &[String], each: usize, patience: Duration) -> anyhow::Result<()> {
    let kind = of(API_SERVICE_EXPORT_REQUEST);
    let wanted = contracts.iter().flat_map(|contract| (0..each).map(move |at| (contract, at)));
    let asking = stream::iter(wanted).map(|(contract, at)| {
        let kind = kind.clone();
        async move {
            let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest",
                "metadata": {"name": format!("export-{at}")}, "spec": {"resources": [resource(at)]}});
            ground.client().create(&kind, Some(contract), &request).await.map(drop)
        }
    });
    asking.buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
    let in_sync = |object: &Value| {
        let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|it| it["type"] == "ProviderInSync" && it["status"] == "True").then(String::new)
    };
    seen(ground, API_SERVICE_EXPORT, contracts.len() * each, patience, in_sync).await.context("exports").map(drop)
}

/// Waits until so many objects of a kind are as wanted; what each of them says.
async fn seen(
    ground: &Ground,
    kind: Kind,
    number: usize,
    patience: Duration,
    says: impl Fn(&Value) -> Option<String>,
) -> anyhow::Result<Vec<String>> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut waiting: BTreeSet<String> = BTreeSet::new();
    let all = async {
        let mut events = pin!(watch(ground.client().clone(), of(kind), WatchOptions::default()));
        while found.len() < number {
            let Some(Event::Listed(object) | Event::Applied(object)) = events.next().await else { continue };
            let key = format!("{}/{}", object.namespace, object.name);
            match says(&object.value()) {
                Some(said) => {
                    waiting.remove(&key);
                    found.insert(key, said);
                }
                None => drop(waiting.insert(key)),
            }
        }
    };
    let timely = tokio::time::timeout(patience, all).await;
    let first = waiting.iter().next().cloned().unwrap_or_else(|| "none that is waited for".to_owned());
    timely.with_context(|| format!("{} of {number} after {} s; {first}", found.len(), patience.as_secs()))?;
    Ok(found.into_values().collect())
}
