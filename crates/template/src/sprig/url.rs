//! URLs, taken apart and put together as Go's net/url does.

use crate::{
    functions::{Args, Function, Type},
    heap::{Heap, Outcome},
    value::{Map, Str, Value},
};

pub(super) const FUNCTIONS: &[Function] =
    &[Function::new("urlParse", &[Type::Str], url_parse), Function::new("urlJoin", &[Type::Map], url_join)];

/// The parts of a URL; texts are unescaped except for the query.
#[derive(Default)]
struct Url {
    scheme: Vec<u8>,
    opaque: Vec<u8>,
    user: Option<User>,
    host: Vec<u8>,
    path: Vec<u8>,
    query: Vec<u8>,
    fragment: Vec<u8>,
}

struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

fn url_parse(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let text = args.bytes(0)?;
    heap.scan(4 * text.len())?;
    heap.take(2 * text.len())?;
    let url = parse(text).map_err(|problem| format!("unable to parse url: {problem}"))?;
    let user = url.user.as_ref().map(User::escaped).unwrap_or_default();
    let hostname = hostname(&url.host).to_vec();
    let parts = [
        ("scheme", url.scheme),
        ("host", url.host),
        ("hostname", hostname),
        ("path", url.path),
        ("query", url.query),
        ("opaque", url.opaque),
        ("fragment", url.fragment),
        ("userinfo", user),
    ];
    heap.any_map(parts.into_iter().map(|(key, value)| (Str::from(key), Value::from(value))).collect())
}

fn url_join(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let map = args.map(0)?;
    let user = part(map, "userinfo")?;
    let url = Url {
        scheme: part(map, "scheme")?,
        opaque: part(map, "opaque")?,
        user: if user.is_empty() { None } else { parse(&[b"proto://", user.as_slice(), b"@host"].concat())?.user },
        host: part(map, "host")?,
        path: part(map, "path")?,
        query: part(map, "query")?,
        fragment: part(map, "fragment")?,
    };
    heap.str(url.to_bytes())
}

fn part(map: &Map, key: &str) -> Outcome<Vec<u8>> {
    match map.get(&Str::from(key)) {
        None => Ok(Vec::new()),
        Some(Value::Str(text)) => Ok(text.as_bytes().to_vec()),
        Some(other) => {
            Err(format!("unable to parse {key} key, must be of type string, but {} found", other.kind_name()).into())
        }
    }
}

type Parsed<T> = Result<T, String>;

fn split_once(text: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|b| *b == separator) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

