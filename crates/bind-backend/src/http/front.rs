//! What all handlers share.

use std::sync::Arc;

use carrick_client::WebTrust;
use jiff::Timestamp;

use super::config::{HttpConfig, LoginMethod};
use super::error::FrontError;
use super::keys::Keys;
use super::oidc::{Embedded, External, ExternalError, Issuer};
use super::tls;
use crate::provider::Provider;

/// The HTTP front of a provider. It remembers nothing about those who ask: sessions are signed tokens, logins are encrypted texts that
/// come back with the browser.
pub struct Front<P> {
    pub(super) provider: Arc<P>,
    pub(super) config: HttpConfig,
    pub(super) keys: Keys,
    pub(super) issuer: Issuer,
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
}

impl<P: Provider> Front<P> {
    /// Loads the keys and asks the issuer how to log in.
    pub async fn open(config: HttpConfig, provider: Arc<P>) -> Result<Self, FrontError> {
        let tls = config.tls.as_ref().map(tls::load).transpose()?;
        let keys = Keys::load(&*provider, &config.keys).await?;
        let issuer = match &config.login {
            LoginMethod::Embedded { issuer } => {
                tracing::warn!("Everybody can log in with the embedded issuer: use it for development only.");
                Issuer::Embedded(Box::new(Embedded::new(issuer, &keys.issuer, &keys.client_secret)?))
            }
            LoginMethod::External { issuer, client_id, client_secret, ca_file } => {
                let trust = WebTrust { ca_file: ca_file.clone(), insecure: false };
                let found = External::discover(issuer, client_id, client_secret.as_deref(), &trust).await;
                Issuer::External(Box::new(found.map_err(|error| match error {
                    ExternalError::Trust(error) => FrontError::Trust(error),
                    ExternalError::Issuer(problem) => FrontError::Issuer { issuer: issuer.clone(), problem },
                })?))
            }
        };
        Ok(Self { provider, config, keys, issuer, tls })
    }
}

/// Seconds since 1970.
pub(super) fn now() -> i64 {
    Timestamp::now().as_second()
}
