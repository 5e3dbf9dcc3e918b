//! Counts the keys of every ConfigMap in every workspace that binds an APIExport, and writes the number into an annotation.
//!
//! ```text
//! KUBECONFIG=provider.kubeconfig cargo run -p example-configmaps -- my-export
//! ```
//!
//! The export has to claim `configmaps`, and consumers have to accept the claim.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use carrick_multicluster::providers::kcp::ApiExport;
use carrick_multicluster::{Action, Context, MultiClusterController};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, Config, ResourceExt};

const KEYS: &str = "example.com/keys";

async fn count(map: Arc<ConfigMap>, context: Context<()>) -> Result<Action, kube::Error> {
    let keys = map.data.as_ref().map_or(0, std::collections::BTreeMap::len).to_string();
    if map.annotations().get(KEYS) != Some(&keys) {
        let maps = Api::<ConfigMap>::namespaced(context.cluster.client(), &map.namespace().unwrap_or_default());
        let patch = serde_json::json!({"metadata": {"annotations": {KEYS: keys}}});
        maps.patch(&map.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(Action::await_change())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().init();
    let slice = std::env::args().nth(1).context("say which APIExportEndpointSlice: configmaps <name>")?;
    let export = ApiExport::from_config(Config::infer().await?, slice)?;
    MultiClusterController::<ConfigMap>::new(export, watcher::Config::default())
        .shutdown_on_signal()
        .run(count, |_, _, _| Action::requeue(Duration::from_secs(5)), Arc::new(()))
        .for_each(|result| async move {
            match result {
                Ok((request, _)) => println!("{request}"),
                Err(error) => eprintln!("{error}"),
            }
        })
        .await;
    Ok(())
}
