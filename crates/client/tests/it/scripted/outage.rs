//! Servers that go and come back, and credentials that are refused for a while.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Overrides, Server};
use futures::StreamExt;
use http::header::AUTHORIZATION;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::server::{Answer, Protocol, TestServer, Then, list, object, refused, secrets};

/// A door that is shut in everybody's face. Knocks are counted.
struct Door {
    address: SocketAddr,
    knocks: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Door {
    async fn shut() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, knocks) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let count = knocks.clone();
        let task = tokio::spawn(async move {
            while let Ok((knock, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                drop(knock);
            }
        });
        Self { address, knocks, task }
    }

    fn knocks(&self) -> usize {
        self.knocks.load(Ordering::SeqCst)
    }

    /// Makes room for a server.
    async fn open(self) -> TcpListener {
        self.task.abort();
        let _ = self.task.await;
        TcpListener::bind(self.address).await.unwrap()
    }
}

fn kubeconfig(address: SocketAddr, user: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Config, current-context: c, \
         clusters: [{{name: s, cluster: {{server: 'http://{address}/base'}}}}], users: [{{name: u, user: {{{user}}}}}], \
         contexts: [{{name: c, context: {{cluster: s, user: u}}}}]}}"
    )
}

fn paged() -> WatchOptions {
    WatchOptions { streaming_lists: false, ..WatchOptions::default() }
}

#[tokio::test]
async fn a_server_that_is_away_is_asked_by_one_and_everybody_goes_on_when_it_is_back() {
    const WATCHES: usize = 50;
    let door = Door::shut().await;
    let server = Server::from_kubeconfig_yaml(&kubeconfig(door.address, "token: t")).unwrap();
    let begun = Instant::now();
    let mut watches = JoinSet::new();
    let reported = Arc::<AtomicUsize>::default();
    for _ in 0..WATCHES {
        let (client, reported) = (server.client(), reported.clone());
        watches.spawn(async move {
            let mut events = std::pin::pin!(watch(client, secrets(), paged()));
            while let Some(event) = events.next().await {
                match event {
                    Event::Failing(_) => drop(reported.fetch_add(1, Ordering::SeqCst)),
                    Event::Synced => return,
                    _ => {}
                }
            }
        });
    }
    while reported.load(Ordering::SeqCst) < WATCHES || door.knocks() < 6 {
        let problem = server.client().raw_get("/api").await.unwrap_err();
        assert!(problem.is_transient(), "{problem}");
        tokio::task::yield_now().await;
    }
    // One request, and then probes: the pauses between them grow from a quarter of a second to a second.
    let most = 6 + usize::try_from(begun.elapsed().as_secs()).unwrap_or(usize::MAX - 6);
    assert!(door.knocks() <= most, "{} knocks in {:?}", door.knocks(), begun.elapsed());

    let waiting = tokio::spawn({
        let client = server.client();
        async move { client.pause(Duration::from_mins(10)).await }
    });
    let address = door.address;
    let answers = (0..WATCHES).flat_map(|_| {
        let quiet = Answer::Watch(vec![], Then::Hold);
        [Answer::For("limit=", Box::new(list(5, &[object("a", 1)]))), Answer::For("watch=", Box::new(quiet))]
    });
    let back = TestServer::start_on(door.open().await, Protocol::Plain, answers.collect());
    assert!(back.kubeconfig.contains(&address.to_string()));
    let all = async { while watches.join_next().await.is_some() {} };
    tokio::time::timeout(Duration::from_mins(1), all).await.unwrap();
    tokio::time::timeout(Duration::from_mins(1), waiting).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_single_lost_answer_is_no_outage() {
    // The first connection is closed, the next ones are served.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server::from_kubeconfig_yaml(&kubeconfig(listener.local_addr().unwrap(), "token: t")).unwrap();
    let client = server.client();
    let (first, ()) = tokio::join!(client.raw_get("/api"), async {
        drop(listener.accept().await.unwrap());
    });
    assert!(first.unwrap_err().is_transient());
    // Whoever comes next waits for the probe, and the probe for the server.
    let next = tokio::spawn(async move { client.raw_get("/api").await });
    let _back = TestServer::start_on(listener, Protocol::Plain, vec![Answer::Json(200, json!({"fine": true}))]);
    assert_eq!(next.await.unwrap().unwrap()["fine"], true);
}

/// A file that goes with its test.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("carrick-outage-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn replace(&self, text: &str) {
        let next = self.0.with_extension("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, &self.0).unwrap();
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_token_file_that_was_replaced_wakes_all_who_were_refused() {
    let server = TestServer::start(vec![Answer::Json(200, json!({})), refused(401, "Unauthorized")]).await;
    let (token, config) = (TempFile::new("token", "old"), TempFile::new("config", ""));
    let user = format!("tokenFile: '{}'", token.0.display());
    config.replace(&server.kubeconfig.replace("token: secret-token", &user));
    let client = Server::from_kubeconfig(&config.0, &Overrides::default()).unwrap().client();
    client.raw_get("/api").await.unwrap();
    let mut events = std::pin::pin!(watch(client.clone(), secrets(), paged()));
    let mut next = async || tokio::time::timeout(Duration::from_mins(1), events.next()).await.unwrap().unwrap();
    assert!(matches!(next().await, Event::Begin));
    assert!(matches!(next().await, Event::Failing(error) if error.status().unwrap().code == 401));
    token.replace("new");
    let listed = async { while !matches!(next().await, Event::Synced) {} };
    let accept = async {
        for request in 2.. {
            while server.lines().len() <= request {
                tokio::task::yield_now().await;
            }
            if server.seen()[request].headers[AUTHORIZATION] == "Bearer new" {
                return server.then(list(5, &[object("a", 1)]));
            }
            server.then(refused(401, "Unauthorized"));
        }
    };
    tokio::join!(listed, accept);
}

#[tokio::test]
async fn a_request_that_was_refused_is_sent_again_with_renewed_credentials() {
    let server = TestServer::start(vec![]).await;
    let config = TempFile::new("renewed", &server.kubeconfig);
    let client = Server::from_kubeconfig(&config.0, &Overrides::default()).unwrap().client();
    config.replace(&server.kubeconfig.replace("secret-token", "renewed-token"));
    // Files are looked at when that was not done for a moment, so it may take several refusals.
    let answer = loop {
        server.then(refused(401, "Unauthorized"));
        let before = server.lines().len();
        let asking = tokio::spawn({
            let client = client.clone();
            async move { client.create(&secrets(), Some("ns"), &object("a", 1)).await }
        });
        while !asking.is_finished() && server.lines().len() < before + 2 {
            tokio::task::yield_now().await;
        }
        if !asking.is_finished() {
            server.then(Answer::Json(201, object("a", 1)));
            break asking.await.unwrap();
        }
    };
    assert_eq!(answer.unwrap(), object("a", 1));
    let seen = server.seen();
    let [refused, again] = &seen[seen.len() - 2..] else { panic!("{} requests", seen.len()) };
    assert_eq!((&refused.line, &refused.body), (&again.line, &again.body));
    assert_eq!(again.headers[AUTHORIZATION], "Bearer renewed-token");
}
