//! Renewed credentials and addresses, and proxies on the way.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use carrick_client::{Overrides, Server};
use http::header::AUTHORIZATION;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::server::{Answer, Protocol, TestServer, status};

/// A file that goes with its test.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("carrick-ways-{name}-{}", std::process::id()));
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
async fn a_token_that_was_replaced_in_the_kubeconfig_is_used_from_then_on() {
    let server = TestServer::start(vec![Answer::Json(200, json!({}))]).await;
    let file = TempFile::new("token", &server.kubeconfig);
    let client = Server::from_kubeconfig(&file.0, &Overrides::default()).unwrap().client();
    client.raw_get("/api").await.unwrap();

    // A file that cannot be used changes nothing; the next one does.
    file.replace("{");
    file.replace(&server.kubeconfig.replace("secret-token", "renewed-token"));
    loop {
        // Once there is another token, what was refused is sent again.
        server.then(Answer::Json(401, status(401, "Unauthorized")));
        server.then(Answer::Json(401, status(401, "Unauthorized")));
        let _ = client.raw_get("/api").await;
        let token = server.seen().last().unwrap().headers[AUTHORIZATION].to_str().unwrap().to_owned();
        if token == "Bearer renewed-token" {
            break;
        }
        assert_eq!(token, "Bearer secret-token");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_token_that_is_known_before_the_file_brings_it_is_used_until_the_file_changes() {
    let server = TestServer::start(vec![]).await;
    let file = TempFile::new("borrowed", &server.kubeconfig);
    let opened = Server::from_kubeconfig(&file.0, &Overrides::default()).unwrap();
    let client = opened.client();
    let with = |token: &str| server.kubeconfig.replace("secret-token", token);
    let used = async |answer: Answer| {
        server.then(answer);
        let _ = client.raw_get("/api").await;
        server.seen().last().unwrap().headers[AUTHORIZATION].to_str().unwrap().to_owned()
    };
    assert_eq!(used(Answer::Json(200, json!({}))).await, "Bearer secret-token");
    let elsewhere = with("stolen-token").replace("127.0.0.1", "127.0.0.2");
    assert!(!opened.borrow_from_kubeconfig_yaml(&elsewhere).unwrap());
    assert_eq!(used(Answer::Json(200, json!({}))).await, "Bearer secret-token");
    assert!(opened.borrow_from_kubeconfig_yaml(&with("borrowed-token")).unwrap());
    assert_eq!(used(Answer::Json(200, json!({}))).await, "Bearer borrowed-token");
    file.replace(&with("renewed-token"));
    loop {
        // What was refused is sent again as soon as there is another token.
        server.then(Answer::Json(401, status(401, "Unauthorized")));
        match used(Answer::Json(401, status(401, "Unauthorized"))).await.as_str() {
            "Bearer renewed-token" => break,
            token => assert_eq!(token, "Bearer borrowed-token"),
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_that_has_moved_is_asked_at_its_new_address() {
    let old =
        TestServer::start(vec![Answer::Json(200, json!({})), Answer::Json(401, status(401, "Unauthorized"))]).await;
    let new = TestServer::start(vec![Answer::Json(200, json!({ "moved": true }))]).await;
    let file = TempFile::new("address", &old.kubeconfig);
    let client = Server::from_kubeconfig(&file.0, &Overrides::default()).unwrap().client();
    client.raw_get("/api").await.unwrap();
    file.replace(&new.kubeconfig);
    let answer = loop {
        // Being refused makes the client look at the file, though not too often.
        old.then(Answer::Json(401, status(401, "Unauthorized")));
        if let Ok(answer) = client.below("/clusters/root:a").raw_get("/api").await {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(answer["moved"], true);
    assert_eq!(new.seen()[0].line, "GET /base/clusters/root:a/api");
}

#[tokio::test]
async fn requests_go_through_the_proxy_of_the_environment() {
    let server = TestServer::start(vec![Answer::Json(200, json!({}))]).await;
    let tunnels = Arc::new(AtomicUsize::new(0));
    let place = server.server().url().replace("http://", "").replace("/base", "");
    let proxy = proxy_to(tunnels.clone(), "proxy-authorization: Basic bWU6cHc=", Some(place.clone())).await;
    // The environment of a process cannot be changed safely, but that of a new one can.
    let kubeconfig = server.kubeconfig.replace(&place, "far.example");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "scripted::ways::a_request_in_a_changed_environment", "--ignored"]);
    child.env("HTTP_PROXY", format!("http://me:pw@{proxy}"));
    child.env(KUBECONFIG_TEXT, kubeconfig);
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((tunnels.load(Ordering::SeqCst), server.connections()), (1, 1));
}

const KUBECONFIG_TEXT: &str = "CARRICK_TEST_KUBECONFIG";

#[tokio::test]
#[ignore = "runs inside another test"]
async fn a_request_in_a_changed_environment() {
    let kubeconfig = std::env::var(KUBECONFIG_TEXT).unwrap();
    Server::from_kubeconfig_yaml(&kubeconfig).unwrap().client().raw_get("/api").await.unwrap();
}

/// An HTTP proxy that only opens tunnels, to where it is asked to; counts them.
async fn proxy(tunnels: Arc<AtomicUsize>, who: &'static str) -> String {
    proxy_to(tunnels, who, None).await
}

/// The same, to one place whatever is asked.
async fn proxy_to(tunnels: Arc<AtomicUsize>, who: &'static str, to: Option<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (tunnels, to) = (tunnels.clone(), to.clone());
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut head = Vec::new();
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).await.unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                    head.push(line.trim().to_owned());
                }
                let place = head[0].strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap().to_owned();
                assert!(head.iter().any(|line| line.eq_ignore_ascii_case(who)), "{head:?}");
                tunnels.fetch_add(1, Ordering::SeqCst);
                let mut there = TcpStream::connect(to.unwrap_or(place)).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut there).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn requests_go_through_the_proxy_of_the_kubeconfig() {
    let server = TestServer::start_as(Protocol::TlsHttp2, vec![Answer::Json(200, json!({}))]).await;
    let tunnels = Arc::new(AtomicUsize::new(0));
    // base64 of "me:pw"
    let address = proxy(tunnels.clone(), "proxy-authorization: Basic bWU6cHc=").await;
    let kubeconfig = server.kubeconfig.replace("server:", &format!("proxy-url: 'http://me:pw@{address}', server:"));
    let client = Server::from_kubeconfig_yaml(&kubeconfig).unwrap().client();
    client.raw_get("/api").await.unwrap();
    assert_eq!((tunnels.load(Ordering::SeqCst), server.connections()), (1, 1));
}
