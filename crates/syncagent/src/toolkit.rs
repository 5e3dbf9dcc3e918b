//! What the agent would publish, without an agent: for authors of PublishedResources.

use carrick_client::discovery::find_kind;
use carrick_client::{Client, Error};
use carrick_json::manifest;
pub use carrick_schema::evolution::Loss;
use serde_json::{Value, json};
use thiserror::Error;

use crate::agent::catalog::{describe, fetch_crd};
use crate::api::{self, GROUP, PublishedResource, VERSION};
use crate::rules::conversion::ConversionError;
use crate::rules::crd::{API_APPROVED, Crd, CrdError};
use crate::rules::projection::{ProjectionError, project};
use crate::rules::schema::{self, SchemaError};
use crate::rules::{RuleError, Rules, exposure, fields, implements, proof, report};

/// Agent name in schemas that are only printed.
const AGENT: &str = "pubres-toolkit";

/// Why there is nothing to show.
#[derive(Debug, Error)]
pub enum ToolkitError {
    /// The document is not a PublishedResource.
    #[error("not a PublishedResource of {GROUP}/{VERSION}: {0}")]
    Document(String),
    /// An API server would refuse the PublishedResource.
    #[error("PublishedResource {name:?} is not valid: {problems}")]
    Invalid {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problems: String,
    },
    /// There are several where one is wanted.
    #[error("there are several PublishedResources: {0}; put the one you mean into a file of its own")]
    Several(String),
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

/// The PublishedResources in a manifest, which may hold other objects, too.
pub fn parse_all(text: &str) -> Result<Vec<PublishedResource>, ToolkitError> {
    let objects = manifest::objects(text).map_err(|error| ToolkitError::Document(error.to_string()))?;
    let is_one =
        |object: &Value| object["apiVersion"] == format!("{GROUP}/{VERSION}") && object["kind"] == "PublishedResource";
    let kinds: Vec<String> =
        objects.iter().map(|object| format!("{} of {}", object["kind"], object["apiVersion"])).collect();
    let mut found = Vec::new();
    for mut object in objects.into_iter().filter(is_one) {
        manifest::drop_nulls(&mut object);
        found.push(published(object)?);
    }
    if found.is_empty() {
        let instead =
            if kinds.is_empty() { "it is empty".to_owned() } else { format!("it holds {}", kinds.join(", ")) };
        return Err(ToolkitError::Document(instead));
    }
    Ok(found)
}

/// The only PublishedResource in a manifest.
pub fn parse(text: &str) -> Result<PublishedResource, ToolkitError> {
    let mut all = parse_all(text)?;
    if all.len() > 1 {
        let names: Vec<&str> = all.iter().map(|pr| pr.metadata.name.as_str()).collect();
        return Err(ToolkitError::Several(names.join(", ")));
    }
    Ok(all.remove(0))
}

/// A PublishedResource as somebody wrote it; what an API server would refuse is refused.
pub fn published(object: Value) -> Result<PublishedResource, ToolkitError> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let problems = api::problems(&object);
    if !problems.is_empty() {
        return Err(ToolkitError::Invalid { name, problems: problems.join("; ") });
    }
    serde_json::from_value(object).map_err(|error| ToolkitError::Invalid { name, problems: error.to_string() })
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
    let doubtful = fields::doubts(pr, &crd)
        .into_iter()
        .chain(proof::doubts(pr, &crd))
        .chain(exposure::doubts(pr, &crd))
        .chain(report::doubts(pr, &crd))
        .chain(implements::proof::doubts(pr, &crd));
    let doubtful = doubtful.map(|doubt| format!("doubtful: {doubt}"));
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

    const GOOD: &str = "apiVersion: syncagent.kcp.io/v1alpha1\nkind: PublishedResource\nmetadata: {name: a}\nspec:\n  \
                        resource: {apiGroup: '', kind: ConfigMap, versions: [v1]}\n";

    #[test]
    fn documents_that_are_not_published_resources_are_refused() {
        assert_eq!(parse(GOOD).unwrap().spec.resource.kind, "ConfigMap");
        for bad in ["", "[", "kind: ConfigMap", "apiVersion: v1\nkind: PublishedResource"] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.starts_with("not a PublishedResource of syncagent.kcp.io/v1alpha1"), "{error}");
        }
    }

    #[test]
    fn what_kubectl_applies_is_read() {
        // A key with nothing below, another object before it, and a namespace where there is none.
        let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n---\n";
        let text = format!("{role}{}  related:\n  mutation: ~\n", GOOD.replace("{name: a}", "{name: a, namespace: b}"));
        assert_eq!(parse(&text).unwrap().spec.related, Vec::new());
        let two = format!("{GOOD}---\n{}", GOOD.replace("name: a", "name: b"));
        assert_eq!(parse_all(&two).unwrap().len(), 2);
        assert!(parse(&two).unwrap_err().to_string().contains("several PublishedResources: a, b; put"));
        let slip = parse(&GOOD.replace("versions", "verison")).unwrap_err().to_string();
        assert!(
            slip.starts_with(
                "PublishedResource \"a\" is not valid: unknown field \"spec.resource.verison\" (spec.resource has"
            ),
            "{slip}"
        );
    }
}
