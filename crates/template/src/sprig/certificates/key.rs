//! Private keys as Go reads and writes them.

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256};

use super::{der, pem, primes};
use crate::sprig::random;

const OID_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const OID_EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const OID_ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const NULL: &[u8] = &[0x05, 0x00];

/// Curves that Go knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Curve {
    P224,
    P256,
    P384,
    P521,
}

impl Curve {
    const ALL: [Curve; 4] = [Curve::P224, Curve::P256, Curve::P384, Curve::P521];

    fn oid(self) -> &'static [u8] {
        match self {
            Curve::P224 => &[0x2b, 0x81, 0x04, 0x00, 0x21],
            Curve::P256 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
            Curve::P384 => &[0x2b, 0x81, 0x04, 0x00, 0x22],
            Curve::P521 => &[0x2b, 0x81, 0x04, 0x00, 0x23],
        }
    }
}

/// A private key.
pub(super) enum Key {
    /// PKCS#1.
    Rsa(Vec<u8>),
    Ec {
        curve: Curve,
        secret: Vec<u8>,
        /// Empty if the key came without it.
        public: Vec<u8>,
    },
    Ed25519(Vec<u8>),
    /// OpenSSL's form.
    Dsa(Vec<u8>),
}

impl Key {
    pub(super) fn new_rsa(bits: u32) -> Result<Key, String> {
        Ok(Key::Rsa(primes::rsa(bits)?))
    }

    pub(super) fn new_dsa() -> Result<Key, String> {
        Ok(Key::Dsa(primes::dsa()?))
    }

    pub(super) fn new_ecdsa() -> Result<Key, String> {
        let failed = |error: &dyn std::fmt::Display| format!("failed to generate private key: {error}");
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| failed(&error))?;
        parse_pkcs8(pair.serialized_der()).map_err(|error| failed(&error))
    }

    pub(super) fn new_ed25519() -> Key {
        Key::Ed25519(random::random_bytes(32))
    }

    /// Reads the first key of a text.
    pub(super) fn parse(text: &[u8]) -> Result<Key, String> {
        let block = pem::decode(text).ok_or("no PEM data in input")?;
        if block.label == "PRIVATE KEY" {
            return parse_pkcs8(&block.bytes).map_err(|error| format!("decoding PEM as PKCS#8: {error}"));
        }
        let Some(kind) = block.label.strip_suffix(" PRIVATE KEY") else {
            return Err(format!("no private key data in PEM block of type {}", block.label));
        };
        match kind {
            "RSA" => parse_rsa(&block.bytes).ok_or("parsing RSA private key from PEM: malformed key".to_owned()),
            "EC" => parse_ec(&block.bytes, None).map_err(|error| format!("parsing EC private key from PEM: {error}")),
            "DSA" => parse_dsa(&block.bytes).ok_or("parsing DSA private key from PEM: malformed key".to_owned()),
            _ => Err(format!("invalid private key type {}", block.label)),
        }
    }

    /// The key as text, in the form that Go chooses for its kind.
    pub(super) fn pem(&self) -> String {
        match self {
            Key::Rsa(bytes) => pem::encode("RSA PRIVATE KEY", bytes),
            Key::Dsa(bytes) => pem::encode("DSA PRIVATE KEY", bytes),
            Key::Ec { curve, .. } => {
                let parameters = der::write(der::CONTEXT_0, &der::write(der::OID, curve.oid()));
                pem::encode("EC PRIVATE KEY", &self.ec(&parameters))
            }
            Key::Ed25519(_) => pem::encode("PRIVATE KEY", &self.pkcs8()),
        }
    }

    /// The key for signing.
    pub(super) fn pair(&self) -> Result<KeyPair, String> {
        let algorithm = match self {
            Key::Rsa(_) => &PKCS_RSA_SHA256,
            Key::Ec { curve: Curve::P256, .. } => &PKCS_ECDSA_P256_SHA256,
            Key::Ec { curve: Curve::P384, .. } => &PKCS_ECDSA_P384_SHA384,
            Key::Ec { .. } => return Err("only keys on the curves P-256 and P-384 can sign here".to_owned()),
            Key::Ed25519(_) => &PKCS_ED25519,
            Key::Dsa(_) => return Err("x509: unsupported public key type: *dsa.PublicKey".to_owned()),
        };
        KeyPair::from_pkcs8_der_and_sign_algo(&self.pkcs8().into(), algorithm).map_err(|error| error.to_string())
    }

    /// PKCS#8, for all kinds but DSA.
    fn pkcs8(&self) -> Vec<u8> {
        let (parts, inner) = match self {
            Key::Rsa(bytes) | Key::Dsa(bytes) => (vec![der::write(der::OID, OID_RSA), NULL.to_vec()], bytes.clone()),
            Key::Ec { curve, .. } => {
                (vec![der::write(der::OID, OID_EC), der::write(der::OID, curve.oid())], self.ec(&[]))
            }
            Key::Ed25519(seed) => (vec![der::write(der::OID, OID_ED25519)], der::write(der::OCTET_STRING, seed)),
        };
        der::sequence(&[der::integer(&[0]), der::sequence(&parts), der::write(der::OCTET_STRING, &inner)])
    }

    /// A key on a curve, as SEC 1 has it.
    fn ec(&self, parameters: &[u8]) -> Vec<u8> {
        let Key::Ec { secret, public, .. } = self else { return Vec::new() };
        let mut parts = vec![der::integer(&[1]), der::write(der::OCTET_STRING, secret), parameters.to_vec()];
        if !public.is_empty() {
            let bits = der::write(der::BIT_STRING, &[&[0], public.as_slice()].concat());
            parts.push(der::write(der::CONTEXT_1, &bits));
        }
        der::sequence(&parts)
    }
}

