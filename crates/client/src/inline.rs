//! Kubeconfigs that somebody else has written: from a Secret, from a provider. They may say where a server is and who we are there, nothing more.
//!
//! An ordinary kubeconfig can run programs, name files of this machine and send what they hold (the own ServiceAccount token, for one) to any
//! server. Here only the current context counts, and of that only what is on a short list; whatever else it says is refused, not skipped,
//! because somebody means something by it.

use std::collections::BTreeMap;

use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};

use crate::connect;

/// A Secret holds no more than this.
const LARGEST: usize = 1 << 20;

/// The name of everything in what is made of such a kubeconfig.
const NAME: &str = "default";

/// Why a kubeconfig from elsewhere is not used. No message holds a word of its content but names of fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RefusedKubeconfig {
    /// It is larger than a Secret can be.
    #[error("the kubeconfig has more than 1 MiB")]
    TooLarge,
    /// It is not a kubeconfig. The reader's own words are not repeated, because they quote what they complain about.
    #[error("the kubeconfig cannot be read: it is not a kubeconfig in YAML or JSON")]
    Unreadable,
    /// It has no current context.
    #[error("the kubeconfig has no current-context; set one")]
    NoCurrentContext,
    /// The current context, or what it refers to, is not there.
    #[error("the {0} of the kubeconfig's current context is not in it")]
    Missing(&'static str),
    /// There are two of the same name, and programs differ in which one they take.
    #[error("the kubeconfig has two {0}s of the same name; keep one")]
    Ambiguous(&'static str),
    /// The server is not reached over TLS.
    #[error("the kubeconfig's server does not begin with https://")]
    NotHttps,
    /// The server's URL cannot be used.
    #[error("the kubeconfig's server is not a URL that can be used: {0}")]
    ServerUrl(String),
    /// The server would not be checked.
    #[error("the kubeconfig sets insecure-skip-tls-verify; give it certificate-authority-data instead")]
    Insecure,
    /// It names a file of this machine.
    #[error("the kubeconfig names a file in {field}; put the content into {instead}")]
    File {
        /// The field.
        field: &'static str,
        /// The field for the content itself.
        instead: &'static str,
    },
    /// It names a program to run.
    #[error("the kubeconfig names a program to run in exec; give it a token or client-certificate-data")]
    Exec,
    /// It names a plugin.
    #[error("the kubeconfig names an auth-provider; give it a token or client-certificate-data")]
    AuthProvider,
    /// It names a proxy, which could be one that only this machine reaches.
    #[error("the kubeconfig names a proxy-url; set HTTPS_PROXY for this program if it needs a proxy")]
    Proxy,
    /// It logs in with a password.
    #[error("the kubeconfig has a username and password; give it a token or client-certificate-data")]
    Password,
    /// It acts as somebody else.
    #[error("the kubeconfig acts as another user; give it that user's token or client-certificate-data")]
    Impersonation,
    /// It has a field that nobody here knows.
    #[error("the kubeconfig has a field {0:?}, which is not allowed here")]
    UnknownField(String),
    /// It has neither a token nor a certificate with its key.
    #[error("the kubeconfig has no credentials: neither token nor client-certificate-data with client-key-data")]
    NoCredentials,
}

/// A kubeconfig that was written elsewhere and is safe to use here: https, with credentials and certificate authority in it.
///
/// Without a certificate authority the system's are trusted, as for any kubeconfig. [`Server::from_inline`](crate::Server::from_inline) opens it.
///
/// ```
/// use carrick_client::{InlineKubeconfig, RefusedKubeconfig};
///
/// let text = |user: &str| format!(
///     "{{current-context: a, contexts: [{{name: a, context: {{cluster: b, user: c, namespace: n}}}}],
///       clusters: [{{name: b, cluster: {{server: 'https://example.io'}}}}], users: [{{name: c, user: {{{user}}}}}]}}"
/// );
/// let good = InlineKubeconfig::parse(&text("token: t"))?;
/// assert_eq!((good.server(), good.namespace()), ("https://example.io", Some("n")));
/// let bad = InlineKubeconfig::parse(&text("tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"));
/// assert_eq!(bad.unwrap_err(), RefusedKubeconfig::File { field: "tokenFile", instead: "token" });
/// # Ok::<(), RefusedKubeconfig>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct InlineKubeconfig {
    text: String,
    server: String,
    namespace: Option<String>,
}

