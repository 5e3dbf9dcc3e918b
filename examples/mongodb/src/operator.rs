//! The whole operator: which objects are watched where, and what is done about them.

use std::sync::Arc;
use std::time::Duration;

use carrick_multicluster::providers::Single;
use carrick_multicluster::{Action, Fleet, MultiClusterController};
use futures::StreamExt;
use kube::runtime::watcher;

use crate::api::MongoDBCommunity;
use crate::sync::{CLUSTER, Settings, origin, sync, tell};

/// Runs until told to stop by a signal or dropped.
pub async fn run(fleet: &Fleet, settings: Settings) {
    let copies = Single::new("target", settings.target.clone());
    MultiClusterController::<MongoDBCommunity>::on(fleet, watcher::Config::default())
        .watches_from(copies, watcher::Config::default().labels(CLUSTER), |_, copy: &MongoDBCommunity| origin(copy))
        .shutdown_on_signal()
        .run_keyed(
            |request, up, context| async move {
                let result = sync(request, up.clone(), context.clone()).await;
                if let (Some(up), Err(error)) = (up, &result) {
                    tell(&up, &context, error).await;
                }
                result
            },
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            Arc::new(settings),
        )
        .for_each(|result| async move {
            match result {
                Ok((request, _)) => tracing::info!(%request, "in sync"),
                Err(error) => tracing::warn!(%error, "not in sync"),
            }
        })
        .await;
}
