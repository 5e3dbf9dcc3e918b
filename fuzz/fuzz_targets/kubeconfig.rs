//! Any text as a kubeconfig that somebody else has written: refused without a word of it, or safe, and then safe again.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use carrick_client::InlineKubeconfig;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// Fields that make a client run a program, open a file or go another way.
const DANGEROUS: [&str; 9] = [
    "exec",
    "auth-provider",
    "tokenFile",
    "client-certificate",
    "client-key",
    "certificate-authority",
    "proxy-url",
    "insecure-skip-tls-verify",
    "as",
];

fuzz_target!(|text: &str| {
    let safe = match InlineKubeconfig::parse(text) {
        Ok(safe) => safe,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let again = InlineKubeconfig::parse(safe.text()).expect("what is safe is safe again");
    assert_eq!((again.text(), again.server()), (safe.text(), safe.server()));
    let (host, port) = safe.host_and_port().expect("a server has a host");
    assert!(!host.is_empty() && port > 0);

    let there = safe.at(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))).expect("a server can be named by its address");
    for kubeconfig in [safe.text(), there.text()] {
        let whole: Value = serde_json::from_str(kubeconfig).expect("it is JSON");
        let (cluster, user) = (&whole["clusters"][0]["cluster"], &whole["users"][0]["user"]);
        for part in [cluster, user] {
            assert!(DANGEROUS.iter().all(|field| part[field].is_null()), "{kubeconfig}");
        }
    }
    let whole: Value = serde_json::from_str(there.text()).expect("it is JSON");
    let cluster = &whole["clusters"][0]["cluster"];
    assert!(cluster["server"].as_str().is_some_and(|url| url.starts_with(&format!("https://192.0.2.1:{port}"))));
    assert!(cluster["tls-server-name"].is_string());
});
