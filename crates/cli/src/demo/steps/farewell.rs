//! Deletion, and the check that nothing is left.

use anyhow::ensure;
use carrick_client::{DeleteOptions, ListOptions};

use super::Copy;
use super::consumer::{of_cluster, region_of};
use crate::demo::fetch;
use crate::demo::manifests::{NAME, NAMESPACE, SECRET, http_bins, secrets};
use crate::demo::stage::{Stage, Team};
use crate::ui::{Done, Failed, Step};

const LEFT: &str = "no HttpBin, Secret or finalizer in kcp; no copy, Secret or state on the service cluster";

impl Stage {
    /// Deletes the first team's order; the other team must not notice.
    pub async fn delete_first(&self, copy: &Copy, urls: &[String; 2]) -> Result<(), Failed> {
        let [team, other] = &self.teams;
        let step = Step::new(format!("deleting the HttpBin of {}", team.name), LEFT);
        self.ui
            .step(step, async |seen| {
                let options = DeleteOptions::default();
                team.client.delete(&http_bins(), Some(NAMESPACE), NAME, &options).await?;
                self.until(seen, async || self.nothing_left(team, copy, &urls[0]).await).await?;
                region_of(&urls[1]).await?;
                Ok(Done::new(format!("{} has deleted its HttpBin: nothing is left of it", team.name)).details([
                    format!(
                        "kcp: no HttpBin, no Secret; service cluster: no copy, no Secret, no state; {} still works",
                        other.name
                    ),
                ]))
            })
            .await
    }

    /// Deletes the second team's order.
    pub async fn delete_second(&self, copy: &Copy, urls: &[String; 2]) -> Result<(), Failed> {
        let [_, team] = &self.teams;
        let step = Step::new(format!("deleting the HttpBin of {}", team.name), LEFT);
        self.ui
            .step(step, async |seen| {
                let options = DeleteOptions::default();
                team.client.delete(&http_bins(), Some(NAMESPACE), NAME, &options).await?;
                self.until(seen, async || self.nothing_left(team, copy, &urls[1]).await).await?;
                Ok(Done::new(format!("{} has deleted its HttpBin: nothing is left of it either", team.name)))
            })
            .await
    }

    async fn nothing_left(&self, team: &Team, copy: &Copy, url: &str) -> anyhow::Result<()> {
        let source = team.client.get(&http_bins(), Some(NAMESPACE), NAME).await?;
        if let Some(source) = source {
            anyhow::bail!(
                "the HttpBin in kcp is still there, held by the finalizers {}",
                source["metadata"]["finalizers"]
            );
        }
        let arrived = team.client.get(&secrets(), Some(NAMESPACE), SECRET).await?;
        ensure!(arrived.is_none(), "Secret {SECRET} in kcp is still there");
        let copies = self.cluster.list(&http_bins(), None, &of_cluster(&copy.cluster)).await?.len();
        ensure!(copies == 0, "{copies} copies on the service cluster are still there");
        let originals = self.cluster.list(&secrets(), Some(&copy.namespace), &ListOptions::default()).await?.len();
        ensure!(
            originals == 0,
            "{originals} Secrets in namespace {} on the service cluster are still there",
            copy.namespace
        );
        let states = self.states(&copy.cluster).await?;
        ensure!(states == 0, "{states} state Secrets on the service cluster are still there");
        ensure!(fetch::get(url, None).await.is_err(), "the endpoint at {url} still answers");
        Ok(())
    }
}
