//! One object that two agents need: each of them holds it until it is done itself.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::two::Two;
use carrick_e2e_stage::world::World;

use super::is_free;

pub(crate) async fn what_is_the_primary_of_one_agent_is_held_for_it_whatever_another_one_does(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let two = Two::set(world).await?;
    let (a, b) = (two.a.start_agent()?, two.b.start_agent()?);
    two.accept().await?;
    two.order("gadget").await?;
    two.order("spare").await?;
    a.stop().await?;

    // Agent B does not need it any more.
    let namespace = two.a_namespace();
    two.b.cancel(two.team(), "spare").await?;
    two.b.all_gone(two.team(), "spare").await?;
    two.b.gone("the copy of B goes", two.of_b("spare")).await?;
    two.held("spare").await.context("after B let it go")?;

    // Its owner does not want it any more.
    two.delete("gadget").await?;
    two.b.gone("the copy of B goes", two.of_b("gadget")).await?;
    two.b.at_rest().await?;
    two.held("gadget").await.context("before A is back")?;
    let copy = two.b.service.get(&two.gadgets, Some(&namespace), "gadget").await?;
    ensure!(copy.is_some(), "somebody else deleted the copy of A");

    let a = two.a.start_agent()?;
    two.b.gone("the copy of A goes", two.of_a("gadget", &namespace)).await?;
    two.b.gone("the Gadget goes", two.original("gadget")).await?;
    two.delete("spare").await?;
    two.b.gone("the other copy of A goes", two.of_a("spare", &namespace)).await?;
    two.b.gone("the other Gadget goes", two.original("spare")).await?;
    a.stop().await?;
    b.stop().await
}

pub(crate) async fn what_one_agent_needs_beside_an_order_is_held_for_it_whatever_its_own_agent_does(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let two = Two::set(world).await?;
    let (a, b) = (two.a.start_agent()?, two.b.start_agent()?);
    two.accept().await?;
    two.order("gadget").await?;
    b.stop().await?;

    let namespace = two.a_namespace();
    two.delete("gadget").await?;
    two.b.gone("the copy of A goes", two.of_a("gadget", &namespace)).await?;
    two.b.at_rest().await?;
    two.held("gadget").await.context("before B is back")?;
    let copy = two.b.service.get(&two.gadgets, Some(&two.team().cluster), "gadget").await?;
    ensure!(copy.is_some(), "somebody else deleted the copy of B");

    let b = two.b.start_agent()?;
    two.b.gone("the copy of B goes", two.of_b("gadget")).await?;
    two.b.gone("the Gadget goes", two.original("gadget")).await?;
    two.b.source_is("the order stays", two.team(), "gadget", |source| !is_free(source)).await?;
    a.stop().await?;
    b.stop().await
}
