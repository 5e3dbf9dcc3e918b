//! The real servers: etcd, kube-apiserver and kcp, started once per test run on free loopback ports.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use carrick_client::{ListOptions, Server};
use carrick_kcp::kinds::WORKSPACE;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::TcpListener;

use super::kubeconfig::{Access, credentials};
use super::servers::{Process, free_ports};
use super::{AGENT, Pace, User, World};
use crate::cable::Cable;
use crate::kinds;
use crate::scratch::Scratch;

/// kcp needs about half a minute on two cores, more when they are busy.
const START: Duration = Duration::from_mins(4);

/// kcp and kube-apiserver as separate processes. Dropping it ends them.
pub struct RealWorld {
    kcp: Server,
    kcp_access: Access,
    kcp_cable: Cable,
    service: Server,
    service_access: Access,
    service_cable: Cable,
    // In this order: the servers end before their folder is removed.
    _processes: Vec<Process>,
    _folder: Scratch,
}

impl RealWorld {
    /// Starts the servers whose binaries are in a folder and waits until they are ready.
    pub async fn start(binaries: &Path) -> anyhow::Result<Self> {
        let folder = Scratch::new()?;
        let [etcd_client, etcd_peer, kube, kcp, kcp_etcd_client, kcp_etcd_peer] = free_ports()?;
        let (kcp_cable, service_cable) = (lay_cable(kcp).await?, lay_cable(kube).await?);
        let certificates = Certificates::make()?;
        let service_access = Access {
            authority: data_encoding::BASE64.encode(certificates.authority.as_bytes()),
            admin: new_token(),
            agent: new_token(),
        };
        let agent = new_token();
        let start = |name, args: &[String]| Process::start(name, &binaries.join(name), folder.path(), args);
        let mut processes = vec![
            start("kcp", &kcp_args(&folder, &agent, &kcp_cable, [kcp, kcp_etcd_client, kcp_etcd_peer])?)?,
            start("etcd", &etcd_args(&folder, etcd_client, etcd_peer))?,
            start("kube-apiserver", &kube_args(&folder, &certificates, &service_access, kube, etcd_client)?)?,
        ];

        let direct = service_access.kubeconfig(&format!("https://127.0.0.1:{kube}"), User::Admin);
        let service = Server::from_kubeconfig_yaml(&direct)?;
        until_ready(&mut processes, "kube-apiserver", async || {
            let default = service.client().get(&kinds::namespaces(), None, "default").await?;
            default.context("the namespace default does not exist yet").map(drop)
        })
        .await?;

        let file = folder.path().join("admin.kubeconfig");
        let (kcp, kcp_access) = until_ready(&mut processes, "kcp", async || {
            let (authority, admin) = credentials(&std::fs::read_to_string(&file)?)?;
            let access = Access { authority, admin, agent: agent.clone() };
            let direct = access.kubeconfig(&format!("https://127.0.0.1:{kcp}/clusters/root"), User::Admin);
            let server = Server::from_kubeconfig_yaml(&direct)?;
            server.client().list(&kinds::kcp(&WORKSPACE), None, &ListOptions::default()).await?;
            Ok((server, access))
        })
        .await?;
        Ok(Self {
            kcp,
            kcp_access,
            kcp_cable,
            service,
            service_access,
            service_cable,
            _processes: processes,
            _folder: folder,
        })
    }
}

async fn lay_cable(port: u16) -> anyhow::Result<Cable> {
    Cable::lay(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn new_token() -> String {
    uuid::Uuid::new_v4().to_string()
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

    fn kcp_kubeconfig(&self, user: User, workspace: &str) -> String {
        self.kcp_access.kubeconfig(&format!("https://{}/clusters/{workspace}", self.kcp_cable.near()), user)
    }

    fn service_kubeconfig(&self, user: User) -> String {
        self.service_access.kubeconfig(&format!("https://{}", self.service_cable.near()), user)
    }

    fn kcp_cable(&self) -> &Cable {
        &self.kcp_cable
    }

    fn service_cable(&self) -> &Cable {
        &self.service_cable
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

fn kcp_args(
    folder: &Scratch,
    agent: &str,
    cable: &Cable,
    [port, etcd_client, etcd_peer]: [u16; 3],
) -> anyhow::Result<Vec<String>> {
    let tokens = folder.write("kcp-tokens.csv", &format!("{agent},{AGENT},{AGENT}\n"))?;
    Ok(vec![
        "start".to_owned(),
        format!("--root-directory={}", folder.path().display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--shard-virtual-workspace-url=https://{}", cable.near()),
        format!("--token-auth-file={}", tokens.display()),
        format!("--embedded-etcd-client-port={etcd_client}"),
        format!("--embedded-etcd-peer-port={etcd_peer}"),
    ])
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

fn kube_args(
    folder: &Scratch,
    certificates: &Certificates,
    Access { admin, agent, .. }: &Access,
    port: u16,
    etcd: u16,
) -> anyhow::Result<Vec<String>> {
    let tokens = format!("{admin},admin,admin,system:masters\n{agent},{AGENT},{AGENT}\n");
    let tokens = folder.write("tokens.csv", &tokens)?;
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

/// What kube-apiserver shows to its clients, in PEM.
struct Certificates {
    authority: String,
    server: String,
    key: String,
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
        Ok(Self { authority: certificate.pem(), server: server.pem(), key: key.serialize_pem() })
    }
}
