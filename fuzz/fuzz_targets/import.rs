//! A PublishedResource and a CRD, one per line: whatever is published can be read by those who bind it, and says the same each time.
#![no_main]

use carrick_bind_api::carrick_kcp::apis::v1alpha1::ApiResourceSchema;
use carrick_bind_api::schema;
use carrick_bind_api::v1alpha2::{ApiServiceBinding, BoundSchema, InformerScope, Isolation};
use carrick_syncagent::api::PublishedResource;
use carrick_syncagent::rules::crd::Crd;
use carrick_syncagent::rules::{projection, schema as published};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &str| {
    let Some((rules, crd)) = input.split_once('\n') else { return };
    if let Ok(source) = serde_json::from_str::<Value>(crd) {
        for isolation in [Isolation::None, Isolation::Namespaced] {
            let bound = schema::from_crd(&source, InformerScope::Cluster, &isolation);
            bound.into_iter().for_each(|bound| consume(&bound));
        }
    }
    let Ok(crd) = Crd::from_text(crd.as_bytes()) else { return };
    assert_eq!(Crd::from_text(&crd.to_text()).expect("what was written can be read"), crd);
    let Ok(rules) = serde_json::from_str::<PublishedResource>(rules) else { return };
    let Ok(projected) = projection::project(&rules, &crd) else { return };
    let Ok(built) = published::build(&projected, "agent") else { return };
    let name = published::name(&projected).expect("what has been built has a name");
    assert_eq!(built["metadata"]["name"], name);
    // A schema that is stored and read again, as it is after a restart, is the same one and not a new version of it.
    let again = Crd::from_text(&projected.to_text()).expect("what was written can be read");
    assert_eq!(published::name(&again).ok(), Some(name));
    let in_kcp: ApiResourceSchema = serde_json::from_value(built).expect("kcp's kind can be read");
    consume(&schema::from_api_resource_schema(&in_kcp, InformerScope::Namespaced, &Isolation::None));
});

/// The CRD of a consumer is bound as it is: a second consumer behind the first one has the same.
fn consume(bound: &BoundSchema) {
    let binding = ApiServiceBinding::new("binding");
    let Ok(crd) = schema::crd(bound, &binding, None) else { return };
    let again = schema::from_crd(&crd, bound.spec.informer_scope.clone(), &Isolation::None);
    let again = again.expect("a CRD that was made can be bound");
    let second = schema::crd(&again, &binding, Some(&crd)).expect("and be made again");
    assert_eq!(second["spec"], crd["spec"]);
    let refreshed = schema::plan(Some(&crd), &second, &binding);
    assert!(refreshed.is_ok(), "{:?}", refreshed.err());
}
