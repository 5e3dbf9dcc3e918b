//! The command line of `api-syncagent`: flags, their defaults and their validation.
//!
//! Flags behave as in the reference agent: `--flag value` and `--flag=value`, booleans as `--flag` or
//! `--flag=false`, the last one wins when a flag is repeated, lists are comma separated, repeated, or both.

#![allow(rustdoc::invalid_html_tags, reason = "doc comments of flags are what --help prints")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use carrick_client::{ConnectError, HostPortOverride, Overrides, Server};
use carrick_go::labels::Selector;
use carrick_go::names;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};

use crate::agent::connect::SliceRef;
use crate::agent::conversion::ConversionServer;
use crate::agent::platform_mesh::consumer::StagingRoot;
use crate::agent::{AgentConfig, Controller, Timing};
use crate::logging::Format;
use crate::rules::access::Budget;
use crate::rules::{Adoption, AfterRestore};

const EXAMPLES: &str = "\
Examples:
  # Outside of a cluster, with one kubeconfig per side
  api-syncagent --namespace kcp-system --kubeconfig service.kubeconfig \\
    --kcp-kubeconfig kcp.kubeconfig --apiexportendpointslice-ref example.com

  # In a pod with a service account, two replicas, probes on port 8081
  api-syncagent --namespace $(POD_NAMESPACE) --kcp-kubeconfig /etc/kcp/kubeconfig \\
    --apiexportendpointslice-ref example.com --enable-leader-election --health-address :8081

  # Only some PublishedResources, and only their schemas
  api-syncagent --namespace kcp-system --kcp-kubeconfig kcp.kubeconfig --apiexportendpointslice-ref example.com \\
    --published-resource-selector 'team in (blue, green),!hidden' --disabled-controllers sync

  # What would happen, without doing it
  api-syncagent --namespace kcp-system --kcp-kubeconfig kcp.kubeconfig --apiexportendpointslice-ref example.com --dry-run";

