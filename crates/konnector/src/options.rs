//! The command line of `konnector`: flags, their defaults, and what they mean together with the environment.

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use carrick_bind_api::names::KONNECTOR_NAMESPACE;
use carrick_bind_api::roles::Subject;
use carrick_client::{ConnectError, Overrides, Server};
use carrick_go::duration;
use carrick_process::go_flags::GoFlags;
use carrick_process::{Format, logging_format};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::agent::{Budget, CoreConfig, KonnectorConfig, LeaseConfig};

/// What Deployments of kube-bind's konnector pass on, as Go reads it.
const GO_FLAGS: GoFlags = GoFlags { switches: &[], optional: &["--context", "--kubeconfig"] };

/// The name of the Lease, unless somebody says another one.
const LEASE: &str = "kube-bind";

/// Joins this cluster to kube-bind providers: creates their APIs here and carries objects to them and back.
#[derive(Clone, Debug, Parser)]
#[command(name = "konnector", version = crate::VERSION, args_conflicts_with_subcommands = true, args_override_self = true)]
pub struct Options {
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    lease: Lease,
    /// Where to serve /healthz, /readyz and /metrics; 0 turns it off
    #[arg(long, value_name = "ADDRESS", default_value = ":8090")]
    pub server_address: String,
    /// APIExportEndpointSlice of this workspace of kcp: the workspaces that bind its APIExport become the consumers, and APIs of providers are
    /// offered there instead of becoming CRDs here
    #[arg(long, value_name = "NAME")]
    pub apiexport_endpointslice_ref: Option<String>,
    /// How often providers are looked at even if no watch reports a change
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = positive)]
    pub provider_polling_interval: Duration,
    /// Which APIs are served, if their CRDs are here; kube-bind.io always is
    #[arg(
        long,
        value_name = "GROUP,…",
        value_enum,
        value_delimiter = ',',
        default_value = "kube-bind.io,core.kbind.io"
    )]
    pub apis: Vec<Api>,
    /// Let Connections of core.kbind.io name Secrets in any namespace, not only in the konnector's own, kbind and kube-bind: whoever may create a
    /// Connection can then make the konnector use any Secret that it can read
    #[arg(long)]
    pub secrets_anywhere: bool,
    /// How often one object is written in a minute, be it here or its copy; what is newest then is written after that
    #[arg(long, value_name = "NUMBER", default_value_t = Budget::default().writes, value_parser = at_least_one)]
    pub max_writes_per_minute: usize,
    /// How log lines look: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = logging_format)]
    pub logging_format: Format,
    /// How much is logged: 4 and more for details
    #[arg(short, long, value_name = "LEVEL", default_value_t = 2)]
    pub v: u8,
    /// What to do instead of running
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The APIs that a konnector serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Api {
    /// kube-bind 0.8
    #[value(name = "kube-bind.io")]
    KubeBind,
    /// kube-bind v2
    #[value(name = "core.kbind.io")]
    Core,
}

/// Which cluster.
#[derive(Clone, Debug, Default, Args)]
struct Cluster {
    /// Kubeconfig of this cluster; by default $KUBECONFIG, or the pod's service account, or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use instead of the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Which Lease.
#[derive(Clone, Debug, Args)]
struct Lease {
    /// Name of the Lease
    #[arg(long, value_name = "NAME", default_value = LEASE)]
    lease_name: String,
    /// Namespace of the Lease; by default $POD_NAMESPACE, or kube-system
    #[arg(long, value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
}

/// What to do instead of running.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Print the rights that the konnector needs here: the base role, and one role per APIServiceBinding, for `kubectl apply -f -`
    Roles(Roles),
    /// Print the CustomResourceDefinitions of kube-bind v2 (core.kbind.io), for `kubectl apply -f -`: once they are here, a konnector serves it
    Crds,
}

/// Whose rights.
#[derive(Clone, Debug, Args)]
pub struct Roles {
    #[command(flatten)]
    cluster: Cluster,
    /// Name of the Lease
    #[arg(long, value_name = "NAME", default_value = LEASE)]
    lease_name: String,
    /// Namespace of the Lease; by default that of the ServiceAccount, where konnectors in pods have it
    #[arg(long, value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// ServiceAccount of the konnector
    #[arg(long, value_name = "NAME", default_value = "konnector")]
    service_account: String,
    /// Namespace of the ServiceAccount
    #[arg(long, value_name = "NAMESPACE", default_value = KONNECTOR_NAMESPACE)]
    namespace: String,
    /// APIExportEndpointSlice of a konnector that serves the workspaces of an APIExport
    #[arg(long, value_name = "NAME")]
    pub apiexport_endpointslice_ref: Option<String>,
    /// The base role only, without looking at the cluster
    #[arg(long)]
    pub base_only: bool,
}

impl Cluster {
    fn open(&self) -> Result<Server, ConnectError> {
        let overrides = Overrides { context: self.context.clone(), ..Overrides::default() };
        Server::infer(self.kubeconfig.as_deref(), &overrides)
    }
}

impl Lease {
    fn namespace(&self, environment: impl Fn(&str) -> Option<String>) -> String {
        let in_pod = || environment("POD_NAMESPACE").filter(|namespace| !namespace.is_empty());
        given(self.lease_namespace.as_ref()).or_else(in_pod).unwrap_or_else(|| "kube-system".to_owned())
    }
}

