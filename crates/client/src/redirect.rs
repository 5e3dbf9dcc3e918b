//! Addresses that servers publish and that do not lead there from here, such as those of endpoint slices.

use std::str::FromStr;

use http::uri::Authority;

/// Another address for one that a server publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPortOverride {
    published: Authority,
    used: Authority,
}

impl FromStr for HostPortOverride {
    type Err = String;

    /// Reads `original-host:port=new-host:port`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('=').collect();
        let [published, used] = parts.as_slice() else {
            return Err("format must be 'original-host:port=new-host:port'".to_owned());
        };
        let read = |part: &str, number: usize| {
            let wrong = |problem: &str| format!("part {number} is not a valid host:port: address {part}: {problem}");
            let authority: Authority = part.parse().map_err(|_| wrong("no host and port"))?;
            if part.contains('@') || authority.host().is_empty() {
                return Err(wrong("no host and port"));
            }
            if authority.port_u16().is_none() {
                return Err(wrong("missing port in address"));
            }
            Ok(authority)
        };
        Ok(Self { published: read(published, 1)?, used: read(used, 2)? })
    }
}

/// The address to use for a published URL, if it is another one. All overrides are applied, one after the other.
pub(crate) fn redirected(overrides: &[HostPortOverride], url: &http::Uri) -> Option<http::Uri> {
    let published = url.authority()?;
    // A URL may leave out the port that its scheme has anyway.
    let port = published.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
    let mut now: Authority = format!("{}:{port}", published.host()).parse().ok()?;
    let mut is_other = false;
    for one in overrides {
        if one.published == now {
            now = one.used.clone();
            is_other = true;
        }
    }
    if !is_other {
        return None;
    }
    let mut parts = url.clone().into_parts();
    parts.authority = Some(now);
    http::Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(overrides: &[&str], url: &str) -> String {
        let overrides: Vec<HostPortOverride> = overrides.iter().map(|text| text.parse().unwrap()).collect();
        let url: http::Uri = url.parse().unwrap();
        redirected(&overrides, &url).unwrap_or(url).to_string()
    }

    #[test]
    fn a_published_address_is_replaced_and_nothing_else() {
        for (overrides, url, wanted) in [
            (&["a:6443=localhost:31000"][..], "https://a:6443/services/x", "https://localhost:31000/services/x"),
            (&["a:6443=localhost:31000"], "https://b:6443/services/x", "https://b:6443/services/x"),
            (&["a:6443=localhost:31000"], "https://a:6444/services/x", "https://a:6444/services/x"),
            (&["a:443=b:1"], "https://a/x", "https://b:1/x"),
            (&["a:80=b:1"], "http://a/x", "http://b:1/x"),
            (&["a:80=b:1"], "https://a/x", "https://a/x"),
            (&["a:1=b:2", "b:2=c:3"], "https://a:1/", "https://c:3/"),
            (&["a:1=[2001:db8::1]:8443"], "https://a:1/x", "https://[2001:db8::1]:8443/x"),
            (&["[::1]:1=b:2"], "https://[::1]:1/x", "https://b:2/x"),
            (&["A:1=b:2"], "https://a:1/x", "https://b:2/x"),
            (&[], "https://a:1/x", "https://a:1/x"),
        ] {
            assert_eq!(sent(overrides, url), wanted, "{overrides:?} {url}");
        }
    }

    #[test]
    fn what_is_no_pair_of_addresses_is_refused() {
        let format = "format must be 'original-host:port=new-host:port'";
        for (text, wanted) in [
            ("", format),
            ("a:1", format),
            ("a:1=b:2=c:3", format),
            ("a=b:2", "part 1 is not a valid host:port: address a: missing port in address"),
            ("a:1=b", "part 2 is not a valid host:port: address b: missing port in address"),
            ("a:1=https://b:2", "part 2 is not a valid host:port: address https://b:2: no host and port"),
            ("a:1=u@b:2", "part 2 is not a valid host:port: address u@b:2: no host and port"),
            ("=b:2", "part 1 is not a valid host:port: address : no host and port"),
        ] {
            assert_eq!(text.parse::<HostPortOverride>().unwrap_err(), wanted, "{text}");
        }
    }
}
