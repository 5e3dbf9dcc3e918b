//! What the service cluster grants and serves: said before the first order, and asked again only while something is missing.
//!
//! ```text
//!  Catalog ──▶ needs of each PublishedResource ──▶ questions ──▶ Granted ─┬─▶ schemas   conditions
//!  objects that were refused ──▶ asked once more ────┘                    └─▶ objects   tried again at once
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use carrick_client::{Client, Error, Resource};
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::catalog::Catalog;
use super::discovery::is_served;
use super::retry::Retry;
use crate::api::{Origin, PublishedResource};
use crate::rules::reads;
use crate::rules::related::{Gvr, Related};
use crate::rules::rights::{NeededRight, needs};

/// How many questions are under way at once.
const AT_ONCE: usize = 8;
/// When what is missing is asked for again. Work goes on within five seconds of a right being granted.
const AGAIN: Duration = Duration::from_secs(2);
/// For how long an answer is not doubted although a server refuses something: it may be admission that says no.
const TRUSTED: Duration = Duration::from_secs(10);

/// What is known, by name of the PublishedResource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Granted {
    /// What is missing, in words; an entry for every PublishedResource that was answered for.
    pub(crate) lacking: BTreeMap<String, Vec<String>>,
    /// Related resources that the service cluster does not serve, in words.
    pub(crate) unserved: BTreeMap<String, Vec<String>>,
    /// How often something was granted that was missing before.
    pub(crate) regained: BTreeMap<String, u64>,
}

impl Granted {
    /// Whether everything is granted for a PublishedResource, or what is not; nothing while that is not known.
    pub(crate) fn to(&self, name: &str) -> Option<Result<(), String>> {
        let lacking = self.lacking.get(name)?;
        Some(if lacking.is_empty() { Ok(()) } else { Err(lacking.join("; ")) })
    }
}

/// Whether the one who asks may do something on all objects of a resource, or on one.
pub async fn allowed(
    client: &Client,
    (group, resource, verb): (&str, &str, &str),
    namespace: Option<&str>,
    name: Option<&str>,
) -> Result<bool, Error> {
    let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": {
            "group": group,
            "resource": plural,
            "subresource": subresource,
            "name": name.unwrap_or_default(),
            "namespace": namespace.unwrap_or_default(),
            "verb": verb,
        }},
    });
    let reviews =
        Resource::cluster_wide("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews");
    let answer = client.create(&reviews, None, &review).await?;
    Ok(answer["status"]["allowed"] == true)
}

/// One thing to ask the service cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Question {
    /// Whether a verb is allowed: group, resource, namespace, verb.
    Right(String, String, Option<String>, &'static str),
    /// Whether a resource is served.
    Served(Gvr),
}

impl Question {
    async fn ask(&self, local: &Client) -> Result<bool, Error> {
        match self {
            Self::Right(group, resource, namespace, verb) => {
                allowed(local, (group, resource, verb), namespace.as_deref(), None).await
            }
            Self::Served(gvr) => is_served(local, gvr).await,
        }
    }
}

/// What one PublishedResource needs.
struct Wanted {
    needs: Vec<NeededRight>,
    served: Vec<(String, Gvr)>,
}

impl Wanted {
    fn of(catalog: &Catalog) -> BTreeMap<String, Self> {
        let entries = catalog.entries.iter().filter(|(name, _)| {
            catalog
                .resources
                .get(*name)
                .is_some_and(|pr| pr.metadata.deletion_timestamp.is_none() && pr.is_synchronized())
        });
        entries
            .map(|(name, entry)| {
                let apply = entry.rules.as_ref().is_ok_and(|rules| rules.apply);
                (name.clone(), Self { needs: needs(&entry.pr, &entry.crd, apply), served: served(&entry.pr) })
            })
            .collect()
    }

    fn questions(&self) -> impl Iterator<Item = Question> {
        self.needs.iter().flat_map(of_need).chain(self.served.iter().map(|(_, gvr)| Question::Served(gvr.clone())))
    }
}

fn of_need(need: &NeededRight) -> impl Iterator<Item = Question> {
    need.verbs
        .iter()
        .map(|verb| Question::Right(need.group.clone(), need.resource.clone(), need.namespace.clone(), verb))
}

/// Related resources on the service cluster, and those that rules look at, by the field of their entry.
fn served(pr: &PublishedResource) -> Vec<(String, Gvr)> {
    let compiled = pr.spec.related.iter().enumerate().filter_map(|(at, entry)| {
        let related = Related::compile("spec.related", entry).ok()?;
        let gvr = if related.origin == Origin::Service { related.source } else { related.destination };
        Some((format!("spec.related[{at}]"), gvr))
    });
    let looked_at =
        pr.spec.reads.iter().enumerate().filter_map(|(at, entry)| {
            Some((format!("spec.reads[{at}]"), reads::select("spec.reads", entry).ok()?.source))
        });
    compiled.chain(looked_at).collect()
}

