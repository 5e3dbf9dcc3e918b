//! Ends from both sides: a provider that withdraws an export, and a consumer that unbinds.

use std::time::Duration;

use carrick_bind_api::kinds;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_client::Resource;
use carrick_plane::faults::{Effect, Faults, Match, Rule, Turn};
use serde_json::{Value, json};

use super::world::{BACKEND, Consumer, KONNECTOR, Provider, crd_kind, has, of, thing, things};

fn cowboys() -> Resource {
    things("cowboys", "Cowboy", true)
}

fn events() -> Resource {
    Resource::namespaced("", "v1", "Event", "events")
}

fn withdrawn(binding: &Value) -> bool {
    has(binding, "Connected", "False", "APIServiceExportWithdrawn")
}

/// A provider and a consumer with one object, which has reached the provider.
async fn bound() -> (Provider, Consumer, String) {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("cowboys", "Cowboy", "Namespaced").await;
    let (contract, kubeconfig) = provider.contract("one").await;
    let consumer = Consumer::start(&kubeconfig).await;
    provider.export(&contract, "cowboys", json!([])).await;
    consumer.until_bound("cowboys").await;
    consumer.cluster.apply(&cowboys(), &thing("Cowboy", Some("team"), "lucky")).await;
    let at = format!("{contract}-team");
    provider.cluster.until(&cowboys(), Some(&at), "lucky", |copy| copy["spec"]["intent"] == "x").await;
    consumer.cluster.until(&cowboys(), Some("team"), "lucky", |it| it["metadata"]["finalizers"].is_array()).await;
    let healthy = |it: &Value| has(it, "Healthy", "True", "");
    provider.cluster.until(&of(kinds::CLUSTER_BINDING), Some(&contract), "cluster", healthy).await;
    let connected = |it: &Value| has(it, "Connected", "True", "");
    provider.cluster.until(&of(kinds::API_SERVICE_EXPORT), Some(&contract), "cowboys", connected).await;
    (provider, consumer, contract)
}

