//! One API server: its credentials and its connection pool.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64;
use tokio::sync::watch;

use crate::channel::Channel;
use crate::client::Client;
use crate::connect::{self, ConnectError, Overrides, Source};
use crate::inline::InlineKubeconfig;
use crate::redirect::HostPortOverride;
use crate::requests::{RequestLabels, RequestTotals};
use crate::transport::{Rewind, Transport};

/// One API server. Cloning is cheap; all clones and all their clients share one pool.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Transport,
    url: http::Uri,
    shown: String,
    default_namespace: Arc<str>,
    authority: Option<Arc<str>>,
    read_only: bool,
}

/// Far more than the objects of one kind and one consumer should ever have.
const MOST_OF_A_STRANGER: usize = 256 << 20;

impl Server {
    /// The server of the current context of a kubeconfig file. When the file, or a certificate or key it names, changes,
    /// new requests go out with the new credentials.
    pub fn from_kubeconfig(path: &Path, overrides: &Overrides) -> Result<Self, ConnectError> {
        Self::open(Source::File(path.to_owned(), overrides.clone()))
    }

    /// The server of the current context of a kubeconfig given as text.
    pub fn from_kubeconfig_yaml(text: &str) -> Result<Self, ConnectError> {
        Self::open(Source::Text(text.to_owned()))
    }

    /// The server of a kubeconfig that was written elsewhere and read with care. It is a stranger's server, so there is a limit to what is
    /// taken from it.
    pub fn from_inline(kubeconfig: &InlineKubeconfig) -> Result<Self, ConnectError> {
        let server = Self::from_kubeconfig_yaml(kubeconfig.text())?;
        server.take_at_most(MOST_OF_A_STRANGER);
        Ok(server)
    }

    /// Limits how many bytes one answer, one list with all its pages, or the events of one watch since its last list may have. A larger list is an
    /// error; a watch that has reported so much lists again. So whoever keeps what a watch reports needs about twice as much room at most.
    pub fn take_at_most(&self, bytes: usize) {
        self.inner.transport.take_at_most(bytes);
    }

    /// Uses other addresses for those in URLs that the server publishes, see [`Client::at_published_url`]: endpoints of virtual
    /// workspaces may be known under names that lead nowhere from here.
    pub fn redirect(&self, overrides: Vec<HostPortOverride>) {
        self.inner.transport.redirect(overrides);
    }

    /// The file given, else `$KUBECONFIG`, else the pod's service account, else `~/.kube/config`.
    pub fn infer(kubeconfig: Option<&Path>, overrides: &Overrides) -> Result<Self, ConnectError> {
        Self::open(Source::Inferred(kubeconfig.map(Path::to_owned), overrides.clone()))
    }

    /// Goes over to the credentials in another kubeconfig, if that one leads to the same place: same URL, certificate authority, proxy and
    /// namespace. All clients of the server then send new requests with the new credentials; running watches go on. False, and nothing
    /// changes, if the kubeconfig leads elsewhere.
    pub fn renew_from_kubeconfig_yaml(&self, text: &str) -> Result<bool, ConnectError> {
        self.inner.transport.renew_from(Source::Text(text.to_owned()))
    }

    /// Uses the credentials in another kubeconfig, if that one leads to the same place, until the files that the server was opened with change;
    /// then those count again. For credentials that are known earlier than the files bring them. False, and nothing changes, if the kubeconfig
    /// leads elsewhere.
    pub fn borrow_from_kubeconfig_yaml(&self, text: &str) -> Result<bool, ConnectError> {
        self.inner.transport.borrow_from(&Source::Text(text.to_owned()))
    }

    /// The server of a configuration, as kube makes it from whatever it finds.
    pub fn from_config(config: kube::Config) -> Result<Self, ConnectError> {
        Self::open(Source::Config(Box::new(config)))
    }

