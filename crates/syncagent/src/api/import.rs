//! Import: objects of the service cluster that get their orders from the agent.

use serde_json::json;

use super::LabelSelector;
use super::schema::described;

described! {
    /// Objects that exist on the service cluster and get orders in consumers' workspaces from the agent, because their provider has labelled
    /// them. Nothing is written to their content. An object is imported once: what its consumer deletes does not come back.
    pub struct Import {
        /// Which objects, by their labels. It must select something: an empty one is refused.
        @required
        pub selector: LabelSelector,
        /// The consumer's workspace, by path or logical cluster. A Go template over .Object, the object.
        @required
        pub to: String = json!({ "minLength": 1 }),
        /// Namespace of the order, by default default. A Go template over .Object.
        pub namespace: String,
        /// Name of the order, by default that of the object. A Go template over .Object.
        pub name: String,
        /// What becomes of the object when its order is deleted. Keep (the default) leaves it, without the agent's labels; Delete deletes it, as
        /// every copy.
        pub on_delete: String = json!({ "enum": ["Keep", "Delete"] }),
        /// Labels and annotations that stay on the object and are not on its order. A key may end in an asterisk.
        pub without: Vec<String>,
    }
}
