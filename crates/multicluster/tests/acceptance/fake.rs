//! An endpoint in memory: lists and watches of any kind, for many clusters at once.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::mpsc;
use futures::stream::BoxStream;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// One endpoint. Cloning shares it.
#[derive(Clone, Default)]
pub struct Fake(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u64,
    /// By plural, cluster, namespace and name.
    objects: BTreeMap<[String; 4], Value>,
    log: Vec<(u64, String, Bytes)>,
    /// Watches may not start before this version.
    oldest: u64,
    watchers: Vec<(String, mpsc::UnboundedSender<Bytes>)>,
    requests: HashMap<String, Requests>,
    down: bool,
    /// Clusters that refuse every request.
    forbidden: Vec<String>,
}

/// How often a kind was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pub lists: usize,
    pub watches: usize,
}

impl Fake {
    /// A client of the endpoint; paths `/clusters/<name>/…` lead to one cluster.
    pub fn client(&self) -> kube::Client {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = fake.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        kube::Client::new(service, "default")
    }

    /// Creates or replaces an object. The value may hold anything but the key.
    pub fn put(&self, plural: &str, cluster: &str, namespace: &str, name: &str, value: &Value) {
        let mut state = self.0.lock();
        let key = [plural, cluster, namespace, name].map(str::to_owned);
        state.version += 1;
        let known = state.objects.get(&key);
        let r#type = if known.is_some() { "MODIFIED" } else { "ADDED" };
        let mut object = value.clone();
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(name);
        metadata["uid"] = json!(format!("{cluster}-{namespace}-{name}"));
        metadata["resourceVersion"] = json!(state.version.to_string());
        metadata["annotations"]["kcp.io/cluster"] = json!(cluster);
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        state.tell(plural, r#type, &object);
        state.objects.insert(key, object);
    }

    /// Deletes an object.
    pub fn delete(&self, plural: &str, cluster: &str, namespace: &str, name: &str) {
        let mut state = self.0.lock();
        state.version += 1;
        let key = [plural, cluster, namespace, name].map(str::to_owned);
        let mut object = state.objects.remove(&key).unwrap();
        object["metadata"]["resourceVersion"] = json!(state.version.to_string());
        state.tell(plural, "DELETED", &object);
    }

    /// Ends all watches; a new one may start only from the present.
    pub fn forget_the_past(&self) {
        let mut state = self.0.lock();
        state.watchers.clear();
        state.version += 1;
        state.oldest = state.version;
        state.log.clear();
    }

    /// Answers 503 to everything, or not any more.
    pub fn set_down(&self, down: bool) {
        let mut state = self.0.lock();
        state.down = down;
        if down {
            state.watchers.clear();
        }
    }

    /// Answers 403 to everything about a cluster.
    pub fn forbid(&self, cluster: &str) {
        self.0.lock().forbidden.push(cluster.to_owned());
    }

    /// Whether anybody watches.
    pub fn is_watched(&self) -> bool {
        self.0.lock().watchers.iter().any(|(_, watcher)| !watcher.is_closed())
    }

    /// How often a kind was asked for.
    pub fn requests(&self, plural: &str) -> Requests {
        self.0.lock().requests.get(plural).copied().unwrap_or_default()
    }

    fn answer(&self, request: &Request<Body>) -> Answer {
        let mut state = self.0.lock();
        let path = request.uri().path();
        let query: HashMap<&str, &str> =
            request.uri().query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('=')).collect();
        let mut segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let cluster = (segments.first() == Some(&"clusters")).then(|| {
            let cluster = segments[1].to_owned();
            segments.drain(..2);
            cluster
        });
        if state.down {
            return refusal(503, "ServiceUnavailable");
        }
        if cluster.as_ref().is_some_and(|cluster| state.forbidden.contains(cluster)) {
            return refusal(403, "Forbidden");
        }
        // Behind /api/v1 or /apis/<group>/<version>.
        segments.drain(..if segments[0] == "api" { 2 } else { 3 });
        let (namespace, rest) = match segments[..] {
            ["namespaces", namespace, _, ..] => (namespace, &segments[2..]),
            _ => ("", &segments[..]),
        };
        let plural = rest[0].to_owned();
        if let Some(name) = rest.get(1) {
            let key = [&plural, cluster.as_deref().unwrap_or_default(), namespace, name].map(str::to_owned);
            return match state.objects.get(&key) {
                Some(object) => whole(200, object),
                None => refusal(404, "NotFound"),
            };
        }
        let counts = state.requests.entry(plural.clone()).or_default();
        if query.get("watch") != Some(&"true") {
            counts.lists += 1;
            let items: Vec<&Value> =
                state.objects.iter().filter(|(key, _)| key[0] == plural).map(|(_, object)| object).collect();
            let version = state.version.to_string();
            return whole(200, &json!({"metadata": {"resourceVersion": version}, "items": items}));
        }
        counts.watches += 1;
        let since: u64 = query.get("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or_default();
        if since < state.oldest {
            return refusal(410, "Expired");
        }
        let (sender, receiver) = mpsc::unbounded();
        for (_, _, line) in state.log.iter().filter(|(version, kind, _)| *version > since && *kind == plural) {
            let _ = sender.unbounded_send(line.clone());
        }
        state.watchers.push((plural, sender));
        stream(200, receiver)
    }
}

impl State {
    fn tell(&mut self, plural: &str, r#type: &str, object: &Value) {
        let line = Bytes::from(format!("{}\n", json!({"type": r#type, "object": object})));
        self.log.push((self.version, plural.to_owned(), line.clone()));
        self.watchers.retain(|(kind, watcher)| kind != plural || watcher.unbounded_send(line.clone()).is_ok());
    }
}

type Lines = mpsc::UnboundedReceiver<Bytes>;
type Answer = Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;

fn stream(code: u16, lines: Lines) -> Answer {
    let frames = lines.map(|line| Ok(Frame::data(line))).boxed();
    Response::builder().status(code).body(StreamBody::new(frames)).unwrap()
}

fn whole(code: u16, value: &Value) -> Answer {
    let (sender, receiver) = mpsc::unbounded();
    sender.unbounded_send(Bytes::from(value.to_string())).unwrap();
    stream(code, receiver)
}

fn refusal(code: u16, reason: &str) -> Answer {
    let message = format!("{reason} by the fake");
    whole(code, &json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}))
}
