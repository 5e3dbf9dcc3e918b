//! etcd and API servers on it, which end with the test.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use carrick_client::{Resource, Server};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;

/// Each has a folder of its own.
static STARTED: AtomicUsize = AtomicUsize::new(0);

const START: Duration = Duration::from_mins(3);

/// What starts API servers.
pub struct Servers {
    binaries: PathBuf,
    folder: PathBuf,
    etcd: u16,
    /// How many have got a number of their own accord.
    others: AtomicUsize,
    processes: Mutex<Vec<Running>>,
}

/// An API server that answers.
pub struct ApiServer {
    pub url: String,
    /// The certificate that it is trusted by.
    pub authority: String,
    /// The token of each user.
    pub tokens: BTreeMap<String, String>,
}

impl ApiServer {
    /// The kubeconfig of a user.
    pub fn kubeconfig(&self, user: &str) -> String {
        let authority = data_encoding::BASE64.encode(self.authority.as_bytes());
        json!({"apiVersion": "v1", "kind": "Config", "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": user}}],
            "clusters": [{"name": "it", "cluster": {"server": self.url, "certificate-authority-data": authority}}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}]})
        .to_string()
    }
}

/// A process, and how it is started again.
struct Running {
    name: String,
    args: Vec<String>,
    child: Child,
}

impl Servers {
    /// Starts etcd; nothing if nobody says where the binaries are.
    pub fn start() -> Option<Self> {
        let binaries = PathBuf::from(std::env::var_os("CARRICK_SERVERS")?);
        let count = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("carrick-servers-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (client, peer) = (free(), free());
        let servers = Self { binaries, folder, etcd: client, others: AtomicUsize::new(0), processes: Mutex::default() };
        let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        servers.spawn(
            "etcd",
            &[
                format!("--data-dir={}", servers.folder.join("etcd").display()),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster=default={peer}"),
                "--unsafe-no-fsync".to_owned(),
            ],
        );
        Some(servers)
    }

    fn spawn(&self, name: &str, args: &[String]) {
        let child = self.run(name, args);
        self.processes.lock().unwrap().push(Running { name: name.to_owned(), args: args.to_vec(), child });
    }

    fn run(&self, name: &str, args: &[String]) -> Child {
        let log = self.folder.join(format!("{name}-{}.log", self.processes.lock().unwrap().len()));
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        Command::new(self.binaries.join(name))
            .args(args)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// Kills the API server of this number.
    pub fn kill(&self, number: usize) {
        self.with(number, |running| {
            running.child.kill().unwrap();
            running.child.wait().unwrap();
        });
    }

    /// Starts the API server of this number again, at the same address.
    pub fn revive(&self, number: usize) {
        let (name, args) = self.with(number, |running| (running.name.clone(), running.args.clone()));
        let child = self.run(&name, &args);
        self.with(number, |running| running.child = child);
    }

    fn with<T>(&self, number: usize, act: impl FnOnce(&mut Running) -> T) -> T {
        let prefix = format!("--etcd-prefix=/cluster-{number}");
        act(self.processes.lock().unwrap().iter_mut().find(|running| running.args.contains(&prefix)).unwrap())
    }

    fn write(&self, number: usize, name: &str, text: &str) -> String {
        let path = self.folder.join(format!("{number}-{name}"));
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// One more API server that knows these users and `admin`.
    pub async fn another(&self, users: &[&str]) -> ApiServer {
        self.cluster(self.others.fetch_add(1, Ordering::Relaxed), users).await
    }

    /// An API server that knows these users and `admin`.
    pub async fn cluster(&self, number: usize, users: &[&str]) -> ApiServer {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&authority_key).unwrap().pem();
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let server = server.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap().pem();
        let accounts = KeyPair::generate().unwrap();
        let names = users.iter().copied().chain(["admin"]);
        let tokens: BTreeMap<String, String> =
            names.enumerate().map(|(at, name)| (name.to_owned(), format!("token-{number}-{at}"))).collect();
        let lines = tokens.iter().map(|(name, token)| {
            let group = if name == "admin" { ",system:masters" } else { "" };
            format!("{token},{name},{name}{group}\n")
        });
        let port = free();
        let args = [
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd),
            format!("--etcd-prefix=/cluster-{number}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", self.write(number, "server.crt", &server)),
            format!("--tls-private-key-file={}", self.write(number, "server.key", &key.serialize_pem())),
            format!("--cert-dir={}", self.folder.display()),
            format!("--token-auth-file={}", self.write(number, "tokens.csv", &lines.collect::<String>())),
            "--authorization-mode=RBAC".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.write(number, "accounts.pub", &accounts.public_key_pem())),
            format!(
                "--service-account-signing-key-file={}",
                self.write(number, "accounts.key", &accounts.serialize_pem())
            ),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        ];
        self.spawn("kube-apiserver", &args);
        let started = ApiServer { url: format!("https://127.0.0.1:{port}"), authority: certificate, tokens };
        let client = Server::from_kubeconfig_yaml(&started.kubeconfig("admin")).unwrap().client();
        let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
        let ready = async {
            while !matches!(client.get(&namespaces, None, "default").await, Ok(Some(_))) {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::time::timeout(START, ready).await.unwrap_or_else(|_| panic!("see {}", self.folder.display()));
        started
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for mut running in std::mem::take(&mut *self.processes.lock().unwrap()).into_iter().rev() {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
        remove(&self.folder);
    }
}

fn remove(folder: &Path) {
    if !std::thread::panicking() {
        let _ = std::fs::remove_dir_all(folder);
    }
}

fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
