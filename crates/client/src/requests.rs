//! How many requests went out, and how they were answered.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response};

/// What requests are counted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestLabels {
    /// Host and port.
    pub host: String,
    /// Method, such as `GET`; a watch is one as well.
    pub method: String,
    /// Code of the answer; 0 if there was none.
    pub code: u16,
}

/// The requests with the same labels, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTotals {
    /// How many.
    pub count: u64,
    /// How long they waited for the heads of their answers, together.
    pub waited: Duration,
}

/// The requests of one pool so far.
#[derive(Default)]
pub(crate) struct Requests {
    counts: Mutex<BTreeMap<RequestLabels, RequestTotals>>,
}

impl Requests {
    /// What a request asks for, before it is sent.
    pub(crate) fn asked<B>(request: &Request<B>) -> RequestLabels {
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        RequestLabels { host, method: request.method().to_string(), code: 0 }
    }

    /// Counts an answer.
    pub(crate) fn count<B, E>(&self, mut asked: RequestLabels, answer: &Result<Response<B>, E>, waited: Duration) {
        asked.code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = counts.entry(asked).or_default();
        answers.count += 1;
        answers.waited += waited;
    }

    /// All counts.
    pub(crate) fn read(&self) -> BTreeMap<RequestLabels, RequestTotals> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
