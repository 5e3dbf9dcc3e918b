//! Names that a konnector's pods know beside those of DNS.

use std::net::IpAddr;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::names::is_name;

/// Names of one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAlias {
    /// The address.
    pub ip: IpAddr,
    /// Its names.
    pub hostnames: Vec<String>,
}

/// What kube-bind's flag `--konnector-host-alias` says: `IP:NAME,NAME`. Lists of Go's flags separate their elements by commas too, so that several
/// aliases may be in one text.
///
/// ```
/// use carrick_bind_api::install::HostAliases;
///
/// let aliases: HostAliases = "10.0.0.7:api.example.io,bind.example.io".parse()?;
/// assert_eq!(aliases.0[0].hostnames, ["api.example.io", "bind.example.io"]);
/// # Ok::<(), carrick_bind_api::install::HostAliasError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostAliases(pub Vec<HostAlias>);

/// The text is no alias.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no host alias such as 10.0.0.7:api.example.io,bind.example.io")]
pub struct HostAliasError(String);

impl FromStr for HostAliases {
    type Err = HostAliasError;

    fn from_str(text: &str) -> Result<Self, HostAliasError> {
        let failed = || HostAliasError(text.to_owned());
        let mut all: Vec<HostAlias> = Vec::new();
        // Whoever has learned that Go splits the list puts it into quotes.
        for part in text.trim_matches('"').split(',') {
            let begins = part.rsplit_once(':').map(|(ip, name)| (ip.trim_matches(['[', ']']).parse(), name));
            let name = match begins {
                Some((Ok(ip), name)) => {
                    all.push(HostAlias { ip, hostnames: Vec::new() });
                    name
                }
                Some((Err(_), _)) => return Err(failed()),
                None => part,
            };
            let alias = all.last_mut().filter(|_| is_name(name)).ok_or_else(failed)?;
            alias.hostnames.push(name.to_owned());
        }
        Ok(Self(all))
    }
}

impl HostAliases {
    /// All of these, those of the same address together, as Kubernetes wants it.
    pub fn all<'a>(given: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all: Vec<HostAlias> = Vec::new();
        for alias in given.into_iter().flat_map(|given| &given.0) {
            match all.iter_mut().find(|known| known.ip == alias.ip) {
                Some(known) => known.hostnames.extend(alias.hostnames.iter().cloned()),
                None => all.push(alias.clone()),
            }
        }
        Self(all)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The field `hostAliases` of a pod.
    pub(super) fn field(&self) -> Value {
        self.0.iter().map(|alias| json!({"ip": alias.ip.to_string(), "hostnames": alias.hostnames})).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_read_as_kube_bind_writes_them_and_nothing_else_is() {
        let read = |text: &str| text.parse::<HostAliases>().map(|all| all.field().to_string());
        let one = |ip: &str, names: &str| format!(r#"{{"hostnames":[{names}],"ip":"{ip}"}}"#);
        for (text, fields) in [
            ("10.0.0.7:a", vec![one("10.0.0.7", r#""a""#)]),
            ("10.0.0.7:a.io,b.io", vec![one("10.0.0.7", r#""a.io","b.io""#)]),
            ("\"10.0.0.7:a,b\"", vec![one("10.0.0.7", r#""a","b""#)]),
            ("10.0.0.7:a,10.0.0.8:b", vec![one("10.0.0.7", r#""a""#), one("10.0.0.8", r#""b""#)]),
            ("fd00::7:a,[fd00::8]:b", vec![one("fd00::7", r#""a""#), one("fd00::8", r#""b""#)]),
        ] {
            assert_eq!(read(text), Ok(format!("[{}]", fields.join(","))), "{text}");
        }
        for bad in ["", "a", "10.0.0.7", "10.0.0.7:", ":a", "host:a", "10.0.0.7:a,", "10.0.0.7:a b"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_said_of_one_address_comes_together() {
        let given = ["10.0.0.7:a", "10.0.0.8:b", "10.0.0.7:c"].map(|text| text.parse().unwrap());
        let all = HostAliases::all(&given);
        assert_eq!((all.0.len(), all.0[0].hostnames.join(" ").as_str()), (2, "a c"));
    }
}
