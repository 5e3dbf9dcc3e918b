//! Plans that are recorded instead of being sent.

use tokio::sync::mpsc;

use crate::agent::objects::observe::Observed;
use crate::agent::objects::order::Order;
use crate::decide::{Explanation, Plan, explain};
use crate::rules::metadata::SourceKey;

/// Takes down what would be done.
#[derive(Debug, Clone)]
pub(in crate::agent::objects) struct PlanRecorder(mpsc::UnboundedSender<Recorded>);

/// What would be done for one order.
#[derive(Debug)]
pub(in crate::agent::objects) struct Recorded {
    /// Name of the PublishedResource.
    pub published: String,
    /// The order.
    pub key: SourceKey,
    /// The plan, or why there is none.
    pub outcome: Result<Explanation, String>,
}

impl PlanRecorder {
    /// A recorder, and the other end of it.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Recorded>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Records the plan for an order.
    pub fn plan(&self, order: &Order<'_>, observed: &Observed, plan: &Plan) {
        let unreadable = observed.related.problems.iter().map(ToString::to_string).collect();
        let explanation = explain(&order.rules, observed.seen(order), plan, unreadable);
        let mut waits = observed.related.absent.clone();
        if observed.lacks_related_so_far(order) && !plan.steps.is_empty() {
            waits.push("related objects are reconciled as soon as the steps above are done".to_owned());
        }
        let explanation = Explanation { waits, ..explanation };
        self.record(&order.rules.name, order.key, Ok(explanation));
    }

    /// Records that an order cannot be reconciled.
    pub fn failure(&self, published: &str, key: &SourceKey, message: String) {
        self.record(published, key, Err(message));
    }

    fn record(&self, published: &str, key: &SourceKey, outcome: Result<Explanation, String>) {
        // Nobody listens any more once the time is up.
        let _ = self.0.send(Recorded { published: published.to_owned(), key: key.clone(), outcome });
    }
}
