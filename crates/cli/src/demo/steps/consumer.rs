//! The consumers' part: bind, order, use, change.

use anyhow::{Context, ensure};
use carrick_client::ListOptions;
use carrick_kcp::apis::v1alpha1::{ApiBinding, BindingPhase};
use carrick_kcp::names::conditions::PERMISSION_CLAIMS_APPLIED;
use carrick_syncagent::api::{FINALIZER, OBJECT_STATE, REMOTE_CLUSTER};
use data_encoding::BASE64;
use serde_json::{Value, json};

use super::{Copy, existing, existing_kcp, require, text_at};
use crate::demo::endpoint::Credentials;
use crate::demo::fetch;
use crate::demo::manifests::{self, AGENT_NAMESPACE, BINDING, NAME, NAMESPACE, SECRET, http_bins, secrets};
use crate::demo::stage::{Stage, Team};
use crate::ui::{Done, Failed, Step};

const NEW_REGION: &str = "us-east";

impl Stage {
    /// Binds the export in both workspaces and accepts its claims.
    pub async fn bind(&self) -> Result<(), Failed> {
        let step =
            Step::new("binding the export", "APIBinding httpbins is Bound in both workspaces, with its claims applied");
        self.ui
            .step(step, async |seen| {
                for team in &self.teams {
                    manifests::create(&team.client, manifests::API_BINDING_YAML).await?;
                }
                for team in &self.teams {
                    self.until(seen, async || {
                        let ApiBinding { status, .. } = existing_kcp(&team.client, BINDING).await?;
                        let phase = &status.phase;
                        ensure!(
                            *phase == BindingPhase::Bound,
                            "APIBinding {BINDING} of {} is in phase {phase:?}",
                            team.name
                        );
                        require(&status.conditions, PERMISSION_CLAIMS_APPLIED)?;
                        let bound: Vec<_> = status.bound_resources.iter().map(|bound| &bound.resource).collect();
                        ensure!(bound == ["httpbins"], "the binding of {} brought {bound:?}", team.name);
                        Ok(())
                    })
                    .await?;
                }
                Ok(Done::new("team-a and team-b have bound the export and accepted its claims"))
            })
            .await
    }

    /// Orders an HttpBin of the same name in both workspaces.
    pub async fn order(&self) -> Result<(), Failed> {
        let step = Step::new("ordering", format!("both workspaces accept HttpBin {NAMESPACE}/{NAME}"));
        self.ui
            .step(step, async |seen| {
                for team in &self.teams {
                    // A kind may take a moment to be served after its binding is Bound.
                    self.until(seen, async || manifests::create(&team.client, manifests::HTTP_BIN).await).await?;
                }
                Ok(Done::new(format!("both have created HttpBin {NAMESPACE}/{NAME}: same name, different workspaces")))
            })
            .await
    }

    /// Waits for the copies, the finalizers and the state.
    pub async fn see_copies(&self) -> Result<[Copy; 2], Failed> {
        let step = Step::new("waiting for the copies", "one copy per team on the service cluster, finalizers in kcp");
        self.ui
            .step(step, async |seen| {
                let [a, b] = &self.teams;
                let copies = [
                    self.until(seen, async || self.copy_of(a).await).await?,
                    self.until(seen, async || self.copy_of(b).await).await?,
                ];
                let line = |(team, copy): (&Team, &Copy)| format!("{}: {}/{}", team.name, copy.namespace, copy.name);
                let lines: Vec<_> = self.teams.iter().zip(&copies).map(line).collect();
                Ok(Done::new("the agent has placed a copy of each on the service cluster").details(lines).with(copies))
            })
            .await
    }

    async fn copy_of(&self, team: &Team) -> anyhow::Result<Copy> {
        let source = existing(&team.client, &http_bins(), Some(NAMESPACE), NAME).await?;
        let cluster = text_at(&source, "/metadata/annotations/kcp.io~1cluster")?;
        let finalizers = &source["metadata"]["finalizers"];
        let held = finalizers.as_array().is_some_and(|all| all.iter().any(|one| one == FINALIZER));
        ensure!(held, "the HttpBin of {} has the finalizers {finalizers}", team.name);
        let found = self.cluster.list(&http_bins(), None, &of_cluster(&cluster)).await?;
        ensure!(found.len() == 1, "the service cluster holds {} copies for {}", found.len(), team.name);
        let (namespace, name) = (text_at(&found[0], "/metadata/namespace")?, text_at(&found[0], "/metadata/name")?);
        let states = self.states(&cluster).await?;
        ensure!(states == 1, "the agent remembers {states} states for {}", team.name);
        Ok(Copy { cluster, namespace, name })
    }

