//! Rules for names, in the words of Kubernetes.

/// What a label of the DNS is.
const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

fn is_plain(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    text.starts_with(is_plain) && text.ends_with(is_plain) && text.chars().all(|c| is_plain(c) || c == '-')
}

/// Everything that keeps a text from being a label that starts with a letter.
pub(super) fn label_faults(text: &str) -> Vec<&'static str> {
    let mut faults = Vec::new();
    if text.len() > 63 {
        faults.push("must be no more than 63 characters");
    }
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        faults.push(LABEL);
    }
    faults
}

/// Everything that keeps a text from being a name with dots.
pub(super) fn subdomain_faults(text: &str) -> Vec<&'static str> {
    let mut faults = Vec::new();
    if text.len() > 253 {
        faults.push("must be no more than 253 characters");
    }
    if !text.split('.').all(is_label) {
        faults.push(SUBDOMAIN);
    }
    faults
}
