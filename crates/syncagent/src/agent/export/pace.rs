//! How soon the export is written again: two agents that fight over one export must not flood kcp.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::agent::retry::Backoff;
use crate::rules::export::ExportChange;

/// After so long without a write, nobody is fighting.
const CALM: Duration = Duration::from_mins(1);

/// Slows down when what was written has to be written again, because somebody undoes it. Whatever is new is written at once: a provider may
/// publish one kind after the other.
pub(super) struct WritePace {
    backoff: Backoff,
    written: HashSet<String>,
    last: Option<Instant>,
    pause: Duration,
}

impl Default for WritePace {
    fn default() -> Self {
        Self { backoff: Backoff::for_disputes(), written: HashSet::new(), last: None, pause: Duration::ZERO }
    }
}

impl WritePace {
    /// The export was written.
    pub(super) fn wrote(&mut self, change: &ExportChange) {
        let now = Instant::now();
        if self.last.is_none_or(|last| now - last > CALM) {
            self.backoff.reset();
            self.written.clear();
        }
        self.last = Some(now);
        let mut again = false;
        for what in steps(change) {
            again |= !self.written.insert(what);
        }
        self.pause = if again { self.backoff.pause() } else { Duration::ZERO };
    }

    /// When to look again, if that is not now.
    pub(super) fn not_before(&self) -> Option<Instant> {
        self.last.map(|last| last + self.pause).filter(|at| *at > Instant::now())
    }
}

/// What a change does, one by one; whatever is no schema and no claim is one thing.
fn steps(change: &ExportChange) -> Vec<String> {
    let lists = [&change.added_schemas, &change.removed_schemas, &change.added_claims, &change.removed_claims];
    let named = ["+schema", "-schema", "+claim", "-claim"].into_iter().zip(lists);
    let steps: Vec<String> =
        named.flat_map(|(kind, names)| names.iter().map(move |name| format!("{kind} {name}"))).collect();
    if steps.is_empty() { vec!["metadata".to_owned()] } else { steps }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use carrick_kcp::apis::v1alpha2::ApiExport;

    use super::*;

    fn adds(schemas: &[&str]) -> ExportChange {
        ExportChange {
            object: ApiExport::new("e"),
            changed: true,
            added_schemas: schemas.iter().map(|&schema| schema.to_owned()).collect(),
            removed_schemas: Vec::new(),
            added_claims: Vec::new(),
            removed_claims: Vec::new(),
            narrow_claims: Vec::new(),
            taken: BTreeMap::new(),
            concerned: BTreeSet::new(),
            doubts: BTreeMap::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_kind_after_the_other_is_no_fight() {
        let mut pace = WritePace::default();
        for number in 0..100 {
            pace.wrote(&adds(&[&format!("v1.kind-{number}.x")]));
            assert_eq!(pace.not_before(), None, "{number}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_undone_is_written_ever_later_until_all_is_calm() {
        let mut pace = WritePace::default();
        let mut pauses = Vec::new();
        for number in 0..20 {
            // Something new beside it changes nothing.
            pace.wrote(&adds(&["v1.as.x", &format!("v1.kind-{number}.x")]));
            let began = Instant::now();
            if let Some(at) = pace.not_before() {
                tokio::time::sleep_until(at).await;
            }
            pauses.push(began.elapsed().as_millis());
        }
        assert_eq!(pauses[..5], [0, 5, 10, 20, 40]);
        assert_eq!(pauses[19], 30_000);
        tokio::time::advance(CALM + Duration::from_secs(1)).await;
        pace.wrote(&adds(&["v1.as.x"]));
        assert_eq!(pace.not_before(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fight_over_a_name_is_one_as_well() {
        let mut pace = WritePace::default();
        pace.wrote(&adds(&[]));
        assert_eq!(pace.not_before(), None);
        pace.wrote(&adds(&[]));
        assert!(pace.not_before().is_some());
    }
}
