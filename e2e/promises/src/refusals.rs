//! One object that a server refuses, for as long as it likes, harms no other; and when it is taken, all is as it should be.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use carrick_e2e_stage::seed::is_wide;
use carrick_e2e_stage::world::ADMIN_AGENT;
use carrick_plane::Mode;
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::json;

use super::deed::Deed::{Change, Order};
use super::deed::Team::{A, B};
use super::flow::Flow;
use super::flows;
use super::lab::Lab;
use super::state::State;
use super::story::Story;

/// A write of the undisturbed run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    on_service: bool,
    verb: String,
    group: String,
    resource: String,
    subresource: String,
    cluster: String,
    namespace: String,
    name: String,
}

/// One after the other, each write for team A's order is refused with 403 or 422 from the beginning. When that has happened, another order
/// must be served all the same; then the refusal ends, and the flow must go on as if nothing had been.
pub async fn each_write(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    // What the other order brings along is known from the beginning.
    canary(&mut lab).await?;
    Change(B, "canary", json!({ "spec": { "size": 70 } })).act(&lab).await?;
    lab.until("a canary is served", None, |state| served(state.copy("team-b", "canary"), 70)).await?;
    lab.delete_source(&lab.stage.team_b, "canary").await?;
    lab.until("the canary is gone", None, |state| !state.has("/canary")).await?;
    let before = lab.audit.writes().len();
    let story = Story::told(&mut lab).await?;
    let targets = targets(&lab, before);
    let (mut refused, mut missed) = (0, 0);
    for (number, target) in targets.iter().enumerate() {
        // A status that is refused for its content is not sent again before it changes, and this one does not.
        let codes = match (target.subresource.as_str(), is_wide()) {
            ("status", _) => vec![403],
            (_, true) => vec![403, 422],
            _ => vec![if number % 2 == 0 { 403 } else { 422 }],
        };
        for code in codes {
            let hit = refuse(&mut lab, &story, target, code).await.with_context(|| format!("{code} for {target:?}"))?;
            *if hit { &mut refused } else { &mut missed } += 1;
        }
    }
    ensure!(missed * 3 <= refused, "{missed} of {} writes were never sent", targets.len());
    lab.close().await?;
    Ok(format!("{refused} writes refused, {missed} never sent"))
}

async fn canary(lab: &mut Lab) -> anyhow::Result<()> {
    Order(B, "canary", lab.flow.first.clone()).act(lab).await?;
    lab.until("the canary is placed", None, |state| !state.copy("team-b", "canary").is_null()).await?;
    Ok(())
}

/// What was written for team A's order since a number of writes.
fn targets(lab: &Lab, since: usize) -> BTreeSet<Target> {
    let cluster = &lab.stage.team_a.cluster;
    let concerns = |ask: &carrick_plane::faults::RequestInfo| {
        let of_order = ask.cluster_name == *cluster || ask.namespace == *cluster || ask.name.contains(cluster.as_str());
        of_order && !["events", "leases", "namespaces"].contains(&ask.resource.as_str())
    };
    let writes = lab.audit.writes();
    let done = writes[since..].iter().filter(|write| write.code < 300 && write.code > 0 && concerns(&write.ask));
    let target = |write: &super::audit::Write| {
        let ask = write.ask.clone();
        Target {
            on_service: write.server == Mode::Kube,
            verb: ask.verb,
            group: ask.group,
            resource: ask.resource,
            subresource: ask.subresource,
            cluster: ask.cluster_name,
            namespace: ask.namespace,
            name: ask.name,
        }
    };
    done.map(target).collect()
}

