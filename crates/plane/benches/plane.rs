//! What a plane costs: `cargo bench -p carrick-plane`.
//!
//! The server runs in a process of its own, this process is the client; both share the machine. Every figure comes from
//! requests over TLS and HTTP/2, as any client sends them. Numbers as arguments choose single measurements.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a measurement that fails may panic; figures are rounded"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use carrick_plane::{Config, Mode, Plane, User};
use http_body_util::{BodyExt, Full};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

const SERVE: &str = "CARRICK_BENCH_SERVE";
const TOKEN: &str = "bench";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match std::env::var(SERVE) {
        Ok(mode) => runtime.block_on(serve(&mode)),
        Err(_) => runtime.block_on(measure()),
    }
}

/// The server's process: says where it is and stays until its input ends.
async fn serve(mode: &str) {
    let mut config = Config::new(if mode.starts_with("kcp") { Mode::Kcp } else { Mode::Kube });
    config.users = vec![User::new(TOKEN, "bench", &["system:masters"])];
    if let Some((_, folder)) = mode.split_once(':') {
        config.data_dir = Some(folder.into());
    }
    let plane = Plane::start(config).await.unwrap();
    println!("{}", json!({"url": plane.url(), "ca": plane.ca_pem()}));
    std::io::stdout().flush().unwrap();
    let end = tokio::task::spawn_blocking(|| std::io::stdin().lines().count());
    end.await.unwrap();
}

/// A server in a process of its own.
struct Server {
    child: Child,
    client: Client,
    started: Duration,
}

impl Server {
    async fn start(mode: &str) -> Self {
        let begin = Instant::now();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(SERVE, mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let about: Value = serde_json::from_str(&line).unwrap();
        let client = Client::new(about["url"].as_str().unwrap(), about["ca"].as_str().unwrap());
        assert_eq!(client.send("GET", "/readyz", None).await.0, 200);
        Self { child, client, started: begin.elapsed() }
    }

    /// Resident memory in MiB, where the system tells.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: f64 = line.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
        kib / 1024.0
    }

    /// Processor time used so far in seconds, where the system tells.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        (ticks(11) + ticks(12)) / 100.0
    }

    /// Another connection to it.
    fn another(&self) -> Client {
        Client::new(&self.client.base, &self.client.ca)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Clone)]
struct Client {
    http: Http<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
    ca: String,
}

impl Client {
    fn new(base: &str, ca: &str) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector =
            hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http2().build();
        let http = Http::builder(TokioExecutor::new()).http2_only(true).build(connector);
        Self { http, base: base.to_owned(), ca: ca.to_owned() }
    }

    async fn open(&self, method: &str, path: &str, body: Option<String>) -> http::Response<hyper::body::Incoming> {
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", media)
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .unwrap();
        self.http.request(request).await.unwrap()
    }

    async fn send(&self, method: &str, path: &str, body: Option<String>) -> (u16, Bytes) {
        let answer = self.open(method, path, body).await;
        let code = answer.status().as_u16();
        (code, answer.into_body().collect().await.unwrap().to_bytes())
    }
}

/// Calls a function for every number below `count`, so many at a time; returns how many were done per second.
async fn rate<F: Future<Output = ()> + Send>(
    count: usize,
    at_a_time: usize,
    work: impl Fn(usize) -> F + Send + Sync + 'static,
) -> f64 {
    let (next, work) = (Arc::new(AtomicUsize::new(0)), Arc::new(work));
    let begin = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..at_a_time {
        let (next, work) = (next.clone(), work.clone());
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return;
                }
                work(number).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    count as f64 / begin.elapsed().as_secs_f64()
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(number: usize) -> String {
    let data = json!({"number": number.to_string(), "text": "some configuration of the usual size ".repeat(5)});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{number}"), "labels": {"app": "bench"}}, "data": data})
        .to_string()
}

fn report(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

async fn measure() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|text| text.parse::<u32>().is_ok()).collect();
    let on = |number: &str| wanted.is_empty() || wanted.iter().any(|text| text == number);
    println!("| what | figure |\n| --- | --- |");
    if on("1") {
        starts().await;
    }
    if on("2") {
        writes("memory", "kube").await;
        let folder = std::env::temp_dir().join(format!("carrick-bench-{}", uuid::Uuid::new_v4()));
        writes("file", &format!("kube:{}", folder.display())).await;
        std::fs::remove_dir_all(folder).unwrap();
    }
    if on("3") {
        watches().await;
    }
    if on("4") {
        workspaces().await;
    }
    if on("5") {
        lists().await;
    }
}

