//! The command line of `kubectl-bind`.

use std::path::PathBuf;

use carrick_client::{ConnectError, Overrides, Server};
use clap::{Args, Parser, Subcommand};

/// Joins this cluster to a kube-bind provider.
#[derive(Clone, Debug, Parser)]
#[command(name = "kubectl-bind", bin_name = "kubectl bind", version = crate::VERSION)]
pub struct Options {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: Cluster,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
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
    /// Store the kubeconfig that a backend has answered with, and install a konnector
    Deploy(Deploy),
}

/// What to deploy.
#[derive(Clone, Debug, Default, Args)]
pub struct Deploy {
    /// File with the answer of the backend; - is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "secret", required_unless_present = "secret")]
    pub file: Option<PathBuf>,
    /// Secret of this cluster with the answer, as NAMESPACE/NAME
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
        let parse = |args: &[&str]| Options::try_parse_from(["kubectl-bind"].iter().chain(args));
        for good in [
            &["deploy", "-f", "-"][..],
            &["deploy", "--secret", "a/b", "--secret-key", "k", "--kubeconfig", "x"],
            &["cluster-identity", "-n", "default"],
        ] {
            assert!(parse(good).is_ok(), "{good:?}");
        }
        for bad in [
            &["deploy"][..],
            &["deploy", "-f", "x", "--secret", "a/b"],
            &["deploy", "-f", "x", "--secret-key", "k"],
            &["deploy", "-f", "x", "--skip-konnector", "--konnector-image", "i"],
            &[],
        ] {
            assert_eq!(parse(bad).unwrap_err().exit_code(), 2, "{bad:?}");
        }
    }
}