impl InlineKubeconfig {
    /// Reads a kubeconfig and refuses everything but what is safe.
    pub fn parse(text: &str) -> Result<Self, RefusedKubeconfig> {
        if text.len() > LARGEST {
            return Err(RefusedKubeconfig::TooLarge);
        }
        let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| RefusedKubeconfig::Unreadable)?;
        let current = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
        let current = current.ok_or(RefusedKubeconfig::NoCurrentContext)?;
        let contexts = kubeconfig.contexts.iter().filter(|named| named.name == current);
        let context = only("context", contexts.map(|named| named.context.as_ref()))?;
        let clusters = kubeconfig.clusters.iter().filter(|named| named.name == context.cluster);
        let cluster = only("cluster", clusters.map(|named| named.cluster.as_ref()))?;
        let users = kubeconfig.auth_infos.iter().filter(|named| Some(&named.name) == context.user.as_ref());
        let user = only("user", users.map(|named| named.auth_info.as_ref()))?;

        let (server, cluster) = safe_cluster(cluster)?;
        let user = safe_user(user)?;
        let namespace = context.namespace.clone().filter(|namespace| !namespace.is_empty());
        let context = Context {
            cluster: NAME.to_owned(),
            user: Some(NAME.to_owned()),
            namespace: namespace.clone(),
            ..Context::default()
        };
        let safe = Kubeconfig {
            api_version: Some("v1".to_owned()),
            kind: Some("Config".to_owned()),
            clusters: vec![NamedCluster { name: NAME.to_owned(), cluster: Some(cluster), ..NamedCluster::default() }],
            auth_infos: vec![NamedAuthInfo {
                name: NAME.to_owned(),
                auth_info: Some(user),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext { name: NAME.to_owned(), context: Some(context), ..NamedContext::default() }],
            current_context: Some(NAME.to_owned()),
            ..Kubeconfig::default()
        };
        let text = serde_json::to_string(&safe).map_err(|_| RefusedKubeconfig::Unreadable)?;
        Ok(Self { text, server, namespace })
    }

    /// The URL of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The namespace of the context.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// A kubeconfig with nothing but the current context of the one that was read. It holds the credentials.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same kubeconfig at one of the addresses of its server, so that nobody can lead to another one by changing what a name means. The
    /// certificate is still checked against the name.
    pub fn at(&self, address: std::net::IpAddr) -> Result<Self, RefusedKubeconfig> {
        let mut kubeconfig = Kubeconfig::from_yaml(&self.text).map_err(|_| RefusedKubeconfig::Unreadable)?;
        let cluster = kubeconfig.clusters.first_mut().and_then(|named| named.cluster.as_mut());
        let cluster = cluster.ok_or(RefusedKubeconfig::Missing("cluster"))?;
        let url: Result<http::Uri, _> = cluster.server.clone().unwrap_or_default().parse();
        let url = url.map_err(|error| RefusedKubeconfig::ServerUrl(error.to_string()))?;
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_u16().unwrap_or(443);
        let there = std::net::SocketAddr::from((address, port));
        cluster.server = Some(format!("https://{there}{}", url.path()));
        cluster.tls_server_name.get_or_insert(host);
        let text = serde_json::to_string(&kubeconfig).map_err(|_| RefusedKubeconfig::Unreadable)?;
        Ok(Self { text, ..self.clone() })
    }

