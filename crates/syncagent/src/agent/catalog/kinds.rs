//! Kinds without a CRD, found by asking the API server: those that come with Kubernetes, and those of aggregated APIs.
//!
//! Every kind is asked for by itself and in the background, so that an API that hangs or fails harms nobody else. Nothing reports when such a
//! kind changes, so it is asked for again now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use carrick_client::discovery::{Found, find_kind};
use carrick_client::{Client, Error};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use sha1::{Digest, Sha1};
use tokio::time::Instant;

use super::definition::crds;
use crate::agent::retry::wait_until;
use crate::agent::timing::Timing;
use crate::rules::crd::{Crd, Names};
use crate::rules::hex;
use crate::rules::openapi::{self, Models, Served};

/// Group and kind.
pub(super) type Wanted = (String, String);

/// The kinds that were asked for.
pub(super) struct ServedKinds {
    timing: Timing,
    known: BTreeMap<Wanted, AskedKind>,
    asking: FuturesUnordered<BoxFuture<'static, (Wanted, KindAnswer)>>,
}

struct AskedKind {
    /// What was answered last; nothing yet while it is asked for the first time.
    answer: Option<KindAnswer>,
    /// When to ask again; never while an answer is awaited.
    due: Option<Instant>,
}

/// What the API server says about a kind.
pub(super) enum KindAnswer {
    /// It is served, and looks like this.
    Served(DescribedKind),
    /// It has a CRD, which the watch will bring.
    HasCrd,
    /// It is not served.
    Absent,
    /// The answer of the server makes no sense.
    Failed(String),
    /// The server did not answer.
    Unanswered(String),
}

/// When a server that did not answer is asked again, if not sooner.
const UNANSWERED: Duration = Duration::from_secs(4);

/// A kind as the API server describes it.
pub(super) struct DescribedKind {
    /// The same description has the same version.
    pub(super) version: String,
    /// The description in the form of a CRD, as JSON.
    pub(super) text: Arc<[u8]>,
}

impl ServedKinds {
    /// None yet. Those that are there are asked for less often: they change only when the API server is replaced.
    pub(super) fn new(timing: Timing) -> Self {
        Self { timing, known: BTreeMap::new(), asking: FuturesUnordered::new() }
    }

    /// Asks for these kinds, unless they were asked for lately, and forgets all others.
    pub(super) fn want(&mut self, local: &Client, wanted: &BTreeSet<Wanted>) {
        self.known.retain(|kind, _| wanted.contains(kind));
        let now = Instant::now();
        for kind in wanted {
            let asked = self.known.entry(kind.clone()).or_insert(AskedKind { answer: None, due: Some(now) });
            if asked.due.is_some_and(|due| due <= now) {
                asked.due = None;
                let (local, kind) = (local.clone(), kind.clone());
                self.asking.push(Box::pin(async move {
                    let answer = ask(&local, &kind.0, &kind.1).await;
                    (kind, answer)
                }));
            }
        }
    }

    /// Waits until there is something new: an answer, or the time to ask again.
    pub(super) async fn changed(&mut self) {
        let due = self.known.values().filter_map(|asked| asked.due).min();
        let answered = async {
            match self.asking.next().await {
                Some(answered) => answered,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wait_until(due) => {}
            (kind, answer) = answered => {
                let Some(asked) = self.known.get_mut(&kind) else { return };
                let Timing { known_kind, absent_kind, .. } = self.timing;
                let pause = match answer {
                    KindAnswer::Served(_) => known_kind,
                    KindAnswer::Unanswered(_) => absent_kind.min(UNANSWERED),
                    KindAnswer::HasCrd | KindAnswer::Absent | KindAnswer::Failed(_) => absent_kind,
                };
                asked.due = Some(Instant::now() + pause);
                // What a server has answered before still holds if it does not answer now.
                if !matches!((&asked.answer, &answer), (Some(KindAnswer::Served(_)), KindAnswer::Failed(_) | KindAnswer::Unanswered(_))) {
                    asked.answer = Some(answer);
                }
            }
        }
    }

    /// What was answered about a kind; nothing if it was not asked for, or was not answered yet.
    pub(super) fn answer(&self, group: &str, kind: &str) -> Option<&KindAnswer> {
        self.known.get(&(group.to_owned(), kind.to_owned()))?.answer.as_ref()
    }
}

fn fingerprint(crd: &Crd) -> String {
    let text = carrick_json::go::to_line(&crd.spec).unwrap_or_default();
    hex(&Sha1::digest(text.as_bytes()))
}

async fn ask(local: &Client, group: &str, kind: &str) -> KindAnswer {
    match read(local, group, kind).await {
        Ok(answer) => answer,
        Err(error) => KindAnswer::Unanswered(format!("{error}; is the API server of group {group:?} healthy?")),
    }
}

async fn read(local: &Client, group: &str, kind: &str) -> Result<KindAnswer, Error> {
    let Some(found) = find_kind(local, group, kind).await? else { return Ok(KindAnswer::Absent) };
    let crd = format!("{}.{group}", found.plural);
    if !group.is_empty() && local.metadata_only().get(&crds(), None, &crd).await?.is_some() {
        return Ok(KindAnswer::HasCrd);
    }
    read_served(local, found).await
}

/// A kind as the server describes it in OpenAPI, in the form of a CRD; `Err` with the reason if that is impossible.
pub(crate) async fn describe(local: &Client, found: Found) -> Result<Result<Crd, String>, Error> {
    let mut models = BTreeMap::new();
    for version in &found.versions {
        models.insert(version.name.clone(), models_of(local, &found.group, &version.name).await?);
    }
    Ok(openapi::crd(&served(found), &models).map_err(|error| error.to_string()))
}

async fn read_served(local: &Client, found: Found) -> Result<KindAnswer, Error> {
    Ok(match describe(local, found).await? {
        Ok(crd) => KindAnswer::Served(DescribedKind { version: fingerprint(&crd), text: crd.to_text().into() }),
        Err(problem) => KindAnswer::Failed(problem),
    })
}

/// Version 3 has one document for each version of a group, so that a broken API spoils only its own. Servers without it have one for all.
async fn models_of(local: &Client, group: &str, version: &str) -> Result<Models, Error> {
    let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
    match local.raw_get(&format!("/openapi/v3/{path}")).await {
        Ok(document) => Ok(Models::of(document)),
        Err(error) if error.is_not_found() => local.raw_get("/openapi/v2").await.map(Models::of),
        Err(error) => Err(error),
    }
}

fn served(found: Found) -> Served {
    Served {
        versions: found
            .versions
            .into_iter()
            .map(|version| (version.name, version.subresources.contains("status")))
            .collect(),
        names: Names {
            plural: found.plural,
            singular: found.singular,
            short_names: found.short_names,
            kind: found.kind,
            list_kind: String::new(),
            categories: found.categories,
        },
        group: found.group,
        namespaced: found.namespaced,
        preferred: found.preferred,
    }
}