/// What was answered, and when.
#[derive(Default)]
struct Answers(HashMap<Question, (bool, Instant)>);

impl Answers {
    fn get(&self, question: &Question) -> Option<bool> {
        self.0.get(question).map(|(answer, _)| *answer)
    }

    /// What is to be asked now: everything that is not known, and if it is time, the first thing that was denied.
    fn questions_of(&self, wanted: &Wanted, again: bool) -> Vec<Question> {
        let unknown: Vec<Question> = wanted.questions().filter(|question| self.get(question).is_none()).collect();
        if !unknown.is_empty() || !again {
            return unknown;
        }
        wanted.questions().find(|question| self.get(question) == Some(false)).into_iter().collect()
    }

    /// What is known about each PublishedResource whose questions are all answered.
    fn told(&self, wanted: &BTreeMap<String, Wanted>, before: &Granted) -> Granted {
        let mut granted = Granted { regained: before.regained.clone(), ..Granted::default() };
        granted.regained.retain(|name, _| wanted.contains_key(name));
        for (name, one) in wanted {
            if one.questions().any(|question| self.get(&question).is_none()) {
                continue;
            }
            let lacking = one.needs.iter().filter_map(|need| {
                let denied: Vec<&str> = of_need(need)
                    .zip(need.verbs)
                    .filter(|(question, _)| self.get(question) == Some(false))
                    .map(|(_, verb)| *verb)
                    .collect();
                (!denied.is_empty()).then(|| need.lacks(&denied))
            });
            granted.lacking.insert(name.clone(), lacking.collect());
            let unserved = one.served.iter().filter(|(_, gvr)| self.get(&Question::Served(gvr.clone())) == Some(false));
            let unserved: Vec<String> = unserved.map(|(at, gvr)| not_served(at, gvr)).collect();
            if !unserved.is_empty() {
                granted.unserved.insert(name.clone(), unserved);
            }
            let less = |what: &BTreeMap<String, Vec<String>>| what.get(name).cloned().unwrap_or_default();
            let shorter = |before: Vec<String>, now: Vec<String>| before.iter().any(|it| !now.contains(it));
            if shorter(less(&before.lacking), less(&granted.lacking))
                || shorter(less(&before.unserved), less(&granted.unserved))
            {
                *granted.regained.entry(name.clone()).or_default() += 1;
            }
        }
        granted
    }
}

/// Related kinds that the service cluster does not serve, by PublishedResource; those it does not tell about are left out.
pub(crate) async fn unserved(local: &Client, catalog: &Catalog) -> BTreeMap<String, Vec<String>> {
    let mut unserved: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, wanted) in Wanted::of(catalog) {
        for (at, gvr) in &wanted.served {
            if is_served(local, gvr).await.is_ok_and(|served| !served) {
                unserved.entry(name.clone()).or_default().push(not_served(at, gvr));
            }
        }
    }
    unserved
}

fn not_served(at: &str, Gvr { group, version, resource }: &Gvr) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!(
        "{at}: the service cluster serves no {resource}{dot}{group} in version {version}; install its CRD, or correct group, \
         version and resource"
    )
}

/// Keeps what is granted up to date until told to stop. Names that come in are of PublishedResources whose objects were refused.
pub(crate) async fn run(
    local: Client,
    mut catalog: watch::Receiver<Arc<Catalog>>,
    mut refused: mpsc::UnboundedReceiver<String>,
    granted: watch::Sender<Granted>,
    stop: CancellationToken,
) {
    let mut answers = Answers::default();
    let mut wanted = BTreeMap::new();
    let mut retry = Retry::for_servers();
    loop {
        let mut due = false;
        tokio::select! {
            () = stop.cancelled() => return,
            changed = catalog.changed() => if changed.is_err() { return },
            Some(name) = refused.recv() => doubt(&mut answers, wanted.get(&name)),
            () = retry.due() => due = true,
        }
        wanted = Wanted::of(&catalog.borrow_and_update());
        let needed: HashSet<Question> = wanted.values().flat_map(Wanted::questions).collect();
        answers.0.retain(|question, _| needed.contains(question));
        let asked = tokio::select! {
            () = stop.cancelled() => return,
            asked = ask(&local, &mut answers, &wanted, due) => asked,
        };
        let now = answers.told(&wanted, &granted.borrow());
        let complete = now.lacking.values().all(Vec::is_empty) && now.unserved.is_empty();
        granted.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
        match asked {
            Ok(()) => {
                retry.succeeded();
                retry.set((!complete).then(|| Instant::now() + AGAIN));
            }
            // Nobody needs to know: what is not known is not told, and the log tells of servers that do not answer.
            Err(error) => {
                tracing::debug!(%error, "Cannot ask for rights.");
                retry.failed();
            }
        }
    }
}

