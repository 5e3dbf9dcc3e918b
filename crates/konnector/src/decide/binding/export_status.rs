//! What the provider is told about an export.

use carrick_bind_api::conditions::{self, CONNECTED, CONSUMER_IN_SYNC, CONSUMER_TOLD, Condition, SCHEMA_IN_SYNC};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::problems::ExportProblem;
use carrick_bind_api::v1alpha2::{ApiServiceExport, ApiServiceExportStatus};

/// The status of an export that no binding here is for.
pub fn unbound_export_status(export: &ApiServiceExport, now: Timestamp) -> ApiServiceExportStatus {
    let mut status = export.status.clone();
    let binding = export.metadata.name.clone();
    conditions::set(&mut status.conditions, ExportProblem::BindingNotFound { binding }.condition(), now);
    conditions::set(&mut status.conditions, ExportProblem::NotApplicable {}.condition(), now);
    conditions::summarize(&mut status.conditions, now);
    status
}

/// The status of an export that is being deleted, and whose consumer knows.
pub(super) fn withdrawn_export_status(export: &ApiServiceExport, now: Timestamp) -> ApiServiceExportStatus {
    let mut status = export.status.clone();
    conditions::set(&mut status.conditions, Condition::holds(CONSUMER_TOLD), now);
    conditions::summarize(&mut status.conditions, now);
    status
}

/// The status of an export, given the conditions of its binding.
pub(super) fn export_status(
    export: &ApiServiceExport,
    binding: &[Condition],
    now: Timestamp,
) -> ApiServiceExportStatus {
    let mut status = export.status.clone();
    let connected = match conditions::find(binding, CONNECTED) {
        Some(failed) if !failed.is_true() => {
            ExportProblem::SchemasNotValid { problem: failed.message.clone() }.condition()
        }
        _ => Condition::holds(CONNECTED),
    };
    conditions::set(&mut status.conditions, connected, now);
    let in_sync = match conditions::find(binding, SCHEMA_IN_SYNC) {
        Some(condition) => condition.renamed(CONSUMER_IN_SYNC),
        None => ExportProblem::ConsumerUnknown {}.condition(),
    };
    conditions::set(&mut status.conditions, in_sync, now);
    conditions::summarize(&mut status.conditions, now);
    status
}
