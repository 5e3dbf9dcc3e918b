//! A sequence with one request less.

use libtest_mimic::Trial;
use serde_json::json;

use super::request::{Body, Request, When};

/// The sequence without the request at an index. A request that is sent until it is refused only waits for the one before it to take effect: it
/// goes with that one, and not alone. Otherwise it would wait for a refusal that never comes, or nobody would wait for one that does.
pub fn without(sequence: &[Request], index: usize) -> Option<Vec<Request>> {
    let waits = |request: &Request| request.when == When::Refused;
    if sequence.get(index).is_none_or(waits) || holds(&sequence[index], &sequence[index + 1..]) {
        return None;
    }
    let end = index + 1 + sequence[index + 1..].iter().take_while(|request| waits(request)).count();
    Some(sequence[..index].iter().chain(&sequence[end..]).cloned().collect())
}

/// Whether a request creates what keeps a namespace from ending while others still have to do with that namespace: without it, they would race
/// with its end.
fn holds(request: &Request, later: &[Request]) -> bool {
    let namespace = |request: &Request| {
        let (_, rest) = request.path.split_once("/namespaces/")?;
        Some(rest.split('/').next().unwrap_or(rest).to_owned())
    };
    let Body::Json(object) = &request.body else { return false };
    let is_held = request.method == "POST" && object["metadata"]["finalizers"].is_array();
    let Some(own) = namespace(request).filter(|name| is_held && name.contains("-end-")) else { return false };
    later.iter().any(|request| namespace(request).is_some_and(|name| name == own))
}

/// What must hold for it. Trials of the program that plays the sequences, which is built anyway; they need no server.
pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, holds: fn()| {
        Trial::test(format!("shorter::{name}"), move || {
            holds();
            Ok(())
        })
    };
    vec![
        trial("who_waits_for_a_refusal_goes_with_its_reason", who_waits_for_a_refusal_goes_with_its_reason),
        trial("what_holds_a_namespace_stays_while_it_is_asked_for", what_holds_a_namespace_stays_while_it_is_asked_for),
    ]
}

fn who_waits_for_a_refusal_goes_with_its_reason() {
    let request = |path: &str| Request::new("GET", path, Body::None);
    let sequence = [request("/a"), request("/delete"), request("/probe").when(When::Refused), request("/b")];
    let paths = |index| {
        let left = without(&sequence, index)?;
        Some(left.into_iter().map(|request| request.path).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(paths(0).as_deref(), Some("/delete /probe /b"));
    assert_eq!(paths(1).as_deref(), Some("/a /b"));
    assert_eq!(paths(2), None);
    assert_eq!(paths(3).as_deref(), Some("/a /delete /probe"));
    assert_eq!(paths(4), None);
}

fn what_holds_a_namespace_stays_while_it_is_asked_for() {
    let held = Body::Json(json!({ "metadata": { "name": "held", "finalizers": ["example.com/hold"] } }));
    let namespace = "/api/v1/namespaces/{ns}-end-3";
    let sequence =
        [Request::new("POST", format!("{namespace}/configmaps"), held), Request::new("DELETE", namespace, Body::None)];
    assert!(without(&sequence, 0).is_none());
    assert!(without(&sequence[..1], 0).is_some());
    assert!(without(&sequence, 1).is_some());
}
