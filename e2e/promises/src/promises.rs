//! The promises of docs/promises.md, put to the test on the embedded plane: `cargo test --test promises [part of a trial's name]`.
//!
//! ```text
//!   main ─▶ trials: one sentence for each flow and disturbance
//!                            │
//!                            ▼
//!                          Lab     a world, a stage, one flow published, one agent at a time
//!        flows: Flow ────▶  │
//!        (deeds, step by    ├─ Story    the flow undisturbed: the state after each step, the writes in each
//!         step)             ├─ Switch   kills the agent before or after its n-th write
//!                           ├─ Eyes     reads both stores and makes states comparable
//!                           └─ Audit    all writes of the agent: only its own, never an older spec over a newer one
//! ```
//!
//! A state is compared with that of the undisturbed run as a whole, so whatever is lost, left over or different fails a trial.
#![allow(clippy::large_futures)] // whole flows are one future each, and there are few of them

mod agents;
mod audit;
mod claims;
mod cost;
mod deed;
mod drift;
mod ends;
mod flow;
mod flows;
mod import;
mod keepers;
mod kills;
mod lab;
mod late;
mod leaders;
mod losses;
mod meddling;
mod neighbours;
mod publish;
mod quiet;
mod refusals;
mod secrecy;
mod shards;
mod state;
mod storms;
mod story;
mod switch;
mod throttled;
mod upheavals;
mod withdraw;

use std::process::ExitCode;

use carrick_e2e_stage::{harness, seed};
use futures::future::LocalBoxFuture;
use libtest_mimic::Trial;

use flow::Flow;
use meddling::Meddling;

type Play = Box<dyn FnOnce() -> LocalBoxFuture<'static, anyhow::Result<String>> + Send>;

/// Runs all trials; waiting is most of what they do, so there are more of them at once than there are cores.
fn main() -> ExitCode {
    harness::init_logs(true);
    libtest_mimic::run(&harness::arguments(8), trials()).exit_code()
}

