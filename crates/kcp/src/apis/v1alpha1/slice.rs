//! APIExportEndpointSlice.

use crate::apis::ExportReference;
use crate::condition::Condition;
use crate::kinds::API_EXPORT_ENDPOINT_SLICE;
use crate::object::{kind, object};

kind! {
    /// An APIExportEndpointSlice lists the URLs at which a provider reaches the consumers of an APIExport.
    ApiExportEndpointSlice = API_EXPORT_ENDPOINT_SLICE {
        /// Which export the URLs belong to.
        spec: ApiExportEndpointSliceSpec => "spec",
        /// The URLs.
        status: ApiExportEndpointSliceStatus => "status",
    }
}

impl ApiExportEndpointSlice {
    /// The URLs in the status.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.status.endpoints.iter().map(|endpoint| endpoint.url.as_str()).filter(|url| !url.is_empty())
    }
}

object! {
    /// Which export the URLs belong to.
    ApiExportEndpointSliceSpec {
        /// The export; it cannot be changed.
        export: ExportReference => "export",
        /// Name of a Partition that limits the shards; empty for all.
        partition: String => "partition",
    }
}

object! {
    /// The URLs of an export.
    ApiExportEndpointSliceStatus {
        /// One for each shard that holds consumers; none as long as nobody binds.
        endpoints: Vec<ApiExportEndpoint> => "endpoints",
        /// The shards that count, as a label selector.
        shard_selector: String => "shardSelector",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}

object! {
    /// One URL of an export.
    ApiExportEndpoint {
        /// Of the export's virtual workspace on one shard.
        url: String => "url",
    }
}

impl ApiExportEndpoint {
    /// An endpoint at this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }
}
