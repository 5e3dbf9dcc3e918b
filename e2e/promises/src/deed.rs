//! What users and operators do, as data.

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{NAMESPACE, Workspace, place};
use serde_json::{Value, json};

use super::lab::Lab;

/// One of the two consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Team {
    /// `team-a`.
    A,
    /// `team-b`.
    B,
}

impl Team {
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// Its workspace.
    pub fn of(self, lab: &Lab) -> &Workspace {
        match self {
            Self::A => &lab.stage.team_a,
            Self::B => &lab.stage.team_b,
        }
    }
}

/// Where an object beside an order is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// In the consumer's namespace.
    Order(Team),
    /// In the namespace of the copy, which is called after the consumer's cluster.
    Copy(Team),
}

/// One thing that somebody does.
#[derive(Debug, Clone)]
pub enum Deed {
    /// A consumer orders something.
    Order(Team, &'static str, Value),
    /// A consumer changes an order, by a merge patch.
    Change(Team, &'static str, Value),
    /// A consumer cancels an order.
    Cancel(Team, &'static str),
    /// The operator writes the status of the copy.
    Report(Team, &'static str, Value),
    /// The operator changes the copy, by a merge patch.
    Touch(Team, &'static str, Value),
    /// Somebody creates an object beside an order, or patches it if it exists.
    Put(Beside, &'static str, &'static str, Value),
    /// Somebody writes the status of an object beside an order.
    PutStatus(Beside, &'static str, &'static str, Value),
    /// Somebody deletes an object beside an order.
    Remove(Beside, &'static str, &'static str),
    /// A consumer writes the whole spec of an order, nulls included.
    Replace(Team, &'static str, Value),
    /// The provider changes the rules, by a merge patch of the spec of the PublishedResource.
    Republish(Value),
    /// The provider changes the CRD.
    Redefine(fn(&mut Value)),
    /// Somebody deletes the namespace of an order's copy, with all that is in it.
    Raze(Team, &'static str),
}

impl Deed {
    /// Does it.
    pub async fn act(&self, lab: &Lab) -> anyhow::Result<()> {
        match self {
            Self::Order(team, name, content) => lab.create_source(team.of(lab), name, content).await,
            Self::Change(team, name, patch) => {
                let client = &team.of(lab).client;
                client.merge_patch(&lab.source_kind(), lab.source_namespace(), name, patch).await?;
                Ok(())
            }
            Self::Cancel(team, name) => lab.delete_source(team.of(lab), name).await,
            Self::Report(team, name, status) => {
                let copy = lab.copy(team.of(lab), name).await?;
                let (namespace, name) = place(&copy);
                let patch = json!({ "status": status });
                let namespace = (!namespace.is_empty()).then_some(namespace);
                lab.stage.service.merge_patch_status(&lab.copy_kind(), namespace, name, &patch).await?;
                Ok(())
            }
            Self::Touch(team, name, patch) => {
                let copy = lab.copy(team.of(lab), name).await?;
                lab.patch_copy(&copy, patch).await
            }
            Self::Put(beside, plural, name, content) => {
                let (client, namespace, kind) = lab.beside(*beside, plural);
                let mut object = content.clone();
                object["apiVersion"] = json!(kind.api_version());
                object["kind"] = json!(&*kind.kind);
                object["metadata"]["name"] = json!(name);
                match client.create(&kind, Some(&namespace), &object).await {
                    Err(error) if error.is_already_exists() => {
                        client.merge_patch(&kind, Some(&namespace), name, content).await?;
                    }
                    created => drop(created?),
                }
                Ok(())
            }
            Self::PutStatus(beside, plural, name, status) => {
                let (client, namespace, kind) = lab.beside(*beside, plural);
                let patch = json!({ "status": status });
                client.merge_patch_status(&kind, Some(&namespace), name, &patch).await?;
                Ok(())
            }
            Self::Remove(beside, plural, name) => {
                let (client, namespace, kind) = lab.beside(*beside, plural);
                client.delete(&kind, Some(&namespace), name, &DeleteOptions::default()).await?;
                Ok(())
            }
            Self::Replace(team, name, spec) => lab.replace_source(team.of(lab), name, spec).await,
            Self::Republish(spec) => {
                let name = lab.stage.published_name("Bucket");
                let patch = json!({ "spec": spec });
                lab.stage.service.merge_patch(&kinds::published_resources(), None, &name, &patch).await?;
                Ok(())
            }
            Self::Redefine(change) => lab.redefine(*change).await,
            Self::Raze(team, _) => lab.delete_namespace(&team.of(lab).cluster).await,
        }
    }

    /// The order that a deed needs a copy of before it can be done.
    pub fn needs_copy(&self) -> Option<(Team, &'static str)> {
        match self {
            Self::Report(team, name, _) | Self::Touch(team, name, _) | Self::Raze(team, name) => Some((*team, name)),
            _ => None,
        }
    }
}

impl Lab {
    /// The kind of the sources, as consumers know it.
    pub fn source_kind(&self) -> Resource {
        (self.flow.source)(&self.stage)
    }

    /// The kind of the copies.
    pub fn copy_kind(&self) -> Resource {
        (self.flow.copy)(&self.stage)
    }

    /// Namespace of the sources, if they have one.
    pub fn source_namespace(&self) -> Option<&'static str> {
        self.source_kind().namespaced.then_some(NAMESPACE)
    }

    /// Creates a source, as soon as its kind can be created.
    pub async fn create_source(&self, team: &Workspace, name: &str, content: &Value) -> anyhow::Result<()> {
        let kind = self.source_kind();
        let mut object = content.clone();
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(&*kind.kind);
        object["metadata"]["name"] = json!(name);
        self.stage
            .eventually(&format!("{name} can be created in {}", team.path), async || {
                match team.client.create(&kind, self.source_namespace(), &object).await {
                    Err(error) if !error.is_already_exists() => Err(error.into()),
                    _ => Ok(()),
                }
            })
            .await
    }

    /// Writes the whole spec of a source.
    async fn replace_source(&self, team: &Workspace, name: &str, spec: &Value) -> anyhow::Result<()> {
        let (kind, namespace) = (self.source_kind(), self.source_namespace());
        // The agent holds it at the same time.
        self.stage
            .eventually(&format!("{name} can be replaced in {}", team.path), async || {
                let mut source = team.client.get(&kind, namespace, name).await?.context("it is gone")?;
                source["spec"] = spec.clone();
                team.client.replace(&kind, namespace, &source).await?;
                Ok(())
            })
            .await
    }

    /// Changes the CRD of the copies.
    async fn redefine(&self, change: fn(&mut Value)) -> anyhow::Result<()> {
        let kind = self.copy_kind();
        let name = format!("{}.{}", kind.plural, kind.group);
        self.stage
            .eventually("the CRD can be changed", async || {
                let mut crd = self.stage.service.get(&kinds::crds(), None, &name).await?.context("there is no CRD")?;
                change(&mut crd);
                self.stage.service.replace(&kinds::crds(), None, &crd).await?;
                Ok(())
            })
            .await
    }

    /// Deletes a namespace on the service cluster with all that is in it, and waits until it is gone.
    pub async fn delete_namespace(&self, name: &str) -> anyhow::Result<()> {
        let (namespaces, service) = (kinds::namespaces(), &self.stage.service);
        let before = service.get(&namespaces, None, name).await?.context("there is no such namespace")?;
        service.delete(&namespaces, None, name, &DeleteOptions::default()).await?;
        self.stage
            .eventually("the namespace is gone", async || {
                let now = service.get(&namespaces, None, name).await?;
                let same = now.as_ref().is_some_and(|now| now["metadata"]["uid"] == before["metadata"]["uid"]);
                ensure!(!same, "it is there");
                Ok(())
            })
            .await
    }

    /// Deletes a source.
    pub async fn delete_source(&self, team: &Workspace, name: &str) -> anyhow::Result<()> {
        let kind = self.source_kind();
        Ok(team.client.delete(&kind, self.source_namespace(), name, &DeleteOptions::default()).await?)
    }

    /// The copy of a source, which must be there.
    pub async fn copy(&self, team: &Workspace, name: &str) -> anyhow::Result<Value> {
        let copy = self.stage.copy_of_kind(&self.copy_kind(), team, name).await?;
        copy.with_context(|| format!("there is no copy of {name} of {}", team.path))
    }

    /// Patches a copy.
    pub async fn patch_copy(&self, copy: &Value, patch: &Value) -> anyhow::Result<()> {
        let (namespace, name) = place(copy);
        ensure!(!name.is_empty(), "a copy without a name: {copy}");
        let namespace = (!namespace.is_empty()).then_some(namespace);
        self.stage.service.merge_patch(&self.copy_kind(), namespace, name, patch).await?;
        Ok(())
    }

    fn beside(&self, beside: Beside, plural: &str) -> (carrick_client::Client, String, Resource) {
        let kind = match plural {
            "secrets" => kinds::secrets(),
            "configmaps" => kinds::config_maps(),
            other => {
                let singular = other.trim_end_matches('s');
                let kind = format!("{}{}", singular[..1].to_uppercase(), &singular[1..]);
                Resource::namespaced(&self.stage.group, "v1", &kind, other)
            }
        };
        match beside {
            Beside::Order(team) => (team.of(self).client.clone(), NAMESPACE.to_owned(), kind),
            Beside::Copy(team) => (self.stage.service.clone(), team.of(self).cluster.clone(), kind),
        }
    }
}
