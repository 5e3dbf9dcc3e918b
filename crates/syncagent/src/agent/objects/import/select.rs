//! Which objects of the service cluster are meant.

use carrick_client::ListOptions;
use serde_json::{Value, json};

use super::{Importer, report_on};
use crate::agent::import::{ImportOutcome, ImportedObject, Selected};

/// Objects that were found, and reports on those that were not.
#[derive(Default)]
pub(super) struct Found {
    pub(super) found: Vec<Value>,
    pub(super) missing: Vec<ImportedObject>,
}

impl Importer<'_> {
    /// Whether each object was asked for by its name.
    pub(super) fn is_named(&self) -> bool {
        matches!(self.request.selected, Selected::Named(_))
    }

    /// All objects that are meant.
    pub(super) async fn select(&self) -> Found {
        let options = match &self.request.selected {
            Selected::All => ListOptions::default(),
            Selected::Labelled(selector) => ListOptions::labels(selector),
            Selected::Named(names) => return self.named(names).await,
        };
        match self.shared.context.local.list(&self.local, None, &options).await {
            Ok(found) => {
                // Whoever asks for all asks for those that can be imported; copies of the agent are none of them.
                let found = found.into_iter().filter(|object| self.action.is_undo() || !self.is_placed(object));
                Found { found: found.map(|object| self.typed(object)).collect(), ..Found::default() }
            }
            Err(error) => {
                let mut report = report_on(&json!({"metadata": {"name": self.rules.local.resource()}}));
                (report.outcome, report.reason) = (ImportOutcome::Failed, Some(error.to_string()));
                Found { missing: vec![report], ..Found::default() }
            }
        }
    }

    /// Lists do not name the kind of their objects.
    pub(super) fn typed(&self, mut object: Value) -> Value {
        object["apiVersion"] = self.rules.local.api_version().into();
        object["kind"] = self.rules.local.kind.as_str().into();
        object
    }

    async fn named(&self, names: &[String]) -> Found {
        let mut all = Found::default();
        for name in names {
            let (namespace, alone) = match name.split_once('/') {
                Some((namespace, name)) => (Some(namespace), name),
                None => (None, name.as_str()),
            };
            let metadata = json!({"metadata": {"namespace": namespace, "name": alone}});
            let mut report = report_on(&metadata);
            let problem = if namespace.is_some() == self.rules.local.namespaced {
                match self.shared.context.local.get_served(&self.local, namespace, alone).await {
                    Ok(Some(object)) => {
                        all.found.push(self.typed(object));
                        None
                    }
                    Ok(None) => {
                        Some((ImportOutcome::Refused, "there is no such object on the service cluster".to_owned()))
                    }
                    Err(error) => Some((ImportOutcome::Failed, error.to_string())),
                }
            } else {
                let form = if self.rules.local.namespaced { "namespace/name" } else { "name" };
                Some((
                    ImportOutcome::Refused,
                    format!("objects of {} are named as {form}", self.rules.local.resource()),
                ))
            };
            if let Some((outcome, reason)) = problem {
                (report.outcome, report.reason) = (outcome, Some(reason));
                all.missing.push(report);
            }
        }
        all
    }
}
