//! The real servers: etcd, kube-apiserver and kcp, started once per test run on free loopback ports.

pub mod kcp;
pub mod kube;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use carrick_client::{ListOptions, Server};
use data_encoding::BASE64URL_NOPAD;
use futures::FutureExt;
use futures::future::{BoxFuture, LocalBoxFuture};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::TcpListener;

use super::kubeconfig::Access;
use super::servers::{Process, until_ready};
use super::{Pace, Side, Snapshot, User, World, ending_claims};
use crate::cable::Cable;
use crate::kinds;
use crate::ports;
use crate::ran::Versions;
use crate::scratch::Scratch;

/// kcp and kube-apiserver as separate processes. Dropping it ends them.
pub struct RealWorld {
    kcp: Server,
    kcp_access: Access,
    kcp_cable: Cable,
    service: Server,
    service_access: Access,
    service_cable: Cable,
    versions: Versions,
    // In this order: the servers end before their folder is removed. That of kcp comes first.
    processes: Mutex<Vec<Process>>,
    folder: Scratch,
}

/// For how many seconds servers accept a token that has ended: clocks differ.
const LENIENCY: i64 = 60;

impl RealWorld {
    /// What kind of world it is.
    pub const NAME: &str = "real servers";

    /// Starts the servers whose binaries are in a folder and waits until they are ready.
    pub async fn start(binaries: &Path) -> anyhow::Result<Self> {
        let folder = Scratch::new()?;
        let [kube, kcp, etcd] = ports::free()?;
        let (kcp_cable, service_cable) = (lay_cable(kcp).await?, lay_cable(kube).await?);
        let address = format!("https://{}", kcp_cable.near());
        let (kcp, service) =
            tokio::try_join!(kcp::start(binaries, &folder, kcp, &address), kube::start(binaries, &folder, kube, etcd))?;
        let kcp_server = Server::from_kubeconfig_yaml(&kcp.access.kubeconfig(&kcp.url, User::Admin))?;
        let service_server = Server::from_kubeconfig_yaml(&service.access.kubeconfig(&service.url, User::Admin))?;
        let versions = Versions {
            kcp: version(&kcp_server).await?,
            kubernetes: version(&service_server).await?,
            etcd: kube::etcd_version(etcd).await?,
        };
        Ok(Self {
            kcp: kcp_server,
            kcp_access: kcp.access,
            kcp_cable,
            service: service_server,
            service_access: service.access,
            service_cable,
            versions,
            processes: Mutex::new(kcp.processes.into_iter().chain(service.processes).collect()),
            folder,
        })
    }

    /// What the servers say about themselves.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }
}

impl RealWorld {
    /// Where a server's etcd keeps everything.
    fn data(&self, side: Side) -> PathBuf {
        self.folder.path().join(if side == Side::Kcp { kcp::DATA } else { kube::DATA })
    }

    /// Stops the processes of a server and starts them on the files of a snapshot.
    fn start_from(&self, side: Side, files: &Scratch) -> anyhow::Result<()> {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let processes = of(&mut processes, side)?;
        for process in processes.iter_mut().rev() {
            process.stop()?;
        }
        let data = self.data(side);
        fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
        copy(&files.path().join(DATA), &data)?;
        processes.iter_mut().try_for_each(Process::start_again)
    }
}

/// The files in a snapshot's folder.
const DATA: &str = "etcd";

/// The processes of one server, that with its etcd first.
fn of(processes: &mut [Process], side: Side) -> anyhow::Result<&mut [Process]> {
    let (kcp, service) = processes.split_at_mut_checked(1).context("there is no kcp")?;
    Ok(if side == Side::Kcp { kcp } else { service })
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(status.success(), "cannot copy {} to {}", from.display(), to.display());
    Ok(())
}

/// The version that a server reports.
async fn version(server: &Server) -> anyhow::Result<String> {
    let answer = server.client().raw_get("/version").await?;
    Ok(answer["gitVersion"].as_str().context("the server does not report its version")?.to_owned())
}

async fn lay_cable(port: u16) -> anyhow::Result<Cable> {
    // Nobody may get the port while the cable is cut.
    let [near] = ports::free()?;
    Cable::lay(TcpListener::bind((Ipv4Addr::LOCALHOST, near)).await?, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

impl World for RealWorld {
    fn name(&self) -> &'static str {
        Self::NAME
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

    fn restart_kcp(&self) -> BoxFuture<'_, anyhow::Result<()>> {
        async {
            let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
            processes.first_mut().context("there is no kcp")?.restart()
        }
        .boxed()
    }

    fn snapshot(&self, side: Side) -> anyhow::Result<Snapshot> {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let [keeper, ..] = of(&mut processes, side)? else { bail!("there is no etcd") };
        // While it is stopped its files are those that it would find after a crash.
        keeper.signal("STOP")?;
        let files = Scratch::new().and_then(|files| copy(&self.data(side), &files.path().join(DATA)).map(|()| files));
        keeper.signal("CONT")?;
        Ok(Snapshot::Files(files?))
    }

    fn restore<'a>(&'a self, side: Side, snapshot: &'a Snapshot) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        async move {
            let Snapshot::Files(files) = snapshot else { bail!("not a snapshot of an etcd") };
            self.start_from(side, files)?;
            let server = if side == Side::Kcp { &self.kcp } else { &self.service };
            let client = server.client();
            // Whoever lists what is stored waits for the etcd as well. Its processes say nothing more than that: they are not asked.
            until_ready(&mut [], "the restored server", async || {
                Ok(client.list(&kinds::namespaces(), None, &ListOptions::default()).await.map(drop)?)
            })
            .await
        }
        .boxed_local()
    }

    fn ending_soon(&self, token: &str, left: Duration) -> anyhow::Result<String> {
        let claims = ending_claims(token, i64::try_from(left.as_secs())? - LENIENCY)?;
        // kcp makes its key there when it starts for the first time.
        let key = PrivateKeyDer::from_pem_file(self.folder.path().join("sa.key"))?;
        let key = any_supported_type(&key)?;
        let signer = key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]).context("kcp's key is not one of RSA")?;
        let head = token.split('.').next().unwrap_or_default();
        let text = format!("{head}.{}", BASE64URL_NOPAD.encode(claims.to_string().as_bytes()));
        let signature = BASE64URL_NOPAD.encode(&signer.sign(text.as_bytes())?);
        Ok(format!("{text}.{signature}"))
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
