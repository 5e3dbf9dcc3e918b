//! Links: what leads from a copy back to its source.

use serde_json::Value;

use crate::object::{label, set};
use crate::vocabulary::Vocabulary;

/// Labels and annotations on a copy that lead back to its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Labels, without the agent's name.
    pub labels: Vec<(&'static str, String)>,
    /// Annotations.
    pub annotations: Vec<(&'static str, String)>,
    /// Annotations that distinguish sources with the same cluster, namespace and name. Copies of other agents may lack them: they are
    /// written together with other changes, and their absence alone is no reason to write.
    pub marks: Vec<(&'static str, String)>,
    /// Annotations that say what of the source was carried out. They are written together with content, and never a reason to write: what
    /// they say is true of the content beside them.
    pub notes: Vec<(&'static str, String)>,
}

impl Link {
    /// Whether the copy carries these labels.
    pub fn is_on(&self, copy: &Value) -> bool {
        self.labels.iter().all(|(key, value)| label(copy, key) == Some(value))
    }

    /// Writes the link and the agent's name to a copy.
    pub fn write(&self, copy: &mut Value, vocabulary: &Vocabulary, agent_name: &str) {
        for (key, value) in &self.labels {
            set(copy, "labels", key, value);
        }
        set(copy, "labels", vocabulary.agent_name, agent_name);
        for (key, value) in self.annotations.iter().chain(&self.marks).chain(&self.notes) {
            set(copy, "annotations", key, value);
        }
    }
}
