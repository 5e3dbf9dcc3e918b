//! Group, version, kind and plural of the kinds of v2.

use carrick_kcp::kinds::Kind;

/// The group of all kinds of v2.
pub const GROUP: &str = "core.kbind.io";
/// The version that this crate reads and writes.
pub const VERSION: &str = "v1alpha1";

/// Connection, on the consumer: the link to one provider.
pub const CONNECTION: Kind = Kind::new(GROUP, VERSION, "Connection", "connections");
/// ClusterBinding, on the consumer: which APIs of a provider the whole cluster uses.
pub const CLUSTER_BINDING: Kind = Kind::new(GROUP, VERSION, "ClusterBinding", "clusterbindings");
/// Binding, in a namespace of the consumer: which APIs of a provider that namespace uses.
pub const BINDING: Kind = Kind::new(GROUP, VERSION, "Binding", "bindings");

/// Every kind.
pub const ALL: [Kind; 3] = [CONNECTION, CLUSTER_BINDING, BINDING];
