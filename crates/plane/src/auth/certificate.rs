//! Who a client certificate belongs to: its common name is the user, its organizations are the groups.
//!
//! The TLS library has already checked the signature and the dates; this only finds the subject.

use crate::caller::Caller;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// The caller named by a certificate in DER; none without a common name.
pub fn caller(der: &[u8]) -> Option<Caller> {
    let mut caller = Caller::default();
    for (kind, text) in subject(der)? {
        if kind == COMMON_NAME {
            text.clone_into(&mut caller.user);
        } else if kind == ORGANIZATION {
            caller.groups.push(text.to_owned());
        }
    }
    if caller.user.is_empty() {
        return None;
    }
    caller.groups.push("system:authenticated".to_owned());
    Some(caller)
}

/// The parts of the subject: object identifier and text.
fn subject(der: &[u8]) -> Option<Vec<(&[u8], &str)>> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (mut rest, _) = expect(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    // Serial number, signature algorithm, issuer, validity.
    for _ in 0..4 {
        rest = element(rest)?.2;
    }
    let (mut names, _) = expect(rest, SEQUENCE)?;
    let mut parts = Vec::new();
    while !names.is_empty() {
        let (mut set, others) = expect(names, SET)?;
        names = others;
        while !set.is_empty() {
            let (pair, others) = expect(set, SEQUENCE)?;
            set = others;
            let (_, kind, value) = element(pair)?;
            let (_, text, _) = element(value)?;
            if let Ok(text) = std::str::from_utf8(text) {
                parts.push((kind, text));
            }
        }
    }
    Some(parts)
}

fn expect(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(bytes)?;
    (found == tag).then_some((content, rest))
}

/// Tag, content and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, bytes) = bytes.split_first()?;
    let (first, mut bytes) = bytes.split_first()?;
    let length = if first & 0x80 == 0 {
        usize::from(*first)
    } else {
        let (digits, rest) = bytes.split_at_checked(usize::from(first & 0x7f))?;
        bytes = rest;
        if digits.len() > 4 {
            return None;
        }
        digits.iter().fold(0, |length, digit| (length << 8) | usize::from(*digit))
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    Some((*tag, content, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    #[test]
    fn the_subject_names_user_and_groups() {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.distinguished_name.push(DnType::CommonName, "jürgen");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let der = certificate.der();
        let found = caller(der).unwrap();
        assert_eq!(found.user, "jürgen");
        assert_eq!(found.groups, ["system:masters", "system:authenticated"]);
        for end in 0..der.len() {
            assert_eq!(caller(&der[..end]), None);
        }
    }

    #[test]
    fn nonsense_names_nobody() {
        for bytes in [&b""[..], &[0x30], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 0x80], &[0x30, 0xff, 1, 2, 3]] {
            assert_eq!(caller(bytes), None);
        }
    }
}
