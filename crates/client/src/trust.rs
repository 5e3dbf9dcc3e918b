//! Checks a server's certificate as programs in Go do: one that is among the authorities itself is trusted.
//!
//! ```text
//!  certificate of the server ──▶ rustls: signed by an authority, name, dates, purpose ──▶ trusted
//!                                   │ nobody known has signed it, or it is an authority itself
//!                                   ▼
//!                     is it one of the authorities, byte for byte? name? ──▶ trusted
//! ```
//!
//! Programs in Go trust a server whose certificate is itself among the authorities they were given, whoever signed it and whether or not it may
//! sign others. Test environments and small installations rely on that: the certificate of the server stands in `caBundle` or
//! `certificate-authority-data`. rustls refuses such servers. [`Authorities`] accepts them, as long as name and dates are right; everything else
//! is checked by rustls as always.
//!
//! ```
//! use std::sync::Arc;
//! use carrick_client::trust::Authorities;
//!
//! # let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
//! # let certificates = vec![key.cert.der().clone()];
//! let provider = Arc::new(rustls::crypto::ring::default_provider());
//! let builder = rustls::ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
//! let authorities = Authorities::new(certificates, provider)?;
//! let config = builder.dangerous().with_custom_certificate_verifier(Arc::new(authorities)).with_no_client_auth();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// The authorities that a server's certificate must come from, or be among.
#[derive(Debug)]
pub struct Authorities {
    verifier: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Authorities {
    /// Trusts these certificates. Those that cannot be read are left out; it is an error if none is left.
    pub fn new(
        certificates: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        Ok(Self { verifier, certificates })
    }
}

/// Whether rustls found nothing wrong but that no authority has signed the certificate. It looks at dates and purpose before that.
fn is_unsigned(error: &Error) -> bool {
    match error {
        // The second one if its issuer has the name of an authority.
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => true,
        // There is no variant for certificates of authorities that servers show.
        Error::InvalidCertificate(CertificateError::Other(other)) => format!("{other:?}").contains("CaUsedAsEndEntity"),
        _ => false,
    }
}

impl ServerCertVerifier for Authorities {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(error) if is_unsigned(&error) && self.certificates.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};

    use super::*;

    fn params(name: &str, is_authority: bool) -> CertificateParams {
        let mut params = CertificateParams::new(["hooks.example.io".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2030, 1, 1);
        if is_authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        params
    }

    fn ask(
        authorities: &[&CertificateDer<'static>],
        shown: &CertificateDer<'static>,
        name: &str,
        year: u64,
    ) -> Result<(), Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities = Authorities::new(authorities.iter().copied().cloned().collect(), provider).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs((year - 1970) * 31_557_600));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        authorities.verify_server_cert(shown, &[], &name, &[], now).map(drop)
    }

    fn why(result: Result<(), Error>) -> String {
        format!("{:?}", result.unwrap_err())
    }

    #[test]
    fn a_certificate_that_is_among_the_authorities_is_trusted_whoever_signed_it() {
        let key = || KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params("issuer", true), key()).unwrap();
        let signed = params("signed", false).signed_by(&key(), &issuer).unwrap();
        let namesake = params("issuer", false).signed_by(&key(), &issuer).unwrap();
        let own = params("own", false).self_signed(&key()).unwrap();
        let authority = params("authority", true).self_signed(&key()).unwrap();
        for shown in [signed.der(), namesake.der(), own.der(), authority.der()] {
            ask(&[shown], shown, "hooks.example.io", 2025).unwrap();
            assert!(why(ask(&[shown], shown, "other.example.io", 2025)).contains("NotValidForName"));
            assert!(why(ask(&[shown], shown, "hooks.example.io", 2031)).contains("Expired"));
            assert!(why(ask(&[shown], shown, "hooks.example.io", 2019)).contains("NotValidYet"));
        }
        ask(&[issuer.as_ref().der()], signed.der(), "hooks.example.io", 2025).unwrap();
    }

    #[test]
    fn nobody_else_is_trusted() {
        let key = || KeyPair::generate().unwrap();
        let [known, namesake, other] =
            ["known", "known", "other"].map(|name| params(name, false).self_signed(&key()).unwrap());
        assert!(why(ask(&[known.der()], other.der(), "hooks.example.io", 2025)).contains("UnknownIssuer"));
        assert!(why(ask(&[known.der()], namesake.der(), "hooks.example.io", 2025)).contains("BadSignature"));
        let authority = params("authority", true).self_signed(&key()).unwrap();
        let refused = why(ask(&[known.der()], authority.der(), "hooks.example.io", 2025));
        assert!(refused.contains("CaUsedAsEndEntity") || refused.contains("UnknownIssuer"), "{refused}");
    }
}
