//! Serves a plane until interrupted.
//!
//! ```text
//! serve [kube|kcp] [--kubeconfig FILE] [--data-dir FOLDER] [--fsync] [--shards N] [--control ADDRESS] [--client-ca FILE]
//! ```

use std::path::PathBuf;

use carrick_plane::{Config, Mode, Plane};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut config = Config::new(Mode::Kube);
    let mut file = None;
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "kube" => config.mode = Mode::Kube,
            "kcp" => config.mode = Mode::Kcp,
            "--kubeconfig" => file = Some(value()?),
            "--data-dir" => config.data_dir = Some(PathBuf::from(value()?)),
            "--fsync" => config.durability.fsync = true,
            "--shards" => config.shards = value()?.parse()?,
            "--control" => config.control = Some(value()?.parse()?),
            "--client-ca" => config.client_ca = Some(PathBuf::from(value()?)),
            other => return Err(format!("unknown argument {other:?}").into()),
        }
    }
    let admin = if config.mode == Mode::Kube { "admin" } else { "kcp-admin" };
    let plane = Plane::start(config).await?;
    let kubeconfig = plane.kubeconfig(admin, None)?;
    match file {
        Some(file) => std::fs::write(file, kubeconfig)?,
        None => println!("{kubeconfig}"),
    }
    for endpoint in plane.endpoints() {
        match endpoint.shard() {
            None => eprintln!("front door at {}", endpoint.url()),
            Some(shard) => eprintln!("shard {shard} at {}", endpoint.url()),
        }
    }
    if let Some(url) = plane.control_url() {
        eprintln!("control endpoint at {url}");
    }
    eprintln!("press Ctrl-C to stop");
    tokio::signal::ctrl_c().await?;
    plane.stop().await;
    Ok(())
}
