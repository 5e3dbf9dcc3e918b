//! Events: what Kubernetes' types write even if it is empty, and what it checks of those of the core group.

use serde_json::{Value, json};

use crate::status::Cause;

/// Adds the fields that are written whether they are set or not.
pub(super) fn settle(group: &str, event: &mut Value) {
    let Some(map) = event.as_object_mut() else { return };
    let (times, structures): ([&str; 3], [&str; 2]) = if group.is_empty() {
        (["eventTime", "firstTimestamp", "lastTimestamp"], ["involvedObject", "source"])
    } else {
        (["eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"], ["regarding", "deprecatedSource"])
    };
    for time in times {
        map.entry(time).or_insert(Value::Null);
    }
    for structure in structures {
        map.entry(structure).or_insert_with(|| json!({}));
    }
    if group.is_empty() {
        for text in ["reportingComponent", "reportingInstance"] {
            map.entry(text).or_insert_with(|| "".into());
        }
    }
}

/// What is wrong with an event of the older form, which has no time of its own: it belongs beside the object that it is about.
pub(super) fn faults(event: &Value) -> Option<Cause> {
    if event["eventTime"].as_str().is_some_and(|time| !time.is_empty()) {
        return None;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (own, about) = (text(&event["metadata"]["namespace"]), text(&event["involvedObject"]["namespace"]));
    let fits = if about.is_empty() { matches!(&*own, "" | "default") } else { own == about };
    (!fits).then(|| Cause::invalid("involvedObject.namespace", &about.into(), "does not match event.namespace"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_written_as_go_writes_them() {
        let mut event = json!({"metadata": {}, "count": 1, "source": {"component": "c"}});
        settle("", &mut event);
        assert_eq!(
            event,
            json!({"metadata": {}, "count": 1, "source": {"component": "c"}, "involvedObject": {}, "eventTime": null,
                "firstTimestamp": null, "lastTimestamp": null, "reportingComponent": "", "reportingInstance": ""})
        );
        let mut event = json!({"eventTime": "2020-01-01T00:00:00.000000Z"});
        settle("events.k8s.io", &mut event);
        assert_eq!(
            event,
            json!({"eventTime": "2020-01-01T00:00:00.000000Z", "deprecatedFirstTimestamp": null,
                "deprecatedLastTimestamp": null, "regarding": {}, "deprecatedSource": {}})
        );
    }

    #[test]
    fn events_belong_beside_their_objects() {
        let event =
            |own: &str, about: &str| json!({"metadata": {"namespace": own}, "involvedObject": {"namespace": about}});
        assert!(faults(&event("a", "a")).is_none() && faults(&event("default", "")).is_none());
        assert_eq!(faults(&event("a", "b")).unwrap().message, "Invalid value: \"b\": does not match event.namespace");
        assert!(faults(&event("a", "")).is_some());
        let mut newer = event("a", "b");
        newer["eventTime"] = "2020-01-01T00:00:00.000000Z".into();
        assert!(faults(&newer).is_none());
    }
}
