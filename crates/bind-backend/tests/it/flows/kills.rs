//! A backend that is killed after every write.

use std::time::Duration;

use carrick_bind_api::kinds;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::provider::{BindOrder, Provider as _};
use carrick_plane::faults::{Effect, Match, Rule, Turn};
use serde_json::json;

use super::world::{BACKEND, Provider, has, of, request};

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_killed_after_any_write_goes_on_where_it_was() {
    let mut provider = Provider::without_backend(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("cowboys", "Cowboy", "Namespaced").await;
    provider.ask(&request("r", "one", "jane")).await;
    let contract = carrick_bind_api::identity::contract_namespace("cluster-", "one");
    let at = Some(contract.as_str());
    let export = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest",
        "metadata": {"name": "cowboys", "namespace": contract}, "spec": {"namespaces": [{"name": "team"}],
            "resources": [{"group": "wild.io", "resource": "cowboys", "versions": ["v1"]}]}});
    let (mut kills, mut asked) = (0, false);
    loop {
        let writes = Match::writes().filter(|ask| ask.user == BACKEND);
        let faults = provider.cluster.plane.faults().clone();
        let rule = faults.add(Rule::new(writes, Effect::ApplyThenCut).on(Turn::Nth(1)));
        provider.start_backend();
        let hit = async {
            while faults.hits(rule) == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let came = tokio::time::timeout(Duration::from_secs(2), hit).await.is_ok();
        faults.remove(rule);
        if came {
            kills += 1;
            provider.kill_backend().await;
            continue;
        }
        if asked {
            break;
        }
        provider.until_request("r", "Succeeded").await;
        provider.kill_backend().await;
        asked = true;
        provider.cluster.apply(&of(kinds::API_SERVICE_EXPORT_REQUEST), &export).await;
    }
    let done = provider.cluster.get(&of(kinds::API_SERVICE_EXPORT_REQUEST), at, "cowboys").await.unwrap();
    assert_eq!(done["status"]["phase"], "Succeeded");
    let export = provider.cluster.get(&of(kinds::API_SERVICE_EXPORT), at, "cowboys").await.unwrap();
    assert!(has(&export, "ProviderInSync", "True", ""), "{export}");
    let space = provider.cluster.get(&of(kinds::API_SERVICE_NAMESPACE), at, "team").await.unwrap();
    assert_eq!(space["status"]["namespace"], format!("{contract}-team"));
    // Roles that are the same for all consumers come with the backend's own rights.
    assert!(kills >= 15, "only {kills} writes");
    assert_eq!(provider.writes().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_over_http_that_dies_at_any_write_is_one_contract_when_it_is_repeated() {
    let mut provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("cowboys", "Cowboy", "Namespaced").await;
    let template = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportTemplate", "metadata": {"name": "cowboys"},
        "spec": {"scope": "Namespaced", "resources": [{"group": "wild.io", "resource": "cowboys", "versions": ["v1"]}]}});
    provider.cluster.apply(&of(kinds::API_SERVICE_EXPORT_TEMPLATE), &template).await;
    let front = provider.front();
    let mut deaths = 0;
    for write in 1.. {
        let text = str::to_owned;
        let identity = format!("consumer-{write}");
        let order = BindOrder {
            name: text("cowboys"),
            template: text("cowboys"),
            identity: identity.clone(),
            pretty_name: String::new(),
            author: text("jane"),
            subject: String::new(),
            request_export: true,
        };
        let faults = provider.cluster.plane.faults().clone();
        let writes = Match::writes().filter(|ask| ask.user == BACKEND);
        let rule = faults.add(Rule::new(writes, Effect::ApplyThenCut).on(Turn::Nth(write)));
        // Whoever asks sees an error or an answer, and asks again after an error.
        let asked = tokio::time::timeout(Duration::from_secs(40), front.bind("", &order)).await;
        let died = faults.hits(rule) > 0;
        faults.remove(rule);
        if died {
            deaths += 1;
            provider.kill_backend().await;
            provider.start_backend();
        }
        if !matches!(asked, Ok(Ok(_))) {
            front.bind("", &order).await.unwrap();
        }
        let contract = carrick_bind_api::identity::contract_namespace("cluster-", &identity);
        let (namespace, exports) = front.exports("", &identity).await.unwrap().unwrap();
        assert_eq!(namespace, contract);
        assert!(exports.contains(&text("cowboys")), "{write}: {exports:?}");
        if !died {
            break;
        }
    }
    assert!(deaths >= 8, "only {deaths} writes");
}