/// Forgets what was answered a while ago for a PublishedResource.
fn doubt(answers: &mut Answers, wanted: Option<&Wanted>) {
    for question in wanted.into_iter().flat_map(Wanted::questions) {
        if answers.0.get(&question).is_some_and(|(answer, since)| *answer && since.elapsed() > TRUSTED) {
            answers.0.remove(&question);
        }
    }
}

/// Asks what is open until nothing is; the first failure is the answer.
async fn ask(
    local: &Client,
    answers: &mut Answers,
    wanted: &BTreeMap<String, Wanted>,
    again: bool,
) -> Result<(), Error> {
    let mut again = again;
    loop {
        let questions: HashSet<Question> = wanted.values().flat_map(|one| answers.questions_of(one, again)).collect();
        if questions.is_empty() {
            return Ok(());
        }
        let asked = stream::iter(questions).map(|question| async move { (question.ask(local).await, question) });
        let mut asked = asked.buffer_unordered(AT_ONCE);
        let mut failed = None;
        let mut regained = Vec::new();
        while let Some((answer, question)) = asked.next().await {
            match answer {
                Ok(answer) => {
                    if answer && answers.get(&question) == Some(false) {
                        regained.push(question.clone());
                    }
                    answers.0.insert(question, (answer, Instant::now()));
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        // Rights come in roles: whoever got one has probably got the others too.
        for one in wanted.values().filter(|one| one.questions().any(|question| regained.contains(&question))) {
            for question in one.questions() {
                if answers.get(&question) == Some(false) {
                    answers.0.remove(&question);
                }
            }
        }
        again = false;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::rules::tests::{crontab, published};

    fn wanted(spec: Value) -> BTreeMap<String, Wanted> {
        let pr = published(spec);
        let wanted = Wanted { needs: needs(&pr, &crontab(), false), served: served(&pr) };
        BTreeMap::from([("a".to_owned(), wanted)])
    }

    fn answered(wanted: &BTreeMap<String, Wanted>, no: impl Fn(&Question) -> bool) -> Answers {
        let questions = wanted.values().flat_map(Wanted::questions);
        Answers(questions.map(|question| (question.clone(), (!no(&question), Instant::now()))).collect())
    }

    fn is_delete(question: &Question) -> bool {
        matches!(question, Question::Right(.., "delete"))
    }

    #[test]
    fn nothing_is_told_before_all_is_known() {
        let wanted = wanted(json!({}));
        let mut answers = answered(&wanted, |_| false);
        assert_eq!(answers.told(&wanted, &Granted::default()).to("a"), Some(Ok(())));
        answers.0.retain(|question, _| !is_delete(question));
        assert_eq!(answers.told(&wanted, &Granted::default()).to("a"), None);
        assert_eq!(answers.questions_of(&wanted["a"], false).len(), 1);
    }

    #[test]
    fn while_all_is_granted_nothing_is_asked_and_of_what_is_missing_the_first() {
        let wanted = wanted(json!({"related": [
            {"identifier": "x", "origin": "kcp", "group": "x.io", "version": "v1", "resource": "xs", "object": {"reference": {"path": "x"}}},
        ]}));
        assert!(answered(&wanted, |_| false).questions_of(&wanted["a"], true).is_empty());
        let lacking = answered(&wanted, is_delete);
        assert!(lacking.questions_of(&wanted["a"], false).is_empty());
        assert_eq!(lacking.questions_of(&wanted["a"], true).len(), 1);
        let told = lacking.told(&wanted, &Granted::default());
        assert_eq!(told.lacking["a"].len(), 2);
        assert!(told.regained.is_empty());
        // One of the two is granted later.
        let less = answered(&wanted, |question| {
            is_delete(question) && matches!(question, Question::Right(group, ..) if group == "x.io")
        });
        let told = less.told(&wanted, &told);
        assert_eq!((told.lacking["a"].len(), told.regained["a"]), (1, 1));
        assert_eq!(less.told(&wanted, &told).regained["a"], 1);
        let unserved = answered(&wanted, |question| matches!(question, Question::Served(_)));
        let told = unserved.told(&wanted, &Granted::default());
        assert!(
            told.unserved["a"][0].starts_with("spec.related[0]: the service cluster serves no xs.x.io in version v1")
        );
    }
}
