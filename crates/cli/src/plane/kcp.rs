//! `carrick plane --as-kcp`: a plane in place of `kcp start`, from the same arguments.
//!
//! ```text
//!  R/admin.kubeconfig        contexts root, base, system:admin, shard-base
//!  R/.admin-token-store      hash of the token that outlives restarts
//!  R/apiserver.crt, .key     the server's certificate; one that exists is used
//!  R/etcd-server             data
//! ```

mod admin;
mod flags;
mod ignored;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use carrick_plane::{Advertised, Config, Mode, Plane, PlaneError, ServingFiles};

use self::admin::Admins;
use self::flags::Options;
use super::{lock, token_file};
use crate::kubeconfig;
use crate::logs::{self, Quiet};
use crate::signals::StopSignals;

/// From this level on, kcp logs requests and reconciliations.
const VERBOSE: u32 = 4;

/// Serves until stopped. Errors are printed as kcp prints them.
pub async fn run(arguments: &[String]) -> ExitCode {
    match serve(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(arguments: &[String]) -> anyhow::Result<()> {
    let options = Options::parse(arguments)?;
    if options.help {
        print!("{}", help());
        return Ok(());
    }
    logs::init(Quiet::Warnings, options.verbosity >= VERBOSE);
    let root = root(&options.root_directory)?;
    let batteries = options.validate()?;
    for (name, reason) in &options.ignored {
        eprintln!("--{name} has no effect: {reason}");
    }
    let below = |name: &str| root.as_deref().unwrap_or(Path::new("")).join(name);
    let given = |path: &Option<String>, name: &str| path.as_ref().map_or_else(|| below(name), PathBuf::from);
    let kubeconfig = std::path::absolute(given(&options.kubeconfig_path, "admin.kubeconfig"))?;
    let hash_file = given(&options.admin_token_path, ".admin-token-store");
    let admins =
        if batteries.admin { Some(Admins::load_or_make(&kubeconfig, &hash_file, batteries.user)?) } else { None };

    let data = match (&options.data_directory, &root) {
        (None, None) => None,
        (given, _) => Some(given.as_ref().map_or_else(|| below("etcd-server"), PathBuf::from)),
    };
    let _lock = data.as_deref().map(claim).transpose()?;
    let plane = start(config(&options, root.as_deref(), data.clone(), admins.as_ref())?).await?;
    if let Some(admins) = &admins {
        kubeconfig::write(&kubeconfig, &admins.kubeconfig(plane.url(), plane.ca_pem()))?;
        eprintln!("administrators: {}", kubeconfig.display());
    }
    match &data {
        Some(data) => eprintln!("data: {}", data.display()),
        None => eprintln!("data: in memory, because --root-directory is empty"),
    }
    let mut signals = StopSignals::listen()?;
    if let Some(warning) = super::exposure(options.bind_address) {
        eprintln!("{warning}");
    }
    eprintln!("ready: {}", plane.url());

    signals.next().await?;
    // Who asks twice does not want to wait, and learns by the exit code that it was not orderly.
    tokio::spawn(async move {
        if signals.next().await.is_ok() {
            std::process::exit(1);
        }
    });
    plane.stop().await;
    Ok(())
}

fn config(
    options: &Options,
    root: Option<&Path>,
    data: Option<PathBuf>,
    admins: Option<&Admins>,
) -> anyhow::Result<Config> {
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    let mut users: Vec<_> = admins.into_iter().flat_map(Admins::users).cloned().collect();
    if let Some(file) = text(&options.token_auth_file) {
        users.extend(token_file::read(Path::new(&file))?);
    }
    let cert_dir = options.cert_dir.as_deref().map(Path::new).or(root);
    let serving = match (text(&options.tls_cert_file), text(&options.tls_private_key_file), cert_dir) {
        (Some(certificate), Some(key), _) => {
            Some(ServingFiles { certificate: certificate.into(), key: key.into(), make: false })
        }
        (None, None, Some(folder)) => {
            fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
            let file = |name: &str| folder.join(name);
            Some(ServingFiles { certificate: file("apiserver.crt"), key: file("apiserver.key"), make: true })
        }
        (None, None, None) => None,
        _ => anyhow::bail!("--tls-cert-file and --tls-private-key-file must both be given"),
    };
    let port = u16::try_from(options.secure_port).unwrap_or_default();
    let host = options.bind_address;
    Ok(Config {
        bind: SocketAddr::new(host, port),
        external_host: host.is_unspecified().then(|| outside(host).to_string()),
        data_dir: data,
        users,
        client_ca: text(&options.client_ca_file).map(PathBuf::from),
        serving,
        advertised: Advertised {
            base: text(&options.shard_base_url),
            external: text(&options.shard_external_url),
            virtual_workspaces: text(&options.shard_virtual_workspace_url),
        },
        ..Config::new(Mode::Kcp)
    })
}

async fn start(config: Config) -> anyhow::Result<Plane> {
    Plane::start(config).await.map_err(|error| match error {
        PlaneError::Bind { address, source } => {
            let why = token_file::reason(&source);
            anyhow::anyhow!(
                "failed to create listener: failed to listen on {address}: listen tcp {address}: bind: {why}"
            )
        }
        PlaneError::ClientCa { path, why } | PlaneError::Serving { path, why } => {
            anyhow::anyhow!("open {path}: {}", token_file::reason(&std::io::Error::other(why)))
        }
        other => other.into(),
    })
}

/// The root directory, which is made for its owner only; none if it is empty.
fn root(path: &str) -> anyhow::Result<Option<PathBuf>> {
    if path.is_empty() {
        return Ok(None);
    }
    let path = std::path::absolute(path)?;
    if path.is_dir() {
        return Ok(Some(path));
    }
    if path.exists() {
        anyhow::bail!("{:?} is a file, please delete or select another location", path.display().to_string());
    }
    fs::create_dir_all(&path).with_context(|| format!("cannot create the folder {}", path.display()))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(Some(path))
}

/// Makes and locks the data folder, unless a real etcd has used it.
fn claim(data: &Path) -> anyhow::Result<fs::File> {
    if data.join("member").exists() {
        anyhow::bail!(
            "{} holds data of a real kcp, which a plane cannot read; give --root-directory another folder",
            data.display()
        );
    }
    fs::create_dir_all(data).with_context(|| format!("cannot create the folder {}", data.display()))?;
    lock::take(data, "--root-directory")
}

/// The address by which others reach this machine: that of the interface with the default route. Nothing is sent.
fn outside(any: IpAddr) -> IpAddr {
    let far = if any.is_ipv4() { "192.0.2.1:9" } else { "[2001:db8::1]:9" };
    let found = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(far)?;
        socket.local_addr()
    });
    found.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
}

