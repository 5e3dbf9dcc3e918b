//! Start and stop of a plane.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::auth::Tokens;
use crate::auth::accounts::Accounts;
use crate::config::{Advertised, Config, Mode};
use crate::error::PlaneError;
use crate::extension::Extension;
use crate::faults::{Faults, Match, RequestInfo};
use crate::http::tls::{self, ClientCertificate};
use crate::http::{Control, Endpoint, OnChange, Server, SlowReaders};
use crate::kcp::shards::Shards;
use crate::store::{Snapshot, Store};
use crate::{controllers, kcp};

/// A running plane. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Plane {
    api: Arc<Api>,
    identity: tls::Identity,
    tokens: Arc<Tokens>,
    faults: Faults,
    shards: Arc<Shards>,
    endpoints: Vec<Arc<Endpoint>>,
    control: Option<SocketAddr>,
    stop: CancellationToken,
}

impl Plane {
    /// Starts serving; when this returns, requests are answered.
    pub async fn start(config: Config) -> Result<Plane, PlaneError> {
        // A front proxy, and one endpoint per shard after it; a single shard needs no front proxy.
        let shards = if config.mode == Mode::Kcp { config.shards.max(1) } else { 1 };
        let mut listeners = vec![bind(config.bind).await?];
        for shard in 1..=if shards > 1 { shards } else { 0 } {
            let port = config.bind.port();
            let next =
                if port == 0 { Some(0) } else { u16::try_from(shard).ok().and_then(|shard| port.checked_add(shard)) };
            let address = SocketAddr::new(config.bind.ip(), next.unwrap_or(0));
            listeners.push(bind(address).await?);
        }
        let address = listeners[0].local_addr()?;
        let host = config.external_host.clone().unwrap_or_else(|| match address.ip() {
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            ip => ip.to_string(),
        });
        let store = Arc::new(match &config.data_dir {
            Some(folder) => Store::open(folder, config.durability, config.limits.log)?,
            None => Store::with_limits(config.limits.log),
        });
        let folder = config.data_dir.as_deref();
        let identity =
            tls::Identity::load_or_make(folder, &host, config.client_ca.as_deref(), config.serving.as_ref())?;
        let shown = if host.contains(':') { format!("[{host}]") } else { host };
        let urls = listeners.iter().map(|listener| Ok(format!("https://{shown}:{}", listener.local_addr()?.port())));
        let mut urls = urls.collect::<std::io::Result<Vec<String>>>()?;
        let Advertised { base, external, virtual_workspaces } = config.advertised.clone();
        if let (Some(base), [only]) = (base, urls.as_mut_slice()) {
            *only = base;
        }
        let url = urls[0].clone();
        let shards = Shards::new(if urls.len() > 1 { &urls[1..] } else { &urls }, virtual_workspaces.as_deref());
        let shards = Arc::new(shards);
        let extension: Option<Arc<dyn Extension>> = match config.mode {
            Mode::Kcp => {
                let external = external.as_deref().unwrap_or(&url);
                Some(Arc::new(kcp::Kcp::new(store.clone(), external, shards.clone())))
            }
            Mode::Kube => None,
        };
        let tokens = Arc::new(Tokens::load_or_make(config.data_dir.as_deref(), config.mode, &config.users)?);
        let mut api = Api::new(store, config.mode, url, identity.ca_pem.clone(), extension);
        api.accounts = Accounts::load_or_make(folder, config.mode)?;
        let api = Arc::new(api);
        let stop = CancellationToken::new();
        controllers::start(&api, &stop);
        if let Some(extension) = api.extension() {
            extension.start(stop.clone());
        }
        let faults = Faults::default();
        let slow = Arc::new(SlowReaders::new(config.limits.slow_reader));
        tokio::spawn(slow.clone().run(stop.clone()));
        let mut endpoints = Vec::new();
        for ((number, listener), url) in listeners.into_iter().enumerate().zip(urls) {
            let shard = if shards.count() == 1 { Some(0) } else { number.checked_sub(1) };
            let server = Arc::new(Server {
                api: api.clone(),
                tokens: tokens.clone(),
                faults: faults.clone(),
                limits: config.limits.clone(),
                slow: slow.clone(),
                number,
                shard,
                ahead: config.shard_versions.clone(),
                stop: stop.clone(),
            });
            let on_change = on_change(api.clone(), faults.clone(), shards.clone(), shard);
            endpoints.push(Arc::new(Endpoint::serve(listener, url, identity.server.clone(), server, on_change)?));
        }
        let control = match config.control {
            Some(address) => {
                let listener = bind(address).await?;
                let address = listener.local_addr()?;
                let control = Control::new(faults.clone(), tokens.clone(), endpoints.clone());
                tokio::spawn(control.serve(listener, stop.clone()));
                Some(address)
            }
            None => None,
        };
        Ok(Plane { api, identity, tokens, faults, shards, endpoints, control, stop })
    }

