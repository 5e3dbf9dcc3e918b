//! A line of the tables.

/// Name, usage, summary and example of a function.
pub(super) struct Row(
    pub(super) &'static str,
    pub(super) &'static str,
    pub(super) &'static str,
    pub(super) Option<(&'static str, &'static str)>,
);
