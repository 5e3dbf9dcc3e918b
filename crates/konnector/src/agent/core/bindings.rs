//! Bindings: CRDs, what is synced, and what they say.

use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_bind_api::core::conditions::READY;
use carrick_bind_api::core::names::{CONNECTION_ANNOTATION, DELETION_POLICY_ANNOTATION, ORPHAN};
use carrick_bind_api::core::{ConflictPolicy, Connection, ExportedApi, schema};
use carrick_bind_api::jiff::Timestamp;
use carrick_sync::ApiKind;
use serde_json::Value;

use super::any_binding::AnyBinding;
use super::hub::{Cover, Wanted, WantedApi};
use super::related;
use super::session::{ConnectionSession, ConnectionState};
use crate::agent::contract::bundles::written;
use crate::agent::contract::pace::PassResult;
use crate::agent::resources;
use crate::agent::writer::Writer;
use crate::decide::core::binding::{self, ApiFacts};
use crate::decide::core::connection::Progress;
use crate::decide::core::crd::{self, CrdPlan, CrdWrite};
use crate::decide::core::objects::Coverage;

/// What one look at the bindings of a Connection rests on.
pub(super) struct Look<'a> {
    pub connection: &'a Connection,
    pub state: &'a ConnectionState,
    /// The CRDs here that matter.
    pub crds: BTreeMap<String, Value>,
    pub now: Timestamp,
}

impl ConnectionSession {
    /// Looks at all bindings of this Connection.
    pub async fn follow_bindings(
        &self,
        connection: &Connection,
        state: &ConnectionState,
        now: Timestamp,
    ) -> PassResult {
        let bindings = self.local.bindings_of(&self.name);
        let look = match self.local_crds(&bindings).await {
            Ok(crds) => Look { connection, state, crds, now },
            Err(error) => {
                tracing::warn!(connection = self.name, error, "CRDs here could not be read, trying again.");
                return PassResult::failure();
            }
        };
        let mut outcome = PassResult::default();
        let mut wanted = Wanted::new();
        // What no binding covers any more is watched, so that deletions go on.
        for crd in look.crds.values().filter(|crd| crd::is_ours(crd, &self.name)) {
            add(&mut wanted, crd, None);
        }
        let (mut bound, mut letting_go, guarded) = (Vec::new(), Vec::new(), self.local.guarded());
        for found in &bindings {
            let is_living = !found.metadata.is_deleting();
            let begun = || found.begun(|| self.is_used(found, &look));
            if let Some(new) = is_living.then(begun).flatten() {
                outcome.add(written(new.write_metadata(&self.local.context.writer).await, "binding", &found.key()));
            } else if self.local.lets_go(found) {
                self.let_go(found, &look, &mut wanted);
                related::want(&mut wanted, found, true, &guarded);
                letting_go.push(found);
            } else {
                outcome.add(related::record(&self.local, found, self.hub()).await);
                let facts = self.install(found, &look, &mut wanted).await;
                outcome.failed |= facts.iter().any(|api| api.refused.is_some());
                bound.push((found, facts, related::want(&mut wanted, found, false, &guarded)));
            }
        }
        if let Some(hub) = self.hub() {
            hub.want(wanted);
        }
        for (found, facts, problems) in bound {
            outcome.add(self.say(found, facts, problems, &look).await);
        }
        for found in letting_go {
            outcome.add(self.unbind(found, &look).await);
        }
        outcome
    }

    /// The CRDs here that matter: those that bindings list, and those that were installed for this Connection.
    async fn local_crds(&self, bindings: &[AnyBinding]) -> Result<BTreeMap<String, Value>, String> {
        let local = &self.local.context.local;
        let listed = bindings.iter().flat_map(|binding| &binding.spec.apis).map(|api| api.name.clone());
        let all = local.crd_metadata();
        let ours = all.iter().filter(|crd| crd["metadata"]["annotations"][CONNECTION_ANNOTATION] == self.name.as_str());
        let ours = ours.map(|crd| schema::name(crd).to_owned());
        let mut names: Vec<String> = listed.chain(ours).collect();
        names.sort_unstable();
        names.dedup();
        local.crds(names).await
    }

    /// Installs the CRDs of a binding, and notes what is synced for it.
    async fn install(&self, found: &AnyBinding, look: &Look<'_>, wanted: &mut Wanted) -> Vec<ApiFacts> {
        let adopt = found.spec.conflict_policy == ConflictPolicy::Adopt;
        let cover = || Cover { namespace: found.namespace().map(str::to_owned), coverage: Coverage::Keep { adopt } };
        let mut facts = Vec::new();
        for name in binding::names(&found.spec.apis) {
            let cluster_scoped = look.exported(name).is_some_and(|api| is_out_of_scope(found, api));
            let plan = self.plan(found, name, look);
            let can_write = plan.is_some() && look.state.progress == Progress::Ready;
            let abandoned = look.crds.get(name).filter(|crd| can_write && self.local.is_abandoned(crd, &self.name));
            let refused = if let Some(crd) = abandoned {
                self.inherit(crd).await
            } else {
                let write = plan.as_ref().and_then(|plan| plan.write.as_ref()).filter(|_| can_write);
                write_crd(&self.local.context.writer, write).await
            };
            let usable = self.usable(plan.as_ref(), name, look).filter(|_| refused.is_none());
            if let Some(crd) = usable {
                add(wanted, crd, Some(cover()));
            }
            facts.push(ApiFacts { name: name.to_owned(), crd: plan, refused, cluster_scoped, ..ApiFacts::default() });
        }
        facts
    }

