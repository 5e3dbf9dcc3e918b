//! What the Helm chart renders, as it is committed in `charts/tests`: API servers take it, and its rights are enough.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::agent::{Agent, Setup};
use carrick_e2e_stage::rights;
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::Stage;
use carrick_e2e_stage::world::{AGENT, User, World};
use carrick_e2e_stage::{binary, fixtures};
use serde_json::{Value, json};

use super::init::{apply, documents};

/// Kinds that a bare API server does not have.
const ADDED: [&str; 2] = ["PrometheusRule", "ServiceMonitor"];

fn rendered(name: &str) -> anyhow::Result<Vec<Value>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/tests").join(name);
    documents(&std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?)
}

pub(super) async fn what_it_renders_is_accepted(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    for name in ["kcp-system", "elsewhere"] {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        apply(&stage, &stage.service, &namespace).await?;
    }
    let mut seen = Vec::new();
    for name in ["minimal.yaml", "reference.yaml", "full.yaml"] {
        for mut object in rendered(name)? {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            // What is a hook of helm is not installed.
            if ADDED.contains(&kind.as_str()) || object["metadata"]["annotations"].get("helm.sh/hook").is_some() {
                continue;
            }
            // The same names are in several files, and only one of each can be there at a time.
            let own = format!(
                "{}-{}",
                name.trim_end_matches(".yaml"),
                object["metadata"]["name"].as_str().unwrap_or_default()
            );
            if kind != "CustomResourceDefinition" {
                object["metadata"]["name"] = json!(own);
            }
            apply(&stage, &stage.service, &object).await.with_context(|| format!("{kind} of {name}"))?;
            seen.push(kind);
        }
    }
    for kind in ["ClusterRole", "RoleBinding", "Service", "ServiceAccount", "PodDisruptionBudget", "NetworkPolicy"] {
        ensure!(seen.iter().any(|it| it == kind), "{kind} is not among {seen:?}");
    }
    Ok(())
}

