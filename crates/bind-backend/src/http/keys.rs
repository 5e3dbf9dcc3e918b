//! The keys of the front. They lie in a Secret, so that tokens survive restarts and all replicas read each other's.

use std::collections::BTreeMap;

use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};

use super::config::GivenKeys;
use super::error::FrontError;
use super::secrecy::{CryptoError, Seal, random, random_text};
use crate::provider::Provider;

const SIGNING: &str = "signing-key";
const ENCRYPTION: &str = "encryption-key";
const ISSUER: &str = "issuer-key";
const CLIENT_SECRET: &str = "issuer-client-secret";

/// The keys of the front.
pub(super) struct Keys {
    /// Signs the backend's tokens.
    pub(super) signing: hmac::Key,
    /// Encrypts cookies and the state of logins.
    pub(super) seal: Seal,
    /// Signs the ID tokens of the embedded issuer, in PKCS #8.
    pub(super) issuer: Vec<u8>,
    /// By which the backend tells the embedded issuer who it is.
    pub(super) client_secret: String,
}

impl Keys {
    /// The keys that are stored, or new ones that are stored now. Keys that somebody gives come first.
    pub(super) async fn load<P: Provider>(provider: &P, given: &GivenKeys) -> Result<Self, FrontError> {
        let fresh = fresh()?;
        let stored = provider.keys(&|| fresh.clone()).await.map_err(FrontError::Keys)?;
        let get = |name: &str| stored.get(name).cloned().ok_or_else(|| FrontError::MissingKey(name.to_owned()));
        let signing = given.signing.clone().map_or_else(|| get(SIGNING), Ok)?;
        let encryption = given.encryption.clone().map_or_else(|| get(ENCRYPTION), Ok)?;
        // Of whatever length the key is, the seal takes 32 bytes.
        let encryption = ring::digest::digest(&ring::digest::SHA256, &encryption);
        let encryption: &[u8; 32] = encryption.as_ref().try_into().map_err(|_| CryptoError)?;
        let client_secret = String::from_utf8(get(CLIENT_SECRET)?);
        Ok(Self {
            signing: hmac::Key::new(hmac::HMAC_SHA256, &signing),
            seal: Seal::new(encryption)?,
            issuer: get(ISSUER)?,
            client_secret: client_secret.map_err(|_| FrontError::MissingKey(CLIENT_SECRET.to_owned()))?,
        })
    }
}

fn fresh() -> Result<BTreeMap<String, Vec<u8>>, CryptoError> {
    let issuer = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    let keys = [
        (SIGNING, random::<32>()?.to_vec()),
        (ENCRYPTION, random::<32>()?.to_vec()),
        (ISSUER, issuer.map_err(|_| CryptoError)?.as_ref().to_vec()),
        (CLIENT_SECRET, random_text()?.into_bytes()),
    ];
    Ok(keys.into_iter().map(|(name, key)| (name.to_owned(), key)).collect())
}