fn parse(text: &[u8]) -> Parsed<Url> {
    let (rest, fragment) = split_once(text, b'#');
    if rest.iter().any(|b| *b < b' ' || *b == 0x7f) {
        return Err("invalid control character in URL".to_owned());
    }
    let mut url = Url { fragment: unescape(fragment.unwrap_or_default(), Part::Fragment)?, ..Url::default() };
    if rest == b"*" {
        url.path = rest.to_vec();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(rest)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = split_once(rest, b'?');
    url.query = query.unwrap_or_default().to_vec();
    if !rest.starts_with(b"/") {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_vec();
            return Ok(url);
        }
        if split_once(rest, b'/').0.contains(&b':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let rootless = url.scheme.is_empty() && rest.starts_with(b"///");
    if rest.starts_with(b"//") && !rootless {
        let end = rest[2..].iter().position(|b| *b == b'/').map_or(rest.len(), |at| at + 2);
        let authority = &rest[2..end];
        rest = &rest[end..];
        let host = match authority.iter().rposition(|b| *b == b'@') {
            Some(at) => {
                url.user = Some(parse_user(&authority[..at])?);
                &authority[at + 1..]
            }
            None => authority,
        };
        url.host = parse_host(&url.scheme, host)?;
    }
    url.path = unescape(rest, Part::Path)?;
    Ok(url)
}

fn split_scheme(text: &[u8]) -> Parsed<(&[u8], &[u8])> {
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok((b"", text))
}

fn parse_user(text: &[u8]) -> Parsed<User> {
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(b);
    if !text.iter().all(allowed) {
        return Err("invalid userinfo".to_owned());
    }
    let (name, password) = split_once(text, b':');
    let password = password.map(|password| unescape(password, Part::User)).transpose()?;
    Ok(User { name: unescape(name, Part::User)?, password })
}

fn parse_host(scheme: &[u8], host: &[u8]) -> Parsed<Vec<u8>> {
    if host.iter().rposition(|b| *b == b'[').is_some_and(|bracket| bracket > 0) {
        return Err("invalid IP-literal".to_owned());
    }
    let port = if host.starts_with(b"[") {
        let end = host.iter().rposition(|b| *b == b']').ok_or("missing ']' in host")?;
        check_address(&host[1..end])?;
        &host[end + 1..]
    } else {
        // Only other schemes than these two may have several colons.
        let strict = matches!(scheme, b"http" | b"https");
        let mut colons = host.iter().enumerate().filter(|(_, b)| **b == b':').map(|(at, _)| at);
        let colon = if strict { colons.next() } else { colons.next_back() };
        colon.map_or(b"".as_slice(), |colon| &host[colon..])
    };
    let valid = port.is_empty() || port.starts_with(b":") && port[1..].iter().all(u8::is_ascii_digit);
    if !valid {
        return Err("invalid port after host".to_owned());
    }
    unescape(host, Part::Host)
}

/// Brackets are for IPv6 addresses, perhaps with a zone.
fn check_address(text: &[u8]) -> Parsed<()> {
    let text = String::from_utf8_lossy(text);
    let (address, zone) = text.split_once("%25").map_or((&*text, None), |(address, zone)| (address, Some(zone)));
    match address.parse::<std::net::Ipv6Addr>() {
        Ok(_) if zone != Some("") => Ok(()),
        _ => Err("invalid host: no IPv6 address".to_owned()),
    }
}

fn hostname(host: &[u8]) -> &[u8] {
    if let Some(inner) = host.strip_prefix(b"[") {
        return inner.iter().position(|b| *b == b']').map_or(host, |end| &inner[..end]);
    }
    match host.iter().rposition(|b| *b == b':') {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    }
}

/// Where a text stands; that decides which characters are escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    Host,
    Path,
    Fragment,
}

fn unescape(text: &[u8], part: Part) -> Parsed<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let byte = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
            let Some(byte) = byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
                return Err("invalid URL escape".to_owned());
            };
            if part == Part::Host && byte < 0x80 && byte != b'%' {
                return Err("invalid URL escape in host".to_owned());
            }
            out.push(byte);
            rest = &tail[2..];
            continue;
        }
        if part == Part::Host && *first < 0x80 && should_escape(*first, Part::Host) {
            return Err("invalid character in host name".to_owned());
        }
        out.push(*first);
        rest = tail;
    }
    Ok(out)
}

fn should_escape(byte: u8, part: Part) -> bool {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => false,
        b'!' | b'\'' | b'(' | b')' | b'*' | b'[' | b']' | b'<' | b'>' | b'"' if part == Part::Host => false,
        b'!' | b'(' | b')' | b'*' if part == Part::Fragment => false,
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            Part::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Part::Host => matches!(byte, b'/' | b'?' | b'@'),
            Part::Path => byte == b'?',
            Part::Fragment => false,
        },
        _ => true,
    }
}

fn escape(text: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if should_escape(*byte, part) {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(*byte);
        }
    }
    out
}

impl User {
    fn escaped(&self) -> Vec<u8> {
        let mut out = escape(&self.name, Part::User);
        if let Some(password) = &self.password {
            out.push(b':');
            out.extend(escape(password, Part::User));
        }
        out
    }
}

impl Url {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        }
        if self.opaque.is_empty() {
            let authority = !self.host.is_empty() || self.user.is_some();
            if authority || !self.scheme.is_empty() && !self.path.is_empty() {
                out.extend_from_slice(b"//");
            }
            if let Some(user) = &self.user {
                out.extend(user.escaped());
                out.push(b'@');
            }
            out.extend(escape(&self.host, Part::Host));
            let path = if self.path == b"*" { b"*".to_vec() } else { escape(&self.path, Part::Path) };
            if !path.is_empty() && !path.starts_with(b"/") && !self.host.is_empty() {
                out.push(b'/');
            }
            if out.is_empty() && split_once(&path, b'/').0.contains(&b':') {
                out.extend_from_slice(b"./");
            }
            out.extend(path);
        } else {
            out.extend_from_slice(&self.opaque);
        }
        if !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            out.extend(escape(&self.fragment, Part::Fragment));
        }
        out
    }
}
