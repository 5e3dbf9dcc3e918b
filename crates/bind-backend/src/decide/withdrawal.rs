//! Withdrawing an export: its consumer is told before anything goes.
//!
//! A finalizer keeps an export that is deleted. The konnector says so on its binding, lets the consumer's objects go, and answers with a condition;
//! until then the consumer keeps its rights. Nobody waits for a consumer that has bound nothing, is away, or has a konnector that does not answer.

use std::time::Duration;

use carrick_bind_api::clock;
use carrick_bind_api::conditions::{self, CONNECTED, CONSUMER_TOLD};
use carrick_bind_api::heartbeat;
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::names::WITHDRAWAL_FINALIZER;
use carrick_bind_api::problems::ExportProblem;
use carrick_bind_api::v1alpha2::{ApiServiceExport, ClusterBinding};

use super::plan::Plan;

/// How long a consumer may take to answer. kube-bind's own konnector never does.
const PATIENCE: Duration = Duration::from_mins(1);

/// What to do about an export that is being deleted.
pub fn decide(export: &ApiServiceExport, consumer: Option<&ClusterBinding>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if !export.metadata.has_finalizer(WITHDRAWAL_FINALIZER) {
        return plan;
    }
    let waited = clock::read(&export.metadata.deletion_timestamp)
        .and_then(|since| Duration::try_from(now.duration_since(since)).ok())
        .unwrap_or_default();
    if knows(export) || !is_there(consumer, now) || waited >= PATIENCE {
        return let_go(std::slice::from_ref(export));
    }
    plan.look_again_after(PATIENCE.saturating_sub(waited));
    plan
}

/// Lets exports go that are being deleted.
pub fn let_go(exports: &[ApiServiceExport]) -> Plan {
    let mut plan = Plan::default();
    for export in exports.iter().filter(|it| it.metadata.is_deleting()) {
        if export.metadata.has_finalizer(WITHDRAWAL_FINALIZER) {
            let mut new = export.clone();
            new.metadata.remove_finalizer(WITHDRAWAL_FINALIZER);
            plan.replace(&new);
        }
    }
    plan
}

/// Whether the consumer has answered, or has nothing to do with it.
fn knows(export: &ApiServiceExport) -> bool {
    let all = &export.status.conditions;
    let unbound = ExportProblem::BindingNotFound { binding: String::new() };
    let bound = conditions::find(all, CONNECTED).is_some_and(|it| it.is_true() || it.reason != unbound.reason());
    conditions::is_true(all, CONSUMER_TOLD) || !bound
}

/// Whether the consumer's konnector is there to be told.
fn is_there(consumer: Option<&ClusterBinding>, now: Timestamp) -> bool {
    consumer.is_some_and(|consumer| heartbeat::health(&consumer.status, now).condition.is_true())
}

#[cfg(test)]
mod tests {
    use carrick_bind_api::conditions::Condition;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn export() -> ApiServiceExport {
        let mut export = ApiServiceExport::new("sheriffs");
        export.metadata.add_finalizer(WITHDRAWAL_FINALIZER);
        export.metadata.deletion_timestamp = clock::show(at(0));
        conditions::set(&mut export.status.conditions, Condition::holds(CONNECTED), at(0));
        export
    }

    fn consumer() -> ClusterBinding {
        let mut binding = ClusterBinding::new("cluster");
        heartbeat::beat(&mut binding.status, heartbeat::INTERVAL, at(0));
        binding
    }

    #[test]
    fn an_export_waits_for_its_consumer_and_for_nobody_else() {
        let (export, consumer) = (export(), consumer());
        let waits = decide(&export, Some(&consumer), at(20));
        assert_eq!((waits.writes.len(), waits.look_again), (0, Some(Duration::from_secs(40))));
        assert_eq!(decide(&export, Some(&consumer), at(60)).writes.len(), 1, "a konnector that never answers");
        assert_eq!(decide(&export, Some(&consumer), at(2000)).writes.len(), 1);
        assert_eq!(decide(&export, None, at(1)).writes.len(), 1, "nobody is there");
        assert_eq!(decide(&export, Some(&ClusterBinding::new("cluster")), at(1)).writes.len(), 1, "nobody ever came");
        let mut told = export.clone();
        conditions::set(&mut told.status.conditions, Condition::holds(CONSUMER_TOLD), at(1));
        let plan = decide(&told, Some(&consumer), at(1));
        assert_eq!(plan.writes[0].object()["metadata"]["finalizers"].as_array().map_or(0, Vec::len), 0);
        let mut unbound = export.clone();
        let problem = ExportProblem::BindingNotFound { binding: "sheriffs".to_owned() };
        conditions::set(&mut unbound.status.conditions, problem.condition(), at(1));
        assert_eq!(decide(&unbound, Some(&consumer), at(1)).writes.len(), 1);
        let mut broken = export;
        let problem = ExportProblem::SchemasNotValid { problem: "x".to_owned() };
        conditions::set(&mut broken.status.conditions, problem.condition(), at(1));
        assert_eq!(decide(&broken, Some(&consumer), at(1)).writes.len(), 0, "it is bound, if badly");
    }

    #[test]
    fn nothing_is_let_go_that_stays_and_nothing_twice() {
        let mut staying = export();
        staying.metadata.deletion_timestamp.clear();
        let mut gone = export();
        gone.metadata.remove_finalizer(WITHDRAWAL_FINALIZER);
        assert_eq!(let_go(&[staying, gone.clone()]), Plan::default());
        assert_eq!(decide(&gone, None, at(100)), Plan::default());
    }
}
