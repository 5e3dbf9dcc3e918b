//! Both halves of a backend: what consumers ask over HTTP, and what is done with the objects.

use std::sync::Arc;

use carrick_process::Page;
use http::StatusCode;
use tokio_util::sync::CancellationToken;

use crate::agent::{self, BackendConfig, BackendError, Clusters};
use crate::http::{Front, FrontError, HttpConfig};
use crate::provider::Provider;

/// Why a backend ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The front cannot be opened.
    #[error(transparent)]
    Front(#[from] FrontError),
    /// What is done with objects has ended.
    #[error(transparent)]
    Agent(#[from] BackendError),
}

/// Runs a backend until it is told to stop, which is no error. Every replica answers requests; one of them does the rest. Without a front there is
/// only `/healthz` and `/readyz`.
pub async fn run(config: BackendConfig, front: Option<HttpConfig>, stop: CancellationToken) -> Result<(), RunError> {
    let stop = stop.child_token();
    // Whatever ends first ends the others too.
    let _end = stop.clone().drop_guard();
    let clusters = Arc::new(Clusters::start(&config, &stop));
    let listener = match &config.listen_address {
        Some(address) => Some(carrick_process::bind(address, "--listen-address").await.map_err(BackendError::from)?),
        None => None,
    };
    match (listener, front) {
        (Some(listener), Some(front)) => {
            let front = Front::open(front, Arc::clone(&clusters)).await?;
            tokio::spawn(front.serve(listener, stop.clone()));
        }
        (Some(listener), None) => {
            let clusters = Arc::clone(&clusters);
            tokio::spawn(carrick_process::serve(listener, move |target| health(target, &*clusters), stop.clone()));
        }
        (None, _) => {}
    }
    Ok(agent::lead(&config, &clusters, &stop).await?)
}

fn health(target: &str, provider: &impl Provider) -> Page {
    match target.split('?').next().unwrap_or_default() {
        "/readyz" => match provider.problem() {
            Some(problem) => Page::text(StatusCode::SERVICE_UNAVAILABLE, problem),
            None => Page::text(StatusCode::OK, "ok"),
        },
        "/healthz" => Page::text(StatusCode::OK, "ok"),
        path => Page::missing(path),
    }
}
