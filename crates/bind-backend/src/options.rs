//! The command line of `kube-bind-backend`: flags, their defaults, and what they mean together with the environment.

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use carrick_bind_api::names::KONNECTOR_NAMESPACE;
use carrick_bind_api::v1alpha2::{InformerScope, Isolation};
use carrick_client::{ConnectError, Overrides, Server};
use carrick_go::duration;
use carrick_process::go_flags::GoFlags;
use carrick_process::{Format, logging_format};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::agent::{BackendConfig, LeaseConfig, SchemaSource};
use crate::decide::roles::Subject;
use crate::decide::terms::{Address, Logins, MOST_NAMESPACES, Terms};
use crate::http::{HttpConfig, HttpOptions};

/// What Deployments of kube-bind's backend pass on, as Go reads it.
const GO_FLAGS: GoFlags = GoFlags {
    switches: &["--frontend-disabled"],
    optional: &[
        "--context",
        "--external-address",
        "--external-ca-file",
        "--external-server-name",
        "--kubeconfig",
        "--konnector-host-alias",
        "--multicluster-runtime-provider",
        "--oidc-ca-file",
        "--redis-addr",
        "--tls-cert-file",
        "--tls-key-file",
    ],
};

/// Lets other clusters bind the APIs of this one: hands out credentials, exports APIs, assigns namespaces and keeps consumers apart.
#[derive(Clone, Debug, Parser)]
#[command(name = "kube-bind-backend", version = crate::VERSION, args_override_self = true)]
pub struct Options {
    /// Kubeconfig of the provider's cluster; by default $KUBECONFIG, or the pod's service account, or ~/.kube/config
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use instead of the current one
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen_address: String,
    /// Prefix of the names of contract namespaces
    #[arg(long, value_name = "PREFIX", default_value = "cluster-", value_parser = prefix)]
    namespace_prefix: String,
    /// How many namespaces of the provider one contract may have
    #[arg(long, value_name = "NUMBER", default_value_t = MOST_NAMESPACES)]
    max_namespaces_per_contract: usize,
    /// What consumers are told that the provider is called
    #[arg(long, value_name = "NAME", default_value = "Backend")]
    pretty_name: String,
    /// What konnectors may watch
    #[arg(long, value_name = "SCOPE", default_value = "namespaced", ignore_case = true)]
    consumer_scope: ConsumerScope,
    /// How objects of several consumers are kept apart
    #[arg(
        long,
        value_name = "MODE",
        default_value = "prefixed",
        alias = "cluster-scoped-isolation",
        value_parser = isolation_mode
    )]
    isolation: IsolationMode,
    /// Where consumers reach this cluster, if not where the kubeconfig says
    #[arg(long, value_name = "URL", value_parser = https, global = true)]
    external_address: Option<String>,
    /// Who has signed the certificate of that address, a PEM file
    #[arg(long, value_name = "FILE", global = true)]
    external_ca_file: Option<PathBuf>,
    /// The name in the certificate of that address
    #[arg(long, value_name = "NAME", global = true)]
    external_server_name: Option<String>,
    /// Where schemas come from: customresourcedefinitions or apiresourceschemas
    #[arg(long, value_name = "KIND", default_value = "CustomResourceDefinition.v1.apiextensions.k8s.io", value_parser = source)]
    schema_source: SchemaSource,
    /// How often schemas are looked at; accepted for compatibility, because they are watched
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = interval)]
    schema_sync_interval: Duration,
    /// Let konnectors read claimed kinds in all namespaces when the consumer scope is cluster. kube-bind's own konnector needs that; every consumer
    /// that claims Secrets can then read the credentials of all others
    #[arg(long)]
    allow_cluster_wide_claims: bool,
    /// Let several consumers have the same namespace of this cluster with isolation none, as kube-bind does: the first one and whoever asks for that
    /// name later. Each writes only what carries its own mark, and reads there what all of them have, claimed Secrets included
    #[arg(long)]
    allow_shared_namespaces: bool,
    /// Which clusters are served: kubernetes or kcp
    #[arg(long, value_name = "PROVIDER", default_value = "kubernetes", ignore_case = true, global = true)]
    multicluster_runtime_provider: ClusterProvider,
    /// The APIExportEndpointSlice whose workspaces are served (kcp)
    #[arg(long, value_name = "NAME", default_value = "kube-bind.io")]
    apiexport_endpoint_slice_name: String,
    /// Bindings and exports whose names begin like this are not offered (kcp)
    #[arg(
        long,
        value_name = "PREFIX",
        value_delimiter = ',',
        default_value = "kube-bind.io,tenancy.kcp.io,topology.kcp.io"
    )]
    apibinding_ignore_prefixes: Vec<String>,
    /// Name of the Lease that only one replica holds; 0 turns it off
    #[arg(long, value_name = "NAME", default_value = "kube-bind-backend")]
    lease_name: String,
    /// Namespace of the Lease and of the backend's keys; by default $POD_NAMESPACE, or the namespace of the kubeconfig's context; of `roles` that of
    /// --namespace, of `init` kube-bind
    #[arg(long, value_name = "NAMESPACE", global = true)]
    lease_namespace: Option<String>,
    /// How log lines look: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = logging_format)]
    pub logging_format: Format,
    /// How much is logged: 4 and more for details
    #[arg(short, long, value_name = "LEVEL", default_value_t = 2, global = true)]
    pub v: u8,
    /// No login, no API and no pages: consumers are served by objects alone
    #[arg(long)]
    frontend_disabled: bool,
    #[command(flatten)]
    http: HttpOptions,
    /// What to do instead of running
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do instead of running.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Install what a backend needs: the CustomResourceDefinitions, or with --multicluster-runtime-provider=kcp the APIResourceSchemas, the
    /// APIExport and an account of its own in the kubeconfig's workspace. The rights of the workspace's owner will do
    Init,
    /// Print the rights that a backend needs on this cluster, and no others, for `kubectl apply -f -`. In kcp, `init` makes them
    Roles(Roles),
}

