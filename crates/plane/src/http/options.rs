//! Options in the query of a request.

use serde_json::json;

use super::resource::Call;
use crate::api::{FieldSelector, FieldValidation, LabelSelector, ListOptions, RevisionMatch, Scope, WriteOptions};
use crate::status::{Cause, Status};

impl Call<'_> {
    /// Options of list, watch and deletecollection.
    pub(super) fn list_options(&self, scope: &Scope) -> Result<ListOptions, Status> {
        let query = self.query;
        let revision = match query.get("resourceVersion") {
            None => None,
            Some(text) => Some(text.parse::<u64>().map_err(|_| {
                let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
                Status::bad_request(format!(
                    "invalid resource version: resourceVersion: Invalid value: {text:?}: {why}"
                ))
            })?),
        };
        let revision_match = match (query.get("resourceVersionMatch"), revision) {
            (None | Some("NotOlderThan"), _) => RevisionMatch::NotOlderThan,
            (Some("Exact"), Some(0)) => {
                let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                return Err(invalid_options(Cause::forbidden("resourceVersionMatch", detail)));
            }
            (Some("Exact"), Some(_)) => RevisionMatch::Exact,
            (Some("Exact"), None) => {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                return Err(invalid_options(Cause::forbidden("resourceVersionMatch", detail)));
            }
            (Some(other), _) => {
                let known = [json!("Exact"), json!("NotOlderThan"), json!("")];
                return Err(invalid_options(Cause::unsupported("resourceVersionMatch", &other.into(), &known)));
            }
        };
        let limit = match query.get("limit") {
            None => 0,
            Some(text) => {
                let limit: i64 =
                    text.parse().map_err(|_| Status::bad_request(format!("limit {text:?} is not a number")))?;
                // A negative one is none.
                usize::try_from(limit).unwrap_or(0)
            }
        };
        Ok(ListOptions {
            labels: LabelSelector::parse(query.get("labelSelector").unwrap_or_default())?,
            fields: FieldSelector::parse(
                query.get("fieldSelector").unwrap_or_default(),
                &scope.resource,
                &scope.version,
            )?,
            limit,
            continue_token: query.get("continue").unwrap_or_default().to_owned(),
            revision,
            revision_match,
        })
    }

    /// Options of writes; `agent` is the name of the client.
    pub(super) fn write_options(&self, agent: &str, duplicates: Vec<String>) -> Result<WriteOptions, Status> {
        let dry_run = match self.query.get("dryRun") {
            None => false,
            Some("All") => true,
            Some(other) => {
                let cause = Cause::unsupported("dryRun", &other.into(), &[json!("All")]);
                return Err(Status::invalid("meta.k8s.io", "CreateOptions", "", &[cause]));
            }
        };
        let validation = match self.query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(other) => {
                let known = [json!("Ignore"), json!("Warn"), json!("Strict")];
                let cause = Cause::unsupported("fieldValidation", &other.into(), &known);
                return Err(Status::invalid("meta.k8s.io", "CreateOptions", "", &[cause]));
            }
        };
        let default = if self.root.is_virtual() { "kcp" } else { agent };
        let manager = self.query.get("fieldManager").unwrap_or(default).to_owned();
        Ok(WriteOptions { dry_run, manager, validation, force: self.query.flag("force"), duplicates })
    }
}

/// A refusal of list options.
pub(super) fn invalid_options(cause: Cause) -> Status {
    Status::invalid("meta.k8s.io", "ListOptions", "", &[cause])
}
