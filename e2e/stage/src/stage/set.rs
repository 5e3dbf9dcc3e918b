//! Setting the stage: workspaces, CRDs, export and bindings.

use std::sync::Arc;

use anyhow::Context;
use carrick_client::Client;
use carrick_kcp::kinds::{API_BINDING_V2, API_EXPORT, API_EXPORT_ENDPOINT_SLICE, WORKSPACE};
use serde_json::{Value, json};

use super::wait::{eventually, shown};
use super::{Stage, Workspace};
use crate::world::World;
use crate::{fixtures, kinds};

/// What consumers let the provider see.
const CLAIMS: [(&str, &str); 5] =
    [("", "configmaps"), ("", "events"), ("", "namespaces"), ("", "secrets"), ("core.kcp.io", "logicalclusters")];

impl Stage {
    /// A stage with everything but an agent: Buckets are published, both teams are bound to the export.
    pub async fn set(world: Arc<dyn World>) -> anyhow::Result<Self> {
        let stage = Self::bound(world, |group| fixtures::crd(group, "Bucket")).await?;
        stage.publish("Bucket", json!({})).await?;
        Ok(stage)
    }

    /// A stage with a CRD of Buckets, an export, and both teams bound to it; nothing is published.
    pub async fn bound(world: Arc<dyn World>, crd: impl Fn(&str) -> Value) -> anyhow::Result<Self> {
        let stage = Self::bare(world).await?;
        stage.install_crd(&crd(&stage.group)).await?;
        stage.create_export().await?;
        futures::try_join!(stage.bind(&stage.team_a), stage.bind(&stage.team_b))?;
        Ok(stage)
    }

    /// A stage with nothing but workspaces and what an agent needs on the service cluster.
    pub async fn bare(world: Arc<dyn World>) -> anyhow::Result<Self> {
        Self::bare_with_group(world, None).await
    }

    /// A bare stage whose API group may be given; only one scenario of a world may use it then.
    pub async fn bare_with_group(world: Arc<dyn World>, group: Option<&str>) -> anyhow::Result<Self> {
        let id = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        let group = group.map_or_else(|| format!("s{id}.example.com"), str::to_owned);
        let service = world.service().client();
        install_crd(&*world, &service, &carrick_syncagent::api::crd()).await?;
        let namespace =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": format!("agent-{id}") } });
        service.create(&kinds::namespaces(), None, &namespace).await?;

        let org = create_workspace(&*world, "root", &format!("org-{id}"), Some("organization")).await?;
        let (provider, team_a, team_b) = futures::try_join!(
            create_workspace(&*world, &org.path, "provider", None),
            create_workspace(&*world, &org.path, "team-a", None),
            create_workspace(&*world, &org.path, "team-b", None),
        )?;
        Ok(Self { world, id, group, provider, team_a, team_b, service })
    }

    /// Creates a workspace for another consumer, next to the others; it is not bound to anything yet.
    pub async fn team(&self, name: &str) -> anyhow::Result<Workspace> {
        let org = self.provider.path.rsplit_once(':').map_or("root", |(org, _)| org);
        create_workspace(&*self.world, org, name, None).await
    }

    /// Creates a workspace below another one; it is not bound to anything yet.
    pub async fn below(&self, parent: &Workspace, name: &str) -> anyhow::Result<Workspace> {
        create_workspace(&*self.world, &parent.path, name, None).await
    }

    /// Installs a CRD on the service cluster and waits until its kind is served.
    pub async fn install_crd(&self, crd: &Value) -> anyhow::Result<()> {
        install_crd(&*self.world, &self.service, crd).await
    }

    /// Creates an empty APIExport and waits for its slice.
    pub async fn create_export(&self) -> anyhow::Result<()> {
        let object = json!({
            "apiVersion": API_EXPORT.api_version(),
            "kind": API_EXPORT.kind,
            "metadata": { "name": self.export_name() },
            "spec": {},
        });
        let client = &self.provider.client;
        client.create(&kinds::kcp(&API_EXPORT), None, &object).await?;
        let slices = kinds::kcp(&API_EXPORT_ENDPOINT_SLICE);
        self.object("the slice exists", (client, &slices, None, self.export_name()), |_| true).await?;
        Ok(())
    }

    /// The APIExport as it is.
    pub async fn export(&self) -> anyhow::Result<Value> {
        let export = self.provider.client.get(&kinds::kcp(&API_EXPORT), None, self.export_name()).await?;
        export.context("the APIExport does not exist")
    }

