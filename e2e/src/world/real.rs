//! The real servers: etcd, kube-apiserver and kcp, started once per test run on free loopback ports.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use carrick_client::{ListOptions, Server};
use carrick_kcp::kinds::WORKSPACE;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::servers::{Process, free_ports};
use super::{Pace, World};
use crate::kinds;
use crate::scratch::Scratch;

/// kcp needs about half a minute on two cores, more when they are busy.
const START: Duration = Duration::from_mins(4);
const ADMIN: &str = "admin";

/// kcp and kube-apiserver as separate processes. Dropping it ends them.
pub struct RealWorld {
    kcp: Server,
    kcp_config: Value,
    service: Server,
    service_config: String,
    // In this order: the servers end before their folder is removed.
    _processes: Vec<Process>,
    _folder: Scratch,
}

impl RealWorld {
    /// Starts the servers whose binaries are in a folder and waits until they are ready.
    pub async fn start(binaries: &Path) -> anyhow::Result<Self> {
        let folder = Scratch::new()?;
        let [etcd_client, etcd_peer, kube, kcp, kcp_etcd_client, kcp_etcd_peer] = free_ports()?;
        let certificates = Certificates::make()?;
        let start = |name, args: &[String]| Process::start(name, &binaries.join(name), folder.path(), args);
        let mut processes = vec![
            start("kcp", &kcp_args(&folder, kcp, kcp_etcd_client, kcp_etcd_peer))?,
            start("etcd", &etcd_args(&folder, etcd_client, etcd_peer))?,
            start("kube-apiserver", &kube_args(&folder, &certificates, kube, etcd_client)?)?,
        ];

        let service_config =
            kubeconfig(&format!("https://127.0.0.1:{kube}"), &certificates.authority, &certificates.token);
        let service = Server::from_kubeconfig_yaml(&service_config)?;
        until_ready(&mut processes, "kube-apiserver", async || {
            let default = service.client().get(&kinds::namespaces(), None, "default").await?;
            default.context("the namespace default does not exist yet").map(drop)
        })
        .await?;

        let file = folder.path().join("admin.kubeconfig");
        let (kcp, kcp_config) = until_ready(&mut processes, "kcp", async || {
            let text = std::fs::read_to_string(&file)?;
            let server = Server::from_kubeconfig_yaml(&text)?;
            server.client().list(&kinds::kcp(&WORKSPACE), None, &ListOptions::default()).await?;
            Ok((server, serde_saphyr::from_str(&text)?))
        })
        .await?;
        Ok(Self { kcp, kcp_config, service, service_config, _processes: processes, _folder: folder })
    }
}

impl World for RealWorld {
    fn name(&self) -> &'static str {
        "real servers"
    }

    fn kcp(&self) -> &Server {
        &self.kcp
    }

    fn service(&self) -> &Server {
        &self.service
    }

    fn kcp_kubeconfig(&self, workspace: &str) -> String {
        let mut config = self.kcp_config.clone();
        for cluster in config["clusters"].as_array_mut().into_iter().flatten() {
            if let Some(root) = cluster["cluster"]["server"].as_str().and_then(|url| url.strip_suffix("/clusters/root"))
            {
                cluster["cluster"]["server"] = json!(format!("{root}/clusters/{workspace}"));
            }
        }
        // JSON is YAML.
        config.to_string()
    }

    fn service_kubeconfig(&self) -> String {
        self.service_config.clone()
    }

    fn pace(&self) -> Pace {
        Pace {
            patience: Duration::from_mins(1),
            glance: Duration::from_millis(50),
            // Longer than the agent's slowest timer on healthy objects.
            rest: Duration::from_secs(6),
        }
    }
}

/// Asks until the answer is good, a server has ended, or it took too long.
async fn until_ready<T>(
    processes: &mut [Process],
    name: &str,
    mut ask: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + START;
    loop {
        let problem = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(problem) => problem,
        };
        for process in &mut *processes {
            process.check()?;
        }
        if Instant::now() > deadline {
            let words: Vec<_> = processes.iter().map(Process::last_words).collect();
            return Err(problem.context(format!("{name} is not ready; the servers say: {}", words.join("\n---\n"))));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn kcp_args(folder: &Scratch, port: u16, etcd_client: u16, etcd_peer: u16) -> Vec<String> {
    vec![
        "start".to_owned(),
        format!("--root-directory={}", folder.path().display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--embedded-etcd-client-port={etcd_client}"),
        format!("--embedded-etcd-peer-port={etcd_peer}"),
    ]
}

fn etcd_args(folder: &Scratch, client: u16, peer: u16) -> Vec<String> {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    vec![
        format!("--data-dir={}", folder.path().join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".to_owned(),
    ]
}

fn kube_args(folder: &Scratch, certificates: &Certificates, port: u16, etcd: u16) -> anyhow::Result<Vec<String>> {
    let tokens = folder.write("tokens.csv", &format!("{},{ADMIN},{ADMIN},system:masters\n", certificates.token))?;
    let accounts = KeyPair::generate()?;
    let account_key = folder.write("accounts.key", &accounts.serialize_pem())?;
    let account_public_key = folder.write("accounts.pub", &accounts.public_key_pem())?;
    Ok(vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", folder.write("server.crt", &certificates.server)?.display()),
        format!("--tls-private-key-file={}", folder.write("server.key", &certificates.key)?.display()),
        format!("--cert-dir={}", folder.path().display()),
        format!("--token-auth-file={}", tokens.display()),
        "--authorization-mode=RBAC".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", account_public_key.display()),
        format!("--service-account-signing-key-file={}", account_key.display()),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
    ])
}

/// What kube-apiserver and its administrator know each other by, in PEM.
struct Certificates {
    authority: String,
    server: String,
    key: String,
    token: String,
}

impl Certificates {
    fn make() -> anyhow::Result<Self> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&authority_key)?;
        let key = KeyPair::generate()?;
        let server = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        let server = server.signed_by(&key, &Issuer::new(authority, authority_key))?;
        Ok(Self {
            authority: certificate.pem(),
            server: server.pem(),
            key: key.serialize_pem(),
            token: uuid::Uuid::new_v4().to_string(),
        })
    }
}

fn kubeconfig(server: &str, authority: &str, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "service", "cluster": {
            "server": server,
            "certificate-authority-data": data_encoding::BASE64.encode(authority.as_bytes()),
        }}],
        "users": [{ "name": ADMIN, "user": { "token": token } }],
        "contexts": [{ "name": "service", "context": { "cluster": "service", "user": ADMIN } }],
        "current-context": "service",
    });
    config.to_string()
}
