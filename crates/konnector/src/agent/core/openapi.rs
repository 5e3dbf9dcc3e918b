//! What a provider offers without CRDs: discovery and OpenAPI documents, read again when their index says that something has changed.

use std::collections::BTreeMap;
use std::time::Duration;

use carrick_bind_api::core::lease::RENEWAL_SECONDS;
use carrick_bind_api::core::synthesize::{DiscoveredGroup, crds, is_builtin};
use carrick_client::{Client, Error};
use serde_json::Value;
use tokio::time::Instant;

/// Where the index of all documents is; it has a hash of each.
const INDEX: &str = "/openapi/v3";

/// What a provider offers by its OpenAPI documents.
#[derive(Default)]
pub(super) struct OpenApi {
    last: Option<Instant>,
    index: Value,
    /// The CRDs that were made, by name.
    pub offered: BTreeMap<String, Value>,
    /// Whether every group has answered. What is missing from a partial answer is not gone.
    pub is_complete: bool,
}

/// Why it is not known what a provider offers.
pub(super) struct OpenApiProblem {
    pub words: String,
    pub forbidden: bool,
}

impl From<Error> for OpenApiProblem {
    fn from(error: Error) -> Self {
        Self { words: error.to_string(), forbidden: error.is_forbidden() }
    }
}

impl OpenApi {
    /// Reads what has changed, if it is time: there is nothing to watch.
    pub async fn refresh(&mut self, client: &Client) -> Result<(), OpenApiProblem> {
        let interval = Duration::from_secs(RENEWAL_SECONDS);
        if self.last.is_some_and(|last| last.elapsed() < interval) {
            return Ok(());
        }
        let index = client.raw_get(INDEX).await?;
        if index != self.index || !self.is_complete {
            self.read(client, &index).await?;
            self.index = index;
        }
        self.last = Some(Instant::now());
        Ok(())
    }

    async fn read(&mut self, client: &Client, index: &Value) -> Result<(), OpenApiProblem> {
        let groups = client.raw_get("/apis").await?;
        let (mut offered, mut is_complete) = (BTreeMap::new(), true);
        for group in groups["groups"].as_array().into_iter().flatten() {
            let name = group["name"].as_str().unwrap_or_default();
            if is_builtin(name) {
                continue;
            }
            let (found, is_whole) = read_group(client, index, group, name).await;
            is_complete &= is_whole;
            offered.extend(crds(&found).into_iter().filter_map(|crd| {
                let name = crd["metadata"]["name"].as_str()?.to_owned();
                Some((name, crd))
            }));
        }
        if !is_complete {
            // What did not answer now is as it was.
            for (name, crd) in std::mem::take(&mut self.offered) {
                offered.entry(name).or_insert(crd);
            }
        }
        (self.offered, self.is_complete) = (offered, is_complete);
        Ok(())
    }
}

/// One group, and whether all of it has answered.
async fn read_group(client: &Client, index: &Value, group: &Value, name: &str) -> (DiscoveredGroup, bool) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let preferred = text(&group["preferredVersion"]["version"]);
    let mut found = DiscoveredGroup { name: name.to_owned(), preferred, ..DiscoveredGroup::default() };
    let mut is_whole = true;
    for version in group["versions"].as_array().into_iter().flatten() {
        let version = text(&version["version"]);
        let document = index["paths"][format!("apis/{name}/{version}")]["serverRelativeURL"].as_str();
        let resources = client.raw_get(&format!("/apis/{name}/{version}")).await;
        let document = match document {
            Some(url) => client.raw_get(url).await,
            None => client.raw_get(&format!("{INDEX}/apis/{name}/{version}")).await,
        };
        match (resources, document) {
            (Ok(resources), Ok(document)) => drop(found.versions.insert(version, (resources, document))),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(group = name, version, %error, "A group of the provider does not answer; what it offers stays as it was.");
                is_whole = false;
            }
        }
    }
    (found, is_whole)
}
