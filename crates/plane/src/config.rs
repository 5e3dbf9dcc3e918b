//! How a plane is started.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::release::Release;
use crate::store::{Durability, LogLimits};

/// Which server the plane emulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// kcp: everything below `/clusters/...`.
    Kcp,
    /// A plain Kubernetes cluster.
    Kube,
}

impl Mode {
    /// The release of Kubernetes that answers.
    pub(crate) fn release(self) -> Release {
        match self {
            Self::Kube => Release::V1_34,
            Self::Kcp => Release::V1_35,
        }
    }
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
    /// User id, may be empty.
    pub uid: String,
}

impl User {
    /// A user with groups.
    pub fn new(token: &str, name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Self { token: token.into(), name: name.into(), groups, uid: String::new() }
    }
}

/// Where the server's certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServingFiles {
    /// The certificate and those that signed it, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// Whether both are written if neither exists.
    pub make: bool,
}

/// Addresses that kcp tells its clients; by default all are the address it listens on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advertised {
    /// Of the shard, if there is only one.
    pub base: Option<String>,
    /// Of workspaces.
    pub external: Option<String>,
    /// Of virtual workspaces.
    pub virtual_workspaces: Option<String>,
}

/// Limits of a plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The largest request body in bytes.
    pub body: usize,
    /// How long an event may wait for a slow reader before the connection is closed.
    pub slow_reader: Duration,
    /// How much history is kept for watchers.
    pub log: LogLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: 3 * 1024 * 1024, slow_reader: Duration::from_secs(30), log: LogLimits::default() }
    }
}

/// How to start a plane.
#[derive(Debug, Clone)]
pub struct Config {
    /// kcp or plain Kubernetes.
    pub mode: Mode,
    /// Address to listen on; port 0 chooses a free one.
    pub bind: SocketAddr,
    /// Host name in URLs for clients; the bind address by default.
    pub external_host: Option<String>,
    /// Folder for data and keys; in memory by default.
    pub data_dir: Option<PathBuf>,
    /// How the data folder is written.
    pub durability: Durability,
    /// Who may log in, besides the built-in administrators.
    pub users: Vec<User>,
    /// File with authorities (PEM) whose client certificates are accepted, besides the plane's own.
    pub client_ca: Option<PathBuf>,
    /// kcp only: over how many shards workspaces are spread. With more than one, the plane has a front proxy for all workspaces at
    /// `bind`, and one endpoint per shard at the following ports (or free ones), which serves only its own workspaces.
    pub shards: usize,
    /// kcp only: how far the versions that each shard shows are ahead of those of the first, as those of shards with an etcd of their own are.
    /// Zero for shards that are not named.
    pub shard_versions: Vec<u64>,
    /// The server's certificate; by default a new one at each start, signed by the plane's own authority.
    pub serving: Option<ServingFiles>,
    /// kcp only: addresses in kubeconfigs and objects.
    pub advertised: Advertised,
    /// Limits of the plane.
    pub limits: Limits,
    /// Address for the HTTP control endpoint of the fault layer, see [`Plane::control_url`](crate::Plane::control_url); off by default.
    pub control: Option<SocketAddr>,
}

impl Config {
    /// In memory, on a free loopback port, with the built-in administrators only.
    pub fn new(mode: Mode) -> Self {
        let bind = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            mode,
            bind,
            external_host: None,
            data_dir: None,
            durability: Durability::default(),
            users: Vec::new(),
            client_ca: None,
            shards: 1,
            shard_versions: Vec::new(),
            serving: None,
            advertised: Advertised::default(),
            limits: Limits::default(),
            control: None,
        }
    }
}
