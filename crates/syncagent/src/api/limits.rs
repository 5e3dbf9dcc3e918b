//! What a provider accepts of one consumer, and what consumers are told.

use serde_json::json;

use super::schema::described;

described! {
    /// How much one workspace may order.
    pub struct Limits {
        /// How many objects of one workspace are placed. The oldest ones are; those above wait until others are deleted. Absent means any number.
        pub objects_per_workspace: Option<i64> = json!({ "minimum": 0 }),
    }

    /// A rule that objects must keep.
    pub struct AdmissionRule {
        /// A CEL expression over self, the consumer's object, which must be true. It may compare with oldSelf, the object before the change.
        @required
        pub expression: String = json!({ "minLength": 1 }),
        /// What consumers are told whose object breaks the rule. Absent means the expression itself.
        pub message: String,
    }
}

impl Limits {
    /// How many objects of one workspace are placed, if that is limited.
    pub fn per_workspace(&self) -> Option<usize> {
        // A negative number means none, as the schema refuses it anyway.
        self.objects_per_workspace.map(|most| usize::try_from(most).unwrap_or(0))
    }
}
