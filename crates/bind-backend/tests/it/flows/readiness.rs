//! What probes see.

use std::time::Duration;

use carrick_bind_api::crds;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_bind_backend::agent;
use carrick_bind_backend::provider::Provider as _;

use super::world::{Provider, crd_kind};

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_is_not_ready_while_a_kind_that_it_needs_is_not_served() {
    let provider = Provider::without_backend(InformerScope::Namespaced, Isolation::Prefixed).await;
    let name = "apiserviceexports.kube-bind.io";
    provider.cluster.delete(&crd_kind(), None, name).await;
    provider.cluster.until_gone(&crd_kind(), None, name).await;
    let optional = "bindableresourcesrequests.kube-bind.io";
    provider.cluster.delete(&crd_kind(), None, optional).await;
    provider.cluster.until_gone(&crd_kind(), None, optional).await;

    let (clusters, config, stop) = (provider.front(), provider.config().clone(), provider.stop());
    assert_eq!(clusters.problem().as_deref(), Some("the backend is starting"));
    let led = clusters.clone();
    let task = tokio::spawn(async move { agent::lead(&config, &led, &stop).await });
    let becomes = async |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|line| (*line).to_owned()).collect();
        let reached = async {
            loop {
                let problem = clusters.problem();
                if problem.iter().flat_map(|it| it.lines()).eq(wanted.iter().map(String::as_str)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let patience = Duration::from_mins(1);
        assert!(tokio::time::timeout(patience, reached).await.is_ok(), "{:?} is not {wanted:?}", clusters.problem());
    };
    let missing = "the cluster does not serve apiserviceexports; are the CRDs installed?";
    becomes(&[missing]).await;
    for crd in crds::provider().iter().filter(|crd| crd["metadata"]["name"] == name) {
        provider.cluster.apply(&crd_kind(), crd).await;
    }
    becomes(&[]).await;
    provider.stop().cancel();
    task.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_waits_for_the_lease_is_ready_because_it_answers_requests() {
    let provider = Provider::without_backend(InformerScope::Namespaced, Isolation::Prefixed).await;
    let (first, _stop_first) = provider.start_replica("first");
    provider.contract("one").await;
    let (clusters, config) = (provider.front(), provider.replica_config("second"));
    let (led, stop) = (clusters.clone(), provider.stop());
    let task = tokio::spawn(async move { agent::lead(&config, &led, &stop).await });
    let ready = async {
        while clusters.problem().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_mins(1), ready).await.is_ok(), "{:?}", clusters.problem());
    assert!(!first.is_finished(), "the first one leads");
    provider.stop().cancel();
    task.await.unwrap().unwrap();
}
