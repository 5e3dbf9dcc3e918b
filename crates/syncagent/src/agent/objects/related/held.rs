//! Objects in a consumer's workspace that are held together with a primary, known from the remembered state alone.

use std::sync::Arc;

use carrick_client::{Client, Error};
use carrick_sync::executor::refusal::is_unserved;
use serde_json::Value;

use crate::agent::objects::related::kinds::resource;
use crate::agent::objects::related::withheld::Reaching;
use crate::decide::ObjectAddress;
use crate::decide::state::{PrimaryState, RememberedObject};
use crate::rules::ApiKind;
use crate::rules::metadata::{KCP_SIDE, SourceKey};

/// Reads their current state, except for those that another primary needs. This works without rules, which may be gone or changed.
///
/// Objects with a record are skipped if the primary is being deleted: they are released together with their copies.
pub(in crate::agent::objects) async fn read(
    kcp: &Client,
    state: &PrimaryState,
    primary: &SourceKey,
    deleting: bool,
    is_needed: impl Fn(&ObjectAddress) -> bool,
    reach: Reaching<'_>,
) -> Result<Vec<(ObjectAddress, Value)>, Error> {
    let recorded = state.records().map(|(_, record)| &record.origin);
    let mut addresses: Vec<ObjectAddress> = recorded.filter(|at| at.side == KCP_SIDE && !deleting).cloned().collect();
    for object in state.others_of_consumer(primary) {
        let Some(kind) = kind_of(kcp, &object).await? else { continue };
        addresses.push(ObjectAddress {
            side: KCP_SIDE,
            namespace: kind.namespaced.then_some(object.namespace),
            name: object.name,
            kind: Arc::new(kind),
        });
    }
    let mut found = Vec::new();
    for at in addresses.into_iter().filter(|at| !is_needed(at)) {
        match kcp.get(&resource(&at.kind), at.namespace.as_deref(), &at.name).await {
            Err(error) if reach.is_lost(&at, &error).await => {}
            read => found.extend(read?.map(|read| (at, read))),
        }
    }
    Ok(found)
}

/// The kind of a remembered object; none if the server does not have it.
pub(in crate::agent::objects) async fn kind_of(
    client: &Client,
    object: &RememberedObject,
) -> Result<Option<ApiKind>, Error> {
    let (group, version) = object.api_version.split_once('/').unwrap_or(("", &object.api_version));
    let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let list = match client.raw_get(&path).await {
        Err(error) if is_unserved(&error) => return Ok(None),
        list => list?,
    };
    let named = |entry: &&Value| entry["kind"] == *object.kind && !entry["name"].as_str().unwrap_or("/").contains('/');
    let found = list["resources"].as_array().into_iter().flatten().find(named);
    Ok(found.map(|entry| ApiKind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: object.kind.clone(),
        plural: entry["name"].as_str().unwrap_or_default().to_owned(),
        namespaced: entry["namespaced"] == true,
    }))
}
