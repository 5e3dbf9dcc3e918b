//! What a URL asks for.

use std::borrow::Cow;

use carrick_go::labels::Selector;

use crate::faults::RequestInfo;
use crate::request::Attributes;

/// The query of a URL, decoded.
#[derive(Debug, Clone, Default)]
pub(super) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let pairs = text
            .split('&')
            .filter(|part| !part.is_empty())
            .map(|part| {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                (unescape(key, true), unescape(value, true))
            })
            .collect();
        Self { pairs }
    }

    /// A parameter; empty ones count as absent.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// Whether a parameter is there, with or without a value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|(name, _)| name == key)
    }

    /// All values of a parameter.
    pub(super) fn all(&self, key: &str) -> Vec<&str> {
        self.pairs.iter().filter(|(name, _)| name == key).map(|(_, value)| value.as_str()).collect()
    }

    /// A flag: to Kubernetes, everything but `false` and `0` means yes.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|text| !(text == "0" || text.eq_ignore_ascii_case("false")))
    }
}

/// Decodes percent-encoding; invalid escapes stay as they are.
pub(super) fn unescape(text: &str, plus_is_space: bool) -> String {
    decoded(text, plus_is_space).into_owned()
}

/// The same; most texts have no escapes and are not copied.
fn decoded(text: &str, plus_is_space: bool) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte == b'%' || (plus_is_space && byte == b'+')) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut result = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = bytes.get(index + 1..index + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match (bytes[index], hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                result.push(byte);
                index += 3;
                continue;
            }
            (b'+', _) if plus_is_space => result.push(b' '),
            (byte, _) => result.push(byte),
        }
        index += 1;
    }
    Cow::Owned(String::from_utf8_lossy(&result).into_owned())
}

/// A path below an API root that names a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) subresource: String,
    /// The deprecated `/watch/` prefix was used.
    pub(super) watch: bool,
}

