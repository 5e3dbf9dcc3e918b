//! The watch loop as a state machine that is driven one event at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::clock::{Behind, VersionClock};
use super::event::Event;
use super::lines::Lines;
use super::options::WatchOptions;
use crate::client::Client;
use crate::error::{Error, Status};
use crate::lists::{ListOptions, Page};
use crate::object::Object;
use crate::resource::{Resource, push_query};
use crate::transport::Host;

/// How long a watch must live, or else deliver something, before an outage is over. Servers that list well but cannot
/// watch are therefore asked at growing intervals instead of without a pause.
const PROBATION: Duration = Duration::from_secs(1);
/// Over which time the watches of a server that is back spread their first requests.
const SPREAD: Duration = Duration::from_millis(300);
/// How large a page may be before it is asked for again with fewer objects.
const LARGEST_PAGE: usize = 16 << 20;
/// The same for a list in one piece, which is asked for page by page again.
const LARGEST_WHOLE: usize = 2 * LARGEST_PAGE;
/// The annotation on the bookmark that ends the initial events of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

pub(super) struct Watch {
    client: Client,
    resource: Resource,
    options: WatchOptions,
    /// Events not handed out yet.
    ready: VecDeque<Event>,
    step: WatchStep,
    /// Whether the server is still believed to know streaming lists.
    streaming: bool,
    /// How many objects the next page is to have.
    page_size: u32,
    /// Whether the next list is to come in one piece, because pages expired.
    unpaged: bool,
    /// Whether an outage was reported whose end was not.
    failing: bool,
    backoff: Backoff,
    clock: VersionClock,
    /// How many bytes the list has so far, or its events since.
    taken: usize,
    /// The server, and what changes whenever something that failed may work now.
    host: Option<(Arc<Host>, tokio::sync::watch::Receiver<u64>)>,
}

/// What to do next.
enum WatchStep {
    /// Get a complete list.
    List,
    /// Get the next page of a list.
    NextPage { token: String },
    /// See whether the server still knows a version, then watch from there.
    Check { version: String },
    /// Watch from a version.
    Resume { version: String },
    /// Read events.
    Read(Box<Reading>),
    /// Wait, then go on.
    Pause { until: Instant, why: Why, then: Box<WatchStep> },
}

/// An open watch request.
struct Reading {
    lines: Lines,
    /// Where to resume; `None` while the initial events of a streaming list come in.
    version: Option<String>,
    opened: Instant,
    /// How long it may be silent.
    silence: Duration,
    delivered: bool,
    /// Whether something came that is older than what came before.
    behind: bool,
}

/// Why to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The server is at fault, or does not accept the credentials: when one watch works again, the others should try too.
    Server,
    /// This watch is refused.
    Refused,
    /// Nothing is wrong, or the kind is not served.
    Other,
}

impl Why {
    fn of(error: &Error) -> Self {
        match error.status().map(|status| status.code) {
            Some(404) => Self::Other,
            Some(401) => Self::Server,
            _ if error.is_transient() => Self::Server,
            _ => Self::Refused,
        }
    }
}

/// Why an open watch request cannot be read any further.
enum End {
    /// The server closed it when its time was over.
    InTime,
    /// The server closed it early, the connection broke, or it went silent.
    Closed,
    /// It was a list of a version that is below the one that is known.
    Past,
    /// The server sent an error event.
    Error(Error),
    /// The server sent something else than an event.
    Garbage(Error),
}

impl Watch {
    pub(super) fn new(client: Client, resource: Resource, options: WatchOptions) -> Self {
        let host = client.host().map(|host| {
            let retries = host.retries();
            (host, retries)
        });
        Self {
            host,
            client,
            resource,
            streaming: options.streaming_lists,
            page_size: options.page_size,
            options,
            ready: VecDeque::new(),
            step: WatchStep::List,
            unpaged: false,
            failing: false,
            backoff: Backoff::default(),
            clock: VersionClock::default(),
            taken: 0,
        }
    }

