//! Group, version, kind and plural of kcp's kinds. All of them are cluster-wide: a workspace is their scope.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::meta::ObjectMeta;

/// Group, version, kind and plural of one API kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kind {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural resource name.
    pub plural: &'static str,
}

impl Kind {
    /// A kind by its four names.
    pub const fn new(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self { group, version, kind, plural }
    }

    /// `group/version`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

/// An object of a kind of kcp, or of another API that is declared with [`kind!`](crate::object::kind), as a Rust type.
pub trait KcpObject: Serialize + DeserializeOwned {
    /// Which kind it is.
    const KIND: Kind;

    /// Its metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// Its metadata, to be changed.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;
}

/// A kind that kcp serves in several versions, as a type of the newest one that this crate knows. Objects of the older version are converted
/// when they are read and written, without loss in either direction.
pub trait VersionedObject: KcpObject {
    /// The kind in its older version.
    const OLDER: Kind;

    /// Converts an object in place; the arguments are versions.
    fn convert(from: &str, to: &str, object: &mut Value);

    /// The object as a server sent it in one of both versions.
    fn from_version(version: &str, mut object: Value) -> Result<Self, serde_json::Error> {
        if version == Self::OLDER.version && object.is_object() {
            Self::convert(version, Self::KIND.version, &mut object);
        }
        serde_json::from_value(object)
    }

    /// The object as it is sent to a server in one of both versions.
    fn to_version(&self, version: &str) -> Result<Value, serde_json::Error> {
        let mut object = serde_json::to_value(self)?;
        if version == Self::OLDER.version {
            Self::convert(Self::KIND.version, version, &mut object);
        }
        object["apiVersion"] = json!(format!("{}/{version}", Self::KIND.group));
        Ok(object)
    }

    /// The kind in the newest version of those that a server has.
    fn newest_of<'a>(mut served: impl Iterator<Item = &'a str>) -> Kind {
        if served.any(|version| version == Self::KIND.version) { Self::KIND } else { Self::OLDER }
    }
}

impl VersionedObject for crate::apis::v1alpha2::ApiExport {
    const OLDER: Kind = API_EXPORT;

    fn convert(from: &str, to: &str, object: &mut Value) {
        crate::convert::export(from, to, object);
    }
}

impl VersionedObject for crate::apis::v1alpha2::ApiBinding {
    const OLDER: Kind = API_BINDING;

    fn convert(from: &str, to: &str, object: &mut Value) {
        crate::convert::binding(from, to, object);
    }
}

/// Group of exports, bindings and schemas.
pub const APIS_GROUP: &str = "apis.kcp.io";
/// Group of logical clusters and shards.
pub const CORE_GROUP: &str = "core.kcp.io";
/// Group of workspaces and their types.
pub const TENANCY_GROUP: &str = "tenancy.kcp.io";
/// Group of partitions.
pub const TOPOLOGY_GROUP: &str = "topology.kcp.io";

/// APIExport in the version that old releases of kcp serve, and the reference agent writes.
pub const API_EXPORT: Kind = Kind::new(APIS_GROUP, "v1alpha1", "APIExport", "apiexports");
/// APIExport in the version kcp stores, and the agent reads and writes.
pub const API_EXPORT_V2: Kind = Kind::new(APIS_GROUP, "v1alpha2", "APIExport", "apiexports");
/// APIBinding in the version that old releases of kcp serve.
pub const API_BINDING: Kind = Kind::new(APIS_GROUP, "v1alpha1", "APIBinding", "apibindings");
/// APIBinding in the version kcp stores, and the agent reads and writes.
pub const API_BINDING_V2: Kind = Kind::new(APIS_GROUP, "v1alpha2", "APIBinding", "apibindings");
/// APIResourceSchema.
pub const API_RESOURCE_SCHEMA: Kind = Kind::new(APIS_GROUP, "v1alpha1", "APIResourceSchema", "apiresourceschemas");
/// APIExportEndpointSlice.
pub const API_EXPORT_ENDPOINT_SLICE: Kind =
    Kind::new(APIS_GROUP, "v1alpha1", "APIExportEndpointSlice", "apiexportendpointslices");
/// LogicalCluster.
pub const LOGICAL_CLUSTER: Kind = Kind::new(CORE_GROUP, "v1alpha1", "LogicalCluster", "logicalclusters");
/// Shard.
pub const SHARD: Kind = Kind::new(CORE_GROUP, "v1alpha1", "Shard", "shards");
/// Workspace.
pub const WORKSPACE: Kind = Kind::new(TENANCY_GROUP, "v1alpha1", "Workspace", "workspaces");
/// WorkspaceType.
pub const WORKSPACE_TYPE: Kind = Kind::new(TENANCY_GROUP, "v1alpha1", "WorkspaceType", "workspacetypes");
/// Partition.
pub const PARTITION: Kind = Kind::new(TOPOLOGY_GROUP, "v1alpha1", "Partition", "partitions");
