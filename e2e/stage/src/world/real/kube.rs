//! kube-apiserver, with an etcd of its own.

use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Context;
use carrick_client::Server;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::kinds;
use crate::ports;
use crate::scratch::Scratch;
use crate::world::kubeconfig::Access;
use crate::world::servers::{Process, Started, new_token, until_ready};
use crate::world::{AGENT, User};

/// Where its etcd keeps everything.
pub(super) const DATA: &str = "etcd";

/// Starts kube-apiserver on a port and etcd on another one, and waits until the namespace `default` is there.
pub async fn start(binaries: &Path, folder: &Scratch, port: u16, client: u16) -> anyhow::Result<Started> {
    let [peer] = ports::free()?;
    let certificates = Certificates::make()?;
    let authority = data_encoding::BASE64.encode(certificates.authority.as_bytes());
    let access = Access { authority, admin: new_token(), agent: new_token() };
    let start = |name, args: &[String]| Process::start(name, &binaries.join(name), folder.path(), args);
    let mut processes = vec![
        start("etcd", &etcd_args(folder, client, peer))?,
        start("kube-apiserver", &arguments(folder, &certificates, &access, port, client)?)?,
    ];
    let url = format!("https://127.0.0.1:{port}");
    let server = Server::from_kubeconfig_yaml(&access.kubeconfig(&url, User::Admin))?;
    until_ready(&mut processes, "kube-apiserver", async || {
        let default = server.client().get(&kinds::namespaces(), None, "default").await?;
        default.context("the namespace default does not exist yet").map(drop)
    })
    .await?;
    Ok(Started { url, access, processes })
}

/// The version that the etcd on a port reports.
pub(super) async fn etcd_version(port: u16) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    stream.write_all(b"GET /version HTTP/1.0\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (_, body) = answer.split_once("\r\n\r\n").context("etcd does not answer")?;
    let body: Value = serde_json::from_str(body)?;
    Ok(body["etcdserver"].as_str().context("etcd does not report its version")?.to_owned())
}

fn etcd_args(folder: &Scratch, client: u16, peer: u16) -> Vec<String> {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    vec![
        format!("--data-dir={}", folder.path().join(DATA).display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".to_owned(),
    ]
}

fn arguments(
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
