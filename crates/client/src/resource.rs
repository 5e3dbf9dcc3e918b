//! What a kind is called on the wire.

use std::sync::Arc;

/// One kind of object in one version, with all that its URLs need.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// Version, such as `v1`.
    pub version: Arc<str>,
    /// Kind, such as `Secret`.
    pub kind: Arc<str>,
    /// Plural name in URLs, such as `secrets`.
    pub plural: Arc<str>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// A kind whose objects live in namespaces.
    pub fn namespaced(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced: true,
        }
    }

    /// A kind whose objects belong to the whole cluster.
    pub fn cluster_wide(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self { namespaced: false, ..Self::namespaced(group, version, kind, plural) }
    }

    /// `<group>/<version>`, or just the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_string() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Path of the list of all objects, or of those of one namespace; a namespace given for a cluster-wide kind is ignored.
    pub fn list_path(&self, namespace: Option<&str>) -> String {
        let mut path = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        if let Some(namespace) = namespace.filter(|namespace| self.namespaced && !namespace.is_empty()) {
            path.push_str("/namespaces/");
            push_segment(&mut path, namespace);
        }
        path.push('/');
        path.push_str(&self.plural);
        path
    }

    /// Path of one object, optionally of one of its subresources.
    pub fn object_path(&self, namespace: Option<&str>, name: &str, subresource: Option<&str>) -> String {
        let mut path = self.list_path(namespace);
        path.push('/');
        push_segment(&mut path, name);
        if let Some(subresource) = subresource {
            path.push('/');
            path.push_str(subresource);
        }
        path
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.group.is_empty() {
            write!(f, "{}.{}", self.plural, self.version)
        } else {
            write!(f, "{}.{}.{}", self.plural, self.version, self.group)
        }
    }
}

/// Appends one path segment, escaped. Names of RBAC objects may hold almost anything, even `/`.
///
/// A segment of dots would lead upwards, to another object than the one that is meant.
fn push_segment(path: &mut String, segment: &str) {
    let leads_up = matches!(segment, "." | "..");
    for byte in segment.bytes() {
        if leads_up {
            push_escaped(path, byte);
        } else if byte.is_ascii_alphanumeric() || b"-._~:@!$&'()*+,;=".contains(&byte) {
            path.push(char::from(byte));
        } else {
            push_escaped(path, byte);
        }
    }
}

/// Appends `key=value` to a query, with the value escaped.
pub(crate) fn push_query(query: &mut String, key: &str, value: &str) {
    query.push(if query.is_empty() { '?' } else { '&' });
    query.push_str(key);
    query.push('=');
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            push_escaped(query, byte);
        }
    }
}

fn push_escaped(text: &mut String, byte: u8) {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    text.push('%');
    text.push(HEX[usize::from(byte >> 4)]);
    text.push(HEX[usize::from(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_group_scope_and_namespace() {
        let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
        let roles = Resource::cluster_wide("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles");
        let rbac = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        let cases = [
            (secrets.list_path(None), "/api/v1/secrets".to_owned()),
            (secrets.list_path(Some("")), "/api/v1/secrets".to_owned()),
            (secrets.list_path(Some("a")), "/api/v1/namespaces/a/secrets".to_owned()),
            (secrets.object_path(Some("a"), "b", Some("status")), "/api/v1/namespaces/a/secrets/b/status".to_owned()),
            (roles.list_path(Some("ignored")), rbac.to_owned()),
            (secrets.object_path(Some("a"), "..", None), "/api/v1/namespaces/a/secrets/%2E%2E".to_owned()),
            (secrets.object_path(Some("."), "...", None), "/api/v1/namespaces/%2E/secrets/...".to_owned()),
            (roles.object_path(None, "system:a/b%?", None), format!("{rbac}/system:a%2Fb%25%3F")),
        ];
        for (got, wanted) in cases {
            assert_eq!(got, wanted);
        }
        assert_eq!(secrets.api_version(), "v1");
        assert_eq!(roles.api_version(), "rbac.authorization.k8s.io/v1");
        assert_eq!(roles.to_string(), "clusterroles.v1.rbac.authorization.k8s.io");
    }

    #[test]
    fn query_values_are_escaped() {
        let mut query = String::new();
        push_query(&mut query, "labelSelector", "a in (b,c),d=e");
        push_query(&mut query, "limit", "500");
        assert_eq!(query, "?labelSelector=a%20in%20%28b%2Cc%29%2Cd%3De&limit=500");
    }
}
