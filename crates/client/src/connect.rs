//! From kubeconfig files and the pod environment to a connection's configuration.

use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{Kubeconfig, KubeconfigError};

use crate::route::{Environment, Proxy, Route};

/// Where a pod finds the certificate of its API server.
const POD_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// What the command line may replace in a kubeconfig.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Server URL to use instead of the kubeconfig's; without a scheme `https` is meant.
    pub host: Option<String>,
    /// CA bundle to trust instead of the kubeconfig's.
    pub ca_file: Option<PathBuf>,
    /// Context to use instead of the current one.
    pub context: Option<String>,
}

/// Why no connection to a server could be prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The kubeconfig file cannot be read.
    #[error("cannot read kubeconfig {}: {source}; check the path and its permissions", path.display())]
    Read {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The kubeconfig is not valid, or refers to something that is missing.
    #[error("{origin}: {problem}")]
    Kubeconfig {
        /// Which kubeconfig.
        origin: String,
        /// What is wrong with it, without a word of its content.
        problem: String,
    },
    /// The kubeconfig has no current context.
    #[error(
        "no kubeconfig was found. Have you set current-context? ({origin}: run `kubectl config use-context <name>` on it)"
    )]
    NoCurrentContext {
        /// Which kubeconfig.
        origin: String,
    },
    /// The kubeconfig asks for a proxy that cannot be used.
    #[error(
        "{origin}: cannot use its proxy-url: {problem}; expected http://[user:password@]host:port or socks5://host:port"
    )]
    Proxy {
        /// Which kubeconfig.
        origin: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The environment names a proxy that cannot be used.
    #[error(
        "cannot use the proxy in ${variable}: {problem}; expected http://[user:password@]host:port or socks5://host:port"
    )]
    EnvironmentProxy {
        /// Which variable.
        variable: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// No kubeconfig was named and none was found.
    #[error(
        "no kubeconfig was found: not in $KUBECONFIG, not in a pod ({in_cluster}), not at {}; name one with --kubeconfig",
        home.display()
    )]
    NothingFound {
        /// Why this is no pod.
        in_cluster: String,
        /// The last file that was tried.
        home: PathBuf,
    },
    /// The CA bundle of the kubeconfig is empty, so no server could ever be trusted.
    #[error("{origin}: the certificate authority holds no PEM certificate; put one in or remove it")]
    EmptyCa {
        /// Which kubeconfig.
        origin: String,
    },
    /// A CA bundle given on the command line cannot be used.
    #[error("cannot use CA file {}: {problem}; it must hold PEM certificates", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A URL cannot be used as a server address.
    #[error("{url:?} is not a server URL: {problem}; expected https://host[:port][/path]")]
    Url {
        /// The text given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Certificates, keys or credentials of the kubeconfig are unusable.
    #[error("cannot use the credentials of {origin}: {source}")]
    Credentials {
        /// Which kubeconfig.
        origin: String,
        /// What is wrong with them.
        source: Box<kube::Error>,
    },
}

/// Where a configuration comes from, so that it can be read again when its files change.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A kubeconfig file.
    File(PathBuf, Overrides),
    /// What [`infer`] finds.
    Inferred(Option<PathBuf>, Overrides),
    /// A text, which never changes.
    Text(String),
    /// A complete configuration, which never changes.
    Config(Box<Config>),
}

impl Source {
    pub(crate) fn load(&self) -> Result<Loaded, ConnectError> {
        match self {
            Self::File(path, overrides) => from_file(path, overrides),
            Self::Inferred(path, overrides) => infer(path.as_deref(), overrides),
            Self::Text(text) => from_yaml(text),
            Self::Config(config) => from_config(config),
        }
    }
}

/// A configuration, and a description of where it came from.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) origin: String,
    /// How to get to servers.
    pub(crate) route: Route,
    /// The files it was made from.
    pub(crate) files: Vec<PathBuf>,
}

