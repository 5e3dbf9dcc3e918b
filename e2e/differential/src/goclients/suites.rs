//! Test suites of others, built from the modules they are published in and run unchanged.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use carrick_e2e_stage::harness;
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::world::EmbeddedWorld;
use libtest_mimic::Trial;
use tokio::process::Command;

use super::likekcp::Player;
use super::{Place, path_with};

/// How long a suite may take.
const PATIENCE: Duration = Duration::from_mins(10);

/// A package of controller-runtime with tests that need a server.
struct Suite {
    package: &'static str,
    /// Tests that are left out, as regular expressions over their full names; `docs/plane.md` says why.
    skip: &'static [&'static str],
}

/// All of them that hold on a plane.
const CONTROLLER_RUNTIME: [Suite; 7] = [
    Suite {
        package: "pkg/client",
        skip: &[
            // There is a ConfigMap in every namespace, as in every cluster with controllers.
            "ConsistentClient (typed|unstructured) write then read",
            // Workloads have no schema that says which fields can be applied.
            "ClientWithFieldValidation should return errors",
            // Not served.
            "approve CSRs",
            "apply the scale subresource",
        ],
    },
    // There is a ServiceAccount in every namespace, too.
    Suite { package: "pkg/cache", skip: &["Should list serviceaccounts and find exactly one"] },
    Suite { package: "pkg/manager", skip: &[] },
    Suite { package: "pkg/builder", skip: &[] },
    Suite { package: "pkg/controller", skip: &[] },
    Suite { package: "pkg/controller/controllerutil", skip: &[] },
    Suite { package: "pkg/internal/recorder", skip: &[] },
];

/// One trial for each suite.
pub(super) fn trials(programs: &Path) -> Vec<Trial> {
    let mut trials = Vec::new();
    for suite in CONTROLLER_RUNTIME {
        let programs = programs.to_owned();
        let name = suite.package.trim_start_matches("pkg/").replace('/', "_");
        trials.push(harness::trial(format!("goclients::suite_of_controller_runtime_{name}"), move || {
            harness::verdict(harness::runtime()?.block_on(on_a_service_cluster(&programs, &suite)))
        }));
    }
    for player in Player::ALL {
        let programs = programs.to_owned();
        trials.push(harness::trial(
            format!("goclients::suite_of_multicluster_provider_with_{}", player.name()),
            move || harness::verdict(harness::runtime()?.block_on(with_kcp(&programs, player))),
        ));
    }
    trials
}

/// envtest takes the server in KUBECONFIG instead of starting one.
async fn on_a_service_cluster(programs: &Path, suite: &Suite) -> anyhow::Result<()> {
    let world = EmbeddedWorld::start().await?;
    let home = Scratch::new()?;
    home.write("config", &Place::Service.kubeconfig(&world))?;
    let program = programs.join(format!("controller-runtime.{}", suite.package.replace('/', "-")));
    let mut command = Command::new(program);
    command.current_dir(programs.join("controller-runtime").join(suite.package));
    command.env("USE_EXISTING_CLUSTER", "true").env("KUBECONFIG", home.path().join("config"));
    // controller-runtime ends its namespaces itself, and fails now and then because a controller has been quicker.
    command.arg("-ginkgo.flake-attempts=4");
    if !suite.skip.is_empty() {
        command.arg(format!("-ginkgo.skip={}", suite.skip.join("|")));
    }
    finish(command).await
}

/// The multicluster provider starts the kcp that it finds, with certificates of its own.
async fn with_kcp(programs: &Path, player: Player) -> anyhow::Result<()> {
    let home = Scratch::new()?;
    let kcp = player.install(home.path()).await?;
    let mut command = Command::new(programs.join("multicluster-provider.test-e2e"));
    command.current_dir(programs.join("multicluster-provider/test/e2e"));
    command.env("TEST_ASSET_KCP", kcp).env("TEST_KCP_START_TIMEOUT", "4m").env("PATH", path_with(home.path())?);
    finish(command).await
}

async fn finish(mut command: Command) -> anyhow::Result<()> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, child.output()).await.context("it did not end")?;
    let output = output.context("cannot start the suite")?;
    let (said, more) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{said}\n{more}");
    if let Some(summary) = said.lines().rfind(|line| line.starts_with("Ran ") || line.contains(" Passed")) {
        println!("  {summary}");
    }
    Ok(())
}
