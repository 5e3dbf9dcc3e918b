//! Certificate and key of the server.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::config::TlsFiles;
use super::error::FrontError;

/// Reads certificate and key.
pub(super) fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>, FrontError> {
    let wrong = |problem: String| FrontError::Tls {
        cert: files.cert.display().to_string(),
        key: files.key.display().to_string(),
        problem,
    };
    let certificates = CertificateDer::pem_file_iter(&files.cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(|error| wrong(format!("certificate: {error}")))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(format!("key: {error}")))?;
    let config =
        ServerConfig::builder_with_provider(Arc::new(default_provider())).with_safe_default_protocol_versions();
    let config = config.map_err(|error| wrong(error.to_string()))?.with_no_client_auth();
    let mut config = config.with_single_cert(certificates, key).map_err(|error| wrong(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
