//! Watch streams: events, bookmarks, timeouts.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::negotiate::Shape;
use super::reply::{self, Reply};
use super::resource::Call;
use super::table::{self, Include, Partial};
use crate::api::{Event, EventKind, ListOptions, Scope, WatchOptions, bookmark};
use crate::status::{Cause, Status};
use crate::store::Store;

const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
const LONGEST: u64 = 45 * 60;

pub(super) fn answer(call: &Call<'_>, scope: Scope, options: ListOptions) -> Result<Reply, Status> {
    let initial = call.query.get("sendInitialEvents").map(|text| text == "true" || text == "1");
    let matched = call.query.get("resourceVersionMatch");
    if initial.is_some() && matched != Some("NotOlderThan") {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        return Err(Status::invalid(
            "meta.k8s.io",
            "ListOptions",
            "",
            &[Cause::forbidden("resourceVersionMatch", detail)],
        ));
    }
    if initial.is_none() && matched.is_some() {
        let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        return Err(Status::invalid(
            "meta.k8s.io",
            "ListOptions",
            "",
            &[Cause::forbidden("resourceVersionMatch", detail)],
        ));
    }
    let bookmarks = call.query.flag("allowWatchBookmarks");
    let seconds =
        call.query.get("timeoutSeconds").and_then(|text| text.parse::<u64>().ok()).filter(|seconds| *seconds > 0);
    let api = call.api();
    let watch =
        WatchOptions { labels: options.labels, fields: options.fields, revision: options.revision, initial, bookmarks };
    let events = api.watch(scope.clone(), watch)?;
    let shape = Shaper {
        shape: call.accept.shape,
        include: Include::parse(call.query.get("includeObject")),
        scope,
        columns_sent: false,
    };
    let mut ticks = tokio::time::interval_at(Instant::now() + BOOKMARK_EVERY, BOOKMARK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let state = State {
        events: events.boxed(),
        store: api.store.clone(),
        shape,
        bookmarks,
        ticks,
        deadline: Instant::now() + Duration::from_secs(seconds.unwrap_or(LONGEST).min(24 * 3600)),
        stop: call.server.stop.clone(),
        over: false,
    };
    let lines = stream::unfold(state, |mut state| async move { state.next().await.map(|line| (line, state)) });
    let body = StreamBody::new(lines.map(|line| Ok(Frame::data(line)))).boxed_unsync();
    Ok(reply::stream("application/json", body))
}

struct State {
    events: Pin<Box<dyn Stream<Item = Event> + Send>>,
    store: std::sync::Arc<Store>,
    shape: Shaper,
    bookmarks: bool,
    ticks: Interval,
    deadline: Instant,
    stop: CancellationToken,
    over: bool,
}

enum Wake {
    Event(Option<Event>),
    Tick,
    Deadline,
    Stop,
}

impl State {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.over {
                return None;
            }
            let wake = tokio::select! {
                biased;
                () = self.stop.cancelled() => Wake::Stop,
                event = self.events.next() => Wake::Event(event),
                () = tokio::time::sleep_until(self.deadline) => Wake::Deadline,
                _ = self.ticks.tick() => Wake::Tick,
            };
            match wake {
                Wake::Event(Some(event)) => {
                    self.over = event.kind == EventKind::Error;
                    return Some(self.shape.line(event));
                }
                Wake::Tick if !self.bookmarks => {}
                Wake::Tick => return Some(self.bookmark()),
                Wake::Deadline if self.bookmarks => {
                    self.over = true;
                    return Some(self.bookmark());
                }
                Wake::Deadline | Wake::Stop | Wake::Event(None) => return None,
            }
        }
    }

    /// A bookmark at a revision whose changes have all been looked at, or an event that came in between.
    fn bookmark(&mut self) -> Bytes {
        let revision = self.store.revision();
        let event = self.events.next().now_or_never().flatten().unwrap_or_else(|| {
            let object = bookmark(&self.shape.scope, revision, false);
            Event { kind: EventKind::Bookmark, object }
        });
        self.shape.line(event)
    }
}

/// Puts events into the shape the client wants.
struct Shaper {
    shape: Shape,
    include: Include,
    scope: Scope,
    columns_sent: bool,
}

impl Shaper {
    fn line(&mut self, event: Event) -> Bytes {
        let kind = event.kind;
        let object = self.shaped(event);
        format!("{{\"type\":\"{}\",\"object\":{object}}}\n", kind.word()).into()
    }

    /// The object of an event as JSON text.
    fn shaped(&mut self, event: Event) -> String {
        match (self.shape, event.kind) {
            (Shape::Object, _) | (_, EventKind::Error) => event.object.to_string(),
            (Shape::Partial, _) => text(&Partial::of(&event.object)),
            (Shape::Table, EventKind::Bookmark) => {
                text(&table::table(&self.scope, &[], &event.object["metadata"], self.include, None))
            }
            (Shape::Table, _) => {
                // Only the first event explains the columns.
                let columns = (!self.columns_sent).then(|| table::columns(&self.scope));
                self.columns_sent = true;
                let metadata = json!({"resourceVersion": event.object["metadata"]["resourceVersion"]});
                text(&table::table(&self.scope, &[event.object], &metadata, self.include, columns))
            }
        }
    }
}

/// Tables and partial objects consist of values only, which always have a JSON form.
fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
