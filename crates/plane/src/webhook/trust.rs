//! Whom a webhook's certificate must come from.

use std::sync::{Arc, LazyLock};

use carrick_client::trust::Authorities;
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
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&content));
    Arc::new(roots)
});

/// TLS settings for a webhook with these authorities, or those of the system.
pub(super) fn config(pem: &[u8]) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    if pem.is_empty() {
        return Ok(builder.with_root_certificates(SYSTEM.clone()).with_no_client_auth());
    }
    let unreadable = |_| "unable to load root certificates: unable to parse bytes as PEM block".to_owned();
    let authorities = Authorities::new(certificates(pem).collect(), provider).map_err(unreadable)?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(authorities)).with_no_client_auth())
}

fn certificates(pem: &[u8]) -> impl Iterator<Item = CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).flatten()
}
