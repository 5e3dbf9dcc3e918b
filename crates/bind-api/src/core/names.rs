//! Labels, annotations, finalizers and field managers of v2.

/// Label of a provider's CRD (`true`): it is offered.
pub const EXPORTED_LABEL: &str = "core.kbind.io/exported";
/// Label (`true`) of all that a konnector has made: CRDs, copies, namespaces, Leases, automatic ClusterBindings.
pub const MANAGED_LABEL: &str = "core.kbind.io/managed";
/// Annotation of a pulled CRD and of a Lease: the name of the Connection.
pub const CONNECTION_ANNOTATION: &str = "core.kbind.io/connection";
/// Annotation of a pulled CRD: the hash of what was pulled. Without it a CRD was not installed by a konnector.
pub const SCHEMA_HASH_ANNOTATION: &str = "core.kbind.io/schema-hash";
/// Annotation of copies and Leases, and label of namespaces made for copies: who the consumer is.
pub const CONSUMER_CLUSTER_UID: &str = "core.kbind.io/consumer-cluster-uid";
/// Annotation of copies: the uid of their source.
pub const CONSUMER_OBJECT_UID_ANNOTATION: &str = "core.kbind.io/consumer-object-uid";
/// Annotation of related copies: the uid of the binding.
pub const RELATED_BINDING_ANNOTATION: &str = "core.kbind.io/related-binding";
/// Annotation of a binding (ours): which directions and resources its entries have had, so that copies of an entry that was removed are found.
pub const RELATED_KINDS_ANNOTATION: &str = "core.kbind.io/related-kinds";
/// Annotation of a consumer's object that is not synced: why, in one word.
pub const CONFLICT_ANNOTATION: &str = "core.kbind.io/conflict";
/// Annotation that users set on an object, or (ours) on a binding: with [`ORPHAN`] copies stay.
pub const DELETION_POLICY_ANNOTATION: &str = "core.kbind.io/deletion-policy";
/// The value of [`DELETION_POLICY_ANNOTATION`] by which copies stay.
pub const ORPHAN: &str = "Orphan";
/// Another value of [`DELETION_POLICY_ANNOTATION`], for a binding that is to go on with another Connection: its copies are deleted first.
pub const DELETE: &str = "Delete";
/// Annotation of a binding (ours): the Connection that it is bound by, and its uid, as `<name>/<uid>`.
pub const BOUND_BY_ANNOTATION: &str = "core.kbind.io/bound-by";
/// Annotation of copies (ours): checksum of what was written last. Nobody else knows it.
pub const APPLIED_STATE_ANNOTATION: &str = "core.kbind.io/applied-state";
/// Annotation of an automatic ClusterBinding (ours): since when APIs that it lists are not offered any more.
pub const GONE_SINCE_ANNOTATION: &str = "core.kbind.io/gone-since";

/// Finalizer of consumers' objects: the copy goes first.
pub const SYNCER_FINALIZER: &str = "core.kbind.io/syncer";
/// Finalizer of Connections, bindings and the Secrets that Connections name.
pub const CLEANUP_FINALIZER: &str = "core.kbind.io/cleanup";

/// Field manager of copies.
pub const FIELD_MANAGER: &str = "kbind-konnector";
/// Field manager of related copies.
pub const RELATED_FIELD_MANAGER: &str = "kbind-konnector-related";
/// Who reports events.
pub const EVENT_SOURCE: &str = "kbind-konnector";
