//! Names and labels of Kubernetes objects, and what its API servers say about those they refuse.
//!
//! Each function gives everything that is wrong with a text, and nothing for a good one. The words changed between releases.
//!
//! ```
//! use carrick_go::names;
//!
//! assert!(names::V1_34.label_key("example.com/team").is_empty());
//! assert_eq!(names::V1_34.label_key("/team"), ["prefix part must be non-empty"]);
//! ```

/// The words of Kubernetes 1.34.
pub const V1_34: Words = Words { unit: "characters", key: "a qualified name" };
/// The words of Kubernetes 1.37.
pub const V1_37: Words = Words { unit: "bytes", key: "a valid label key" };

/// How a release of Kubernetes puts it: [`V1_34`] or [`V1_37`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// What lengths are counted in.
    unit: &'static str,
    /// What the key of a label is called.
    key: &'static str,
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

impl Words {
    fn too_long(self, text: &str, most: usize) -> Vec<String> {
        if text.len() > most { vec![format!("must be no more than {most} {}", self.unit)] } else { Vec::new() }
    }

    /// A label of the DNS, such as the name of a namespace.
    pub fn dns1123_label(self, text: &str) -> Vec<String> {
        let mut faults = self.too_long(text, 63);
        if is_label(text) {
            return faults;
        }
        faults.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an \
                 alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
            )
        });
        faults
    }

    /// Labels with dots between them, such as the names of most objects.
    pub fn dns1123_subdomain(self, text: &str) -> Vec<String> {
        let mut faults = self.too_long(text, 253);
        if !is_subdomain(text) {
            faults.push(format!(
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end \
                 with an alphanumeric character (e.g. 'example.com', regex used for validation is '{LABEL}(\\.{LABEL})*')"
            ));
        }
        faults
    }

    /// A label that starts with a letter, such as the name of a service.
    pub fn dns1035_label(self, text: &str) -> Vec<String> {
        let mut faults = self.too_long(text, 63);
        if !is_label(text) || text.starts_with(|c: char| c.is_ascii_digit()) {
            faults.push(
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end \
                 with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                    .to_owned(),
            );
        }
        faults
    }

    /// The key of a label or an annotation, the name of a finalizer: a name, perhaps with the name of a domain before it.
    pub fn label_key(self, text: &str) -> Vec<String> {
        let rule = format!(
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
             'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{NAME}')"
        );
        let mut faults = Vec::new();
        let parts: Vec<&str> = text.split('/').collect();
        let name = match parts[..] {
            [name] => name,
            ["", name] => {
                faults.push("prefix part must be non-empty".to_owned());
                name
            }
            [prefix, name] => {
                faults.extend(self.dns1123_subdomain(prefix).into_iter().map(|fault| format!("prefix part {fault}")));
                name
            }
            _ => {
                let example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
                return vec![format!("{} {rule} {example}", self.key)];
            }
        };
        if name.is_empty() {
            faults.push("name part must be non-empty".to_owned());
        }
        faults.extend(self.too_long(name, 63).into_iter().map(|fault| format!("name part {fault}")));
        if !is_name(name) {
            faults.push(format!("name part {rule}"));
        }
        faults
    }

    /// The value of a label, which may be empty.
    pub fn label_value(self, text: &str) -> Vec<String> {
        let mut faults = self.too_long(text, 63);
        if !text.is_empty() && !is_name(text) {
            faults.push(format!(
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                 an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({NAME})?')"
            ));
        }
        faults
    }
}

/// Lower-case letters, digits and inner dashes, of any length.
fn is_label(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(plain) && text.ends_with(plain) && text.chars().all(|c| plain(c) || c == '-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// Letters, digits and `-_.`, with a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(plain) && text.ends_with(plain) && text.chars().all(|c| plain(c) || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_have_no_faults() {
        let long = "a".repeat(63);
        for good in ["a", "my-agent", "a1", "a--b", &long] {
            assert!(V1_34.dns1123_label(good).is_empty(), "{good}");
            assert!(V1_34.dns1035_label(good).is_empty(), "{good}");
            assert!(V1_34.dns1123_subdomain(&format!("{good}.{good}")).is_empty(), "{good}");
            assert!(V1_34.label_key(&format!("{good}.io/{good}")).is_empty(), "{good}");
            assert!(V1_34.label_value(good).is_empty(), "{good}");
        }
        assert!(V1_34.dns1123_label("1a").is_empty());
        assert!(V1_34.label_value("").is_empty());
        assert!(V1_34.label_key("A_b.c").is_empty());
    }

    #[test]
    fn every_fault_is_told_in_the_words_of_the_release() {
        for bad in ["1a", "-a", "a-", "a.b", "A", "a_b", "", "ä"] {
            assert_eq!(V1_34.dns1035_label(bad).len(), 1, "{bad}");
        }
        assert_eq!(V1_34.dns1035_label(&"A".repeat(64)).len(), 2);
        assert_eq!(V1_34.dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(V1_34.label_value(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(V1_37.label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        let [fault] = &V1_34.label_key("a/b/c")[..] else { panic!("one fault") };
        assert!(fault.starts_with("a qualified name must consist of "), "{fault}");
        let faults = V1_34.label_key("A/");
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[0].starts_with("prefix part a lowercase RFC 1123 subdomain"), "{faults:?}");
        assert_eq!(faults[1], "name part must be non-empty");
    }
}
