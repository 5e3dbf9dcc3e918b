//! Formats that have a name, such as that of a DNS label.

use carrick_go::names;
use carrick_go::url::Url;

use super::time;

/// A format and what it says about a text.
#[derive(Debug)]
pub(crate) struct Format {
    pub name: &'static str,
    /// What is wrong with a text.
    pub check: fn(&str) -> Vec<String>,
}

/// All formats.
pub(crate) static FORMATS: [Format; 13] = [
    Format { name: "dns1123Label", check: |text| names::V1_37.dns1123_label(text) },
    Format { name: "dns1123Subdomain", check: |text| names::V1_37.dns1123_subdomain(text) },
    Format { name: "dns1035Label", check: |text| names::V1_37.dns1035_label(text) },
    Format { name: "qualifiedName", check: |text| names::V1_37.label_key(text) },
    Format { name: "dns1123LabelPrefix", check: |text| names::V1_37.dns1123_label(&without_dash(text)) },
    Format { name: "dns1123SubdomainPrefix", check: |text| names::V1_37.dns1123_subdomain(&without_dash(text)) },
    Format { name: "dns1035LabelPrefix", check: |text| names::V1_37.dns1035_label(&without_dash(text)) },
    Format { name: "labelValue", check: |text| names::V1_37.label_value(text) },
    Format { name: "uri", check: uri },
    Format { name: "uuid", check: |text| unless(is_uuid(text), "does not match the UUID format") },
    Format { name: "byte", check: |text| unless(is_base64(text), "invalid base64") },
    Format { name: "date", check: |text| unless(is_date(text), "invalid date") },
    Format { name: "datetime", check: |text| unless(is_datetime(text), "invalid datetime") },
];

fn uri(text: &str) -> Vec<String> {
    Url::parse_request(text.as_bytes()).err().into_iter().map(|error| error.to_string()).collect()
}

fn unless(fine: bool, fault: &str) -> Vec<String> {
    if fine { Vec::new() } else { vec![fault.to_owned()] }
}

/// A prefix may end with a dash, since more follows it.
fn without_dash(text: &str) -> String {
    let Some(before) = text.strip_suffix('-').filter(|before| !before.is_empty()) else { return text.to_owned() };
    let mut kept: String = before.to_owned();
    kept.pop();
    kept + "a"
}

fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.split_at_checked(length) {
            Some((digits, after)) if digits.bytes().all(|c| c.is_ascii_hexdigit()) => rest = after,
            _ => return false,
        }
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    !text.is_empty() && data_encoding::BASE64.decode(text.as_bytes()).is_ok()
}

/// `2024-01-31`
fn is_date(text: &str) -> bool {
    time::parse_timestamp(&format!("{text}T00:00:00Z")).is_some()
}

fn is_datetime(text: &str) -> bool {
    time::parse_timestamp(&text.to_ascii_uppercase()).is_some()
}
