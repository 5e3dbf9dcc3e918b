//! CRDs and samples of public operators, as `e2e/corpus/fetch` collects them.
//!
//! ```text
//!   files ─▶ kind ─┬─▶ differential::corpus   the plane and a real server take them alike
//!                  └─▶ life                   published, bound, ordered, changed and deleted through an agent
//! ```

pub mod files;
pub mod kind;
pub mod life;
mod variants;

use std::path::PathBuf;

use anyhow::{Context, ensure};

use crate::stage::Stage;
use files::{Corpus, Text};
use life::Life;

/// Kinds whose lives are played every time: several of each of many operators, small and large, in one and in several versions, with and
/// without namespaces, with and without a status.
const KINDS: [&str; 46] = [
    "alertmanagers.monitoring.coreos.com",
    "applications.argoproj.io",
    "applicationsets.argoproj.io",
    "appprojects.argoproj.io",
    "backups.velero.io",
    "certificates.cert-manager.io",
    "cephclusters.ceph.rook.io",
    "clusterclasses.cluster.x-k8s.io",
    "clusterissuers.cert-manager.io",
    "clusterpolicies.kyverno.io",
    "clusterqueues.kueue.x-k8s.io",
    "clusters.cluster.x-k8s.io",
    "clusters.postgresql.cnpg.io",
    "compositeresourcedefinitions.apiextensions.crossplane.io",
    "compositions.apiextensions.crossplane.io",
    "destinationrules.networking.istio.io",
    "elasticsearches.elasticsearch.k8s.elastic.co",
    "externalsecrets.external-secrets.io",
    "functions.pkg.crossplane.io",
    "gatewayclasses.gateway.networking.k8s.io",
    "gateways.gateway.networking.k8s.io",
    "gitrepositories.source.toolkit.fluxcd.io",
    "httproutes.gateway.networking.k8s.io",
    "ingressroutes.traefik.io",
    "issuers.cert-manager.io",
    "kibanas.kibana.k8s.elastic.co",
    "machinedeployments.cluster.x-k8s.io",
    "nodepools.karpenter.sh",
    "pipelineruns.tekton.dev",
    "pipelines.tekton.dev",
    "policies.kyverno.io",
    "poolers.postgresql.cnpg.io",
    "prometheuses.monitoring.coreos.com",
    "prometheusrules.monitoring.coreos.com",
    "rollouts.argoproj.io",
    "scaledobjects.keda.sh",
    "scheduledbackups.postgresql.cnpg.io",
    "schedules.velero.io",
    "secretstores.external-secrets.io",
    "servicemonitors.monitoring.coreos.com",
    "services.serving.knative.dev",
    "tasks.tekton.dev",
    "verticalpodautoscalers.autoscaling.k8s.io",
    "virtualservices.networking.istio.io",
    "wasmplugins.extensions.istio.io",
    "workflows.argoproj.io",
];

/// The folder of the corpus, if it was fetched.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("CARRICK_CORPUS").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// How to get the corpus, if it is not there.
pub fn lacking() -> Option<&'static str> {
    let how = "the CRDs of public operators are not here; CARRICK_CORPUS=$(e2e/corpus/fetch) names a folder with them";
    folder().is_none().then_some(how)
}

/// The whole corpus.
pub fn read() -> anyhow::Result<Corpus> {
    let folder = folder().context(lacking().unwrap_or_default())?;
    files::read(&folder).with_context(|| format!("cannot read the corpus in {}", folder.display()))
}

/// What to try: a part of the names of CRDs.
fn part() -> Option<String> {
    std::env::var("CARRICK_CRD").ok().filter(|part| !part.is_empty())
}

impl Corpus {
    /// Only the CRDs whose names contain what `CARRICK_CRD` says, if it says anything.
    pub fn narrow(&mut self) {
        if let Some(part) = part() {
            self.crds.retain(|name, _| name.contains(&part));
        }
    }

    /// The CRDs whose lives are played.
    fn chosen(&self) -> anyhow::Result<Vec<&Text>> {
        if part().is_some() {
            return Ok(self.crds.values().collect());
        }
        let one = |name: &&str| self.crds.get(*name).with_context(|| format!("the corpus has no CRD {name}"));
        KINDS.iter().map(one).collect()
    }
}

/// Plays the lives of all chosen kinds, one after the other, on a stage that has an export, an agent and a bound team. An error names every
/// kind that failed.
pub async fn lives(stage: &Stage) -> anyhow::Result<Vec<Life>> {
    let mut corpus = read()?;
    corpus.narrow();
    let chosen = corpus.chosen()?;
    ensure!(!chosen.is_empty(), "no CRD of the corpus has {} in its name", part().unwrap_or_default());
    let (mut lives, mut failed) = (Vec::new(), Vec::new());
    for crd in &chosen {
        match life::play(stage, crd, &corpus.samples).await {
            Ok(life) => lives.push(life),
            Err(error) => failed.push(format!("{} ({}): {error:#}", crd.value["metadata"]["name"], crd.file)),
        }
    }
    ensure!(failed.is_empty(), "{} of {} kinds failed:\n{}", failed.len(), chosen.len(), failed.join("\n"));
    Ok(lives)
}
