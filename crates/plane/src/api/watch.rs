//! Watch: the store's changes as events of one scope.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};

use super::base::Api;
use super::read::{ListOptions, RevisionMatch, loses_workspace};
use super::scope::Scope;
use super::select::{FieldSelector, LabelSelector};
use crate::request::Target;
use crate::status::Status;
use crate::store::{Change, Key, Topic};

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The object came into view.
    Added,
    /// The object changed.
    Modified,
    /// The object went out of view.
    Deleted,
    /// Nothing else happened up to this revision.
    Bookmark,
    /// The watch is over; the object is a Status.
    Error,
}

impl EventKind {
    /// The event type as it is sent.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// One event.
#[derive(Debug, Clone)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// To what, in the version of the scope.
    pub object: Value,
}

/// Options of a watch.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// Labels.
    pub labels: LabelSelector,
    /// Fields.
    pub fields: FieldSelector,
    /// Start after this revision; `None` or zero begins with the current state.
    pub revision: Option<u64>,
    /// `sendInitialEvents`: the current state, then a marked bookmark.
    pub initial: Option<bool>,
    /// The client understands bookmarks.
    pub bookmarks: bool,
    /// Begin with the state at this past revision instead of the current one.
    pub past: Option<u64>,
}

/// The events of a watch.
pub struct Events {
    stream: BoxStream<'static, Event>,
    converting: Arc<AtomicBool>,
}

impl Events {
    /// Whether an event is with the webhook that converts it: it happened, and has not come out yet.
    pub fn is_converting(&self) -> bool {
        self.converting.load(Ordering::Relaxed)
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.stream.poll_next_unpin(context)
    }
}

impl Api {
    /// Events of a scope, from the chosen start on and without gaps. Ends when the reader is too slow.
    pub fn watch(self: &Arc<Self>, scope: Scope, options: WatchOptions) -> Result<Events, Status> {
        let fresh = matches!(options.revision, None | Some(0));
        let initial = options.initial.unwrap_or(fresh);
        let mut first = Vec::new();
        let mut end = None;
        let after = if initial {
            let list = ListOptions {
                labels: options.labels.clone(),
                fields: options.fields.clone(),
                revision_match: if options.past.is_some() { RevisionMatch::Exact } else { RevisionMatch::NotOlderThan },
                revision: options.past,
                ..ListOptions::default()
            };
            let listed = self.list(&scope, &list)?;
            first = listed.objects;
            if options.bookmarks {
                let marked = options.initial == Some(true) || self.extension.is_some();
                let object = bookmark(&scope, listed.revision, marked);
                end = Some(Event { kind: EventKind::Bookmark, object });
            }
            listed.revision
        } else if fresh {
            self.store.revision()
        } else {
            options.revision.unwrap_or(0)
        };
        let cluster = match &scope.target {
            Target::One(cluster) => Some(cluster.clone()),
            Target::All => None,
        };
        // One at a time as the client reads them: unpacked, they would take ten times the memory.
        let (api, shown) = (self.clone(), scope.clone());
        let first = first.into_iter().filter_map(move |(key, object)| {
            // Converted already, so nothing can fail here.
            let object = api.present(&shown, &key, object.value()).ok()?;
            Some(Event { kind: EventKind::Added, object })
        });
        let converting = Arc::new(AtomicBool::new(false));
        let live = match self.store.watch_topic(Topic { kind: scope.resource.stored_kind(), cluster }, after) {
            Ok(watch) => {
                let api = self.clone();
                // A webhook that converts is waited for, and must not be waited for here.
                let waits = scope.resource.conversion.is_some();
                let filter = Arc::new(Filter { scope, options });
                let changes = watch.filter(move |change| std::future::ready(change.revision > after));
                if waits {
                    let busy = converting.clone();
                    let event = move |change: Arc<Change>| {
                        let (api, filter, busy) = (api.clone(), filter.clone(), busy.clone());
                        busy.store(true, Ordering::Relaxed);
                        let found = tokio::task::spawn_blocking(move || filter.event(&api, &change));
                        async move {
                            let event = found.await.ok().flatten();
                            busy.store(false, Ordering::Relaxed);
                            event
                        }
                    };
                    changes.filter_map(event).boxed()
                } else {
                    changes.filter_map(move |change| std::future::ready(filter.event(&api, &change))).boxed()
                }
            }
            Err(expired) => {
                let object = Status::expired(expired.to_string()).value();
                stream::iter([Event { kind: EventKind::Error, object }]).boxed()
            }
        };
        Ok(Events { stream: stream::iter(first.chain(end)).chain(live).boxed(), converting })
    }
}

/// A bookmark's object: only kind and revision, nothing that a client could mistake for data.
pub(crate) fn bookmark(scope: &Scope, revision: u64, end_of_initial: bool) -> Value {
    let mut object = json!({
        "apiVersion": scope.api_version(),
        "kind": &*scope.resource.kind,
        "metadata": {"resourceVersion": revision.to_string(), "creationTimestamp": null},
    });
    if end_of_initial {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    object
}

struct Filter {
    scope: Scope,
    options: WatchOptions,
}

impl Filter {
    fn event(&self, api: &Api, change: &Change) -> Option<Event> {
        let key = &change.key;
        if !self.scope.namespace.is_empty() && self.scope.namespace != key.namespace {
            return None;
        }
        let before = change.old().filter(|object| self.matches(api, key, object));
        let after = change.now().filter(|object| self.matches(api, key, object));
        let (kind, object) = match (before, after) {
            (None, Some(object)) => (EventKind::Added, object),
            (Some(_), Some(object)) => (EventKind::Modified, object),
            (Some(object), None) => (EventKind::Deleted, object),
            (None, None) => return None,
        };
        let mut object = match api.present_change(&self.scope, key, object) {
            Ok(object) => object,
            Err(status) => return Some(Event { kind: EventKind::Error, object: status.value() }),
        };
        // An object that leaves the selection is sent in its last matching state, with the revision of the change.
        object["metadata"]["resourceVersion"] = change.revision.to_string().into();
        Some(Event { kind, object })
    }

    fn matches(&self, api: &Api, key: &Key, object: &Arc<Value>) -> bool {
        !loses_workspace(&self.scope, &self.options.fields)
            && self.scope.shows(key, object)
            && self.options.labels.matches(object)
            && api.fields_match(&self.scope, &self.options.fields, key, object)
    }
}
