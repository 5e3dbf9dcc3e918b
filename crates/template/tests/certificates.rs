//! sprig's functions that make keys and certificates: `cargo test -p carrick-template --features certificates`.

#![cfg(feature = "certificates")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use carrick_template::{RenderError, Template};
use serde_json::{Value, json};
use x509_parser::prelude::{GeneralName, ParsedExtension, Pem, X509Certificate};

fn render(text: &str) -> Result<String, String> {
    render_with(text, &json!({"list": ["a", 1]}))
}

fn render_with(text: &str, data: &Value) -> Result<String, String> {
    let template = Template::compile(text).map_err(|error| error.to_string())?;
    template.render_value(data).map_err(|error| match error {
        RenderError::Action { message, .. } => message,
        other => other.to_string(),
    })
}

/// The certificates in an output.
fn certificates(output: &str) -> Vec<Pem> {
    Pem::iter_from_buffer(output.as_bytes()).map(Result::unwrap).filter(|pem| pem.label == "CERTIFICATE").collect()
}

fn labels(output: &str) -> Vec<String> {
    Pem::iter_from_buffer(output.as_bytes()).map(|pem| pem.unwrap().label).collect()
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Some(names) = certificate.subject_alternative_name().unwrap() else { return Vec::new() };
    let show = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(bytes) => format!("{bytes:?}"),
        other => format!("{other:?}"),
    };
    names.value.general_names.iter().map(show).collect()
}

#[test]
fn keys_have_the_form_of_their_kind() {
    let table = [
        ("ecdsa", "-----BEGIN EC PRIVATE KEY-----\n"),
        ("ed25519", "-----BEGIN PRIVATE KEY-----\n"),
        ("dsa", "-----BEGIN DSA PRIVATE KEY-----\n"),
        ("rsa", "-----BEGIN RSA PRIVATE KEY-----\n"),
        ("", "-----BEGIN RSA PRIVATE KEY-----\n"),
        ("nope", "Unknown type nope"),
    ];
    for (kind, start) in table {
        let text = format!("{{{{ genPrivateKey {kind:?} }}}}");
        let key = render(&text).unwrap();
        assert!(key.starts_with(start), "{kind}: {key}");
        assert_ne!(key == "Unknown type nope", render(&text).unwrap() != key, "{kind}");
    }
}

#[test]
fn an_authority_signs_a_certificate_for_names_and_addresses() {
    let output = render(
        r#"{{ $ca := genCA "the-ca" 365 }}{{ $ca.Cert }}{{ with genSignedCert "leaf" (list "10.0.0.1" "::1") (list "a.example" "b.example") 30 $ca }}{{ .Cert }}{{ .Key }}{{ end }}"#,
    )
    .unwrap();
    assert_eq!(labels(&output), ["CERTIFICATE", "CERTIFICATE", "RSA PRIVATE KEY"]);
    let pems = certificates(&output);
    let (ca, leaf) = (pems[0].parse_x509().unwrap(), pems[1].parse_x509().unwrap());

    assert_eq!(ca.subject().to_string(), "CN=the-ca");
    assert_eq!(ca.issuer(), ca.subject());
    assert!(ca.basic_constraints().unwrap().unwrap().value.ca);
    let usage = ca.key_usage().unwrap().unwrap().value;
    assert!(usage.key_cert_sign() && usage.digital_signature() && usage.key_encipherment());
    ca.verify_signature(None).unwrap();

    assert_eq!(leaf.subject().to_string(), "CN=leaf");
    assert_eq!(leaf.issuer(), ca.subject());
    assert!(!leaf.basic_constraints().unwrap().unwrap().value.ca);
    let usage = leaf.key_usage().unwrap().unwrap().value;
    assert!(!usage.key_cert_sign() && usage.digital_signature() && usage.key_encipherment());
    let usage = leaf.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && usage.client_auth);
    let ipv6 = format!("{:?}", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(names(&leaf), ["a.example", "b.example", "[10, 0, 0, 1]", &ipv6]);
    leaf.verify_signature(Some(ca.public_key())).unwrap();
    let validity = leaf.validity();
    assert_eq!(validity.not_after.timestamp() - validity.not_before.timestamp(), 30 * 24 * 3600);
    let is_identifier = |e: &&x509_parser::extensions::X509Extension<'_>| {
        matches!(e.parsed_extension(), ParsedExtension::AuthorityKeyIdentifier(_))
    };
    assert!(leaf.extensions().iter().find(is_identifier).is_some());
}

