//! Plays the MongoDB operator on a service cluster that runs no pods.

use std::time::Duration;

use clap::Parser;
use example_mongodb::sim::Sim;

/// Makes the children and the status of MongoDBCommunity objects, as the community operator would. Takes the cluster from KUBECONFIG.
#[derive(Debug, Parser)]
struct Args {
    /// How long a database takes to start, in seconds.
    #[arg(long, default_value_t = 2.0)]
    delay: f64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tracing_subscriber::fmt().init();
    Sim::new(kube::Client::try_default().await?, Duration::try_from_secs_f64(args.delay)?).run().await;
    Ok(())
}
