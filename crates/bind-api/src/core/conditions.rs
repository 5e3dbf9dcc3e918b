//! Conditions of v2: metav1's kind of them, their types, reasons and texts.

use carrick_kcp::condition::{Condition, ConditionStatus};
use jiff::Timestamp;
use serde_json::json;

use crate::conditions::set_standard;

/// Connection: the kubeconfig can be read.
pub const SECRET_VALID: &str = "SecretValid";
/// Connection: the provider answers and is who it was.
pub const CONNECTED: &str = "Connected";
/// Connection and bindings: True if the provider refuses something that is needed.
pub const PERMISSION_DENIED: &str = "PermissionDenied";
/// All: everything works.
pub const READY: &str = "Ready";
/// Connection and bindings: the installed CRDs are those of the provider. Upstream declares it and never writes it.
pub const SCHEMA_IN_SYNC: &str = "SchemaInSync";
/// Bindings: all APIs are installed.
pub const SYNCED: &str = "Synced";
/// Bindings: True if objects are not synced because the provider has others of their names.
pub const CONFLICTS: &str = "Conflicts";

/// Bindings (ours): related objects travel along. It is there only while some of them should and do not.
pub const RELATED_SYNCED: &str = "RelatedSynced";

/// A reason: everything is as it should be.
pub const AS_EXPECTED: &str = "AsExpected";
/// A reason: the Secret is missing or cannot be used.
pub const SECRET_NOT_FOUND: &str = "SecretNotFound";
/// A reason: something else has to be there first.
pub const PENDING: &str = "Pending";
/// A reason: the kubeconfig leads to another cluster than before.
pub const CLUSTER_IDENTITY_CHANGED: &str = "ClusterIdentityChanged";
/// A reason: the provider refuses it.
pub const FORBIDDEN: &str = "Forbidden";
/// A reason: bindings of a Connection that is being deleted are not gone yet; for bindings (ours), that copies are not.
pub const DRAINING_BINDINGS: &str = "DrainingBindings";
/// A reason (ours): a binding that is being deleted waits for its copies.
pub const DRAINING: &str = "Draining";
/// A reason: the provider does not offer an API.
pub const API_NOT_EXPORTED: &str = "APINotExported";
/// A reason: the provider has an object of that name which nobody has marked.
pub const FOREIGN_OBJECT_EXISTS: &str = "ForeignObjectExists";
/// A reason: the provider has an object of that name which is the copy of another one.
pub const OWNED_BY_ANOTHER: &str = "OwnedByAnother";
/// A reason (ours): the CRD was installed by somebody else and is different.
pub const FOREIGN_CRD: &str = "ForeignCRD";
/// A reason (ours): the CRD was installed by another contract: 0.8's, or another Connection.
pub const API_MANAGED_BY_OTHER: &str = "APIManagedByOther";
/// A reason (ours): a Binding lists an API that has no namespaces.
pub const CLUSTER_SCOPED_API: &str = "ClusterScopedAPI";
/// A reason (ours): the provider converts versions by a webhook that cannot be called from here.
pub const CONVERSION_WEBHOOK: &str = "ConversionWebhook";
/// A reason (ours): something undoes what is written to objects, every time.
pub const CONTESTED: &str = "Contested";

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its type.
    pub type_: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
}

impl Finding {
    /// A condition that holds.
    pub fn yes(type_: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { type_, holds: true, reason, message: message.into() }
    }

    /// A condition that does not hold.
    pub fn no(type_: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { type_, holds: false, reason, message: message.into() }
    }
}

/// Sets a condition. Its time moves with its status only; others stay as they are.
pub fn set(conditions: &mut Vec<Condition>, finding: &Finding, generation: Option<i64>, now: Timestamp) {
    let mut condition = Condition::holds(finding.type_);
    condition.status = if finding.holds { ConditionStatus::True } else { ConditionStatus::False };
    finding.reason.clone_into(&mut condition.reason);
    condition.message.clone_from(&finding.message);
    // metav1 requires the text, also if it is empty.
    if finding.message.is_empty() {
        condition.rest.insert("message".to_owned(), json!(""));
    }
    if let Some(generation) = generation {
        condition.rest.insert("observedGeneration".to_owned(), json!(generation));
    }
    set_standard(conditions, condition, now);
}
