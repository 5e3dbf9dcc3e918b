//! Where browsers may be sent after a login or an order: to a program on the same machine, or back to this server. Nowhere else, because
//! credentials travel along.

use carrick_go::url::Url;

/// The longest URL that is taken.
const LONGEST: usize = 2048;

/// Whether a URL leads to a program on the machine of the browser.
pub(super) fn is_loopback(url: &str) -> bool {
    let Some(url) = parse(url) else { return false };
    let host = url.host_name();
    url.scheme == b"http" && (host == b"127.0.0.1" || host == b"::1" || host == b"localhost") && !url.port().is_empty()
}

/// Whether a URL is one of this server, whose origins are given.
pub(super) fn is_own(url: &str, origins: &[&str]) -> bool {
    let Some(parsed) = parse(url) else { return false };
    if parsed.scheme.is_empty() {
        return parsed.host.is_empty() && url.starts_with('/') && !url.starts_with("//");
    }
    origin(&parsed).is_some_and(|origin| origins.iter().any(|own| own.eq_ignore_ascii_case(&origin)))
}

/// Scheme and host of a URL.
pub(super) fn origin_of(url: &str) -> Option<String> {
    origin(&parse(url)?)
}

fn origin(url: &Url) -> Option<String> {
    let (scheme, host) = (std::str::from_utf8(&url.scheme).ok()?, std::str::from_utf8(&url.host).ok()?);
    let is_web = matches!(scheme, "http" | "https") && !host.is_empty();
    is_web.then(|| format!("{scheme}://{host}"))
}

/// Browsers and servers read some URLs differently: those with a user, a fragment, backslashes or anything else that is unusual are refused.
fn parse(text: &str) -> Option<Url> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&byte);
    if text.is_empty() || text.len() > LONGEST || !text.bytes().all(plain) {
        return None;
    }
    let url = Url::parse(text.as_bytes()).ok()?;
    (url.user.is_none() && url.fragment.is_empty() && url.opaque.is_empty()).then_some(url)
}

/// A URL with these values in its query, in place of others of the same name.
pub(super) fn with(url: &str, values: &[(&str, &str)]) -> String {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let mut new = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if !values.iter().any(|(other, _)| *other == name) {
            new.append_pair(&name, &value);
        }
    }
    new.extend_pairs(values);
    let query = new.finish();
    if query.is_empty() { place.to_owned() } else { format!("{place}?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_on_the_same_machine_get_tokens_and_nobody_else() {
        for good in [
            "http://127.0.0.1:1234/callback",
            "http://127.0.0.1:1234/callback?nonce=a%20b",
            "http://localhost:1/",
            "http://[::1]:8080/callback",
        ] {
            assert!(is_loopback(good), "{good}");
        }
        for bad in [
            "",
            "/callback",
            "http://127.0.0.1/callback",
            "https://127.0.0.1:1/callback",
            "http://127.0.0.1.evil.io:1/",
            "http://evil.io:1/?127.0.0.1",
            "http://127.0.0.1:1@evil.io/",
            "http://127.0.0.1:1\\@evil.io:2/",
            "http://me@127.0.0.1:1/",
            "http://127.0.0.1:1/#a",
            "http://2130706433:1/",
            "//127.0.0.1:1/",
            "javascript:alert(1)",
            "http://127.0.0.1:1/\r\nset-cookie:a=b",
        ] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }

    #[test]
    fn browsers_return_to_this_server_only() {
        let origins = ["https://bind.example.io", "http://127.0.0.1:8080"];
        for good in
            ["/", "/resources?a=b", "https://bind.example.io/x", "https://BIND.example.io", "http://127.0.0.1:8080/"]
        {
            assert!(is_own(good, &origins), "{good}");
        }
        for bad in [
            "//evil.io/",
            "/\\evil.io",
            "\\/evil.io",
            "https://evil.io/",
            "http://bind.example.io/",
            "https://bind.example.io:444/",
            "https://bind.example.io@evil.io/",
            "https:/evil.io",
            "resources",
            "data:text/html,x",
        ] {
            assert!(!is_own(bad, &origins), "{bad}");
        }
    }

    #[test]
    fn values_replace_those_of_the_same_name() {
        assert_eq!(with("http://h:1/c?nonce=n&a=1", &[("a", "2 &")]), "http://h:1/c?nonce=n&a=2+%26");
        assert_eq!(with("/x", &[]), "/x");
    }
}