impl Options {
    /// Reads the arguments of a process, the first of which is its name.
    pub fn of_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(GO_FLAGS.taken(args))
    }

    /// What the konnector is told, given the environment.
    pub fn config(&self, environment: impl Fn(&str) -> Option<String>) -> Result<KonnectorConfig, ConnectError> {
        let lease = LeaseConfig {
            name: self.lease.lease_name.clone(),
            namespace: self.lease.namespace(&environment),
            identity: environment("POD_NAME").filter(|name| !name.is_empty()),
            duration: None,
        };
        let address = Some(self.server_address.clone()).filter(|address| !address.is_empty() && address != "0");
        Ok(KonnectorConfig {
            server: self.cluster.open()?,
            lease: Some(lease),
            server_address: address,
            export: self.apiexport_endpointslice_ref.clone(),
            polling: self.provider_polling_interval,
            namespace: environment("POD_NAMESPACE").filter(|namespace| !namespace.is_empty()),
            core: CoreConfig { off: !self.apis.contains(&Api::Core), secrets_anywhere: self.secrets_anywhere },
            budget: Budget { writes: self.max_writes_per_minute },
        })
    }
}

impl Roles {
    /// The cluster whose bindings are looked at.
    pub fn server(&self) -> Result<Server, ConnectError> {
        self.cluster.open()
    }

    /// Who gets the roles.
    pub fn subject(&self) -> Subject {
        // This is printed elsewhere than the konnector runs, so the environment says nothing.
        let lease_namespace = given(self.lease_namespace.as_ref()).unwrap_or_else(|| self.namespace.clone());
        Subject {
            account: self.service_account.clone(),
            namespace: self.namespace.clone(),
            lease_namespace,
            lease_name: self.lease_name.clone(),
        }
    }
}

/// What a flag says; an empty word is not given, as with Go.
fn given(flag: Option<&String>) -> Option<String> {
    flag.filter(|text| !text.is_empty()).cloned()
}

/// A number that leaves something.
fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| format!("{text:?} is not a number of 1 or more"))
}

/// A duration of Go that is longer than nothing.
fn positive(text: &str) -> Result<Duration, String> {
    let nanos = duration::parse(text).and_then(|nanos| u64::try_from(nanos).ok()).filter(|nanos| *nanos > 0);
    nanos.map(Duration::from_nanos).ok_or_else(|| format!("{text:?} is not a duration such as 15s"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(args: &[&str]) -> Result<Options, clap::Error> {
        Options::of_args(["konnector"].iter().chain(args).map(OsString::from))
    }

    #[test]
    fn flags_are_those_of_kube_bind() {
        let options = parse(&[]).unwrap();
        assert_eq!((options.server_address.as_str(), options.provider_polling_interval.as_secs()), (":8090", 15));
        assert_eq!(
            (options.lease.lease_name.as_str(), options.lease.namespace(|_| None).as_str()),
            ("kube-bind", "kube-system")
        );
        let in_pod = |name: &str| (name == "POD_NAMESPACE").then(|| "kube-bind".to_owned());
        assert_eq!(options.lease.namespace(in_pod), "kube-bind");
        assert_eq!(parse(&["--lease-namespace="]).unwrap().lease.namespace(in_pod), "kube-bind");
        let options = parse(&[
            "--kubeconfig=k",
            "--context",
            "c",
            "--lease-name=l",
            "--lease-namespace=n",
            "--server-address=:0",
            "--provider-polling-interval=1m",
            "-v=4",
            "--vmodule=a=1",
            "--log-json-info-buffer-size",
            "0",
            "--log-text-split-stream",
        ]);
        let options = options.unwrap();
        assert_eq!((options.lease.namespace(in_pod).as_str(), options.v), ("n", 4));
        assert_eq!(options.max_writes_per_minute, 600);
        assert_eq!(options.provider_polling_interval.as_secs(), 60);
        let empty = parse(&["--kubeconfig=", "--context="]).unwrap();
        assert!(empty.cluster.kubeconfig.is_none() && empty.cluster.context.is_none(), "not given, as with Go");
        for wrong in [
            "--provider-polling-interval=0s",
            "--provider-polling-interval=soon",
            "--max-writes-per-minute=0",
            "--unknown",
        ] {
            assert!(parse(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn roles_are_printed_for_whoever_is_named() {
        let options = parse(&["roles", "--service-account=k", "--namespace=n", "--base-only"]).unwrap();
        let Some(Command::Roles(roles)) = options.command else { panic!() };
        let subject = roles.subject();
        assert_eq!((subject.account.as_str(), subject.lease_namespace.as_str(), roles.base_only), ("k", "n", true));
    }

    #[test]
    fn help_names_the_namespace_in_which_the_lease_really_is() {
        let lease_of = |args: &[&str]| match parse(args).unwrap().command {
            Some(Command::Roles(roles)) => roles.subject().lease_namespace,
            _ => panic!("{args:?}"),
        };
        assert_eq!(lease_of(&["roles"]), KONNECTOR_NAMESPACE);
        assert_eq!(lease_of(&["roles", "--namespace=n", "--lease-namespace="]), "n");
        assert_eq!(lease_of(&["roles", "--namespace=n", "--lease-namespace=l"]), "l");
        let help = |path: &[&str]| {
            let mut command = Options::command();
            let found = path.iter().try_fold(&mut command, |at, name| at.find_subcommand_mut(name)).unwrap();
            let flag = found.get_arguments().find(|it| it.get_long() == Some("lease-namespace")).unwrap();
            flag.get_help().unwrap().to_string()
        };
        assert!(help(&[]).ends_with("by default $POD_NAMESPACE, or kube-system"), "{}", help(&[]));
        assert!(help(&["roles"]).contains("by default that of the ServiceAccount"), "{}", help(&["roles"]));
    }
}
