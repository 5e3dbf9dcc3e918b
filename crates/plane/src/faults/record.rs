//! A record of requests and responses, for tests that count requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;

use super::rule::{Effect, RequestInfo};

/// One request with its response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The request.
    pub ask: RequestInfo,
    /// HTTP status code of the response; zero if the client got none.
    pub code: u16,
    /// What the fault layer did to it.
    pub effects: Vec<Effect>,
}

/// Requests since a recording began. The recording ends when this is dropped.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    pub(super) records: Arc<Mutex<Vec<Record>>>,
}

impl Recording {
    /// All records so far, in the order of the responses.
    pub fn records(&self) -> Vec<Record> {
        self.records.lock().clone()
    }

    /// How many requests fit.
    pub fn count(&self, fits: impl Fn(&Record) -> bool) -> usize {
        self.records.lock().iter().filter(|record| fits(record)).count()
    }

    /// How many requests there were of each verb.
    pub fn by_verb(&self) -> BTreeMap<String, usize> {
        let mut verbs = BTreeMap::new();
        for record in self.records.lock().iter() {
            *verbs.entry(record.ask.verb.clone()).or_default() += 1;
        }
        verbs
    }

    /// Requests that may have changed something.
    pub fn writes(&self) -> Vec<Record> {
        self.records.lock().iter().filter(|record| record.ask.is_write()).cloned().collect()
    }

    /// Forgets everything so far.
    pub fn clear(&self) {
        self.records.lock().clear();
    }
}