    /// How many state Secrets the agent keeps for a workspace.
    pub(super) async fn states(&self, cluster: &str) -> anyhow::Result<usize> {
        let options = ListOptions::labels(format!("{OBJECT_STATE}=true,{REMOTE_CLUSTER}={cluster}"));
        Ok(self.cluster.list(&secrets(), Some(AGENT_NAMESPACE), &options).await?.len())
    }

    /// Waits for the URLs in the consumers' workspaces.
    pub async fn see_urls(&self) -> Result<[String; 2], Failed> {
        let step = Step::new("waiting for the URLs", "status.url and status.ready in both consumers' workspaces");
        self.ui
            .step(step, async |seen| {
                let [a, b] = &self.teams;
                let urls = [
                    self.until(seen, async || url_of(a).await).await?,
                    self.until(seen, async || url_of(b).await).await?,
                ];
                ensure!(urls[0] != urls[1], "both teams got the same URL {}", urls[0]);
                let lines: Vec<_> =
                    self.teams.iter().zip(&urls).map(|(team, url)| format!("{}: {url}", team.name)).collect();
                Ok(Done::new("status.url has come back to both workspaces").details(lines).with(urls))
            })
            .await
    }

    /// Uses the endpoint of the first team and shows the answer.
    pub async fn fetch(&self, urls: &[String; 2]) -> Result<(), Failed> {
        let url = format!("{}/get?from=team-a", urls[0]);
        let step = Step::new(format!("fetching {url}"), "answer 200 with the region of the order");
        self.ui
            .step(step, async |_| {
                let (status, answer) = fetch::get(&url, None).await?;
                ensure!(status == 200, "the endpoint answered {status}: {answer}");
                ensure!(answer["args"]["from"] == "team-a", "the endpoint answered {answer}");
                ensure!(answer["region"] == "eu-central", "the endpoint says it runs in {}", answer["region"]);
                let shown = format!("{answer:#}");
                Ok(Done::new(format!("GET {url} answers {status}")).details(shown.lines()))
            })
            .await
    }

    /// Waits for the Secrets in the consumers' workspaces, which must equal the operator's.
    pub async fn see_secrets(&self, copies: &[Copy; 2]) -> Result<[Credentials; 2], Failed> {
        let step =
            Step::new("waiting for the Secrets", format!("Secret {NAMESPACE}/{SECRET} in both consumers' workspaces"));
        self.ui
            .step(step, async |seen| {
                let [a, b] = &self.teams;
                let data = [
                    self.until(seen, async || self.secret_of(a, &copies[0]).await).await?,
                    self.until(seen, async || self.secret_of(b, &copies[1]).await).await?,
                ];
                let logins = [login(&data[0])?, login(&data[1])?];
                ensure!(logins[0].password != logins[1].password, "both teams got the same password");
                let mut lines = Vec::new();
                for (team, data) in self.teams.iter().zip(&data) {
                    let values = data.as_object().into_iter().flatten();
                    let shown: Vec<_> = values.map(|(key, value)| format!("{key}={}", masked(value))).collect();
                    lines.push(format!("{}: {}", team.name, shown.join("  ")));
                }
                let text = format!("Secret {NAMESPACE}/{SECRET} has come to both workspaces");
                Ok(Done::new(text).details(lines).with(logins))
            })
            .await
    }

    async fn secret_of(&self, team: &Team, copy: &Copy) -> anyhow::Result<Value> {
        let name = format!("{}-credentials", copy.name);
        let original = existing(&self.cluster, &secrets(), Some(&copy.namespace), &name).await?;
        let arrived = existing(&team.client, &secrets(), Some(NAMESPACE), SECRET).await?;
        ensure!(arrived["data"] == original["data"], "the Secret of {} differs from the operator's", team.name);
        Ok(arrived["data"].clone())
    }

