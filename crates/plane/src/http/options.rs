//! Options in the query of a request.

use serde_json::json;

use super::call::Call;
use crate::api::{FieldSelector, FieldValidation, LabelSelector, ListOptions, RevisionMatch, Scope, WriteOptions};
use crate::status::{Cause, Status};

/// The valid values of `resourceVersionMatch`.
const MATCHES: [&str; 3] = ["Exact", "NotOlderThan", ""];

impl Call<'_> {
    /// Options of list, watch and deletecollection.
    pub(super) fn list_options(&self, scope: &Scope) -> Result<ListOptions, Status> {
        let query = self.query;
        let limit = match query.get("limit") {
            None => 0,
            // A negative limit means no limit.
            Some(text) => usize::try_from(number(text)?).unwrap_or(0),
        };
        let labels =
            LabelSelector::parse(query.get("labelSelector").unwrap_or_default(), self.api().release.label_words())?;
        let fields = query.get("fieldSelector").unwrap_or_default();
        let fields = FieldSelector::parse(fields, &scope.resource, &scope.version)?;
        if let Some(other) = query.get("resourceVersionMatch").filter(|text| !MATCHES.contains(text)) {
            let known = [json!("Exact"), json!("NotOlderThan"), json!("")];
            return Err(invalid_options(Cause::unsupported("resourceVersionMatch", &other.into(), &known)));
        }
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
            (Some("Exact"), Some(0)) => {
                let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                return Err(invalid_options(Cause::forbidden("resourceVersionMatch", detail)));
            }
            (Some("Exact"), Some(_)) => RevisionMatch::Exact,
            (Some("Exact"), None) => {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                return Err(invalid_options(Cause::forbidden("resourceVersionMatch", detail)));
            }
            _ => RevisionMatch::NotOlderThan,
        };
        let legacy = query.get("resourceVersionMatch").is_none_or(str::is_empty);
        // With a limit, a revision means exactly that revision, unless the request says otherwise.
        let exact = legacy && limit > 0 && revision.is_some_and(|revision| revision > 0);
        let revision_match = if exact { RevisionMatch::Exact } else { revision_match };
        Ok(ListOptions {
            labels,
            fields,
            limit,
            continue_token: query.get("continue").unwrap_or_default().to_owned(),
            revision,
            revision_match,
        })
    }

    /// Options of writes; `agent` is the name of the client.
    pub(super) fn write_options(
        &self,
        kind: &str,
        agent: &str,
        duplicates: Vec<String>,
    ) -> Result<WriteOptions, Status> {
        let mut causes: Vec<Cause> =
            manager_fault(self.query.get("fieldManager").unwrap_or_default()).into_iter().collect();
        let dry_run = match self.query.get("dryRun") {
            None => false,
            Some("All") => true,
            Some(other) => {
                causes.push(Cause::unsupported("dryRun", &json!([other]), &[json!("All")]));
                true
            }
        };
        let validation = match self.query.get("fieldValidation") {
            None | Some("" | "Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(other) => {
                let known = [json!(""), json!("Ignore"), json!("Strict"), json!("Warn")];
                causes.push(Cause::unsupported("fieldValidation", &other.into(), &known));
                FieldValidation::Warn
            }
        };
        if !causes.is_empty() {
            return Err(Status::invalid("meta.k8s.io", kind, "", &causes));
        }
        let mut sent = json!({});
        for key in ["fieldManager", "fieldValidation"] {
            if let Some(text) = self.query.get(key) {
                sent[key] = text.into();
            }
        }
        if dry_run {
            sent["dryRun"] = json!(["All"]);
        }
        let default = if self.root.is_virtual() { "kcp" } else { agent };
        let manager = self.query.get("fieldManager").unwrap_or(default).to_owned();
        let force = self.query.flag("force");
        let forwarded = self.root.is_virtual().then(|| self.query.get("fieldManager").unwrap_or(agent).to_owned());
        let (strict, yaml) = (None, None);
        Ok(WriteOptions { dry_run, manager, validation, force, duplicates, strict, yaml, sent, forwarded })
    }
}

/// What is wrong with the name of a manager.
fn manager_fault(name: &str) -> Option<Cause> {
    if name.len() > 128 {
        return Some(Cause::too_long("fieldManager", 128));
    }
    let (position, letter) = name.char_indices().find(|(_, letter)| letter.is_control())?;
    let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(letter));
    Some(Cause::invalid("fieldManager", &name.into(), &detail))
}

/// A number in a query, as Go parses it.
pub(super) fn number(text: &str) -> Result<i64, Status> {
    text.parse().map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))
}

/// The error for invalid list options.
pub(super) fn invalid_options(cause: Cause) -> Status {
    Status::invalid("meta.k8s.io", "ListOptions", "", &[cause])
}
