//! Taking an import back: the link or the order goes, and never the object.

use carrick_client::{DeleteOptions, Error};
use serde_json::Value;
use tokio::time::Instant;

use super::act::{ATTEMPTS, CHECK};
use super::plan::Target;
use super::{Importer, MANAGER, order_name, place, report_on};
use crate::agent::import::{ImportOutcome, ImportedObject};
use crate::api::ON_DELETE;
use crate::decide::import::{Undo, undo, unlink_patch};
use crate::rules::metadata::source_of;

impl Importer<'_> {
    /// Takes the import of an object back, or only says how that would be done.
    pub(super) async fn undo(&self, object: Value) -> ImportedObject {
        let mut report = report_on(&object);
        let done = self.try_undo(&object, &mut report).await;
        let (outcome, reason) = done.unwrap_or_else(|why| (ImportOutcome::Failed, Some(why)));
        (report.outcome, report.reason) = (outcome, reason);
        report
    }

    async fn try_undo(
        &self,
        object: &Value,
        report: &mut ImportedObject,
    ) -> Result<(ImportOutcome, Option<String>), String> {
        let Some(key) = source_of(object) else { return Ok((ImportOutcome::NotImported, None)) };
        (report.cluster, report.order) = (Some(key.cluster.to_string()), Some(order_name(&key)));
        let cluster = self.shared.fleets.consumers.cluster(&key.cluster);
        let cluster = cluster.map_err(|error| format!("it is not known whether it has an order: {error}"))?;
        report.workspace = cluster.path().map(|path| path.to_string());
        let target = Target { key, cluster, path: None };
        let order = self.order_of(&target).await?;
        match undo(&self.rules, object, order.as_ref()) {
            Undo::Nothing => Ok((ImportOutcome::NotImported, None)),
            Undo::Refused(_) if !self.is_named() => Ok((ImportOutcome::NotImported, None)),
            Undo::Refused(why) => Ok((ImportOutcome::Refused, Some(why))),
            Undo::NotKept => {
                let why = format!(
                    "the end of its order would delete it; keep it first, then repeat the command: kubectl annotate {} {ON_DELETE}=Keep",
                    self.as_kubectl_names(object)
                );
                Ok((ImportOutcome::Refused, Some(why)))
            }
            Undo::Unlink if !self.action.writes() => Ok((ImportOutcome::UndoLink, None)),
            Undo::Unlink => {
                self.unlink(object).await.map_err(|error| not_taken_off(&error))?;
                Ok((ImportOutcome::Undone, None))
            }
            Undo::EndOrder if !self.action.writes() => Ok((ImportOutcome::UndoOrder, None)),
            Undo::EndOrder => self.end(&target, order.unwrap_or_default(), object).await,
        }
    }

    /// Ends an order, and waits until nothing of it is left on the object. An order that the agent had not taken yet leaves the link.
    async fn end(
        &self,
        target: &Target,
        order: Value,
        object: &Value,
    ) -> Result<(ImportOutcome, Option<String>), String> {
        let (client, key) = (target.cluster.json_client(), &target.key);
        let uid = order["metadata"]["uid"].as_str().map(str::to_owned);
        let exactly = DeleteOptions { uid, ..DeleteOptions::default() };
        match client.delete(&self.remote, Some(&key.namespace), &key.name, &exactly).await {
            Err(error) if !error.is_not_found() => return Err(format!("its order could not be deleted: {error}")),
            _ => {}
        }
        let deadline = Instant::now() + self.request.wait;
        while self.order_of(target).await?.is_some() {
            if Instant::now() >= deadline {
                let why =
                    "its order is being deleted, and the agent has not let it go: is it running? See carrick doctor";
                return Ok((ImportOutcome::Waits, Some(why.to_owned())));
            }
            tokio::time::sleep(CHECK).await;
        }
        // What was said about its end is said no more. Its operator may write it at any moment.
        for attempt in 1..=ATTEMPTS {
            let left = self.read_again(object).await?;
            let linked = source_of(&left);
            if linked.as_ref().is_some_and(|source| source != key) {
                break;
            }
            match self.unlink(&left).await {
                Err(error) if error.is_conflict() && linked.is_none() && attempt < ATTEMPTS => {}
                written => {
                    written.map_err(|error| not_taken_off(&error))?;
                    break;
                }
            }
        }
        Ok((ImportOutcome::Undone, None))
    }

    /// Takes the link off exactly this version of an object.
    async fn unlink(&self, object: &Value) -> Result<(), Error> {
        let (namespace, name) = place(object);
        let local = self.shared.context.local.writing_as(MANAGER);
        local.merge_patch(&self.local, namespace, name, &unlink_patch(object)).await.map(drop)
    }

    /// An object as kubectl names it.
    fn as_kubectl_names(&self, object: &Value) -> String {
        let (namespace, name) = place(object);
        let inside = namespace.map(|namespace| format!(" -n {namespace}")).unwrap_or_default();
        format!("{} {name}{inside}", self.rules.local.resource().trim_end_matches('.'))
    }
}

fn not_taken_off(error: &Error) -> String {
    format!("its link could not be taken off: {error}; repeat the command")
}
