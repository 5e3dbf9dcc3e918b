//! `carrick doctor`, run as a user would: one thing is broken, and it says which.

use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_client::DeleteOptions;
use carrick_e2e_stage::rights::{grant, kcp_rules, rule};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::Stage;
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{binary, fixtures, kinds, ports};
use carrick_kcp::kinds::API_BINDING;
use serde_json::{Value, json};
use tokio::process::Command;

use super::related::credentials;

/// What the doctor is told.
pub(super) struct Flags {
    service: String,
    kcp: String,
    slice: String,
    namespace: String,
    agent_name: String,
}

impl Flags {
    pub(super) fn of(stage: &Stage, user: User) -> Self {
        Self {
            service: stage.world.service_kubeconfig(user),
            kcp: stage.world.kcp_kubeconfig(user, &stage.provider.path),
            slice: stage.export_name().to_owned(),
            namespace: stage.agent_namespace(),
            agent_name: stage.agent_name(),
        }
    }
}

/// What the doctor said.
pub(super) struct Told {
    code: Option<i32>,
    report: Value,
}

impl Told {
    /// Findings of that severity, `check: text` each.
    pub(super) fn of(&self, severity: &str) -> Vec<String> {
        self.findings(severity).map(|it| format!("{}: {}", shown(&it["check"]), shown(&it["text"]))).collect()
    }

    /// Texts of findings with that id.
    pub(super) fn with_id(&self, id: &str) -> Vec<&str> {
        let all = self.report["findings"].as_array().into_iter().flatten();
        all.filter(|it| it["id"] == id).map(|it| shown(&it["text"])).collect()
    }

    /// Lines of all fixes of findings of that severity.
    pub(super) fn fixes(&self, severity: &str) -> Vec<String> {
        let fixes = self.findings(severity).flat_map(|it| it["fix"].as_array().into_iter().flatten());
        fixes.map(|line| shown(line).to_owned()).collect()
    }

    fn findings(&self, severity: &str) -> impl Iterator<Item = &Value> {
        let all = self.report["findings"].as_array().into_iter().flatten();
        all.filter(move |it| it["severity"] == severity)
    }
}

