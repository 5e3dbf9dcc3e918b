//! Proxies that the environment names, in the way Go programs read it: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.

use std::net::IpAddr;

use http::Uri;

use super::proxy::Proxy;

/// The proxies of the environment, and what is reached without them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    https: Option<Proxy>,
    http: Option<Proxy>,
    direct: Vec<Direct>,
}

/// Hosts that are reached without a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Direct {
    /// All of them.
    Everything,
    /// One address, at one port or at all.
    Address(IpAddr, Option<u16>),
    /// All addresses that begin with these bits.
    Network(IpAddr, u8),
    /// A name and all names below it; without the name itself if it was written with a dot in front.
    Domain { name: String, itself: bool, port: Option<u16> },
}

impl Environment {
    /// Reads variables by name. The error names the variable and does not quote it, because it may hold a password.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, (&'static str, String)> {
        let text = |names: [&'static str; 2]| {
            let set = names.into_iter().filter_map(|name| Some((name, variable(name)?)));
            set.into_iter().find(|(_, text)| !text.is_empty())
        };
        let proxy = |names| match text(names) {
            None => Ok(None),
            Some((name, url)) => {
                let url = if url.contains("://") { url } else { format!("http://{url}") };
                Proxy::parse(&url).map(Some).map_err(|problem| (name, problem))
            }
        };
        let direct = text(["NO_PROXY", "no_proxy"]).map(|(_, list)| list).unwrap_or_default();
        Ok(Self {
            https: proxy(["HTTPS_PROXY", "https_proxy"])?,
            http: proxy(["HTTP_PROXY", "http_proxy"])?,
            direct: direct.split(',').filter_map(Direct::parse).collect(),
        })
    }

    /// The proxy for a destination; none if it is reached directly.
    pub(crate) fn proxy_for(&self, destination: &Uri) -> Option<&Proxy> {
        let plain = destination.scheme_str() == Some("http");
        let proxy = if plain { &self.http } else { &self.https }.as_ref()?;
        let host = destination.host().unwrap_or_default().trim_matches(['[', ']']).trim_end_matches('.').to_lowercase();
        let port = destination.port_u16().unwrap_or(if plain { 80 } else { 443 });
        let address: Option<IpAddr> = host.parse().ok();
        let is_here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        let is_direct = is_here || self.direct.iter().any(|direct| direct.covers(&host, address, port));
        (!is_direct).then_some(proxy)
    }
}

impl Direct {
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.trim().to_lowercase();
        if entry.is_empty() {
            return None;
        }
        if entry == "*" {
            return Some(Self::Everything);
        }
        if let Some((network, bits)) = entry.split_once('/') {
            return Some(Self::Network(network.parse().ok()?, bits.parse().ok()?));
        }
        if let Ok(address) = entry.trim_matches(['[', ']']).parse() {
            return Some(Self::Address(address, None));
        }
        let (host, port) = match entry.rsplit_once(':').map(|(host, port)| (host, port.parse().ok())) {
            Some((host, port @ Some(_))) => (host, port),
            _ => (entry.as_str(), None),
        };
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            return Some(Self::Address(address, port));
        }
        let host = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        let name = host.strip_prefix('.').unwrap_or(host);
        (!name.is_empty()).then(|| Self::Domain { name: name.to_owned(), itself: !host.starts_with('.'), port })
    }

    fn covers(&self, host: &str, address: Option<IpAddr>, at: u16) -> bool {
        let at_port = |port: &Option<u16>| port.is_none_or(|port| port == at);
        match self {
            Self::Everything => true,
            Self::Address(wanted, port) => address == Some(*wanted) && at_port(port),
            Self::Network(network, bits) => address.is_some_and(|address| begins_alike(address, *network, *bits)),
            Self::Domain { name, itself, port } => {
                let below = host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
                at_port(port) && (below || (*itself && host == name))
            }
        }
    }
}

fn begins_alike(a: IpAddr, b: IpAddr, bits: u8) -> bool {
    let (a, b, all) = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let rest = u32::from(all - bits.min(all));
    bits <= all && a.checked_shr(rest).unwrap_or(0) == b.checked_shr(rest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Result<Environment, (&'static str, String)> {
        Environment::read(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    fn goes_through_proxy(no_proxy: &str, url: &str) -> bool {
        let variables = [("HTTPS_PROXY", "http://secure:1"), ("http_proxy", "plain:2"), ("NO_PROXY", no_proxy)];
        environment(&variables).unwrap().proxy_for(&url.parse().unwrap()).is_some()
    }

    #[test]
    fn no_proxy_is_read_as_go_reads_it() {
        for (no_proxy, url, through) in [
            ("", "https://kcp.example.com", true),
            ("", "http://kcp.example.com", true),
            ("", "https://localhost:6443", false),
            ("", "https://127.0.0.2:6443", false),
            ("", "https://[::1]:6443", false),
            ("*", "https://kcp.example.com", false),
            ("example.com", "https://example.com", false),
            ("example.com", "https://kcp.EXAMPLE.com/clusters/root", false),
            ("example.com", "https://badexample.com", true),
            (".example.com", "https://example.com", true),
            (".example.com", "https://kcp.example.com", false),
            ("*.example.com", "https://example.com", true),
            ("*.example.com", "https://kcp.example.com", false),
            ("other, example.com ,x", "https://example.com", false),
            ("example.com:6443", "https://example.com:6443", false),
            ("example.com:6443", "https://example.com", true),
            ("example.com:443", "https://example.com", false),
            ("10.0.0.1", "https://10.0.0.1:6443", false),
            ("10.0.0.1:443", "https://10.0.0.1:6443", true),
            ("10.0.0.1", "https://10.0.0.2", true),
            ("10.96.0.0/12", "https://10.96.0.1", false),
            ("10.96.0.0/12", "https://10.112.0.1", true),
            ("10.96.0.0/12", "https://kcp.example.com", true),
            ("0.0.0.0/0", "https://10.112.0.1", false),
            ("fd00::/8", "https://[fd12::1]:6443", false),
            ("fd00::/8", "https://[fe80::1]", true),
        ] {
            assert_eq!(goes_through_proxy(no_proxy, url), through, "NO_PROXY={no_proxy} {url}");
        }
    }

    #[test]
    fn each_scheme_has_its_own_variable_and_capitals_win() {
        let both = environment(&[("HTTPS_PROXY", "http://a:1"), ("https_proxy", "http://b:1")]).unwrap();
        let proxy = both.proxy_for(&"https://x".parse().unwrap());
        assert!(matches!(proxy, Some(Proxy::Http(place, None)) if place.host() == Some("a")), "{proxy:?}");
        assert!(both.proxy_for(&"http://x".parse().unwrap()).is_none());
        let socks = environment(&[("https_proxy", "socks5://s:1080")]).unwrap();
        assert!(matches!(socks.proxy_for(&"https://x".parse().unwrap()), Some(Proxy::Socks(..))));
        assert!(environment(&[("HTTPS_PROXY", "")]).unwrap().proxy_for(&"https://x".parse().unwrap()).is_none());
    }

    #[test]
    fn a_bad_variable_is_named_and_not_quoted() {
        let (name, problem) = environment(&[("https_proxy", "ftp://me:secret@p")]).unwrap_err();
        assert_eq!((name, problem.as_str()), ("https_proxy", "its scheme is \"ftp\""));
    }
}