/// Whose rights.
#[derive(Clone, Debug, Args)]
pub struct Roles {
    /// ServiceAccount of the backend
    #[arg(long, value_name = "NAME", default_value = "kube-bind-backend")]
    service_account: String,
    /// Namespace of the ServiceAccount, of the Lease and of the backend's keys
    #[arg(long, value_name = "NAMESPACE", default_value = KONNECTOR_NAMESPACE)]
    namespace: String,
    /// The base roles only, without looking at what the cluster offers
    #[arg(long)]
    pub base_only: bool,
}

/// What konnectors may watch.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ConsumerScope {
    Namespaced,
    Cluster,
}

/// How objects of several consumers are kept apart.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum IsolationMode {
    Prefixed,
    Namespaced,
    None,
}

/// Charts of kube-bind pass an empty value for the default.
fn isolation_mode(text: &str) -> Result<IsolationMode, String> {
    if text.is_empty() {
        return Ok(IsolationMode::Prefixed);
    }
    IsolationMode::from_str(text, true)
        .map_err(|_| format!("{text:?} is none of prefixed, namespaced and none; empty means prefixed"))
}

/// Which clusters are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClusterProvider {
    Kubernetes,
    Kcp,
}

/// Why the flags cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The cluster cannot be found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The file of --external-ca-file cannot be read, or holds no certificate.
    #[error("cannot use --external-ca-file {}: {problem}; it must hold PEM certificates", path.display())]
    AuthorityFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The HTTP front cannot be what the flags say.
    #[error(transparent)]
    Front(#[from] crate::http::OptionsError),
}