fn shown(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) async fn ask(stage: &Stage, flags: &Flags) -> anyhow::Result<Told> {
    let folder = Scratch::new()?;
    let service = folder.write("service.kubeconfig", &flags.service)?;
    let kcp = folder.write("kcp.kubeconfig", &flags.kcp)?;
    let output = Command::new(binary::carrick().await?)
        .args(["doctor", "--output=json", "--timeout=30"])
        .arg(format!("--kubeconfig={}", service.display()))
        .arg(format!("--kcp-kubeconfig={}", kcp.display()))
        .arg(format!("--apiexportendpointslice-ref={}", flags.slice))
        .arg(format!("--namespace={}", flags.namespace))
        .arg(format!("--agent-name={}", flags.agent_name))
        .arg(format!("--published-resource-selector={}", stage.selector()))
        .output()
        .await?;
    let report = serde_json::from_slice(&output.stdout);
    let report = report.with_context(|| format!("no report: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok(Told { code: output.status.code(), report })
}

pub(super) async fn a_healthy_agent_is_green(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let agent = stage.start_agent()?;
    stage.order(&stage.team_a, "bucket", json!({ "size": 1 })).await?;
    stage.copy_is("the copy is placed", &stage.team_a, "bucket", |_| true).await?;
    stage
        .eventually("the doctor is content", async || {
            let told = ask(&stage, &Flags::of(&stage, User::Admin)).await?;
            ensure!(told.code == Some(0) && told.report["severity"] == "green", "{:#}", told.report);
            let green = told.of("green");
            for wanted in [
                "Service cluster: ",
                "kcp: ",
                "Clocks: ",
                "Endpoint slice: ",
                "Export: ",
                "Endpoints: ",
                "Rights on the service cluster: ",
                "Rights in kcp: ",
                "Published resources: ",
                "Names of copies: ",
                "Consumers: 2 of 2 bindings",
                "Agents: the export is kept by this agent",
            ] {
                ensure!(green.iter().any(|line| line.starts_with(wanted)), "{wanted} is not in {green:#?}");
            }
            Ok(())
        })
        .await?;
    agent.stop().await
}

pub(super) async fn wrong_ways_to_the_servers_are_told(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let good = || Flags::of(&stage, User::Admin);
    let [nobody] = ports::free()?;
    let nobody = format!("127.0.0.1:{nobody}");
    let edit = |text: &str, change: fn(&mut Value, &str), with: &str| -> anyhow::Result<String> {
        let mut config: Value = serde_json::from_str(text)?;
        change(&mut config, with);
        Ok(config.to_string())
    };
    let server = |config: &mut Value, with: &str| config["clusters"][0]["cluster"]["server"] = json!(with);
    let token = |config: &mut Value, with: &str| config["users"][0]["user"]["token"] = json!(with);
    let authority =
        |config: &mut Value, with: &str| config["clusters"][0]["cluster"]["certificate-authority-data"] = json!(with);
    let other_authority = other_authority()?;
    let away = stage.world.kcp().url().split("/clusters/").next().unwrap_or_default().to_owned();

    let cases = [
        (Flags { slice: "nothing".to_owned(), ..good() }, "Endpoint slice: there is no APIExportEndpointSlice nothing"),
        (Flags { kcp: edit(&good().kcp, server, &away)?, ..good() }, "kcp: "),
        (Flags { kcp: edit(&good().kcp, server, &format!("https://{nobody}/clusters/root"))?, ..good() }, "kcp: "),
        (
            Flags { service: edit(&good().service, server, &format!("https://{nobody}"))?, ..good() },
            "Service cluster: ",
        ),
        (Flags { kcp: edit(&good().kcp, token, "wrong")?, ..good() }, "kcp: "),
        (Flags { service: edit(&good().service, authority, &other_authority)?, ..good() }, "Service cluster: "),
        (Flags { service: "[".to_owned(), ..good() }, "Service cluster: "),
        (
            Flags { namespace: "nowhere".to_owned(), ..good() },
            "Installation: the agent's namespace nowhere does not exist",
        ),
    ];
    let fixes = [
        format!("--apiexportendpointslice-ref {}", stage.export_name()),
        "config set-cluster".to_owned(),
        format!("curl -k https://{nobody}/version"),
        format!("curl -k https://{nobody}/version"),
        "renew the token".to_owned(),
        "openssl s_client".to_owned(),
        "pass a kubeconfig".to_owned(),
        "create namespace nowhere".to_owned(),
    ];
    for ((flags, wanted), fix) in cases.iter().zip(fixes) {
        let told = ask(&stage, flags).await?;
        let red = told.of("red");
        ensure!(told.code == Some(2), "{:#}", told.report);
        ensure!(red.len() == 1 && red[0].starts_with(wanted), "{wanted}: {red:#?}");
        ensure!(told.fixes("red").iter().any(|line| line.contains(&fix)), "{fix}: {:#?}", told.fixes("red"));
    }
    Ok(())
}

/// A certificate that signed nothing here.
fn other_authority() -> anyhow::Result<String> {
    let key = rcgen::KeyPair::generate()?;
    let certificate = rcgen::CertificateParams::new(vec!["elsewhere".to_owned()])?.self_signed(&key)?;
    Ok(data_encoding::BASE64.encode(certificate.pem().as_bytes()))
}

pub(super) async fn what_consumers_and_rules_lack_is_told(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    let told = ask(&stage, &Flags::of(&stage, User::Admin)).await?;
    let amber = told.of("amber");
    ensure!(told.code == Some(1), "{:#}", told.report);
    ensure!(amber.iter().any(|it| it.starts_with("Endpoints: the slice has no endpoints")), "{amber:#?}");
    ensure!(amber.iter().any(|it| it.starts_with("Published resources: nothing is published")), "{amber:#?}");

    let naming = json!({ "name": "{{ .Object.metadata.name }}", "namespace": "all" });
    stage.publish("Bucket", json!({ "naming": naming, "related": [credentials()] })).await?;
    stage.publish("Nothing", json!({})).await?;
    stage.bind(&stage.team_a).await?;
    let agent = stage.start_agent()?;
    stage
        .eventually("claims that are not accepted are told", async || {
            let binding =
                json!({ "spec": { "permissionClaims": [{ "resource": "events", "all": true, "state": "Accepted" }] } });
            let bindings = kinds::kcp(&API_BINDING);
            stage.team_a.client.merge_patch(&bindings, None, stage.export_name(), &binding).await?;
            let told =
                ask(&stage, &Flags { agent_name: "another".to_owned(), ..Flags::of(&stage, User::Admin) }).await?;
            let (red, amber) = (told.of("red"), told.of("amber"));
            ensure!(told.code == Some(2), "{:#}", told.report);
            ensure!(red.len() == 2 && red[0].contains("could not find Nothing."), "{red:#?}");
            let rival = format!("Agents: agent {} at ", stage.agent_name());
            ensure!(red[1].starts_with(&rival) && red[1].ends_with("this agent stays out of it"), "{red:#?}");
            for wanted in ["Names of copies: ", "Consumers: APIBinding "] {
                ensure!(amber.iter().any(|it| it.starts_with(wanted)), "{wanted}: {amber:#?}");
            }
            let unaccepted = "does not accept namespaces, secrets";
            ensure!(amber.iter().any(|it| it.contains(unaccepted)), "{amber:#?}");
            Ok(())
        })
        .await?;
    agent.stop().await
}

pub(super) async fn missing_rights_are_told_and_the_fix_grants_them(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::set(world).await?;
    let rules = json!([
        rule(&["apiextensions.k8s.io"], &["customresourcedefinitions"], "get list watch"),
        rule(&["syncagent.kcp.io"], &["publishedresources"], "get list watch"),
        rule(&["syncagent.kcp.io"], &["publishedresources/status"], "get update patch"),
        rule(&[""], &["namespaces"], "get list watch create"),
        rule(&[""], &["events"], "create update patch"),
        rule(&[""], &["secrets"], "get list watch create update delete"),
        rule(&["coordination.k8s.io"], &["leases"], "get create update"),
        rule(&[&stage.group], &["buckets"], "get list watch create update"),
    ]);
    grant(&stage, &stage.service, &rules).await?;
    grant(&stage, &stage.provider.client, &kcp_rules(stage.export_name())).await?;
    let flags = Flags::of(&stage, User::Agent);
    let mut fixes = Vec::new();
    stage
        .eventually("exactly the missing verb is told", async || {
            let told = ask(&stage, &flags).await?;
            let red = told.of("red");
            let wanted = format!("may not delete buckets.{}; needed for copies", stage.group);
            ensure!(red.len() == 1 && red[0].contains(&wanted), "{red:#?}");
            // Without this one whole objects are written.
            let amber = told.of("amber");
            let patch = format!("may not patch buckets.{}; needed to change single fields of copies", stage.group);
            ensure!(amber.iter().any(|line| line.contains(&patch)), "{amber:#?}");
            fixes = told.fixes("red");
            Ok(())
        })
        .await?;

    if Command::new("kubectl").args(["version", "--client"]).output().await.is_err() {
        eprintln!("the fix is not tried: there is no kubectl");
        return Ok(());
    }
    let folder = Scratch::new()?;
    let admin = folder.write("admin.kubeconfig", &stage.world.service_kubeconfig(User::Admin))?;
    // Pasted as it is by somebody who may: it does not name the kubeconfig that lacks the right.
    for line in fixes.iter().filter(|line| line.starts_with("kubectl ")) {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env("HOME", folder.path()).env("KUBECONFIG", &admin);
        let output = shell.output().await?;
        ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    stage
        .eventually("nothing is red any more", async || {
            let told = ask(&stage, &flags).await?;
            ensure!(told.of("red").is_empty(), "{:#}", told.report);
            Ok(())
        })
        .await?;
    let role = fixes.iter().find_map(|line| line.strip_prefix("kubectl create clusterrole ")?.split(' ').next());
    let role = role.with_context(|| format!("no role is created by {fixes:#?}"))?;
    let everything = DeleteOptions::default();
    stage.service.delete(&kinds::cluster_role_bindings(), None, role, &everything).await?;
    stage.service.delete(&kinds::cluster_roles(), None, role, &everything).await?;
    Ok(())
}
