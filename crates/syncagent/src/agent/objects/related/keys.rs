//! What related objects are looked up by.

use std::sync::Arc;

use crate::rules::metadata::SourceKey;

/// A primary, by the name of its PublishedResource and its key.
pub(in crate::agent::objects) type PrimaryKey = (Arc<str>, SourceKey);

/// Logical cluster (empty for the service cluster) and namespace (empty for cluster-scoped kinds).
pub(in crate::agent::objects) type ClusterNamespace = (String, String);