pub(super) async fn its_rights_are_enough_for_the_agent(world: Arc<dyn World>) -> anyhow::Result<()> {
    let stage = Stage::bare(world).await?;
    stage.install_crd(&fixtures::crd(&stage.group, "Bucket")).await?;
    stage.create_export().await?;
    stage.publish("Bucket", json!({ "related": [super::related::credentials()] })).await?;
    rights::grant(&stage, &stage.provider.client, &rights::kcp_rules(stage.export_name())).await?;
    // The chart's own objects, in the namespace, for the user and for the group of this stage.
    let (namespace, id) = (stage.agent_namespace(), &stage.id);
    for object in rendered("full.yaml")? {
        let text = object.to_string().replace("kcp-system", &namespace).replace("example.com", &stage.group);
        let mut object: Value = serde_json::from_str(&text.replace("demo-", &format!("demo-{id}-")))?;
        if object["apiVersion"] != "rbac.authorization.k8s.io/v1" {
            continue;
        }
        if let Some(subjects) = object["subjects"].as_array_mut() {
            *subjects = vec![json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": AGENT })];
        }
        apply(&stage, &stage.service, &object).await?;
    }
    rights::are_known(&stage).await?;
    let agent = Agent::start(
        &stage,
        Setup { user: User::Agent, leader_election: true, probes: true, exposed: true, ..Setup::default() },
    )?;
    stage.bind(&stage.team_a).await?;
    let team = &stage.team_a;
    stage.order(team, "bucket", json!({ "size": 1 })).await?;
    let copy = stage.copy_is("the order is placed", team, "bucket", |_| true).await?;
    stage.operator_reports(&copy, json!({ "url": "here" })).await?;
    stage.source_is("the status returns", team, "bucket", |order| order["status"]["url"] == "here").await?;
    what_helm_test_runs_finds_nothing_wrong(&stage).await?;
    stage.cancel(team, "bucket").await?;
    stage.gone("the order is gone", (&team.client, &stage.buckets(), Some("default"), "bucket")).await?;
    super::dashboard::the_viewers_role_lets_in(
        &stage,
        &agent,
        &format!("demo-{id}-api-syncagent:{namespace}:dashboard-viewer"),
    )
    .await?;
    let refused: Vec<_> = agent.log().into_iter().filter(|line| line.contains("forbidden")).collect();
    ensure!(refused.is_empty(), "what the agent may not do: {refused:#?}");
    agent.stop().await
}

/// The doctor, with the arguments of the pod and the rights of the agent.
async fn what_helm_test_runs_finds_nothing_wrong(stage: &Stage) -> anyhow::Result<()> {
    let pod = rendered("full.yaml")?.into_iter().find(|object| object["kind"] == "Pod").context("there is no Pod")?;
    ensure!(pod["metadata"]["annotations"]["helm.sh/hook"] == "test", "{pod}");
    let folder = Scratch::new()?;
    let service = folder.write("service.kubeconfig", &stage.world.service_kubeconfig(User::Agent))?;
    folder.write("kubeconfig", &stage.world.kcp_kubeconfig(User::Agent, &stage.provider.path))?;
    let place = folder.path().display().to_string();
    let arguments = pod["spec"]["containers"][0]["args"].as_array().context("it has no arguments")?;
    let own = |argument: &str| {
        let own = argument.replace("kcp-system", &stage.agent_namespace()).replace("example.com", stage.export_name());
        own.replace("/etc/api-syncagent/kcp", &place)
    };
    let arguments: Vec<String> = arguments.iter().filter_map(Value::as_str).map(own).collect();
    let carrick = binary::carrick().await?;
    // The agent has just served its first order, and may still be about to report how it is doing.
    stage
        .eventually("helm test finds nothing wrong", async || {
            let output = tokio::process::Command::new(&carrick)
                .args(&arguments)
                // The stage shares its service cluster, and its agent, with others.
                .arg(format!("--published-resource-selector={}", stage.selector()))
                .arg(format!("--agent-name={}", stage.agent_name()))
                .env("KUBECONFIG", &service)
                .kill_on_drop(true)
                .output()
                .await?;
            let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success() && told.contains("green"), "helm test would fail: {told}");
            Ok(())
        })
        .await
}

/// The reference chart calls an agent after its release, and copies bear that name.
pub(super) async fn an_agent_that_runs_keeps_its_name(world: Arc<dyn World>) -> anyhow::Result<()> {
    let Some(helm) = binary::find("helm") else {
        println!("helm is not installed: nothing is tried");
        return Ok(());
    };
    let stage = Stage::bare(world.clone()).await?;
    let folder = Scratch::new()?;
    folder.write("kubeconfig", &world.service_kubeconfig(User::Admin))?;
    let (namespace, chart) =
        (stage.agent_namespace(), concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/api-syncagent"));
    let render = async || {
        let output = tokio::process::Command::new(&helm)
            .args([
                "template",
                "storage",
                chart,
                "--dry-run=server",
                "--kube-version=1.34.0",
                "--namespace",
                &namespace,
            ])
            .args(["--set", "apiExportEndpointSliceName=example.com,kcpKubeconfig=k,crds.enabled=false"])
            .envs([("KUBECONFIG", folder.path().join("kubeconfig")), ("HOME", folder.path().to_owned())])
            .kill_on_drop(true)
            .output()
            .await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let objects = documents(&String::from_utf8_lossy(&output.stdout))?;
        objects.into_iter().find(|it| it["kind"] == "Deployment").context("there is no Deployment")
    };
    let fresh = render().await?;
    ensure!(!fresh.to_string().contains("AGENT_NAME"), "the default is not left to the agent: {fresh}");
    let mut running = fresh.clone();
    if let Some(env) = running["spec"]["template"]["spec"]["containers"][0]["env"].as_array_mut() {
        env.push(json!({ "name": "AGENT_NAME", "value": "storage" }));
    }
    let deployments = carrick_client::Resource::namespaced("apps", "v1", "Deployment", "deployments");
    stage.service.create(&deployments, Some(&namespace), &running).await?;
    let kept = render().await?;
    let container = &kept["spec"]["template"]["spec"]["containers"][0];
    let env = container["env"].as_array().cloned().unwrap_or_default();
    ensure!(env.iter().any(|one| one["name"] == "AGENT_NAME" && one["value"] == "storage"), "{kept}");
    ensure!(container["args"].to_string().contains("--agent-name=$(AGENT_NAME)"), "{kept}");
    ensure!(kept["spec"]["selector"] == fresh["spec"]["selector"], "a selector cannot change");
    Ok(())
}

/// A chart with a CRD and an object of it, as providers of operators ship them.
const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: "gauges.PREFIX"}
spec:
  group: PREFIX
  scope: Namespaced
  names: {kind: Gauge, listKind: GaugeList, plural: gauges, singular: gauge}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {level: {type: integer}}}}}}
