//! Objects that our finalizer holds, and how they are let go.

use carrick_bind_api::names::SYNCER_FINALIZER;
use carrick_client::{Client, Error, ListOptions, Resource};
use carrick_sync::executor::refusal::{Access, is_settled, is_unserved};
use serde_json::Value;

use crate::agent::writer::Writer;

/// The objects of a CRD, in the version in which it stores them or else in one that it serves.
pub(in crate::agent) fn resource(crd: &Value) -> Option<Resource> {
    let spec = &crd["spec"];
    let mut served: Vec<&Value> =
        spec["versions"].as_array()?.iter().filter(|version| version["served"] == true).collect();
    served.sort_by_key(|version| version["storage"] != true);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, version) = (text(&spec["group"]), text(&served.first()?["name"]));
    let (kind, plural) = (text(&spec["names"]["kind"]), text(&spec["names"]["plural"]));
    Some(if spec["scope"] == "Namespaced" {
        Resource::namespaced(&group, &version, &kind, &plural)
    } else {
        Resource::cluster_wide(&group, &version, &kind, &plural)
    })
}

/// The objects that our finalizer holds.
pub(in crate::agent) async fn held(client: &Client, crd: &Value) -> Result<Vec<(Resource, Value)>, Error> {
    held_by(client, crd, SYNCER_FINALIZER).await
}

/// The objects that a finalizer holds.
pub(in crate::agent) async fn held_by(
    client: &Client,
    crd: &Value,
    finalizer: &str,
) -> Result<Vec<(Resource, Value)>, Error> {
    Ok(all(client, crd).await?.into_iter().filter(|(_, object)| is_held_by(object, finalizer)).collect())
}

/// Whether a finalizer holds an object.
pub(in crate::agent) fn is_held_by(object: &Value, finalizer: &str) -> bool {
    finalizers(object).iter().any(|it| it == finalizer)
}

/// All objects of a CRD, their metadata only.
pub(in crate::agent) async fn all(client: &Client, crd: &Value) -> Result<Vec<(Resource, Value)>, Error> {
    let Some(resource) = resource(crd) else { return Ok(Vec::new()) };
    let all = match client.metadata_only().list(&resource, None, &ListOptions::default()).await {
        // The server serves it no more, or not yet.
        Err(error) if is_unserved(&error) => Vec::new(),
        all => all?,
    };
    Ok(all.into_iter().map(|object| (resource.clone(), object)).collect())
}

/// Takes our finalizer off an object.
pub(in crate::agent) async fn release(writer: &Writer, resource: &Resource, object: &Value) -> Result<(), Error> {
    release_of(writer, resource, object, SYNCER_FINALIZER).await
}

/// Takes a finalizer off an object.
pub(in crate::agent) async fn release_of(
    writer: &Writer,
    resource: &Resource,
    object: &Value,
    finalizer: &str,
) -> Result<(), Error> {
    let mut left = finalizers(object).to_vec();
    left.retain(|it| it != finalizer);
    match writer.finalizers(resource, object, &left).await {
        Err(error) if is_settled(&error, Access::LetGo) => Ok(()),
        written => written,
    }
}

fn finalizers(object: &Value) -> &[Value] {
    object["metadata"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_read_in_a_version_that_is_served() {
        let version =
            |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage});
        let crd = |versions: Value| {
            json!({"spec": {"group": "wild.io", "scope": "Namespaced", "names": {"plural": "sheriffs", "kind": "Sheriff"},
                "versions": versions}})
        };
        let read = |versions: Value| resource(&crd(versions)).map(|resource| resource.version.to_string());
        assert_eq!(read(json!([version("v1", true, false), version("v2", true, true)])).as_deref(), Some("v2"));
        assert_eq!(read(json!([version("v1", true, false), version("v2", false, true)])).as_deref(), Some("v1"));
        assert_eq!(read(json!([version("v2", false, true)])), None);
    }
}