/// What holds after a withdrawal, however it went.
async fn is_withdrawn(provider: &Provider, consumer: &Consumer, contract: &str) {
    provider.cluster.until_gone(&of(kinds::API_SERVICE_EXPORT), Some(contract), "cowboys").await;
    let binding = consumer.cluster.until(&of(kinds::API_SERVICE_BINDING), None, "cowboys", withdrawn).await;
    assert!(binding["metadata"].get("deletionTimestamp").is_none(), "{binding}");
    // The consumer's object is still its own, and nothing holds it.
    let free = |it: &Value| it["metadata"].get("finalizers").is_none();
    consumer.cluster.until(&cowboys(), Some("team"), "lucky", free).await;
    let name = format!("cowboys.withdrawn-{}", binding["metadata"]["uid"].as_str().unwrap());
    let event = consumer.cluster.get(&events(), Some("default"), &name).await.unwrap();
    assert_eq!(event["reason"], "APIServiceExportWithdrawn");
    assert_eq!(event["involvedObject"]["name"], "cowboys");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_export_is_told_before_anything_goes_and_takes_no_object_along() {
    let (provider, mut consumer, contract) = bound().await;
    let (at, exports) = (Some(contract.as_str()), of(kinds::API_SERVICE_EXPORT));
    // As long as the consumer does not answer, nothing goes: neither the export, nor its schema, nor the consumer's rights.
    consumer.kill_konnector().await;
    provider.cluster.delete(&exports, at, "cowboys").await;
    let held = provider.cluster.get(&exports, at, "cowboys").await.unwrap();
    assert!(held["metadata"]["deletionTimestamp"].is_string(), "{held}");
    assert_eq!(provider.writes().await, Vec::<String>::new(), "the backend waits");
    assert!(provider.cluster.get(&exports, at, "cowboys").await.is_some());
    assert!(provider.cluster.get(&of(kinds::BOUND_SCHEMA), at, "cowboys.wild.io").await.is_some());
    consumer.start_konnector();
    is_withdrawn(&provider, &consumer, &contract).await;
    provider.cluster.until_gone(&of(kinds::BOUND_SCHEMA), at, "cowboys.wild.io").await;
    // When the consumer deletes its last object, the bundle takes the binding and the CRD along.
    consumer.cluster.delete(&cowboys(), Some("team"), "lucky").await;
    consumer.cluster.until_gone(&cowboys(), Some("team"), "lucky").await;
    consumer.cluster.until_gone(&of(kinds::API_SERVICE_BINDING), None, "cowboys").await;
    consumer.cluster.until_gone(&crd_kind(), None, "cowboys.wild.io").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_comes_back_is_synced_again() {
    let (provider, consumer, contract) = bound().await;
    let (at, requests) = (Some(contract.as_str()), of(kinds::API_SERVICE_EXPORT_REQUEST));
    provider.cluster.delete(&of(kinds::API_SERVICE_EXPORT), at, "cowboys").await;
    is_withdrawn(&provider, &consumer, &contract).await;
    provider.cluster.delete(&requests, at, "cowboys").await;
    provider.export(&contract, "cowboys", json!([])).await;
    consumer.until_bound("cowboys").await;
    let patch = json!({"spec": {"intent": "again"}});
    consumer.cluster.client.merge_patch(&cowboys(), Some("team"), "lucky", &patch).await.unwrap();
    let space = format!("{contract}-team");
    provider.cluster.until(&cowboys(), Some(&space), "lucky", |copy| copy["spec"]["intent"] == "again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_consumer_that_never_came_nor_for_one_whose_contract_goes() {
    let provider = Provider::start(InformerScope::Namespaced, Isolation::Prefixed).await;
    provider.offer("cowboys", "Cowboy", "Namespaced").await;
    let (contract, _) = provider.contract("one").await;
    provider.export(&contract, "cowboys", json!([])).await;
    let exports = of(kinds::API_SERVICE_EXPORT);
    let in_sync = |it: &Value| has(it, "ProviderInSync", "True", "");
    provider.cluster.until(&exports, Some(&contract), "cowboys", in_sync).await;
    provider.cluster.delete(&exports, Some(&contract), "cowboys").await;
    provider.cluster.until_gone(&exports, Some(&contract), "cowboys").await;
    // A whole contract goes, with a consumer in it.
    let (provider, consumer, contract) = bound().await;
    provider.cluster.delete(&super::world::namespaces(), None, &contract).await;
    provider.cluster.until_gone(&super::world::namespaces(), None, &contract).await;
    assert!(consumer.cluster.get(&cowboys(), Some("team"), "lucky").await.is_some());
    assert!(consumer.cluster.get(&of(kinds::API_SERVICE_BINDING), None, "cowboys").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_unbinds_leaves_nothing_and_the_provider_is_told() {
    let (provider, consumer, contract) = bound().await;
    // What belongs to a bundle is let go with the bundle.
    consumer.cluster.delete(&of(kinds::API_SERVICE_BINDING_BUNDLE), None, "all").await;
    is_unbound(&provider, &consumer, &contract).await;
}

/// What holds after a consumer has let go, however it went.
async fn is_unbound(provider: &Provider, consumer: &Consumer, contract: &str) {
    consumer.cluster.until_gone(&of(kinds::API_SERVICE_BINDING), None, "cowboys").await;
    consumer.cluster.until_gone(&crd_kind(), None, "cowboys.wild.io").await;
    let at = format!("{contract}-team");
    provider.cluster.until_gone(&cowboys(), Some(&at), "lucky").await;
    // The export is the provider's: it stays, and says that nobody uses it.
    let unused = |it: &Value| has(it, "Connected", "False", "APIServiceBindingNotFound");
    provider.cluster.until(&of(kinds::API_SERVICE_EXPORT), Some(contract), "cowboys", unused).await;
}

/// Which program is killed, and where it writes.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Backend,
    KonnectorHere,
    KonnectorThere,
}

/// Who ends what is between them.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The provider withdraws the export.
    Withdraw,
    /// The consumer deletes its bundle.
    Unbind,
}

impl End {
    async fn begin(self, provider: &Provider, consumer: &Consumer, contract: &str) {
        match self {
            Self::Withdraw => provider.cluster.delete(&of(kinds::API_SERVICE_EXPORT), Some(contract), "cowboys").await,
            Self::Unbind => consumer.cluster.delete(&of(kinds::API_SERVICE_BINDING_BUNDLE), None, "all").await,
        }
    }

    async fn is_done(self, provider: &Provider, consumer: &Consumer, contract: &str) {
        match self {
            Self::Withdraw => is_withdrawn(provider, consumer, contract).await,
            Self::Unbind => is_unbound(provider, consumer, contract).await,
        }
    }
}

/// Kills a program after each of its writes, starts it again, and sees how it ends; returns how often it was killed.
async fn killed_at_every_write(victim: Victim, end: End) -> usize {
    let (mut provider, mut consumer, contract) = bound().await;
    let faults: Faults = match victim {
        Victim::Backend | Victim::KonnectorThere => provider.cluster.plane.faults().clone(),
        Victim::KonnectorHere => consumer.cluster.plane.faults().clone(),
    };
    let user = match victim {
        Victim::Backend => BACKEND.to_owned(),
        Victim::KonnectorHere => KONNECTOR.to_owned(),
        Victim::KonnectorThere => format!("system:serviceaccount:{contract}:kube-binder"),
    };
    let (mut kills, mut has_begun) = (0, false);
    loop {
        match victim {
            Victim::Backend => provider.kill_backend().await,
            Victim::KonnectorHere | Victim::KonnectorThere => consumer.kill_konnector().await,
        }
        let user = user.clone();
        let writes = Match::writes().filter(move |ask| ask.user == user);
        let rule = faults.add(Rule::new(writes, Effect::ApplyThenCut).on(Turn::Nth(1)));
        match victim {
            Victim::Backend => provider.start_backend(),
            Victim::KonnectorHere | Victim::KonnectorThere => consumer.start_konnector(),
        }
        if !has_begun {
            end.begin(&provider, &consumer, &contract).await;
            has_begun = true;
        }
        let hit = async {
            while faults.hits(rule) == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let came = tokio::time::timeout(Duration::from_secs(2), hit).await.is_ok();
        faults.remove(rule);
        if !came {
            break;
        }
        kills += 1;
    }
    end.is_done(&provider, &consumer, &contract).await;
    kills
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_survives_the_death_of_backend_or_konnector_at_every_write() {
    for (victim, least) in [(Victim::Backend, 2), (Victim::KonnectorHere, 3), (Victim::KonnectorThere, 1)] {
        let kills = killed_at_every_write(victim, End::Withdraw).await;
        assert!(kills >= least, "{victim:?}: only {kills} writes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unbinding_survives_the_death_of_the_konnector_at_every_write() {
    for (victim, least) in [(Victim::KonnectorHere, 4), (Victim::KonnectorThere, 1)] {
        let kills = killed_at_every_write(victim, End::Unbind).await;
        assert!(kills >= least, "{victim:?}: only {kills} writes");
    }
}