    /// Binds a consumer's workspace to the export, accepts its claims, and waits until the binding is ready.
    pub async fn bind(&self, team: &Workspace) -> anyhow::Result<Value> {
        let claims: Vec<Value> = CLAIMS
            .iter()
            .map(|(group, resource)| {
                json!({
                    "group": group, "resource": resource, "verbs": ["*"], "selector": { "matchAll": true },
                    "state": "Accepted",
                })
            })
            .collect();
        let object = json!({
            "apiVersion": API_BINDING_V2.api_version(),
            "kind": API_BINDING_V2.kind,
            "metadata": { "name": self.export_name() },
            "spec": {
                "reference": { "export": { "path": self.provider.path, "name": self.export_name() } },
                "permissionClaims": claims,
            },
        });
        let bindings = kinds::kcp(&API_BINDING_V2);
        // kcp learns of new exports a moment after they were created, and refuses until then.
        self.eventually(&format!("{} can be bound", team.path), async || {
            match team.client.create(&bindings, None, &object).await {
                Err(error) if !error.is_already_exists() => Err(error.into()),
                _ => Ok(()),
            }
        })
        .await?;
        let at = (&team.client, &bindings, None, self.export_name());
        self.object(&format!("the binding of {} is ready", team.path), at, |binding| {
            binding["status"]["phase"] == "Bound" && condition(binding, "Ready")["status"] == "True"
        })
        .await
    }

    /// Lets a consumer accept these claims, by the plurals they are about, and reject all others; waits until kcp has taken note.
    pub async fn accept(&self, team: &Workspace, accepted: &[&str]) -> anyhow::Result<()> {
        let bindings = kinds::kcp(&API_BINDING_V2);
        let at = (&team.client, &bindings, None, self.export_name());
        let binding = self.object("the binding is there", at, |_| true).await?;
        let mut claims = binding["spec"]["permissionClaims"].clone();
        for claim in claims.as_array_mut().into_iter().flatten() {
            let named = claim["resource"].as_str().unwrap_or_default();
            claim["state"] = json!(if accepted.contains(&named) { "Accepted" } else { "Rejected" });
        }
        let patch = json!({ "spec": { "permissionClaims": claims } });
        team.client.merge_patch(&bindings, None, self.export_name(), &patch).await?;
        let names = |claims: &Value| -> Vec<String> {
            let claims = claims.as_array().into_iter().flatten();
            claims.filter_map(|claim| claim["resource"].as_str().map(str::to_owned)).collect()
        };
        self.object("kcp has taken note of the claims", at, |binding| {
            let wanted = names(&binding["status"]["exportPermissionClaims"]);
            let applied = names(&binding["status"]["appliedPermissionClaims"]);
            let accepted = |name: &String| accepted.contains(&name.as_str());
            applied.iter().all(accepted)
                && wanted.iter().filter(|name| accepted(name)).all(|name| applied.contains(name))
        })
        .await?;
        Ok(())
    }
}

/// A condition of an object; null if it has none of that type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.and_then(|all| all.iter().find(|condition| condition["type"] == kind)).unwrap_or(&Value::Null)
}

async fn install_crd(world: &dyn World, service: &Client, crd: &Value) -> anyhow::Result<()> {
    match service.create(&kinds::crds(), None, crd).await {
        Err(error) if !error.is_already_exists() => return Err(error.into()),
        _ => {}
    }
    let name = crd["metadata"]["name"].as_str().unwrap_or_default();
    eventually(world, &format!("CRD {name} is established"), async || {
        let crd = service.get(&kinds::crds(), None, name).await?.context("the CRD does not exist")?;
        anyhow::ensure!(condition(&crd, "Established")["status"] == "True", "it is {}", shown(&crd["status"]));
        Ok(())
    })
    .await
}

/// Creates a workspace and waits until it is ready.
async fn create_workspace(
    world: &dyn World,
    parent: &str,
    name: &str,
    kind: Option<&str>,
) -> anyhow::Result<Workspace> {
    let kcp = world.kcp();
    let client = kcp.at_path(&format!("/clusters/{parent}"));
    let workspaces = kinds::kcp(&WORKSPACE);
    let mut object = json!({
        "apiVersion": WORKSPACE.api_version(),
        "kind": WORKSPACE.kind,
        "metadata": { "name": name },
        "spec": {},
    });
    if let Some(kind) = kind {
        object["spec"]["type"] = json!({ "name": kind, "path": "root" });
    }
    // A fresh parent may refuse for a moment, until its own permissions have arrived.
    eventually(world, &format!("workspace {parent}:{name} can be created"), async || {
        match client.create(&workspaces, None, &object).await {
            Err(error) if !error.is_already_exists() => Err(error.into()),
            _ => Ok(()),
        }
    })
    .await?;
    let cluster = eventually(world, &format!("workspace {parent}:{name} is ready"), async || {
        let workspace = client.get(&workspaces, None, name).await?.context("the workspace does not exist")?;
        anyhow::ensure!(workspace["status"]["phase"] == "Ready", "it is {}", shown(&workspace));
        workspace["spec"]["cluster"].as_str().map(str::to_owned).context("it has no spec.cluster")
    })
    .await?;
    let path = format!("{parent}:{name}");
    let client = kcp.at_path(&format!("/clusters/{path}"));
    Ok(Workspace { path, cluster, client })
}
