//! What platforms say today of the APIs that are implemented here, as far as the login may see it.

use std::collections::BTreeMap;

use carrick_client::{Error, Resource, Server};
use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use carrick_syncagent::api::{ApiOrigin, Implements};
use carrick_syncagent::rules::implements::origin;
use serde_json::Value;

use super::super::facts::{OriginState, Published};
use super::TimedRequests;

impl TimedRequests {
    /// By the name of the PublishedResource. Providers normally may not enter the platform's workspace, and what they may not see is left out.
    pub(super) async fn origins(&self, kcp: &Server, published: &[Published]) -> BTreeMap<String, OriginState> {
        let mut found = BTreeMap::new();
        for one in published {
            let Ok(api) = serde_json::from_value::<Implements>(one.object["spec"]["implements"].clone()) else {
                continue;
            };
            let Some(from) = &api.from else { continue };
            if let Ok(now) = self.within(state(kcp, &api, from)).await {
                found.insert(one.name.clone(), now);
            }
        }
        found
    }
}

async fn state(kcp: &Server, api: &Implements, from: &ApiOrigin) -> Result<OriginState, Error> {
    let client = kcp.at_path(&format!("/clusters/{}", from.path));
    let export: Option<ApiExport> = client.get_newest(&from.export).await?;
    let name =
        export.as_ref().and_then(|export| export.schemas().find(|name| origin::resource_of(name) == api.resource));
    let Some(name) = name else { return Ok(OriginState::Gone) };
    let schema: Option<Value> = client.get(&Resource::from(API_RESOURCE_SCHEMA), None, name).await?;
    let now = schema.as_ref().and_then(origin::read);
    Ok(match now {
        None => OriginState::Gone,
        Some(now) if origin::digest(&now) == from.digest => OriginState::Same,
        Some(_) => OriginState::Changed,
    })
}
