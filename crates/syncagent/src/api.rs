//! The PublishedResource API, `syncagent.kcp.io/v1alpha1`: types, constants and the CRD itself.

mod conversion;
mod crd;
mod drift;
mod implements;
mod import;
mod limits;
mod mutation;
mod published_resource;
mod reads;
mod related;
mod report;
mod schema;
mod strict;

pub use conversion::{Conversion, ConversionRule, ConversionStep, ConversionWebhook, MoveStep, PublishedVersion};
pub use crd::crd;
pub use drift::{Drift, DriftField};
pub use implements::{Accept, AcceptBoundary, AcceptFilter, ApiOrigin, Implements, MappingInForce};
pub use import::Import;
pub use limits::{AdmissionRule, Limits};
pub use mutation::{CelMutation, DeleteMutation, Mutation, RegexMutation, ResourceMutation, TemplateMutation};
pub use published_resource::{
    Condition, Filter, LabelSelector, Meta, Naming, Projection, PublishedResource, PublishedResourceSpec,
    PublishedResourceStatus, SelectorRequirement, ServedFor, SourceResource, Synchronization,
};
pub use reads::{ReadResource, ReadSelection};
pub use related::{
    Access, CleanupPolicy, Origin, Reference, RegexRule, RelatedProjection, RelatedResource, Rewrite, Selection,
    SelectionSelector, TemplateExpression, Watch,
};
pub use report::Report;
pub use strict::{problems, unknown_field};

