//! The rights that a backend needs for what a cluster offers.

use std::collections::BTreeSet;

use carrick_bind_api::kinds::{API_SERVICE_EXPORT, API_SERVICE_EXPORT_REQUEST, API_SERVICE_EXPORT_TEMPLATE};
use carrick_bind_api::names::EXPORTED_LABEL;
use carrick_client::{Client, Error, ListOptions, Resource};
use carrick_sync::executor::refusal::is_unserved;
use serde_json::Value;

use super::resources;
use crate::decide::roles::{self, Subject};

/// What a backend needs beside the base roles: what is offered here, and what templates, requests and exports claim.
pub async fn of_cluster(client: &Client, subject: &Subject) -> Result<Vec<Value>, Error> {
    let mut kinds = BTreeSet::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let offered = ListOptions::labels(format!("{EXPORTED_LABEL}=true"));
    for crd in list(client, &resources::crds(), &offered).await? {
        kinds.insert((text(&crd["spec"]["group"]), text(&crd["spec"]["names"]["plural"])));
    }
    for kind in [API_SERVICE_EXPORT_TEMPLATE, API_SERVICE_EXPORT_REQUEST, API_SERVICE_EXPORT] {
        for object in list(client, &resources::of(kind), &ListOptions::default()).await? {
            for claim in object["spec"]["permissionClaims"].as_array().into_iter().flatten() {
                kinds.insert((text(&claim["group"]), text(&claim["resource"])));
            }
        }
    }
    Ok(roles::handed_on(&kinds, subject))
}

/// All objects of a kind; none if it is not there yet.
async fn list(client: &Client, resource: &Resource, options: &ListOptions) -> Result<Vec<Value>, Error> {
    match client.list(resource, None, options).await {
        Err(error) if is_unserved(&error) => Ok(Vec::new()),
        all => all,
    }
}
