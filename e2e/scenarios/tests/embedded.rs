//! Every scenario in an embedded world of its own: `cargo test --test embedded [part of a scenario's name]`.

use std::process::ExitCode;
use std::sync::Arc;

use carrick_e2e_scenarios::{Scenario, all};
use carrick_e2e_stage::harness;
use carrick_e2e_stage::world::EmbeddedWorld;
use libtest_mimic::{Completion, Trial};

fn main() -> ExitCode {
    harness::init_logs(false);
    libtest_mimic::run(&harness::arguments(6), all().into_iter().map(play).collect()).exit_code()
}

fn play(scenario: Scenario) -> Trial {
    Trial::ignorable_test(scenario.name, move || {
        if let Some(lack) = scenario.lacks() {
            return Ok(Completion::ignored_with(lack));
        }
        harness::on_a_large_stack(move || {
            let runtime = harness::runtime()?;
            let result = runtime.block_on(async {
                let world = EmbeddedWorld::start().await?;
                (scenario.play)(Arc::new(world)).await
            });
            runtime.shutdown_background();
            result
        })
        .map(|()| Completion::Completed)
    })
}