/// API group of the PublishedResource kind.
pub const GROUP: &str = "syncagent.kcp.io";
/// API version of the PublishedResource kind.
pub const VERSION: &str = "v1alpha1";
/// Finalizer on consumers' objects while a copy may exist.
pub const FINALIZER: &str = "syncagent.kcp.io/cleanup";
/// Field manager of copies; for copies of orders the agent's name is appended.
pub const FIELD_MANAGER: &str = "api-syncagent";
/// Annotation that consumers set on their objects: how the copy is deleted, `background`, `foreground` or `orphan`.
pub const DELETION_PROPAGATION: &str = "syncagent.kcp.io/deletion-propagation-policy";
/// Label on copies, annotation and label on schemas and exports: which agent owns them.
pub const AGENT_NAME: &str = "syncagent.kcp.io/agent-name";
/// Annotation on exports: which agents serve it, and when each last renewed its entry.
pub const KEEPER: &str = "syncagent.kcp.io/keeper";
/// Annotation on exports: when an agent that serves it was last seen, for people. Renewed with its entry in [`KEEPER`].
pub const LAST_SEEN: &str = "syncagent.kcp.io/last-seen";
/// Annotation on exports: names of agents that are no more, separated by commas. Whoever serves the export has their part.
pub const FORMER_AGENTS: &str = "syncagent.kcp.io/former-agents";
/// Annotation on schemas: generation of the CRD they were made from.
pub const SOURCE_GENERATION: &str = "syncagent.kcp.io/source-generation";
/// Annotation on schemas: the kind they were made from, as `Kind.group`.
pub const SOURCE_KIND: &str = "syncagent.kcp.io/source-kind";
/// Annotation on PublishedResources: name of the schema that may be exported although it was held back.
pub const APPROVED_SCHEMA: &str = "syncagent.kcp.io/approved-schema";
/// Annotation on PublishedResources: name of the schema that is not to be exported, because somebody went back to the approved one.
pub const REJECTED_SCHEMA: &str = "syncagent.kcp.io/rejected-schema";
/// Annotation on PublishedResources: digest of the steps of spec.implements that may come into force although they were held back.
pub const APPROVED_MAPPING: &str = "syncagent.kcp.io/approved-mapping";
/// Annotation on a PublishedResource: it was rolled back from this schema. Until somebody removes the annotation, copies keep fields that kcp does not show
/// of orders that nobody has changed: also when a newer schema is exported again, because every write to an order has dropped them from kcp.
pub const ROLLED_BACK: &str = "syncagent.kcp.io/rolled-back";
/// Prefix of the annotations that keep what another version has no place for; the version it belongs to follows.
pub const CONVERSION_PREFIX: &str = "conversion.syncagent.kcp.io/";
/// Annotation on consumers' objects: the generation that has arrived on the service cluster.
pub const PLACED_GENERATION: &str = "syncagent.kcp.io/placed-generation";
/// Annotation on consumers' objects: why they are not placed, or why their last change was not.
pub const REFUSAL: &str = "syncagent.kcp.io/refusal";
/// Annotation on consumers' objects: what they wait for although they are placed, or on whom their deletion waits, and since when.
pub const WAITS_FOR: &str = "syncagent.kcp.io/waits-for";
/// Annotation on consumers' objects: when their API is withdrawn, and what its provider says about that.
pub const WITHDRAWAL: &str = "syncagent.kcp.io/withdrawal";
/// Annotation on PublishedResources: when they are withdrawn, as a time of RFC 3339.
pub const WITHDRAW_AT: &str = "syncagent.kcp.io/withdraw-at";
/// Annotation on PublishedResources: what consumers are told about their withdrawal.
pub const WITHDRAW_MESSAGE: &str = "syncagent.kcp.io/withdraw-message";
/// Annotation on PublishedResources: `true` deletes the AcceptAPI of spec.implements.accept, so that the broker moves all orders elsewhere.
pub const DRAIN: &str = "syncagent.kcp.io/drain";
/// Annotation on AcceptAPIs: UID of the PublishedResource that they are kept for.
pub const KEPT_FOR: &str = "syncagent.kcp.io/kept-for";
/// Label on copies: logical cluster of the source.
pub const REMOTE_CLUSTER: &str = "syncagent.kcp.io/remote-object-cluster";
/// Label on copies: SHA-1 of the source's name.
pub const REMOTE_NAME_HASH: &str = "syncagent.kcp.io/remote-object-name-hash";
/// Label on copies: SHA-1 of the source's namespace.
pub const REMOTE_NAMESPACE_HASH: &str = "syncagent.kcp.io/remote-object-namespace-hash";
/// Annotation on copies: name of the source.
pub const REMOTE_NAME: &str = "syncagent.kcp.io/remote-object-name";
/// Annotation on copies: namespace of the source.
pub const REMOTE_NAMESPACE: &str = "syncagent.kcp.io/remote-object-namespace";
/// Annotation on copies: workspace path of the source.
pub const REMOTE_WORKSPACE_PATH: &str = "syncagent.kcp.io/remote-object-workspace-path";
/// Annotation on copies: the resource of the source in kcp, as `<plural>.<group>`. Several kinds in kcp may have copies of one kind.
pub const REMOTE_RESOURCE: &str = "syncagent.kcp.io/remote-object-resource";
/// Annotation on state Secrets: the kind of the source in kcp, as `Kind.group`.
pub const REMOTE_KIND: &str = "syncagent.kcp.io/remote-object-kind";
/// Annotation on state Secrets: the name of the source. Not the one of copies: together with the labels, which both have, that would make a
/// state Secret look like the copy of an order of Secrets.
pub const STATE_OF_NAME: &str = "syncagent.kcp.io/state-of-name";
/// Annotation on state Secrets: the namespace of the source, if it has one.
pub const STATE_OF_NAMESPACE: &str = "syncagent.kcp.io/state-of-namespace";
/// Annotation on copies: UID of the source. An object that was deleted and created again has another one.
pub const REMOTE_UID: &str = "syncagent.kcp.io/remote-object-uid";
/// Annotation on copies: the generation of the source that was carried out last.
pub const REMOTE_GENERATION: &str = "syncagent.kcp.io/remote-object-generation";
/// Annotation on consumers' objects that have gone back in time, because kcp was restored: `Hold` while nothing is done for them, `Follow`
/// to go on with them as they are.
pub const AFTER_RESTORE: &str = "syncagent.kcp.io/after-restore";
/// Annotation on copies, or on orders where `spec.pause` allows it: what rests, until when and why. It never crosses.
pub const PAUSE: &str = "syncagent.kcp.io/pause";
/// Label on Secrets that list orders that were carried to their end: the agent that did so.
pub const ENDED_ORDERS: &str = "syncagent.kcp.io/ended-orders";
/// Annotation on copies: checksum of the desired state that was written last.
pub const APPLIED_STATE: &str = "syncagent.kcp.io/applied-state";
/// Annotation on consumers' objects: which agents rely on the finalizer, which all of them share.
pub const HELD_BY: &str = "syncagent.kcp.io/held-by";
/// Annotation on an existing object in the place of a copy, by which its owner allows or forbids taking it over.
pub const ADOPTION: &str = "syncagent.kcp.io/adoption";
/// Annotation on copies that the agent did not make: how it came to them, `adopted` or `linked`; on copies of related objects with a proof for
/// whom. They are let go, and not deleted.
pub const ACQUIRED: &str = "syncagent.kcp.io/acquired";
/// Annotation on copies, set by the provider: what becomes of them when their order goes. `Keep` takes the link off and leaves the object.
pub const ON_DELETE: &str = "syncagent.kcp.io/on-delete";
/// Annotation on consumers' objects that were created for an object that was there before, and on objects that a PublishedResource has imported by
/// itself: when.
pub const IMPORTED: &str = "syncagent.kcp.io/imported";
/// Label that marks state Secrets.
pub const OBJECT_STATE: &str = "syncagent.kcp.io/object-state";
/// Label on copies of related objects: a hash of the primary and the PublishedResource they belong to.
pub const RELATED_OWNER: &str = "syncagent.kcp.io/related-owner";
/// Label on copies of related objects: identifier of their entry in the PublishedResource.
pub const RELATED_IDENTIFIER: &str = "syncagent.kcp.io/related-identifier";
/// Annotation on copies of related objects: name of the primary in kcp.
pub const RELATED_PRIMARY_NAME: &str = "syncagent.kcp.io/related-primary-name";
/// Annotation on copies of related objects: namespace of the primary in kcp.
pub const RELATED_PRIMARY_NAMESPACE: &str = "syncagent.kcp.io/related-primary-namespace";
/// Prefix of the annotations on consumers' objects that list related objects.
pub const RELATED_PREFIX: &str = "related-resources.syncagent.kcp.io/";
