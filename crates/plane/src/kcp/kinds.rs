//! kcp's own kinds, served in every cluster. Their definitions are the YAML documents beside this file.

use std::sync::{Arc, LazyLock};

use carrick_kcp::convert;
use serde_json::{Value, json};

use crate::resource::{Convert, Origin, Resource};

const DOCUMENTS: [(&str, Option<Convert>); 10] = [
    (include_str!("kinds/apiresourceschemas.yaml"), None),
    (include_str!("kinds/apiexports.yaml"), Some(convert::export)),
    (include_str!("kinds/apibindings.yaml"), Some(convert::binding)),
    (include_str!("kinds/apiexportendpointslices.yaml"), None),
    (include_str!("kinds/logicalclusters.yaml"), None),
    (include_str!("kinds/shards.yaml"), None),
    (include_str!("kinds/workspaces.yaml"), None),
    (include_str!("kinds/workspacetypes.yaml"), None),
    (include_str!("kinds/partitions.yaml"), None),
    (include_str!("kinds/partitionsets.yaml"), None),
];

/// A document that cannot be read is left out with an error in the log; a test proves that all can be read.
static PARSED: LazyLock<Vec<(Value, Arc<Resource>)>> = LazyLock::new(|| {
    let read = |(text, convert): (&str, Option<Convert>)| -> Result<_, String> {
        let document: Value = carrick_json::yaml::value(text).map_err(|error| error.to_string())?;
        let mut resource = Resource::from_crd(&document).map_err(|error| error.to_string())?;
        resource.origin = Origin::System;
        resource.established = true;
        resource.convert = convert;
        Ok((document, Arc::new(resource)))
    };
    let report = |error: &String| tracing::error!(%error, "cannot read a system kind");
    DOCUMENTS.into_iter().filter_map(|document| read(document).inspect_err(report).ok()).collect()
});

/// All system kinds.
pub fn system() -> Vec<Arc<Resource>> {
    PARSED.iter().map(|(_, resource)| resource.clone()).collect()
}

/// The system kinds of a group as APIResourceSchemas, for the export that offers them.
pub fn schemas(group: &str) -> Vec<Value> {
    let documents = PARSED.iter().map(|(document, _)| document);
    documents
        .filter(|document| document["spec"]["group"] == group)
        .map(|document| {
            let mut spec = document["spec"].clone();
            for version in spec["versions"].as_array_mut().into_iter().flatten() {
                version["schema"] = version["schema"]["openAPIV3Schema"].take();
            }
            let name = format!("v1.{}.{group}", spec["names"]["plural"].as_str().unwrap_or_default());
            json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": name}, "spec": spec})
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_kind_is_served_in_its_versions() {
        let served: Vec<String> = system()
            .iter()
            .map(|r| {
                let versions: Vec<&str> = r.versions.iter().map(|v| &*v.name).collect();
                format!("{} {}", crate::status::qualified(&r.group, &r.plural), versions.join(","))
            })
            .collect();
        assert_eq!(
            served,
            [
                "apiresourceschemas.apis.kcp.io v1alpha1",
                "apiexports.apis.kcp.io v1alpha2,v1alpha1",
                "apibindings.apis.kcp.io v1alpha2,v1alpha1",
                "apiexportendpointslices.apis.kcp.io v1alpha1",
                "logicalclusters.core.kcp.io v1alpha1",
                "shards.core.kcp.io v1alpha1",
                "workspaces.tenancy.kcp.io v1alpha1",
                "workspacetypes.tenancy.kcp.io v1alpha1",
                "partitions.topology.kcp.io v1alpha1",
                "partitionsets.topology.kcp.io v1alpha1",
            ]
        );
    }

    #[test]
    fn the_definitions_are_valid() {
        for (document, resource) in PARSED.iter() {
            let mut document = document.clone();
            crate::definition::decode(&mut document, &mut Vec::new()).unwrap();
            crate::definition::complete(&mut document);
            document["status"]["storedVersions"] = crate::definition::stored_versions(&document, None);
            assert_eq!(crate::definition::faults(&document, None), [], "{resource:?}");
        }
    }

    #[test]
    fn workspaces_show_type_region_phase_and_url() {
        let all = system();
        let workspaces = all.iter().find(|r| &*r.plural == "workspaces").unwrap();
        assert_eq!(workspaces.short_names, ["ws"]);
        let columns: Vec<&str> = workspaces.versions[0].columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(columns, ["Type", "Region", "Phase", "URL", "Age"]);
    }
}
