//! The export controller: keeps the APIExport's schemas and permission claims in line with the catalog.

mod pace;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use carrick_client::watch::{Event, WatchOptions, watch};
use carrick_client::{Client, Error, Object};
use carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_kcp::kinds::{Kind, VersionedObject};
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::watch::{Receiver, Sender};
use tokio_util::sync::CancellationToken;

use self::pace::WritePace;
use super::catalog::Catalog;
use super::events::{Recorder, Type};
use super::health::{Health, Part};
use super::metrics::{Metrics, Outcome};
use super::objects::Released;
use super::retry::Retry;
use super::schemas::Chosen;
use crate::api::AGENT_NAME;
use crate::rules::export::{ExportChange, Published, apply};

/// Name of this controller in events and metrics.
pub(crate) const CONTROLLER: &str = "syncagent-apiexport";
/// After so many writes in a row that came too late, somebody else writes the export all the time, which is told.
const DISPUTED: u32 = 3;

/// What the export is known to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Exported {
    /// Names of the schemas it lists; nothing while it was not seen.
    schemas: Option<BTreeSet<String>>,
    /// Why it could not be written, and the PublishedResources that this write was for.
    problem: Option<(String, BTreeSet<String>)>,
    /// Which one it is: one that was made anew may be in a workspace that was made anew, where no schema is left.
    pub(crate) uid: String,
    /// What is wrong with related resources in kcp, by PublishedResource.
    pub(crate) doubts: BTreeMap<String, Vec<String>>,
    /// Why schemas cannot be listed although the export can be written, by schema.
    taken: BTreeMap<String, String>,
}

impl Exported {
    /// Whether the export was seen.
    pub(crate) fn is_known(&self) -> bool {
        self.schemas.is_some()
    }

    /// Whether it lists a schema.
    pub(crate) fn lists(&self, schema: &str) -> bool {
        self.schemas.as_ref().is_some_and(|schemas| schemas.contains(schema))
    }

    /// Whether it lists the schema of a PublishedResource, with all claims that one needs, or why not; nothing while that may still come.
    pub(crate) fn serves(&self, published: &str, schema: &str) -> Option<Result<(), String>> {
        let refused = self.problem.as_ref();
        let concerned = refused.filter(|(_, concerned)| concerned.contains(published));
        if self.is_known() && self.lists(schema) && concerned.is_none() {
            return Some(Ok(()));
        }
        let problem = self.taken.get(schema).or(refused.map(|(problem, _)| problem));
        problem.filter(|_| self.is_known()).cloned().map(Err)
    }
}

/// What the controller works with.
pub(crate) struct Export {
    /// The workspace of the APIExport.
    pub(crate) client: Client,
    /// Name of the APIExport.
    pub(crate) name: String,
    /// Name of the agent.
    pub(crate) agent_name: String,
    /// Where to tell about changes.
    pub(crate) recorder: Recorder,
    /// Where to count.
    pub(crate) metrics: Arc<Metrics>,
    /// Where to tell whether the watch works.
    pub(crate) health: Arc<Health>,
    /// Where to tell what the export holds.
    pub(crate) exported: Sender<Exported>,
    /// Schemas that are exported although others were computed.
    pub(crate) chosen: Receiver<Chosen>,
    /// PublishedResources that hold no object any more; nobody tells if their controller does not run.
    pub(crate) released: Receiver<Released>,
    /// Claims that were warned of.
    pub(crate) warned: Mutex<Vec<String>>,
    /// What is wrong with related resources in kcp.
    pub(crate) doubts: Mutex<BTreeMap<String, Vec<String>>>,
    /// Why schemas cannot be listed.
    pub(crate) taken: Mutex<BTreeMap<String, String>>,
    /// PublishedResources that the last write was for.
    pub(crate) concerned: Mutex<BTreeSet<String>>,
}

