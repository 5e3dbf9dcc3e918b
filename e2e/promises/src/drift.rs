//! What others have changed of copies is known before it is known who it was.

use anyhow::ensure;
use carrick_e2e_stage::stage::condition;
use carrick_e2e_stage::world::ADMIN_AGENT;
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::json;

use super::deed::Deed::{Order, Touch};
use super::deed::Team::{A, B};
use super::flow::Flow;
use super::lab::Lab;
use super::state::State;

const NAMES: [&str; 3] = ["one", "two", "three"];

/// Others change copies while no agent runs, and the service cluster does not answer who it was. The next agent says how many they are all the
/// same, and who it was once it can ask.
pub async fn counted_before_anybody_is_asked(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    for name in NAMES {
        for team in [A, B] {
            Order(team, name, json!({ "spec": { "size": 1 } })).act(&lab).await?;
        }
    }
    lab.until("all are placed", None, |state| sizes(state, 1)).await?;
    lab.rest().await?;
    lab.kill_agent().await?;
    for name in NAMES {
        for team in [A, B] {
            Touch(team, name, json!({ "spec": { "size": 7 } })).act(&lab).await?;
        }
    }

    let faults = lab.world.service_plane().faults().clone();
    let questions = Match::any().user(ADMIN_AGENT).filter(|ask| ask.resource == "buckets" && ask.verb == "get");
    let rule = faults.add(Rule::new(questions, Effect::refuse(503)));
    lab.start_agent()?;
    lab.until("all are counted", None, |state| says(state, "6 copies were changed by others")).await?;
    ensure!(faults.hits(rule) > 0, "nobody was asked who it was");
    faults.remove(rule);
    lab.until("it is known who it was", None, |state| says(state, "spec.size (")).await?;
    let state = lab.rest().await?;
    ensure!(sizes(&state, 7), "something was set back that is only reported");
    lab.close().await?;
    Ok(format!("{} copies", 2 * NAMES.len()))
}

fn sizes(state: &State, size: i64) -> bool {
    let has = |team| NAMES.iter().all(|name| state.copy(team, name)["spec"]["size"] == size);
    has("team-a") && has("team-b")
}

/// Whether the PublishedResource says so.
fn says(state: &State, words: &str) -> bool {
    let published = state.places().find(|place| place.starts_with("service publishedresources "));
    let free = published.map(|place| condition(state.at(place), "DriftFree"));
    free.is_some_and(|free| free["status"] == "False" && free["message"].as_str().is_some_and(|it| it.contains(words)))
}
