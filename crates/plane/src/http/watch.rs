//! Watch streams: events, bookmarks, timeouts.

use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::call::Call;
use super::connection::Connection;
use super::negotiate::{Format, Shape};
use super::reply::{self, Cut, Reply};
use super::slow::StreamClock;
use super::table::{self, Include, Partial};
use crate::api::{Event, EventKind, Events, ListOptions, Scope, WatchOptions, bookmark};
use crate::faults::{Effect, Faults, OpenWatch, WatchCommand};
use crate::protobuf;
use crate::status::{Cause, Status};
use crate::store::Store;

const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
const LONGEST: u64 = 45 * 60;
/// How long a watch that the fault layer cuts waits for its last events to arrive.
const BEFORE_CUT: Duration = Duration::from_millis(20);

pub(super) fn answer(
    call: &Call<'_>,
    scope: Scope,
    options: ListOptions,
    connection: Option<&Connection>,
) -> Result<Reply, Status> {
    let format = call.accept.format;
    if format == Format::Yaml {
        return Err(Status::not_acceptable_stream());
    }
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
    let watch = WatchOptions {
        labels: options.labels,
        fields: options.fields,
        past: call.stale(options.revision),
        revision: options.revision,
        initial,
        bookmarks,
    };
    let after = watch.revision.unwrap_or(0);
    let events = api.watch(scope.clone(), watch)?;
    let shape = Shaper {
        format,
        shape: call.accept.shape,
        include: Include::parse(call.query.get("includeObject")),
        scope,
        columns_sent: false,
    };
    let mut ticks = tokio::time::interval_at(Instant::now() + BOOKMARK_EVERY, BOOKMARK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let state = WatchStream {
        events,
        store: api.store.clone(),
        shape,
        bookmarks,
        after,
        ticks,
        deadline: Instant::now() + Duration::from_secs(seconds.unwrap_or(LONGEST).min(24 * 3600)),
        stop: call.server.stop.clone(),
        over: false,
        faults: call.server.faults.clone(),
        ticket: call.server.faults.open_watch(call.plan.ask.clone()),
        fault: call.plan.on_watch(),
        sent: 0,
        silent: false,
        pulse: connection.map(|connection| call.server.slow.stream(connection.kill.clone())),
    };
    let lines = stream::unfold(state, |mut state| async move {
        if let Some(pulse) = &state.pulse {
            pulse.taken();
        }
        let line = state.next().await?;
        if let Some(pulse) = &state.pulse {
            pulse.handed_out();
        }
        Some((line, state))
    });
    let body = StreamBody::new(lines.map(|line| line.map(Frame::data))).boxed_unsync();
    Ok(reply::stream(if format == Format::Protobuf { protobuf::STREAM } else { "application/json" }, body))
}

struct WatchStream {
    events: Events,
    store: std::sync::Arc<Store>,
    shape: Shaper,
    bookmarks: bool,
    /// The revision that the client asked for.
    after: u64,
    ticks: Interval,
    deadline: Instant,
    stop: CancellationToken,
    over: bool,
    faults: Faults,
    ticket: OpenWatch,
    /// The fault that is planned for this watch.
    fault: Option<Effect>,
    /// Events sent, without bookmarks.
    sent: u64,
    /// Whether the fault layer has silenced this watch.
    silent: bool,
    pulse: Option<StreamClock>,
}

enum Wake {
    WatchCommand(WatchCommand),
    Event(Option<Event>),
    Tick,
    Deadline,
    Stop,
}

impl WatchStream {
    async fn next(&mut self) -> Option<Result<Bytes, Cut>> {
        loop {
            if self.over {
                return None;
            }
            if let Some(line) = self.planned() {
                self.over = true;
                if line.is_err() && self.sent > 0 {
                    // A reset would overtake events that are still on their way.
                    tokio::time::sleep(BEFORE_CUT).await;
                }
                return Some(line);
            }
            let silent = self.silent;
            let wake = tokio::select! {
                biased;
                () = self.stop.cancelled() => Wake::Stop,
                order = self.ticket.changed() => Wake::WatchCommand(order),
                event = self.events.next(), if !silent => Wake::Event(event),
                () = tokio::time::sleep_until(self.deadline), if !silent => Wake::Deadline,
                _ = self.ticks.tick(), if !silent => Wake::Tick,
            };
            match wake {
                Wake::WatchCommand(order) => {
                    self.silent = order == WatchCommand::Stall;
                    self.faults.count(|counts| counts.watches_stalled += u64::from(order == WatchCommand::Stall));
                }
                Wake::Event(Some(event)) => {
                    self.over = event.kind == EventKind::Error;
                    self.sent += u64::from(event.kind != EventKind::Bookmark);
                    return Some(Ok(self.shape.line(event)));
                }
                Wake::Tick => {
                    if let Some(line) = self.bookmark() {
                        return Some(Ok(line));
                    }
                }
                Wake::Deadline if self.bookmarks => {
                    self.over = true;
                    return self.bookmark().map(Ok);
                }
                Wake::Deadline | Wake::Stop | Wake::Event(None) => return None,
            }
        }
    }

    /// The last line, if the fault layer ends this watch now; it may also silence it.
    fn planned(&mut self) -> Option<Result<Bytes, Cut>> {
        if self.ticket.order() == WatchCommand::Cut {
            self.faults.count(|counts| counts.watches_cut += 1);
            return Some(Err(Cut));
        }
        match self.fault {
            Some(Effect::CutWatch(after)) if self.sent >= after => {
                self.faults.count(|counts| counts.watches_cut += 1);
                Some(Err(Cut))
            }
            Some(Effect::ExpireWatch(after)) if self.sent >= after => {
                self.faults.count(|counts| counts.watches_expired += 1);
                let object = Status::expired("too old resource version: expired on purpose").value();
                Some(Ok(self.shape.line(Event { kind: EventKind::Error, object })))
            }
            Some(Effect::StallWatch(after)) if self.sent >= after => {
                self.faults.count(|counts| counts.watches_stalled += 1);
                self.fault = None;
                self.silent = true;
                None
            }
            _ => None,
        }
    }

    /// A bookmark at a revision up to which all changes have been processed, or an event that came in between.
    /// None goes to clients that do not understand them, nor, as with API servers, to those that began at a later revision, nor past an
    /// event that is still being converted.
    fn bookmark(&mut self) -> Option<Bytes> {
        let revision = self.store.revision();
        if !self.bookmarks || revision < self.after {
            return None;
        }
        let event = match self.events.next().now_or_never().flatten() {
            Some(event) => event,
            None if self.events.is_converting() => return None,
            None => Event { kind: EventKind::Bookmark, object: bookmark(&self.shape.scope, revision, false) },
        };
        Some(self.shape.line(event))
    }
}

/// Puts events into the shape the client wants.
struct Shaper {
    format: Format,
    shape: Shape,
    include: Include,
    scope: Scope,
    columns_sent: bool,
}

impl Shaper {
    fn line(&mut self, event: Event) -> Bytes {
        let kind = event.kind;
        if self.format == Format::Protobuf {
            return self.frame(event).into();
        }
        let object = self.shaped(event);
        format!("{{\"type\":\"{}\",\"object\":{object}}}\n", kind.word()).into()
    }

    /// An event as protobuf.
    fn frame(&self, event: Event) -> Vec<u8> {
        let kind = event.kind;
        let object = match (self.shape, kind) {
            (Shape::Object, _) | (_, EventKind::Error) => event.object,
            _ => serde_json::to_value(Partial::of(&event.object)).unwrap_or_default(),
        };
        // Only kinds with a message come here.
        protobuf::encode_event(kind.word(), &object).unwrap_or_default()
    }

    /// The object of an event as JSON text.
    fn shaped(&mut self, event: Event) -> String {
        match (self.shape, event.kind) {
            (Shape::Object, _) | (_, EventKind::Error) => event.object.to_string(),
            (Shape::Partial | Shape::PartialList, _) => text(&Partial::of(&event.object)),
            (Shape::Table, EventKind::Bookmark) => {
                text(&table::table(&self.scope, &[], &event.object["metadata"], self.include, None))
            }
            (Shape::Table, _) => {
                // Only the first event contains the column definitions.
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