    /// Uses the Secrets: each opens its own endpoint and no other.
    pub async fn log_in(&self, urls: &[String; 2], logins: &[Credentials; 2]) -> Result<(), Failed> {
        let step = Step::new("logging in", "each Secret opens the endpoint of its team and no other");
        self.ui
            .step(step, async |_| {
                for (at, url) in urls.iter().enumerate() {
                    let page = format!("{url}/basic-auth");
                    for (login, wanted) in [(&logins[at], 200), (&logins[1 - at], 401)] {
                        let (status, _) = fetch::get(&page, Some(login)).await?;
                        ensure!(status == wanted, "GET {page} answered {status} instead of {wanted}");
                    }
                }
                Ok(Done::new("each team logs in with its Secret: 200 at its own endpoint, 401 at the other team's"))
            })
            .await
    }

    /// Changes the first team's order and waits until its endpoint shows the change.
    pub async fn change_region(&self, urls: &[String; 2]) -> Result<(), Failed> {
        let [team, _] = &self.teams;
        let step = Step::new(
            format!("setting spec.region to {NEW_REGION}"),
            format!("the endpoint of {} says {NEW_REGION}, that of team-b stays as it is", team.name),
        );
        self.ui
            .step(step, async |seen| {
                let patch = json!({"spec": {"region": NEW_REGION}});
                team.client.merge_patch(&http_bins(), Some(NAMESPACE), NAME, &patch).await?;
                self.until(seen, async || {
                    let region = region_of(&urls[0]).await?;
                    ensure!(region == NEW_REGION, "the endpoint says it runs in {region}");
                    let source = existing(&team.client, &http_bins(), Some(NAMESPACE), NAME).await?;
                    let message = text_at(&source, "/status/conditions/0/message")?;
                    ensure!(message.ends_with(NEW_REGION), "status in kcp still says {message:?}");
                    Ok(())
                })
                .await?;
                let other = region_of(&urls[1]).await?;
                ensure!(other == "eu-central", "the endpoint of team-b moved to {other}");
                let text = format!("spec.region {NEW_REGION} has arrived at team-a's endpoint and in its status");
                Ok(Done::new(text).details([format!(
                    "GET {}/get now says \"region\": \"{NEW_REGION}\"; team-b stays in {other}",
                    urls[0]
                )]))
            })
            .await
    }
}

/// Objects that belong to a workspace.
pub(super) fn of_cluster(cluster: &str) -> ListOptions {
    ListOptions::labels(format!("{REMOTE_CLUSTER}={cluster}"))
}

async fn url_of(team: &Team) -> anyhow::Result<String> {
    let source = existing(&team.client, &http_bins(), Some(NAMESPACE), NAME).await?;
    ensure!(source["status"]["ready"] == true, "the HttpBin of {} has the status {}", team.name, source["status"]);
    text_at(&source, "/status/url")
}

/// Where an endpoint says it runs.
pub(super) async fn region_of(url: &str) -> anyhow::Result<String> {
    let (status, answer) = fetch::get(&format!("{url}/get"), None).await?;
    let region = answer["region"].as_str().map(str::to_owned);
    region.with_context(|| format!("the endpoint answered {status}: {answer}"))
}

fn login(data: &Value) -> anyhow::Result<Credentials> {
    Ok(Credentials { username: decoded(&data["username"])?, password: decoded(&data["password"])? })
}

fn decoded(value: &Value) -> anyhow::Result<String> {
    let bytes =
        BASE64.decode(value.as_str().unwrap_or_default().as_bytes()).context("a value of the Secret is not base64")?;
    String::from_utf8(bytes).context("a value of the Secret is not text")
}

/// The start of a value, and how long it is.
fn masked(value: &Value) -> String {
    let text = decoded(value).unwrap_or_default();
    let start: String = text.chars().take(2).collect();
    format!("{start}****** ({} characters)", text.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_values_show_no_more_than_their_start() {
        assert_eq!(masked(&json!(BASE64.encode(b"s3cr3t-of-mine"))), "s3****** (14 characters)");
        assert_eq!(masked(&json!("not base64!")), "****** (0 characters)");
    }
}
