//! What `carrick` does for a provider of somebody else's API.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use carrick_e2e_stage::scratch::Scratch;
use carrick_e2e_stage::stage::{Stage, Workspace, shown};
use carrick_e2e_stage::world::{User, World};
use carrick_e2e_stage::{binary, fixtures, kinds};
use serde_json::{Value, json};
use tokio::process::Command;

use super::platform::{EXPORT, export_of, group, new_schema};
use crate::init::documents;

/// The API of the platform.
fn storage(more: &Value) -> Value {
    let text = json!({ "type": "string" });
    let mut spec = json!({ "gigabytes": { "type": "integer", "minimum": 1 }, "region": text });
    if let (Some(fields), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        fields.extend(more.clone());
    }
    json!({ "type": "object", "description": "Room for files.", "properties": {
        "spec": { "type": "object", "required": ["gigabytes"], "properties": spec },
        "status": { "type": "object", "properties": { "status": text, "url": text } },
    } })
}

struct Provider {
    stage: Stage,
    platform: Workspace,
    folder: Scratch,
    /// Kubeconfigs of the service cluster, of the organization and of the provider's workspace.
    logins: [PathBuf; 3],
}

impl Provider {
    async fn set(world: Arc<dyn World>) -> anyhow::Result<Self> {
        let stage = Stage::bare(world).await?;
        let platform = stage.team("platform").await?;
        let mut crd = fixtures::crd(&stage.group, "Bucket");
        let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec["required"] = json!(["size"]);
        spec["properties"]["size"]["minimum"] = json!(1024);
        stage.install_crd(&crd).await?;
        export_of(&stage, &platform, &[("v1", "Storage", "storages", storage(&json!({})))]).await?;
        let folder = Scratch::new()?;
        let org = stage.provider.path.rsplit_once(':').context("no organization")?.0;
        let logins = [
            folder.write("service.kubeconfig", &stage.world.service_kubeconfig(User::Admin))?,
            folder.write("kcp.kubeconfig", &stage.world.kcp_kubeconfig(User::Admin, org))?,
            folder.write("provider.kubeconfig", &stage.world.kcp_kubeconfig(User::Admin, &stage.provider.path))?,
        ];
        Ok(Self { stage, platform, folder, logins })
    }

    fn reference(&self) -> String {
        format!("{}:{EXPORT}", self.platform.path)
    }

    /// Runs carrick with both logins; whether it succeeds, and what it says.
    async fn carrick(&self, command: &[&str], more: &[&str]) -> anyhow::Result<(bool, String)> {
        let output = Command::new(binary::carrick().await?)
            .args(command)
            .arg("--kubeconfig")
            .arg(&self.logins[0])
            .arg("--kcp-kubeconfig")
            .arg(&self.logins[1])
            .args(more)
            .output()
            .await?;
        let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        Ok((output.status.success(), told))
    }

    /// `carrick provider up` for the API.
    async fn up(&self, more: &[&str]) -> anyhow::Result<(bool, String)> {
        let (path, namespace) = (&self.stage.provider.path, self.stage.agent_namespace());
        let reference = self.reference();
        let flags = ["--workspace", path, "--namespace", &namespace, "--implements", &reference];
        self.carrick(&["provider", "up"], &[&flags, more].concat()).await
    }

    /// The steps of the provider, and nothing of the platform's API.
    fn steps(&self) -> anyhow::Result<String> {
        let pr = json!({
            "apiVersion": "syncagent.kcp.io/v1alpha1", "kind": "PublishedResource",
            "metadata": { "name": self.stage.published_name("Bucket") },
            "spec": {
                "resource": { "apiGroup": self.stage.group, "kind": "Bucket" },
                "implements": { "spec": [
                    { "cel": { "path": "spec.size", "expression": "other.spec.gigabytes * 1024" } },
                    { "move": { "from": "spec.region", "to": "spec.region" } },
                ] },
            },
        });
        Ok(self.folder.write("storages.yaml", &serde_saphyr::to_string(&pr)?)?.display().to_string())
    }
}

