//! The string formats that Kubernetes checks. Unknown formats are ignored, as in Kubernetes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use carrick_go::url::Url;
use carrick_go::{duration, names};
use data_encoding::BASE64;

/// Whether a text has a format; unknown formats always fit.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "byte" => !text.is_empty() && BASE64.decode(text.as_bytes()).is_ok(),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(text, format.as_bytes().get(4).copied()),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "uri" => Url::parse_request(text.as_bytes()).is_ok(),
        "mac" => text.split([':', '-']).count() == 6 && text.split([':', '-']).all(is_hex_byte),
        "duration" => duration::parse_format(text).is_some(),
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && is_hex(digits)
        }
        "k8s-short-name" => names::V1_34.dns1123_label(text).is_empty(),
        "k8s-long-name" => names::V1_34.dns1123_subdomain(text).is_empty(),
        _ => true,
    }
}

/// Five groups of digits with dashes between them or not; some formats fix the version.
fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut digits = String::new();
    let mut rest = text;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, others)) = rest.split_at_checked(length) else { return false };
        digits.push_str(group);
        rest = others;
    }
    let digits = digits.to_ascii_lowercase();
    let at = |place: usize| digits.as_bytes().get(place).copied().unwrap_or_default();
    let variant = matches!(version, Some(b'4' | b'5')).then(|| matches!(at(16), b'8' | b'9' | b'a' | b'b'));
    rest.is_empty() && is_hex(&digits) && version.is_none_or(|version| at(12) == version) && variant.unwrap_or(true)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
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
    text.len() == 2 && is_hex(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_those_of_the_api_server() {
        for (format, text, fine) in [
            ("duration", "1h30m", true),
            ("duration", "-1.5s", true),
            ("duration", "3 days", true),
            ("duration", "+-5s", true),
            ("duration", "1.2.3", false),
            ("duration", "soon", false),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", true),
            ("uuid", "123E4567e89b12d3a456426614174000", true),
            ("uuid", "1-23e4567e89b12d3a456426614174000", false),
            ("uuid4", "123e4567-e89b-12d3-a456-426614174000", false),
            ("uuid4", "123e4567-e89b-42d3-a456-426614174000", true),
            ("uuid4", "123e4567-e89b-42d3-c456-426614174000", false),
            ("uuid3", "123e4567-e89b-32d3-c456-426614174000", true),
            ("bsonobjectid", "507f1f77bcf86cd799439011", true),
            ("bsonobjectid", "507f1f77", false),
            ("hexcolor", "#fff", true),
            ("hexcolor", "#ffff", false),
            ("k8s-short-name", "a-b", true),
            ("k8s-short-name", "a.b", false),
            ("k8s-long-name", "a.b", true),
            ("k8s-long-name", "A.b", false),
            ("ip", "not an address", true),
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
