//! The operator alone, for a kcp and a service cluster of yours.

use std::path::PathBuf;

use anyhow::Context as _;
use carrick_multicluster::Fleet;
use carrick_multicluster::providers::kcp::ApiExport;
use clap::Parser;
use example_mongodb::operator;
use example_mongodb::sync::{Cleanup, Placement, Settings};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Carries MongoDBCommunity objects of all workspaces that bind an APIExport to one service cluster, and their status back.
#[derive(Debug, Parser)]
struct Args {
    /// Kubeconfig of the workspace that holds the APIExportEndpointSlice.
    #[arg(long)]
    kcp_kubeconfig: PathBuf,
    /// Name of the APIExportEndpointSlice.
    #[arg(long, default_value = "mongodb")]
    endpoint_slice: String,
    /// Kubeconfig of the service cluster; the cluster this runs in by default.
    #[arg(long)]
    target_kubeconfig: Option<PathBuf>,
    /// Where copies are put.
    #[arg(long, value_enum, default_value = "per-workspace")]
    placement: Placement,
    /// How copies are removed.
    #[arg(long, value_enum, default_value = "finalizer")]
    cleanup: Cleanup,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tracing_subscriber::fmt().init();
    let export = ApiExport::from_config(config(&args.kcp_kubeconfig).await?, args.endpoint_slice)?;
    let target = match &args.target_kubeconfig {
        Some(path) => Client::try_from(config(path).await?)?,
        None => Client::try_from(Config::incluster().context("not in a cluster; give --target-kubeconfig")?)?,
    };
    let fleet = Fleet::builder(export).build();
    operator::run(&fleet, Settings { target, placement: args.placement, cleanup: args.cleanup }).await;
    Ok(())
}

async fn config(path: &PathBuf) -> anyhow::Result<Config> {
    let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(kubeconfig, &options).await.with_context(|| format!("cannot use {}", path.display()))
}
