//! What must happen, in order.

use anyhow::{Context, ensure};
use carrick_client::{Client, DeleteOptions, ListOptions};
use carrick_kcp::kinds::{API_EXPORT_ENDPOINT_SLICE, WORKSPACE};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::manifests::{
    self, ACCEPT, ACCEPT_EXPORT, EXPORT, ORDER, PLATFORM_PATH, STAGING_PATH, accept_apis, binding, bindings,
    certificates, exports, signing_requests,
};
use super::small::Assignment;
use super::stage::{Stage, TEAM_PATH};
use crate::demo::manifests::{crds, published_resources, secrets};
use crate::ui::{Done, Failed, Observed, Step};
use crate::workspaces;

/// What a provider's workspace claims of the platform's consumers: nothing.
const NO_CLAIMS: &[Value] = &[];

impl Stage {
    /// Makes the workspaces, and lets the platform define its API.
    pub async fn define(&self) -> Result<(), Failed> {
        let step =
            Step::new("defining the platform's API", "APIExport certificates in root:platform, without a provider");
        self.ui
            .step(step, async |seen| {
                for path in [STAGING_PATH, self.providers[0].path, self.providers[1].path, TEAM_PATH] {
                    seen.note(format_args!("workspace {path} is not ready"));
                    workspaces::ensure(&self.admin, path).await?;
                }
                let platform = self.admin.at_path(&format!("/clusters/{PLATFORM_PATH}"));
                manifests::create(&platform, manifests::PLATFORM).await?;
                self.until(seen, async || {
                    for export in [EXPORT, ACCEPT_EXPORT] {
                        let export =
                            platform.get(&exports(), None, export).await?.context("the export is not there")?;
                        ensure!(export["status"]["identityHash"].is_string(), "the export has no identity yet");
                    }
                    Ok(())
                })
                .await?;
                Ok(Done::new("kcp: the platform defines Certificates of platform.example, and serves none itself"))
            })
            .await
    }

    /// Lets a provider serve the platform's API with a kind of its own.
    pub async fn implement(&mut self, number: usize) -> Result<(), Failed> {
        let (name, suffix) = (self.providers[number].name, self.providers[number].suffix);
        let step = Step::new(
            format!("publishing the platform's API at {name}"),
            "its rules work for generated orders, its export serves the API, its agent keeps an AcceptAPI",
        );
        let ui = self.ui.clone();
        ui.step(step, async |seen| {
            let provider = &self.providers[number];
            manifests::create_one(&provider.workspace, &own_export()).await?;
            self.until(seen, async || existing(&provider.workspace, &API_EXPORT_ENDPOINT_SLICE.into(), EXPORT).await)
                .await?;
            self.bind(seen, &provider.workspace, ACCEPT_EXPORT).await?;
            manifests::create(&provider.cluster, manifests::PROVIDER).await?;
            let crd = carrick_syncagent::api::crd();
            manifests::create_one(&provider.cluster, &crd).await?;
            for name in ["signingrequests.ca.example", crd["metadata"]["name"].as_str().unwrap_or_default()] {
                self.until(seen, async || holds(&existing(&provider.cluster, &crds(), name).await?, "Established"))
                    .await?;
            }
            manifests::create_one(&provider.cluster, &manifests::published_resource(suffix)?).await?;
            self.run_provider(number)?;
            let provider = &self.providers[number];
            self.until(seen, async || {
                let published = existing(&provider.cluster, &published_resources(), "certificates").await?;
                for wanted in ["RulesPlausible", "ExportUpdated", "AcceptAPIKept"] {
                    holds(&published, wanted)?;
                }
                let accept = existing(&provider.workspace, &accept_apis(), ACCEPT).await?;
                let kept = &accept["spec"]["filters"][0]["suffix"];
                ensure!(*kept == suffix, "the AcceptAPI takes {kept}");
                Ok(())
            })
            .await?;
            Ok(Done::new(format!("{name} serves it with its own SigningRequests, and takes *{suffix}")).details([
                "spec.implements: the platform's schema, two steps that make a SigningRequest of a Certificate",
            ]))
        })
        .await
    }

    /// Orders a certificate, which the broker brings to a provider.
    pub async fn order(&mut self) -> Result<(), Failed> {
        let fqdn = format!("web{}", self.providers[0].suffix);
        let step =
            Step::new(format!("ordering a Certificate for {fqdn}"), "internal-ca serves it, signed and available");
        self.run_broker();
        self.ui
            .step(step, async |seen| {
                self.bind(seen, &self.team, EXPORT).await?;
                // A kind may take a moment to be served after its binding is Bound.
                self.until(seen, async || manifests::create_one(&self.team, &manifests::order(&fqdn)).await).await?;
                self.until(seen, async || self.served_by(0, &fqdn).await).await?;
                Ok(Done::new("team-a has ordered Certificate default/web: the broker has chosen internal-ca").details(
                    [
                        format!("{STAGING_PATH}:staging-internal-ca: its copy, which the agent of internal-ca serves"),
                        format!("Secret default/web: {}", self.certificate().await?),
                    ],
                ))
            })
            .await
    }

