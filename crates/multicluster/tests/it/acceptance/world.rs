//! Endpoints, clusters and whoever watches them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::Client;
use carrick_multicluster::{Cluster, ClusterKey, Endpoint, FleetEvent, Gone, Provider};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use carrick_multicluster::testing::FakeEndpoint;

/// A provider whose events the test sends. One stream only.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    sent: Vec<FleetEvent>,
    listeners: Vec<mpsc::UnboundedSender<FleetEvent>>,
    engaged: HashMap<String, Cluster>,
}

impl Provider for Script {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let mut inner = self.0.lock();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        inner.listeners.push(sender);
        let changes = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
        futures::stream::iter(inner.sent.clone()).chain(changes).boxed()
    }
}

impl Script {
    pub fn send(&self, event: FleetEvent) {
        let mut inner = self.0.lock();
        inner.listeners.retain(|listener| listener.send(event.clone()).is_ok());
        inner.sent.push(event);
    }

    pub fn up(&self, id: &str, fake: &FakeEndpoint) {
        self.send(FleetEvent::EndpointUp(Endpoint::new(id, fake.client(), ClusterKey::KCP)));
    }

    pub fn engage(&self, name: &str, endpoint: &str, fake: &FakeEndpoint) -> Cluster {
        let client = Client::from(fake.client()).below(&format!("/clusters/{name}"));
        let cluster = Cluster::new(name.parse().unwrap(), endpoint.into(), client);
        self.0.lock().engaged.insert(name.to_owned(), cluster.clone());
        self.send(FleetEvent::Engage(cluster.clone()));
        cluster
    }

    pub fn disengage(&self, cluster: &Cluster) {
        let (name, epoch) = (cluster.name().clone(), cluster.epoch());
        self.send(FleetEvent::Disengage { name, epoch, why: Gone::Removed });
    }

    /// An endpoint with clusters, all told.
    pub fn with(id: &str, fake: &FakeEndpoint, clusters: &[&str]) -> Self {
        let script = Self::default();
        script.up(id, fake);
        for cluster in clusters {
            script.engage(cluster, id, fake);
        }
        script.send(FleetEvent::Synced);
        script
    }
}

/// Words that somebody said, in order.
#[derive(Clone, Default)]
pub struct Words(Arc<Mutex<Vec<String>>>);

impl Words {
    pub fn say(&self, word: impl Into<String>) {
        self.0.lock().push(word.into());
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    pub fn sorted(&self) -> Vec<String> {
        let mut words = self.all();
        words.sort();
        words
    }

    /// Takes everything said so far.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    pub fn count(&self, word: &str) -> usize {
        self.0.lock().iter().filter(|said| *said == word).count()
    }

    /// Waits until a word is said.
    pub async fn receive(&self, word: &str) {
        eventually(|| self.count(word) > 0, || format!("{word:?} among {:?}", self.all())).await;
    }

    /// Waits until that many words are said.
    pub async fn hear_many(&self, count: usize) {
        eventually(|| self.0.lock().len() >= count, || format!("{count} words, heard {}", self.0.lock().len())).await;
    }
}

/// Waits for a condition.
pub async fn eventually(condition: impl Fn() -> bool, wanted: impl Fn() -> String) {
    let met = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_mins(1), met).await.is_ok();
    assert!(in_time, "waited in vain for {}", wanted());
}

/// Polls a controller to its end, keeping what it reports as errors.
pub fn poll<T: Send, E: std::fmt::Display + Send>(
    reports: impl Stream<Item = Result<T, E>> + Send + 'static,
) -> (JoinHandle<()>, Words) {
    let errors = Words::default();
    let said = errors.clone();
    let task = tokio::spawn(async move {
        let mut reports = std::pin::pin!(reports);
        while let Some(report) = reports.next().await {
            if let Err(error) = report {
                said.say(error.to_string());
            }
        }
    });
    (task, errors)
}

/// A ConfigMap with one value.
pub fn data(value: &str) -> Value {
    json!({"data": {"value": value}})
}

/// The warnings of one thread.
#[derive(Clone, Default)]
pub struct Warnings(pub Words);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN && metadata.target().starts_with("carrick_multicluster")
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            if field.name() == "message" {
                text = format!("{value:?}");
            }
        });
        self.0.say(text);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
