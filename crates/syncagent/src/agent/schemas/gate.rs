//! The gate between a changed CRD and consumers: a schema that was computed is exported, or held back with the reason.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Client, Error};
use carrick_kcp::apis::v1alpha1::ApiResourceSchema;
use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_kcp::kinds::API_RESOURCE_SCHEMA;
use carrick_schema::evolution::{Class, Definition, Report, Trial, diff};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::status::{MAPPING_HELD, MappingChoice};
use crate::agent::objects::AllOrders;
use crate::api::{APPROVED_MAPPING, APPROVED_SCHEMA, PublishedResource};
use crate::rules::crd::Crd;
use crate::rules::gate::{Passage, passage, same_resource};
use crate::rules::implements::force::{MappingTrial, Steps, held_for};
use crate::rules::mapping_of;

/// Schemas that are exported although another one was computed, by name of the PublishedResource. Each is known to exist.
pub(crate) type Chosen = BTreeMap<String, String>;

/// How long to wait until consumers' objects are listed. Without any consumer there is no list to wait for.
const PATIENCE: Duration = Duration::from_secs(3);
/// What is said of steps while the orders are not known that they might change.
const UNKNOWN: &str = "it is not known yet which orders there are";
/// How many bytes of changes are told.
const TOLD: usize = 1_000;
/// How many objects are told by name.
const NAMED: usize = 5;

/// What the gate works with. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Gate {
    /// The workspace of the APIExport.
    pub(crate) export: Client,
    /// Name of the APIExport.
    pub(crate) export_name: String,
    /// Consumers' objects.
    pub(crate) orders: Arc<AllOrders>,
    /// Where to tell what is exported instead.
    pub(crate) chosen: Arc<watch::Sender<Chosen>>,
    /// What was judged last, by name of the PublishedResource.
    pub(crate) judged: Arc<Mutex<BTreeMap<String, Arc<Judgement>>>>,
}

/// What came out of a comparison.
#[derive(Debug)]
pub(crate) struct Judgement {
    before: String,
    computed: String,
    class: Class,
    harms: bool,
    words: String,
}

/// Which schema represents a PublishedResource.
pub(super) struct Choice {
    /// Its name.
    pub(super) name: String,
    /// What is held back, and why.
    pub(super) held: Option<String>,
    /// Whether that is news.
    pub(super) fresh: bool,
}

/// What could not be asked.
pub(super) enum GateError<E> {
    /// kcp refuses or cannot be reached.
    Kcp(String, Error),
    /// What was to be compared cannot be.
    Unclear(String),
    /// The schema that was computed cannot be had.
    Text(E),
}

