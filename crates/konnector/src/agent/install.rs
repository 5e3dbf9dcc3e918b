//! The two CRDs without which nothing can be bound.

use std::sync::Arc;
use std::time::Duration;

use carrick_bind_api::crds;
use carrick_client::{Client, Error};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;
use super::resources;
use super::writer::Writer;

const PAUSE: Duration = Duration::from_secs(2);
/// How long a new CRD takes to be served, at most as often as this is looked.
const ESTABLISHING: Duration = Duration::from_millis(100);

/// Creates or updates the CRDs and waits until they are served. False if told to stop meanwhile.
pub async fn crds(client: &Client, metrics: &Arc<Metrics>, stop: &CancellationToken) -> bool {
    let writer = Writer::new(client.clone(), "consumer", Arc::clone(metrics));
    for wanted in crds::consumer() {
        let mut said = String::new();
        loop {
            let pause = match ensure(&writer, &wanted).await {
                Ok(true) => break,
                Ok(false) => ESTABLISHING,
                Err(error) => {
                    let error = error.to_string();
                    if said != error {
                        let crd = wanted["metadata"]["name"].as_str().unwrap_or_default();
                        tracing::warn!(
                            crd,
                            error,
                            "A CustomResourceDefinition could not be installed, trying again until it is."
                        );
                        said = error;
                    }
                    PAUSE
                }
            };
            tokio::select! {
                () = stop.cancelled() => return false,
                () = client.pause(pause) => {}
            }
        }
    }
    true
}

/// Whether a CRD is as wanted and served; otherwise a step on the way there was made.
async fn ensure(writer: &Writer, wanted: &Value) -> Result<bool, Error> {
    let resource = resources::crds();
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    let Some(found) = writer.client().get(&resource, None, name).await? else {
        writer.create(&resource, wanted).await?;
        return Ok(false);
    };
    if !covers(&found["spec"], &wanted["spec"]) {
        let mut new = found.clone();
        new["spec"] = wanted["spec"].clone();
        match writer.replace(&resource, &new).await {
            Err(error) if !error.is_conflict() => return Err(error),
            _ => return Ok(false),
        }
    }
    let mut conditions = found["status"]["conditions"].as_array().into_iter().flatten();
    Ok(conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True"))
}

/// Whether everything that is wanted is there. Servers add defaults.
fn covers(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| there.get(key).is_some_and(|there| covers(there, value)))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len() && there.iter().zip(wanted).all(|(there, wanted)| covers(there, wanted))
        }
        (there, wanted) => there == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_of_servers_are_no_difference() {
        let wanted = json!({"versions": [{"name": "v1", "served": true}]});
        for (there, same) in [
            (json!({"conversion": {"strategy": "None"}, "versions": [{"name": "v1", "served": true, "x": 1}]}), true),
            (json!({"versions": [{"name": "v1", "served": false}]}), false),
            (json!({"versions": [{"name": "v1", "served": true}, {"name": "v2"}]}), false),
            (json!({}), false),
        ] {
            assert_eq!(covers(&there, &wanted), same, "{there}");
        }
    }
}