pub(crate) async fn a_first_draft_is_written_from_the_live_export(world: Arc<dyn World>) -> anyhow::Result<()> {
    let provider = Provider::set(world).await?;
    let (stage, reference) = (&provider.stage, provider.reference());
    let kind = format!("{}/Bucket", stage.group);
    let out = provider.folder.path().join("offer");
    let shown_out = out.display().to_string();
    let flags = ["--from-cluster", &kind, "--implements", &reference, "--out", &shown_out];
    let (good, told) = provider.carrick(&["init"], &flags).await?;
    ensure!(good && told.contains("are a first draft"), "{told}");

    let text = std::fs::read_to_string(out.join("service-cluster/3-published-resource.yaml"))?;
    let pr: Value = documents(&text)?.pop().context("nothing was written")?;
    let implements = &pr["spec"]["implements"];
    let version = &implements["versions"][0];
    ensure!(version["schema"]["openAPIV3Schema"] == storage(&json!({})), "{text}");
    ensure!(implements["from"]["path"] == provider.platform.path.as_str(), "{text}");
    let steps = json!([
        { "move": { "from": "spec.region", "to": "spec.region" } },
        { "cel": { "path": "spec.size", "expression": "1024" } },
    ]);
    ensure!(implements["spec"] == steps && text.contains("No step reads spec.gigabytes of orders yet"), "{text}");
    let order = std::fs::read_to_string(out.join("consumer-workspace/2-order.yaml"))?;
    ensure!(order.contains("kind: Storage") && order.contains("gigabytes: 1"), "{order}");

    // What would not work is not applied.
    let (good, told) = provider.up(&["--from-cluster", &kind]).await?;
    ensure!(!good && told.contains("Bucket requires spec.size, and a value for it was only guessed"), "{told}");
    let found = stage.service.get(&kinds::published_resources(), None, "buckets").await?;
    ensure!(found.is_none(), "{found:?}");

    let wrong = format!("{reference}/others.example.com");
    let (good, told) = provider.carrick(&["init"], &["--from-cluster", &kind, "--implements", &wrong]).await?;
    ensure!(!good && told.contains("has no others.example.com but storages."), "{told}");
    Ok(())
}

pub(crate) async fn a_provider_writes_steps_and_the_doctor_says_when_the_platforms_api_has_changed(
    world: Arc<dyn World>,
) -> anyhow::Result<()> {
    let provider = Provider::set(world).await?;
    let (stage, file) = (&provider.stage, provider.steps()?);
    let up = async || provider.up(&["--published-resource", &file]).await;
    let name = stage.published_name("Bucket");
    let at = (&stage.service, &kinds::published_resources(), None, name.as_str());

    let (good, told) = up().await?;
    ensure!(good && told.contains("0 red") && !told.contains("has changed"), "{told}");
    let first = stage.object("it is written", at, |pr| pr["spec"]["implements"]["from"]["digest"].is_string()).await?;
    let schema = |pr: &Value| pr["spec"]["implements"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    ensure!(schema(&first) == storage(&json!({})), "{}", shown(&first));
    let (good, told) = up().await?;
    ensure!(good && told.matches(", 0 of them new or changed").count() == 2, "{told}");

    // The platform changes its API: nothing happens until the provider takes it over.
    let more = json!({ "encrypted": { "type": "boolean" } });
    new_schema(stage, &provider.platform, ("v2", "Storage", "storages", storage(&more))).await?;
    let agents = format!("{}-syncagent", group(stage));
    let doctor = async || {
        let slice = group(stage);
        let namespace = stage.agent_namespace();
        let output = Command::new(binary::carrick().await?)
            .args([
                "doctor",
                "--apiexportendpointslice-ref",
                &slice,
                "--namespace",
                &namespace,
                "--agent-name",
                &agents,
                "-o",
                "json",
            ])
            .arg("--kubeconfig")
            .arg(&provider.logins[0])
            .arg("--kcp-kubeconfig")
            .arg(&provider.logins[2])
            .output()
            .await?;
        anyhow::Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let told = doctor().await?;
    ensure!(told.contains("platform-api-changed") && told.contains("the platform's API has changed"), "{told}");
    let (good, told) = up().await?;
    ensure!(good, "{told}");
    let second = stage.object("it is taken over", at, |pr| schema(pr) == storage(&more)).await?;
    ensure!(second["spec"]["implements"]["spec"] == first["spec"]["implements"]["spec"], "{}", shown(&second));
    let told = doctor().await?;
    ensure!(!told.contains("platform-api"), "{told}");
    Ok(())
}