    /// What becomes of the CRD of an API; none if it is not offered, or not to this binding.
    fn plan(&self, found: &AnyBinding, name: &str, look: &Look<'_>) -> Option<CrdPlan> {
        look.exported(name).filter(|api| !is_out_of_scope(found, api))?;
        let (offered, there) = (look.state.offered.get(name)?, look.crds.get(name));
        Some(match self.local.ahead(found, name, there) {
            Some(rival) => crd::taken(name, &rival),
            None => crd::decide(offered, there, &self.name, &look.connection.spec.schema),
        })
    }

    /// The CRD by which objects of an API are synced, if they can be.
    fn usable<'a>(&self, plan: Option<&'a CrdPlan>, name: &str, look: &'a Look<'_>) -> Option<&'a Value> {
        match plan {
            Some(plan) => plan.usable.as_ref(),
            // What the provider does not say now it has said before.
            None => look.crds.get(name).filter(|crd| !look.state.is_complete && crd::is_ours(crd, &self.name)),
        }
    }

    /// Whether anything is synced for a binding.
    fn is_used(&self, found: &AnyBinding, look: &Look<'_>) -> bool {
        let usable = |name: &str| self.usable(self.plan(found, name, look).as_ref(), name, look).is_some();
        !found.spec.related_resources.is_empty() || binding::names(&found.spec.apis).into_iter().any(usable)
    }

    /// Notes what becomes of the objects of a binding that lets go.
    fn let_go(&self, found: &AnyBinding, look: &Look<'_>, wanted: &mut Wanted) {
        let coverage = if keeps_copies(found) { Coverage::Release } else { Coverage::Drain };
        for name in binding::names(&found.spec.apis) {
            let Some(there) = look.crds.get(name) else { continue };
            if self.local.ahead(found, name, Some(there)).is_some() {
                continue;
            }
            if let Some(crd) = crd::draining(there, look.state.offered.get(name), &self.name) {
                let namespace = found.namespace().map(str::to_owned);
                add(wanted, &crd, Some(Cover { namespace, coverage }));
            }
        }
    }

    /// Writes what a binding has come to.
    async fn say(
        &self,
        found: &AnyBinding,
        mut facts: Vec<ApiFacts>,
        problems: Vec<String>,
        look: &Look<'_>,
    ) -> PassResult {
        let (writer, now) = (&self.local.context.writer, look.now);
        match &look.state.progress {
            Progress::Ready => {}
            Progress::Forbidden(_) => return found.report(writer, &[binding::forbidden()], None, now).await,
            _ => return found.report(writer, &[found.waiting(true)], None, now).await,
        }
        let mut related = None;
        if let Some(hub) = self.hub() {
            for api in &mut facts {
                api.contested = hub.contested(&api.name, found.namespace());
                // Before that is known again, it is what it was.
                let before = || found.status.bound_apis.iter().find(|bound| bound.name == api.name)?.conflict_count;
                let counted = hub.conflicts(&api.name, found.namespace());
                api.conflicts =
                    counted.unwrap_or_else(|| before().and_then(|it| usize::try_from(it).ok()).unwrap_or_default());
            }
            related = hub.related_finding(found, problems);
        }
        let mut findings: Vec<_> = binding::findings(&facts).into_iter().chain(related).collect();
        if found.moves() {
            findings.retain(|finding| finding.type_ != READY);
            findings.push(found.waiting(true));
        }
        found.report(writer, &findings, Some(binding::bound_apis(&facts)), now).await
    }
}

impl Look<'_> {
    /// What the provider offers under a name.
    fn exported(&self, name: &str) -> Option<&ExportedApi> {
        self.state.exports.iter().find(|api| api.name == name)
    }
}

/// Whether an API has no namespaces, and a binding is for one.
fn is_out_of_scope(found: &AnyBinding, api: &ExportedApi) -> bool {
    binding::is_cluster_scoped_in_namespace(found.namespace(), api)
}

/// Whether the copies of a binding stay when it goes.
pub(super) fn keeps_copies(found: &AnyBinding) -> bool {
    found.metadata.annotation(DELETION_POLICY_ANNOTATION) == Some(ORPHAN)
}

/// Adds an API, and what a binding wants of its objects.
fn add(wanted: &mut Wanted, crd: &Value, cover: Option<Cover>) {
    let Some(version) = schema::synced_version(crd) else { return };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &crd["spec"];
    let kind = ApiKind {
        group: text(&spec["group"]),
        version: text(&version["name"]),
        kind: text(&spec["names"]["kind"]),
        plural: text(&spec["names"]["plural"]),
        namespaced: spec["scope"] == "Namespaced",
    };
    let has_status = version["subresources"]["status"].is_object();
    let new = || Arc::new(WantedApi::new(kind, has_status));
    let api = wanted.entry(schema::name(crd).to_owned()).or_insert_with(new);
    Arc::make_mut(api).covers.extend(cover);
}

/// Writes a CRD: what the server said against it, if it did.
pub(super) async fn write_crd(writer: &Writer, write: Option<&CrdWrite>) -> Option<String> {
    let result = match write? {
        CrdWrite::Create(crd) => writer.create(&resources::crds(), crd).await.map(drop),
        CrdWrite::Replace(crd) => writer.replace(&resources::crds(), crd).await,
    };
    match result {
        // The newer one is on its way.
        Err(error) if !error.is_conflict() => Some(format!("a CustomResourceDefinition could not be written: {error}")),
        _ => None,
    }
}