/// Exactly this many numbers.
fn has_numbers(bytes: &[u8], count: usize) -> Option<()> {
    let (der::SEQUENCE, mut content, []) = der::read(bytes)? else { return None };
    for _ in 0..count {
        der::expect(&mut content, der::INTEGER)?;
    }
    content.is_empty().then_some(())
}

fn parse_rsa(bytes: &[u8]) -> Option<Key> {
    has_numbers(bytes, 9)?;
    Some(Key::Rsa(bytes.to_vec()))
}

fn parse_dsa(bytes: &[u8]) -> Option<Key> {
    has_numbers(bytes, 6)?;
    Some(Key::Dsa(bytes.to_vec()))
}

fn parse_ec(bytes: &[u8], outer: Option<&[u8]>) -> Result<Key, String> {
    let malformed = || "x509: failed to parse EC private key".to_owned();
    let (der::SEQUENCE, mut content, _) = der::read(bytes).ok_or_else(malformed)? else { return Err(malformed()) };
    let version = der::expect(&mut content, der::INTEGER).ok_or_else(malformed)?;
    let secret = der::expect(&mut content, der::OCTET_STRING).ok_or_else(malformed)?;
    if version != [1] {
        return Err("x509: unknown EC private key version".to_owned());
    }
    let (mut oid, mut public) = (outer, Vec::new());
    while let Some((tag, inner, rest)) = der::read(content) {
        match (tag, der::read(inner)) {
            (der::CONTEXT_0, Some((der::OID, found, _))) if outer.is_none() => oid = Some(found),
            (der::CONTEXT_1, Some((der::BIT_STRING, [0, bits @ ..], _))) => public = bits.to_vec(),
            _ => {}
        }
        content = rest;
    }
    let curve = Curve::ALL.into_iter().find(|curve| Some(curve.oid()) == oid).ok_or("x509: unknown elliptic curve")?;
    Ok(Key::Ec { curve, secret: secret.to_vec(), public })
}

fn parse_pkcs8(bytes: &[u8]) -> Result<Key, String> {
    let malformed = || "malformed key".to_owned();
    let (der::SEQUENCE, mut content, _) = der::read(bytes).ok_or_else(malformed)? else { return Err(malformed()) };
    der::expect(&mut content, der::INTEGER).ok_or_else(malformed)?;
    let mut algorithm = der::expect(&mut content, der::SEQUENCE).ok_or_else(malformed)?;
    let inner = der::expect(&mut content, der::OCTET_STRING).ok_or_else(malformed)?;
    let oid = der::expect(&mut algorithm, der::OID).ok_or_else(malformed)?;
    match oid {
        OID_RSA => parse_rsa(inner).ok_or_else(malformed),
        OID_EC => parse_ec(inner, Some(der::expect(&mut algorithm, der::OID).ok_or_else(malformed)?)),
        OID_ED25519 => match der::read(inner) {
            Some((der::OCTET_STRING, seed, [])) if seed.len() == 32 => Ok(Key::Ed25519(seed.to_vec())),
            _ => Err("x509: invalid Ed25519 private key".to_owned()),
        },
        _ => Err("x509: PKCS#8 wrapping contained private key with unknown algorithm".to_owned()),
    }
}
