//! Start and stop of a plane.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::auth::Tokens;
use crate::extension::Extension;
use crate::http::{self, tls};
use crate::store::Store;
use crate::{controllers, kcp};

/// What the plane plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// kcp: everything below `/clusters/...`.
    Kcp,
    /// A plain Kubernetes cluster.
    Kube,
}

/// Somebody who may log in with a bearer token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Bearer token.
    pub token: String,
    /// User name.
    pub name: String,
    /// Groups besides `system:authenticated`.
    pub groups: Vec<String>,
}

impl User {
    /// A user with groups.
    pub fn new(token: &str, name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Self { token: token.into(), name: name.into(), groups }
    }
}

/// How to start a plane.
#[derive(Debug, Clone)]
pub struct Config {
    /// kcp or plain Kubernetes.
    pub mode: Mode,
    /// Address to listen on; port 0 takes a free one.
    pub bind: SocketAddr,
    /// Host name in URLs given to clients; the bind address by default.
    pub external_host: Option<String>,
    /// Folder for data and keys; in memory by default.
    pub data_dir: Option<PathBuf>,
    /// Who may log in, besides the built-in administrators.
    pub users: Vec<User>,
}

impl Config {
    /// In memory, on a free loopback port, with the built-in administrators only.
    pub fn new(mode: Mode) -> Self {
        let bind = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { mode, bind, external_host: None, data_dir: None, users: Vec::new() }
    }
}

/// Why a plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum PlaneError {
    /// The address is taken or not allowed.
    #[error("cannot listen on {address}: {source}; choose another port")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// The data folder cannot be read or written.
    #[error("cannot use the data folder: {0}")]
    Data(#[from] std::io::Error),
    /// Certificates could not be made or read.
    #[error("cannot prepare the server certificate: {0}")]
    Certificate(String),
}

/// A running plane. Dropping it stops it too, without waiting.
#[derive(Debug)]
pub struct Plane {
    api: Arc<Api>,
    tokens: Arc<Tokens>,
    stop: CancellationToken,
    server: JoinHandle<()>,
}

impl Plane {
    /// Starts serving; when this returns, requests are answered.
    pub async fn start(config: Config) -> Result<Plane, PlaneError> {
        let listener = tokio::net::TcpListener::bind(config.bind)
            .await
            .map_err(|source| PlaneError::Bind { address: config.bind, source })?;
        let address = listener.local_addr()?;
        let host = config.external_host.clone().unwrap_or_else(|| match address.ip() {
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            ip => ip.to_string(),
        });
        let store = Arc::new(match &config.data_dir {
            Some(folder) => Store::open(folder)?,
            None => Store::new(),
        });
        let identity = tls::Identity::load_or_make(config.data_dir.as_deref(), &host)?;
        let shown = if host.contains(':') { format!("[{host}]") } else { host };
        let url = format!("https://{shown}:{}", address.port());
        let extension: Option<Arc<dyn Extension>> = match config.mode {
            Mode::Kcp => Some(Arc::new(kcp::Kcp::new(store.clone(), &url))),
            Mode::Kube => None,
        };
        let tokens = Arc::new(Tokens::load_or_make(config.data_dir.as_deref(), config.mode, &config.users)?);
        let api = Arc::new(Api::new(store, config.mode, url, identity.ca_pem.clone(), extension));
        let stop = CancellationToken::new();
        controllers::start(&api, &stop);
        if let Some(extension) = api.extension() {
            extension.start(api.clone(), stop.clone());
        }
        let server = http::serve(listener, identity.server, api.clone(), tokens.clone(), stop.clone());
        Ok(Plane { api, tokens, stop, server: tokio::spawn(server) })
    }

    /// The base address, without a path.
    pub fn url(&self) -> &str {
        &self.api.url
    }

    /// The certificate authority clients must trust, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.api.ca_pem
    }

    /// A kubeconfig in YAML for a user; in kcp mode for one workspace, `root` by default.
    pub fn kubeconfig(&self, user: &str, cluster_path: Option<&str>) -> String {
        let path = match (self.api.mode, cluster_path) {
            (_, Some(path)) => format!("/clusters/{path}"),
            (Mode::Kcp, None) => "/clusters/root".to_owned(),
            (Mode::Kube, None) => String::new(),
        };
        let server = format!("{}{path}", self.api.url);
        let ca = data_encoding::BASE64.encode(self.api.ca_pem.as_bytes());
        let token = self.tokens.token(user).unwrap_or_default();
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: plane\n  cluster:\n    server: {server:?}\n    \
             certificate-authority-data: {ca}\nusers:\n- name: {user:?}\n  user:\n    token: {token:?}\ncontexts:\n\
             - name: plane\n  context:\n    cluster: plane\n    user: {user:?}\ncurrent-context: plane\n"
        )
    }

    /// The bearer token of a user.
    pub fn token(&self, user: &str) -> Option<String> {
        self.tokens.token(user)
    }

    /// The API for use in the same process.
    pub fn api(&self) -> &Arc<Api> {
        &self.api
    }

    /// Stops controllers and server and waits for them.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // A panic in the accept loop has been reported already; there is nothing left to stop then.
        let _ = (&mut self.server).await;
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