    /// The base address, without a path.
    pub fn url(&self) -> &str {
        &self.api.url
    }

    /// The certificate authority clients must trust, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.api.ca_pem
    }

    /// A kubeconfig in YAML for a user with a token; in kcp mode for one workspace, `root` by default.
    pub fn kubeconfig(&self, user: &str, cluster_path: Option<&str>) -> Result<String, PlaneError> {
        let token = self.tokens.token(user).ok_or_else(|| {
            let known = self.tokens.names().map(str::to_owned).collect();
            PlaneError::UnknownUser { user: user.to_owned(), known }
        })?;
        let path = match (self.api.mode, cluster_path) {
            (_, Some(path)) => format!("/clusters/{path}"),
            (Mode::Kcp, None) => "/clusters/root".to_owned(),
            (Mode::Kube, None) => String::new(),
        };
        let server = format!("{}{path}", self.api.url);
        let ca = data_encoding::BASE64.encode(self.api.ca_pem.as_bytes());
        Ok(format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: plane\n  cluster:\n    server: {server:?}\n    \
             certificate-authority-data: {ca}\nusers:\n- name: {user:?}\n  user:\n    token: {token:?}\ncontexts:\n\
             - name: plane\n  context:\n    cluster: plane\n    user: {user:?}\ncurrent-context: plane\n"
        ))
    }

    /// The bearer token of a user.
    pub fn token(&self, user: &str) -> Option<String> {
        self.tokens.token(user)
    }

    /// A token of a ServiceAccount with claims of one's own, for tests of tokens that end soon or have ended.
    pub fn account_token(&self, claims: &serde_json::Value) -> String {
        self.api.accounts.sign(claims)
    }

    /// A new client certificate for a user in some groups; the user need not exist in the config.
    pub fn client_certificate(&self, user: &str, groups: &[&str]) -> Result<ClientCertificate, PlaneError> {
        self.identity.client(user, groups)
    }

    /// Which server this emulates.
    pub fn mode(&self) -> Mode {
        self.api.mode
    }

    /// Everything that is stored, for tests that look behind the API.
    pub fn store(&self) -> &Arc<Store> {
        &self.api.store
    }

    /// The API for use in the same process.
    #[cfg(test)]
    pub(crate) fn api(&self) -> &Arc<Api> {
        &self.api
    }

    /// Everything that is stored now, to go back to later.
    pub fn snapshot(&self) -> Snapshot {
        self.api.store.snapshot()
    }

    /// Goes back in time, as a server that was stopped, restored from a backup of its etcd and started again: objects and the
    /// counter of versions are those of the snapshot, all connections break, and nobody is sent an event for what is undone.
    /// A watch that resumes at a version of the future is accepted, and stays silent until the counter has passed it.
    pub async fn restore(&self, snapshot: &Snapshot) -> Result<(), PlaneError> {
        self.api.store.restore(snapshot)?;
        for endpoint in &self.endpoints {
            endpoint.disconnect().await;
        }
        Ok(())
    }

    /// Moves a logical cluster to another shard, as kcp does with its feature `LogicalClusterMigration`: watchers of the old shard see its
    /// objects go, watchers of the new one see them come, with the same UIDs and other versions. False if it does not exist or is there.
    pub fn move_cluster(&self, cluster: &str, shard: usize) -> bool {
        self.shards.relocate(&self.api.store, cluster, shard)
    }

    /// Fault injection, and a record of requests.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The endpoints of this plane: one; or with several shards the front proxy, followed by one per shard.
    pub fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }

    /// The control endpoint of the fault layer, if there is one; plain HTTP, with the token of an administrator.
    pub fn control_url(&self) -> Option<String> {
        self.control.map(|address| format!("http://{address}"))
    }

    /// Stops controllers and server and waits for them.
    pub async fn stop(self) {
        self.stop.cancel();
        for endpoint in &self.endpoints {
            endpoint.ended().await;
        }
    }
}

/// When a shard goes down, requests to its clusters through the front proxy are cut off too.
fn on_change(api: Arc<Api>, faults: Faults, shards: Arc<Shards>, shard: Option<usize>) -> OnChange {
    Box::new(move |up| {
        let Some(shard) = shard else { return };
        shards.set_up(shard, up);
        if !up {
            let (api, shards) = (api.clone(), shards.clone());
            let behind = move |ask: &RequestInfo| shards.of(&api.store, &ask.cluster_name) == shard;
            faults.cut_watches(&Match::any().filter(behind));
        }
    })
}

async fn bind(address: SocketAddr) -> Result<TcpListener, PlaneError> {
    TcpListener::bind(address).await.map_err(|source| PlaneError::Bind { address, source })
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
