//! Agents that know kcp by another address than the one it gives away.

use std::sync::Arc;

use anyhow::ensure;
use carrick_e2e_stage::binary::{self, Binary};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::world::World;
use carrick_kcp::kinds::API_EXPORT_ENDPOINT_SLICE;
use serde_json::json;
use tokio::process::Command;

use super::providers::{Provider, direct, says};

/// kcp gives away the address of its cable, which is cut here: nothing gets there by that address.
pub(super) async fn an_agent_works_by_another_address_where_that_of_the_slice_leads_nowhere(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let (near, direct) = (world.kcp_cable().near().to_string(), direct(&*world));
    let provider = Provider::prepare(world, |kubeconfig| kubeconfig.replace(&near, &direct)).await?;
    let (stage, team) = (&provider.stage, &provider.stage.team_a);
    stage.world.kcp_cable().cut().await?;
    let given = format!("{near}={direct}");
    let flag = ["--apiexport-hostport-override", &given];

    let values = provider.folder.path().join("values.yaml").display().to_string();
    let told = provider.works(&[&flag[..], &["--values", &values]].concat()).await?;
    ensure!(told.contains("0 red"), "{told}");
    // Before somebody has bound the export, there is no address.
    stage.bind(team).await?;
    let at = (&stage.provider.client, &kinds::kcp(&API_EXPORT_ENDPOINT_SLICE), None, stage.export_name());
    stage.object("the slice has an address", at, |slice| slice["status"].to_string().contains(&near)).await?;
    let told = provider.works(&flag).await?;
    ensure!(told.contains("0 red"), "{told}");
    let values: serde_json::Value = serde_saphyr::from_str(&std::fs::read_to_string(values)?)?;
    ensure!(values["apiExportHostPortOverrides"] == json!([given]), "{values}");
    let (works, told) = provider.run(&[]).await?;
    ensure!(!works && told.contains(&near), "without the flag it would work: {told}");

    let mounted = provider.folder.write("mounted", &provider.held().await?.kubeconfig)?;
    let service = provider.service_account().await?;
    let logins = [format!("--kubeconfig={}", service.display()), format!("--kcp-kubeconfig={}", mounted.display())];
    let agent = logins.iter().fold(Binary::build(stage).await?, |agent, login| agent.and(login));
    let agent = agent.and(&format!("{}={}", flag[0], flag[1])).start()?;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the order is placed", team, "bucket", |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |order| order["status"]["url"] == "here").await?;

    let agents = [
        format!("--namespace={}", stage.agent_namespace()),
        format!("--agent-name={}", stage.agent_name()),
        format!("--apiexportendpointslice-ref={}", stage.export_name()),
        format!("--published-resource-selector={}", stage.selector()),
    ];
    let ask = async |what: &[&str], more: &[&str]| -> anyhow::Result<(Option<i32>, String)> {
        let mut command = Command::new(binary::carrick().await?);
        let output = command.args(what).args(&agents).args(&logins).args(more).output().await?;
        let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        Ok((output.status.code(), told))
    };
    let (code, told) = ask(&["doctor", "--fail-on", "red"], &flag).await?;
    ensure!(code == Some(0) && told.contains("Endpoints"), "{code:?} {told}");
    let (code, told) = ask(&["doctor", "--fail-on", "red"], &[]).await?;
    ensure!(code == Some(2) && told.contains(&near), "{code:?} {told}");
    let explain = ["explain", "--timeout", "10"];
    let (code, told) = ask(&explain, &flag).await?;
    ensure!(code == Some(0) && told.contains("default/bucket"), "{code:?} {told}");
    let (code, told) = ask(&explain, &[]).await?;
    ensure!(code != Some(0) && !told.contains("default/bucket"), "{code:?} {told}");

    // Who has bound the export is asked at that address, too.
    let (works, told) = provider.run(&[&flag[..], &["--undo"]].concat()).await?;
    ensure!(!works && says(&told, &format!("{} in {}", stage.export_name(), team.path)), "{told}");
    agent.terminate().await?;
    stage.world.kcp_cable().mend().await?;
    provider.works(&["--undo", "--force", "--delete-state", stage.export_name()]).await?;
    Ok(())
}