impl Options {
    /// Reads the arguments of a process, the first of which is its name.
    pub fn of_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(GO_FLAGS.taken(args))
    }

    /// What the backend is told, given the environment.
    pub fn config(&self, environment: impl Fn(&str) -> Option<String>) -> Result<BackendConfig, OptionsError> {
        let server = self.server()?;
        let in_pod = || environment("POD_NAMESPACE").filter(|it| !it.is_empty());
        let given = self.lease_namespace().or_else(in_pod);
        let namespace = given.unwrap_or_else(|| server.default_namespace().to_owned());
        let lease = (self.lease_name != "0").then(|| LeaseConfig {
            name: self.lease_name.clone(),
            namespace: namespace.clone(),
            identity: environment("POD_NAME").filter(|name| !name.is_empty()),
            duration: None,
        });
        let kcp = self.serves_kcp();
        Ok(BackendConfig {
            terms: self.terms(server.url(), server.authority(), kcp)?,
            source: self.schema_source,
            slice: kcp.then(|| self.apiexport_endpoint_slice_name.clone()),
            ignored_bindings: self.ignored_bindings(),
            listen_address: Some(self.http.address(&self.listen_address)).filter(|it| !it.is_empty() && it != "0"),
            server,
            lease,
            namespace,
        })
    }

    /// Who gets the roles, and what they are for.
    pub fn subject(&self, roles: &Roles) -> Result<(Subject, Terms), OptionsError> {
        let subject = Subject {
            account: roles.service_account.clone(),
            namespace: roles.namespace.clone(),
            own_namespace: self.lease_namespace().unwrap_or_else(|| roles.namespace.clone()),
            lease_name: self.lease_name.clone(),
        };
        Ok((subject, self.terms("", None, false)?))
    }

    /// What the HTTP front is told, given the environment; nothing if there is to be none.
    pub fn front(&self, environment: impl Fn(&str) -> Option<String>) -> Result<Option<HttpConfig>, OptionsError> {
        if self.frontend_disabled {
            return Ok(None);
        }
        Ok(Some(self.http.config(&self.pretty_name, environment)?))
    }

    /// An empty list ignores nothing, although every name begins with an empty prefix.
    fn ignored_bindings(&self) -> Vec<String> {
        self.apibinding_ignore_prefixes.iter().filter(|prefix| !prefix.is_empty()).cloned().collect()
    }

    /// Who gets the right to log in; nobody without a front.
    fn logins(&self) -> Logins {
        if self.frontend_disabled {
            return Logins::default();
        }
        let allowed = self.http.allowed();
        Logins { groups: allowed.groups, users: allowed.users }
    }

    /// The cluster or workspace of the kubeconfig.
    pub fn server(&self) -> Result<Server, ConnectError> {
        let overrides = Overrides { context: self.context.clone(), ..Overrides::default() };
        Server::infer(self.kubeconfig.as_deref(), &overrides)
    }

    /// Where the backend itself reaches its workspace.
    pub fn own_address(&self) -> Result<Address, OptionsError> {
        let server = self.server()?;
        let mut address = self.terms(server.url(), server.authority(), false)?.address;
        // What this very program gets there with was tried.
        address.authority_given |= self.external_address.is_none() && address.authority.is_some();
        Ok(address)
    }

    /// The namespace of the backend's own account.
    pub fn own_namespace(&self) -> String {
        self.lease_namespace().unwrap_or_else(|| KONNECTOR_NAMESPACE.to_owned())
    }

    /// What the flag says; an empty word is not given, as with Go.
    fn lease_namespace(&self) -> Option<String> {
        self.lease_namespace.clone().filter(|namespace| !namespace.is_empty())
    }

    /// Whether workspaces of kcp are served.
    pub fn serves_kcp(&self) -> bool {
        self.multicluster_runtime_provider == ClusterProvider::Kcp
    }

    /// The authority of consumers' kubeconfigs is the one that was given, else the one that the backend itself trusts: the one that comes with the
    /// token of an account is, on kcp, that of another address.
    fn terms(&self, url: &str, own: Option<&str>, kcp: bool) -> Result<Terms, OptionsError> {
        let authority = self.external_ca_file.as_ref().map(|path| {
            let failed = |problem: String| OptionsError::AuthorityFile { path: path.clone(), problem };
            let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
            if text.contains("-----BEGIN CERTIFICATE-----") {
                Ok(text)
            } else {
                Err(failed("there is none".to_owned()))
            }
        });
        let mut server = self.external_address.clone().unwrap_or_else(|| url.to_owned());
        if kcp {
            // The workspaces' own paths are added to it.
            let end = server.find("://").and_then(|at| server[at + 3..].find('/').map(|slash| at + 3 + slash));
            server.truncate(end.unwrap_or(server.len()));
        }
        Ok(Terms {
            namespace_prefix: self.namespace_prefix.clone(),
            pretty_name: self.pretty_name.clone(),
            informer_scope: match self.consumer_scope {
                ConsumerScope::Cluster => InformerScope::Cluster,
                ConsumerScope::Namespaced => InformerScope::Namespaced,
            },
            isolation: match self.isolation {
                IsolationMode::Prefixed => Isolation::Prefixed,
                IsolationMode::Namespaced => Isolation::Namespaced,
                IsolationMode::None => Isolation::None,
            },
            address: Address {
                server,
                authority_given: authority.is_some(),
                authority: authority.transpose()?.or_else(|| own.map(str::to_owned)),
                server_name: self.external_server_name.clone(),
            },
            cluster_wide_claims: self.allow_cluster_wide_claims,
            shared_namespaces: self.allow_shared_namespaces,
            logins: self.logins(),
            workspace: None,
            most_namespaces: self.max_namespaces_per_contract,
        })
    }
}

/// A prefix after which there is room for the rest of a name.
fn prefix(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || text.starts_with('-') || !text.bytes().all(fits) || text.len() > 40 {
        return Err(format!(
            "{text:?} is no beginning of a namespace's name; it has 1 to 40 characters such as kube-bind-"
        ));
    }
    Ok(text.to_owned())
}

