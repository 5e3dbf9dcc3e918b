//! A plain HTTP/2 client of a server, for those who count or compare what is asked.

use anyhow::Context;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

/// The name in all certificates, whichever way a server is reached.
pub const NAME: &str = "127.0.0.1";
/// As agents have it: watches must not hold up each other.
pub const CONNECTION_WINDOW: u32 = 1 << 24;
/// The same for each of them.
pub const STREAM_WINDOW: u32 = 1 << 20;

/// A client that trusts the server of a kubeconfig in JSON.
pub fn connect<B>(kubeconfig: &str) -> anyhow::Result<Client<HttpsConnector<HttpConnector>, B>>
where
    B: hyper::body::Body + Send,
    B::Data: Send,
{
    let config: Value = serde_json::from_str(kubeconfig)?;
    let authority = &config["clusters"][0]["cluster"]["certificate-authority-data"];
    let authority = data_encoding::BASE64.decode(authority.as_str().context("no authority")?.as_bytes())?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&authority) {
        roots.add(certificate?)?;
    }
    let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .with_server_name_resolver(FixedServerNameResolver::new(ServerName::try_from(NAME)?))
        .enable_http2()
        .wrap_connector(tcp);
    Ok(Client::builder(TokioExecutor::new())
        .http2_only(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(connector))
}
