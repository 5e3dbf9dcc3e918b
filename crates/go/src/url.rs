//! URLs as Go's `net/url` takes them apart and puts them together.
//!
//! All parts are bytes, as in Go: `%ff` in a path is one byte that is not UTF-8.

mod error;
mod escape;

use std::net::{IpAddr, Ipv6Addr};

pub use error::UrlError;
use error::{Fault, quoted};
use escape::{Part, escape, is_plain_encoding, unescape};

/// The parts of a URL: Go's `url.URL`.
///
/// ```
/// use carrick_go::url::Url;
///
/// let url = Url::parse(b"https://me@Example.com:8443/a%20b?q#top").unwrap();
/// assert_eq!((url.host_name(), url.port()), (&b"Example.com"[..], &b"8443"[..]));
/// assert_eq!(url.path, b"/a b");
/// assert_eq!(url.to_bytes(), b"https://me@Example.com:8443/a%20b?q#top");
/// assert_eq!(Url::parse(b":a").unwrap_err().to_string(), r#"parse ":a": missing protocol scheme"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// In lower case.
    pub scheme: Vec<u8>,
    /// What follows the scheme if that is not a path, as in `mailto:me@example.com`.
    pub opaque: Vec<u8>,
    /// Name and password.
    pub user: Option<User>,
    /// Host and port, unescaped.
    pub host: Vec<u8>,
    /// The path, unescaped.
    pub path: Vec<u8>,
    /// The path as it was written, if that is not the usual way to write it.
    pub raw_path: Vec<u8>,
    /// The query as it was written.
    pub query: Vec<u8>,
    /// Whether there is a question mark without a query.
    pub force_query: bool,
    /// The fragment, unescaped.
    pub fragment: Vec<u8>,
    /// The fragment as it was written, if that is not the usual way to write it.
    pub raw_fragment: Vec<u8>,
    /// Whether there are no slashes for a host, as in `file:/etc`.
    pub omit_host: bool,
}

/// Who logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name, unescaped.
    pub name: Vec<u8>,
    /// The password, unescaped.
    pub password: Option<Vec<u8>>,
}

impl User {
    /// As it is written in a URL.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = escape(&self.name, Part::User);
        if let Some(password) = &self.password {
            out.push(b':');
            out.extend(escape(password, Part::User));
        }
        out
    }
}

impl Url {
    /// `url.Parse`: a URL or a reference relative to one.
    pub fn parse(text: &[u8]) -> Result<Url, UrlError> {
        let (rest, fragment) = cut(text, b'#');
        let mut url = read(rest, false).map_err(|fault| fault.of(rest))?;
        url.fragment = unescape(fragment, Part::Fragment).map_err(|fault| fault.of(text))?;
        if escape(&url.fragment, Part::Fragment) != fragment {
            url.raw_fragment = fragment.to_vec();
        }
        Ok(url)
    }

    /// `url.ParseRequestURI`: an absolute URL or an absolute path, without a fragment.
    pub fn parse_request(text: &[u8]) -> Result<Url, UrlError> {
        read(text, true).map_err(|fault| fault.of(text))
    }

