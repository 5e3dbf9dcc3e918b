//! Keys and certificates.
//!
//! ```text
//!  arguments ──▶ certificates ──▶ rcgen (X.509, signed by ring)
//!                  ├─ key ─ der, pem       keys in the forms that Go reads and writes
//!                  └─ primes               new RSA and DSA keys
//! ```
//!
//! They cost far more than any other function, so few fit into a rendering: see [`crate::limits`].

mod der;
mod key;
mod pem;
mod primes;

use std::{net::IpAddr, rc::Rc, str::FromStr};

use key::Key;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};

use super::random;
use crate::{
    fmt,
    functions::{
        Args, Function,
        Type::{AnyList, Certificate as Cert, Int, Str},
    },
    heap::{Heap, Outcome},
    limits,
    time::Time,
    value::{Certificate, List, Value},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("genPrivateKey", &[Str], |heap, args| heap.str(new_key(heap, &args.str(0)?.text())?)),
    Function::new("buildCustomCert", &[Str, Str], custom),
    Function::new("genCA", &[Str, Int], |heap, args| {
        let key = rsa_key(heap)?;
        authority(heap, args, &key)
    }),
    Function::new("genCAWithKey", &[Str, Int, Str], |heap, args| {
        let key = given_key(heap, args, 2)?;
        authority(heap, args, &key)
    }),
    Function::new("genSelfSignedCert", &[Str, AnyList, AnyList, Int], |heap, args| {
        let key = rsa_key(heap)?;
        self_signed(heap, args, &key)
    }),
    Function::new("genSelfSignedCertWithKey", &[Str, AnyList, AnyList, Int, Str], |heap, args| {
        let key = given_key(heap, args, 4)?;
        self_signed(heap, args, &key)
    }),
    Function::new("genSignedCert", &[Str, AnyList, AnyList, Int, Cert], |heap, args| {
        let key = rsa_key(heap)?;
        signed(heap, args, &key)
    }),
    Function::new("genSignedCertWithKey", &[Str, AnyList, AnyList, Int, Cert, Str], |heap, args| {
        let key = given_key(heap, args, 5)?;
        signed(heap, args, &key)
    }),
];

/// Steps that signing takes.
const SIGNING: usize = 2000;
/// Bits of the keys that come with new certificates.
const CERTIFICATE_BITS: u32 = 2048;
/// Bits of `genPrivateKey "rsa"`.
const KEY_BITS: u32 = 4096;

fn new_key(heap: &Heap, kind: &str) -> Outcome<String> {
    let key = match kind {
        "" | "rsa" => {
            heap.step(limits::LARGE_KEY_STEPS)?;
            Key::new_rsa(KEY_BITS)?
        }
        "dsa" => {
            heap.step(limits::LARGE_KEY_STEPS)?;
            Key::new_dsa()?
        }
        "ecdsa" => {
            heap.step(SIGNING)?;
            Key::new_ecdsa()?
        }
        "ed25519" => {
            heap.step(SIGNING)?;
            Key::new_ed25519()
        }
        // Go returns this as the key.
        other => return Ok(format!("Unknown type {other}")),
    };
    Ok(key.pem())
}

fn rsa_key(heap: &Heap) -> Outcome<Key> {
    heap.step(limits::KEY_STEPS)?;
    Ok(Key::new_rsa(CERTIFICATE_BITS)?)
}

fn given_key(heap: &Heap, args: Args<'_>, index: usize) -> Outcome<Key> {
    heap.step(SIGNING)?;
    Ok(Key::parse(args.bytes(index)?).map_err(|error| format!("parsing private key: {error}"))?)
}

fn custom(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    heap.step(SIGNING)?;
    let decode = |index: usize, what: &str| -> Outcome<Vec<u8>> {
        let text: Vec<u8> = args.bytes(index)?.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        Ok(data_encoding::BASE64.decode(&text).map_err(|_| format!("unable to decode base64 {what}"))?)
    };
    let (cert, key) = (decode(0, "certificate")?, decode(1, "private key")?);
    let block = pem::decode(&cert).ok_or("unable to decode certificate")?;
    parse(&block.bytes).map_err(|error| format!("error parsing certificate: decodedCert.Bytes: {error}"))?;
    Key::parse(&key).map_err(|error| format!("error parsing private key: {error}"))?;
    certificate(heap, cert, key)
}

fn authority(heap: &Heap, args: Args<'_>, key: &Key) -> Outcome<Value> {
    let mut params = base(heap, args, None, None, args.int(1)?)?;
    params.key_usages.push(KeyUsagePurpose::KeyCertSign);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    sign_itself(heap, &params, key)
}

fn self_signed(heap: &Heap, args: Args<'_>, key: &Key) -> Outcome<Value> {
    let params = base(heap, args, Some(args.any(1)?), Some(args.any(2)?), args.int(3)?)?;
    sign_itself(heap, &params, key)
}