/// All command-line options.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "api-syncagent",
    about = "Publishes CRDs of this cluster in kcp and carries consumers' objects here and back.",
    after_help = EXAMPLES,
    disable_version_flag = true,
    args_override_self = true,
    version = crate::VERSION
)]
#[allow(clippy::struct_excessive_bools)] // one per flag
pub struct Options {
    /// Kubeconfig of the service cluster; by default $KUBECONFIG, or the pod's service account, or ~/.kube/config
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    pub kubeconfig: String,
    /// Kubeconfig whose current context points at the workspace that holds the APIExportEndpointSlice (required)
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    pub kcp_kubeconfig: String,
    /// Namespace of the agent itself, which holds its state Secrets and the leader lease (required)
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub namespace: String,
    /// Name that marks what this agent owns [default: <apiexportendpointslice-ref>-syncagent]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub agent_name: String,
    /// Name of the APIExportEndpointSlice in kcp (required)
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub apiexportendpointslice_ref: String,
    /// Older alternative: name of an APIExport, whose slice is looked up in its workspace
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub apiexport_ref: String,
    /// Label selector for PublishedResources; empty means all of them
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub published_resource_selector: String,
    /// Take over the resources that an agent of another name keeps in the same APIExport, instead of waiting until it is gone
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true", hide_default_value = true, action = ArgAction::Set)]
    pub take_over: bool,
    /// What to do with an object that already exists in the place of a copy, unless spec.adoption of the PublishedResource is set: Refuse
    /// leaves it alone, TakeOver gives it the content of the source, Link keeps its content, as the reference agent does
    #[arg(long, value_name = "POLICY", value_parser = adoption, default_value = "Refuse")]
    pub adoption: Adoption,
    /// What to do with orders that have gone back in time because kcp was restored from a backup, unless spec.afterRestore of the
    /// PublishedResource is set: Hold leaves everything as it is until somebody decides (carrick restore), Follow carries them out as they are
    #[arg(long, value_name = "POLICY", value_parser = after_restore, default_value = "Hold")]
    pub after_restore: AfterRestore,
    /// Write copies by server-side apply, so that the state Secrets hold no content
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true", hide_default_value = true, action = ArgAction::Set)]
    pub enable_server_side_apply: bool,
    /// Namespaces of the service cluster that no order leads to unless a PublishedResource names them literally, beside kube-* and the
    /// agent's own; may end with *
    #[arg(long, value_name = "NAMES", value_delimiter = ',', action = ArgAction::Append)]
    pub reserved_namespaces: Vec<String>,
    /// How many names one entry of spec.related may yield for one order
    #[arg(long, value_name = "NUMBER", default_value_t = Budget::default().names)]
    pub max_related_names: usize,
    /// How many related objects one order may have
    #[arg(long, value_name = "NUMBER", default_value_t = Budget::default().objects)]
    pub max_related_objects: usize,
    /// How many bytes of the orders of one workspace the agent keeps in memory, compressed, and how many of their related objects; what is beyond that is refused
    #[arg(long, value_name = "NUMBER", default_value_t = Budget::default().cached_bytes)]
    pub max_cached_bytes: usize,
    /// How many orders of one workspace are worked on at once, each with one request under way; others wait
    #[arg(long, value_name = "NUMBER", default_value_t = Budget::default().in_flight)]
    pub max_in_flight: usize,
    /// How often one object is written in a minute, be it an order, its copy or a related one; what is newest then is written after that
    #[arg(long, value_name = "NUMBER", default_value_t = Budget::default().writes)]
    pub max_writes_per_minute: usize,
    /// Path of the workspace below which a broker of Platform Mesh makes its staging workspaces: consumers behind it are shown, counted and
    /// named as themselves, by annotation broker.platform-mesh.io/consumer-cluster, which counts nowhere else
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    pub broker_staging_root: String,
    /// Let deleted orders in a broker's staging workspaces go once the service cluster could not be reached for so long, such as 1h, although
    /// their copies are still there; without it, they wait for the cluster
    #[arg(long, value_name = "DURATION", default_value = "", hide_default_value = true)]
    pub release_after: String,
    /// Work only while holding a lease, so that several replicas can run
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true", hide_default_value = true, action = ArgAction::Set)]
    pub enable_leader_election: bool,
    /// Server URL to use instead of the one in the service cluster's kubeconfig
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    pub kubeconfig_host_override: String,
    /// CA bundle to trust instead of the one in the service cluster's kubeconfig
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    pub kubeconfig_ca_file_override: String,
    /// Address to use instead of one in the URLs of the APIExportEndpointSlice: original-host:port=new-host:port; may be repeated
    #[arg(long, value_name = "OVERRIDES", value_delimiter = ',', action = ArgAction::Append)]
    pub apiexport_hostport_override: Vec<String>,
    /// Name of the Secret in the agent's namespace that --kcp-kubeconfig is mounted from: its token, if it is one of a ServiceAccount, is replaced by a new one whenever half of its time is over; empty turns it off
    #[arg(long, value_name = "SECRET", default_value = "", hide_default_value = true)]
    pub renew_kcp_token: String,
    /// Where to serve /metrics; 0 turns it off, empty means :8080
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8085")]
    pub metrics_address: String,
    /// Where to serve /healthz and /readyz; empty or 0 turns it off
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    pub health_address: String,
    /// Where to serve a page that shows what the agent is doing, on loopback unless a host is named (* for all); elsewhere people log in with a token of the service cluster; empty or 0 turns it off
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    pub dashboard_address: String,
    /// The audience that tokens for the dashboard must have; empty takes dashboard.syncagent.kcp.io, and that of the service cluster itself
    #[arg(long, value_name = "AUDIENCE", default_value = "", hide_default_value = true)]
    pub dashboard_audience: String,
    /// Where to serve the conversion webhook that spec.conversion.webhook of PublishedResources names, by HTTPS; empty or 0 turns it off
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    pub conversion_address: String,
    /// File with the certificates of the conversion webhook, in PEM; read again when it changes
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    pub conversion_cert_file: String,
    /// File with the key of the conversion webhook, in PEM
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    pub conversion_key_file: String,
    /// Controllers not to run: apiexport, apiresourceschema, sync
    #[arg(long, value_name = "NAMES", value_delimiter = ',', action = ArgAction::Append)]
    pub disabled_controllers: Vec<String>,
    /// Exit if kcp cannot be reached at the start, instead of retrying
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true", hide_default_value = true, action = ArgAction::Set)]
    pub exit_on_startup_error: bool,
    /// Print what would be written right now and why, write nothing, and exit
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true", hide_default_value = true, action = ArgAction::Set)]
    pub dry_run: bool,
    /// Log debug messages too
    #[arg(long, value_name = "BOOL", value_parser = boolean, num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true", hide_default_value = true, action = ArgAction::Set)]
    pub log_debug: bool,
    /// JSON or Console
    #[arg(long, value_name = "FORMAT", value_parser = str::parse::<Format>, default_value = "JSON")]
    pub log_format: Format,
    /// Print the version
    #[arg(long, action = ArgAction::Version)]
    version: Option<bool>,
}