fn from_file(path: &Path, overrides: &Overrides) -> Result<Loaded, ConnectError> {
    let origin = format!("kubeconfig {}", path.display());
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| name_the_file(error, &origin))?;
    from_kubeconfig(kubeconfig, origin, vec![path.to_owned()], overrides)
}

fn from_yaml(text: &str) -> Result<Loaded, ConnectError> {
    let origin = "the given kubeconfig".to_owned();
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|error| invalid(&error, &origin))?;
    from_kubeconfig(kubeconfig, origin, Vec::new(), &Overrides::default())
}

fn from_config(config: &Config) -> Result<Loaded, ConnectError> {
    let origin = "the given configuration".to_owned();
    let route = route(config.proxy_url.as_ref().map(ToString::to_string).as_deref(), &origin)?;
    let files = config.auth_info.token_file.iter().map(PathBuf::from).collect();
    Ok(Loaded { config: config.clone(), origin, route, files })
}

/// The file given, else `$KUBECONFIG`, else the pod's service account, else `~/.kube/config`.
fn infer(kubeconfig: Option<&Path>, overrides: &Overrides) -> Result<Loaded, ConnectError> {
    if let Some(path) = kubeconfig.filter(|path| !path.as_os_str().is_empty()) {
        return from_file(path, overrides);
    }
    let origin = "kubeconfig of $KUBECONFIG".to_owned();
    if let Some(kubeconfig) = Kubeconfig::from_env().map_err(|error| name_the_file(error, &origin))? {
        let files = std::env::var_os("KUBECONFIG").unwrap_or_default();
        return from_kubeconfig(kubeconfig, origin, std::env::split_paths(&files).collect(), overrides);
    }
    let in_cluster = match Config::incluster() {
        Ok(config) => {
            let ca_file = overrides.ca_file.clone().unwrap_or_else(|| PathBuf::from(POD_CA));
            let token_file = config.auth_info.token_file.as_ref().map(PathBuf::from);
            return Ok(Loaded {
                config: apply_overrides(config, overrides)?,
                origin: "the pod's service account".to_owned(),
                route: route(None, "")?,
                files: [ca_file].into_iter().chain(token_file).collect(),
            });
        }
        Err(error) => error.to_string(),
    };
    let home = std::env::home_dir().unwrap_or_default().join(".kube").join("config");
    if home.exists() { from_file(&home, overrides) } else { Err(ConnectError::NothingFound { in_cluster, home }) }
}

fn from_kubeconfig(
    mut kubeconfig: Kubeconfig,
    origin: String,
    mut files: Vec<PathBuf>,
    overrides: &Overrides,
) -> Result<Loaded, ConnectError> {
    if let Some(context) = overrides.context.as_deref().filter(|context| !context.is_empty()) {
        kubeconfig.current_context = Some(context.to_owned());
    }
    if kubeconfig.current_context.as_deref().unwrap_or_default().is_empty() {
        return Err(ConnectError::NoCurrentContext { origin });
    }
    let route = route(proxy_url(&kubeconfig), &origin)?;
    if overrides.ca_file.is_some() {
        // The kubeconfig's own CA must not be read at all: the override exists for files that are not there.
        for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.certificate_authority = None;
            cluster.certificate_authority_data = None;
        }
    }
    files.extend(overrides.ca_file.clone());
    files.extend(referenced_files(&kubeconfig));
    match Config::try_from(kubeconfig) {
        Ok(config) if config.root_cert.as_ref().is_some_and(Vec::is_empty) => Err(ConnectError::EmptyCa { origin }),
        Ok(config) => Ok(Loaded { config: apply_overrides(config, overrides)?, origin, route, files }),
        Err(error) => Err(invalid(&error, &origin)),
    }
}

/// A configuration's own proxy is used for everything; without one the environment decides.
pub(crate) fn route(proxy_url: Option<&str>, origin: &str) -> Result<Route, ConnectError> {
    if let Some(url) = proxy_url {
        let proxy = Proxy::parse(url);
        return proxy.map(Route::Proxy).map_err(|problem| ConnectError::Proxy { origin: origin.to_owned(), problem });
    }
    let environment = Environment::read(|name| std::env::var(name).ok());
    environment
        .map(Route::Environment)
        .map_err(|(variable, problem)| ConnectError::EnvironmentProxy { variable, problem })
}