impl Export {
    /// Runs until told to stop.
    pub(crate) async fn run(mut self, mut catalog: Receiver<Arc<Catalog>>, stop: CancellationToken) {
        let part = self.health.part("watch of the APIExport");
        let writes = self.health.part("update of the APIExport");
        // Agents are commonly allowed to watch this one export only.
        let options = WatchOptions::fields(format!("metadata.name={}", self.name));
        let Some(kind) = newest_kind(&self.client, &part, &stop).await else { return };
        let mut events = pin!(watch(self.client.clone(), kind.into(), options));
        let mut seen = Seen { version: kind.version, ..Seen::default() };
        let mut known = false;
        let mut pace = WritePace::default();
        let mut retry = Retry::for_objects();
        let mut lost_races = 0;
        let about = format!("APIExport {}", self.name);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                changed = catalog.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    known = true;
                }
                Some(event) = events.next() => seen.on(event, &part),
                () = changes(&mut self.chosen) => {}
                () = changes(&mut self.released) => {}
                () = retry.due() => {}
            }
            let (true, Some(export)) = (known, &seen.export) else { continue };
            if let Some(at) = pace.not_before() {
                retry.set(Some(at));
                continue;
            }
            let now = Arc::clone(&catalog.borrow_and_update());
            // A stop does not break off a write: one that nobody waits for any more may still arrive, and until then the lease cannot be released.
            match self.reconcile(export, &now).await {
                Ok(newer) => {
                    self.metrics.reconciled(CONTROLLER, Outcome::Success);
                    writes.works();
                    self.metrics.recent.healed(&about);
                    retry.succeeded();
                    lost_races = 0;
                    if let Some((newer, change)) = newer {
                        pace.wrote(&change);
                        seen.take(newer);
                    }
                    self.show(seen.export.as_ref(), None);
                }
                Err(error) if error.is_conflict() && lost_races < DISPUTED => {
                    // kcp completes a new export at the same time. The newer object is read, as the watch may be slower.
                    tracing::debug!(logger = CONTROLLER, apiexport = self.name, %error, "Somebody else was faster, retrying.");
                    lost_races += 1;
                    seen.refresh(self.client.get_newest(&self.name).await);
                    retry.failed();
                }
                Err(error) => {
                    self.metrics.reconciled(CONTROLLER, Outcome::Error);
                    self.metrics.failed(CONTROLLER, &error.reason(), &about, &error.to_string());
                    let problem = format!("APIExport {}: {error}{}", self.name, hint(&error));
                    if error.is_conflict() {
                        seen.refresh(self.client.get_newest(&self.name).await);
                    } else {
                        writes.fails(&problem);
                    }
                    self.show(seen.export.as_ref(), Some(problem));
                    retry.failed();
                }
            }
        }
    }

    /// Writes the export if it is not what it shall be; returns what the server made of it, and what was changed.
    async fn reconcile(
        &self,
        export: &ApiExport,
        catalog: &Catalog,
    ) -> Result<Option<(ApiExport, ExportChange)>, Error> {
        let change = {
            let (chosen, released) = (self.chosen.borrow(), self.released.borrow());
            let published = published(catalog, &chosen, &released);
            apply(export, owner(export, &self.agent_name, catalog), &published, !catalog.others.is_empty())
        };
        self.warn(export, &change.narrow_claims);
        self.doubts.lock().clone_from(&change.doubts);
        self.taken.lock().clone_from(&change.taken);
        self.concerned.lock().clone_from(&change.concerned);
        if !change.changed {
            return Ok(None);
        }
        let known = export.metadata.annotation(AGENT_NAME);
        if let Some(owner) = known.filter(|owner| *owner != self.agent_name && !catalog.others.contains(*owner)) {
            tracing::warn!(
                logger = CONTROLLER,
                apiexport = self.name,
                owner,
                "Taking over the APIExport from another agent. Never run two agents for the same resources."
            );
        }
        let written = self.client.replace_newest(&change.object).await?;
        tracing::info!(
            logger = CONTROLLER,
            apiexport = self.name,
            added = change.added_schemas.join(", "),
            removed = change.removed_schemas.join(", "),
            claims = change.added_claims.join(", "),
            dropped_claims = change.removed_claims.join(", "),
            "Updated APIExport."
        );
        self.tell(&written, &change);
        Ok(Some((written, change)))
    }

    /// Tells once that claims exist but are not enough: they are not ours to change.
    fn warn(&self, export: &ApiExport, claims: &[String]) {
        let mut warned = self.warned.lock();
        if *warned == claims {
            return;
        }
        *warned = claims.to_vec();
        if !claims.is_empty() {
            let claims = claims.join(", ");
            let message = format!(
                "Permission claim(s) for {claims} exist, but not for all objects or with another identityHash, and are left as they \
                 are; remove them from the APIExport to let the agent claim what it needs."
            );
            tracing::warn!(
                logger = CONTROLLER,
                apiexport = self.name,
                claims,
                "Existing permission claims are not enough."
            );
            self.event(export, Type::Warning, "NarrowPermissionClaims", &message);
        }
    }

    /// Tells the other controllers what the export holds.
    fn show(&self, export: Option<&ApiExport>, problem: Option<String>) {
        let schemas = export.map(|export| export.schemas().map(str::to_owned).collect());
        let uid = export.map(|export| export.metadata.uid.clone()).unwrap_or_default();
        let (doubts, taken) = (self.doubts.lock().clone(), self.taken.lock().clone());
        let problem = problem.map(|problem| (problem, self.concerned.lock().clone()));
        let now = Exported { schemas, problem, uid, doubts, taken };
        self.exported.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
    }

    fn tell(&self, export: &ApiExport, change: &ExportChange) {
        let say = |kind, reason, names: &[String], text: &str| {
            if !names.is_empty() {
                let message = format!("{text} {}.", names.join(", "));
                self.event(export, kind, reason, &message);
            }
        };
        say(Type::Normal, "AddingResourceSchemas", &change.added_schemas, "Added new resource schema(s)");
        say(Type::Warning, "RemovingResourceSchemas", &change.removed_schemas, "Removed resource schema(s)");
        say(Type::Normal, "AddingPermissionClaims", &change.added_claims, "Added new permission claim(s) for all");
        say(Type::Normal, "RemovingPermissionClaims", &change.removed_claims, "Removed permission claim(s) for all");
    }

    fn event(&self, export: &ApiExport, kind: Type, reason: &str, message: &str) {
        let involved = serde_json::to_value(export).unwrap_or_default();
        self.recorder.event(&self.client, &involved, kind, reason, message);
    }
}