#[test]
fn given_keys_are_used_and_handed_back() {
    for (kind, label) in [("ecdsa", "EC PRIVATE KEY"), ("ed25519", "PRIVATE KEY")] {
        let output = render(&format!(
            r#"{{{{ $k := genPrivateKey {kind:?} }}}}{{{{ $k }}}}{{{{ $ca := genCAWithKey "ca" 1 $k }}}}{{{{ $ca.Key }}}}{{{{ $ca.Cert }}}}
            {{{{- $l := genSignedCertWithKey "" nil nil 1 $ca $k }}}}{{{{ $l.Cert }}}}
            {{{{- (genSelfSignedCertWithKey "ä" nil (list "x") 1 $k).Cert }}}}"#
        ))
        .unwrap();
        assert_eq!(labels(&output), [label, label, "CERTIFICATE", "CERTIFICATE", "CERTIFICATE"], "{kind}");
        let keys: Vec<Pem> = Pem::iter_from_buffer(output.as_bytes()).map(Result::unwrap).collect();
        assert_eq!(keys[0].contents, keys[1].contents);
        let pems = certificates(&output);
        let parsed: Vec<_> = pems.iter().map(|pem| pem.parse_x509().unwrap()).collect();
        parsed[0].verify_signature(None).unwrap();
        parsed[1].verify_signature(Some(parsed[0].public_key())).unwrap();
        parsed[2].verify_signature(None).unwrap();
        assert_eq!(parsed[1].subject().to_string(), "");
        assert_eq!(parsed[2].subject().to_string(), "CN=ä");
    }
}

#[test]
fn existing_certificates_are_checked_and_handed_out() {
    let made = render(r#"{{ with genCAWithKey "ca" 1 (genPrivateKey "ecdsa") }}{{ toJson . }}{{ end }}"#).unwrap();
    let made: Value = serde_json::from_str(&made).unwrap();
    let text = r#"{{ $c := buildCustomCert (b64enc .Cert) (b64enc .Key) }}{{ eq $c.Cert .Cert }}{{ eq $c.Key .Key }}{{ kindOf $c }} {{ typeOf $c }}
{{- (genSignedCertWithKey "x" nil nil 1 $c .Key).Cert | hasPrefix "-----BEGIN CERTIFICATE" }}"#;
    assert_eq!(render_with(text, &made).unwrap(), "truetruestruct sprig.certificatetrue");
}

#[test]
fn mistakes_have_the_messages_of_sprig() {
    let table = [
        (r#"{{ buildCustomCert "%" "" }}"#, "error calling buildCustomCert: unable to decode base64 certificate"),
        (r#"{{ buildCustomCert "" "%" }}"#, "error calling buildCustomCert: unable to decode base64 private key"),
        (r#"{{ buildCustomCert "" "" }}"#, "error calling buildCustomCert: unable to decode certificate"),
        (r#"{{ genCAWithKey "x" 1 "" }}"#, "error calling genCAWithKey: parsing private key: no PEM data in input"),
        (
            r#"{{ genCAWithKey "x" 1 "-----BEGIN X-----\n-----END X-----" }}"#,
            "error calling genCAWithKey: parsing private key: no private key data in PEM block of type X",
        ),
        (
            r#"{{ genSelfSignedCertWithKey "x" (list "1.2.3") nil 1 (genPrivateKey "ecdsa") }}"#,
            "error calling genSelfSignedCertWithKey: error parsing ip: 1.2.3",
        ),
        (
            r#"{{ genSelfSignedCertWithKey "x" (list 1) nil 1 (genPrivateKey "ecdsa") }}"#,
            "error calling genSelfSignedCertWithKey: error parsing ip: 1 is not a string",
        ),
        (
            r#"{{ genSelfSignedCertWithKey "x" nil .list 1 (genPrivateKey "ecdsa") }}"#,
            "error calling genSelfSignedCertWithKey: error processing alternate dns name: 1 is not a string",
        ),
        (
            r#"{{ $k := genPrivateKey "ecdsa" }}{{ $ca := genCAWithKey "x" 1 $k }}{{ $other := buildCustomCert (b64enc $ca.Cert) (genPrivateKey "ed25519" | b64enc) }}{{ genSignedCertWithKey "x" nil nil 1 $other $k }}"#,
            "error calling genSignedCertWithKey: error creating certificate: x509: provided PrivateKey doesn't match parent's PublicKey",
        ),
        (r#"{{ genCA "x" "1" }}"#, "expected integer"),
        ("{{ genCA 1 1 }}", "expected string"),
        (r#"{{ genSignedCert "x" nil nil 1 "ca" }}"#, "expected sprig.certificate"),
        (r#"{{ genSelfSignedCert "x" "ip" nil 1 }}"#, "expected []interface {}"),
    ];
    for (text, expected) in table {
        assert_eq!(render(text).unwrap_err(), expected, "{text}");
    }
    let refused = render(r#"{{ genCAWithKey "x" 1 (genPrivateKey "dsa") }}"#).unwrap_err();
    assert!(refused.ends_with("unsupported public key type: *dsa.PublicKey"), "{refused}");
}

#[test]
fn one_rendering_makes_few_certificates() {
    assert!(render(r#"{{ range 4 }}{{ $_ := genCA "x" 1 }}{{ end }}"#).is_ok());
    for text in
        [r#"{{ range 5 }}{{ $_ := genCA "x" 1 }}{{ end }}"#, r#"{{ range 2 }}{{ genPrivateKey "rsa" }}{{ end }}"#]
    {
        assert_eq!(render(text).unwrap_err(), "template needs more than 100000 steps; make it simpler", "{text}");
    }
}