/// Why the command line could not be parsed, or the text of --help or --version.
#[derive(Debug)]
pub struct Usage {
    /// What to print.
    pub text: String,
    /// 0 for help and version, 2 for mistakes.
    pub exit_code: u8,
}

/// Everything that is wrong with the options, all at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => f.write_str(one),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl std::error::Error for Problems {}

impl Options {
    /// Parses the arguments, the program's name first.
    pub fn parse_from_args<I, T>(args: I) -> Result<Self, Usage>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        let mut command = Self::command();
        let parsed = command.try_get_matches_from_mut(args).and_then(|matches| Self::from_arg_matches(&matches));
        parsed.map_err(|error| usage(&error, &mut command))
    }

    /// What is wrong with what is said about a broker.
    fn broker_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.broker_staging_root.is_empty()
            && let Err(problem) = StagingRoot::at(&self.broker_staging_root)
        {
            problems.push(format!("invalid --broker-staging-root {:?}: {problem}", self.broker_staging_root));
        }
        if !self.release_after.is_empty() {
            if duration(&self.release_after).is_none() {
                problems.push(format!(
                    "invalid --release-after {:?}: must be a time such as 1h or 30m",
                    self.release_after
                ));
            }
            if self.broker_staging_root.is_empty() {
                problems.push(
                    "--release-after needs --broker-staging-root: only orders behind a broker are let go".to_owned(),
                );
            }
        }
        problems
    }

    /// Fills in derived defaults and reports every problem at once.
    pub fn complete(mut self) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        if self.namespace.is_empty() {
            problems.push("--namespace is required".to_owned());
        }
        let is_default = [&self.apiexportendpointslice_ref, &self.apiexport_ref]
            .iter()
            .any(|slice| !slice.is_empty() && self.agent_name == default_agent_name(slice));
        // The default may contain dots, so the same name is also accepted when it is given explicitly.
        if !self.agent_name.is_empty() && !is_default {
            let invalid = names::V1_34.dns1035_label(&self.agent_name);
            if !invalid.is_empty() {
                problems.push(format!("--agent-name is invalid: [{}]", invalid.join(" ")));
            }
        }
        let refs = [&self.apiexportendpointslice_ref, &self.apiexport_ref];
        match refs.map(String::as_str) {
            ["", ""] => problems.push("--apiexportendpointslice-ref is required".to_owned()),
            ["", one] | [one, ""] if self.agent_name.is_empty() => {
                self.agent_name = default_agent_name(one);
                if let Some(problem) = names::V1_34.label_value(&self.agent_name).first() {
                    problems.push(format!(
                        "the default agent name {:?} cannot be used as a label: {problem}; choose one with --agent-name",
                        self.agent_name
                    ));
                }
            }
            ["", _] | [_, ""] => {}
            _ => problems.push(
                "--apiexportendpointslice-ref and --apiexport-ref are mutually exclusive; keep the first one"
                    .to_owned(),
            ),
        }
        let files = [&self.conversion_cert_file, &self.conversion_key_file];
        if !matches!(self.conversion_address.as_str(), "" | "0") && files.iter().any(|file| file.is_empty()) {
            problems.push("--conversion-address needs --conversion-cert-file and --conversion-key-file".to_owned());
        }
        for (index, text) in self.apiexport_hostport_override.iter().enumerate() {
            if let Err(problem) = text.parse::<HostPortOverride>() {
                problems.push(format!("invalid --apiexport-hostport-override #{} {text:?}: {problem}", index + 1));
            }
        }
        problems.extend(self.broker_problems());
        if self.kcp_kubeconfig.is_empty() {
            problems.push("--kcp-kubeconfig is required".to_owned());
        }
        if let Err(problem) = Selector::parse(&self.published_resource_selector) {
            problems.push(format!(
                "invalid --published-resource-selector {:?}: {problem}",
                self.published_resource_selector
            ));
        }
        self.disabled_controllers.retain(|name| !name.is_empty());
        let unknown: BTreeSet<&str> = self
            .disabled_controllers
            .iter()
            .map(String::as_str)
            .filter(|name| Controller::named(name).is_none())
            .collect();
        if !unknown.is_empty() {
            let unknown: Vec<_> = unknown.into_iter().collect();
            problems.push(format!(
                "unknown controller(s) [{}], must be any of [apiexport apiresourceschema sync]",
                unknown.join(" ")
            ));
        }
        if problems.is_empty() { Ok(self) } else { Err(Problems(problems)) }
    }

    /// The addresses to use instead of those in the URLs of the slice.
    pub fn endpoint_overrides(&self) -> Vec<HostPortOverride> {
        self.apiexport_hostport_override.iter().filter_map(|text| text.parse().ok()).collect()
    }

    /// Reads both kubeconfigs and turns completed options into the agent's configuration.
    pub fn into_config(self) -> Result<AgentConfig, ConnectError> {
        let endpoint_overrides = self.endpoint_overrides();
        let overrides = Overrides {
            host: non_empty(self.kubeconfig_host_override),
            ca_file: non_empty(self.kubeconfig_ca_file_override).map(PathBuf::from),
            context: None,
        };
        let staging_root = staging_root(&self.broker_staging_root, &self.release_after);
        let kubeconfig = non_empty(self.kubeconfig).map(PathBuf::from);
        let local = Server::infer(kubeconfig.as_deref(), &overrides)?;
        let kcp = Server::from_kubeconfig(self.kcp_kubeconfig.as_ref(), &Overrides::default())?;
        kcp.redirect(endpoint_overrides);
        Ok(AgentConfig {
            local,
            kcp,
            namespace: self.namespace,
            agent_name: self.agent_name,
            slice: if self.apiexport_ref.is_empty() {
                SliceRef::Named(self.apiexportendpointslice_ref)
            } else {
                SliceRef::OfExport(self.apiexport_ref)
            },
            selector: self.published_resource_selector,
            take_over: self.take_over,
            adoption: self.adoption,
            after_restore: self.after_restore,
            apply: self.enable_server_side_apply,
            reserved_namespaces: self.reserved_namespaces,
            budget: Budget {
                names: self.max_related_names,
                objects: self.max_related_objects,
                cached_bytes: self.max_cached_bytes,
                in_flight: self.max_in_flight,
                writes: self.max_writes_per_minute,
            },
            staging_root,
            disabled: self.disabled_controllers.iter().filter_map(|name| Controller::named(name)).collect(),
            leader_election: self.enable_leader_election,
            metrics_address: metrics_address(&self.metrics_address),
            health_address: non_empty(self.health_address).filter(|address| address != "0"),
            dashboard_address: dashboard_address(self.dashboard_address),
            dashboard_audience: non_empty(self.dashboard_audience),
            conversion: non_empty(self.conversion_address).filter(|address| address != "0").map(|address| {
                ConversionServer {
                    address,
                    cert: self.conversion_cert_file.into(),
                    key: self.conversion_key_file.into(),
                }
            }),
            renew_token: non_empty(self.renew_kcp_token),
            exit_on_startup_error: self.exit_on_startup_error,
            timing: Timing::default(),
        })
    }
}

