//! `carrick demo --broker`: one order of a platform's API, two providers, and a move from one to the other, in this process.
//!
//! ```text
//!  team-a               platform            broker                  providers
//!  Certificate web ───▶ defines the API ──▶ staging workspaces ──▶ internal-ca, public-ca: agent, SigningRequests
//!
//!  stage      servers, operators, agents, broker     small      the broker
//!  steps      what must happen, in order             manifests  the YAML files
//! ```

mod manifests;
mod small;
mod stage;
mod steps;

use std::time::Instant;

use crate::ui::{Failed, Ui};
use stage::Stage;

/// Plays it.
pub async fn play(ui: &Ui) -> Result<(), Failed> {
    let started = Instant::now();
    ui.line("carrick demo --broker: a platform defines Certificates, two providers serve them, one order moves");

    ui.heading("Three API servers in this process, and a platform with an API");
    let mut stage = Stage::open(ui.clone()).await?;
    stage.define().await?;

    ui.heading("Two providers serve it");
    stage.implement(0).await?;
    stage.implement(1).await?;

    ui.heading("A team orders one, and does not choose who serves it");
    stage.order().await?;

    ui.heading("The order changes, and only the other provider takes it now");
    stage.move_it().await?;

    ui.heading("The team cleans up");
    stage.delete().await?;
    stage.stop().await?;

    ui.heading(&format!("Done in {:.1} s. What just happened:", started.elapsed().as_secs_f64()));
    ui.line("  Each provider wrote one PublishedResource; its agent serves the platform's API and says what it takes.");
    ui.line("  The broker, a small one that plays Platform Mesh's here, copied the order to a provider and then to the other.");
    ui.line("  The team had one object and one Secret in its workspace, and saw no provider at all.");
    Ok(())
}
