//! Any bytes as the answers of a server to a watch, one after the other, separated by 0xff: events come in their order, and objects are whole.
#![no_main]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use carrick_client::futures::StreamExt;
use carrick_client::kube::client::Body;
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Object, Packer, Resource, kube};
use http::{Request, Response};
use libfuzzer_sys::fuzz_target;

/// What is done with the whole input is done by then: the time is not real.
const LONG: Duration = Duration::from_secs(24 * 3600);

type Answers = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// A server that gives these answers, and then none.
fn server(answers: Answers) -> Client {
    let service = tower::service_fn(move |_: Request<Body>| {
        let next = answers.lock().expect("nobody panics with it").pop_front();
        async move {
            match next {
                Some(body) => Ok::<_, Infallible>(Response::new(Body::from(body))),
                None => pending().await,
            }
        }
    });
    kube::Client::new(service, "default").into()
}

fn check(object: &Object) {
    let value = object.value();
    assert_eq!(value["metadata"]["name"], *object.name);
    assert!(value["metadata"].get("managedFields").is_none());
    assert_eq!(object.read().is_ok(), object.too_deep().is_none());
    let head = object.without_content_of(object.kept());
    assert_eq!((&head.name, &head.resource_version), (&object.name, &object.resource_version));
    assert!(head.read().is_err());
    object.labels();
    object.annotations();
    assert_eq!(Packer::default().pack(object).value(), value);
}

async fn play(answers: Answers, streaming_lists: bool) {
    let options = WatchOptions { streaming_lists, ..WatchOptions::default() };
    let maps = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
    let mut events = pin!(watch(server(Arc::clone(&answers)), maps, options));
    let (mut listing, mut failing) = (false, false);
    while !answers.lock().expect("nobody panics with it").is_empty() {
        match tokio::time::timeout(LONG, events.next()).await {
            Err(_) => break,
            Ok(None) => panic!("a watch never ends"),
            Ok(Some(Event::Begin)) => listing = true,
            Ok(Some(Event::Synced)) => assert!(std::mem::take(&mut listing), "a list ends that has not begun"),
            Ok(Some(Event::Listed(object))) => {
                assert!(listing, "an object of no list");
                check(&object);
            }
            Ok(Some(Event::Applied(object))) => {
                assert!(!listing, "a change within a list");
                check(&object);
            }
            Ok(Some(Event::Deleted(object))) => check(&object),
            Ok(Some(Event::Failing(error))) => {
                assert!(!std::mem::replace(&mut failing, true), "an outage is reported once");
                assert!(!error.to_string().is_empty());
            }
            Ok(Some(Event::Recovered)) => assert!(std::mem::take(&mut failing), "the end of no outage"),
            Ok(Some(Event::WentBack { known, found })) => assert!(found < known),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    for streaming_lists in [true, false] {
        let answers: VecDeque<Vec<u8>> = input.split(|byte| *byte == 0xff).map(<[u8]>::to_vec).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(play(Arc::new(Mutex::new(answers)), streaming_lists));
    }
});