/// The default name of an agent, given the name of its APIExportEndpointSlice.
pub fn default_agent_name(slice: &str) -> String {
    format!("{slice}-syncagent")
}

fn adoption(word: &str) -> Result<Adoption, String> {
    Adoption::parse(word).ok_or_else(|| "must be one of Refuse, TakeOver, Link".to_owned())
}

fn after_restore(word: &str) -> Result<AfterRestore, String> {
    AfterRestore::parse(word).ok_or_else(|| "must be one of Hold, Follow".to_owned())
}

/// A time that has not passed yet.
/// Where a broker makes its staging workspaces, by the values of --broker-staging-root and --release-after; none if there is no such place.
pub fn staging_root(path: &str, release_after: &str) -> Option<StagingRoot> {
    let root = StagingRoot::at(path).ok()?;
    Some(match duration(release_after) {
        Some(time) => root.releasing_after(time),
        None => root,
    })
}

fn duration(text: &str) -> Option<Duration> {
    let nanoseconds = carrick_go::duration::parse(text)?;
    u64::try_from(nanoseconds).ok().filter(|time| *time > 0).map(Duration::from_nanos)
}

fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The dashboard listens on loopback, where nobody has to log in, unless a host is named; `*` means all of them.
fn dashboard_address(flag: String) -> Option<String> {
    let address = non_empty(flag).filter(|address| address != "0")?;
    Some(match address.strip_prefix('*') {
        Some(port) => port.to_owned(),
        None if address.starts_with(':') => format!("127.0.0.1{address}"),
        None => address,
    })
}

