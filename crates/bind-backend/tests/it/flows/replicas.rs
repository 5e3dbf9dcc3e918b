//! Several replicas: one works, the others wait for its Lease.

use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_client::Resource;

use super::world::Provider;

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_goes_on_when_the_first_one_is_killed_or_ends() {
    let provider = Provider::without_backend(InformerScope::Namespaced, Isolation::Prefixed).await;
    let leases = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    let holds = async |name: &str| {
        let held = |lease: &serde_json::Value| lease["spec"]["holderIdentity"] == name;
        provider.cluster.until(&leases, Some("default"), "kube-bind-backend", held).await;
    };
    let (first, _stop) = provider.start_replica("first");
    holds("first").await;
    let (second, stop) = provider.start_replica("second");
    provider.contract("one").await;
    first.abort();
    let _ = first.await;
    holds("second").await;
    provider.contract("two").await;
    let (_third, _stop_third) = provider.start_replica("third");
    stop.cancel();
    second.await.unwrap();
    holds("third").await;
    provider.contract("three").await;
}
