//! What the agent would publish, without an agent: for authors of PublishedResources.

use carrick_client::discovery::find_kind;
use carrick_client::{Client, Error};
pub use carrick_evolution::Loss;
use serde_json::{Value, json};
use thiserror::Error;

use crate::agent::catalog::{describe, fetch_crd};
use crate::api::{GROUP, PublishedResource, VERSION};
use crate::rules::conversion::ConversionError;
use crate::rules::crd::{API_APPROVED, Crd, CrdError};
use crate::rules::projection::{ProjectionError, project};
use crate::rules::schema::{self, SchemaError};
use crate::rules::{RuleError, Rules, fields, proof};

/// Agent name in schemas that are only printed.
const AGENT: &str = "pubres-toolkit";

/// Why there is nothing to show.
#[derive(Debug, Error)]
pub enum ToolkitError {
    /// The document is not a PublishedResource.
    #[error("not a PublishedResource of {GROUP}/{VERSION}: {0}")]
    Document(String),
    /// The service cluster cannot be asked.
    #[error("cannot look up {kind}.{group}: {source}")]
    Request {
        /// Kind.
        kind: String,
        /// API group.
        group: String,
        /// What went wrong.
        source: Box<Error>,
    },
    /// The kind does not exist.
    #[error("could not find {kind}.{group} in APIs; install its CRD, or correct spec.resource")]
    Missing {
        /// Kind.
        kind: String,
        /// API group.
        group: String,
    },
    /// The kind has no CRD, and OpenAPI does not describe it well enough.
    #[error("{0}")]
    OpenApi(String),
    /// The CRD cannot be read.
    #[error(transparent)]
    Crd(#[from] CrdError),
    /// The projection does not fit the CRD.
    #[error("failed to apply projection rules: {0}")]
    Projection(#[from] ProjectionError),
    /// The CRD cannot become an APIResourceSchema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The rules are not valid.
    #[error(transparent)]
    Rules(#[from] RuleError),
    /// An object cannot be converted.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
}

/// Reads a PublishedResource from YAML or JSON.
pub fn parse(document: &str) -> Result<PublishedResource, ToolkitError> {
    let wrong = |problem: String| ToolkitError::Document(problem);
    let object: Value = carrick_json::yaml::value(document).map_err(|error| wrong(error.to_string()))?;
    let wanted = (format!("{GROUP}/{VERSION}"), "PublishedResource");
    if object["apiVersion"] != wanted.0 || object["kind"] != wanted.1 {
        return Err(wrong(format!("its apiVersion is {} and its kind {}", object["apiVersion"], object["kind"])));
    }
    serde_json::from_value(object).map_err(|error| wrong(error.to_string()))
}

/// The CRD of the published kind, as it is on the service cluster or as it looks in kcp.
pub async fn crd(local: &Client, pr: &PublishedResource, projected: bool) -> Result<Value, ToolkitError> {
    let crd = definition(local, pr).await?;
    let crd = if projected { project(pr, &crd)? } else { crd };
    let mut metadata = json!({ "name": crd.name });
    if let Some(approval) = &crd.approved {
        metadata["annotations"] = json!({ API_APPROVED: approval });
    }
    let mut spec = serde_json::to_value(&crd.spec).map_err(SchemaError::Encode)?;
    spec["conversion"] = crd.spec.conversion.clone().unwrap_or_else(|| json!({ "strategy": "None" }));
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }))
}

/// The APIResourceSchema that an agent would create, optionally without projection.
pub async fn resource_schema(local: &Client, pr: &PublishedResource, projected: bool) -> Result<Value, ToolkitError> {
    let crd = definition(local, pr).await?;
    let crd = if projected { project(pr, &crd)? } else { crd };
    Ok(schema::build(&crd, AGENT)?)
}

/// What the conversion rules of a PublishedResource lose, tried on objects that the schemas allow.
pub fn losses(pr: &PublishedResource, crd: &Value) -> Result<Vec<Loss>, ToolkitError> {
    let crd = Crd::from_json(crd)?;
    Rules::compile(pr, &crd, AGENT)?;
    Ok(proof::losses(pr, &crd))
}

/// An object in another version, by the rules of a PublishedResource.
pub fn convert(pr: &PublishedResource, crd: &Value, object: &Value, to: &str) -> Result<Value, ToolkitError> {
    let rules = Rules::compile(pr, &Crd::from_json(crd)?, AGENT)?;
    Ok(rules.conversions.convert(object, to)?)
}

/// What is wrong with the rules of a PublishedResource, or doubtful, as far as its CRD can tell.
pub async fn doubts(local: &Client, pr: &PublishedResource) -> Result<Vec<String>, ToolkitError> {
    let crd = definition(local, pr).await?;
    let rules = Rules::compile(pr, &crd, AGENT).and_then(|rules| rules.admitting(pr, &project(pr, &crd)?));
    let invalid = rules.err().map(|error| format!("not valid: {error}"));
    let doubtful =
        fields::doubts(pr, &crd).into_iter().chain(proof::doubts(pr, &crd)).map(|doubt| format!("doubtful: {doubt}"));
    Ok(invalid.into_iter().chain(doubtful).collect())
}

/// The CRD of the published kind, or one built from the API server's description of the kind.
async fn definition(local: &Client, pr: &PublishedResource) -> Result<Crd, ToolkitError> {
    let (group, kind) = (&pr.spec.resource.api_group, &pr.spec.resource.kind);
    let failed = |source| ToolkitError::Request { kind: kind.clone(), group: group.clone(), source: Box::new(source) };
    let found = find_kind(local, group, kind).await.map_err(failed)?;
    let found = found.ok_or_else(|| ToolkitError::Missing { kind: kind.clone(), group: group.clone() })?;
    if let Some(object) = fetch_crd(local, &format!("{}.{group}", found.plural)).await.map_err(failed)? {
        return Ok(Crd::from_text(&object.bytes())?);
    }
    describe(local, found).await.map_err(failed)?.map_err(ToolkitError::OpenApi)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_are_not_published_resources_are_refused() {
        let good = "apiVersion: syncagent.kcp.io/v1alpha1\nkind: PublishedResource\nspec: {resource: {apiGroup: '', kind: ConfigMap}}";
        assert_eq!(parse(good).unwrap().spec.resource.kind, "ConfigMap");
        for bad in ["", "[", "kind: ConfigMap", "apiVersion: v1\nkind: PublishedResource"] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.starts_with("not a PublishedResource of syncagent.kcp.io/v1alpha1"), "{error}");
        }
    }
}
