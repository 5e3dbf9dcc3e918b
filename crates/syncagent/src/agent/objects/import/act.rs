//! Linking an object, creating its order, and waiting for the agent.

use std::time::Duration;

use carrick_client::{Error, Resource};
use serde_json::Value;
use tokio::time::Instant;

use super::plan::{Target, Work};
use super::{Importer, MANAGER, place};
use crate::agent::import::{ImportOutcome, ImportedObject};
use crate::api::IMPORTED;
use crate::decide::has_finalizer;
use crate::decide::import::link_patch;
use crate::decide::state::{entry_key, secret_name};
use crate::rules::metadata::SourceKey;

/// How often an object is planned again because somebody else has written it meanwhile.
pub(super) const ATTEMPTS: usize = 5;
/// How often it is checked whether the agent has come.
pub(super) const CHECK: Duration = Duration::from_millis(50);

/// Why an object was not imported.
enum Setback {
    /// Somebody was faster: it is planned again.
    Again(String),
    /// A server refuses, or does not answer.
    Failed(String),
}

impl Importer<'_> {
    /// Imports an object, or only says what would become of it.
    pub(super) async fn import(&self, mut object: Value) -> ImportedObject {
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let planned = self.plan(object.clone()).await;
            let mut report = planned.report;
            if !self.action.writes() {
                return report;
            }
            let target = match (planned.work, planned.target) {
                (Some(work), _) => match self.carry_out(&work).await {
                    Ok(()) => work.target,
                    Err(Setback::Failed(why)) => {
                        (report.outcome, report.reason) = (ImportOutcome::Failed, Some(why));
                        return report;
                    }
                    Err(Setback::Again(why)) => {
                        last = why;
                        match self.read_again(&object).await {
                            Ok(newer) => object = newer,
                            Err(why) => {
                                (report.outcome, report.reason) = (ImportOutcome::Failed, Some(why));
                                return report;
                            }
                        }
                        continue;
                    }
                },
                (None, Some(target)) => target,
                (None, None) => return report,
            };
            let done =
                if report.outcome == ImportOutcome::Already { ImportOutcome::Already } else { ImportOutcome::Imported };
            // Nobody waits for what a policy has imported: the agent takes the order as any other.
            (report.outcome, report.reason) = if self.by_policy || self.is_taken(&target).await {
                (done, None)
            } else {
                let why = "its order is there, and the agent has not taken it: is it running? See carrick doctor";
                (ImportOutcome::Waits, Some(why.to_owned()))
            };
            return report;
        }
        let mut report = super::report_on(&object);
        let why = format!("somebody writes it again and again ({last}); repeat the command");
        (report.outcome, report.reason) = (ImportOutcome::Failed, Some(why));
        report
    }

    /// Links the object, and creates its order. Stopped in between, the object is linked and has no order: the agent leaves it alone, and
    /// whoever repeats the command goes on here.
    async fn carry_out(&self, work: &Work) -> Result<(), Setback> {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        if !work.linked {
            let Target { key, path, .. } = &work.target;
            let mut patch = link_patch(&self.rules, &work.object, key, path.as_deref(), self.request.on_delete);
            if self.by_policy {
                // What its consumer deletes must not come back.
                patch["metadata"]["annotations"][IMPORTED] = now.as_str().into();
            }
            let (namespace, name) = place(&work.object);
            let local = self.shared.context.local.writing_as(MANAGER);
            local
                .merge_patch(&self.local, namespace, name, &patch)
                .await
                .map_err(|error| self.setback(&error, "linked"))?;
        }
        let mut order = work.order.clone();
        carrick_sync::object::set(&mut order, "annotations", IMPORTED, &now);
        let client = work.target.cluster.json_client().writing_as(MANAGER);
        let created = client.create(&self.remote, Some(&work.target.key.namespace), &order).await;
        created.map(drop).map_err(|error| self.setback(&error, "ordered"))
    }

    fn setback(&self, error: &Error, what: &str) -> Setback {
        if error.is_conflict() || error.is_already_exists() {
            return Setback::Again(error.to_string());
        }
        let confidential =
            self.rules.is_confidential(&self.rules.local) || self.rules.is_confidential(&self.rules.remote);
        let why = if confidential { error.reason() } else { error.to_string() };
        let way_out =
            if self.by_policy { "it is tried again" } else { "repeat the command, or take it back with --undo" };
        Setback::Failed(format!("it could not be {what}: {why}; {way_out}"))
    }

    /// The object as it is now.
    pub(super) async fn read_again(&self, object: &Value) -> Result<Value, String> {
        let (namespace, name) = place(object);
        match self.shared.context.local.get_served(&self.local, namespace, name).await {
            Ok(Some(object)) => Ok(self.typed(object)),
            Ok(None) => Err("it is gone".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Waits until the agent holds the order and remembers the object as its copy.
    async fn is_taken(&self, target: &Target) -> bool {
        let key = &target.key;
        let deadline = Instant::now() + self.request.wait;
        loop {
            let order = self.shared.sources.get(&key.cluster, &key.namespace, &key.name);
            let is_held = order.is_some_and(|order| has_finalizer(&order.value()));
            if is_held && self.is_remembered(key).await {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            tokio::time::sleep(CHECK).await;
        }
    }

    /// Whether the agent remembers the copy of an order. What was read at the beginning is older than that.
    async fn is_remembered(&self, key: &SourceKey) -> bool {
        let context = &self.shared.context;
        let (secrets, name) =
            (Resource::namespaced("", "v1", "Secret", "secrets"), secret_name(&self.rules.remote, key));
        let found = context.local.get(&secrets, Some(&context.namespace), &name).await;
        let entry = entry_key(&key.cluster, &key.namespace, &key.name);
        found.is_ok_and(|secret| secret.is_some_and(|secret| secret["data"].get(&entry).is_some()))
    }
}