    /// Host and port of the server.
    pub fn host_and_port(&self) -> Option<(String, u16)> {
        let url: http::Uri = self.server.parse().ok()?;
        Some((url.host()?.trim_matches(['[', ']']).to_owned(), url.port_u16().unwrap_or(443)))
    }

    /// The text alone, for those who have no use for anything else.
    pub fn into_text(self) -> String {
        self.text
    }
}

impl std::fmt::Debug for InlineKubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { server, namespace, text: _ } = self;
        f.debug_struct("InlineKubeconfig").field("server", server).field("namespace", namespace).finish_non_exhaustive()
    }
}

/// The one that is there.
fn only<'a, T>(what: &'static str, mut found: impl Iterator<Item = Option<&'a T>>) -> Result<&'a T, RefusedKubeconfig> {
    let first = found.next().flatten().ok_or(RefusedKubeconfig::Missing(what))?;
    if found.next().is_some() { Err(RefusedKubeconfig::Ambiguous(what)) } else { Ok(first) }
}

fn is_set(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

fn known<T>(other: &BTreeMap<String, T>) -> Result<(), RefusedKubeconfig> {
    match other.keys().next() {
        Some(field) => Err(RefusedKubeconfig::UnknownField(field.clone())),
        None => Ok(()),
    }
}

/// The cluster with its URL, certificate authority and the name in its certificate.
fn safe_cluster(cluster: &Cluster) -> Result<(String, Cluster), RefusedKubeconfig> {
    known(&cluster.other)?;
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err(RefusedKubeconfig::Insecure);
    }
    if is_set(cluster.certificate_authority.as_ref()) {
        let (field, instead) = ("certificate-authority", "certificate-authority-data");
        return Err(RefusedKubeconfig::File { field, instead });
    }
    if is_set(cluster.proxy_url.as_ref()) {
        return Err(RefusedKubeconfig::Proxy);
    }
    let server =
        cluster.server.clone().filter(|server| !server.is_empty()).ok_or(RefusedKubeconfig::Missing("server"))?;
    if !server.to_ascii_lowercase().starts_with("https://") {
        return Err(RefusedKubeconfig::NotHttps);
    }
    let url: Result<http::Uri, _> = server.parse();
    let url = url.map_err(|error| RefusedKubeconfig::ServerUrl(error.to_string()))?;
    if url.query().is_some() {
        return Err(RefusedKubeconfig::ServerUrl("a query is not allowed".to_owned()));
    }
    if url.authority().is_none_or(|authority| authority.as_str().contains('@') || authority.host().is_empty()) {
        return Err(RefusedKubeconfig::ServerUrl("it must name a host and no user".to_owned()));
    }
    let safe = Cluster {
        server: Some(server),
        certificate_authority_data: cluster.certificate_authority_data.clone(),
        tls_server_name: cluster.tls_server_name.clone(),
        disable_compression: cluster.disable_compression,
        ..Cluster::default()
    };
    Ok((connect::show(&url), safe))
}

