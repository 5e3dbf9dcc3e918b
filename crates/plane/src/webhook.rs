//! Calls to webhooks: admission and conversion.
//!
//! The API's verbs are not asynchronous, so calls run on a thread of their own and callers wait for them. That thread exists only once there
//! is something to call; the HTTP layer makes sure that no task of the server waits in this way.

mod address;
mod call;
mod trust;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

pub(crate) use address::{HookAddress, Resolve, Service};

/// How long a call takes at most if its webhook does not say so: client-go's default.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);

struct Job {
    address: HookAddress,
    url: String,
    document: Value,
    timeout: Duration,
    answer: mpsc::Sender<Result<Value, String>>,
}

/// Calls webhooks.
#[derive(Default)]
pub(crate) struct HookClient {
    jobs: Mutex<Option<UnboundedSender<Job>>>,
}

/// A call that is under way.
pub(crate) struct Pending(mpsc::Receiver<Result<Value, String>>);

impl Pending {
    /// Waits for the answer: a JSON document, or what went wrong in the words of Go's HTTP client.
    pub(crate) fn wait(self) -> Result<Value, String> {
        self.0.recv().unwrap_or_else(|_| Err("the plane is stopping".to_owned()))
    }
}

impl HookClient {
    /// Sends a document; the webhook receives how long it may take.
    pub(crate) fn start(
        &self,
        address: &HookAddress,
        document: Value,
        timeout: Duration,
        resolve: Resolve<'_>,
    ) -> Pending {
        let (answer, pending) = mpsc::channel();
        let url = format!("{}?timeout={}s", address.url(), timeout.as_secs());
        let address = match address.resolved(resolve) {
            Ok(address) => address,
            Err(why) => {
                // Whoever waits is notified at once.
                let _ = answer.send(Err(format!("Post {url:?}: {why}")));
                return Pending(pending);
            }
        };
        let mut jobs = self.jobs.lock();
        let sender = jobs.get_or_insert_with(run);
        if let Err(lost) = sender.send(Job { address, url, document, timeout, answer }) {
            // The thread is gone; a new one takes over.
            let sender = run();
            let _ = sender.send(lost.0);
            *jobs = Some(sender);
        }
        Pending(pending)
    }
}

/// Refuses a document that is not of this kind, as a decoder in Go does that knows no other.
pub(crate) fn known(document: Value, group: &str, kind: &str) -> Result<Value, String> {
    let text = |key: &str| document[key].as_str().unwrap_or_default();
    let (version, found) = (text("apiVersion"), text("kind"));
    if found.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{document}'"));
    }
    if version.is_empty() {
        return Err(format!("Object 'apiVersion' is missing in '{document}'"));
    }
    let fits = version.strip_prefix(group).is_some_and(|version| matches!(version, "/v1" | "/v1beta1"));
    if found == kind && fits {
        return Ok(document);
    }
    Err(format!("no kind {found:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:110\""))
}

/// Starts the thread that calls; it ends when nobody can send jobs any more.
fn run() -> UnboundedSender<Job> {
    let (sender, mut jobs) = unbounded_channel::<Job>();
    let started = thread::Builder::new().name("webhooks".to_owned()).spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            while let Some(job) = jobs.recv().await {
                tokio::spawn(async move {
                    let called = call::post(&job.address, &job.url, &job.document);
                    let answer = match tokio::time::timeout(job.timeout, called).await {
                        Ok(answer) => answer,
                        Err(_) => Err(format!("Post {:?}: context deadline exceeded", job.url)),
                    };
                    // The caller may have gone away.
                    let _ = job.answer.send(answer);
                });
            }
        });
    });
    if let Err(error) = started {
        tracing::error!(%error, "no thread for calls to webhooks");
    }
    sender
}