    /// The host without its port and the brackets around an address.
    pub fn host_name(&self) -> &[u8] {
        let name = &self.host[..self.port_start()];
        name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]")).unwrap_or(name)
    }

    /// The port, or nothing.
    pub fn port(&self) -> &[u8] {
        self.host.get(self.port_start() + 1..).unwrap_or_default()
    }

    /// Where the colon before the port is.
    fn port_start(&self) -> usize {
        let colon = self.host.iter().rposition(|byte| *byte == b':');
        colon.filter(|at| is_port(&self.host[*at..])).unwrap_or(self.host.len())
    }

    /// The path as it was written if that is a way to write it, else escaped.
    pub fn escaped_path(&self) -> Vec<u8> {
        if self.path == b"*" { b"*".to_vec() } else { written(&self.raw_path, &self.path, Part::Path) }
    }

    /// The pairs of the query in their order, unescaped; those that cannot be read are left out.
    pub fn query_pairs(&self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
        let pairs = self.query.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty() && !pair.contains(&b';'));
        pairs.filter_map(|pair| {
            let (key, value) = cut(pair, b'=');
            Some((unescape(key, Part::Query).ok()?, unescape(value, Part::Query).ok()?))
        })
    }

    /// The whole URL: `URL.String`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        }
        if self.opaque.is_empty() {
            let authority = !self.host.is_empty() || self.user.is_some();
            if authority || !self.scheme.is_empty() && !self.path.is_empty() && !self.omit_host {
                out.extend_from_slice(b"//");
            }
            if let Some(user) = &self.user {
                out.extend(user.to_bytes());
                out.push(b'@');
            }
            out.extend(escape(&self.host, Part::Host));
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with(b"/") && !self.host.is_empty() {
                out.push(b'/');
            }
            if out.is_empty() && cut(&path, b'/').0.contains(&b':') {
                out.extend_from_slice(b"./");
            }
            out.extend(path);
        } else {
            out.extend_from_slice(&self.opaque);
        }
        if self.force_query || !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            out.extend(written(&self.raw_fragment, &self.fragment, Part::Fragment));
        }
        out
    }
}

/// The raw form if it stands for the text, else the usual one.
fn written(raw: &[u8], text: &[u8], part: Part) -> Vec<u8> {
    let fits = !raw.is_empty() && is_plain_encoding(raw, part) && unescape(raw, part).is_ok_and(|found| found == text);
    if fits { raw.to_vec() } else { escape(text, part) }
}

/// What is before and after the first separator.
fn cut(text: &[u8], separator: u8) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| *byte == separator) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b""),
    }
}

/// All but the fragment. Requests need a scheme or a path from the root.
fn read(text: &[u8], request: bool) -> Result<Url, Fault> {
    if text.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
        return Err("net/url: invalid control character in URL".into());
    }
    if request && text.is_empty() {
        return Err("empty url".into());
    }
    let mut url = Url::default();
    if text == b"*" {
        url.path = text.to_vec();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = cut(rest, b'?');
    url.force_query = query.is_empty() && text.ends_with(b"?");
    url.query = query.to_vec();
    if !rest.starts_with(b"/") {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_vec();
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".into());
        }
        if cut(rest, b'/').0.contains(&b':') {
            return Err("first path segment in URL cannot contain colon".into());
        }
    }
    if (!url.scheme.is_empty() || !request && !rest.starts_with(b"///")) && rest.starts_with(b"//") {
        let end = rest[2..].iter().position(|byte| *byte == b'/').map_or(rest.len(), |at| at + 2);
        (url.user, url.host) = read_authority(&url.scheme, &rest[2..end])?;
        rest = &rest[end..];
    } else if !url.scheme.is_empty() {
        url.omit_host = true;
    }
    url.path = unescape(rest, Part::Path)?;
    if escape(&url.path, Part::Path) != rest {
        url.raw_path = rest.to_vec();
    }
    Ok(url)
}

/// The scheme, which may be empty, and what follows its colon.
fn split_scheme(text: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".into()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok((b"", text))
}

/// Who logs in, and where.
fn read_authority(scheme: &[u8], authority: &[u8]) -> Result<(Option<User>, Vec<u8>), Fault> {
    let Some(at) = authority.iter().rposition(|byte| *byte == b'@') else {
        return Ok((None, read_host(scheme, authority)?));
    };
    let host = read_host(scheme, &authority[at + 1..])?;
    let user = &authority[..at];
    if !user.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte)) {
        return Err("net/url: invalid userinfo".into());
    }
    let (name, password) = cut(user, b':');
    let name = unescape(name, Part::User)?;
    let password = if user.contains(&b':') { Some(unescape(password, Part::User)?) } else { None };
    Ok((Some(User { name, password }), host))
}