    pub(super) async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return event;
            }
            if let Some((_, retries)) = &mut self.host
                && !matches!(self.step, WatchStep::Pause { .. })
            {
                // Only reasons to retry from now on count, should this attempt fail.
                retries.mark_unchanged();
            }
            // The future of `next` is only dropped together with the whole watch, so the step need not survive that.
            self.step = match std::mem::replace(&mut self.step, WatchStep::List) {
                // A list in pages says first which version it has.
                WatchStep::List if self.streaming && !self.clock.doubted => {
                    self.taken = 0;
                    self.open_list().await
                }
                WatchStep::List => {
                    self.taken = 0;
                    self.ready.push_back(Event::Begin);
                    self.list_page(None).await
                }
                WatchStep::NextPage { token } => self.list_page(Some(&token)).await,
                WatchStep::Check { version } => self.check(version).await,
                WatchStep::Resume { version } => self.resume(version).await,
                WatchStep::Read(reading) => self.read(reading).await,
                WatchStep::Pause { until, why, then } => {
                    self.wait(until, why).await;
                    *then
                }
            };
        }
    }

    /// Waits until an instant, then for a turn among all that fail; but no longer than until there is a reason to retry.
    async fn wait(&mut self, until: Instant, why: Why) {
        let Some((host, retries)) = &mut self.host else { return tokio::time::sleep_until(until).await };
        let turn = async {
            tokio::time::sleep_until(until).await;
            if why != Why::Other {
                tokio::time::sleep_until(host.turn(why == Why::Server)).await;
            }
        };
        tokio::select! {
            () = turn => return,
            Ok(()) = retries.changed() => {}
        }
        self.backoff.shorten();
        // All who wait learn of it together, and should not come back together.
        tokio::time::sleep(SPREAD.mul_f64(fastrand::f64())).await;
    }

    async fn list_page(&mut self, token: Option<&str>) -> WatchStep {
        match self.page(token).await {
            Ok(page) => {
                if token.is_none()
                    && let Some(again) = self.compare(&page.resource_version)
                {
                    return again;
                }
                self.taken += page.bytes;
                if self.taken > self.client.most() {
                    return self.too_large();
                }
                self.ready.extend(page.items.into_iter().map(Event::Listed));
                if let Some(token) = page.next {
                    return WatchStep::NextPage { token };
                }
                self.unpaged = false;
                self.taken = 0;
                self.ready.push_back(Event::Synced);
                self.clock.advance(&page.resource_version);
                WatchStep::Resume { version: page.resource_version }
            }
            Err(error) if error.is_gone() && token.is_some() => {
                self.unpaged = true;
                WatchStep::List
            }
            Err(Error::TooLarge { .. }) if self.unpaged => {
                self.unpaged = false;
                self.pause(WatchStep::List)
            }
            Err(error) => self.fail(error, WatchStep::List),
        }
    }

    /// A page, of fewer objects where they are large: a page is in memory as a whole.
    async fn page(&mut self, token: Option<&str>) -> Result<Page, Error> {
        let namespace = self.options.namespace.as_deref();
        loop {
            let limit = (!self.unpaged).then_some(self.page_size);
            let most = match limit {
                Some(1) => usize::MAX,
                Some(_) => LARGEST_PAGE,
                None => LARGEST_WHOLE,
            };
            let most = most.min(self.client.most());
            let select = &self.options.select;
            match self.client.list_page_within(&self.resource, namespace, select, (limit, most), token).await {
                Err(Error::TooLarge { .. }) if limit.is_some() && most < self.client.most() => {
                    self.page_size = (self.page_size / 8).max(1);
                }
                Ok(page) => {
                    if page.bytes < LARGEST_PAGE / 4 {
                        self.page_size = self.page_size.saturating_mul(2).min(self.options.page_size);
                    }
                    return Ok(page);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Compares the version of a new list with what was known. Returns what to do instead of taking it, if it is not to be believed yet.
    fn compare(&mut self, version: &str) -> Option<WatchStep> {
        let Some(Behind { known, found }) = self.clock.behind(version) else {
            self.clock.doubted = false;
            return None;
        };
        if !std::mem::replace(&mut self.clock.doubted, true) {
            tracing::debug!(resource = %self.resource, known, found, "an old list, listing again");
            return Some(self.pause(WatchStep::List));
        }
        self.clock.restart();
        if let Some((host, _)) = &self.host {
            host.went_back(self.client.url(), known, found);
        }
        self.ready.push_back(Event::WentBack { known, found });
        None
    }

    /// Asks for as little as possible to learn the server's version: it would accept one of the future, and stay silent.
    async fn check(&mut self, version: String) -> WatchStep {
        if !self.clock.is_set() {
            return WatchStep::Resume { version };
        }
        // Without labels the first object will do, however many do not match.
        let select = ListOptions { label_selector: None, ..self.options.select.clone() };
        let namespace = self.options.namespace.as_deref();
        match self.client.list_page(&self.resource, namespace, &select, Some(1), None).await {
            Ok(page) if self.clock.behind(&page.resource_version).is_none() => WatchStep::Resume { version },
            Ok(_) => {
                self.clock.doubted = true;
                WatchStep::List
            }
            // Perhaps only those who name the labels are answered.
            Err(error) if error.status().is_some_and(|status| matches!(status.code, 403 | 410)) => WatchStep::List,
            Err(error) => self.fail(error, WatchStep::Check { version }),
        }
    }

    /// Starts a streaming list: a watch whose first events are the list.
    async fn open_list(&mut self) -> WatchStep {
        match self.open(None).await {
            Ok(reading) => {
                self.ready.push_back(Event::Begin);
                WatchStep::Read(reading)
            }
            Err(error) if refuses_streaming(&error) => {
                tracing::debug!(resource = %self.resource, %error, "no streaming lists here, listing page by page");
                self.streaming = false;
                WatchStep::List
            }
            Err(error) => self.fail(error, WatchStep::List),
        }
    }

    async fn resume(&mut self, version: String) -> WatchStep {
        match self.open(Some(version.clone())).await {
            Ok(reading) => WatchStep::Read(reading),
            Err(error) if is_lost(&error) => self.lost(&error),
            Err(error) => self.fail(error, WatchStep::Resume { version }),
        }
    }

    async fn open(&mut self, version: Option<String>) -> Result<Box<Reading>, Error> {
        // Spread out, so that watches opened together do not end together.
        let timeout = self.options.timeout.mul_f64(1.0 + 0.2 * fastrand::f64());
        let mut query = self.options.select.query();
        push_query(&mut query, "watch", "true");
        push_query(&mut query, "allowWatchBookmarks", "true");
        push_query(&mut query, "timeoutSeconds", &timeout.as_secs().max(1).to_string());
        if let Some(version) = &version {
            push_query(&mut query, "resourceVersion", version);
        } else {
            push_query(&mut query, "sendInitialEvents", "true");
            push_query(&mut query, "resourceVersionMatch", "NotOlderThan");
        }
        let path = format!("{}{query}", self.resource.list_path(self.options.namespace.as_deref()));
        let answer = self.client.send(Method::GET, &path, None).await?;
        let silence = if version.is_none() { self.options.list_silence } else { timeout + self.options.grace };
        let lines = Lines::new(answer.into_body());
        Ok(Box::new(Reading { lines, version, opened: Instant::now(), silence, delivered: false, behind: false }))
    }

    async fn read(&mut self, mut reading: Box<Reading>) -> WatchStep {
        let on_probation = reading.version.is_some() && self.backoff.is_raised();
        let silence = if on_probation { PROBATION } else { reading.silence };
        let line = match tokio::time::timeout(silence, reading.lines.next()).await {
            Ok(Ok(Some(line))) => line,
            Ok(Ok(None)) => {
                // A server that knows the version sends bookmarks now and then.
                if reading.opened.elapsed() >= self.options.timeout && reading.delivered {
                    return self.ended(*reading, End::InTime);
                }
                if reading.opened.elapsed() < self.options.timeout {
                    // A server that shuts down closes its watches first.
                    self.client.doubt();
                }
                return self.ended(*reading, End::Closed);
            }
            Ok(Err(problem)) => {
                tracing::debug!(resource = %self.resource, %problem, "watch broke off");
                self.client.doubt();
                return self.ended(*reading, End::Closed);
            }
            Err(_) if on_probation => {
                self.recovered();
                return WatchStep::Read(reading);
            }
            Err(_) if reading.version.is_none() => {
                // The server took the request for an ordinary watch, so the end of the list will never be marked.
                tracing::debug!(resource = %self.resource, "streaming list does not end, listing page by page");
                self.streaming = false;
                return WatchStep::List;
            }
            Err(_) => {
                tracing::debug!(resource = %self.resource, "watch is silent, opening a new one");
                return self.ended(*reading, End::Closed);
            }
        };
        self.taken += line.len();
        if self.taken > self.client.most() {
            return match reading.version {
                None => self.too_large(),
                // Whoever keeps all this may have received many objects that nobody has any more.
                Some(_) => WatchStep::List,
            };
        }
        match self.take(&mut reading, &line) {
            Ok(()) => {
                if on_probation {
                    self.recovered();
                }
                match &reading.version {
                    Some(version) if reading.behind && self.clock.may_check() => {
                        WatchStep::Check { version: version.clone() }
                    }
                    _ => WatchStep::Read(reading),
                }
            }
            Err(end) => self.ended(*reading, end),
        }
    }

    /// The list is larger than what is taken from this server.
    fn too_large(&mut self) -> WatchStep {
        // Whoever keeps what was listed so far can forget it at once.
        self.ready.push_back(Event::Begin);
        let error = self.client.too_large(&self.resource.list_path(self.options.namespace.as_deref()));
        self.fail(error, WatchStep::List)
    }

    /// Turns one line into an event.
    fn take(&mut self, reading: &mut Reading, line: &[u8]) -> Result<(), End> {
        let garbage = |problem: String| {
            let request = self.client.describe(&Method::GET, &self.resource.list_path(None));
            End::Garbage(Error::Decode { request, problem })
        };
        let Line { r#type, object } = serde_json::from_slice(line).map_err(|error| garbage(error.to_string()))?;
        reading.delivered = true;
        match &*r#type {
            "BOOKMARK" => {
                let bookmark: Bookmark =
                    serde_json::from_str(object.get()).map_err(|error| garbage(error.to_string()))?;
                let ends_list = bookmark.metadata.annotations.unwrap_or_default().contains_key(INITIAL_EVENTS_END);
                if ends_list && reading.version.is_none() {
                    if self.clock.behind(&bookmark.metadata.resource_version).is_some() {
                        // Its objects are not called complete, because they belong to another time.
                        self.clock.doubted = true;
                        return Err(End::Past);
                    }
                    reading.silence = self.options.timeout.mul_f64(1.2) + self.options.grace;
                    reading.version = Some(String::new());
                    self.taken = 0;
                    self.ready.push_back(Event::Synced);
                }
                if let Some(version) = &mut reading.version {
                    reading.behind |= !self.clock.advance(&bookmark.metadata.resource_version);
                    *version = bookmark.metadata.resource_version;
                }
                return Ok(());
            }
            "ERROR" => {
                let status = Status::from_event(object.get()).map_err(|error| garbage(error.to_string()))?;
                return Err(End::Error(status.into()));
            }
            _ => {}
        }
        let object = match Object::parse(object.get(), Some(&self.resource)) {
            Ok(object) => object,
            Err(problem) => {
                tracing::warn!(resource = %self.resource, %problem, "skipping an event of a watch");
                return Ok(());
            }
        };
        if let Some(version) = &mut reading.version {
            reading.behind |= !self.clock.advance(&object.resource_version);
            *version = object.resource_version.to_string();
        }
        match (&*r#type, &reading.version) {
            ("ADDED" | "MODIFIED", None) => self.ready.push_back(Event::Listed(object)),
            ("ADDED" | "MODIFIED", Some(_)) => self.ready.push_back(Event::Applied(object)),
            ("DELETED", _) => self.ready.push_back(Event::Deleted(object)),
            (other, _) => tracing::warn!(resource = %self.resource, event = other, "skipping an unknown event"),
        }
        Ok(())
    }

    /// Decides how to go on after an open watch request ended.
    fn ended(&mut self, reading: Reading, end: End) -> WatchStep {
        let next = match (reading.version, &end) {
            (Some(version), End::InTime) => WatchStep::Resume { version },
            (Some(version), _) => WatchStep::Check { version },
            (None, _) => WatchStep::List,
        };
        let in_trouble = self.backoff.is_raised();
        match end {
            End::Past => WatchStep::List,
            End::Error(error) if is_lost(&error) => self.lost(&error),
            // Servers that shut down, or lose the server behind them, end watches like this; the version is still good.
            End::Error(error) if !in_trouble => self.fail(error, next),
            // It may be the version that the server cannot cope with.
            End::Error(error) | End::Garbage(error) => self.fail(error, WatchStep::List),
            End::InTime | End::Closed if reading.delivered || reading.opened.elapsed() >= PROBATION => next,
            // Not worth reporting, but a server that hangs up at once must not be asked again without a pause.
            End::InTime | End::Closed => self.pause(next),
        }
    }

    /// The version to resume at is of no use.
    fn lost(&mut self, error: &Error) -> WatchStep {
        self.clock.doubted |= !error.is_gone();
        self.pause(WatchStep::List)
    }

    /// Reports an outage once, and pauses.
    fn fail(&mut self, error: Error, then: WatchStep) -> WatchStep {
        let then = match then {
            // While it was away it may have been restored, and may have passed our version on another way since then.
            WatchStep::Check { .. } | WatchStep::Resume { .. } if was_away(&error) => WatchStep::List,
            then => then,
        };
        let (wish, why) = (error.retry_after(), Why::of(&error));
        let pause = if error.is_not_found() { self.backoff.next_unserved(wish) } else { self.backoff.next(wish) };
        tracing::debug!(resource = %self.resource, %error, ?pause, "watch fails");
        if !std::mem::replace(&mut self.failing, true) {
            self.ready.push_back(Event::Failing(error));
        }
        WatchStep::Pause { until: Instant::now() + pause, why, then: Box::new(then) }
    }

    /// Pauses for something that is no outage, but must not repeat quickly.
    fn pause(&mut self, then: WatchStep) -> WatchStep {
        WatchStep::Pause { until: Instant::now() + self.backoff.next(None), why: Why::Other, then: Box::new(then) }
    }

    fn recovered(&mut self) {
        self.backoff.reset();
        if std::mem::take(&mut self.failing) {
            self.ready.push_back(Event::Recovered);
            if let Some((host, _)) = &self.host {
                host.signal_success();
            }
        }
    }
}

/// Whether the server does not know streaming lists, as opposed to not serving the kind at all.
fn refuses_streaming(error: &Error) -> bool {
    error.status().is_some_and(|status| matches!(status.code, 400 | 405 | 406 | 422 | 501))
}

/// Whether the server could not be reached: there was no answer, or only one of a proxy before it.
fn was_away(error: &Error) -> bool {
    match error {
        Error::Transport { .. } => true,
        error => error.status().is_some_and(|status| matches!(status.code, 502 | 503)),
    }
}

/// Whether the version to resume at is of no use: too old, or newer than the server's after a restored backup.
fn is_lost(error: &Error) -> bool {
    error.is_gone()
        || error.status().is_some_and(|status| {
            let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
            causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
        })
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    r#type: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
    annotations: Option<std::collections::BTreeMap<String, String>>,
}
