//! Ways to a server: directly, or through the proxy that a kubeconfig or the environment names.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

use super::environment::Environment;

/// How to get to servers.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// Always through this proxy.
    Proxy(Proxy),
    /// As the environment says.
    Environment(Environment),
}

impl Way {
    fn proxy_for(&self, destination: &Uri) -> Option<&Proxy> {
        match self {
            Self::Proxy(proxy) => Some(proxy),
            Self::Environment(environment) => environment.proxy_for(destination),
        }
    }
}

/// A proxy between here and a server.
#[derive(Clone, Debug)]
pub(crate) enum Proxy {
    /// An HTTP proxy that opens tunnels, and what to tell it about who we are.
    Http(Uri, Option<HeaderValue>),
    /// A SOCKS 5 proxy, and user and password for it.
    Socks(Uri, Option<(String, String)>),
}

impl Proxy {
    /// Reads a `proxy-url`. The error does not quote it, because it may hold a password.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        let scheme = uri.scheme_str().unwrap_or_default().to_owned();
        let authority = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host.to_owned()),
            None => (None, authority),
        };
        if host.is_empty() {
            return Err("it names no host".to_owned());
        }
        let port = if uri.port().is_some() {
            ""
        } else if scheme == "http" {
            ":80"
        } else {
            ":1080"
        };
        let place = format!("http://{host}{port}").parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        match scheme.as_str() {
            "http" => Ok(Self::Http(place, user.as_deref().map(basic).transpose()?)),
            "socks5" | "socks5h" => {
                let user = user.map(|user| {
                    let (name, password) = user.split_once(':').unwrap_or((user.as_str(), ""));
                    (name.to_owned(), password.to_owned())
                });
                Ok(Self::Socks(place, user))
            }
            other => Err(format!("its scheme is {other:?}")),
        }
    }
}

fn basic(user: &str) -> Result<HeaderValue, String> {
    let user = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
    let encoded = data_encoding::BASE64.encode(user.as_bytes());
    let mut value = HeaderValue::from_str(&format!("Basic {encoded}")).map_err(|error| error.to_string())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Opens TCP connections, by way of a proxy if there is one.
#[derive(Clone)]
pub(super) struct Dial {
    tcp: HttpConnector,
    way: Way,
}

impl Dial {
    pub(super) fn new(tcp: HttpConnector, way: Way) -> Self {
        Self { tcp, way }
    }
}

impl Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(BoxError::from)
    }

    fn call(&mut self, destination: Uri) -> Self::Future {
        let mut tcp = self.tcp.clone();
        match self.way.proxy_for(&destination).cloned() {
            None => {
                let connecting = tcp.call(destination);
                Box::pin(async move { connecting.await.map_err(BoxError::from) })
            }
            Some(Proxy::Http(place, who)) => {
                let mut tunnel = Tunnel::new(place, tcp);
                if let Some(who) = who {
                    tunnel = tunnel.with_auth(who);
                }
                let connecting = tunnel.call(destination);
                Box::pin(async move { connecting.await.map_err(|error| format!("proxy: {error}").into()) })
            }
            Some(Proxy::Socks(place, who)) => {
                let mut socks = SocksV5::new(place, tcp);
                if let Some((user, password)) = who {
                    socks = socks.with_auth(user, password);
                }
                let connecting = socks.call(destination);
                Box::pin(async move { connecting.await.map_err(|error| format!("proxy: {error}").into()) })
            }
        }
    }
}
