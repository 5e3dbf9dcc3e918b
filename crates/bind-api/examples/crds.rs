//! Prints the CRDs of all kinds as one list, for `kubectl apply -f -`. With the argument `consumer` or `provider` only those of that side.

use carrick_bind_api::crds;
use serde_json::json;

fn main() {
    let side = std::env::args().nth(1);
    let items = match side.as_deref() {
        Some("consumer") => crds::consumer(),
        Some("provider") => crds::provider(),
        _ => [crds::consumer(), crds::provider()].concat(),
    };
    println!("{:#}", json!({"apiVersion": "v1", "kind": "List", "items": items}));
}