async fn starts() {
    for (mode, name) in [("kube", "service cluster"), ("kcp", "kcp")] {
        let mut times = Vec::new();
        let mut memory = 0.0_f64;
        for _ in 0..10 {
            let server = Server::start(mode).await;
            times.push(server.started.as_secs_f64() * 1000.0);
            tokio::time::sleep(Duration::from_millis(200)).await;
            memory = memory.max(server.memory());
        }
        times.sort_by(f64::total_cmp);
        report(
            &format!("{name}: start of the process to ready, median of 10"),
            &format!("{:.0} ms (slowest {:.0})", times[5], times[9]),
        );
        report(&format!("{name}: memory when empty"), &format!("{memory:.1} MiB"));
    }
}

async fn writes(place: &str, mode: &str) {
    const COUNT: usize = 20_000;
    let server = Server::start(mode).await;
    let per_one = |before: f64| {
        format!("{:.0} µs of the server's processor time each", (server.cpu() - before) / COUNT as f64 * 1e6)
    };
    let idle = server.cpu();
    let clients = Arc::new([server.another(), server.another()]);
    let shared = clients.clone();
    let created = rate(COUNT, 64, move |number| {
        let client = shared[number % 2].clone();
        async move { assert_eq!(client.send("POST", MAPS, Some(map(number))).await.0, 201) }
    });
    let created = format!("{:.0}; {}", created.await, per_one(idle));
    let idle = server.cpu();
    let shared = clients.clone();
    let patched = rate(COUNT, 64, move |number| {
        let client = shared[number % 2].clone();
        let patch = json!({"data": {"number": format!("again {number}")}}).to_string();
        async move { assert_eq!(client.send("PATCH", &format!("{MAPS}/m{number}"), Some(patch)).await.0, 200) }
    });
    let patched = format!("{:.0}; {}", patched.await, per_one(idle));
    let idle = server.cpu();
    let read = rate(COUNT, 64, move |number| {
        let client = clients[number % 2].clone();
        async move { assert_eq!(client.send("GET", &format!("{MAPS}/m{number}"), None).await.0, 200) }
    });
    let read = format!("{:.0}; {}", read.await, per_one(idle));
    report(&format!("writes per second, kept in {place}: creations"), &created);
    report(&format!("writes per second, kept in {place}: merge patches"), &patched);
    report(&format!("reads per second, kept in {place}: single objects"), &read);
    report(&format!("memory with {COUNT} ConfigMaps, kept in {place}"), &format!("{:.0} MiB", server.memory()));
}

