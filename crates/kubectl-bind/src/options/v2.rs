//! The commands of kube-bind v2.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;

/// Which of the two contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Api {
    /// kube-bind 0.8: APIServiceBindings
    #[value(name = "0.8")]
    Old,
    /// kube-bind v2: ClusterBindings and Bindings
    #[value(name = "v2")]
    V2,
}

/// Where schemas come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Source {
    /// CRDs if the provider has some with the label, else discovery
    Auto,
    /// CRDs with label core.kbind.io/exported
    Crd,
    /// Discovery and OpenAPI documents, as of a workspace of kcp
    Openapi,
}

impl Source {
    /// The word of the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "Auto",
            Self::Crd => "CRD",
            Self::Openapi => "OpenAPI",
        }
    }
}

/// A provider.
#[derive(Clone, Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // one per flag
pub struct Connect {
    /// Name of the Connection, and of the Secret with the kubeconfig
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Kubeconfig of the provider; - is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "secret", required_unless_present = "secret")]
    pub file: Option<PathBuf>,
    /// Secret of this cluster that has the kubeconfig already under key kubeconfig
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub secret: Option<String>,
    /// Where schemas come from
    #[arg(long, value_enum, default_value = "auto")]
    pub source: Source,
    /// Bind everything that the provider offers
    #[arg(long)]
    pub auto_bind: bool,
    /// Image of the konnector, installed whatever is there
    #[arg(long, value_name = "IMAGE", conflicts_with = "skip_konnector")]
    pub konnector_image: Option<String>,
    /// Do not install a konnector
    #[arg(long)]
    pub skip_konnector: bool,
    /// Do not grant the konnector the rights that the Connection needs; somebody else does
    #[arg(long)]
    pub skip_roles: bool,
    /// Print what would be written, and write nothing
    #[arg(short, long)]
    pub dry_run: bool,
    /// How long to wait until the Connection is ready
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse)]
    pub timeout: Duration,
}

/// APIs of a provider.
#[derive(Clone, Debug, Args)]
pub struct Join {
    /// Name of the Connection
    #[arg(value_name = "CONNECTION")]
    pub connection: String,
    /// The APIs, each as PLURAL.GROUP
    #[arg(value_name = "API", required = true)]
    pub apis: Vec<String>,
    /// Name of the binding [default: that of the Connection]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Bind for this namespace only
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Make copies of objects that the provider has already and that nobody has marked
    #[arg(long)]
    pub adopt: bool,
    /// Do not grant the konnector the rights that the binding needs; somebody else does
    #[arg(long)]
    pub skip_roles: bool,
    /// Print what would be written, and write nothing
    #[arg(short, long)]
    pub dry_run: bool,
    /// How long to wait until the binding is ready
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse)]
    pub timeout: Duration,
}

/// What goes from 0.8 to v2, or back.
#[derive(Clone, Debug, Args)]
pub struct Upgrade {
    /// Name of the APIServiceBinding
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Connection to the same provider
    #[arg(long, value_name = "NAME", required_unless_present = "undo")]
    pub connection: Option<String>,
    /// Go back to 0.8
    #[arg(long, conflicts_with = "connection")]
    pub undo: bool,
    /// Do not grant the konnector the rights that the binding needs; somebody else does
    #[arg(long)]
    pub skip_roles: bool,
    /// Check whether it is possible, print what would be done, and write nothing
    #[arg(short, long)]
    pub dry_run: bool,
    /// How long to wait for the konnector
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    pub timeout: Duration,
}
