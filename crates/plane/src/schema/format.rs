//! The string formats that Kubernetes checks. Unknown formats are ignored, as in Kubernetes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use carrick_go::duration;
use carrick_go::url::Url;
use data_encoding::BASE64;

/// Whether a text has a format; unknown formats always fit.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "byte" => !text.is_empty() && BASE64.decode(text.as_bytes()).is_ok(),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "ip" => text.parse::<IpAddr>().is_ok(),
        "cidr" => is_cidr(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "uri" => Url::parse_request(text.as_bytes()).is_ok(),
        "mac" => text.split([':', '-']).count() == 6 && text.split([':', '-']).all(is_hex_byte),
        "duration" => duration::parse_format(text).is_some(),
        _ => true,
    }
}

fn is_uuid(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| *c != '-').collect();
    plain.len() == 32 && plain.chars().all(|c| c.is_ascii_hexdigit())
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    match (address.parse::<IpAddr>(), bits.parse::<u8>()) {
        (Ok(IpAddr::V4(_)), Ok(bits)) => bits <= 32,
        (Ok(IpAddr::V6(_)), Ok(bits)) => bits <= 128,
        _ => false,
    }
}

fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty() && !host.contains('@'))
}

fn is_hostname(text: &str) -> bool {
    let label = |part: &str| {
        !part.is_empty()
            && part.len() <= 63
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= 255 && text.trim_end_matches('.').split('.').all(label)
}

fn is_hex_byte(text: &str) -> bool {
    text.len() == 2 && text.chars().all(|c| c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_uris_are_those_of_the_api_server() {
        for (format, text, fine) in [
            ("duration", "1h30m", true),
            ("duration", "-1.5s", true),
            ("duration", "3 days", true),
            ("duration", "+-5s", true),
            ("duration", "1.2.3", false),
            ("duration", "soon", false),
            ("uri", "https://example.com/a", true),
            ("uri", "/a", true),
            ("uri", "mailto:", true),
            ("uri", "a/b", false),
            ("uri", "http://a b/", false),
            ("uri", "/%zz", false),
        ] {
            assert_eq!(fits(format, text), fine, "{format} {text}");
        }
    }
}