fn metrics_address(flag: &str) -> Option<String> {
    match flag {
        "0" => None,
        "" => Some(":8080".to_owned()),
        address => Some(address.to_owned()),
    }
}

/// The spellings of a boolean that users of the reference agent may have in their manifests.
fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// Words errors as the reference agent does, and adds the usage and a hint.
fn usage(error: &clap::Error, command: &mut clap::Command) -> Usage {
    let text_of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let flag = text_of(ContextKind::InvalidArg).unwrap_or_default();
    let name = flag.split([' ', '=']).next().unwrap_or_default();
    let name = name.split('[').next().unwrap_or_default();
    let message = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return Usage { text: error.to_string(), exit_code: 0 };
        }
        ErrorKind::UnknownArgument if !name.starts_with('-') => {
            format!("unexpected argument {name:?}: flags only, please")
        }
        ErrorKind::UnknownArgument => match text_of(ContextKind::SuggestedArg) {
            Some(similar) => format!("unknown flag: {name} (did you mean {similar}?)"),
            None => format!("unknown flag: {name}"),
        },
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let value = text_of(ContextKind::InvalidValue).unwrap_or_default();
            if value.is_empty() && error.kind() == ErrorKind::InvalidValue {
                format!("flag needs an argument: {name}")
            } else {
                let problem = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
                format!("invalid argument {value:?} for {name:?} flag: {problem}")
            }
        }
        _ => error.to_string(),
    };
    Usage { text: format!("{}\n{message}\n", command.render_help()), exit_code: 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dashboard_listens_on_loopback_unless_a_host_is_named() {
        for (given, wanted) in [
            ("", None),
            ("0", None),
            (":8086", Some("127.0.0.1:8086")),
            ("*:8086", Some(":8086")),
            ("10.0.0.1:1", Some("10.0.0.1:1")),
        ] {
            assert_eq!(dashboard_address(given.to_owned()).as_deref(), wanted, "{given}");
        }
    }
}
