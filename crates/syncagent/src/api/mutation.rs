//! Mutations: changes to objects on their way.

use super::schema::described;

described! {
    /// Changes to objects on their way.
    pub struct Mutation {
        /// Changes to the source before it is written to the copy, in order.
        pub spec: Vec<ResourceMutation>,
        /// Changes to the copy before its status is written to the source, in order.
        pub status: Vec<ResourceMutation>,
    }

    /// One change. Exactly one of delete, regex, template and cel must be set.
    pub struct ResourceMutation {
        /// Removes the value at a path.
        pub delete: Option<DeleteMutation>,
        /// Replaces text in the value at a path.
        pub regex: Option<RegexMutation>,
        /// Sets the result of a Go template.
        pub template: Option<TemplateMutation>,
        /// Sets the result of a CEL expression.
        pub cel: Option<CelMutation>,
    }

    /// Removes the value at a path.
    pub struct DeleteMutation {
        /// Path of the value to remove.
        @required
        pub path: String,
    }

    /// Replaces text in the value at a path.
    pub struct RegexMutation {
        /// Path of the value.
        @required
        pub path: String,
        /// Pattern in RE2 syntax; empty sets the replacement as it is.
        pub pattern: String,
        /// Replacement, with $1 and ${name}.
        pub replacement: String,
    }

    /// Sets the result of a Go template at a path.
    pub struct TemplateMutation {
        /// Path of the value.
        @required
        pub path: String,
        /// Go template whose result is set.
        @required
        pub template: String,
    }

    /// Sets the result of a CEL expression at a path.
    pub struct CelMutation {
        /// Path of the value.
        @required
        pub path: String,
        /// CEL expression over value, self and other, whose result is set.
        @required
        pub expression: String,
    }
}
