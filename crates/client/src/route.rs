//! Routes to a server: directly, or through the proxy that a kubeconfig or the environment names.

mod environment;
mod proxy;

use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

pub(crate) use environment::Environment;
pub(crate) use proxy::Proxy;

/// How to get to servers.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// Always through this proxy.
    Proxy(Proxy),
    /// As the environment says.
    Environment(Environment),
}

impl Route {
    fn proxy_for(&self, destination: &Uri) -> Option<&Proxy> {
        match self {
            Self::Proxy(proxy) => Some(proxy),
            Self::Environment(environment) => environment.proxy_for(destination),
        }
    }
}

/// Opens TCP connections, by way of a proxy if there is one.
#[derive(Clone)]
pub(crate) struct Dial {
    tcp: HttpConnector,
    route: Route,
}

impl Dial {
    pub(crate) fn new(tcp: HttpConnector, route: Route) -> Self {
        Self { tcp, route }
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
        match self.route.proxy_for(&destination).cloned() {
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
