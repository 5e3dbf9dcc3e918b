//! What the status of an order says in the agent's name.

use serde_json::json;

use super::schema::described;

described! {
    /// What the status of an order says besides what its copy says. It is written together with the status of the copy, after all mutations.
    /// What the schema in kcp has no room for is not written, and named by condition RulesPlausible.
    pub struct Report {
        /// A CEL expression for one word at statusPath: Unknown, Provisioning, Available, Degraded, Deleting or Failed. self is the copy, other
        /// the order, objects what spec.reads finds, related the names in kcp of related objects that are there, by identifier. Available is
        /// written only once all related objects with required: true are there; without a copy it is Provisioning, in deletion Deleting,
        /// refused Failed.
        pub status: String,
        /// Where that word is written. Absent means status.status.
        pub status_path: String = json!({ "pattern": "^(status(\\.[A-Za-z_][A-Za-z0-9_-]*)+)?$" }),
        /// Whether status.relatedResources lists the related objects of the service that are in the consumer's workspace, by their names
        /// there. Absent means that it does.
        pub related: Option<bool>,
        /// What becomes of status.conditions. None leaves those of the copy as they are; Copy completes them with reason, message and time, which
        /// many schemas demand; Own (the default) also adds Placed, which tells why an order, or its last change, was not carried out.
        pub conditions: String = json!({ "enum": ["None", "Copy", "Own"] }),
    }
}
