//! `carrick plane`: serves an embedded kcp and a service cluster until stopped.
//!
//! With `--as-kcp` it takes the arguments of `kcp start` instead, see `kcp`.
//!
//! ```text
//!  D/kcp, D/service          data of the two servers
//!  D/*.kubeconfig            how to reach them, rewritten at each start
//!  D/examples/*.yaml         something to apply
//!  D/provider.token          kept, so that a restart does not lock anybody out
//!  D/.lock                   held while running: two processes must not write the same data
//! ```

mod addresses;
mod examples;
mod kcp;
mod lock;
mod token_file;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use carrick_client::Server;
use carrick_kcp::path::is_label;
use carrick_plane::{Config, Durability, Mode, Plane, PlaneError, User};

use crate::agent_flags::running::{Note, Running};
use crate::logs::{self, Quiet};
use crate::signals::StopSignals;
use crate::ui::{Output, Ui, print, print_error};
use crate::{kubeconfig, workspaces};
use addresses::Addresses;

const PROVIDER: &str = "provider";
const SET_UP: Duration = Duration::from_secs(20);

/// Serve an embedded kcp and Kubernetes, for development and tests.
///
/// Data, certificates and tokens are kept in the data folder: started again with the same folder, it continues where it left off.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder for data and kubeconfigs; created if missing.
    #[arg(long, alias = "root-directory", value_name = "FOLDER", required_unless_present = "as_kcp")]
    data_dir: Option<PathBuf>,
    /// Address to listen on.
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind_address: IpAddr,
    /// Port of kcp; 0 chooses a free one.
    #[arg(long, alias = "secure-port", value_name = "PORT", default_value_t = 7443)]
    port_kcp: u16,
    /// Port of the service cluster; by default the next one after kcp's ports, 0 chooses a free one.
    #[arg(long, value_name = "PORT")]
    port_service: Option<u16>,
    /// Workspace of the user `provider`, who is administrator there and nowhere else; created if missing.
    #[arg(long, value_name = "PATH", default_value = "root:provider")]
    provider_workspace: String,
    /// Spread the workspaces over this many shards, each with a port of its own after kcp's.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    shards: u8,
    /// Wait for the disk at every write: slower, but survives power loss.
    #[arg(long)]
    fsync: bool,
    /// Also accept client certificates signed by the authorities in this PEM file.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// More users of both servers: a line of token,name,uid,"group1,group2" for each.
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// Serve an endpoint for injecting faults beside each server, on free ports.
    #[arg(long)]
    control: bool,
    /// Output format; JSON is one line, printed as soon as both servers answer
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Serve only kcp, from the arguments of `kcp start`, which follow; `--as-kcp --help` lists them.
    #[arg(long, value_name = "KCP ARGUMENTS", num_args = 0.., allow_hyphen_values = true, exclusive = true)]
    as_kcp: Option<Vec<String>>,
}

const EXAMPLES: &str = "\
Examples:
  carrick plane --data-dir ./plane
  carrick plane --data-dir ./plane --port-kcp 0 --port-service 0
      on free ports
  carrick plane --data-dir ./plane --provider-workspace root:providers:httpbin
  carrick plane --data-dir ./plane --shards 3
      kcp's front door on 7443, shards behind it
  carrick plane --data-dir ./plane --fsync
      loses nothing even without power
  carrick plane --data-dir ./plane --client-ca ./ca.pem
      certificates of your own
  carrick plane --data-dir ./plane --control
      faults on purpose; with the token of shard-admin or admin:
  curl -H \"Authorization: Bearer $TOKEN\" $FAULTS/faults -d \\
    '{\"match\":{\"verbs\":[\"create\"]},\"effect\":{\"refuse\":{\"code\":503}}}'
  carrick plane --data-dir ./plane -o json > plane.json &
      for scripts: addresses and kubeconfigs in one line
  carrick plane --as-kcp start --root-directory ./kcp
      in place of `kcp start`

