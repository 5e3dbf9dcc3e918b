//! Events: what people should notice even if they do not read conditions.

use carrick_bind_api::clock;
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::kinds::API_SERVICE_BINDING;
use carrick_bind_api::problems::BindingProblem;
use carrick_bind_api::v1alpha2::ApiServiceBinding;
use carrick_client::Resource;
use serde_json::json;

use crate::agent::writer::Writer;

/// Where events of cluster-wide objects are.
const NAMESPACE: &str = "default";
const LONGEST_NAME: usize = 253;

/// Says that the provider withdraws the export of a binding. The name of the event follows from the binding, so that it is said once; without the
/// right to say it, the condition must do.
pub(super) async fn withdrawn(writer: &Writer, binding: &ApiServiceBinding, now: Timestamp) {
    let metadata = &binding.metadata;
    let problem = BindingProblem::ExportWithdrawn { export: metadata.name.clone() };
    let (time, end) = (clock::show(now), format!(".withdrawn-{}", metadata.uid));
    let room = LONGEST_NAME.saturating_sub(end.len());
    let name: String = metadata.name.chars().take(room).chain(end.chars()).collect();
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": NAMESPACE},
        "involvedObject": {"apiVersion": API_SERVICE_BINDING.api_version(), "kind": API_SERVICE_BINDING.kind,
            "name": metadata.name, "uid": metadata.uid},
        "type": "Warning", "reason": problem.reason(), "message": problem.to_string(), "count": 1,
        "firstTimestamp": time, "lastTimestamp": time,
        "source": {"component": "konnector"}, "reportingComponent": "konnector", "reportingInstance": ""});
    let written = writer.create(&Resource::namespaced("", "v1", "Event", "events"), &event).await;
    if let Err(error) = written {
        tracing::warn!(binding = metadata.name, %error, "An event could not be written; the condition says the same.");
    }
}
