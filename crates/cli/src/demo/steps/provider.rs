//! The provider's part: workspaces, operator, export, agent.

use anyhow::ensure;
use carrick_client::ListOptions;
use carrick_kcp::apis::v1alpha1::{ApiExport, ApiExportEndpointSlice};

use super::{existing, existing_kcp, require_condition, text_at};
use crate::demo::manifests::{self, EXPORT, PROVIDER_PATH, PUBLISHED, crds, published_resources, secrets};
use crate::demo::stage::{PROVIDER, Stage};
use crate::ui::{Done, Failed, Step};
use crate::workspaces;

impl Stage {
    /// Makes the workspaces of the provider and of the teams.
    pub async fn make_workspaces(&self) -> Result<(), Failed> {
        let step =
            Step::new("making workspaces", "all workspaces in phase Ready, each open to its owner and to no other");
        self.ui
            .step(step, async |seen| {
                let teams = self.teams.iter().map(|team| (team.path, team.name));
                let mut lines = Vec::new();
                for (path, user) in std::iter::once((PROVIDER_PATH, PROVIDER)).chain(teams) {
                    seen.note(format_args!("workspace {path} is not ready"));
                    workspaces::ensure(&self.admin, path).await?;
                    workspaces::grant_admin(&self.admin, path, user).await?;
                    lines.push(format!("{path:<24} belongs to {user}"));
                }
                let [a, b] = &self.teams;
                let clients = [&self.provider, &a.client, &b.client, &self.provider];
                for pair in clients.windows(2) {
                    let stranger = pair[0].at_url(pair[1].url())?;
                    let answer = stranger.list(&secrets(), None, &ListOptions::default()).await;
                    ensure!(answer.is_err_and(|error| error.is_forbidden()), "{} is open to strangers", stranger.url());
                }
                Ok(Done::new("three workspaces are ready, each closed to the other two").details(lines))
            })
            .await
    }

    /// Installs the CRD and runs the operator.
    pub async fn install_operator(&mut self) -> Result<(), Failed> {
        let step = Step::new("installing the operator", "CRD httpbins.orchestrate.platform-mesh.io is established");
        let ui = self.ui.clone();
        ui.step(step, async |seen| {
            manifests::create(&self.cluster, manifests::CRD).await?;
            self.until(seen, async || {
                let crd = existing(&self.cluster, &crds(), None, "httpbins.orchestrate.platform-mesh.io").await?;
                require_condition(&crd, "Established")
            })
            .await?;
            self.run_operator();
            Ok(Done::new(
                "service cluster: CRD httpbins.orchestrate.platform-mesh.io is established, its operator runs",
            ))
        })
        .await
    }

    /// Creates the export that consumers will bind.
    pub async fn create_export(&self) -> Result<(), Failed> {
        let step = Step::new("creating the APIExport", "the APIExport gets an identity and an endpoint slice");
        self.ui
            .step(step, async |seen| {
                manifests::create(&self.provider, manifests::API_EXPORT_YAML).await?;
                manifests::create(&self.provider, manifests::AGENT_KCP).await?;
                self.until(seen, async || {
                    let export: ApiExport = existing_kcp(&self.provider, EXPORT).await?;
                    ensure!(!export.status.identity_hash.is_empty(), "APIExport {EXPORT} has no status.identityHash");
                    existing_kcp::<ApiExportEndpointSlice>(&self.provider, EXPORT).await
                })
                .await?;
                Ok(Done::new(format!("kcp: APIExport {EXPORT} waits for its first kind in {PROVIDER_PATH}")))
            })
            .await
    }

    /// Tells the agent, which is not running yet, what to publish.
    pub async fn publish(&self) -> Result<(), Failed> {
        let step = Step::new("creating the PublishedResource", "the service cluster accepts it");
        self.ui
            .step(step, async |seen| {
                let crd = carrick_syncagent::api::crd();
                manifests::create_one(&self.cluster, &crd).await?;
                manifests::create(&self.cluster, manifests::AGENT_SERVICE).await?;
                let name = text_at(&crd, "/metadata/name")?;
                self.until(seen, async || {
                    require_condition(&existing(&self.cluster, &crds(), None, &name).await?, "Established")
                })
                .await?;
                manifests::create(&self.cluster, manifests::PUBLISHED_RESOURCE).await?;
                Ok(Done::new(
                    "service cluster: PublishedResource httpbins says what to offer, with the Secret of each HttpBin",
                ))
            })
            .await
    }

    /// Starts the agent and waits until it has filled the export.
    pub async fn start_agent(&mut self) -> Result<(), Failed> {
        let step =
            Step::new("starting the agent", "the agent publishes a schema and the claims events, namespaces, secrets");
        let ui = self.ui.clone();
        ui.step(step, async |seen| {
            self.run_agent()?;
            let schema = self
                .until(seen, async || {
                    let published = existing(&self.cluster, &published_resources(), None, PUBLISHED).await?;
                    let schema = text_at(&published, "/status/resourceSchemaName")?;
                    let export: ApiExport = existing_kcp(&self.provider, EXPORT).await?;
                    let schemas = &export.spec.latest_resource_schemas;
                    ensure!(schemas[..] == [schema.as_str()], "the APIExport holds the schemas {schemas:?}");
                    let claims: Vec<_> = export.spec.permission_claims.iter().map(|claim| &claim.resource).collect();
                    ensure!(claims == ["events", "namespaces", "secrets"], "the APIExport claims {claims:?}");
                    Ok(schema)
                })
                .await?;
            let text = format!("the agent has published {schema}");
            Ok(Done::new(text).details(["and asks consumers for access to events, namespaces and secrets"]))
        })
        .await
    }
}
