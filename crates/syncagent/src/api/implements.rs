//! Implements: an API that somebody else has defined, published for a kind of the service cluster.

use serde_json::json;

use super::conversion::{ConversionStep, PublishedVersion};
use super::schema::described;

described! {
    /// An API that somebody else has defined, and how orders of it become objects of spec.resource. It takes the place of spec.projection and
    /// spec.conversion.
    pub struct Implements {
        /// The resource that consumers order, as PLURAL.GROUP.
        @required
        pub resource: String = json!({ "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$" }),
        /// Its kind.
        @required
        pub kind: String = json!({ "minLength": 1 }),
        /// Its singular. Absent means the kind in lower case.
        pub singular: String,
        /// Its short names.
        pub short_names: Vec<String>,
        /// Its categories.
        pub categories: Vec<String>,
        /// Whether orders are in namespaces. Absent means Namespaced.
        pub scope: String = json!({ "enum": ["Cluster", "Namespaced"] }),
        /// Its versions as their owner has written them, with schemas; kcp gets these and no others. A status subresource is always there.
        @required
        pub versions: Vec<PublishedVersion> = json!({
            "minItems": 1, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        }),
        /// Where they were taken from, as carrick writes it. The agent does not read it; carrick doctor says when the API has changed there, if
        /// its login may read that workspace.
        pub from: Option<ApiOrigin>,
        /// What makes the copy, in order, beginning with an empty spec. self is the copy so far, other the order, copy the name and the namespace of
        /// the copy. A move takes the value from the order.
        pub spec: Vec<ConversionStep>,
        /// What makes the status of the order, in order, beginning with an empty one. self is the order so far, other the copy. A move takes the value
        /// from the copy.
        pub status: Vec<ConversionStep>,
        /// Which orders a broker of Platform Mesh may bring here: the agent keeps an AcceptAPI named PLURAL.GROUP in the workspace of its APIExport
        /// as soon as that export serves the API. It is deleted, which makes the broker move all orders elsewhere, by the annotation
        /// syncagent.kcp.io/drain: "true", when this field is removed, and when the API is withdrawn. Absent means none is kept.
        pub accept: Option<Accept>,
    }

    /// Which orders a broker may bring here.
    pub struct Accept {
        /// What must hold for an order: all of them. Absent means that every order may come.
        pub filters: Vec<AcceptFilter> = json!({ "x-kubernetes-list-type": "atomic", "maxItems": 64 }),
    }

    /// What must hold for one field: all that is said here. An order that lacks the field passes.
    pub struct AcceptFilter {
        /// Path below spec of the order, with dots, such as tier. Lists cannot be reached.
        @required
        pub key: String = json!({
            "minLength": 1,
            "maxLength": 256,
            "x-kubernetes-validations": [{ "rule": "!self.startsWith('spec.')", "message": "write the path without spec., which it is below anyway" }],
        }),
        /// The value is one of these.
        pub value_in: Vec<String> = json!({ "x-kubernetes-list-type": "atomic" }),
        /// The value ends with this.
        pub suffix: String,
        /// The value is a whole number within these bounds.
        pub boundary: Option<AcceptBoundary>,
    }

    /// Bounds of a whole number, both included. The broker heeds no negative ones.
    pub struct AcceptBoundary {
        /// The least.
        pub min: Option<i64> = json!({ "minimum": 0 }),
        /// The most.
        pub max: Option<i64> = json!({ "minimum": 0 }),
    }

    /// The APIExport that an API was taken from.
    pub struct ApiOrigin {
        /// Path of its workspace.
        @required
        pub path: String = json!({ "minLength": 1 }),
        /// Its name.
        @required
        pub export: String = json!({ "minLength": 1 }),
        /// Digest of what it said of the API then.
        @required
        pub digest: String,
    }

    /// The steps of spec.implements that orders are placed by.
    pub struct MappingInForce {
        /// The resource that they are for.
        pub resource: String,
        /// Their digest.
        pub digest: String,
        /// The steps themselves, as JSON.
        pub steps: String,
    }
}