impl Gate {
    /// Decides which schema is exported. `text` makes the JSON of the one that was computed, which exists in kcp by now.
    pub(super) async fn choose<E>(
        &self,
        pr: &PublishedResource,
        computed: &str,
        text: impl AsyncFnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Choice, GateError<E>> {
        let name = &pr.metadata.name;
        let open = || {
            self.tell(name, None);
            Ok(Choice { name: computed.to_owned(), held: None, fresh: false })
        };
        if !pr.is_gated() {
            self.judged.lock().remove(name);
            return open();
        }
        let before = self.before(pr, computed).await?;
        let (wanted, judged) = match passage(pr, computed, before.as_deref()) {
            Passage::Open => return open(),
            Passage::Judged(known) => (known.to_owned(), true),
            Passage::Closed(wanted) if wanted == computed => return open(),
            Passage::Closed(wanted) => (wanted.to_owned(), false),
        };
        // One schema that does not exist spoils the whole export.
        let wanted = match before {
            _ if self.exists(&wanted).await? => wanted,
            Some(before) if before != wanted && before != computed => before,
            _ => return open(),
        };
        let (judgement, fresh) = self.judge(pr, &wanted, computed, text).await?;
        if judged && judgement.class == Class::Compatible && !judgement.harms {
            return open();
        }
        self.tell(name, Some(&wanted));
        let why = match judgement.class {
            _ if !judged => "it needs an approval".to_owned(),
            Class::Compatible => "it harms existing orders".to_owned(),
            class => format!("it is {class}"),
        };
        let held = format!(
            "APIResourceSchema {computed} is held back, because {why}; {wanted} stays exported. Changes: {}. \
             To export it: carrick approve {name}, or kubectl annotate --overwrite publishedresource {name} {APPROVED_SCHEMA}={computed}.",
            judgement.words
        );
        Ok(Choice { name: wanted, held: Some(held), fresh })
    }

    /// Decides whether changed steps of `spec.implements` come into force: what they would do to existing orders is reported first.
    pub(super) async fn choose_mapping(&self, pr: &PublishedResource, crd: &Crd) -> MappingChoice {
        let Some(implements) = &pr.spec.implements else { return MappingChoice::default() };
        let (name, steps) = (&pr.metadata.name, Steps::of(implements));
        let written = steps.noted(&implements.resource);
        let at_work = pr.status.mapping.as_ref();
        let open = || MappingChoice {
            comes_into_force: Some(written.clone()).filter(|written| at_work != Some(written)),
            ..MappingChoice::default()
        };
        let (Some(earlier), Some(at_work)) = (held_for(pr), at_work) else { return open() };
        let (Ok(old), Ok(new)) = (mapping_of(pr, crd, &earlier), mapping_of(pr, crd, &steps)) else { return open() };
        let trial = match self.known(name).await {
            Some(orders) => tokio::task::spawn_blocking(move || {
                MappingTrial::of(&old, &new, orders.into_iter().map(|(cluster, order)| (cluster, order.value())))
            })
            .await
            .ok(),
            None => None,
        };
        let is_compatible = trial.as_ref().is_some_and(|trial| trial.changed.is_empty());
        if pr.spec.schema_updates == "Compatible" && is_compatible {
            return open();
        }
        let said = pr.status.conditions.iter().find(|it| it.0["type"] == MAPPING_HELD && it.0["status"] == "True");
        let said = said.and_then(|condition| condition.0["message"].as_str());
        // Until the orders are known, what was said of the same steps stays.
        if let (None, Some(said)) = (&trial, said.filter(|said| said.contains(&written.digest))) {
            return MappingChoice { held: Some(said.to_owned()), is_open: true, ..MappingChoice::default() };
        }
        let sentence = trial.as_ref().map_or_else(|| UNKNOWN.to_owned(), MappingTrial::sentence);
        let held = format!(
            "The steps {} of spec.implements are held back; orders are placed by {}, which status.mapping shows. Of the new ones: {}. \
             To put them into force: carrick approve {name}, or kubectl annotate --overwrite publishedresource {name} {APPROVED_MAPPING}={}.",
            written.digest, at_work.digest, sentence, written.digest
        );
        // What is not known yet is no news.
        let fresh = trial.is_some() && said != Some(held.as_str());
        MappingChoice { comes_into_force: None, held: Some(held), fresh, is_open: trial.is_none() }
    }

    /// All orders of a PublishedResource; none if it is not known whether there are more.
    async fn known(&self, name: &str) -> Option<Vec<(String, Arc<carrick_client::Object>)>> {
        let orders = self.orders.all().remove(name)?;
        let listed = orders.listed(PATIENCE).await;
        orders.are_known().then_some(listed)
    }

    /// Forgets a PublishedResource that is gone.
    pub(super) fn forget(&self, name: &str) {
        self.tell(name, None);
        self.judged.lock().remove(name);
    }

    fn tell(&self, name: &str, schema: Option<&str>) {
        self.chosen.send_if_modified(|chosen| match schema {
            Some(schema) => chosen.insert(name.to_owned(), schema.to_owned()).as_deref() != Some(schema),
            None => chosen.remove(name).is_some(),
        });
    }

    /// The schema that represents the PublishedResource in this kcp: by its status, or else by the export, where another agent may have
    /// put it.
    async fn before<E>(&self, pr: &PublishedResource, computed: &str) -> Result<Option<String>, GateError<E>> {
        let named = pr.status.resource_schema_name.as_str();
        if named == computed {
            return Ok(Some(named.to_owned()));
        }
        if same_resource(named, computed) && self.exists(named).await? {
            return Ok(Some(named.to_owned()));
        }
        let failed = |source| GateError::Kcp(self.export_name.clone(), source);
        let export: Option<ApiExport> = self.export.get_newest(&self.export_name).await.map_err(failed)?;
        let export = export.unwrap_or_default();
        let mut listed = export.schemas();
        Ok(listed.find(|listed| same_resource(listed, computed)).map(str::to_owned))
    }

    async fn exists<E>(&self, name: &str) -> Result<bool, GateError<E>> {
        let found: Result<Option<ApiResourceSchema>, Error> = self.export.metadata_only().get_kcp(name).await;
        found.map(|found| found.is_some()).map_err(|source| GateError::Kcp(name.to_owned(), source))
    }

    /// Compares two schemas, and tries the new one on consumers' objects. Nothing but the words is kept.
    async fn judge<E>(
        &self,
        pr: &PublishedResource,
        before: &str,
        computed: &str,
        text: impl AsyncFnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<(Arc<Judgement>, bool), GateError<E>> {
        let name = &pr.metadata.name;
        let known = self.judged.lock().get(name).cloned();
        if let Some(known) = known.filter(|known| known.before == before && known.computed == computed) {
            return Ok((known, false));
        }
        let old = self.export.get(&API_RESOURCE_SCHEMA.into(), None, before).await;
        let old = old.map_err(|source| GateError::Kcp(before.to_owned(), source))?;
        let unclear =
            |what: &str| GateError::Unclear(format!("schema {computed} cannot be compared with {before}: {what}"));
        let old = old.ok_or_else(|| unclear("that one is gone"))?;
        let text = text().await.map_err(GateError::Text)?;
        let new: Value = serde_json::from_slice(&text).map_err(|error| unclear(&error.to_string()))?;
        let orders = self.orders.all().remove(name);
        let objects = match &orders {
            Some(orders) => orders.listed(PATIENCE).await,
            None => Vec::new(),
        };
        // Large schemas take a while, and other tasks must not wait for that.
        let compared = tokio::task::spawn_blocking(move || compare(&old, &new, objects.into_iter())).await;
        let (report, trial) = compared.ok().flatten().ok_or_else(|| unclear("one of them is no schema"))?;
        let judgement = Arc::new(Judgement {
            before: before.to_owned(),
            computed: computed.to_owned(),
            class: report.class,
            harms: !trial.harmed.is_empty(),
            words: format!("{}; {}", report.summary(TOLD), trial.sentence(NAMED)),
        });
        self.judged.lock().insert(name.clone(), Arc::clone(&judgement));
        Ok((judgement, true))
    }
}

fn compare(
    old: &Value,
    new: &Value,
    objects: impl Iterator<Item = (String, Arc<carrick_client::Object>)>,
) -> Option<(Report, Trial)> {
    let (old, new) = (Definition::read(old).ok()?, Definition::read(new).ok()?);
    let objects = objects.map(|(cluster, object)| (cluster, object.value()));
    Some((diff(&old, &new), Trial::of(&old, &new, objects)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::implements::tests::{changed, local, offering};

    #[tokio::test]
    async fn changed_steps_wait_while_nobody_knows_the_orders() {
        let nobody = Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let gate = Gate {
            export: nobody,
            export_name: "export".to_owned(),
            orders: Arc::default(),
            chosen: Arc::new(watch::Sender::new(Chosen::default())),
            judged: Arc::default(),
        };
        let steps = |expression: &str| offering(changed("/spec/1/cel/expression", json!(expression)));
        let (old, mut new) = (steps("'internal'"), steps("'external'"));
        let at_work = old.spec.implements.as_ref().unwrap();
        new.status.mapping = Some(Steps::of(at_work).noted(&at_work.resource));
        new.spec.schema_updates = "Compatible".to_owned();
        let choice = gate.choose_mapping(&new, &local()).await;
        let held = choice.held.clone().unwrap_or_default();
        assert!(choice.comes_into_force.is_none() && choice.is_open && held.contains(UNKNOWN), "{choice:?}");
        // A restart says nothing else of steps that were held before.
        let said = held.replace(UNKNOWN, "it changes 1 of 1 orders");
        let condition = json!({ "type": MAPPING_HELD, "status": "True", "message": said });
        new.status.conditions = serde_json::from_value(json!([condition])).unwrap();
        let again = gate.choose_mapping(&new, &local()).await;
        assert_eq!((again.held, again.is_open, again.fresh), (Some(said), true, false));
    }
}