/// The export as last seen.
#[derive(Default)]
struct Seen {
    /// The version in which it is watched.
    version: &'static str,
    export: Option<ApiExport>,
    listed: bool,
    /// Whether the version of the export is of an earlier life of the server, so that it cannot be compared.
    past: bool,
}

impl Seen {
    fn on(&mut self, event: Event, part: &Part) {
        match event {
            Event::Begin => self.listed = false,
            Event::Listed(object) => {
                self.listed = true;
                self.read(&object, part);
            }
            // Its versions begin again below those that are known.
            Event::WentBack { .. } => self.past = true,
            Event::Applied(object) => {
                if self.read(&object, part) {
                    self.tell(part);
                }
            }
            Event::Synced => {
                if !self.listed {
                    self.export = None;
                }
                self.tell(part);
            }
            Event::Deleted(_) => {
                self.export = None;
                self.tell(part);
            }
            Event::Failing(error) => part.fails(&error),
            Event::Recovered => self.tell(part),
        }
    }

    fn tell(&self, part: &Part) {
        if self.export.is_some() {
            part.works();
        } else {
            part.fails(&"the APIExport is gone; create it again");
        }
    }

    /// Takes what the watch brings; false if that is no APIExport as we know it, which has been reported then.
    fn read(&mut self, object: &Object, part: &Part) -> bool {
        match object.decode().and_then(|object| ApiExport::from_version(self.version, object)) {
            Ok(export) => self.take(export),
            Err(error) => {
                part.fails(&format!("the APIExport cannot be read: {error}"));
                return false;
            }
        }
        true
    }

    /// Takes an object unless it is older than what is known: an answer may overtake the watch.
    fn take(&mut self, newer: ApiExport) {
        let comparable = !std::mem::take(&mut self.past);
        let older = |known: &ApiExport| {
            comparable && newer.metadata.uid == known.metadata.uid && version(&newer) < version(known)
        };
        if !self.export.as_ref().is_some_and(older) {
            self.export = Some(newer);
        }
    }

    /// Takes what a server answered that was asked because what is known is not current: whatever its version, it is better.
    fn refresh(&mut self, answer: Result<Option<ApiExport>, Error>) {
        if let Ok(Some(newer)) = answer {
            (self.export, self.past) = (Some(newer), false);
        }
    }
}

/// The kind in the newest version that kcp serves, once kcp answers; nothing if told to stop before.
pub(super) async fn newest_kind(client: &Client, part: &Part, stop: &CancellationToken) -> Option<Kind> {
    let mut backoff = super::retry::Backoff::for_servers();
    loop {
        let found = tokio::select! {
            () = stop.cancelled() => return None,
            found = client.newest::<ApiExport>() => found,
        };
        match found {
            Ok(kind) => return Some(kind),
            Err(error) => part.fails(&format!("cannot find out which versions of APIExports kcp serves: {error}")),
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = client.pause(backoff.pause()) => {}
        }
    }
}

/// Waits for a change; for ever if nobody tells any more.
async fn changes<T>(receiver: &mut Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn hint(error: &Error) -> &'static str {
    match error.status().map(|status| status.code) {
        Some(403) if error.missing_right().is_some() => {
            "; grant the agent get, list, watch, patch and update on this APIExport"
        }
        Some(403 | 422) => {
            "; kcp does not accept what the APIExport would be then: correct what others have written into it, a policy that forbids it, \
             or the PublishedResources"
        }
        Some(409) => {
            "; somebody else writes the APIExport all the time: find out who, in its metadata.managedFields, and stop one of both"
        }
        _ => "",
    }
}

/// Versions of one object are numbers that grow; whatever is none counts as the oldest.
fn version(export: &ApiExport) -> Option<u64> {
    export.metadata.resource_version.parse().ok()
}

