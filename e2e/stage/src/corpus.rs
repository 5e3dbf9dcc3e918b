//! CRDs and samples of public operators, as `e2e/corpus/fetch` collects them.
//!
//! ```text
//!   files ─▶ kind ─┬─▶ differential::corpus   the plane and a real server take them alike
//!                  ├─▶ life                   published, bound, ordered, changed and deleted through an agent
//!                  └─▶ first_order            what `carrick init` writes for them is valid
//! ```

pub mod files;
pub mod first_order;
pub mod kind;
pub mod life;
pub mod variants;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::stage::Stage;
use files::Corpus;
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
    "ocirepositories.source.toolkit.fluxcd.io",
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
];

/// Whether a server says that an object is not valid, now and for ever.
fn is_refusal(error: &carrick_client::Error) -> bool {
    error.is_invalid() || error.status().is_some_and(|status| status.code == 400)
}

/// The folder of the corpus, if it was fetched.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("CARRICK_CORPUS").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// How to get the corpus, if it is not there.
pub fn lacking() -> Option<&'static str> {
    let how = "the CRDs of public operators are not here; CARRICK_CORPUS=$(e2e/corpus/fetch) names a folder with them";
    folder().is_none().then_some(how)
}

/// CRDs whose names are wanted, and their samples. If `CARRICK_CRD` is set, those are wanted whose names contain what it says.
pub fn read(is_wanted: impl Fn(&str) -> bool) -> anyhow::Result<Corpus> {
    let folder = folder().context(lacking().unwrap_or_default())?;
    let part = std::env::var("CARRICK_CRD").ok().filter(|part| !part.is_empty());
    let corpus =
        files::read(&folder, &|name| part.as_ref().map_or_else(|| is_wanted(name), |part| name.contains(part)));
    let corpus = corpus.with_context(|| format!("cannot read the corpus in {}", folder.display()))?;
    ensure!(!corpus.crds.is_empty(), "no CRD of the corpus has {} in its name", part.unwrap_or_default());
    let missing: Vec<&&str> = KINDS.iter().filter(|name| part.is_none() && !corpus.crds.contains_key(**name)).collect();
    ensure!(missing.is_empty(), "the corpus has no CRDs {missing:?}");
    Ok(corpus)
}

/// The kinds that are tried every time, or those that `CARRICK_CRD` chooses.
pub fn chosen() -> anyhow::Result<Corpus> {
    read(|name| KINDS.contains(&name))
}

/// Plays the lives of all chosen kinds, one after the other, on a stage that has an export, an agent and a bound team. An error names every
/// kind that failed.
pub async fn lives(stage: &Stage) -> anyhow::Result<Vec<Life>> {
    let corpus = chosen()?;
    let (mut lives, mut failed) = (Vec::new(), Vec::new());
    for (name, crd) in &corpus.crds {
        let started = Instant::now();
        let how = match life::play(stage, crd, &corpus.samples).await {
            Ok(life) => {
                lives.push(life);
                "took"
            }
            Err(error) => {
                failed.push(format!("{name} ({}): {error:#}", crd.file));
                "FAILED after"
            }
        };
        let (done, all) = (lives.len() + failed.len(), corpus.crds.len());
        eprintln!("corpus: {done}/{all}: {name} {how} {:.1} s", started.elapsed().as_secs_f64());
    }
    ensure!(failed.is_empty(), "{} of {} kinds failed:\n{}", failed.len(), corpus.crds.len(), failed.join("\n"));
    Ok(lives)
}