fn read_host(scheme: &[u8], host: &[u8]) -> Result<Vec<u8>, Fault> {
    match host.iter().rposition(|byte| *byte == b'[') {
        Some(0) => return read_address(host),
        Some(_) => return Err("invalid IP-literal".into()),
        None => {}
    }
    // Several colons are for the other schemes only.
    let strict = matches!(scheme, b"http" | b"https");
    let mut colons = host.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at);
    let port = if strict { colons.next() } else { colons.next_back() };
    let port = port.map_or(&b""[..], |at| &host[at..]);
    if !is_port(port) {
        return Err(Fault::about("invalid port", port, "after host"));
    }
    unescape(host, Part::Host)
}

/// An IPv6 address in brackets, perhaps with a zone and a port.
fn read_address(host: &[u8]) -> Result<Vec<u8>, Fault> {
    let end = host.iter().rposition(|byte| *byte == b']').ok_or("missing ']' in host")?;
    let (address, port) = (&host[1..end], &host[end + 1..]);
    if !is_port(port) {
        return Err(Fault::about("invalid port", port, "after host"));
    }
    let zone = address.windows(3).position(|window| window == b"%25").unwrap_or(address.len());
    let mut name = unescape(&address[..zone], Part::Host)?;
    name.extend(unescape(&address[zone..], Part::Zone)?);
    let text = String::from_utf8_lossy(&name);
    let (address, zone) = text.split_once('%').map_or((&*text, None), |(address, zone)| (address, Some(zone)));
    let why = match address.parse::<Ipv6Addr>() {
        Ok(_) if zone != Some("") => return Ok([b"[", &name[..], b"]", port].concat()),
        Ok(_) => "zone must be a non-empty string",
        Err(_) if text.parse::<IpAddr>().is_ok() => return Err("invalid IP-literal".into()),
        // Go says more about addresses that are nearly right.
        Err(_) => "unable to parse IP",
    };
    Err(Fault { what: "invalid host:", shown: Some(format!("ParseAddr({}): {why}", quoted(&name))), place: "" })
}

/// Nothing, or a colon and digits.
fn is_port(port: &[u8]) -> bool {
    port.is_empty() || port.strip_prefix(b":").is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers of Go: a text, what `url.Parse` says or makes of it, and the same for `url.ParseRequestURI`.
    #[test]
    fn urls_are_read_and_written_as_go_does() {
        type Answer = (Option<String>, Vec<String>);
        let recorded: Vec<(String, Answer, Answer)> = serde_json::from_str(include_str!("../tests/urls.json")).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let show = |found: Result<Url, UrlError>| match found {
            Err(error) => (Some(error.to_string()), Vec::new()),
            Ok(url) => {
                let user = url.user.as_ref().map(User::to_bytes).unwrap_or_default();
                let path = url.escaped_path();
                let parts: [&[u8]; 11] = [
                    &url.scheme,
                    &url.opaque,
                    &user,
                    &url.host,
                    url.host_name(),
                    url.port(),
                    &url.path,
                    &path,
                    &url.query,
                    &url.fragment,
                    &url.to_bytes(),
                ];
                (None, parts.into_iter().map(text).collect())
            }
        };
        for (asked, parsed, request) in recorded {
            assert_eq!(show(Url::parse(asked.as_bytes())), parsed, "{asked}");
            assert_eq!(show(Url::parse_request(asked.as_bytes())), request, "{asked}, as a request");
        }
    }

    #[test]
    fn queries_are_pairs() {
        let url = Url::parse(b"/?a=1+2&b&a=%41&c=%zz&d;e&&=f").unwrap();
        let pairs: Vec<_> = url.query_pairs().collect();
        let wanted = [("a", "1 2"), ("b", ""), ("a", "A"), ("", "f")];
        assert_eq!(pairs, wanted.map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())));
    }

    #[test]
    fn what_is_wrong_can_be_told_without_the_text() {
        for (text, plain) in [
            ("http://h:secret", "invalid port after host"),
            ("/%zz", "invalid URL escape"),
            ("http://a b/", "invalid character in host name"),
            ("http://[secret]/", "invalid host"),
            ("http://[1.2.3.4]/", "invalid IP-literal"),
        ] {
            assert_eq!(Url::parse(text.as_bytes()).unwrap_err().plain(), plain);
        }
    }
}
