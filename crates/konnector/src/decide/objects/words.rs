//! What the konnector writes into the metadata of objects, and how it calls the two clusters.

use carrick_bind_api::names::{CONSUMER_UID_ANNOTATION, SYNCER_FINALIZER};
use carrick_sync::{Side, Vocabulary};

/// The cluster of the konnector.
pub const CONSUMER: Side = Side::consumer("consumer");
/// The cluster of the provider.
pub const PROVIDER: Side = Side::provider("provider");

/// The name by which sources are held. Nobody sees it, because the list of holders is not written.
pub(in crate::decide) const HOLDER: &str = "konnector";

/// Annotation of copies: checksum of what was written last. kube-bind does not know it and leaves it alone.
pub const APPLIED_STATE: &str = "kube-bind.io/applied-state";

/// kube-bind's words. What crosses is decided by [`carrick_bind_api::copies`].
pub static WORDS: Vocabulary = Vocabulary {
    finalizer: SYNCER_FINALIZER,
    applied_state: APPLIED_STATE,
    source_uid: CONSUMER_UID_ANNOTATION,
    prefix: "kube-bind.io/",
    ..BLANK
};

/// What both contracts leave unsaid. Every object is bound by one binding, so nobody shares the finalizer.
pub const BLANK: Vocabulary = Vocabulary {
    consumer: CONSUMER,
    provider: PROVIDER,
    finalizer: "",
    held_by: "",
    agent_name: "",
    applied_state: "",
    adoption: "",
    acquired: "",
    on_delete: "",
    manager: "",
    of_copies: &[],
    deletion_propagation: "",
    source_resource: "",
    source_uid: "",
    prefix: "",
    source_of: |_| None,
    label_crosses: |_| true,
    annotation_crosses: |_| true,
};
