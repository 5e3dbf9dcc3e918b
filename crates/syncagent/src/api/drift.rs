//! Drift: what others change of copies.

use serde_json::json;

use super::schema::described;

described! {
    /// What happens to fields of a copy that somebody else changes after they were written. Defaults, values that a server writes in another
    /// form, and fields that only the copy has are no drift.
    pub struct Drift {
        /// Ignore (the default) leaves them until the order changes the same fields; Report says so by an event on the copy, the condition
        /// DriftFree and the metric sync_agent_drifted_objects; Revert sets them back, at most three times in ten minutes.
        pub policy: String = json!({ "enum": ["Ignore", "Report", "Revert"] }),
        /// Fields that differ from that. Of several that match, the longest path counts.
        pub fields: Vec<DriftField> = json!({ "x-kubernetes-list-type": "atomic" }),
    }

    /// What happens to one field of a copy, and to everything below it.
    pub struct DriftField {
        /// The path, such as spec.replicas, spec.backup.* or metadata.labels[example.com/tier]. An asterisk is any one key. Lists have no
        /// paths of their own: they drift as a whole.
        @required
        pub path: String,
        /// The same as for all fields.
        @required
        pub policy: String = json!({ "enum": ["Ignore", "Report", "Revert"] }),
    }
}
