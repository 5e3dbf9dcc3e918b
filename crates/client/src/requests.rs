//! How many requests went out, and how they were answered.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response};

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asked {
    /// Host and port.
    pub host: String,
    /// Method, such as `GET`; a watch is one as well.
    pub method: String,
    /// Code of the answer; 0 if there was none.
    pub code: u16,
}

/// What requests of one kind add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// How many.
    pub count: u64,
    /// How long they waited for the heads of their answers, together.
    pub waited: Duration,
}

/// The requests of one pool so far.
#[derive(Default)]
pub(crate) struct Requests {
    counts: Mutex<BTreeMap<Asked, Answers>>,
}

impl Requests {
    /// What a request asks for, before it is sent.
    pub(crate) fn asked<B>(request: &Request<B>) -> Asked {
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        Asked { host, method: request.method().to_string(), code: 0 }
    }

    /// Counts an answer.
    pub(crate) fn count<B, E>(&self, mut asked: Asked, answer: &Result<Response<B>, E>, waited: Duration) {
        asked.code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = counts.entry(asked).or_default();
        answers.count += 1;
        answers.waited += waited;
    }

    /// All counts.
    pub(crate) fn read(&self) -> BTreeMap<Asked, Answers> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
