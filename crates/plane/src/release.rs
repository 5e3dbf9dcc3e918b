//! Which release of Kubernetes answers.

use carrick_go::names::{self, Words};

/// A release of Kubernetes, for what its successor does differently. The plain server is 1.34; kcp is built on 1.35 or newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Release {
    /// 1.34.
    V1_34,
    /// 1.35, and what follows as far as it is known.
    V1_35,
}

impl Release {
    /// The words about keys and values of labels.
    pub(crate) fn label_words(self) -> Words {
        match self {
            Self::V1_34 => names::V1_34,
            // Names of objects are still counted in characters.
            Self::V1_35 => names::V1_37,
        }
    }

    /// Whether a broken CEL rule is reported with the value it was about, and not with the type of that value.
    pub(crate) fn shows_values_of_rules(self) -> bool {
        self >= Self::V1_35
    }

    /// Whether the client is blamed (400) for what cannot be decoded besides objects: options of deletions, users to impersonate.
    pub(crate) fn blames_the_client(self) -> bool {
        self >= Self::V1_35
    }

    /// Whether the bootstrap roles know events in a group of their own.
    pub(crate) fn grants_new_events(self) -> bool {
        self >= Self::V1_35
    }
}
