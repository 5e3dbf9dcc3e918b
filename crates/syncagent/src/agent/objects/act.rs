//! Act: what becomes of a plan. A running agent sends it to the servers; whoever asks what would be done has it recorded.

mod agent;
mod drifted;
mod given_up;
mod paused;
mod record;
mod send;
mod unplaced;

use serde_json::Value;

use super::error::ReconcileError;
use super::observe::Observed;
use super::order::Order;
use super::shared::Shared;
use crate::decide::{Next, Plan};
use crate::rules::metadata::SourceKey;

pub(super) use record::{PlanRecorder, Recorded};

/// Carries plans out, in one of two ways.
#[derive(Clone)]
pub(super) enum Executor {
    /// Sends the steps to the servers, and tells consumers.
    Send,
    /// Writes down what would be done, and does nothing else.
    Record(PlanRecorder),
}

impl Executor {
    /// Carries out the plan for an order.
    pub async fn act(&self, order: &Order<'_>, observed: Observed, plan: Plan) -> Result<Next, ReconcileError> {
        match self {
            Self::Send => send::send(order, observed, plan).await,
            Self::Record(recorder) => {
                recorder.plan(order, &observed, &plan);
                Ok(Next::OnChange)
            }
        }
    }

    /// Notes what is paused of an order.
    pub fn note_paused(&self, order: &Order<'_>, observed: &Observed) {
        match self {
            Self::Send => paused::note(order, observed),
            Self::Record(_) => {}
        }
    }

    /// Counts what others have changed of an order's copy, if nobody has counted it before: then it has its turn again behind all others, and
    /// of many it is known how many they are before the first of them is written about.
    pub fn count_drift(&self, order: &Order<'_>, plan: &Plan) -> bool {
        match self {
            Self::Send => drifted::count_first(order, plan),
            Self::Record(_) => false,
        }
    }

    /// Reports how the reconcile of an order ended: what is wrong, or nothing.
    pub fn report(&self, order: &Order<'_>, error: Option<&ReconcileError>) {
        match (self, error) {
            (Self::Send, error) => send::report(order, error),
            (Self::Record(recorder), Some(error)) => {
                recorder.failure(&order.rules.name, order.key, error.to_string());
            }
            (Self::Record(_), None) => {}
        }
    }

    /// Tells the consumer on the order itself why it was refused.
    pub async fn tell(&self, order: &Order<'_>, why: &str) -> Result<(), ReconcileError> {
        match self {
            Self::Send => send::tell(order, why).await,
            Self::Record(_) => Ok(()),
        }
    }

    /// Reports in the status of the order why it was not placed.
    pub async fn report_unplaced(&self, order: &Order<'_>, error: &ReconcileError) -> Result<(), ReconcileError> {
        match self {
            Self::Send => unplaced::report(order, error).await,
            Self::Record(_) => Ok(()),
        }
    }

    /// Lets a deleted order go although its copy cannot be reached.
    pub async fn give_up(&self, order: &Order<'_>) -> Result<(), ReconcileError> {
        match self {
            Self::Send => given_up::send(order).await,
            Self::Record(_) => Ok(()),
        }
    }

    /// Deletes a copy that was made after its order had ended.
    pub async fn remove_late(&self, shared: &Shared, key: &SourceKey, copy: &Value) -> Result<(), ReconcileError> {
        match self {
            Self::Send => send::remove_late(shared, key, copy).await,
            Self::Record(_) => Ok(()),
        }
    }

    /// Reports that the agent panicked over an order.
    pub fn report_panic(&self, shared: &Shared, key: &SourceKey, message: &str) {
        match self {
            Self::Send => send::report_panic(shared, key),
            Self::Record(recorder) => recorder.failure(&shared.rules().name, key, message.to_owned()),
        }
    }
}
