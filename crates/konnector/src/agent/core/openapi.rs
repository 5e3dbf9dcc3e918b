//! What a provider offers without CRDs: discovery and OpenAPI documents. Their index is read when a watch says that something may have changed, and they
//! are read again when the index says so.

mod schedule;
mod signs;

use std::collections::BTreeMap;
use std::time::Duration;

use carrick_bind_api::core::synthesize::{DiscoveredGroup, crds, is_builtin};
use carrick_client::{Client, Error};
use serde_json::Value;
use tokio::time::Instant;

use crate::agent::notifier::Notifier;
use schedule::Schedule;
use signs::Signs;

/// Where the index of all documents is; it has a hash of each.
const INDEX: &str = "/openapi/v3";

/// What a provider offers by its OpenAPI documents.
#[derive(Default)]
pub(super) struct OpenApi {
    schedule: Schedule,
    signs: Signs,
    index: Value,
    /// What groups there are.
    groups: Value,
    /// The CRDs that were made, by name.
    pub offered: BTreeMap<String, Value>,
    /// Whether every group has answered. What is missing from a partial answer is not gone.
    pub is_complete: bool,
}

impl OpenApi {
    /// Reads what has changed, if it is time. The notifier rings when a watch says that it is.
    pub async fn refresh(&mut self, client: &Client, notifier: &Notifier) -> Result<(), Error> {
        if let Some(is_aggregated) = self.signs.take() {
            self.schedule.changed(Instant::now(), is_aggregated);
        }
        if !self.signs.see_all() {
            self.schedule.is_blind();
        }
        if !self.schedule.is_due(Instant::now()) {
            return Ok(());
        }
        let index = client.raw_get(INDEX).await?;
        if index != self.index || !self.is_complete {
            self.read(client, &index).await?;
            self.index = index;
        }
        self.signs.follow(client, &self.groups, notifier);
        self.schedule.was_read(Instant::now(), self.is_complete);
        Ok(())
    }

    /// In how long it is time, if nothing changes.
    pub fn due_in(&self) -> Duration {
        self.schedule.due_in(Instant::now())
    }

    async fn read(&mut self, client: &Client, index: &Value) -> Result<(), Error> {
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
        (self.offered, self.is_complete, self.groups) = (offered, is_complete, groups);
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
