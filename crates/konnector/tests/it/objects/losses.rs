//! What is lost out of sight is not lost.

use carrick_bind_api::v1alpha2::InformerScope;
use carrick_client::DeleteOptions;
use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_konnector::agent::objects::BindingReport;
use carrick_plane::faults::{Effect, Match, Rule};
use futures::StreamExt;
use serde_json::json;

use super::world::{KONNECTOR, Shape, World, requests, until, writes};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_or_says_no_or_not_found_deletes_nothing() {
    for code in [403, 404, 500, 503] {
        for side in 0..2 {
            let mut world = World::new(Shape::namespaced(InformerScope::Cluster)).await;
            world.order("db", &json!({"size": 1})).await;
            world.until_copied("db", &json!({"size": 1})).await;
            world.calm().await;
            world.kill();
            let faults = [world.consumer.faults(), world.provider.faults()][side].clone();
            let reads = Match::any().user(KONNECTOR).verbs(&["list", "watch", "get"]);
            faults.add(Rule::new(reads, Effect::refuse(code)));
            let recordings = world.record();
            world.start();
            world.until_told("something is wrong", |told| told.informers_synced.is_err()).await;
            world.calm_writes().await;
            assert_eq!(writes(&recordings), Vec::<String>::new(), "{code} on side {side}");
            faults.clear();
            world.until_told("all is known", |told| told.informers_synced.is_ok()).await;
            world.change("db", &json!({"spec": {"size": 2}})).await;
            world.until_copied("db", &json!({"size": 2})).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_list_that_lacks_objects_deletes_nothing() {
    let mut world = World::new(Shape::namespaced(InformerScope::Cluster)).await;
    world.order("db", &json!({"size": 1})).await;
    world.until_copied("db", &json!({"size": 1})).await;
    world.calm().await;
    let uid = world.copy("db").await.unwrap()["metadata"]["uid"].clone();
    world.kill();
    // The consumer's server shows a state from before there were any objects, and then nothing new.
    let widgets = || Match::any().user(KONNECTOR).resource("example.io", "widgets");
    let streams = widgets().verbs(&["watch"]).filter(|ask| ask.query.contains("sendInitialEvents"));
    for (requests, effect) in [
        (streams, Effect::refuse(422)),
        (widgets().verbs(&["list"]), Effect::Stale(1000)),
        (widgets().verbs(&["watch"]), Effect::StallWatch(0)),
    ] {
        world.consumer.faults().add(Rule::new(requests, effect));
    }
    let recordings = world.record();
    world.start();
    world.until_told("all seems to be known", |told| told.informers_synced.is_ok()).await;
    world.calm_writes().await;
    let asked = "get /apis/example.io/v1/namespaces/team/widgets/db".to_owned();
    assert!(requests(&recordings).contains(&asked), "the list lacked the object, so the server was asked again");
    assert_eq!(world.copy("db").await.unwrap()["metadata"]["uid"], uid);
    world.consumer.faults().clear();
    world.change("db", &json!({"spec": {"size": 2}})).await;
    world.kill();
    world.start();
    world.until_copied("db", &json!({"size": 2})).await;
    assert_eq!(world.copy("db").await.unwrap()["metadata"]["uid"], uid);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_fail_are_tried_again_and_told_meanwhile() {
    let world = World::new(Shape::namespaced(InformerScope::Cluster)).await;
    let creates = Match::any().user(KONNECTOR).verbs(&["create"]).resource("example.io", "widgets");
    let rule = world.provider.faults().add(Rule::new(creates, Effect::refuse(403)));
    world.order("db", &json!({"size": 1})).await;
    world
        .until_told("it fails", |told| told.failing.iter().any(|it| it.starts_with("widgets.example.io team/db: ")))
        .await;
    until("it is tried again", async || world.provider.faults().hits(rule) > 1).await;
    world.provider.faults().clear();
    world.until_copied("db", &json!({"size": 1})).await;
    world.until_told("nothing fails", |told| told.failing.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_something_deletes_at_once_is_made_ever_more_rarely_until_that_stops() {
    let world = World::new(Shape::namespaced(InformerScope::Cluster)).await;
    let (client, kind, (_, namespace, _)) = (world.there.clone(), world.widgets()[1].clone(), world.places("db"));
    let deleting = tokio::spawn(async move {
        let options = WatchOptions { namespace: namespace.map(str::to_owned), ..WatchOptions::default() };
        let mut events = std::pin::pin!(watch(client.clone(), kind.clone(), options));
        while let Some(event) = events.next().await {
            if let Event::Listed(object) | Event::Applied(object) = event {
                let _ = client.delete(&kind, namespace, &object.name, &DeleteOptions::default()).await;
            }
        }
    });
    let sent = world.provider.faults().record();
    let created =
        || sent.count(|it| it.ask.user == KONNECTOR && it.ask.verb == "create" && it.ask.path.contains("/widgets"));
    world.order("db", &json!({"size": 1})).await;
    let contested = |told: &BindingReport| told.failing.iter().any(|it| it.contains("is contested: "));
    world.until_told("it is contested", contested).await;
    // For as long as the next pause is.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert!((5..=8).contains(&created()), "{} creations", created());
    deleting.abort();
    world.until_told("nothing fails", |told| told.failing.is_empty()).await;
    world.until_copied("db", &json!({"size": 1})).await;
}
