//! Whom a webhook's certificate must come from.

use std::sync::{Arc, LazyLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Where systems keep the authorities they trust; the first file that exists counts, as for programs in Go.
const FILES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/cert.pem",
];

static SYSTEM: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let named = std::env::var("SSL_CERT_FILE").ok().into_iter();
    let mut files = named.chain(FILES.iter().map(|file| (*file).to_owned()));
    let content = files.find_map(|file| std::fs::read(file).ok()).unwrap_or_default();
    Arc::new(authorities(&content))
});

/// TLS settings for a webhook with these authorities, or those of the system.
pub(super) fn config(pem: &[u8]) -> Result<ClientConfig, String> {
    let roots = if pem.is_empty() { SYSTEM.clone() } else { Arc::new(authorities(pem)) };
    if roots.is_empty() && !pem.is_empty() {
        return Err("unable to load root certificates: unable to parse bytes as PEM block".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn authorities(pem: &[u8]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem).flatten());
    roots
}