fn help() -> String {
    let mut text = String::from(HELP);
    text.push_str("\nTaken, without effect:\n");
    for ignored in ignored::IGNORED {
        text.push_str("  because ");
        text.push_str(ignored.reason);
        text.push_str(":\n");
        for name in ignored.switches.iter().chain(ignored.values) {
            text.push_str("    --");
            text.push_str(name);
            text.push('\n');
        }
    }
    text
}

const HELP: &str = "\
Serve an embedded kcp in place of `kcp start`, from the same arguments, for development and tests.

Examples:
  carrick plane --as-kcp start
  carrick plane --as-kcp start --root-directory ./kcp --bind-address 127.0.0.1 --secure-port 6443 --token-auth-file ./tokens.csv

With effect:
  --root-directory string                    folder for everything (default \".kcp\"); \"\" means that no files are written
  --bind-address ip                          address to listen on (default 0.0.0.0)
  --secure-port int                          port to listen on (default 6443)
  --experimental-bind-free-port              listen on a free port; needs --secure-port=0
  --token-auth-file string                   users: token,name,uid,\"group1,group2\" in each line
  --client-ca-file string                    authorities whose client certificates are accepted
  --cert-dir string                          folder of apiserver.crt and apiserver.key, which are made if missing (default: the root directory)
  --tls-cert-file, --tls-private-key-file    certificate and key of your own instead
  --kubeconfig-path string                   where to write admin.kubeconfig (default: in the root directory)
  --authentication-admin-token-path string   where to keep the hash of shard-admin's token (default: in the root directory)
  --batteries-included strings               admin writes admin.kubeconfig, user adds a user to it; workspace-types is always there
  --embedded-etcd-directory string           folder for data (default: etcd-server in the root directory)
  --shard-base-url string                    address in kubeconfigs and of the shard
  --shard-external-url string                address of workspaces
  --shard-virtual-workspace-url string       address of virtual workspaces
  --shard-name string                        only \"root\"
  -v, --v level                              4 and more logs what happens
  -h, --help                                 this text
";
