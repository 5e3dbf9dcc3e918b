//! The command line of `kubectl-bind`.

mod duration;
mod v2;

use std::path::PathBuf;
use std::time::Duration;

use carrick_bind_api::install::HostAliases;
use carrick_client::{ConnectError, Overrides, Server};
use clap::{Args, CommandFactory, Parser, Subcommand};

pub use v2::{Api, Connect, Join, Source, Upgrade};

/// Joins this cluster to a kube-bind provider: opens the provider's web page, waits for what is chosen there, and binds it.
#[derive(Clone, Debug, Parser)]
#[command(name = "kubectl-bind", bin_name = "kubectl bind", version = crate::VERSION, after_help = EXAMPLES)]
pub struct Options {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: Cluster,
    /// Which backend.
    #[command(flatten)]
    pub backend: Backend,
    /// What to do instead of opening the web page.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The web page.
    #[command(flatten)]
    pub bind: Bind,
}

impl Options {
    /// The same, if nothing is said that would be ignored: flags of the web page before another command.
    pub fn checked(self) -> Result<Self, clap::Error> {
        let Bind { server_url, skip_browser, consume } = &self.bind;
        let used = server_url.is_some()
            || *skip_browser
            || consume.skip_konnector
            || consume.konnector_image.is_some()
            || !consume.konnector_host_alias.is_empty()
            || consume.skip_roles
            || consume.dry_run
            || consume.output.is_some()
            || consume.cluster_identity.is_some();
        if self.command.is_some() && used {
            let problem = "arguments of a command stand after it";
            return Err(Self::command().error(clap::error::ErrorKind::ArgumentConflict, problem));
        }
        Ok(self)
    }
}

const EXAMPLES: &str = "Examples:
  kubectl bind login https://bind.example.io        Log in
  kubectl bind templates                            See what there is
  kubectl bind apiservice my-db --template-name db  Bind it
  kubectl bind https://bind.example.io              Choose on the web page instead
  kubectl bind apiservice my-db --template-name db -o yaml
                                                    See what would be written here, and write nothing
  kubectl bind connect west -f west.kubeconfig      kube-bind v2: a provider without a backend
  kubectl bind bind west widgets.example.io         kube-bind v2: use one of its APIs";

/// Which backend.
#[derive(Clone, Debug, Default, Args)]
pub struct Backend {
    /// Backend to use instead of the current one: its URL, or URL@CLUSTER
    #[arg(long, value_name = "URL", global = true)]
    pub server: Option<String>,
    /// Cluster of the provider, if it has several
    #[arg(long = "cluster", value_name = "ID", global = true)]
    pub cluster_id: Option<String>,
    /// Certificate authorities of the backend, in PEM
    #[arg(long, value_name = "FILE", global = true)]
    pub certificate_authority: Option<PathBuf>,
    /// Trust any backend, for tries only
    #[arg(long, global = true, conflicts_with = "certificate_authority")]
    pub insecure_skip_tls_verify: bool,
    /// File with logins [default: ~/.kube-bind/config]
    #[arg(long, value_name = "FILE", global = true)]
    pub config_file: Option<PathBuf>,
}

/// How objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// YAML
    Yaml,
    /// JSON
    Json,
    /// Kinds and names
    Name,
    /// What is printed without a format
    Wide,
}

/// What is done on this cluster when something is bound.
#[derive(Clone, Debug, Default, Args)]
pub struct Consume {
    /// Do not install a konnector
    #[arg(long)]
    pub skip_konnector: bool,
    /// Image of the konnector, installed whatever is there
    #[arg(long, value_name = "IMAGE", hide = true, conflicts_with = "skip_konnector")]
    pub konnector_image: Option<String>,
    /// Names that the konnector's pods get to know beside those of DNS. May be repeated
    #[arg(long, value_name = "IP:HOST,...")]
    pub konnector_host_alias: Vec<HostAliases>,
    /// Do not grant the konnector the rights that the binding needs; somebody else does
    #[arg(long)]
    pub skip_roles: bool,
    /// Print what would be written, and write nothing
    #[arg(short, long)]
    pub dry_run: bool,
    /// The same as --dry-run: what would be written, in this format
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<Output>,
    /// Identity of this cluster [default: the uid of a namespace]
    #[arg(long, value_name = "TEXT")]
    pub cluster_identity: Option<String>,
    /// The namespace whose uid is the identity
    #[arg(long, value_name = "NAME", default_value = "kube-system")]
    pub cluster_identity_namespace: String,
    /// How long to wait for the provider, and for the konnector
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    pub timeout: Duration,
}

