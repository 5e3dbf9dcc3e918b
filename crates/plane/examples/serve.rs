//! Serves a plane until interrupted: `serve [kube|kcp] [kubeconfig file] [data folder]`.

use std::path::PathBuf;

use carrick_plane::{Config, Mode, Plane};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (mode, admin) = match arguments.next().as_deref() {
        None | Some("kube") => (Mode::Kube, "admin"),
        Some("kcp") => (Mode::Kcp, "kcp-admin"),
        Some(other) => return Err(format!("unknown mode {other:?}: say kube or kcp").into()),
    };
    let file = arguments.next();
    let mut config = Config::new(mode);
    config.data_dir = arguments.next().map(PathBuf::from);
    let plane = Plane::start(config).await?;
    let kubeconfig = plane.kubeconfig(admin, None);
    match file {
        Some(file) => std::fs::write(file, kubeconfig)?,
        None => println!("{kubeconfig}"),
    }
    eprintln!("serving at {}; press Ctrl-C to stop", plane.url());
    tokio::signal::ctrl_c().await?;
    plane.stop().await;
    Ok(())
}
