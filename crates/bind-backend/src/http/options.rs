//! The flags of the HTTP front.

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

use std::path::PathBuf;
use std::time::Duration;

use carrick_bind_api::install::HostAliases;
use carrick_go::duration;
use clap::Args;
use data_encoding::BASE64;

use super::config::{Allowed, GivenKeys, HttpConfig, LoginMethod, TlsFiles};
use super::networks::Network;
use super::redirect;

/// Flags of the HTTP front.
#[derive(Clone, Debug, Args)]
pub struct HttpOptions {
    /// Replaced by --listen-address
    #[arg(long, value_name = "IP", hide = true)]
    listen_ip: Option<String>,
    /// Replaced by --listen-address
    #[arg(long, value_name = "PORT", hide = true)]
    listen_port: Option<u16>,
    /// Certificate of the server, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// Key of the server, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_key_file: Option<PathBuf>,
    /// Only `embedded` has an effect: the pages are part of this program, and the address of another front is not used
    #[arg(long, value_name = "WHICH", default_value = "embedded")]
    frontend: String,
    /// How long a login holds
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = positive)]
    token_expiry: Duration,
    /// Who says who somebody is: external, or embedded for development
    #[arg(long, value_name = "TYPE", default_value = "external", value_parser = ["external", "embedded"])]
    oidc_type: String,
    /// URL of the issuer
    #[arg(long, value_name = "URL", default_value = "")]
    oidc_issuer_url: String,
    /// Who this backend is for the issuer
    #[arg(long, value_name = "ID", default_value = "")]
    oidc_issuer_client_id: String,
    /// Its secret, better given by $OIDC_CLIENT_SECRET; without one the client is public
    #[arg(long, value_name = "SECRET", default_value = "", hide_default_value = true)]
    oidc_issuer_client_secret: String,
    /// Where the issuer sends browsers back to: this server by its public name, with the path /api/callback
    #[arg(long, value_name = "URL", default_value = "")]
    oidc_callback_url: String,
    /// Accepted and not used: the issuer tells it
    #[arg(long, value_name = "URL", hide = true)]
    oidc_authorize_url: Option<String>,
    /// Certificate authorities of the issuer, in PEM
    #[arg(long, value_name = "FILE")]
    oidc_ca_file: Option<PathBuf>,
    /// Groups that may bind
    #[arg(long, value_name = "GROUP,...", value_delimiter = ',')]
    oidc_allowed_groups: Vec<String>,
    /// Subjects that may bind
    #[arg(long, value_name = "SUBJECT,...", value_delimiter = ',')]
    oidc_allowed_users: Vec<String>,
    /// Networks beside the public Internet that uploaded kubeconfigs (/api/apply-binding) may lead to, such as 10.0.0.0/8
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',')]
    consumer_networks: Vec<Network>,
    /// Key that signs tokens, at least 32 bytes in base64 [default: one kept in a Secret]
    #[arg(long, value_name = "BASE64", default_value = "", hide_default_value = true)]
    cookie_signing_key: String,
    /// Key that encrypts cookies, 16, 24 or 32 bytes in base64 [default: one kept in a Secret]
    #[arg(long, value_name = "BASE64", default_value = "", hide_default_value = true)]
    cookie_encryption_key: String,
    /// Accepted and not used: replicas share nothing but keys
    #[arg(long, value_name = "ADDRESS", hide = true)]
    redis_addr: Option<String>,
    /// Names that the pods of konnectors get to know which are installed from the pages. May be repeated
    #[arg(long, value_name = "IP:HOST,...")]
    konnector_host_alias: Vec<HostAliases>,
    /// Accepted and not used: the pages choose nothing by themselves
    #[arg(long, value_name = "NAME", hide = true)]
    testing_auto_select: Option<String>,
}

/// Why flags cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A flag is needed.
    #[error("{flag} is needed: {why}; or turn the web front off with --frontend-disabled")]
    Missing {
        /// Which one.
        flag: &'static str,
        /// What for.
        why: &'static str,
    },
    /// A flag has a value that means nothing.
    #[error("{flag} cannot be used: {why}")]
    Wrong {
        /// Which one.
        flag: &'static str,
        /// What is wrong.
        why: String,
    },
}

impl HttpOptions {
    /// Where to listen: at the address of --listen-address, unless the flags of old say otherwise.
    pub fn address(&self, listen_address: &str) -> String {
        match (&self.listen_ip, self.listen_port) {
            (None, None) => listen_address.to_owned(),
            (ip, port) => {
                let (known_ip, known_port) = listen_address.rsplit_once(':').unwrap_or(("127.0.0.1", "8080"));
                let ip = ip.clone().unwrap_or_else(|| known_ip.to_owned());
                format!("{ip}:{}", port.map_or_else(|| known_port.to_owned(), |port| port.to_string()))
            }
        }
    }

