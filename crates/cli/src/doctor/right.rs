//! A right that an agent needs.

/// Where a right is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RightScope {
    /// On the service cluster.
    Service,
    /// In the workspace of the slice.
    Slice,
    /// In the workspace of the export.
    Export,
}

/// One right an agent needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededRight {
    /// Where.
    pub place: RightScope,
    /// API group; empty for core.
    pub group: String,
    /// Plural resource name, with the subresource behind a slash.
    pub resource: String,
    /// Only on the object of this name.
    pub name: Option<String>,
    /// Only in this namespace.
    pub namespace: Option<String>,
    /// What must be allowed.
    pub verbs: &'static [&'static str],
    /// Whether the agent can do without it.
    pub optional: bool,
    /// What it is for.
    pub why: String,
}

impl NeededRight {
    /// A right on every object of a kind.
    pub fn new(place: RightScope, group: &str, resource: &str, verbs: &'static [&'static str], why: &str) -> Self {
        Self {
            place,
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: None,
            namespace: None,
            verbs,
            optional: false,
            why: why.to_owned(),
        }
    }

    /// Only on the object of this name.
    pub fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Only in this namespace.
    pub fn within(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// One that the agent can do without.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// `<plural>.<group>`, as kubectl wants it.
    pub fn shown(&self) -> String {
        let (plural, subresource) = match self.resource.split_once('/') {
            Some((plural, subresource)) => (plural, format!("/{subresource}")),
            None => (self.resource.as_str(), String::new()),
        };
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{plural}{dot}{}{subresource}", self.group)
    }
}
