//! Server-side apply.

use serde_json::Value;

use super::{Api, Caller, Scope, WriteOptions, Written};
use crate::status::Status;

impl Api {
    pub(super) fn apply(&self, _: &Caller, _: &Scope, _: &str, _: &str, _: &Value, _: &WriteOptions) -> Result<Written, Status> {
        Err(Status::unsupported_media(&["application/json-patch+json", "application/merge-patch+json"]))
    }
}