fn trials() -> Vec<Trial> {
    let mut trials = vec![
        alone("convergence::publishing_killed_at_every_write", publish::killed_at_every_write),
        alone("convergence::the_gate_killed_at_every_write", publish::gate_killed_at_every_write),
        alone("convergence::a_withdrawal_killed_at_every_write", withdraw::killed_at_every_write),
        alone("convergence::rules_and_kinds_changed_and_killed_at_every_write", upheavals::at_every_write),
        alone("no_surprise::import_killed_at_every_write", import::killed_at_every_write),
        alone("no_surprise::an_import_by_policy_killed_at_every_write", import::policy::killed_at_every_write),
        alone("no_loss::orders_end_without_the_claims_of_their_binding", claims::revoked_at_every_write),
        alone("no_loss::a_refused_deletion_is_tried_again_while_the_claim_is_accepted", claims::refused_while_accepted),
        alone("no_collateral::two_agents_share_an_object", agents::share_an_object),
        alone("one_writer::a_leader_cut_off_from_the_lease_writes_nothing_more", leaders::cut_off_from_the_lease),
        alone("one_writer::the_lease_outlives_a_write_that_is_under_way", leaders::stopped_in_the_middle_of_a_write),
        alone("one_writer::a_report_that_is_under_way_is_waited_for", leaders::stopped_in_the_middle_of_a_report),
        alone(
            "one_writer::a_keeper_that_cannot_write_its_export_ends_before_another_begins",
            keepers::cannot_be_written,
        ),
        alone("neighbours::a_workspace_whose_copies_are_written_slowly_keeps_nobody_waiting", neighbours::slow),
        alone("no_loss::a_lost_shard_deletes_nothing_and_harms_nobody_else", shards::lost_and_back),
        alone("convergence::a_conflict_that_no_event_resolves_is_reported", refusals::conflicts_that_last),
        alone("no_loss::orders_that_end_ask_for_their_own_copies_and_for_no_others", ends::ask_for_their_own_copies),
        alone("no_loss::many_workspaces_are_let_go_once_their_copies_are_gone", ends::many_workspaces),
        alone("no_loss::a_copy_that_comes_after_its_order_goes_with_it", ends::a_copy_that_comes_after_its_order),
        alone("no_loss::what_is_out_of_sight_is_not_deleted", losses::out_of_sight),
        alone("no_loss::a_kind_that_is_not_served_once_hides_no_related_object", losses::unserved_once),
        alone("no_loss::a_withdrawal_waits_for_consumers_out_of_sight", withdraw::while_consumers_are_out_of_sight),
        alone("cost::of_very_many_refused_orders_the_first_are_warned_of", cost::very_many_refused),
        alone("quiet::nothing_but_the_heartbeat_is_written_at_rest", quiet::but_for_the_heartbeat),
        alone("secrecy::a_planted_password_is_found_in_every_form", secrecy::in_every_form),
        alone("secrecy::rules_that_fail_tell_no_secret", secrecy::of_rules_that_fail),
        alone("secrecy::the_binary_tells_no_secret", secrecy::of_the_binary),
    ];
    for flow in flows::all() {
        trials.push(of_flow("convergence::killed_before_and_after_every_write", &flow, kills::every_write));
        trials.push(of_flow("convergence::made_good_after_storms", &flow, storms::storms));
        trials.push(of_flow("quiet::nothing_is_written_at_rest", &flow, quiet::ten_periods));
        if flow.related.contains(&"secrets") {
            trials.push(of_flow("secrecy::no_secret_is_told_in_storms", &flow, secrecy::in_storms));
        }
    }
    // Large objects cost time, and at rest they are like any other.
    trials.push(of_flow("convergence::killed_before_and_after_every_write", &flows::large(), kills::every_write));
    for flow in [flows::short(), flows::both_ways()] {
        trials.push(of_flow("convergence::one_write_refused_at_a_time", &flow, refusals::each_write));
    }
    let back = [flows::there_and_back(), flows::there_and_back().applied("there_and_back_applied")];
    for flow in back.into_iter().chain([flows::short(), flows::secret_up(), flows::map_down()]) {
        trials.push(of_flow("order::a_late_write_undoes_nothing", &flow, late::every_write));
    }
    for flow in cost::flows() {
        trials.push(of_flow(
            "cost::what_is_deleted_again_is_created_ever_more_rarely",
            &flow,
            cost::deleted_again_and_again,
        ));
        trials.push(of_flow("cost::a_refusal_in_other_words_is_told_once", &flow, cost::refused_in_other_words));
        trials.push(of_flow(
            "cost::many_related_objects_are_remembered_by_few_writes",
            &flow,
            cost::many_related_objects,
        ));
        trials.push(of_flow("cost::an_immutable_memory_holds_up_nothing", &flow, cost::immutable_memory));
        trials.push(of_flow(
            "neighbours::a_server_that_asks_to_wait_makes_one_order_wait",
            &flow,
            throttled::for_an_hour,
        ));
        trials.push(of_flow(
            "neighbours::an_order_that_changes_without_end_is_written_so_often",
            &flow,
            neighbours::changes_without_end,
        ));
    }
    trials.push(of_flow(
        "drift::what_others_changed_is_counted_before_anybody_is_asked",
        &flows::drift_reported(),
        drift::counted_before_anybody_is_asked,
    ));
    for meddling in Meddling::ALL {
        let mut flows = vec![flows::short()];
        // Reverting and editing is about the order itself, whatever travels along.
        if seed::is_wide() || ![Meddling::RevertsSpec, Meddling::EditsCopy].contains(&meddling) {
            flows.extend([flows::secret_up(), flows::map_down()]);
        }
        for flow in flows {
            let name = format!("convergence::killed_at_every_write_while_somebody_{}::{}", meddling.words(), flow.name);
            trials.push(trial(name, Box::new(move || Box::pin(kills::every_write_and_meddling(flow, meddling)))));
        }
    }
    trials
}

/// A trial of its own.
fn alone<F>(sentence: &str, play: fn() -> F) -> Trial
where
    F: Future<Output = anyhow::Result<String>> + 'static,
{
    trial(sentence.to_owned(), Box::new(move || Box::pin(play())))
}

/// A trial of one flow.
fn of_flow<F>(sentence: &str, flow: &Flow, play: fn(Flow) -> F) -> Trial
where
    F: Future<Output = anyhow::Result<String>> + 'static,
{
    let flow = flow.clone();
    trial(format!("{sentence}::{}", flow.name), Box::new(move || Box::pin(play(flow))))
}

fn trial(name: String, play: Play) -> Trial {
    let told = name.clone();
    Trial::test(name, move || {
        let runtime = harness::runtime()?;
        let result = runtime.block_on(play());
        runtime.shutdown_background();
        // Told at once, because the other trials take a while.
        match &result {
            Ok(figures) => println!("  {told}: {figures}"),
            Err(error) => eprintln!("  {told}: {error:#}"),
        }
        harness::verdict(result.map(drop))
    })
}
