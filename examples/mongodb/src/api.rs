//! The API that is carried, as Rust types, and as a CRD for the service cluster.

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What a consumer orders. Only the fields that this example uses are typed; the rest is kept as it is.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "mongodbcommunity.mongodb.com",
    version = "v1",
    kind = "MongoDBCommunity",
    plural = "mongodbcommunity",
    status = "MongoDBCommunityStatus",
    schema = "disabled",
    namespaced
)]
pub struct MongoDBCommunitySpec {
    /// How many members the replica set has.
    #[serde(default = "one")]
    pub members: i32,
    /// Kind of deployment.
    #[serde(rename = "type")]
    pub type_: String,
    /// Version of MongoDB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

fn one() -> i32 {
    1
}

/// What the operator on the service cluster reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MongoDBCommunityStatus {
    /// `Pending`, `Running` or `Failed`.
    pub phase: String,
    /// Where to connect.
    pub mongo_uri: String,
    /// Members of the replica set that run.
    #[serde(rename = "currentMongoDBMembers")]
    pub current_mongodb_members: i32,
    /// Replicas of the StatefulSet.
    pub current_stateful_set_replicas: i32,
    /// Version that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// More about the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The CRD for the service cluster, made from the APIResourceSchema: both sides have the same schema.
pub fn crd(schema: &Value) -> anyhow::Result<CustomResourceDefinition> {
    let spec = &schema["spec"];
    let versions: Vec<Value> = spec["versions"]
        .as_array()
        .context("the APIResourceSchema has no versions")?
        .iter()
        .map(|version| {
            let mut version = version.clone();
            version["schema"] = json!({"openAPIV3Schema": version["schema"]});
            version
        })
        .collect();
    let name = format!(
        "{}.{}",
        spec["names"]["plural"].as_str().unwrap_or_default(),
        spec["group"].as_str().unwrap_or_default()
    );
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {"group": spec["group"], "names": spec["names"], "scope": spec["scope"], "versions": versions},
    });
    serde_json::from_value(crd).context("the APIResourceSchema cannot be turned into a CRD")
}