/// `proxy-url` of the current context's cluster.
fn proxy_url(kubeconfig: &Kubeconfig) -> Option<&str> {
    let current = kubeconfig.current_context.as_deref()?;
    let context = kubeconfig.contexts.iter().find(|named| named.name == current)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|named| named.name == context.cluster)?.cluster.as_ref()?;
    cluster.proxy_url.as_deref().filter(|url| !url.is_empty())
}

/// Certificates, keys and tokens that a kubeconfig keeps in files of their own.
fn referenced_files(kubeconfig: &Kubeconfig) -> Vec<PathBuf> {
    let authorities =
        kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref()?.certificate_authority.clone());
    let users = kubeconfig.auth_infos.iter().filter_map(|named| named.auth_info.as_ref());
    let keys = users.flat_map(|user| [&user.client_certificate, &user.client_key, &user.token_file]).flatten().cloned();
    authorities.chain(keys).map(PathBuf::from).collect()
}

fn apply_overrides(mut config: Config, overrides: &Overrides) -> Result<Config, ConnectError> {
    if let Some(host) = overrides.host.as_deref().filter(|host| !host.is_empty()) {
        let url = if host.contains("://") { host.to_owned() } else { format!("https://{host}") };
        config.cluster_url = parse_url(&url)?;
    }
    // Servers name the writer of a field after the first part of this, as they do for other clients.
    let program = std::env::args_os().next().map(PathBuf::from);
    let program = program.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or("carrick");
    if let Ok(agent) = format!("{program}/{}", env!("CARGO_PKG_VERSION")).parse() {
        config.headers.push((http::header::USER_AGENT, agent));
    }
    if let Some(path) = overrides.ca_file.as_deref().filter(|path| !path.as_os_str().is_empty()) {
        config.root_cert = Some(read_ca(path)?);
        config.root_cert_file = Some(path.to_owned());
    }
    Ok(config)
}

pub(crate) fn read_ca(path: &Path) -> Result<Vec<Vec<u8>>, ConnectError> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let wrong = |problem: String| ConnectError::CaFile { path: path.to_owned(), problem };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(error.to_string()))?;
    if certificates.is_empty() {
        return Err(wrong("no certificate in it".to_owned()));
    }
    Ok(certificates.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// An absolute http or https URL with a host.
pub(crate) fn parse_url(url: &str) -> Result<http::Uri, ConnectError> {
    let wrong = |problem: String| ConnectError::Url { url: url.to_owned(), problem };
    let uri: http::Uri = url.parse().map_err(|error: http::uri::InvalidUri| wrong(error.to_string()))?;
    if !matches!(uri.scheme_str(), Some("https" | "http")) {
        return Err(wrong("the scheme must be https or http".to_owned()));
    }
    if uri.query().is_some() {
        return Err(wrong("a query is not allowed".to_owned()));
    }
    Ok(uri)
}

/// A URL without its trailing slash, ready for a path to be appended.
pub(crate) fn show(url: &http::Uri) -> String {
    url.to_string().trim_end_matches('/').to_owned()
}

/// Reading errors get a variant of their own because they are by far the most frequent ones.
/// Parse errors quote the lines around the mistake, and those may hold a token: only their first line is reported.
fn invalid(error: &KubeconfigError, origin: &str) -> ConnectError {
    let problem = error.to_string().lines().next().unwrap_or_default().trim_end_matches(':').to_owned();
    ConnectError::Kubeconfig { origin: origin.to_owned(), problem }
}

fn name_the_file(error: KubeconfigError, origin: &str) -> ConnectError {
    match error {
        KubeconfigError::ReadConfig(source, path) => ConnectError::Read { path, source },
        error => invalid(&error, origin),
    }
}
