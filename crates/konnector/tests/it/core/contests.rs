//! Something undoes what the konnector writes, again and again: it is written ever more rarely, and the binding says so.

use carrick_client::DeleteOptions;
use carrick_client::watch::{Event, WatchOptions, watch};
use futures::StreamExt;
use serde_json::Value;

use super::world::{TEAM, World, cluster_bindings, has, message, widgets};
use crate::clusters::BINDER;

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_something_deletes_at_once_is_made_ever_more_rarely_until_that_stops() {
    let world = World::bound().await;
    let client = world.provider.client.clone();
    let deleting = tokio::spawn(async move {
        let options = WatchOptions { namespace: Some(TEAM.to_owned()), ..WatchOptions::default() };
        let mut events = std::pin::pin!(watch(client.clone(), widgets(), options));
        while let Some(event) = events.next().await {
            if let Event::Listed(object) | Event::Applied(object) = event {
                let _ = client.delete(&widgets(), Some(TEAM), &object.name, &DeleteOptions::default()).await;
            }
        }
    });
    let sent = world.provider.plane().faults().record();
    let created =
        || sent.count(|it| it.ask.user == BINDER && it.ask.verb == "create" && it.ask.path.contains("/widgets"));
    world.order_here("a", 1).await;
    let contested = |it: &Value| has(it, "Synced", "False", "Contested");
    let binding = world.consumer.until(&cluster_bindings(), None, "west", contested).await;
    let words = message(&binding, "Synced");
    assert!(words.contains("team/a") && words.contains("find out who deletes it"), "{words}");
    assert!(has(&binding, "Ready", "True", "AsExpected"), "the others are synced");
    // For as long as the next pause is.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert!((5..=8).contains(&created()), "{} creations", created());
    deleting.abort();
    let synced = |it: &Value| has(it, "Synced", "True", "AsExpected");
    world.consumer.until(&cluster_bindings(), None, "west", synced).await;
    world.copy_is("a", |it| it["spec"]["size"] == 1).await;
}