/// The web page.
#[derive(Clone, Debug, Default, Args)]
pub struct Bind {
    /// URL of the backend [default: the one of the last login]
    #[arg(value_name = "SERVER-URL")]
    pub server_url: Option<String>,
    /// Print the address of the web page, and open no browser
    #[arg(long)]
    pub skip_browser: bool,
    /// On this cluster.
    #[command(flatten)]
    pub consume: Consume,
}

/// A login.
#[derive(Clone, Debug, Args)]
pub struct Login {
    /// URL of the backend, or URL@CLUSTER
    #[arg(value_name = "SERVER")]
    pub server_url: String,
    /// Print the address to log in at, and open no browser
    #[arg(long)]
    pub skip_browser: bool,
    /// Print the token
    #[arg(long)]
    pub show_token: bool,
    /// How long to wait for the browser
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub timeout: Duration,
}

/// A list.
#[derive(Clone, Debug, Default, Args)]
pub struct Catalogue {
    /// URL of the backend [default: the one of the last login]
    #[arg(value_name = "SERVER-URL")]
    pub server_url: Option<String>,
    /// Whole objects in this format instead of a table
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<Output>,
}

/// What to bind without a browser.
#[derive(Clone, Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["template_name", "file"]))]
pub struct ApiService {
    /// Name of the binding
    #[arg(value_name = "NAME", conflicts_with = "name")]
    pub binding: Option<String>,
    /// Name of the binding
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Template to bind
    #[arg(long, value_name = "NAME")]
    pub template_name: Option<String>,
    /// File with an APIServiceExportRequest; - is standard input. No login is needed then, but a kubeconfig of the provider
    #[arg(short, long, value_name = "FILE", requires = "remote")]
    pub file: Option<PathBuf>,
    /// Kubeconfig of the provider
    #[arg(long, value_name = "FILE", group = "remote", conflicts_with = "template_name")]
    pub remote_kubeconfig: Option<PathBuf>,
    /// Namespace of the Secret with the kubeconfig of the provider
    #[arg(long, value_name = "NAME", requires = "remote_kubeconfig_name")]
    pub remote_kubeconfig_namespace: Option<String>,
    /// Name of that Secret
    #[arg(
        long,
        value_name = "NAME",
        group = "remote",
        conflicts_with = "template_name",
        requires = "remote_kubeconfig_namespace"
    )]
    pub remote_kubeconfig_name: Option<String>,
    /// On this cluster.
    #[command(flatten)]
    pub consume: Consume,
}

/// Which cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct Cluster {
    /// Kubeconfig of this cluster; by default $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use instead of the current one
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
}

impl Cluster {
    /// The server of the cluster.
    pub fn open(&self) -> Result<Server, ConnectError> {
        let overrides = Overrides { context: self.context.clone(), ..Overrides::default() };
        Server::infer(self.kubeconfig.as_deref(), &overrides)
    }
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Print the identity by which providers know this cluster: the uid of a namespace that lives as long as it does
    ClusterIdentity {
        /// The namespace
        #[arg(short, long, value_name = "NAME", default_value = "kube-system")]
        namespace: String,
    },
    /// Log in to a backend with a browser
    #[command(after_help = "Example:\n  kubectl bind login https://bind.example.io")]
    Login(Login),
    /// List the services that a provider offers
    #[command(after_help = "Example:\n  kubectl bind templates -o yaml")]
    Templates(Catalogue),
    /// List the collections of a provider's services
    Collections(Catalogue),
    /// Bind a service without a browser
    #[command(
        name = "apiservice",
        after_help = "Examples:
  kubectl bind apiservice my-db --template-name db
  kubectl bind apiservice -f request.yaml --remote-kubeconfig provider.kubeconfig"
    )]
    ApiService(Box<ApiService>),
    /// Store the kubeconfig that a backend has answered with, and install a konnector
    Deploy(Deploy),
    /// Let go of a service: its copies at the provider, its CustomResourceDefinitions and its objects here are deleted, in that order
    #[command(after_help = "Examples:
  kubectl bind unbind my-db --dry-run
  kubectl bind unbind west --keep-copies")]
    Unbind(Unbind),
    /// kube-bind v2: connect to a provider by its kubeconfig; nothing of kube-bind has to run there
    #[command(after_help = "Example:\n  kubectl bind connect west -f west.kubeconfig")]
    Connect(Connect),
    /// kube-bind v2: bind APIs of a Connection, for the cluster or for one namespace
    #[command(
        name = "bind",
        after_help = "Examples:
  kubectl bind bind west widgets.example.io
  kubectl bind bind west widgets.example.io -n team-a"
    )]
    Join(Join),
    /// List Connections and bindings of both contracts, and what they say
    Status,
    /// Turn a binding of kube-bind 0.8 into one of v2: the same objects and copies under the other contract
    #[command(after_help = "Examples:
  kubectl bind upgrade my-db --connection west --dry-run
  kubectl bind upgrade my-db --connection west
  kubectl bind upgrade my-db --undo")]
    Upgrade(Upgrade),
}

