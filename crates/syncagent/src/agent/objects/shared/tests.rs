//! What is kept of orders, and that it goes with them; without a server.

use carrick_multicluster::Fleet;
use carrick_multicluster::providers::Nop;

use super::*;
use crate::agent::events::Recorder;
use crate::agent::objects::pace;
use crate::agent::objects::related::Patience;
use crate::rules::access::Budget;
use crate::rules::tests::{crontab, published};

fn context(client: &Client) -> Context {
    let pace = pace(Budget::default());
    let (recorder, _) = Recorder::start("syncagent", &pace);
    Context {
        local: client.clone(),
        slice_workspace: client.clone(),
        slice: "slice".to_owned(),
        export_workspace: client.clone(),
        export: "export".to_owned(),
        agent_name: "agent".to_owned(),
        namespace: "agent".to_owned(),
        timing: crate::agent::timing::Timing::default(),
        budget: Budget::default(),
        recorder,
        pace,
        metrics: Arc::default(),
        health: Arc::default(),
        orders: Arc::default(),
        consumers: None,
        troubles: watch::Sender::default(),
        refused: mpsc::unbounded_channel().0,
        released: watch::Sender::default(),
        former: watch::Sender::default(),
        granted: watch::Sender::default().subscribe(),
        staging_root: None,
    }
}

fn shared() -> Shared {
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let client = Client::try_from(config).unwrap();
    let fleets = Fleets { consumers: Fleet::from(Nop), service: Fleet::from(Nop), nowhere: Fleet::from(Nop) };
    let related = Arc::new(RelatedWatches::new(client.clone(), fleets.clone(), Patience::default()));
    let states = Arc::new(States::new(client.clone(), "agent", "agent"));
    let rules = Rules::compile(&published(serde_json::json!({})), &crontab(), "agent").unwrap();
    let stores = Stores { sources: FleetStore::compact(), copies: FleetStore::compact(), consumer_namespaces: None };
    let (context, requeued) = (Arc::new(context(&client)), mpsc::unbounded_channel().0);
    Shared::new(context, states, stores, (related, fleets), Arc::new(rules), requeued)
}

fn key(cluster: &str, name: &str) -> SourceKey {
    SourceKey { cluster: cluster.into(), namespace: "ns".into(), name: name.into() }
}

fn warned() -> Warned {
    Warned { message: "taken".to_owned(), taken: true }
}

#[tokio::test]
async fn an_order_that_was_released_is_forgotten_when_it_is_deleted() {
    let shared = shared();
    for name in ["stays", "goes"] {
        shared.note_released(&key("c", name), true);
        shared.note_warned(&key("c", name), Some(warned()));
        shared.room_queue.note(&key("c", name), 1);
    }
    shared.forget(&key("c", "goes"));
    assert!(shared.was_released(&key("c", "stays")) && !shared.was_released(&key("c", "goes")));
    assert!(shared.was_taken(&key("c", "stays")) && !shared.was_taken(&key("c", "goes")));
    shared.forget(&key("c", "stays"));
    assert!(shared.released.lock().is_empty() && shared.warned.lock().is_empty());
}

#[tokio::test]
async fn of_a_workspace_that_has_left_no_order_is_kept() {
    let shared = shared();
    for cluster in ["here", "left"] {
        shared.note_released(&key(cluster, "released"), true);
        shared.note_warned(&key(cluster, "warned"), Some(warned()));
    }
    shared.forget_workspace("left");
    assert!(shared.released.lock().iter().eq([&key("here", "released")]));
    assert!(shared.warned.lock().keys().eq([&key("here", "warned")]));
}