fn https(text: &str) -> Result<String, String> {
    let fine = text.strip_prefix("https://").is_some_and(|rest| !rest.is_empty());
    if fine { Ok(text.trim_end_matches('/').to_owned()) } else { Err(format!("{text:?} must begin with https://")) }
}

fn source(text: &str) -> Result<SchemaSource, String> {
    match text.to_lowercase().as_str() {
        "customresourcedefinitions" | "customresourcedefinition.v1.apiextensions.k8s.io" => Ok(SchemaSource::Crds),
        "apiresourceschemas" | "apiresourceschema.v1alpha1.apis.kcp.io" => Ok(SchemaSource::ApiResourceSchemas),
        _ => Err(format!("{text:?} is neither customresourcedefinitions nor apiresourceschemas")),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let nanos = duration::parse(text).and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos);
    nanos
        .filter(|it| *it >= Duration::from_secs(10))
        .ok_or_else(|| format!("{text:?} is not a duration of 10s or more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, clap::Error> {
        Options::of_args(["kube-bind-backend"].iter().chain(args).map(OsString::from))
    }

    #[test]
    fn what_a_deployment_of_kube_bind_passes_on_is_taken() {
        let options = parse(&[
            "--frontend-disabled=true",
            "--vmodule=a=1",
            "--log-flush-frequency=5s",
            "--log-text-info-buffer-size",
            "0",
            "--multicluster-runtime-provider=",
            "--external-address=",
            "--external-ca-file=",
            "--external-server-name=",
            "--kubeconfig=",
            "--context=",
        ]);
        let options = options.unwrap();
        assert!(options.frontend_disabled && options.kubeconfig.is_none() && options.context.is_none());
        let address = options.terms("https://host", None, false).unwrap().address;
        assert_eq!((address.server.as_str(), address.server_name), ("https://host", None));
        assert_eq!(options.ignored_bindings().len(), 3);
        let none = parse(&["--apibinding-ignore-prefixes="]).unwrap();
        assert_eq!(none.ignored_bindings(), Vec::<String>::new(), "an empty list is one");
        assert!(!parse(&["--frontend-disabled=false"]).unwrap().frontend_disabled);
    }

    #[test]
    fn flags_are_those_of_kube_bind_and_wrong_words_are_refused() {
        let terms = |args: &[&str], kcp| {
            parse(args).unwrap().terms("https://host:6443/clusters/root:a", Some("OWN"), kcp).unwrap()
        };
        let plain = terms(&[], false);
        assert_eq!((plain.namespace_prefix.as_str(), plain.pretty_name.as_str()), ("cluster-", "Backend"));
        assert_eq!((plain.informer_scope, plain.isolation), (InformerScope::Namespaced, Isolation::Prefixed));
        assert_eq!(plain.address.server, "https://host:6443/clusters/root:a");
        assert_eq!((plain.address.authority.as_deref(), plain.address.authority_given), (Some("OWN"), false));
        let other = terms(
            &[
                "--isolation=None",
                "--consumer-scope=cluster",
                "--listen-address=:0",
                "--listen-address=:1",
                "--schema-source=apiresourceschemas",
            ],
            true,
        );
        assert_eq!((other.informer_scope, other.isolation), (InformerScope::Cluster, Isolation::None));
        assert_eq!(other.address.server, "https://host:6443");
        assert_eq!(terms(&["--cluster-scoped-isolation", "Namespaced"], false).isolation, Isolation::Namespaced);
        assert_eq!(terms(&["--isolation="], false).isolation, Isolation::Prefixed);
        assert!(!plain.shared_namespaces && terms(&["--allow-shared-namespaces"], false).shared_namespaces);
        for wrong in [
            "--isolation=prefix",
            "--consumer-scope=all",
            "--namespace-prefix=",
            "--namespace-prefix=Upper-",
            "--external-address=http://x",
            "--schema-source=pods",
            "--schema-sync-interval=1s",
            "--multicluster-runtime-provider=kind",
            "--unknown",
        ] {
            assert!(parse(&[wrong]).is_err(), "{wrong}");
        }
        // Where things are can be said before and after the command.
        let init = parse(&["init", "--kubeconfig=k", "--multicluster-runtime-provider=kcp"]).unwrap();
        assert!(init.serves_kcp() && init.kubeconfig.is_some());
        assert!(
            matches!(parse(&[]).unwrap().front(|_| None), Err(OptionsError::Front(_))),
            "nobody says who somebody is"
        );
        assert!(parse(&["--frontend-disabled"]).unwrap().front(|_| None).unwrap().is_none());
    }
}