/// The user with a token or a certificate.
fn safe_user(user: &AuthInfo) -> Result<AuthInfo, RefusedKubeconfig> {
    known(&user.other)?;
    if user.exec.is_some() {
        return Err(RefusedKubeconfig::Exec);
    }
    if user.auth_provider.is_some() {
        return Err(RefusedKubeconfig::AuthProvider);
    }
    for (file, field, instead) in [
        (&user.token_file, "tokenFile", "token"),
        (&user.client_certificate, "client-certificate", "client-certificate-data"),
        (&user.client_key, "client-key", "client-key-data"),
    ] {
        if is_set(file.as_ref()) {
            return Err(RefusedKubeconfig::File { field, instead });
        }
    }
    if is_set(user.username.as_ref()) || user.password.is_some() {
        return Err(RefusedKubeconfig::Password);
    }
    let acts = is_set(user.impersonate.as_ref()) || is_set(user.impersonate_uid.as_ref());
    if acts || user.impersonate_groups.is_some() || user.impersonate_user_extra.is_some() {
        return Err(RefusedKubeconfig::Impersonation);
    }
    let certificate = is_set(user.client_certificate_data.as_ref()) && user.client_key_data.is_some();
    if user.token.is_none() && !certificate {
        return Err(RefusedKubeconfig::NoCredentials);
    }
    Ok(AuthInfo {
        token: user.token.clone(),
        client_certificate_data: user.client_certificate_data.clone(),
        client_key_data: user.client_key_data.clone(),
        ..AuthInfo::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn kubeconfig() -> Value {
        json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://example.io:6443/clusters/a",
                "certificate-authority-data": "Q0E=", "tls-server-name": "kcp"}}],
            "users": [{"name": "u", "user": {"token": "very-secret"}}]})
    }

    fn changed(pointer: &str, value: Value) -> String {
        let mut config = kubeconfig();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        config.pointer_mut(parent).unwrap()[field] = value;
        config.to_string()
    }

    #[test]
    fn what_is_inline_is_kept_and_nothing_else() {
        let mut config = kubeconfig();
        // Other contexts may hold what they like: nobody looks at them, and they do not come along.
        config["users"].as_array_mut().unwrap().push(json!({"name": "v", "user": {"exec": {"command": "evil"}}}));
        config["contexts"].as_array_mut().unwrap().push(json!({"name": "y", "context": {"cluster": "c", "user": "v"}}));
        let safe = InlineKubeconfig::parse(&config.to_string()).unwrap();
        assert_eq!((safe.server(), safe.namespace()), ("https://example.io:6443/clusters/a", Some("n")));
        let kept: Value = serde_json::from_str(safe.text()).unwrap();
        assert_eq!(
            kept,
            json!({"apiVersion": "v1", "kind": "Config", "current-context": "default",
                "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default", "namespace": "n"}}],
                "clusters": [{"name": "default", "cluster": {"server": "https://example.io:6443/clusters/a",
                    "certificate-authority-data": "Q0E=", "tls-server-name": "kcp"}}],
                "users": [{"name": "default", "user": {"token": "very-secret"}}]})
        );
        assert_eq!(InlineKubeconfig::parse(safe.text()).as_ref(), Ok(&safe), "what is safe stays so");
        assert!(!format!("{safe:?}").contains("secret"));
    }

    #[test]
    fn certificates_will_do_and_a_namespace_may_be_missing() {
        let certificate = json!({"client-certificate-data": "QQ==", "client-key-data": "Qg=="});
        assert!(InlineKubeconfig::parse(&changed("/users/0/user", certificate)).is_ok());
        let safe = InlineKubeconfig::parse(&changed("/contexts/0/context/namespace", json!(""))).unwrap();
        assert_eq!(safe.namespace(), None);
        for nothing in [json!(""), Value::Null] {
            assert!(InlineKubeconfig::parse(&changed("/clusters/0/cluster/proxy-url", nothing.clone())).is_ok());
            assert!(InlineKubeconfig::parse(&changed("/users/0/user/tokenFile", nothing)).is_ok());
        }
    }

    #[test]
    fn whatever_else_it_says_is_refused_with_the_reason() {
        use RefusedKubeconfig::{
            AuthProvider, Exec, File, Impersonation, Insecure, Missing, NoCredentials, NoCurrentContext, NotHttps,
            Password, Proxy, UnknownField,
        };
        let (cluster, user) = ("/clusters/0/cluster", "/users/0/user");
        let file = |field, instead| File { field, instead };
        let cases = [
            (format!("{user}/exec"), json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}), Exec),
            (format!("{user}/auth-provider"), json!({"name": "gcp"}), AuthProvider),
            (format!("{user}/tokenFile"), json!("/var/run/secrets/token"), file("tokenFile", "token")),
            (format!("{user}/client-certificate"), json!("/a"), file("client-certificate", "client-certificate-data")),
            (format!("{user}/client-key"), json!("a"), file("client-key", "client-key-data")),
            (format!("{user}/username"), json!("admin"), Password),
            (format!("{user}/password"), json!("very-secret"), Password),
            (format!("{user}/as"), json!("admin"), Impersonation),
            (format!("{user}/as-uid"), json!("1"), Impersonation),
            (format!("{user}/as-groups"), json!(["system:masters"]), Impersonation),
            (format!("{user}/as-user-extra"), json!({"a": ["b"]}), Impersonation),
            (format!("{user}/new-way-in"), json!("x"), UnknownField("new-way-in".to_owned())),
            (user.to_owned(), json!({}), NoCredentials),
            (user.to_owned(), json!({"client-certificate-data": "QQ=="}), NoCredentials),
            (user.to_owned(), json!({"client-key-data": "QQ=="}), NoCredentials),
            (
                format!("{cluster}/certificate-authority"),
                json!("/ca"),
                file("certificate-authority", "certificate-authority-data"),
            ),
            (format!("{cluster}/insecure-skip-tls-verify"), json!(true), Insecure),
            (format!("{cluster}/proxy-url"), json!("http://127.0.0.1:8001"), Proxy),
            (format!("{cluster}/proxy-url"), json!("socks5://proxy.example.io"), Proxy),
            (format!("{cluster}/unix-socket"), json!("/s"), UnknownField("unix-socket".to_owned())),
            (format!("{cluster}/server"), json!("http://example.io"), NotHttps),
            (format!("{cluster}/server"), json!("HTTP://example.io"), NotHttps),
            (format!("{cluster}/server"), json!("example.io"), NotHttps),
            (format!("{cluster}/server"), json!("unix:///s"), NotHttps),
            (format!("{cluster}/server"), json!(""), Missing("server")),
            ("/current-context".to_owned(), json!(""), NoCurrentContext),
            ("/current-context".to_owned(), json!("y"), Missing("context")),
            ("/contexts/0/context/cluster".to_owned(), json!("y"), Missing("cluster")),
            ("/contexts/0/context/user".to_owned(), json!("y"), Missing("user")),
            ("/contexts/0/context/user".to_owned(), Value::Null, Missing("user")),
        ];
        for (pointer, value, wanted) in cases {
            let error = InlineKubeconfig::parse(&changed(&pointer, value.clone())).unwrap_err();
            assert_eq!(error, wanted, "{pointer}: {value}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        for url in ["https://example.io/?a=b", "https://user:very-secret@example.io", "https://", "https:// "] {
            let error = InlineKubeconfig::parse(&changed("/clusters/0/cluster/server", json!(url))).unwrap_err();
            assert!(matches!(error, RefusedKubeconfig::ServerUrl(_)), "{url}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn two_of_the_same_name_are_refused() {
        for (list, what) in [("contexts", "context"), ("clusters", "cluster"), ("users", "user")] {
            let mut config = kubeconfig();
            let twin = config[list][0].clone();
            config[list].as_array_mut().unwrap().push(twin);
            let error = InlineKubeconfig::parse(&config.to_string()).unwrap_err();
            assert_eq!(error, RefusedKubeconfig::Ambiguous(what));
        }
    }

    #[test]
    fn what_is_no_kubeconfig_is_not_quoted() {
        for text in ["very-secret", "a: [", "clusters: very-secret", "\t"] {
            let error = InlineKubeconfig::parse(text).unwrap_err().to_string();
            assert!(!error.contains("very-secret"), "{error}");
        }
        assert_eq!(InlineKubeconfig::parse("").unwrap_err(), RefusedKubeconfig::NoCurrentContext);
        assert_eq!(InlineKubeconfig::parse(&" ".repeat(LARGEST + 1)).unwrap_err(), RefusedKubeconfig::TooLarge);
    }
}
