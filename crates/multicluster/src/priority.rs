//! How urgent a request is.

/// How urgent a request is. The queue serves them 8 : 2 : 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// An object was created or deleted, or somebody changed what it should be: its generation.
    High,
    /// Anything else changed: a status, a label, another object it depends on.
    #[default]
    Normal,
    /// Nothing is known to have changed: first lists, relists, periodic requeues.
    Low,
}

impl Priority {
    /// All, most urgent first.
    pub(crate) const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// A place in an array of three.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
