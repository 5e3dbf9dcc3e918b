//! Addresses of webhooks.

use super::Faults;

const FORM: &str = "; desired format: https://host[/path]";

/// What is wrong with the address of a webhook.
pub(super) fn check(address: &str, place: &str, faults: &mut Faults) {
    let (rest, fragment) = address.split_once('#').unwrap_or((address, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = match rest.split_once(':') {
        Some(("", _)) => {
            let why = format!("url must be a valid URL: parse {address:?}: missing protocol scheme{FORM}");
            return faults.required(place, &why);
        }
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        Some((first, _)) if !first.contains('/') => {
            let why = format!(
                "url must be a valid URL: parse {address:?}: first path segment in URL cannot contain colon{FORM}"
            );
            return faults.required(place, &why);
        }
        _ => ("", rest),
    };
    let authority = rest.strip_prefix("//").map(|rest| rest.split('/').next().unwrap_or_default());
    let (user, host) = match authority {
        None => (None, ""),
        Some(authority) => match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        },
    };
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "https" {
        faults.invalid(place, &scheme.into(), &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        faults.invalid(place, &"".into(), &format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        faults.invalid(place, &user.into(), "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        faults.invalid(place, &fragment.into(), "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        faults.invalid(place, &query.into(), "query parameters are not permitted in the URL");
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}