async fn watches() {
    const WATCHERS: usize = 100;
    const WRITES: usize = 3_000;
    let server = Server::start("kube").await;
    let total = Arc::new(AtomicUsize::new(0));
    let mut readers = tokio::task::JoinSet::new();
    let connections: Vec<Client> = (0..10).map(|_| server.another()).collect();
    for number in 0..WATCHERS {
        let (client, total) = (connections[number % 10].clone(), total.clone());
        let path = format!("{MAPS}?watch=1&labelSelector=app%3Dbench");
        let answer = client.open("GET", &path, None).await;
        readers.spawn(async move {
            let (mut body, mut seen) = (answer.into_body(), 0);
            while seen < WRITES {
                let frame = body.frame().await.expect("more events").unwrap().into_data().unwrap();
                let lines = frame.split(|byte| *byte == b'\n').count() - 1;
                seen += lines;
                total.fetch_add(lines, Ordering::Relaxed);
            }
        });
    }
    let (begin, idle) = (Instant::now(), server.cpu());
    let client = server.client.clone();
    let written = rate(WRITES, 16, move |number| {
        let client = client.clone();
        async move { assert_eq!(client.send("POST", MAPS, Some(map(number))).await.0, 201) }
    });
    let written = written.await;
    while let Some(done) = readers.join_next().await {
        done.unwrap();
    }
    let events = total.load(Ordering::Relaxed) as f64;
    let delivered = events / begin.elapsed().as_secs_f64();
    let cost = (server.cpu() - idle) / events * 1e6;
    report(
        &format!("watch events per second delivered to {WATCHERS} watchers of the same kind"),
        &format!("{delivered:.0}; {cost:.1} µs of the server's processor time each"),
    );
    report("writes per second meanwhile", &format!("{written:.0}"));
    report("memory with them", &format!("{:.0} MiB", server.memory()));
}

async fn lists() {
    const COUNT: usize = 100_000;
    let server = Server::start("kube").await;
    let clients = Arc::new([server.another(), server.another()]);
    rate(COUNT, 64, move |number| {
        let client = clients[number % 2].clone();
        async move { assert_eq!(client.send("POST", MAPS, Some(map(number))).await.0, 201) }
    })
    .await;
    report(&format!("memory with {COUNT} ConfigMaps"), &format!("{:.0} MiB", server.memory()));
    for (what, selector) in [("", ""), (" with a label selector", "&labelSelector=app%3Dbench")] {
        let (mut token, mut seen, begin) = (String::new(), 0, Instant::now());
        loop {
            let path = format!("{MAPS}?limit=500{selector}&continue={token}");
            let page: Value = serde_json::from_slice(&server.client.send("GET", &path, None).await.1).unwrap();
            seen += page["items"].as_array().unwrap().len();
            match page["metadata"]["continue"].as_str() {
                Some(next) if !next.is_empty() => next.clone_into(&mut token),
                _ => break,
            }
        }
        assert!(seen >= COUNT);
        let rate = COUNT as f64 / begin.elapsed().as_secs_f64();
        report(&format!("{COUNT} objects listed in pages of 500{what}"), &format!("{rate:.0} objects/s"));
    }
    let begin = Instant::now();
    let path =
        format!("{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    let mut body = server.client.open("GET", &path, None).await.into_body();
    let mut seen = 0;
    while seen < COUNT {
        let frame = body.frame().await.expect("more events").unwrap().into_data().unwrap();
        seen += frame.split(|byte| *byte == b'\n').count() - 1;
    }
    let rate = COUNT as f64 / begin.elapsed().as_secs_f64();
    report(&format!("{COUNT} objects as a streaming list"), &format!("{rate:.0} objects/s"));
    report("memory after that", &format!("{:.0} MiB", server.memory()));
}

async fn workspaces() {
    const COUNT: usize = 1_000;
    let server = Server::start("kcp").await;
    let path = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
    let begin = Instant::now();
    let client = server.client.clone();
    rate(COUNT, 16, move |number| {
        let client = client.clone();
        let body = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": format!("w{number}")},
            "spec": {"type": {"name": "universal", "path": "root"}}});
        async move { assert_eq!(client.send("POST", path, Some(body.to_string())).await.0, 201) }
    })
    .await;
    loop {
        let ready = format!("{path}?labelSelector=tenancy.kcp.io%2Fphase%3DReady");
        let list: Value = serde_json::from_slice(&server.client.send("GET", &ready, None).await.1).unwrap();
        if list["items"].as_array().unwrap().len() == COUNT {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    report(
        &format!("{COUNT} workspaces from the first request to all of them Ready"),
        &format!("{:.1} s", begin.elapsed().as_secs_f64()),
    );
    report("memory with them", &format!("{:.0} MiB", server.memory()));
}