    fn open(source: Source) -> Result<Self, ConnectError> {
        let loaded = source.load()?;
        let url = connect::parse_url(&loaded.config.cluster_url.to_string())?;
        let default_namespace = loaded.config.default_namespace.as_str().into();
        let authority = loaded.config.root_cert.as_deref().map(|certificates| pem(certificates).into());
        let transport = Transport::open(source, &loaded)?;
        let shown = connect::show(&url);
        let inner = Inner { transport, url, shown, default_namespace, authority, read_only: false };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The same server on the same pool, for looking only: its clients refuse to send whatever might change something.
    #[must_use]
    pub fn read_only(&self) -> Self {
        let Inner { transport, url, shown, default_namespace, authority, .. } = &*self.inner;
        let (transport, url) = (transport.clone(), url.clone());
        let (shown, default_namespace, authority) = (shown.clone(), default_namespace.clone(), authority.clone());
        Self { inner: Arc::new(Inner { transport, url, shown, default_namespace, authority, read_only: true }) }
    }

    /// The server's URL, with its path and without a trailing slash.
    pub fn url(&self) -> &str {
        &self.inner.shown
    }

    /// Who has signed the server's certificate, in PEM, as the kubeconfig says; nothing if it leaves that to the system.
    pub fn authority(&self) -> Option<&str> {
        self.inner.authority.as_deref()
    }

    /// The namespace the kubeconfig's context names, or `default`.
    pub fn default_namespace(&self) -> &str {
        &self.inner.default_namespace
    }

    /// A client at the kubeconfig's URL.
    pub fn client(&self) -> Client {
        self.scoped(self.url())
    }

    /// A client on the same host with another base path, such as `/clusters/root:a`.
    ///
    /// A path that cannot be part of a URL is reported by the first request.
    pub fn at_path(&self, path: &str) -> Client {
        let scheme = self.inner.url.scheme_str().unwrap_or("https");
        let authority = self.inner.url.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let path = path.trim_matches('/');
        let slash = if path.is_empty() { "" } else { "/" };
        self.scoped(&format!("{scheme}://{authority}{slash}{path}"))
    }

    /// A client at another URL with the same credentials and pool, such as a virtual workspace's `<url>/clusters/*`.
    pub fn at_url(&self, url: &str) -> Result<Client, ConnectError> {
        self.client().at_url(url)
    }

    /// The same for a URL that the server publishes, whose address is replaced as [`Server::redirect`] says.
    pub fn at_published_url(&self, url: &str) -> Result<Client, ConnectError> {
        self.client().at_published_url(url)
    }

    /// All requests of all clients of this server so far.
    pub fn requests(&self) -> BTreeMap<RequestLabels, RequestTotals> {
        self.inner.transport.requests()
    }

    /// Changes whenever the versions of a server of this pool have gone back.
    pub fn rewound(&self) -> watch::Receiver<u64> {
        self.inner.transport.rewound()
    }

    /// The servers of this pool, by host and port, whose versions have gone back.
    pub fn rewinds(&self) -> BTreeMap<String, Rewind> {
        self.inner.transport.rewinds()
    }

    /// Waits, but not longer than given, until every write that was sent so far is answered or has lost its connection. False if there is one
    /// left, or one that nobody waited for to the end: it may take effect yet.
    pub async fn settle_writes(&self, longest: Duration) -> bool {
        self.inner.transport.settle_writes(longest).await
    }

    fn scoped(&self, url: &str) -> Client {
        let transport = self.inner.transport.clone();
        let channel = if self.inner.read_only { Channel::ReadOnly(transport) } else { Channel::Pool(transport) };
        Client::on(channel, url.into(), self.inner.default_namespace.clone())
    }
}

impl TryFrom<kube::Config> for Client {
    type Error = ConnectError;

    fn try_from(config: kube::Config) -> Result<Self, ConnectError> {
        Ok(Server::from_config(config)?.client())
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// Certificates as text.
fn pem(certificates: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in BASE64.encode(certificate).as_bytes().chunks(64) {
            text.extend(line.iter().map(|byte| char::from(*byte)));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}