/// Whose name the export bears: of several agents that share it, the first one's, as long as that one works.
pub(super) fn owner<'a>(export: &'a ApiExport, agent_name: &'a str, catalog: &Catalog) -> &'a str {
    export.metadata.annotation(AGENT_NAME).filter(|owner| catalog.others.contains(*owner)).unwrap_or(agent_name)
}

/// What the catalog has for the export: everything with a schema, by status or by computation. Broken ones that never had one are left
/// out, and so are those whose name belongs to another. Those whose rules are not valid are not offered for the first time.
///
/// Behind a gate, the one that was chosen takes the place of the one that was computed.
///
/// Only a schema that follows from the rules of today is ready to be listed. A name of yesterday may be that of another kcp, and one schema
/// that does not exist spoils the whole export. Those that the export lists already stay in it anyway.
///
/// One that is withdrawn stays where it is listed until all of its objects are released: afterwards nobody reaches them.
pub(super) fn published<'a>(catalog: &'a Catalog, chosen: &'a Chosen, released: &Released) -> Vec<Published<'a>> {
    let usable = catalog.resources.iter().filter_map(|(name, pr)| {
        let leaves = pr.is_withdrawn() && released.contains(name);
        let published = pr.status.resource_schema_name.as_str();
        let entry = catalog.entries.get(name);
        let computed = entry.map(|entry| entry.schema_name.as_str());
        let valid = entry.is_some_and(|entry| entry.rules.is_ok());
        let conflict = catalog.problems.get(name).is_some_and(|problem| problem.reason == "Conflict");
        match (published, computed) {
            (_, None) if conflict => None,
            (published, Some(_)) if chosen.contains_key(name) => {
                let schema_name = chosen.get(name)?.as_str();
                let ready = published == schema_name && !pr.is_withdrawn();
                Some(Published { pr, schema_name, ready, valid, leaves })
            }
            ("", None) => None,
            (schema_name, None) => Some(Published { pr, schema_name, ready: false, valid, leaves }),
            (published, Some(schema_name)) => {
                let ready = published == schema_name && !pr.is_withdrawn();
                Some(Published { pr, schema_name, ready, valid, leaves })
            }
        }
    });
    usable.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::catalog::Problem;
    use crate::api::PublishedResource;

    #[test]
    fn broken_ones_count_only_if_they_were_published_before_and_lost_no_conflict() {
        let mut catalog = Catalog::default();
        for (name, schema, reason) in [
            ("fine", "v1.as.x", None),
            ("edited-badly", "v1.bs.x", Some("InvalidProjection")),
            ("never-published", "", Some("KindNotFound")),
            ("second", "v1.as.x", Some("Conflict")),
        ] {
            let pr: PublishedResource =
                serde_json::from_value(json!({ "status": { "resourceSchemaName": schema } })).unwrap();
            catalog.resources.insert(name.to_owned(), Arc::new(pr));
            if let Some(reason) = reason {
                catalog.problems.insert(name.to_owned(), Problem { reason, message: String::new() });
            }
        }
        let chosen = Chosen::new();
        let got: Vec<_> =
            published(&catalog, &chosen, &Released::new()).iter().map(|one| (one.schema_name, one.ready)).collect();
        assert_eq!(got, [("v1.bs.x", false), ("v1.as.x", false)]);
    }

    #[test]
    fn an_older_answer_does_not_replace_a_newer_object() {
        let object = |uid: &str, version: &str| {
            let mut export = ApiExport::new("e");
            export.metadata.uid = uid.to_owned();
            export.metadata.resource_version = version.to_owned();
            export
        };
        let mut seen = Seen::default();
        for (offered, wanted) in [
            (object("a", "5"), object("a", "5")),
            (object("a", "4"), object("a", "5")),
            (object("a", "6"), object("a", "6")),
            (object("b", "1"), object("b", "1")),
        ] {
            seen.take(offered);
            assert_eq!(seen.export, Some(wanted));
        }
    }

    #[test]
    fn after_a_restore_of_kcp_the_older_object_is_the_current_one() {
        let object = |version: &str| {
            let mut export = ApiExport::new("e");
            (export.metadata.uid, export.metadata.resource_version) = ("a".to_owned(), version.to_owned());
            export
        };
        let health = Arc::new(Health::default());
        let part = health.part("watch");
        let mut seen = Seen::default();
        seen.take(object("50"));
        seen.on(Event::WentBack { known: 50, found: 40 }, &part);
        seen.take(object("30"));
        assert_eq!(seen.export, Some(object("30")));
        seen.take(object("29"));
        assert_eq!(seen.export, Some(object("30")), "versions of one life are compared as before");
        seen.refresh(Ok(Some(object("28"))));
        assert_eq!(seen.export, Some(object("28")), "the server was asked because a write came too late");
    }
}