    /// Changes the order so that only the other provider takes it; the consumer is never without.
    pub async fn move_it(&self) -> Result<(), Failed> {
        let fqdn = format!("web{}", self.providers[1].suffix);
        let step =
            Step::new(format!("setting spec.fqdn to {fqdn}"), "public-ca serves it; the consumer is never without");
        self.ui
            .step(step, async |seen| {
                let (namespace, name) = ORDER;
                let patch = json!({ "spec": { "fqdn": fqdn } });
                self.team.merge_patch(&certificates(), Some(namespace), name, &patch).await?;
                let mut reads = 0;
                loop {
                    reads += 1;
                    let order = existing_in(&self.team, &certificates(), name).await?;
                    let word = &order["status"]["status"];
                    ensure!(word == "Available", "the order says {word} while it is moved");
                    self.certificate().await.context("the Secret was gone while the order was moved")?;
                    match self.served_by(1, &fqdn).await {
                        Ok(()) => break,
                        Err(problem) => seen.note(format_args!("{problem:#}")),
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
                self.until(seen, async || {
                    let now = self.assignment();
                    ensure!(
                        now == Assignment { serving: Some(1), ..Assignment::default() },
                        "the broker is at {now:?}"
                    );
                    self.empty(0).await
                })
                .await?;
                Ok(Done::new("the broker has moved the order to public-ca: Available all the time").details([
                    format!("read {reads} times meanwhile; nothing is left at internal-ca"),
                    format!("Secret default/web: {}", self.certificate().await?),
                ]))
            })
            .await
    }

    /// Deletes the order.
    pub async fn delete(&self) -> Result<(), Failed> {
        let step =
            Step::new("deleting the Certificate", "nothing in the workspaces of team and broker, nothing at providers");
        self.ui
            .step(step, async |seen| {
                let (namespace, name) = ORDER;
                self.team.delete(&certificates(), Some(namespace), name, &DeleteOptions::default()).await?;
                let above = self.admin.at_path(&format!("/clusters/{STAGING_PATH}"));
                self.until(seen, async || {
                    for kind in [certificates(), secrets()] {
                        let left = self.team.get(&kind, Some(namespace), name).await?;
                        ensure!(left.is_none(), "{} {name} is still there", kind.kind);
                    }
                    let staging = above.list(&WORKSPACE.into(), None, &ListOptions::default()).await?.len();
                    ensure!(staging == 0, "{staging} staging workspaces are still there");
                    self.empty(0).await?;
                    self.empty(1).await
                })
                .await?;
                Ok(Done::new("team-a has deleted its Certificate: nothing is left of it at either provider"))
            })
            .await
    }

    /// Binds an export of the platform.
    async fn bind(&self, seen: &Observed, workspace: &Client, export: &str) -> anyhow::Result<()> {
        manifests::create_one(workspace, &binding(PLATFORM_PATH, export, NO_CLAIMS)).await?;
        self.until(seen, async || {
            let bound = existing(workspace, &bindings(), export).await?;
            ensure!(bound["status"]["phase"] == "Bound", "APIBinding {export} is {}", bound["status"]["phase"]);
            Ok(())
        })
        .await
    }

    /// That a provider serves the order, and that the consumer has a certificate of it.
    async fn served_by(&self, number: usize, fqdn: &str) -> anyhow::Result<()> {
        let order = existing_in(&self.team, &certificates(), ORDER.1).await?;
        let word = &order["status"]["status"];
        ensure!(word == "Available", "the order says {word}");
        let (found, wanted) = (self.certificate().await?, format!("{fqdn} signed by {}", self.providers[number].name));
        ensure!(found == wanted, "the Secret says {found:?}");
        Ok(())
    }

    /// What the consumer has in her Secret.
    async fn certificate(&self) -> anyhow::Result<String> {
        let secret = existing_in(&self.team, &secrets(), ORDER.1).await?;
        let data = BASE64.decode(secret["data"]["tls.crt"].as_str().unwrap_or_default().as_bytes());
        Ok(String::from_utf8_lossy(&data.context("the certificate is not base64")?).into_owned())
    }

    /// That a provider holds nothing of any order.
    async fn empty(&self, number: usize) -> anyhow::Result<()> {
        let provider = &self.providers[number];
        let left = provider.cluster.list(&signing_requests(), None, &ListOptions::default()).await?.len();
        ensure!(left == 0, "{left} SigningRequests are left at {}", provider.name);
        Ok(())
    }
}

/// The export of a provider, which its agent fills.
fn own_export() -> Value {
    let kind = exports();
    json!({ "apiVersion": kind.api_version(), "kind": &*kind.kind, "metadata": { "name": EXPORT }, "spec": {} })
}

/// A cluster-wide object that should exist.
async fn existing(client: &Client, kind: &carrick_client::Resource, name: &str) -> anyhow::Result<Value> {
    let found = client.get(kind, None, name).await?;
    found.with_context(|| format!("{} {name} does not exist at {}", kind.kind, client.url()))
}

/// An object of the consumer that should exist.
async fn existing_in(client: &Client, kind: &carrick_client::Resource, name: &str) -> anyhow::Result<Value> {
    let found = client.get(kind, Some(ORDER.0), name).await?;
    found.with_context(|| format!("{} {name} does not exist at {}", kind.kind, client.url()))
}

/// That a condition holds; its message if it does not.
fn holds(object: &Value, name: &str) -> anyhow::Result<()> {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let condition = conditions.find(|it| it["type"] == name).with_context(|| format!("no condition {name} yet"))?;
    ensure!(condition["status"] == "True", "condition {name}: {}", condition["message"]);
    Ok(())
}
