//! An event that is to be written.

use carrick_client::Client;
use serde_json::Value;
use tokio::time::Instant;

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// Everything is fine.
    Normal,
    /// Somebody should take care of this.
    Warning,
}

impl Type {
    /// The type as Kubernetes calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An event that is to be written about one object.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) since: Instant,
    pub(super) client: Client,
    pub(super) component: &'static str,
    pub(super) involved: Involved,
    pub(super) kind: Type,
    pub(super) reason: String,
    pub(super) message: String,
}

/// The object an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Involved {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
}

impl Involved {
    /// The object, as an event refers to it.
    pub(super) fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            resource_version: text(&metadata["resourceVersion"]),
        }
    }
}
