//! Events: what people should notice even if they do not read conditions.

use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::problems::BindingProblem;
use carrick_bind_api::v1alpha2::ApiServiceBinding;
use serde_json::json;

use crate::agent::events::{events, warning};
use crate::agent::writer::Writer;

/// Says that the provider withdraws the export of a binding. Without the right to say it, the condition must do.
pub(super) async fn withdrawn(writer: &Writer, binding: &ApiServiceBinding, now: Timestamp) {
    let name = &binding.metadata.name;
    let problem = BindingProblem::ExportWithdrawn { export: name.clone() };
    let (reason, words) = (problem.reason(), problem.to_string());
    let event = warning("konnector", &json!(binding), "withdrawn", reason, &words, now);
    if let Err(error) = writer.create(&events(), &event).await {
        tracing::warn!(binding = name, %error, "An event could not be written; the condition says the same.");
    }
}