/// Plays the flow; false if the write was never sent.
async fn refuse(lab: &mut Lab, story: &Story, target: &Target, code: u16) -> anyhow::Result<bool> {
    canary(lab).await?;
    let plane = if target.on_service { lab.world.service_plane() } else { lab.world.kcp_plane() };
    let faults = plane.faults().clone();
    let wanted = target.clone();
    let requests = Match::any().user(ADMIN_AGENT).verbs(&[&target.verb]).filter(move |ask| {
        (&ask.group, &ask.resource, &ask.subresource) == (&wanted.group, &wanted.resource, &wanted.subresource)
            && (&ask.cluster_name, &ask.namespace, &ask.name) == (&wanted.cluster, &wanted.namespace, &wanted.name)
    });
    let mut rule = Some(faults.add(Rule::new(requests, Effect::refuse(code))));
    let mut hit = false;
    for (index, step) in lab.flow.steps.clone().iter().enumerate() {
        lab.play(step).await?;
        if let Some(id) = rule {
            let refused = || faults.hits(id) > 0;
            lab.until("the step is done or refused", None, |state| (step.done)(state) || refused()).await?;
            if refused() {
                hit = true;
                let size = i64::try_from(index)? + 70;
                Change(B, "canary", json!({ "spec": { "size": size } })).act(lab).await?;
                lab.until("others are served", None, |state| served(state.copy("team-b", "canary"), size)).await?;
                faults.remove(id);
                rule = None;
            }
        }
        if rule.is_none() {
            let expected = |state: &super::state::State| without_canary(state) == without_canary(&story.after[index]);
            let reached = lab.until("the state is that of the undisturbed run", None, expected).await;
            reached.with_context(|| {
                let (now, wanted) = (without_canary(&lab.eyes.look()), without_canary(&story.after[index]));
                let last = lab.audit.last(12);
                format!("step {:?}; difference: {}\nlast writes {last:#?}", step.name, now.difference(&wanted))
            })?;
        }
    }
    if let Some(id) = rule {
        faults.remove(id);
    }
    lab.clear(&story.start).await?;
    Ok(hit)
}

/// Somebody is always faster with a copy, and no event says so: that is reported like any other failure, and ends when the conflict does.
pub async fn conflicts_that_last() -> anyhow::Result<String> {
    let mut lab = Lab::open(flows::short()).await?;
    Order(A, "one", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    lab.until("the order is placed", None, |state| served(state.copy("team-a", "one"), 1)).await?;
    lab.rest().await?;
    let faults = lab.world.service_plane().faults().clone();
    let writes = Match::any().user(ADMIN_AGENT).verbs(&["patch"]).filter(|ask| ask.resource == "buckets");
    let rule = faults.add(Rule::new(writes, Effect::refuse(409)));
    Change(A, "one", json!({ "spec": { "size": 2 } })).act(&lab).await?;
    let told = |state: &State, status: &str, words: &str| {
        let published = state.places().find(|place| place.starts_with("service publishedresources "));
        let conditions = published.and_then(|place| state.at(place)["status"]["conditions"].as_array());
        conditions.into_iter().flatten().any(|condition| {
            condition["type"] == "ObjectsSynced"
                && condition["status"] == status
                && condition["message"].as_str().is_some_and(|message| message.contains(words))
        })
    };
    lab.until("the conflict is reported", None, |state| told(state, "False", "times in a row")).await?;
    faults.remove(rule);
    lab.until("it is over", None, |state| served(state.copy("team-a", "one"), 2) && told(state, "True", "")).await?;
    lab.delete_source(&lab.stage.team_a, "one").await?;
    lab.until("the order is gone", None, |state| state.copy("team-a", "one").is_null()).await?;
    lab.close().await?;
    Ok("reported, and over".to_owned())
}

fn served(copy: &serde_json::Value, size: i64) -> bool {
    // Rules may make ten times as much of it.
    copy["spec"]["size"] == size || copy["spec"]["size"] == size * 10
}

fn without_canary(state: &super::state::State) -> super::state::State {
    state.without_memories().without_counts().only(|place| {
        !place.contains("canary")
            && !place.contains("obj-state-team-b")
            && !place.starts_with("service buckets team-b/")
    })
}
