//! The certificate authority and the server certificate.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::config::ServingFiles;
use crate::error::PlaneError;
use crate::files::write_private;

/// The server's TLS identity.
pub(crate) struct Identity {
    /// What clients must trust, in PEM: the authority, or the whole chain if the server's certificate is in a file.
    pub(crate) ca_pem: String,
    /// TLS settings with the server certificate.
    pub(crate) server: Arc<ServerConfig>,
    /// Signs certificates of clients.
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate for a client, with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate in PEM.
    pub certificate: String,
    /// Its private key in PEM.
    pub key: String,
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientCertificate").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

fn failed(error: impl std::fmt::Display) -> PlaneError {
    PlaneError::Certificate(error.to_string())
}

/// Adds the authorities in a PEM file.
fn add_authorities(clients: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let content = fs::read(path).map_err(|error| error.to_string())?;
    let before = clients.len();
    for authority in CertificateDer::pem_slice_iter(&content) {
        let authority = authority.map_err(|error| error.to_string())?;
        clients.add(authority).map_err(|error| error.to_string())?;
    }
    if clients.len() == before { Err("there is no certificate in it".to_owned()) } else { Ok(()) }
}

impl Identity {
    /// The authority kept in the folder, or a new one; the server certificate is always new.
    ///
    /// Client certificates of this authority are accepted, and those of the ones in `client_ca`.
    pub(crate) fn load_or_make(
        folder: Option<&Path>,
        host: &str,
        client_ca: Option<&Path>,
        serving: Option<&ServingFiles>,
    ) -> Result<Self, PlaneError> {
        let (ca_pem, ca_key) = match folder {
            Some(folder) => stored_authority(folder)?,
            None => new_authority()?,
        };
        let key = KeyPair::from_pem(&ca_key).map_err(failed)?;
        let issuer = Issuer::new(authority_params()?, key);
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        if !names.iter().any(|name| name == host) {
            names.push(host.to_owned());
        }
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, "carrick-plane");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let new = || {
            let key = KeyPair::generate().map_err(failed)?;
            let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
            Ok::<_, PlaneError>((format!("{}{ca_pem}", certificate.pem()), key.serialize_pem()))
        };
        let (chain_pem, server_key) = match serving {
            Some(files) => stored_pair(files, new)?,
            None => new()?,
        };
        let ca = CertificateDer::from_pem_slice(ca_pem.as_bytes()).map_err(failed)?;
        let chain = CertificateDer::pem_slice_iter(chain_pem.as_bytes()).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(failed)?;
        let mut clients = RootCertStore::empty();
        clients.add(ca).map_err(failed)?;
        if let Some(path) = client_ca {
            add_authorities(&mut clients, path)
                .map_err(|why| PlaneError::ClientCa { path: path.display().to_string(), why })?;
        }
        let private = PrivateKeyDer::from_pem_slice(server_key.as_bytes()).map_err(failed)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(clients), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(failed)?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, private)
            .map_err(failed)?;
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let ca_pem = if serving.is_some() { chain_pem } else { ca_pem };
        Ok(Self { ca_pem, server: Arc::new(server), issuer })
    }

    /// A new certificate for a user in some groups.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> Result<ClientCertificate, PlaneError> {
        let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(ClientCertificate { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// The same for every authority: only the key differs.
fn authority_params() -> Result<CertificateParams, PlaneError> {
    let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "carrick-plane-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

fn new_authority() -> Result<(String, String), PlaneError> {
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = authority_params()?.self_signed(&key).map_err(failed)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn stored_authority(folder: &Path) -> Result<(String, String), PlaneError> {
    let (certificate, key) = (folder.join("ca.crt"), folder.join("ca.key"));
    if certificate.exists() && key.exists() {
        return Ok((fs::read_to_string(certificate)?, fs::read_to_string(key)?));
    }
    let authority = new_authority()?;
    fs::write(certificate, &authority.0)?;
    write_private(&key, authority.1.as_bytes())?;
    Ok(authority)
}

/// The certificate chain and key in files; new ones are written if they may be and neither exists.
fn stored_pair(
    files: &ServingFiles,
    new: impl FnOnce() -> Result<(String, String), PlaneError>,
) -> Result<(String, String), PlaneError> {
    if files.make && !files.certificate.exists() && !files.key.exists() {
        let pair = new()?;
        fs::write(&files.certificate, &pair.0)?;
        write_private(&files.key, pair.1.as_bytes())?;
        return Ok(pair);
    }
    let read = |path: &Path| {
        fs::read_to_string(path)
            .map_err(|error| PlaneError::Serving { path: path.display().to_string(), why: error.to_string() })
    };
    Ok((read(&files.certificate)?, read(&files.key)?))
}
