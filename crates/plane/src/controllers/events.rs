//! Events are deleted after an hour, as in Kubernetes.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::store::{Expect, Kind};

const LIFETIME: i64 = 3600;
const EVERY: Duration = Duration::from_mins(5);

/// Removes old events from time to time until `stop` is cancelled.
pub(super) async fn run(api: Arc<Api>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => forget(&api, jiff::Timestamp::now()),
        }
    }
}

/// Deletes the events that have not been written for an hour before `now`.
fn forget(api: &Api, now: jiff::Timestamp) {
    for (key, stored) in api.store.list(&Kind::new("", "events"), None, None).1 {
        let object = stored.value();
        let times = [
            &object["series"]["lastObservedTime"],
            &object["lastTimestamp"],
            &object["eventTime"],
            &object["metadata"]["creationTimestamp"],
        ];
        let newest = times.into_iter().filter_map(|time| time.as_str()?.parse::<jiff::Timestamp>().ok()).max();
        if newest.is_some_and(|time| now.duration_since(time).as_secs() > LIFETIME) {
            // A concurrent write keeps the event.
            let _ = api.store.commit(&key, Expect::Revision(stored.revision()), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Mode;
    use crate::store::{Key, Store};

    #[test]
    fn only_old_events_are_forgotten() {
        let store = Arc::new(Store::default());
        let now: jiff::Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        for (name, created, last) in [
            ("old", "2026-01-01T10:00:00Z", None),
            ("again", "2026-01-01T10:00:00Z", Some("2026-01-01T11:30:00Z")),
            ("new", "2026-01-01T11:59:00Z", None),
        ] {
            let key = Key::new(&Kind::new("", "events"), "", "default", name);
            let object = json!({"metadata": {"name": name, "creationTimestamp": created}, "lastTimestamp": last});
            store.commit(&key, Expect::Absent, Some(object)).unwrap();
        }
        let api = Api::new(store, Mode::Kube, String::new(), String::new(), None);
        forget(&api, now);
        let left = api.store.list(&Kind::new("", "events"), None, None).1;
        let names: Vec<&str> = left.iter().map(|(key, _)| &*key.name).collect();
        assert_eq!(names, ["again", "new"]);
    }
}
