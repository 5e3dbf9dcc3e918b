//! Where a webhook is.

use std::sync::Arc;

use data_encoding::BASE64;
use serde_json::Value;

/// The host and port of a service, or why there is none.
pub(crate) type Resolve<'a> = &'a dyn Fn(&Service) -> Result<(String, u16), String>;

/// A reference to a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// The address of a webhook: its `clientConfig`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookAddress {
    /// The name in certificates and in the `Host` header.
    pub(super) host: String,
    pub(super) port: u16,
    /// Whether the port is part of the URL.
    shows_port: bool,
    pub(super) path: String,
    service: Option<Service>,
    /// Where to connect, if that is another place than the host.
    pub(super) endpoint: Option<(String, u16)>,
    /// Authorities in PEM; empty for those of the system.
    pub(super) authorities: Arc<[u8]>,
}

impl HookAddress {
    /// Reads a `clientConfig`; one without a usable address gives an address that cannot be reached.
    pub(crate) fn read(config: &Value) -> Self {
        let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let authorities = BASE64.decode(text(config, "caBundle").as_bytes()).unwrap_or_default();
        let authorities = if authorities.trim_ascii().is_empty() { Arc::default() } else { authorities.into() };
        let reference = &config["service"];
        if reference.is_object() {
            let port = reference["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
            let service = Service { namespace: text(reference, "namespace"), name: text(reference, "name"), port };
            let host = format!("{}.{}.svc", service.name, service.namespace);
            let path = rooted(&text(reference, "path"));
            return Self { host, port, shows_port: true, path, service: Some(service), endpoint: None, authorities };
        }
        let url = text(config, "url");
        let rest = url.strip_prefix("https://").unwrap_or(&url);
        let (place, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
            _ => (place, None),
        };
        Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: port.unwrap_or(443),
            shows_port: port.is_some(),
            path: rooted(path),
            service: None,
            endpoint: None,
            authorities,
        }
    }

    /// The URL, as it is shown.
    pub(super) fn url(&self) -> String {
        format!("https://{}{}", self.authority(), self.path)
    }

    /// Host and port, as they are sent.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.shows_port { format!("{host}:{}", self.port) } else { host }
    }

    /// The same with the endpoint of its service.
    pub(super) fn resolved(&self, resolve: Resolve<'_>) -> Result<Self, String> {
        let mut address = self.clone();
        if let Some(service) = &self.service {
            address.endpoint = Some(resolve(service)?);
        }
        Ok(address)
    }
}

/// The path that is asked for: without empty parts and dots, as Go joins paths.
fn rooted(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_are_shown_as_go_shows_them() {
        for (config, url, host, port) in [
            (json!({"url": "https://127.0.0.1:8443"}), "https://127.0.0.1:8443/", "127.0.0.1", 8443),
            (json!({"url": "https://hooks.example.io/a/b"}), "https://hooks.example.io/a/b", "hooks.example.io", 443),
            (json!({"url": "https://[::1]:9/x"}), "https://[::1]:9/x", "::1", 9),
            (json!({"url": "https://h:1//a/./b/../c/"}), "https://h:1/a/c", "h", 1),
            (
                json!({"service": {"namespace": "n", "name": "s", "path": "/check", "port": 8443}}),
                "https://s.n.svc:8443/check",
                "s.n.svc",
                8443,
            ),
            (json!({"service": {"namespace": "n", "name": "s"}}), "https://s.n.svc:443/", "s.n.svc", 443),
        ] {
            let address = HookAddress::read(&config);
            assert_eq!((address.url().as_str(), address.host.as_str(), address.port), (url, host, port), "{config}");
        }
    }
}
