//! Addresses of webhooks.

use carrick_go::url::Url;
use serde_json::Value;

use super::faults::Faults;

const FORM: &str = "; desired format: https://host[/path]";

/// What is wrong with the address of a webhook.
pub(crate) fn check(address: &str, place: &str, faults: &mut Faults) {
    let url = match Url::parse(address.as_bytes()) {
        Ok(url) => url,
        Err(error) => return faults.required(place, &format!("url must be a valid URL: {error}{FORM}")),
    };
    let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes));
    if url.scheme != b"https" {
        faults.invalid(place, &text(&url.scheme), &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        faults.invalid(place, &"".into(), &format!("host must be specified{FORM}"));
    }
    if let Some(user) = &url.user {
        faults.invalid(place, &text(&user.to_bytes()), "user information is not permitted in the URL");
    }
    if !url.fragment.is_empty() {
        faults.invalid(place, &text(&url.fragment), "fragments are not permitted in the URL");
    }
    if !url.query.is_empty() {
        faults.invalid(place, &text(&url.query), "query parameters are not permitted in the URL");
    }
}