/// What to let go of.
#[derive(Clone, Debug, Args)]
pub struct Unbind {
    /// Name of the binding: an APIServiceBinding of 0.8, or a ClusterBinding of v2
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Namespace of a Binding of v2
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Which contract, if both have a binding of this name
    #[arg(long, value_enum)]
    pub api: Option<Api>,
    /// Delete its objects here as well, if there are any
    #[arg(long)]
    pub delete_objects: bool,
    /// Leave the copies at the provider; the way out if the provider is gone for good
    #[arg(long)]
    pub keep_copies: bool,
    /// Print what would go, and write nothing
    #[arg(short, long)]
    pub dry_run: bool,
    /// How long to wait until nothing is left
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    pub timeout: Duration,
}

/// What to deploy.
#[derive(Clone, Debug, Default, Args)]
pub struct Deploy {
    /// File with the answer of the backend; - is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "secret", required_unless_present = "secret")]
    pub file: Option<PathBuf>,
    /// Secret of this cluster with the answer, or with the kubeconfig that was in it, as NAMESPACE/NAME
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub secret: Option<String>,
    /// Key of that Secret [default: binding-response, or else kubeconfig]
    #[arg(long, value_name = "KEY", requires = "secret", conflicts_with = "file")]
    pub secret_key: Option<String>,
    /// Name of the Secret in namespace kube-bind that gets the kubeconfig [default: one for the same contract, or a new one]
    #[arg(long, value_name = "NAME")]
    pub provider_kubeconfig_secret_name: Option<String>,
    /// Image of the konnector, installed whatever is there
    #[arg(long, value_name = "IMAGE", conflicts_with = "skip_konnector")]
    pub konnector_image: Option<String>,
    /// Names that the konnector's pods get to know beside those of DNS. May be repeated
    #[arg(long, value_name = "IP:HOST,...")]
    pub konnector_host_alias: Vec<HostAliases>,
    /// Do not install a konnector
    #[arg(long)]
    pub skip_konnector: bool,
    /// Print what would be written, and write nothing
    #[arg(short, long)]
    pub dry_run: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_from_one_place() {
        let parse =
            |args: &[&str]| Options::try_parse_from(["kubectl-bind"].iter().chain(args)).and_then(Options::checked);
        for good in [
            &["deploy", "-f", "-"][..],
            &["deploy", "--secret", "a/b", "--secret-key", "k", "--kubeconfig", "x"],
            &["cluster-identity", "-n", "default"],
            &["unbind", "a", "--keep-copies", "--delete-objects", "--timeout", "5s"],
            &["unbind", "a", "--api", "v2"],
            &["unbind", "a", "-n", "team"],
            &["connect", "west", "-f", "-", "--source", "openapi", "--auto-bind"],
            &["connect", "west", "--secret", "kbind/west"],
            &["bind", "west", "widgets.example.io", "-n", "team", "--adopt"],
            &["status"],
            &["upgrade", "a", "--connection", "west", "--dry-run"],
            &["upgrade", "a", "--undo"],
            &[],
            &["https://bind.example.io", "-o", "yaml"],
            &["apiservice", "a", "--template-name", "t"],
            &["apiservice", "a", "--template-name", "t", "--konnector-host-alias", "10.0.0.7:a,b", "--skip-konnector"],
            &["apiservice", "-f", "-", "--remote-kubeconfig", "x"],
            &["apiservice", "-f", "-", "--remote-kubeconfig-name", "x", "--remote-kubeconfig-namespace", "y"],
        ] {
            assert!(parse(good).is_ok(), "{good:?}");
        }
        for bad in [
            &["deploy"][..],
            &["deploy", "-f", "x", "--secret", "a/b"],
            &["deploy", "-f", "x", "--secret-key", "k"],
            &["deploy", "-f", "x", "--skip-konnector", "--konnector-image", "i"],
            &["apiservice", "a"],
            &["apiservice", "-f", "x"],
            &["apiservice", "--template-name", "t", "--remote-kubeconfig", "x"],
            &["--skip-konnector", "deploy", "-f", "x"],
            &["--konnector-host-alias=10.0.0.7:a", "deploy", "-f", "x"],
            &["deploy", "-f", "x", "--konnector-host-alias=a"],
            &["login"],
            &["unbind"],
            &["unbind", "a", "--timeout", "0s"],
            &["unbind", "a", "--api", "v1"],
            &["connect", "west"],
            &["connect", "west", "-f", "x", "--secret", "a/b"],
            &["bind", "west"],
            &["upgrade", "a"],
            &["upgrade", "a", "--undo", "--connection", "west"],
        ] {
            assert_eq!(parse(bad).unwrap_err().exit_code(), 2, "{bad:?}");
        }
    }
}
