//! A server that asks to be left alone for long: the order that it said this about waits, and no other.

use anyhow::ensure;
use carrick_e2e_stage::world::ADMIN_AGENT;
use carrick_plane::faults::{Effect, Match, Rule};
use serde_json::json;

use super::cost::told;
use super::deed::Deed::{Change, Order};
use super::deed::Team::{A, B};
use super::flow::Flow;
use super::lab::Lab;

/// Every write of one copy is answered with 429 and an hour to wait. It is tried once, whatever happens to the order meanwhile; other orders of the same
/// workspace and of others are served, and the PublishedResource says who waits, and for how long.
pub async fn for_an_hour(flow: Flow) -> anyhow::Result<String> {
    let mut lab = Lab::open(flow).await?;
    Order(A, "one", json!({ "spec": { "size": 1 } })).act(&lab).await?;
    lab.until("the order is placed", None, |state| state.copy("team-a", "one")["spec"]["size"] == 1).await?;
    lab.rest().await?;
    let copy = lab.stage.copy(&lab.stage.team_a, "one").await?.unwrap_or_default();
    let name = copy["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let faults = lab.world.service_plane().faults().clone();
    let writes = Match::writes().user(ADMIN_AGENT).filter(move |ask| ask.resource == "buckets" && ask.name == name);
    let rule = faults.add(Rule::new(writes, Effect::throttle(3600)));
    Change(A, "one", json!({ "spec": { "size": 2 } })).act(&lab).await?;
    lab.until("it is reported", None, |state| told(state, "False", "the server asks to wait for 3600 s")).await?;

    // Whatever changes meanwhile, the server is left alone; and nobody else waits.
    for size in 3..6 {
        Change(A, "one", json!({ "spec": { "size": size } })).act(&lab).await?;
        let other = format!("other-{size}");
        for team in [A, B] {
            Order(team, other.clone().leak(), json!({ "spec": { "size": size } })).act(&lab).await?;
        }
        lab.until("others are served", None, |state| {
            ["team-a", "team-b"].iter().all(|team| state.copy(team, &other)["spec"]["size"] == size)
        })
        .await?;
    }
    lab.rest().await?;
    let tries = faults.hits(rule);
    ensure!(tries == 1, "it was tried {tries} times: {:#?}", lab.audit.last(20));
    faults.remove(rule);

    // What a server said is not remembered by the next agent.
    lab.kill_agent().await?;
    lab.start_agent()?;
    let over =
        |state: &super::state::State| state.copy("team-a", "one")["spec"]["size"] == 5 && told(state, "True", "");
    lab.until("the next agent goes on", None, over).await?;
    lab.close().await?;
    Ok(format!("tried {tries} times"))
}
