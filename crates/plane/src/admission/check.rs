//! What is wrong with a configuration: all errors at once, in Kubernetes' wording.

mod fields;
mod policy;
mod webhooks;

use serde_json::Value;

use fields::Old;

use crate::definition::Faults;
use crate::status::Cause;

/// Everything wrong with an object of one of the configuration kinds.
pub(crate) fn faults(kind: &str, object: &Value, old: Old<'_>) -> Vec<Cause> {
    let mut faults = Faults::default();
    match kind {
        "ValidatingAdmissionPolicy" => policy::check(object, old, &mut faults),
        "ValidatingAdmissionPolicyBinding" => policy::check_binding(object, &mut faults),
        _ => webhooks::check(kind, object, old, &mut faults),
    }
    faults.0
}