fn sign_itself(heap: &Heap, params: &CertificateParams, key: &Key) -> Outcome<Value> {
    heap.step(SIGNING)?;
    let signed = params.self_signed(&pair(key)?).map_err(creating)?;
    certificate(heap, pem::encode("CERTIFICATE", signed.der()).into_bytes(), key.pem().into_bytes())
}

fn signed(heap: &Heap, args: Args<'_>, key: &Key) -> Outcome<Value> {
    heap.step(SIGNING)?;
    let Value::Certificate(ca) = args.any(4)? else { return Err("the signer must be a certificate".into()) };
    let block = pem::decode(ca.cert.as_bytes()).ok_or("unable to decode certificate")?;
    let known =
        parse(&block.bytes).map_err(|error| format!("error parsing certificate: decodedSignerCert.Bytes: {error}"))?;
    let signer = Key::parse(ca.key.as_bytes()).map_err(|error| format!("error parsing private key: {error}"))?;
    let signer = pair(&signer)?;
    if signer.public_key_raw() != known.public_key().subject_public_key.data.as_ref() {
        return Err("error creating certificate: x509: provided PrivateKey doesn't match parent's PublicKey".into());
    }
    let mut params = base(heap, args, Some(args.any(1)?), Some(args.any(2)?), args.int(3)?)?;
    params.use_authority_key_identifier_extension = true;
    let issuer = Issuer::from_ca_cert_der(&block.bytes.as_slice().into(), signer).map_err(creating)?;
    let made = params.signed_by(&pair(key)?, &issuer).map_err(creating)?;
    certificate(heap, pem::encode("CERTIFICATE", made.der()).into_bytes(), key.pem().into_bytes())
}

/// What all certificates have in common: a name, addresses, a time.
fn base(
    heap: &Heap,
    args: Args<'_>,
    ips: Option<&Value>,
    dns: Option<&Value>,
    days: i64,
) -> Outcome<CertificateParams> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let name = std::str::from_utf8(args.bytes(0)?)
        .map_err(|_| "error creating certificate: asn1: string not valid UTF-8".to_owned())?;
    if !name.is_empty() {
        let value = match name.try_into() {
            Ok(printable) => DnValue::PrintableString(printable),
            Err(_) => DnValue::Utf8String(name.to_owned()),
        };
        params.distinguished_name.push(DnType::CommonName, value);
    }
    for name in strings(dns) {
        let name = string(heap, name, "processing alternate dns name")?;
        let name = name.try_into().map_err(creating)?;
        params.subject_alt_names.push(SanType::DnsName(name));
    }
    for ip in strings(ips) {
        let ip = string(heap, ip, "parsing ip")?;
        let address = IpAddr::from_str(&ip).map_err(|_| format!("error parsing ip: {ip}"))?;
        params.subject_alt_names.push(SanType::IpAddress(address));
    }
    // Go multiplies without checking for overflow.
    let nanos = days.wrapping_mul(24 * 3600 * 1_000_000_000);
    let now = Time::now();
    params.not_before = date(&now)?;
    params.not_after = date(&now.plus(nanos))?;
    params.serial_number = Some(SerialNumber::from_slice(&random::random_bytes(16)));
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn date(time: &Time) -> Outcome<::time::OffsetDateTime> {
    Ok(::time::OffsetDateTime::from_unix_timestamp(time.unix_seconds()).map_err(creating)?)
}

fn strings(list: Option<&Value>) -> Vec<Value> {
    match list {
        Some(Value::List(list)) => List::items(list).clone(),
        _ => Vec::new(),
    }
}

fn string(heap: &Heap, value: Value, doing: &str) -> Outcome<String> {
    heap.step(10)?;
    match value {
        Value::Str(text) => Ok(text.text().into_owned()),
        other => {
            let shown = fmt::sprint(heap, &[other])?;
            Err(format!("error {doing}: {} is not a string", shown.text()).into())
        }
    }
}

fn pair(key: &Key) -> Outcome<KeyPair> {
    Ok(key.pair().map_err(creating)?)
}

fn creating(error: impl std::fmt::Display) -> String {
    format!("error creating certificate: {error}")
}

fn parse(der: &[u8]) -> Result<x509_parser::certificate::X509Certificate<'_>, String> {
    match x509_parser::parse_x509_certificate(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err("x509: trailing data".to_owned()),
        Err(_) => Err("x509: malformed certificate".to_owned()),
    }
}

fn certificate(heap: &Heap, cert: Vec<u8>, key: Vec<u8>) -> Outcome<Value> {
    heap.take(cert.len() + key.len())?;
    Ok(Value::Certificate(Rc::new(Certificate { cert: cert.into(), key: key.into() })))
}