"#;
const GAUGE: &str = r#"
apiVersion: PREFIX/v1
kind: Gauge
metadata: {name: "{{ .Release.Name }}"}
spec: {level: {{ .Values.level }}}
"#;

pub(super) async fn helm_installs_upgrades_and_removes_a_chart_with_crds(world: Arc<dyn World>) -> anyhow::Result<()> {
    let Some(helm) = binary::find("helm") else {
        println!("helm is not installed: nothing is tried");
        return Ok(());
    };
    let stage = Stage::bare(world.clone()).await?;
    let folder = Scratch::new()?;
    let own = |text: &str| text.replace("PREFIX", &stage.group);
    for part in ["chart/crds", "chart/templates"] {
        std::fs::create_dir_all(folder.path().join(part))?;
    }
    folder.write("chart/Chart.yaml", "apiVersion: v2\nname: gauges\nversion: 1.0.0\n")?;
    folder.write("chart/values.yaml", "level: 1\n")?;
    folder.write("chart/crds/gauges.yaml", &own(CRD))?;
    folder.write("chart/templates/gauge.yaml", &own(GAUGE))?;
    folder.write("kubeconfig", &world.service_kubeconfig(User::Admin))?;
    let run = async |arguments: &[&str]| {
        let output = tokio::process::Command::new(&helm)
            .args(arguments)
            .current_dir(folder.path())
            .envs([("KUBECONFIG", folder.path().join("kubeconfig")), ("HOME", folder.path().to_owned())])
            .kill_on_drop(true)
            .output()
            .await?;
        let (told, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "helm {}: {told}{error}", arguments.join(" "));
        anyhow::Ok(told.into_owned())
    };
    let namespace = format!("{}-helm", stage.id);
    let here = ["--namespace", namespace.as_str()];
    run(&[&["install", "first", "chart", "--create-namespace", "--wait", "--timeout", "60s"], &here[..]].concat())
        .await?;
    let gauges = carrick_client::discovery::find_kind(&stage.service, &own("PREFIX"), "Gauge").await?;
    let gauges = gauges.and_then(|found| found.resource("v1")).context("the CRD is not served")?;
    let level = async || {
        let gauge = stage.service.get(&gauges, Some(&namespace), "first").await?;
        anyhow::Ok(gauge.map(|gauge| gauge["spec"]["level"].clone()))
    };
    ensure!(level().await? == Some(json!(1)), "the object of the chart is not there");
    run(&[&["upgrade", "first", "chart", "--set", "level=2", "--wait"], &here[..]].concat()).await?;
    ensure!(level().await? == Some(json!(2)), "the upgrade has changed nothing");
    let releases: Value = serde_json::from_str(&run(&[&["list", "--output", "json"], &here[..]].concat()).await?)?;
    ensure!(releases[0]["status"] == "deployed" && releases[0]["revision"] == "2", "helm lists {releases}");
    run(&[&["rollback", "first", "1", "--wait"], &here[..]].concat()).await?;
    ensure!(level().await? == Some(json!(1)), "the rollback has changed nothing");
    run(&[&["uninstall", "first", "--wait"], &here[..]].concat()).await?;
    ensure!(level().await?.is_none(), "the object is still there");
    Ok(())
}
