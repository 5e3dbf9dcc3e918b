//! Kubernetes Events, written off the critical path.
//!
//! Controllers put events into a queue and go on. Equal events become one object with a count; an object that causes too many is rate
//! limited, and so are warnings for one reason in one workspace; when servers are slow or down, events are dropped, never anything else. They are written a moment later, and only now and
//! then while servers are at their limit: objects come first.

mod closed;
mod flood;
mod ledger;
mod note;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Client, Error, Resource};
use carrick_multicluster::Pace;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use closed::Closed;
use flood::{Admitted, Flood};
use ledger::{Ledger, NextWrite, WrittenEvent};
use note::{Involved, Note};

pub use note::Type;

const WORKERS: usize = 4;
const QUEUE: usize = 1024;
const LONGEST_MESSAGE: usize = 1024;
const LONGEST_NAME: usize = 253;
/// What the last warning says of many.
const LEFT_OUT: &str =
    " (There are many warnings of this reason in this workspace: more of them are left out for a minute.)";
/// How long an event waits anyway, so that what it is about is done first.
const SETTLE: Duration = Duration::from_millis(100);
/// How long the next event waits for overloaded servers.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long writing the remaining events may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Records events in the name of one controller. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Recorder {
    component: &'static str,
    queues: Arc<Vec<mpsc::Sender<Note>>>,
    closed: Arc<Closed>,
    flood: Arc<Flood>,
}

impl Recorder {
    /// Starts the tasks that write events, at a pace that servers can bear.
    pub fn start(component: &'static str, pace: &Pace) -> (Self, Writers) {
        let (mut tasks, hurry) = (JoinSet::new(), CancellationToken::new());
        let closed = Arc::<Closed>::default();
        let queues = (0..WORKERS)
            .map(|_| {
                let (sender, receiver) = mpsc::channel(QUEUE);
                tasks.spawn(write_all(receiver, pace.clone(), hurry.clone(), Arc::clone(&closed)));
                sender
            })
            .collect();
        (Self { component, queues: Arc::new(queues), closed, flood: Arc::default() }, Writers { tasks, hurry })
    }

    /// The same recorder in the name of another controller.
    #[must_use]
    pub fn of(&self, component: &'static str) -> Self {
        Self { component, ..self.clone() }
    }

    /// Where to take note of what consumers decide about events.
    pub(crate) fn closed(&self) -> Arc<Closed> {
        Arc::clone(&self.closed)
    }

    /// Queues an event about an object, to be written where the client points. Returns at once and never fails.
    pub fn event(&self, client: &Client, involved: &Value, kind: Type, reason: &str, message: &str) {
        let mut message = shortened(message, LONGEST_MESSAGE).to_owned();
        if kind == Type::Warning {
            match self.flood.admits(client.url(), (reason, &message), Instant::now()) {
                Admitted::Yes => {}
                Admitted::Last => {
                    message = format!("{}{LEFT_OUT}", shortened(&message, LONGEST_MESSAGE - LEFT_OUT.len()));
                }
                Admitted::No => return,
            }
        }
        let involved = Involved::of(involved);
        // All events of one object go through one queue, so that their order and their counts are right.
        let mut hasher = DefaultHasher::new();
        (client.url(), &involved.uid, &involved.namespace, &involved.name).hash(&mut hasher);
        let queue = usize::try_from(hasher.finish() % WORKERS as u64).unwrap_or_default();
        let note = Note {
            since: Instant::now(),
            client: client.clone(),
            component: self.component,
            involved,
            kind,
            reason: reason.to_owned(),
            message,
        };
        if let Err(mpsc::error::TrySendError::Full(note)) = self.queues[queue].try_send(note) {
            tracing::debug!(object = note.involved.name, reason = note.reason, "Too many events, dropped one.");
        }
    }
}

/// The tasks that write events; ended when dropped.
pub struct Writers {
    tasks: JoinSet<()>,
    hurry: CancellationToken,
}

impl Writers {
    /// Writes what is left, if that can be done soon. All recorders should be gone.
    pub async fn finish(mut self) {
        self.hurry.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST_WORDS, all).await;
    }
}

async fn write_all(mut queue: mpsc::Receiver<Note>, pace: Pace, hurry: CancellationToken, closed: Arc<Closed>) {
    let mut ledger = Ledger::default();
    while let Some(note) = queue.recv().await {
        let calm = async {
            tokio::time::sleep_until(note.since + SETTLE).await;
            let _ = tokio::time::timeout(PATIENCE, pace.calm()).await;
        };
        tokio::select! {
            () = hurry.cancelled() => {}
            () = calm => {}
        }
        if closed.is_closed(note.client.url()) {
            continue;
        }
        if let Err(error) = write(&mut ledger, &note).await {
            // Whatever forbids one event forbids the next as well: the table would have it retried.
            if error.is_forbidden() {
                closed.refused(note.client.url());
            }
            tracing::debug!(object = note.involved.name, reason = note.reason, %error, "Event not written.");
        }
    }
}

async fn write(ledger: &mut Ledger, note: &Note) -> Result<(), Error> {
    let resource = Resource::namespaced("", "v1", "Event", "events");
    let namespace = if note.involved.namespace.is_empty() { "default" } else { &note.involved.namespace };
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let key = ledger::EventKey::of(note);
    match ledger.look(&key, std::time::Instant::now()) {
        NextWrite::Drop => return Ok(()),
        NextWrite::Repeat(entry) => {
            let patch = json!({ "count": entry.count + 1, "lastTimestamp": now });
            match note.client.merge_patch(&resource, Some(namespace), &entry.name, &patch).await {
                Ok(_) => {
                    ledger.wrote(key, WrittenEvent { count: entry.count + 1, ..entry });
                    return Ok(());
                }
                // The server deletes events after a while: then it is a new one.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        NextWrite::New => {}
    }
    let event = event(note, namespace, &now);
    let name = event["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    note.client.create(&resource, Some(namespace), &event).await?;
    ledger.wrote(key, WrittenEvent { name, count: 1 });
    Ok(())
}

fn event(note: &Note, namespace: &str, now: &str) -> Value {
    let involved = &note.involved;
    let suffix = format!(".{:016x}", uuid::Uuid::new_v4().as_u64_pair().0);
    let name = shortened(&involved.name, LONGEST_NAME - suffix.len()).trim_end_matches(['.', '-']);
    let mut object = json!({
        "kind": involved.kind,
        "apiVersion": involved.api_version,
        "name": involved.name,
        "uid": involved.uid,
        "resourceVersion": involved.resource_version,
    });
    if !involved.namespace.is_empty() {
        object["namespace"] = json!(involved.namespace);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": format!("{name}{suffix}"), "namespace": namespace },
        "involvedObject": object,
        "reason": note.reason,
        "message": note.message,
        "type": note.kind.name(),
        "source": { "component": note.component },
        "reportingComponent": note.component,
        "reportingInstance": "",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    })
}

/// The longest prefix of at most `limit` bytes.
fn shortened(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_character_boundaries() {
        assert_eq!(shortened("abc", 5), "abc");
        assert_eq!(shortened("aäb", 2), "a");
        assert_eq!(shortened("aäb", 3), "aä");
    }
}