/// A path below an API root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Path {
    /// `/api`.
    Versions,
    /// `/apis`.
    Groups,
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1` or `/apis/<group>/<version>`.
    Resources { group: String, version: String },
    /// Anything about a resource.
    Resource(Target),
    /// Everything else.
    Other,
}

/// Reads a path such as `/apis/example.io/v1/namespaces/default/widgets/w1/status`.
pub(super) fn path(text: &str) -> Path {
    let parts: Vec<Cow<'_, str>> =
        text.split('/').filter(|part| !part.is_empty()).map(|part| decoded(part, false)).collect();
    let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
    match parts.as_slice() {
        ["api"] => Path::Versions,
        ["apis"] => Path::Groups,
        ["apis", group] => Path::Group((*group).to_owned()),
        ["api", version] => Path::Resources { group: String::new(), version: (*version).to_owned() },
        ["apis", group, version] => Path::Resources { group: (*group).to_owned(), version: (*version).to_owned() },
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Path::Other,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Path {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        other => (false, other),
    };
    let mut target = Target { group: group.to_owned(), version: version.to_owned(), watch, ..Target::default() };
    let rest = match rest {
        ["namespaces", namespace] if group.is_empty() => {
            (target.namespace, target.plural, target.name) =
                ((*namespace).to_owned(), "namespaces".to_owned(), (*namespace).to_owned());
            return Path::Resource(target);
        }
        ["namespaces", namespace, subresource @ ("status" | "finalize")] if group.is_empty() => {
            (target.namespace, target.plural, target.name) =
                ((*namespace).to_owned(), "namespaces".to_owned(), (*namespace).to_owned());
            (*subresource).clone_into(&mut target.subresource);
            return Path::Resource(target);
        }
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            (*namespace).clone_into(&mut target.namespace);
            rest
        }
        other => other,
    };
    match rest {
        [plural] => (*plural).clone_into(&mut target.plural),
        [plural, name] => {
            (*plural).clone_into(&mut target.plural);
            (*name).clone_into(&mut target.name);
        }
        [plural, name, subresource] => {
            (*plural).clone_into(&mut target.plural);
            (*name).clone_into(&mut target.name);
            (*subresource).clone_into(&mut target.subresource);
        }
        _ => return Path::Other,
    }
    Path::Resource(target)
}

/// The attributes of a resource request for authorization.
pub(super) fn attributes(method: &http::Method, target: &Target, query: &Query) -> Attributes {
    let watching = target.watch || query.flag("watch");
    let collection = target.name.is_empty();
    let verb = match (method.as_str(), collection) {
        ("GET" | "HEAD", false) if target.watch => "watch",
        ("GET" | "HEAD", false) => "get",
        ("GET" | "HEAD", true) if watching => "watch",
        ("GET" | "HEAD", true) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", false) => "delete",
        ("DELETE", true) => "deletecollection",
        _ => "",
    };
    // A field selector for a name counts as a request for that name, so that RBAC rules with resourceNames match.
    // Where the other selector makes no sense, this one is not checked.
    let readable = query.get("labelSelector").is_none_or(|labels| Selector::parse(labels).is_ok());
    let selected = query.get("fieldSelector").filter(|_| readable).and_then(|fields| {
        fields.split(',').find_map(|part| part.strip_prefix("metadata.name==").or(part.strip_prefix("metadata.name=")))
    });
    let name = match selected {
        Some(name) if collection && matches!(verb, "list" | "watch" | "deletecollection") => name.to_owned(),
        _ => target.name.clone(),
    };
    Attributes {
        verb: verb.to_owned(),
        group: target.group.clone(),
        version: target.version.clone(),
        resource: target.plural.clone(),
        subresource: target.subresource.clone(),
        namespace: target.namespace.clone(),
        name,
        path: String::new(),
    }
}

/// The description of a request for the fault layer; it depends only on URL and headers.
pub(super) fn ask(endpoint: usize, parts: &http::request::Parts, query: &Query) -> RequestInfo {
    let whole = parts.uri.path();
    let (cluster, rest) = match whole.find("/clusters/") {
        Some(at) if at == 0 || whole.starts_with("/services/") => {
            let rest = &whole[at + "/clusters/".len()..];
            rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash))
        }
        _ => ("", whole),
    };
    let agent = parts.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
    let mut ask = RequestInfo {
        endpoint,
        method: parts.method.to_string(),
        path: whole.to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        verb: parts.method.as_str().to_lowercase(),
        cluster: unescape(cluster, false),
        is_virtual: whole.starts_with("/services/"),
        agent: agent.unwrap_or_default().to_owned(),
        ..RequestInfo::default()
    };
    if let Path::Resource(target) = path(rest) {
        let found = attributes(&parts.method, &target, query);
        (ask.verb, ask.group, ask.resource) = (found.verb, found.group, found.resource);
        (ask.subresource, ask.namespace, ask.name) = (found.subresource, found.namespace, found.name);
    }
    ask
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(group: &str, plural: &str, namespace: &str, name: &str, subresource: &str) -> Path {
        Path::Resource(Target {
            group: group.into(),
            version: "v1".into(),
            plural: plural.into(),
            namespace: namespace.into(),
            name: name.into(),
            subresource: subresource.into(),
            watch: false,
        })
    }

    #[test]
    fn paths_are_understood() {
        for (text, expected) in [
            ("/api", Path::Versions),
            ("/apis/", Path::Groups),
            ("/apis/x.io", Path::Group("x.io".into())),
            ("/api/v1", Path::Resources { group: String::new(), version: "v1".into() }),
            ("/api/v1/namespaces", target("", "namespaces", "", "", "")),
            ("/api/v1/namespaces/a", target("", "namespaces", "a", "a", "")),
            ("/api/v1/namespaces/a/finalize", target("", "namespaces", "a", "a", "finalize")),
            ("/api/v1/namespaces/a/secrets", target("", "secrets", "a", "", "")),
            ("/api/v1/namespaces/a/secrets/b", target("", "secrets", "a", "b", "")),
            ("/apis/x.io/v1/namespaces/a/ws/b/status", target("x.io", "ws", "a", "b", "status")),
            ("/apis/x.io/v1/ws/system%3Ab", target("x.io", "ws", "", "system:b", "")),
            ("/healthz", Path::Other),
            ("/apis/x.io/v1/a/b/c/d/e", Path::Other),
        ] {
            assert_eq!(path(text), expected, "{text}");
        }
    }

    #[test]
    fn a_name_selector_counts_as_the_name() {
        let Path::Resource(target) = path("/apis/x.io/v1/ws") else { panic!() };
        let query = Query::parse("watch=1&fieldSelector=metadata.name%3Db");
        let attributes = attributes(&http::Method::GET, &target, &query);
        assert_eq!((attributes.verb.as_str(), attributes.name.as_str()), ("watch", "b"));
    }

    #[test]
    fn the_fault_layer_sees_through_virtual_workspaces() {
        for (url, cluster, verb, name) in [
            ("/api/v1/namespaces/a/secrets/b", "", "get", "b"),
            ("/clusters/root:x/api/v1/namespaces/a/secrets?watch=1", "root:x", "watch", ""),
            ("/services/apiexport/root/e/clusters/%2A/api/v1/secrets", "*", "list", ""),
        ] {
            let (parts, ()) = http::Request::builder().uri(url).body(()).unwrap().into_parts();
            let ask = ask(0, &parts, &Query::parse(parts.uri.query().unwrap_or_default()));
            assert_eq!((ask.cluster.as_str(), ask.verb.as_str(), ask.name.as_str()), (cluster, verb, name), "{url}");
            assert_eq!((ask.resource.as_str(), ask.is_virtual), ("secrets", url.starts_with("/services")));
        }
    }
}