Files in the data folder:
  kcp-admin.kubeconfig    kcp, workspace root, as administrator of everything
  shard-admin.kubeconfig  the same, as somebody who passes every check
  service.kubeconfig      the service cluster, as administrator
  provider.kubeconfig     kcp, the provider's workspace, as its administrator
  examples/*.yaml         something to apply";

/// What is said to whoever lets others connect: a plane is no boundary between users.
pub(super) fn exposure(address: IpAddr) -> Option<String> {
    (!address.is_loopback()).then(|| {
        format!(
            "warning: others can connect to {address}. The embedded plane is for development and tests: it limits nobody, and its tokens in the \
             data folder are those of administrators; leave --bind-address away to stay on this machine"
        )
    })
}

/// Serves until stopped.
pub async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    if let Some(arguments) = &args.as_kcp {
        return Ok(kcp::run(arguments).await);
    }
    logs::init(Quiet::Warnings, verbose);
    if let Some(warning) = exposure(args.bind_address) {
        print_error(&format!("{warning}\n"));
    }
    check_workspace(&args.provider_workspace)?;
    let folder = kubeconfig::folder(args.data_dir.as_deref().unwrap_or(Path::new("")))?;
    let _lock = lock::take(&folder, "--data-dir")?;
    let continued = folder.join("kcp").exists();

    let provider = User::new(&token(&folder.join("provider.token"))?, PROVIDER, &[]);
    let others = args.token_auth_file.as_deref().map(token_file::read).transpose()?.unwrap_or_default();
    let mut config = args.config(Mode::Kcp, args.port_kcp, folder.join("kcp"));
    config.users = [vec![provider], others.clone()].concat();
    let kcp = start(config, "--port-kcp").await?;
    let mut config = args.config(Mode::Kube, args.port_service(), folder.join("service"));
    config.users = others;
    let service = start(config, "--port-service").await?;

    let admin = Server::from_kubeconfig_yaml(&kcp.kubeconfig("kcp-admin", None)?)?;
    let set_up = async {
        workspaces::ensure(&admin, &args.provider_workspace).await?;
        workspaces::grant_admin(&admin, &args.provider_workspace, PROVIDER).await
    };
    tokio::time::timeout(SET_UP, set_up)
        .await
        .with_context(|| format!("workspace {} did not become ready within {SET_UP:?}", args.provider_workspace))??;

    let files = [
        ("kcp-admin.kubeconfig", kcp.kubeconfig("kcp-admin", None)?),
        ("shard-admin.kubeconfig", kcp.kubeconfig("shard-admin", None)?),
        ("service.kubeconfig", service.kubeconfig("admin", None)?),
        ("provider.kubeconfig", kcp.kubeconfig(PROVIDER, Some(&args.provider_workspace))?),
    ];
    for (name, text) in files {
        kubeconfig::write(&folder.join(name), &text)?;
    }
    examples::write(&folder.join("examples"), &args.provider_workspace)?;

    let _note = Note::leave(&Running {
        command: "plane".to_owned(),
        kubeconfig: folder.join("service.kubeconfig"),
        kcp_kubeconfig: folder.join("provider.kubeconfig"),
        ..Running::default()
    });
    let addresses = Addresses::new(&kcp, &service, &args.provider_workspace, &folder);
    let mut signals = StopSignals::listen()?;
    let ui = Ui::new(true);
    match args.output {
        Output::Json => print(&(serde_json::to_string(&addresses)? + "\n")),
        Output::Text => {
            if continued {
                ui.line(format_args!("Continuing with the data in {}.\n", folder.display()));
            }
            addresses.show(&ui);
            examples::print(&ui, &folder, kcp.url());
            ui.line("\nRunning until Ctrl-C.");
        }
    }

    signals.next().await?;
    tokio::join!(kcp.stop(), service.stop());
    if args.output == Output::Text {
        ui.line(format_args!("\nStopped. The data stays in {}.", folder.display()));
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn port_service(&self) -> u16 {
        let behind = if self.shards > 1 { u16::from(self.shards) + 1 } else { 1 };
        let next = if self.port_kcp == 0 { None } else { self.port_kcp.checked_add(behind) };
        self.port_service.or(next).unwrap_or(0)
    }

    fn config(&self, mode: Mode, port: u16, data: PathBuf) -> Config {
        Config {
            bind: SocketAddr::from((self.bind_address, port)),
            data_dir: Some(data),
            durability: Durability { fsync: self.fsync, ..Durability::default() },
            client_ca: self.client_ca.clone(),
            shards: self.shards.into(),
            control: self.control.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            ..Config::new(mode)
        }
    }
}

async fn start(config: Config, flag: &str) -> anyhow::Result<Plane> {
    let data = config.data_dir.clone().unwrap_or_default();
    fs::create_dir_all(&data).with_context(|| format!("cannot create the folder {}", data.display()))?;
    let shown = data.display().to_string();
    Plane::start(config).await.map_err(|error| match error {
        PlaneError::Bind { address, source } => {
            anyhow::anyhow!("cannot listen on {address}: {source}; give {flag} another port, or 0 for a free one")
        }
        error @ PlaneError::ClientCa { .. } => {
            anyhow::anyhow!("{error}; give --client-ca a file with certificates in PEM")
        }
        other => {
            anyhow::anyhow!("cannot start with the data in {shown}: {other}; move the folder away to start afresh")
        }
    })
}

/// Workspaces live below root and are named like DNS labels.
fn check_workspace(path: &str) -> anyhow::Result<()> {
    match path.split_once(':') {
        Some(("root", rest)) if rest.split(':').all(is_label) => Ok(()),
        _ => anyhow::bail!(
            "{path:?} is not a workspace below root; give --provider-workspace a path such as root:provider, \
             with names of lower-case letters, digits and dashes"
        ),
    }
}

/// The token of an earlier run, or a new one.
fn token(path: &Path) -> anyhow::Result<String> {
    if path.exists() {
        let kept = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        if !kept.trim().is_empty() {
            return Ok(kept.trim().to_owned());
        }
    }
    let token = uuid::Uuid::new_v4().simple().to_string();
    kubeconfig::write(path, &token)?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_listens_beyond_this_machine_is_warned() {
        for (address, warned) in [
            ("127.0.0.1", false),
            ("127.1.2.3", false),
            ("::1", false),
            ("0.0.0.0", true),
            ("::", true),
            ("10.0.0.1", true),
        ] {
            assert_eq!(exposure(address.parse().unwrap()).is_some(), warned, "{address}");
        }
    }

    #[test]
    fn only_paths_below_root_are_workspaces() {
        for good in ["root:provider", "root:a:b-1:c"] {
            assert!(check_workspace(good).is_ok(), "{good}");
        }
        for bad in ["", "root", "root:", "provider", "root:A", "root:a::b", "root:-a", "root:a/b", "other:a"] {
            assert!(check_workspace(bad).is_err(), "{bad}");
        }
    }
}