    /// Who may bind. With the embedded issuer everybody may who has logged in.
    pub fn allowed(&self) -> Allowed {
        let given = |names: &[String]| names.iter().filter(|name| !name.is_empty()).cloned().collect::<Vec<_>>();
        let mut allowed = Allowed { groups: given(&self.oidc_allowed_groups), users: given(&self.oidc_allowed_users) };
        let everybody = "system:authenticated";
        if self.oidc_type == "embedded" && !allowed.groups.iter().any(|group| group == everybody) {
            allowed.groups.push(everybody.to_owned());
        }
        allowed
    }

    /// What the front is told.
    pub fn config(
        &self,
        pretty_name: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<HttpConfig, OptionsError> {
        let wrong = |flag, why: &str| OptionsError::Wrong { flag, why: why.to_owned() };
        if ["http://", "https://"].iter().any(|scheme| self.frontend.starts_with(scheme)) {
            tracing::warn!(frontend = self.frontend, "--frontend is not used: the pages are part of this program.");
        } else if self.frontend != "embedded" {
            return Err(wrong("--frontend", "the pages are part of this program; leave it away"));
        }
        if self.redis_addr.is_some() {
            tracing::warn!(
                "--redis-addr is not used: replicas share keys by a Secret, and there are no sessions to store."
            );
        }
        let callback = &self.oidc_callback_url;
        if callback.is_empty() {
            return Err(OptionsError::Missing { flag: "--oidc-callback-url", why: "browsers come back to it" });
        }
        if redirect::origin_of(callback).is_none() || !callback.ends_with("/api/callback") {
            return Err(wrong("--oidc-callback-url", "it must be a URL that ends with /api/callback"));
        }
        let tls = self.tls_cert_file.clone().zip(self.tls_key_file.clone()).map(|(cert, key)| TlsFiles { cert, key });
        Ok(HttpConfig {
            pretty_name: pretty_name.to_owned(),
            token_expiry: self.token_expiry,
            login: self.login(environment)?,
            callback: callback.clone(),
            tls,
            keys: GivenKeys {
                signing: key("--cookie-signing-key", &self.cookie_signing_key, |length| length >= 32, "at least 32")?,
                encryption: key(
                    "--cookie-encryption-key",
                    &self.cookie_encryption_key,
                    |length| matches!(length, 16 | 24 | 32),
                    "16, 24 or 32",
                )?,
            },
            allowed: self.allowed(),
            consumer_networks: self.consumer_networks.clone(),
            konnector_aliases: HostAliases::all(&self.konnector_host_alias),
        })
    }

    fn login(&self, environment: impl Fn(&str) -> Option<String>) -> Result<LoginMethod, OptionsError> {
        let issuer = self.oidc_issuer_url.clone();
        if issuer.is_empty() {
            return Err(OptionsError::Missing { flag: "--oidc-issuer-url", why: "it says who somebody is" });
        }
        let wrong = |flag, why: &str| OptionsError::Wrong { flag, why: why.to_owned() };
        if redirect::origin_of(&issuer).is_none() {
            return Err(wrong("--oidc-issuer-url", "it must be an http or https URL"));
        }
        if self.oidc_type == "embedded" {
            if !issuer.trim_end_matches('/').ends_with("/oidc") {
                return Err(wrong("--oidc-issuer-url", "the embedded issuer's ends with /oidc"));
            }
            return Ok(LoginMethod::Embedded { issuer });
        }
        if self.oidc_issuer_client_id.is_empty() {
            return Err(OptionsError::Missing {
                flag: "--oidc-issuer-client-id",
                why: "the issuer must know this backend",
            });
        }
        if self.allowed() == Allowed::default() {
            let flag = "--oidc-allowed-groups or --oidc-allowed-users";
            return Err(OptionsError::Missing { flag, why: "nobody could bind" });
        }
        let secret = Some(self.oidc_issuer_client_secret.clone()).filter(|secret| !secret.is_empty());
        Ok(LoginMethod::External {
            issuer,
            client_id: self.oidc_issuer_client_id.clone(),
            client_secret: secret.or_else(|| environment("OIDC_CLIENT_SECRET").filter(|secret| !secret.is_empty())),
            ca_file: self.oidc_ca_file.clone(),
        })
    }
}

/// A key in base64, of a length that fits.
fn key(
    flag: &'static str,
    text: &str,
    fits: impl Fn(usize) -> bool,
    lengths: &str,
) -> Result<Option<Vec<u8>>, OptionsError> {
    if text.is_empty() {
        return Ok(None);
    }
    let bytes = BASE64.decode(text.as_bytes()).ok().filter(|bytes| fits(bytes.len()));
    let why = || OptionsError::Wrong { flag, why: format!("it must be {lengths} bytes in base64") };
    bytes.map(Some).ok_or_else(why)
}

/// A duration of Go of at least one second.
fn positive(text: &str) -> Result<Duration, String> {
    let nanos = duration::parse(text).and_then(|nanos| u64::try_from(nanos).ok());
    let duration = nanos.map(Duration::from_nanos).filter(|duration| *duration >= Duration::from_secs(1));
    duration.ok_or_else(|| format!("{text:?} is not a duration such as 1h"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct All {
        #[command(flatten)]
        http: HttpOptions,
    }

    fn parse(args: &[&str]) -> HttpOptions {
        All::try_parse_from(["backend"].iter().chain(args)).unwrap().http
    }

    fn problem(args: &[&str]) -> String {
        parse(args).config("p", |_| None).unwrap_err().to_string()
    }

    const CALLBACK: &str = "--oidc-callback-url=https://bind.example.io/api/callback";
    const ISSUER: &str = "--oidc-issuer-url=https://issuer.example.io";

    #[test]
    fn what_is_missing_or_wrong_is_named_with_its_flag() {
        assert!(problem(&[]).starts_with("--oidc-callback-url is needed"));
        assert!(problem(&["--oidc-callback-url=https://x/callback"]).contains("ends with /api/callback"));
        assert!(problem(&[CALLBACK]).starts_with("--oidc-issuer-url is needed"));
        assert!(problem(&[CALLBACK, ISSUER]).starts_with("--oidc-issuer-client-id is needed"));
        let id = "--oidc-issuer-client-id=me";
        assert!(problem(&[CALLBACK, ISSUER, id]).contains("nobody could bind"));
        assert!(problem(&[CALLBACK, ISSUER, "--oidc-type=embedded"]).contains("ends with /oidc"));
        let (good, allowed) = ([CALLBACK, ISSUER, id], "--oidc-allowed-users=ann,bob");
        let with = |more: &'static str| [&good[..], &[allowed, more]].concat();
        assert!(problem(&with("--cookie-signing-key=AAAA")).contains("at least 32 bytes in base64"));
        assert!(problem(&with("--cookie-encryption-key=AAAA")).contains("16, 24 or 32"));
        assert!(problem(&with("--frontend=/var/www")).starts_with("--frontend cannot be used"));
        assert!(parse(&with("--frontend=http://localhost:3000")).config("p", |_| None).is_ok(), "said in the log");
        assert!(All::try_parse_from(["backend", "--tls-cert-file=x"]).is_err());
        assert!(All::try_parse_from(["backend", "--oidc-type=other"]).is_err());
        assert!(All::try_parse_from(["backend", "--token-expiry=0s"]).is_err());
        assert!(All::try_parse_from(["backend", "--konnector-host-alias=x"]).is_err());
        let aliased =
            parse(&[&with("--konnector-host-alias=1.2.3.4:x,y")[..], &["--konnector-host-alias=1.2.3.4:z"]].concat());
        let aliases = aliased.config("p", |_| None).unwrap().konnector_aliases;
        assert_eq!(aliases.0[0].hostnames, ["x", "y", "z"]);
        let config = parse(&with("--redis-addr=redis:6379")).config("p", |_| Some("s3cret".to_owned())).unwrap();
        assert_eq!(config.allowed.users, ["ann", "bob"]);
        let LoginMethod::External { client_secret, .. } = &config.login else { panic!("{config:?}") };
        assert_eq!(client_secret.as_deref(), Some("s3cret"));
        assert!(!format!("{config:?}").contains("s3cret"));
    }

    #[test]
    fn old_flags_of_the_address_still_count() {
        let address = |args: &[&str]| parse(args).address("127.0.0.1:8080");
        assert_eq!(address(&[]), "127.0.0.1:8080");
        assert_eq!(address(&["--listen-port=9"]), "127.0.0.1:9");
        assert_eq!(address(&["--listen-port=9", "--listen-ip=0.0.0.0"]), "0.0.0.0:9");
        assert_eq!(parse(&["--oidc-type=embedded"]).allowed().groups, ["system:authenticated"]);
    }
}
