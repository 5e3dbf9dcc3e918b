//! Randomness, and texts that only this backend can read: what travels through browsers and comes back.

use data_encoding::BASE64URL_NOPAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The system gives no randomness, or a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no randomness or no usable key; try again")]
pub struct CryptoError;

/// Random bytes.
pub(super) fn random<const N: usize>() -> Result<[u8; N], CryptoError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| CryptoError)?;
    Ok(bytes)
}

/// A random text that nobody guesses, fit for URLs.
pub(super) fn random_text() -> Result<String, CryptoError> {
    Ok(BASE64URL_NOPAD.encode(&random::<32>()?))
}

/// Encrypts and decrypts. What was changed on its way, or encrypted for another purpose, does not open.
pub(super) struct Seal(LessSafeKey);

impl Seal {
    /// A seal with this key.
    pub(super) fn new(key: &[u8; 32]) -> Result<Self, CryptoError> {
        Ok(Self(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).map_err(|_| CryptoError)?)))
    }

    /// Encrypts something for one purpose.
    pub(super) fn close(&self, purpose: &str, content: &impl Serialize) -> Result<String, CryptoError> {
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut bytes = serde_json::to_vec(content).map_err(|_| CryptoError)?;
        let aad = Aad::from(purpose.as_bytes());
        let sealed = self.0.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut bytes);
        sealed.map_err(|_| CryptoError)?;
        Ok(BASE64URL_NOPAD.encode(&[&nonce[..], &bytes].concat()))
    }

    /// Decrypts what was encrypted for the same purpose.
    pub(super) fn open<T: DeserializeOwned>(&self, purpose: &str, text: &str) -> Option<T> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened = self.0.open_in_place(nonce, Aad::from(purpose.as_bytes()), &mut sealed).ok()?;
        serde_json::from_slice(opened).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_purpose_open_what_nobody_has_changed() {
        let seal = Seal::new(&[1; 32]).unwrap();
        let text = seal.close("state", &"secret").unwrap();
        assert_eq!(seal.open::<String>("state", &text).as_deref(), Some("secret"));
        assert_eq!(seal.open::<String>("cookie", &text), None);
        assert_eq!(Seal::new(&[2; 32]).unwrap().open::<String>("state", &text), None);
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            // The last character has bits that mean nothing; they must be zero.
            assert_eq!(seal.open::<String>("state", std::str::from_utf8(&changed).unwrap()), None, "{at}");
        }
        for other in ["", "AAAA", "%", &text[1..]] {
            assert_eq!(seal.open::<String>("state", other), None, "{other}");
        }
        assert_ne!(seal.close("state", &"secret").unwrap(), text, "never the same text twice");
    }
}
