//! Versions in kcp that differ from those of the CRD.

use serde_json::{Value, json};
use thiserror::Error;

use crate::api::{Conversion, ConversionWebhook, PublishedVersion};
use crate::rules::crd::Version;

/// Why a version of `spec.conversion.versions` cannot be published.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("spec.conversion.versions: {name}: {problem}")]
pub struct VersionError {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Adds and changes versions as `spec.conversion.versions` says.
pub(super) fn publish(conversion: &Conversion, versions: &mut Vec<Version>) -> Result<(), VersionError> {
    let mut stored = None;
    for entry in &conversion.versions {
        let wrong = |problem: String| VersionError { name: entry.name().to_owned(), problem };
        let read: Version = serde_json::from_value(entry.0.clone()).map_err(|error| wrong(error.to_string()))?;
        if read.storage && stored.replace(read.name.clone()).is_some() {
            return Err(wrong("several versions with storage: true; choose one".to_owned()));
        }
        match versions.iter_mut().find(|version| version.name == read.name) {
            Some(known) => replace(known, entry, read),
            None if read.schema.as_ref().is_none_or(|schema| schema.open_api_v3_schema.is_none()) => {
                let problem = "the CRD has no such version, so that schema.openAPIV3Schema is needed here".to_owned();
                return Err(wrong(problem));
            }
            None => versions.push(Version { served: entry.0["served"] != false, ..read }),
        }
    }
    if let Some(stored) = stored {
        for version in versions.iter_mut() {
            version.storage = version.name == stored;
        }
    }
    Ok(())
}

/// Replaces the fields that are given.
fn replace(known: &mut Version, PublishedVersion(entry): &PublishedVersion, read: Version) {
    let given = |key: &str| entry.get(key).is_some_and(|value| !value.is_null());
    if given("served") {
        known.served = read.served;
    }
    if given("storage") {
        known.storage = read.storage;
    }
    if given("deprecated") {
        known.deprecated = read.deprecated;
    }
    if given("deprecationWarning") {
        known.deprecation_warning = read.deprecation_warning;
    }
    if given("schema") {
        known.schema = read.schema;
    }
    if given("subresources") {
        known.subresources = read.subresources;
    }
    if given("additionalPrinterColumns") {
        known.additional_printer_columns = read.additional_printer_columns;
    }
}

/// `spec.conversion` of an APIResourceSchema.
pub(super) fn webhook(webhook: &ConversionWebhook) -> Value {
    let mut client = json!({ "url": webhook.url });
    if !webhook.ca_bundle.is_empty() {
        client["caBundle"] = webhook.ca_bundle.clone().into();
    }
    json!({ "strategy": "Webhook", "webhook": { "clientConfig": client, "conversionReviewVersions": ["v1"] } })
}
